//! Figures for reports, as SVG and PNG: small enough for a page, and plain enough for a paper.
//!
//! Every name that a user gave is text and never markup. No meaning depends on colour alone: a name, a place or a mark
//! says the same.

use std::f64::consts::PI;
use std::path::Path;

use akin_base::files::{create_folder, remove_file, write_atomic};
use akin_base::problem::Advise;
use anyhow::Result;

pub mod bars;
pub mod contact_sheet;
mod drawing;
pub mod heat_map;
pub mod lines;
mod point_names;
pub mod points;
pub mod rank_curves;
mod raster;
pub mod sheet;
pub mod terminal_picture;

pub use drawing::{Anchor, Drawing, Style, fitted, text_width};
pub use raster::Painter;

/// A figure with what stands below it.
pub struct Figure {
    /// The name of its files: letters, digits and dashes.
    pub name: String,
    /// The title.
    pub title: String,
    /// What it shows, and how to read it.
    pub caption: String,
    /// The picture.
    pub drawing: Drawing,
}

/// Writes the files of figures into a folder, which is made if there are any.
///
/// # Errors
///
/// A figure that cannot be encoded, a folder without write permission, a full disk.
pub fn write_figures<'a>(
    folder: &Path,
    extension: &str,
    figures: impl IntoIterator<Item = &'a Figure>,
    bytes_of: impl Fn(&Figure) -> Result<Vec<u8>>,
) -> Result<()> {
    for figure in figures {
        create_folder(folder)?;
        let bytes = bytes_of(figure)?;
        write_atomic(&folder.join(format!("{}.{extension}", figure.name)), |file| file.write_all(&bytes))?;
    }
    Ok(())
}

/// Removes the files of a folder that are in `earlier` and not in `kept`: names of figures of an earlier comparison and
/// of this one. No other file is touched.
///
/// # Errors
///
/// A folder without write permission.
pub fn remove_earlier_figures(folder: &Path, earlier: &[String], kept: &[String]) -> Result<()> {
    // A name is looked for in the folder, so that no name leads out of it.
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if earlier.contains(&name) && !kept.contains(&name) {
            remove_file(&entry.path()).advise(
                || format!("cannot remove {}, a figure of an earlier comparison", entry.path().display()),
                "check the permissions of its folder",
            )?;
        }
    }
    Ok(())
}

/// A colour, red, green and blue.
pub type Colour = [u8; 3];

/// Colours of Okabe and Ito, which colour-blind readers can tell apart, without the yellow, which is faint on white.
pub const COLOURS: [Colour; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [230, 159, 0],
    [68, 68, 68],
];

/// The colours of shared levels, as on the page: the same finest class, a relative of the coarsest class, a stranger.
const NEAR: Colour = [11, 86, 107];
const FAR: Colour = [189, 125, 18];
const STRANGER: Colour = [143, 137, 124];
/// The page itself.
const PAPER: Colour = [247, 244, 236];

/// The colour of a group: one of seven, and beyond them hues in between.
pub fn colour_of_group(group: usize) -> Colour {
    match COLOURS.get(group) {
        Some(colour) => *colour,
        // Steps of the golden angle repeat no hue soon.
        None => hue((group as f64 * 137.508) % 360.0),
    }
}

/// The colour of a shared level, 0 … L.
pub fn colour_of_level(level: usize, depth: usize) -> Colour {
    match level {
        0 => STRANGER,
        level if depth > 1 => between(FAR, NEAR, (level - 1) as f64 / (depth - 1) as f64),
        _ => NEAR,
    }
}

/// The colour of a share, 0 … 1, from paper to ink.
pub fn colour_of_share(share: f64) -> Colour {
    mix(PAPER, NEAR, share.clamp(0.0, 1.0))
}

/// A colour between two, in the space OKLab, in which equal steps look equal.
fn mix(from: Colour, to: Colour, share: f64) -> Colour {
    let (from, to) = (to_oklab(from), to_oklab(to));
    from_oklab([0, 1, 2].map(|part| from[part] + (to[part] - from[part]) * share))
}

/// A colour between two by lightness, strength and hue, so that what is between two strong colours is strong, too. Hues
/// go the shorter way.
fn between(from: Colour, to: Colour, share: f64) -> Colour {
    let polar = |[lightness, a, b]: [f64; 3]| [lightness, a.hypot(b), b.atan2(a)];
    let (from, mut to) = (polar(to_oklab(from)), polar(to_oklab(to)));
    to[2] = from[2] + (to[2] - from[2] + PI).rem_euclid(2.0 * PI) - PI;
    let [lightness, strength, hue] = [0, 1, 2].map(|part| from[part] + (to[part] - from[part]) * share);
    from_oklab([lightness, strength * hue.cos(), strength * hue.sin()])
}

fn to_oklab(colour: Colour) -> [f64; 3] {
    let [r, g, b] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    [
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ]
}

fn from_oklab([lightness, a, b]: [f64; 3]) -> Colour {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    linear.map(|part| {
        let part = part.clamp(0.0, 1.0);
        let part = if part <= 0.003_130_8 { 12.92 * part } else { 1.055 * part.powf(1.0 / 2.4) - 0.055 };
        (255.0 * part).round() as u8
    })
}

/// A colour of this hue, of medium lightness.
fn hue(degrees: f64) -> Colour {
    let (sin, cos) = degrees.to_radians().sin_cos();
    from_oklab([0.6, 0.12 * cos, 0.12 * sin])
}

/// A colour as SVG writes it.
fn hex([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A text cut to this number of characters, with an ellipsis in place of its middle.
pub fn without_middle(text: &str, most: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= most {
        return text.to_owned();
    }
    let end = most.saturating_sub(1) / 2;
    let start = most.saturating_sub(1) - end;
    let parts = [&characters[..start], &['…'], &characters[characters.len() - end..]];
    parts.concat().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_colours_begin_and_end_with_their_parts() {
        assert_eq!((mix(FAR, NEAR, 0.0), mix(FAR, NEAR, 1.0)), (FAR, NEAR));
        assert_eq!(
            (colour_of_level(0, 3), colour_of_level(1, 3), colour_of_level(3, 3)),
            (STRANGER, FAR, NEAR)
        );
        assert_eq!(colour_of_level(1, 1), NEAR);
    }

    #[test]
    fn groups_have_different_colours() {
        let colours: std::collections::BTreeSet<Colour> = (0..40).map(colour_of_group).collect();
        assert_eq!(colours.len(), 40);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(["owls", "photos-1"].map(|text| without_middle(text, 5)), ["owls", "ph…-1"]);
    }
}
