//! Where the images of a data set are: each in a file of its own, in a part of its picture, or inside a larger file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use akin_base::files::{read_part, read_regular_file};
use akin_core::image::{Pixels, decode};
use akin_core::{Error, Kind};

/// The part of a file that is the image of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The whole file.
    #[default]
    Whole,
    /// A rectangle of the file's picture, cut off at its edges.
    Region(Region),
    /// The file's picture without this number of rows at the bottom.
    WithoutFooter(u32),
    /// A JPEG, PNG, WebP, GIF, BMP or TIFF file inside a container.
    Encoded {
        /// The number of the container.
        container: usize,
        /// The first byte.
        start: u64,
        /// The number of bytes.
        length: u32,
    },
    /// The red, the green and the blue plane of a square picture inside a container, a byte per value.
    Planes {
        /// The number of the container.
        container: usize,
        /// The first byte.
        start: u64,
        /// The width and height in pixels.
        side: u32,
    },
}

/// A rectangle of a picture, in pixels: columns from `left` to before `right`, rows from `top` to before `bottom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first column.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The column after the last.
    pub right: u32,
    /// The row after the last.
    pub bottom: u32,
}

/// A file with many images.
#[derive(Clone, Debug)]
pub struct Container {
    /// The file that the user knows. Its images may have been unpacked from there.
    path: PathBuf,
    file: Arc<Mutex<File>>,
    /// The SHA-256 of its images, if they were unpacked.
    contents: Option<[u8; 32]>,
}

impl Container {
    /// A container whose images are read from an open file, which other containers may share.
    pub fn new(path: PathBuf, file: Arc<Mutex<File>>) -> Self {
        Self { path, file, contents: None }
    }

    /// A container whose images were unpacked into an open file. `contents` is their SHA-256.
    pub fn unpacked(path: PathBuf, file: Arc<Mutex<File>>, contents: [u8; 32]) -> Self {
        Self { path, file, contents: Some(contents) }
    }

    fn read(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        // A thread that panicked left no bytes behind, only a position.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        read_part(&mut file, &self.path, start, length)
    }
}

/// The parts of the items, and the containers that they are in. Without parts, every item is a whole file.
#[derive(Debug, Default)]
pub struct Storage {
    parts: Vec<Part>,
    containers: Vec<Container>,
}

impl Storage {
    /// The storage of items with these parts, in order.
    pub fn new(parts: Vec<Part>, containers: Vec<Container>) -> Self {
        let all_whole = parts.iter().all(|part| *part == Part::Whole);
        Self { parts: if all_whole { Vec::new() } else { parts }, containers }
    }

    /// The storage of these items, in this order.
    pub fn select(&self, items: &[usize]) -> Self {
        Self::new(items.iter().map(|&item| self.part(item)).collect(), self.containers.clone())
    }

    /// The SHA-256 of the images in each container whose images were unpacked.
    pub fn contents(&self) -> impl Iterator<Item = [u8; 32]> {
        self.containers.iter().filter_map(|container| container.contents)
    }

    fn part(&self, item: usize) -> Part {
        self.parts.get(item).copied().unwrap_or_default()
    }

    /// The file that the image of an item is in, inside which it may have the name `name`.
    pub fn file<'a>(&'a self, item: usize, name: &'a Path) -> &'a Path {
        match self.part(item) {
            Part::Whole | Part::Region(_) | Part::WithoutFooter(_) => name,
            Part::Encoded { container, .. } | Part::Planes { container, .. } => {
                &self.containers[container].path
            }
        }
    }

    /// The number of bytes of an item's image as it is stored; 0 for a file that is missing.
    pub fn length(&self, item: usize, name: &Path) -> u64 {
        match self.part(item) {
            Part::Whole | Part::Region(_) | Part::WithoutFooter(_) => {
                name.metadata().map_or(0, |metadata| metadata.len())
            }
            Part::Encoded { length, .. } => length.into(),
            Part::Planes { side, .. } => 3 * u64::from(side) * u64::from(side),
        }
    }

