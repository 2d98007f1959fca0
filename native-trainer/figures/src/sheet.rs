//! Queries with their results, as pictures with coloured borders.

use super::colour_of_level;
use super::drawing::{Anchor, Drawing, FAINT_INK, INK, Legend, Style, fitted};
use image::RgbImage;

const TILE: f64 = 92.0;
const GAP: f64 = 10.0;
const BORDER: f64 = 4.0;
const LEFT: f64 = 8.0;
const ROW: f64 = TILE + 46.0;

/// A picture with its name.
pub struct Tile {
    /// The picture; none if it cannot be read.
    pub picture: Option<RgbImage>,
    /// The finest class.
    pub name: String,
}

/// A query with its results.
pub struct Row {
    /// The query.
    pub query: Tile,
    /// What stands below its name.
    pub note: String,
    /// The results, each with its shared level.
    pub results: Vec<(usize, Tile)>,
}

/// Draws the rows. `levels` are the words of the shared levels 0 … L.
pub fn sheet(rows: &[Row], levels: &[String]) -> Drawing {
    let most = rows.iter().map(|row| row.results.len()).max().unwrap_or(0);
    let width = (LEFT + (most + 1) as f64 * (TILE + GAP) + 26.0).max(560.0);
    let depth = levels.len() - 1;
    let entries = (0..levels.len()).rev().map(|level| (colour_of_level(level, depth), levels[level].clone()));
    let legend = Legend::new(width - 2.0 * LEFT, entries);
    let top = 18.0 + legend.height;
    let mut drawing = Drawing::new(width, top + ROW * rows.len() as f64 + 8.0);
    legend.draw(&mut drawing, [LEFT, 10.0], false);
    for (number, row) in rows.iter().enumerate() {
        let y = top + number as f64 * ROW;
        draw(&mut drawing, [LEFT, y], &row.query);
        drawing.frame([LEFT, y, TILE, TILE], INK, 1.0);
        let note = Style { colour: FAINT_INK, ..Style::plain(10.5) };
        drawing.text([LEFT, y + TILE + 28.0], note, &row.note);
        for (rank, (level, tile)) in row.results.iter().enumerate() {
            let x = LEFT + 26.0 + (rank + 1) as f64 * (TILE + GAP);
            draw(&mut drawing, [x, y], tile);
            let half = BORDER / 2.0;
            drawing.frame(
                [x + half, y + half, TILE - BORDER, TILE - BORDER],
                colour_of_level(*level, depth),
                BORDER,
            );
            // The level again, without a colour.
            let style = Style { anchor: Anchor::End, ..note };
            drawing.text([x + TILE, y + TILE + 28.0], style, &format!("{level}/{depth}"));
        }
    }
    drawing
}

fn draw(drawing: &mut Drawing, [x, y]: [f64; 2], tile: &Tile) {
    match &tile.picture {
        Some(picture) => drawing.picture([x, y, TILE, TILE], picture.clone(), false, &tile.name),
        None => drawing.rectangle([x, y, TILE, TILE], [235; 3]),
    }
    drawing.text([x, y + TILE + 14.0], Style::plain(9.5), &fitted(&tile.name, 9.5, TILE + GAP / 2.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_has_a_border_and_a_level_for_each_result() {
        let tile = |picture: Option<RgbImage>| Tile { picture, name: "A & B".into() };
        let picture = RgbImage::from_pixel(4, 4, image::Rgb([9, 9, 9]));
        let row = Row {
            query: tile(Some(picture.clone())),
            note: "H-AP 50".into(),
            results: vec![(1, tile(Some(picture))), (0, tile(None))],
        };
        let svg = sheet(&[row], &["stranger".into(), "same kind".into()]).svg("t").unwrap();
        assert_eq!(svg.matches("data:image/jpeg").count(), 2);
        assert!(svg.contains("1/1") && svg.contains("0/1") && svg.contains("A &amp; B"), "{svg}");
    }
}
