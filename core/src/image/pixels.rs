//! RGB pixels in memory: resampling a region, mirroring, and the self-test pattern.

use fast_image_resize::images::{CroppedImage, Image, ImageRef};
use fast_image_resize::{FilterType, IntoImageView, PixelType, ResizeAlg, ResizeOptions, Resizer};
use serde::{Deserialize, Serialize};

use super::MAX_PIXELS;
use crate::{Error, Kind, Result};

/// How pixels are weighted when an image is resampled.
///
/// All are convolutions whose support grows with the reduction (they do not alias), as Pillow computes them and
/// torchvision with `antialias=True`. Results are within one level (of 255) of Pillow's, with Lanczos within two.
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

/// An image: RGB, 8 bits a channel, row after row, at least one pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl Pixels {
    /// An image of `width` × `height` pixels from `3 · width · height` bytes, interleaved RGB, row after row.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] when a side is 0 or the bytes are of another number.
    pub fn new(width: u32, height: u32, data: Vec<u8>) -> Result<Self> {
        let wanted = 3 * u64::from(width) * u64::from(height);
        if wanted == 0 || data.len() as u64 != wanted {
            return Err(Error::new(
                Kind::Image,
                format!("{} bytes are not an RGB image of {width}×{height} pixels", data.len()),
                "give three bytes a pixel, and at least one pixel",
            ));
        }
        Ok(Self { width, height, data })
    }

    /// Pixels a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Interleaved RGB, row after row: `3 · width · height` bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes of [`Pixels::data`], without a copy.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// The region of `w` × `h` pixels whose upper left corner is (x, y), resampled to `out_w` × `out_h`.
    ///
    /// Nothing outside the region counts (of a region that ends within a pixel, the whole pixel counts): with
    /// whole numbers this is torchvision's `resized_crop`, the crop and then the resize.
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
        let source = self.view();
        let part =
            CroppedImage::new(&source, left as u32, top as u32, (right - left) as u32, (bottom - top) as u32)
                .map_err(resampling)?;
        resample(&part, [x - left, y - top, w, h], [out_w, out_h], filter)
    }

    /// What a resize of the whole image to `full` and then a crop to `out` pixels at `corner` would give, without
    /// the resized image in between (which would be huge for a long, thin image).
    pub(super) fn resize_then_crop(
        &self,
        full: [f64; 2],
        corner: [f64; 2],
        out: [u32; 2],
        filter: Filter,
    ) -> Result<Self> {
        let scale = [f64::from(self.width) / full[0], f64::from(self.height) / full[1]];
        let [x, y] = [corner[0] * scale[0], corner[1] * scale[1]];
        let [w, h] = [f64::from(out[0]) * scale[0], f64::from(out[1]) * scale[1]];
        resample(&self.view(), [x, y, w, h], out, filter)
    }

    /// The image as a mirror shows it.
    pub fn flip_horizontal(&self) -> Self {
        let row = 3 * self.width as usize;
        let mut data = Vec::with_capacity(self.data.len());
        for line in self.data.chunks_exact(row) {
            data.extend(line.as_chunks::<3>().0.iter().rev().flatten());
        }
        Self { data, ..*self }
    }

    fn view(&self) -> ImageRef<'_> {
        ImageRef::new(self.width, self.height, &self.data, PixelType::U8x3)
            .expect("`Pixels` holds three bytes for every pixel")
    }
}

/// Resamples the box (x, y, w, h) of an image; pixels around the box count as far as the filter reaches.
///
/// Rows first, then columns, as Pillow: each pass rounds to whole levels, so the order shows where a filter
/// overshoots.
fn resample(
    source: &impl IntoImageView,
    [x, y, w, h]: [f64; 4],
    [width, height]: [u32; 2],
    filter: Filter,
) -> Result<Pixels> {
    const MAX_SIDE: u32 = 16_384;
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return Err(Error::new(
            Kind::Image,
            format!("an image cannot be resized to {width}×{height} pixels"),
            format!("ask for sides of 1 to {MAX_SIDE} pixels"),
        ));
    }
    let (kernel, radius) = match filter {
        Filter::Bilinear => (FilterType::Bilinear, 1.0),
        Filter::Bicubic => (FilterType::CatmullRom, 2.0),
        Filter::Lanczos => (FilterType::Lanczos3, 3.0),
    };
    // A sum may round to just beyond the border, which the resampler would refuse.
    let (w, h) = (w.min(f64::from(source.width()) - x), h.min(f64::from(source.height()) - y));
    // The rows that the filter reaches, and one more for rounding.
    let reach = radius * (h / f64::from(height)).max(1.0) + 1.0;
    let top = (y - reach).floor().max(0.0);
    let rows = (y + h + reach).ceil().min(f64::from(source.height())) - top;
    // Of a very high and thin image, the other order takes less memory; it is the one of the crate.
    let out = if rows * f64::from(width) <= MAX_PIXELS as f64 {
        let rows = convolve(source, [x, top, w, rows], [width, rows as u32], kernel)?;
        convolve(&rows, [0.0, y - top, f64::from(width), h], [width, height], kernel)?
    } else {
        convolve(source, [x, y, w, h], [width, height], kernel)?
    };
    Pixels::new(width, height, out.into_vec())
}

/// Resamples a box; a direction in which box and result have the same whole pixels is copied.
fn convolve(
    source: &impl IntoImageView,
    [x, y, w, h]: [f64; 4],
    [width, height]: [u32; 2],
    kernel: FilterType,
) -> Result<Image<'static>> {
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(kernel)).crop(x, y, w, h);
    let mut out = Image::new(width, height, PixelType::U8x3);
    Resizer::new().resize(source, &mut out, &options).map_err(resampling)?;
    Ok(out)
}

fn resampling(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::Image, format!("the image could not be resized: {error}"), "please report this image")
}

/// A synthetic image of `side` × `side` pixels that proves a back end: an export stores the encoder's embedding of
/// it, and the browser compares its own.
///
/// Whole numbers only, so it is the same everywhere: a red gradient to the right, a green one down, blue
/// checks, a bright disc and a dark diagonal bar, so that every channel and both fine and coarse structure count.
///
/// # Errors
///
/// [`Kind::Image`] when `side` is 0 or more than 4,096.
pub fn self_test_pattern(side: u32) -> Result<Pixels> {
    if !(1..=4096).contains(&side) {
        return Err(Error::new(
            Kind::Image,
            format!("there is no self-test pattern of {side}×{side} pixels"),
            "ask for 1 to 4096 pixels a side",
        ));
    }
    let mut data = Vec::with_capacity(3 * (side * side) as usize);
    for y in 0..side {
        for x in 0..side {
            // Coordinates on a grid of 256, so that the pattern looks alike at every size.
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