    /// The bytes of an item's image as it is stored.
    ///
    /// # Errors
    ///
    /// The errors of the system, and a container that is shorter than it was.
    pub fn bytes(&self, item: usize, name: &Path) -> io::Result<Vec<u8>> {
        match self.part(item) {
            Part::Whole | Part::Region(_) | Part::WithoutFooter(_) => read_regular_file(name),
            Part::Encoded { container, start, length } => {
                self.containers[container].read(start, length as usize)
            }
            Part::Planes { container, start, side } => {
                self.containers[container].read(start, 3 * (side * side) as usize)
            }
        }
    }

    /// The picture of an item, from its bytes.
    ///
    /// # Errors
    ///
    /// Bytes that are no picture, or a region outside of the picture.
    pub fn decode(&self, item: usize, bytes: &[u8]) -> akin_core::Result<Pixels> {
        match self.part(item) {
            Part::Whole | Part::Encoded { .. } => decode(bytes),
            Part::Region(region) => cut(&decode(bytes)?, region),
            Part::WithoutFooter(rows) => {
                let picture = decode(bytes)?;
                let (right, bottom) = (picture.width(), picture.height().saturating_sub(rows));
                cut(&picture, Region { left: 0, top: 0, right, bottom })
            }
            Part::Planes { side, .. } => {
                let plane = bytes.len() / 3;
                let pixel = |i| [bytes[i], bytes[plane + i], bytes[2 * plane + i]];
                Pixels::new(side, side, (0..plane).flat_map(pixel).collect())
            }
        }
    }
}

/// The part of a picture inside a region.
fn cut(picture: &Pixels, region: Region) -> akin_core::Result<Pixels> {
    let (right, bottom) = (region.right.min(picture.width()), region.bottom.min(picture.height()));
    let (left, top) = (region.left, region.top);
    if left >= right || top >= bottom {
        return Err(Error::new(
            Kind::Image,
            format!(
                "the picture has {}×{} pixels, and nothing of it is in the region that the data set names",
                picture.width(),
                picture.height()
            ),
            "copy the picture again",
        ));
    }
    let row = 3 * picture.width() as usize;
    let columns = 3 * left as usize..3 * right as usize;
    let rows = picture.data().chunks_exact(row).take(bottom as usize).skip(top as usize);
    Pixels::new(right - left, bottom - top, rows.flat_map(|row| &row[columns.clone()]).copied().collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A PNG whose pixels are `10 × row + column` in every channel.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let picture = image::GrayImage::from_fn(width, height, |x, y| image::Luma([(10 * y + x) as u8]));
        let mut bytes = io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    fn greys(picture: &Pixels) -> Vec<u8> {
        picture.data().iter().step_by(3).copied().collect()
    }

    #[test]
    fn an_image_may_be_a_part_of_a_picture() {
        let storage = Storage::new(vec![Part::WithoutFooter(3), Part::Whole, Part::WithoutFooter(4)], vec![]);
        let bytes = png(4, 4);
        assert_eq!(greys(&storage.decode(0, &bytes).unwrap()), [0, 1, 2, 3]);
        assert_eq!(greys(&storage.decode(1, &bytes).unwrap()).len(), 16);
        let region = Part::Region(Region { left: 1, top: 2, right: 3, bottom: 9 });
        let picture = Storage::new(vec![region], vec![]).decode(0, &bytes).unwrap();
        assert_eq!(greys(&picture), [21, 22, 31, 32]);
        assert!(storage.decode(2, &bytes).unwrap_err().message().contains("4×4 pixels"));
    }

    #[test]
    fn an_image_may_be_inside_a_larger_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0, 0, 1, 2, 3]).unwrap();
        let container = Container::new("many.bin".into(), Arc::new(Mutex::new(file)));
        let part = |side| Part::Planes { container: 0, start: 2, side };
        let storage = Storage::new(vec![part(1), part(2)], vec![container]);
        let name = Path::new("name");
        let bytes = storage.bytes(0, name).unwrap();
        assert_eq!(storage.decode(0, &bytes).unwrap().data(), [1, 2, 3]);
        assert!(storage.bytes(1, name).is_err(), "the file has no 12 bytes there");
        assert_eq!(storage.file(1, name), Path::new("many.bin"));
        assert_eq!(storage.length(1, name), 12);
    }
}
