//! RGB pixels in memory: resampling a region, mirroring, and the self-test pattern.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ImageView, ResizeAlg, ResizeOptions, Resizer};
use serde::{Deserialize, Serialize};

use super::MAX_PIXELS;
use crate::{Error, Kind, Result};

/// The filter that an image is resampled with.
///
/// Each is a convolution whose support grows with the reduction, so that it does not alias, as in Pillow and in
/// torchvision with `antialias=True`. Results differ from Pillow's by at most 1 of 255, with Lanczos by at most 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// A triangle of radius 1.
    #[default]
    Bilinear,
    /// The cubic with a = −0.5 (Catmull–Rom), radius 2.
    Bicubic,
    /// The windowed sine of radius 3.
    Lanczos,
}

/// An RGB image of at least one pixel, with 8 bits per channel, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl Pixels {
    /// An image of `width` × `height` pixels from `3 · width · height` bytes, interleaved RGB, row-major.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] when a side is 0 or the number of bytes does not fit.
    pub fn new(width: u32, height: u32, data: Vec<u8>) -> Result<Self> {
        let wanted = 3 * u64::from(width) * u64::from(height);
        if wanted == 0 || data.len() as u64 != wanted {
            return Err(Error::new(
                Kind::Image,
                format!("{} bytes are not an RGB image of {width}×{height} pixels", data.len()),
                "give three bytes per pixel, and at least one pixel",
            ));
        }
        Ok(Self { width, height, data })
    }

    /// The width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Interleaved RGB, row-major: `3 · width · height` bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes of [`Pixels::data`], without a copy.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// The region of `w` × `h` pixels whose upper left corner is (x, y), resampled to `out_w` × `out_h`.
    ///
    /// Pixels outside the region have no influence; a pixel that is partly inside counts as a whole. With integers this
    /// is torchvision's `resized_crop`: the crop, then the resize.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] when the region is not inside the image, not finite or less than a thousandth of a pixel wide
    /// or high, or a target side is 0 or more than 16,384.
    #[expect(clippy::too_many_arguments, reason = "a region and a size are six numbers")]
    pub fn resize_region(
        &self,
        x: f64,
        y: f64,
        w: f64,
        h: f64,
        out_w: u32,
        out_h: u32,
        filter: Filter,
    ) -> Result<Self> {
        let (left, top) = (x.floor(), y.floor());
        let (right, bottom) = ((x + w).ceil().max(left + 1.0), (y + h).ceil().max(top + 1.0));
        let inside = x >= 0.0
            && y >= 0.0
            && w >= 0.001
            && h >= 0.001
            && right <= f64::from(self.width)
            && bottom <= f64::from(self.height);
        if !inside {
            return Err(Error::new(
                Kind::Image,
                format!(
                    "the region {w}×{h} at ({x}, {y}) is not inside {}×{} pixels",
                    self.width, self.height
                ),
                "give a region inside the image, at least a thousandth of a pixel wide and high",
            ));
        }
        let part = self.view([left as u32, top as u32, (right - left) as u32, (bottom - top) as u32]);
        resample(&part, [x - left, y - top, w, h], [out_w, out_h], filter)
    }

    /// The result of resizing the whole image to `full` and then cropping `out` pixels at `corner`, without computing
    /// the resized image, which would be huge for a long, thin image.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] when the crop is not inside the resized image, or a side of it is 0 or more than 16,384.
    pub fn resize_then_crop(
        &self,
        full: [f64; 2],
        corner: [f64; 2],
        out: [u32; 2],
        filter: Filter,
    ) -> Result<Self> {
        let scale = [f64::from(self.width) / full[0], f64::from(self.height) / full[1]];
        let [x, y] = [corner[0] * scale[0], corner[1] * scale[1]];
        let [w, h] = [f64::from(out[0]) * scale[0], f64::from(out[1]) * scale[1]];
        resample(&self.whole(), [x, y, w, h], out, filter)
    }

    /// The image, mirrored left to right.
    pub fn flip_horizontal(&self) -> Self {
        let row = 3 * self.width as usize;
        let mut data = Vec::with_capacity(self.data.len());
        for line in self.data.chunks_exact(row) {
            data.extend(line.as_chunks::<3>().0.iter().rev().flatten());
        }
        Self { data, ..*self }
    }

    fn whole(&self) -> View<'_> {
        self.view([0, 0, self.width, self.height])
    }

    /// The pixels of a box (x, y, w, h) inside the image.
    fn view(&self, [x, y, w, h]: [u32; 4]) -> View<'_> {
        let whole = TypedImageRef::from_buffer(self.width, self.height, &self.data)
            .expect("`Pixels` holds three bytes for every pixel");
        TypedCroppedImage::new(whole, x, y, w, h).expect("the box is inside the image")
    }
}

