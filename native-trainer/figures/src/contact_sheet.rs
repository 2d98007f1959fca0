//! Contact sheets: pictures in rows, each over its captions, as a PNG file.

use std::io::BufReader;
use std::path::Path;

use akin_base::files::InputFile;
use akin_core::image::{Filter, Pixels};
use anyhow::Result;
use image::{Rgb, RgbImage};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// The text in a sheet that says what wrote it, with its keyword.
const WRITER: (&str, &str) = ("Software", "akin: contact sheet");
/// The pictures of a row.
const COLUMNS: usize = 8;
/// The side of a picture in pixels.
const SIDE: u32 = 144;
/// The space between pictures, and around all of them.
const GAP: u32 = 16;
/// The height of a line of text.
const LINE: u32 = 20;

const PAPER: [u8; 3] = [255, 255, 255];
const INK: [u8; 3] = [34, 34, 34];
const FAINT_INK: [u8; 3] = [102, 102, 102];

/// A picture of a sheet.
pub struct Cell {
    /// The picture, a square.
    pub picture: Pixels,
    /// What stands below it: a line, and a second one in a fainter ink.
    pub captions: [String; 2],
}

/// The sheet under a title, as PNG.
///
/// # Errors
///
/// A picture that cannot be resized.
pub fn contact_sheet(title: &str, cells: &[Cell]) -> Result<Vec<u8>> {
    let columns = cells.len().clamp(1, COLUMNS) as u32;
    let rows = cells.len().div_ceil(COLUMNS) as u32;
    let cell_height = SIDE + 4 + 2 * LINE;
    let width = (GAP + columns * (SIDE + GAP)).max(2 * GAP + text_width(title));
    let top = GAP + LINE + GAP;
    let mut sheet = RgbImage::from_pixel(width, top + rows * (cell_height + GAP), Rgb(PAPER));
    write(&mut sheet, title, [GAP, GAP], width - 2 * GAP, INK);
    for (place, cell) in (0..).zip(cells) {
        let x = GAP + place % columns * (SIDE + GAP);
        let y = top + place / columns * (cell_height + GAP);
        draw(&mut sheet, &cell.picture, [x, y])?;
        for (line, (caption, ink)) in (0..).zip(cell.captions.iter().zip([INK, FAINT_INK])) {
            write(&mut sheet, caption, [x, y + SIDE + 4 + line * LINE], SIDE, ink);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, sheet.width(), sheet.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.add_text_chunk(WRITER.0.into(), WRITER.1.into())?;
    encoder.write_header()?.write_image_data(&sheet)?;
    Ok(bytes)
}

/// Whether a file is a contact sheet, which says so.
pub fn is_contact_sheet(path: &Path) -> bool {
    let Ok(file) = InputFile::open(path) else { return false };
    let Ok(reader) = png::Decoder::new(BufReader::new(file)).read_info() else { return false };
    let mut texts = reader.info().uncompressed_latin1_text.iter();
    texts.any(|chunk| (&*chunk.keyword, &*chunk.text) == WRITER)
}

/// Draws a square picture, resized to [`SIDE`].
fn draw(sheet: &mut RgbImage, picture: &Pixels, [x, y]: [u32; 2]) -> Result<()> {
    let [width, height] = [picture.width(), picture.height()].map(f64::from);
    let picture = picture.resize_region(0.0, 0.0, width, height, SIDE, SIDE, Filter::Bilinear)?;
    for (place, pixel) in (0..).zip(picture.data().as_chunks::<3>().0) {
        sheet.put_pixel(x + place % SIDE, y + place / SIDE, Rgb(*pixel));
    }
    Ok(())
}

/// The width of a character in pixels; all have the same.
fn character_width() -> u32 {
    get_raster_width(FontWeight::Regular, RasterHeight::Size16) as u32
}

fn text_width(text: &str) -> u32 {
    text.chars().count() as u32 * character_width()
}

/// Writes a line of text. One longer than `width` pixels is cut, and ends with dots. A letter that the font lacks becomes
/// a question mark.
fn write(sheet: &mut RgbImage, text: &str, [x, y]: [u32; 2], width: u32, ink: [u8; 3]) {
    let room = (width / character_width()) as usize;
    let mut letters: Vec<char> = text.chars().collect();
    if letters.len() > room {
        letters.truncate(room.saturating_sub(2));
        letters.extend("..".chars().take(room));
    }
    let raster = |letter| get_raster(letter, FontWeight::Regular, RasterHeight::Size16);
    for (place, letter) in (0..).zip(letters) {
        let Some(raster) = raster(letter).or_else(|| raster('?')) else { continue };
        for (row, intensities) in (0..).zip(raster.rows()) {
            for (column, &intensity) in (0..).zip(intensities) {
                let pixel = sheet.get_pixel_mut(x + place * character_width() + column, y + row);
                for (value, ink) in pixel.0.iter_mut().zip(ink) {
                    let mixed = u32::from(*value) * u32::from(255 - intensity)
                        + u32::from(ink) * u32::from(intensity);
                    *value = (mixed / 255) as u8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(captions: [&str; 2]) -> Cell {
        Cell { picture: Pixels::new(1, 1, vec![200, 40, 40]).unwrap(), captions: captions.map(str::to_owned) }
    }

    fn sheet(cells: &[Cell]) -> RgbImage {
        image::load_from_memory(&contact_sheet("Title", cells).unwrap()).unwrap().into_rgb8()
    }

    /// Whether something is drawn in a rectangle.
    fn has_ink(sheet: &RgbImage, [x, y]: [u32; 2], [width, height]: [u32; 2]) -> bool {
        (x..x + width).any(|x| (y..y + height).any(|y| sheet.get_pixel(x, y).0 != PAPER))
    }

    #[test]
    fn each_picture_stands_over_its_captions() {
        let cells: Vec<Cell> = (0..9).map(|_| cell(["Tawny owl", "Owls"])).collect();
        let sheet = sheet(&cells);
        let row = SIDE + 4 + 2 * LINE + GAP;
        let top = GAP + LINE + GAP;
        assert_eq!(sheet.dimensions(), (GAP + 8 * (SIDE + GAP), top + 2 * row));
        for (column, line) in [(0, 0), (7, 0), (0, 1)] {
            let [x, y] = [GAP + column * (SIDE + GAP), top + line * row];
            assert_eq!(sheet.get_pixel(x + SIDE / 2, y + SIDE / 2).0, [200, 40, 40]);
            assert!(has_ink(&sheet, [x, y + SIDE + 4], [SIDE, LINE]));
            assert!(has_ink(&sheet, [x, y + SIDE + 4 + LINE], [SIDE, LINE]));
        }
        assert!(
            !has_ink(&sheet, [GAP + SIDE + GAP, top + row], [SIDE, row]),
            "the second row has one picture"
        );
    }

    #[test]
    fn a_long_name_stays_below_its_picture_and_unknown_letters_do_no_harm() {
        let cells = [cell(["a name that is much longer than a picture is wide", "日本語"]), cell(["", ""])];
        let sheet = sheet(&cells);
        let y = GAP + LINE + GAP + SIDE + 4;
        assert!(has_ink(&sheet, [GAP, y + LINE], [SIDE, LINE]));
        assert!(!has_ink(&sheet, [GAP + SIDE, y], [GAP + SIDE, 2 * LINE]));
        assert!(!contact_sheet("", &[]).unwrap().is_empty());
    }
}
