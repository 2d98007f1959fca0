//! Bars of shares that add up to the whole.

use super::colour_of_level;
use super::drawing::{Anchor, Drawing, Legend, Style, fitted, text_width};

const WIDTH: f64 = 720.0;
/// The space for the names, which is as wide as they need between these limits.
const NAMES: [f64; 2] = [150.0, 330.0];
const BAR: f64 = 26.0;
const ROW: f64 = 40.0;
const SIZE: f64 = 12.0;

/// Draws a bar for each row of shares of the shared levels, finest first, with the names of the levels below.
/// `levels` are the words of the shared levels 0 … L.
pub fn bars(rows: &[(String, Vec<f64>)], levels: &[String]) -> Drawing {
    let top = 12.0;
    let longest = rows.iter().map(|(name, _)| text_width(name, SIZE)).fold(0.0, f64::max);
    let left_end = (longest + 16.0).clamp(NAMES[0], NAMES[1]);
    let depth = levels.len() - 1;
    let whole = WIDTH - left_end - 24.0;
    let entries = (0..levels.len()).rev().map(|level| (colour_of_level(level, depth), levels[level].clone()));
    let legend = Legend::new(whole, entries);
    let mut drawing = Drawing::new(WIDTH, top + ROW * rows.len() as f64 + legend.height + 20.0);
    for (number, (name, shares)) in rows.iter().enumerate() {
        let y = top + number as f64 * ROW;
        let style = Style { anchor: Anchor::End, ..Style::plain(SIZE) };
        drawing.text([left_end - 10.0, y + BAR * 0.68], style, &fitted(name, SIZE, left_end - 16.0));
        let mut left = left_end;
        for (level, &share) in shares.iter().enumerate().rev() {
            let width = share * whole;
            drawing.rectangle([left, y, width, BAR], colour_of_level(level, depth));
            if width > 42.0 {
                let style = Style { anchor: Anchor::Middle, colour: [255; 3], ..Style::plain(11.0) };
                drawing.text([left + width / 2.0, y + BAR * 0.66], style, &format!("{:.1} %", 100.0 * share));
            }
            left += width;
        }
    }
    legend.draw(&mut drawing, [left_end, top + ROW * rows.len() as f64 + 4.0], false);
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_names_its_large_shares() {
        let levels = ["stranger".to_owned(), "same <kind>".to_owned()];
        let svg = bars(&[("run".into(), vec![0.25, 0.75])], &levels).svg("t").unwrap();
        assert!(svg.contains("75.0 %") && svg.contains("25.0 %") && svg.contains("&lt;kind&gt;"), "{svg}");
    }

    #[test]
    fn names_that_differ_in_their_middle_have_room() {
        let levels = ["stranger".to_owned(), "same kind".to_owned()];
        let names = ["0.1", "0.5"].map(|lambda| format!("HAPPIER, lambda {lambda}, lr_head 0.001, seed 0"));
        let rows = names.clone().map(|name| (name, vec![0.25, 0.75]));
        let svg = bars(&rows, &levels).svg("t").unwrap();
        assert!(names.iter().all(|name| svg.contains(name)), "{svg}");
    }
}