/// A part of an image. With one type of pixels, the code for all others is not compiled.
type View<'a> = TypedCroppedImage<'a, TypedImageRef<'a, U8x3>>;

/// Resamples the box (x, y, w, h) of an image. Pixels around the box count as far as the filter reaches.
///
/// It resamples horizontally first, then vertically, as Pillow does. The order matters, because each pass rounds to
/// integers.
fn resample(
    source: &View,
    [x, y, w, h]: [f64; 4],
    [width, height]: [u32; 2],
    filter: Filter,
) -> Result<Pixels> {
    const MAX_SIDE: u32 = 16_384;
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return Err(Error::new(
            Kind::Image,
            format!("an image cannot be resized to {width}×{height} pixels"),
            format!("choose sides of 1 to {MAX_SIDE} pixels"),
        ));
    }
    let (kernel, radius) = match filter {
        Filter::Bilinear => (FilterType::Bilinear, 1.0),
        Filter::Bicubic => (FilterType::CatmullRom, 2.0),
        Filter::Lanczos => (FilterType::Lanczos3, 3.0),
    };
    // A sum may round to just beyond the border, which the resampler would refuse.
    let (w, h) = (w.min(f64::from(source.width()) - x), h.min(f64::from(source.height()) - y));
    // The rows within reach of the filter, and one more for rounding.
    let reach = radius * (h / f64::from(height)).max(1.0) + 1.0;
    let top = (y - reach).floor().max(0.0);
    let rows = (y + h + reach).ceil().min(f64::from(source.height())) - top;
    // For a very high and thin image the opposite order needs less memory; it is the default of the crate.
    if rows * f64::from(width) <= MAX_PIXELS as f64 {
        let rows = convolve(source, [x, top, w, rows], [width, rows as u32], kernel)?;
        convolve(&rows.whole(), [0.0, y - top, f64::from(width), h], [width, height], kernel)
    } else {
        convolve(source, [x, y, w, h], [width, height], kernel)
    }
}

/// Resamples a box. A direction in which box and result have the same pixels is copied.
fn convolve(
    source: &View,
    [x, y, w, h]: [f64; 4],
    [width, height]: [u32; 2],
    kernel: FilterType,
) -> Result<Pixels> {
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(kernel)).crop(x, y, w, h);
    let mut data = vec![0; 3 * width as usize * height as usize];
    let mut out = TypedImage::from_buffer(width, height, &mut data).map_err(resampling)?;
    Resizer::new().resize_typed(source, &mut out, &options).map_err(resampling)?;
    Pixels::new(width, height, data)
}

fn resampling(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::Image, format!("the image could not be resized: {error}"), "please report this image")
}

/// A synthetic image of `side` × `side` pixels that tests a back end: an export stores the encoder's embedding of it,
/// and the browser compares it with its own.
///
/// It is computed with integers, so that it is the same everywhere. It has a red gradient to the right, a green
/// gradient down, blue checks, a bright disc and a dark diagonal bar, so that every channel has fine and coarse
/// structure.
///
/// # Errors
///
/// [`Kind::Image`] when `side` is 0 or more than 4,096.
pub fn self_test_pattern(side: u32) -> Result<Pixels> {
    if !(1..=4096).contains(&side) {
        return Err(Error::new(
            Kind::Image,
            format!("a self-test pattern of {side}×{side} pixels is not supported"),
            "choose a side of 1 to 4096 pixels",
        ));
    }
    let mut data = Vec::with_capacity(3 * (side * side) as usize);
    for y in 0..side {
        for x in 0..side {
            // Coordinates on a grid of 256, so that the pattern looks the same at every size.
            let (u, v) = (256 * x / side, 256 * y / side);
            let check = if (u / 16 + v / 16) % 2 == 0 { 208 } else { 48 };
            let mut rgb = [u, v, check];
            let (du, dv) = (u.abs_diff(88), v.abs_diff(104));
            if du * du + dv * dv < 56 * 56 {
                rgb = [255 - v / 2, 224, 255 - u];
            }
            if (u + v).abs_diff(352) < 20 {
                rgb = [24, u / 4, 96];
            }
            data.extend(rgb.map(|value| value as u8));
        }
    }
    Pixels::new(side, side, data)
}
