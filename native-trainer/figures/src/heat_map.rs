//! A square table of numbers between classes, as colours.

use super::colour_of_share;
use super::drawing::{Anchor, Drawing, FAINT_INK, INK, Style, fitted, text_width};

/// The side of the square.
const SIDE: f64 = 560.0;
/// The longest name.
const LONGEST: f64 = 220.0;
const TOP: f64 = 20.0;
/// More classes than this have no names of their own.
const MOST_NAMES: usize = 60;
/// The most cells that are drawn one by one; more are one picture.
const MOST_CELLS: usize = 64 * 64;

/// What a heat map shows.
pub struct HeatMap<'a> {
    /// The names of the C classes.
    pub names: &'a [String],
    /// [C, C], row by row.
    pub values: &'a [f64],
    /// The values of the first and the last colour.
    pub range: [f64; 2],
    /// What the colours mean.
    pub unit: &'a str,
    /// Groups of classes that stand together: their names and how many classes they have.
    pub groups: &'a [(String, usize)],
    /// What rows and columns are.
    pub axes: [&'a str; 2],
}

/// Draws a heat map.
pub fn heat_map(map: &HeatMap<'_>) -> Drawing {
    let count = map.names.len().max(1);
    let cell = SIDE / count as f64;
    let named = count <= MOST_NAMES;
    let letters = if named { (cell * 0.8).clamp(7.0, 12.0) } else { 11.0 };
    let names = map.groups.iter().map(|(name, _)| name);
    let names: Vec<&String> = if named { map.names.iter().collect() } else { names.collect() };
    let longest = names.iter().map(|name| text_width(name, letters)).fold(0.0, f64::max).min(LONGEST);
    // The names of the rows stand left of the square, those of the columns below it, on end.
    let left = 34.0 + longest;
    let bottom = 34.0 + longest;
    let width = left + SIDE + 36.0 + text_width(map.unit, 11.0).max(48.0);
    let mut drawing = Drawing::new(width, TOP + SIDE + bottom);
    let share = |value: f64| {
        let width = map.range[1] - map.range[0];
        if width > 0.0 { (value - map.range[0]) / width } else { 0.5 }
    };
    if map.values.len() <= MOST_CELLS {
        for (place, &value) in map.values.iter().enumerate() {
            let (row, column) = (place / count, place % count);
            let corner = [left + column as f64 * cell, TOP + row as f64 * cell];
            // A little larger, so that no light shines between cells.
            drawing.rectangle([corner[0], corner[1], cell + 0.3, cell + 0.3], colour_of_share(share(value)));
        }
    } else {
        let colours: Vec<u8> = map.values.iter().flat_map(|&value| colour_of_share(share(value))).collect();
        let side = count as u32;
        if let Some(picture) = image::RgbImage::from_raw(side, side, colours) {
            drawing.picture([left, TOP, SIDE, SIDE], picture, true, "");
        }
    }
    drawing.frame([left, TOP, SIDE, SIDE], FAINT_INK, 0.8);
    if named {
        for (number, name) in map.names.iter().enumerate() {
            let middle = (number as f64 + 0.5) * cell;
            let style = Style { anchor: Anchor::End, ..Style::plain(letters) };
            drawing.text([left - 6.0, TOP + middle + letters * 0.35], style, &fitted(name, letters, longest));
            let spot = [left + middle + letters * 0.35, TOP + SIDE + 8.0];
            drawing.turned_text(spot, -90.0, style, &fitted(name, letters, longest));
        }
    }
    let mut start = 0;
    for (name, size) in map.groups {
        let (from, to) = (start as f64 * cell, (start + size) as f64 * cell);
        if start > 0 {
            // White around the ink can be seen on dark cells.
            for (colour, thickness) in [([255; 3], 2.4), (INK, 0.8)] {
                drawing.line([left, TOP + from], [left + SIDE, TOP + from], colour, thickness);
                drawing.line([left + from, TOP], [left + from, TOP + SIDE], colour, thickness);
            }
        }
        // Names of groups that are narrower than a line of text would stand on each other.
        if !named && to - from >= 11.0 {
            let style = Style { anchor: Anchor::End, ..Style::plain(11.0) };
            let middle = (from + to) / 2.0;
            drawing.text([left - 6.0, TOP + middle + 4.0], style, &fitted(name, letters, longest));
            drawing.turned_text(
                [left + middle + 4.0, TOP + SIDE + 8.0],
                -90.0,
                style,
                &fitted(name, letters, longest),
            );
        }
        start += size;
    }
    let faint = Style { colour: FAINT_INK, ..Style::plain(11.0) };
    drawing.text([left + SIDE + 16.0, TOP + 8.0], faint, map.unit);
    const STEPS: usize = 40;
    for step in 0..STEPS {
        let height = 160.0 / STEPS as f64;
        let top = TOP + 18.0 + step as f64 * height;
        let share = 1.0 - step as f64 / (STEPS - 1) as f64;
        drawing.rectangle([left + SIDE + 16.0, top, 14.0, height + 0.3], colour_of_share(share));
    }
    for (share, value) in [(0.0, map.range[1]), (1.0, map.range[0])] {
        let style = Style { colour: INK, ..Style::plain(11.0) };
        drawing.text(
            [left + SIDE + 36.0, TOP + 18.0 + 160.0 * share + 4.0],
            style,
            &format!("{value:.2}").replace('-', "−"),
        );
    }
    let [rows, columns] = map.axes;
    let middle = Style { anchor: Anchor::Middle, ..faint };
    drawing.text([left + SIDE / 2.0, TOP + SIDE + bottom - 6.0], middle, columns);
    drawing.turned_text([14.0, TOP + SIDE / 2.0], -90.0, middle, rows);
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_are_cells_and_large_ones_a_picture() {
        let draw = |count: usize, range| {
            let names: Vec<String> = (0..count).map(|number| format!("<{number}>")).collect();
            let values = vec![0.5; count * count];
            let groups = [("g".to_owned(), count / 2), ("h".to_owned(), count - count / 2)];
            let map = HeatMap {
                names: &names,
                values: &values,
                range,
                unit: "cosine",
                groups: &groups,
                axes: ["a", "b"],
            };
            heat_map(&map).svg("t").unwrap()
        };
        let small = draw(3, [0.0, 1.0]);
        assert!(small.contains("&lt;2&gt;") && !small.contains("<image"), "{small}");
        let large = draw(100, [0.5, 0.5]);
        assert!(large.contains("data:image/png") && !large.contains("NaN"));
    }
}
