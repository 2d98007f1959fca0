//! Writes the creatures of the page's training ground: `creatures.json`, their measurements and labels, and
//! `creatures.jpg`, a sheet with one drawing of each species.
//!
//! ```text
//! cargo run -p akin-biomorphs --example training_ground -- www/src/training
//! ```

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use akin_biomorphs::{BiomorphConfig, Biomorphs, Split};
use image::codecs::jpeg::JpegEncoder;
use image::{RgbImage, imageops};
use serde::{Deserialize, Serialize};

/// The deviation of the noise on each measurement, whose range is 0 … 1.
const NOISE: f32 = 0.09;
/// Width and height of a drawing, in pixels, and how many of them are beside one another.
const SIDE: u32 = 56;
const COLUMNS: u32 = 12;
const PAPER: [u8; 3] = [0xF6, 0xF1, 0xE4];
const JPEG_QUALITY: u8 = 72;

/// `creatures.json`. Creatures are numbered species by species.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Creatures {
    /// The names of the levels, coarse to fine.
    levels: Vec<String>,
    /// The number of creatures of each species.
    creatures_per_species: usize,
    /// Width and height of a drawing in the sheet, in pixels.
    side: u32,
    /// The number of drawings in a row of the sheet.
    columns: u32,
    species: Vec<Species>,
    /// A row for each creature: what [`Biomorphs::measurements`] gives, in units of 1/255.
    measurements: Vec<Vec<u8>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Species {
    /// The class names, coarse to fine.
    names: Vec<String>,
    /// Whether training never sees this species.
    held_out: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("give the folder to write, such as www/src/training")?;
    let (creatures, sheet) = creatures()?;
    fs::write(folder.join("creatures.json"), serde_json::to_string(&creatures)? + "\n")?;
    let mut jpeg = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY).encode_image(&sheet)?;
    fs::write(folder.join("creatures.jpg"), jpeg.into_inner())?;
    Ok(())
}

/// The contents of the two files.
pub(crate) fn creatures() -> akin_core::Result<(Creatures, RgbImage)> {
    let config = BiomorphConfig {
        seed: 9,
        branching: vec![4, 3, 6],
        images_per_class: 5,
        ..BiomorphConfig::default()
    };
    let each = config.images_per_class;
    let drawn = Biomorphs::new(config)?;
    let count = drawn.pictures() / each;
    let species = (0..count).map(|species| {
        let row = drawn.row(species * each);
        Species { names: row.labels.to_vec(), held_out: row.split == Split::Test }
    });
    let measurements = (0..drawn.pictures()).map(|creature| {
        let values = drawn.measurements(creature, NOISE);
        values.into_iter().map(|value| (value * 255.0).round() as u8).collect()
    });
    let mut sheet = RgbImage::new(COLUMNS * SIDE, (count as u32).div_ceil(COLUMNS) * SIDE);
    for species in 0..count as u32 {
        let drawing = drawn.portrait(species as usize * each, SIDE, PAPER);
        let [x, y] = [species % COLUMNS, species / COLUMNS].map(|place| i64::from(place * SIDE));
        imageops::replace(&mut sheet, &drawing, x, y);
    }
    let creatures = Creatures {
        levels: drawn.levels().to_vec(),
        creatures_per_species: each,
        side: SIDE,
        columns: COLUMNS,
        species: species.collect(),
        measurements: measurements.collect(),
    };
    Ok((creatures, sheet))
}
