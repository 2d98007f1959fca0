//! Sheets of thumbnails.

use akin_core::bundle::{BundleWriter, Thumbnails};
use akin_core::image::{Filter, Pixels};
use anyhow::Result;
use image::codecs::jpeg::JpegEncoder;
use rayon::prelude::*;

use crate::pictures::loader::Pictures;

/// The number of columns, and of rows, of a full sheet of thumbnails.
const GRID: u32 = 20;
/// The JPEG quality of the sheets.
const QUALITY: u8 = 85;

/// Adds a sheet for each [`GRID`]² items.
pub fn add_thumbnails(
    bundle: &mut BundleWriter,
    pictures: &Pictures,
    items: &[usize],
    tile: u32,
) -> Result<Thumbnails> {
    let mut sheets = Vec::new();
    for (number, tiles) in items.chunks((GRID * GRID) as usize).enumerate() {
        let path = format!("thumbnails-{number}.jpg");
        bundle.add(&path, sheet(pictures, tiles, tile)?)?;
        sheets.push(path);
    }
    Ok(Thumbnails { tile, columns: GRID, rows: GRID, sheets })
}

/// A sheet of thumbnails as JPEG: the central square of each picture, row by row.
fn sheet(pictures: &Pictures, items: &[usize], side: u32) -> Result<Vec<u8>> {
    let rows = (items.len() as u32).div_ceil(GRID);
    let mut sheet = image::RgbImage::new(GRID * side, rows * side);
    let tiles: Vec<Option<Pixels>> =
        items.par_iter().map(|&item| tile(&*pictures.get(item)?, side).ok()).collect();
    pictures.check()?;
    for (place, tile) in (0..).zip(tiles) {
        let tile = tile.and_then(|tile| image::RgbImage::from_raw(side, side, tile.into_data()));
        if let Some(tile) = tile {
            let (x, y) = (place % GRID * side, place / GRID * side);
            image::imageops::replace(&mut sheet, &tile, i64::from(x), i64::from(y));
        }
    }
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, QUALITY).encode_image(&sheet)?;
    Ok(bytes)
}

/// The central square of a picture, `side` pixels wide.
pub fn tile(picture: &Pixels, side: u32) -> akin_core::Result<Pixels> {
    let whole = picture.width().min(picture.height());
    let (x, y) = ((picture.width() - whole) / 2, (picture.height() - whole) / 2);
    let whole = f64::from(whole);
    picture.resize_region(f64::from(x), f64::from(y), whole, whole, side, side, Filter::Bicubic)
}
