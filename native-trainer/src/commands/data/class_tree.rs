//! The class tree of a data set as a figure: a row per level, and a box per class that is as wide as its share of the
//! images. Below it, the sizes of the finest classes from the largest to the smallest.

use akin_base::quantities::{count, counted};
use akin_figures::{Anchor, Colour, Drawing, Style, fitted, text_width};

use crate::data::statistics::{ClassNode, LevelStatistics};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 32.0;
const TOP: f64 = 84.0;
const ROW: f64 = 88.0;
const GAP: f64 = 3.0;
const CURVE: f64 = 170.0;
/// The most room for the names of levels, left of the boxes.
const NAMES: f64 = 220.0;

const INK: Colour = [27, 27, 26];
const FAINT: Colour = [90, 89, 85];
const LINE: Colour = [141, 139, 131];
const CURVE_FILL: Colour = [143, 169, 196];

/// Draws the tree under a title.
pub fn draw(title: &str, levels: &[LevelStatistics], tree: &[ClassNode]) -> Drawing {
    let images: usize = tree.iter().map(|node| node.images).sum();
    let curve_top = TOP + levels.len() as f64 * (ROW + GAP) + 74.0;
    let mut drawing = Drawing::new(WIDTH, curve_top + CURVE + 56.0);
    write(&mut drawing, [MARGIN, 42.0], 22.0, INK, &fitted(title, 22.0, WIDTH - 2.0 * MARGIN));
    let summary =
        format!("{}. The width of a class is its share of them.", counted(images, "image", "images"));
    write(&mut drawing, [MARGIN, 66.0], 14.0, FAINT, &summary);
    let longest = levels.iter().map(|level| text_width(&level.level, 14.0)).fold(90.0, f64::max).min(NAMES);
    let left = MARGIN + longest + 16.0;
    for (place, level) in levels.iter().enumerate() {
        let middle = TOP + place as f64 * (ROW + GAP) + ROW / 2.0;
        write(&mut drawing, [MARGIN, middle - 2.0], 14.0, INK, &fitted(&level.level, 14.0, longest));
        write(
            &mut drawing,
            [MARGIN, middle + 16.0],
            12.0,
            FAINT,
            &counted(level.classes, "class", "classes"),
        );
    }
    let scale = (WIDTH - MARGIN - left) / images.max(1) as f64;
    let mut start = left;
    for (number, node) in tree.iter().enumerate() {
        boxes(&mut drawing, node, 0, start, scale, hue(number));
        start += node.images as f64 * scale;
    }
    curve(&mut drawing, tree, levels, [left, curve_top]);
    drawing
}

/// A class and those below it.
fn boxes(drawing: &mut Drawing, node: &ClassNode, level: usize, left: f64, scale: f64, hue: f64) {
    let width = node.images as f64 * scale;
    // What is narrower than that cannot be seen; its place keeps the colour of the class above.
    if width < 0.25 {
        return;
    }
    let top = TOP + level as f64 * (ROW + GAP);
    let lightness = 0.78 + 0.035 * (level as f64).min(4.0);
    let inner = (width - if width > 4.0 { 1.0 } else { 0.0 }).max(0.25);
    let about = format!("{}: {}", node.name, counted(node.images, "image", "images"));
    drawing.titled_rectangle([left, top, inner, ROW], from_hsl(hue, 0.52, lightness), &about);
    let room = width - 12.0;
    if room >= 36.0 {
        write(drawing, [left + 6.0, top + 26.0], 12.5, INK, &fitted(&node.name, 12.5, room));
        let number = count(node.images);
        if text_width(&number, 11.5) <= room {
            write(drawing, [left + 6.0, top + 44.0], 11.5, FAINT, &number);
        }
    } else if width >= 14.0 {
        let name = fitted(&node.name, 11.5, ROW - 12.0);
        let style = Style { colour: INK, ..Style::plain(11.5) };
        drawing.turned_text([left + width / 2.0 + 4.0, top + ROW - 6.0], -90.0, style, &name);
    }
    let mut left = left;
    for child in &node.children {
        boxes(drawing, child, level + 1, left, scale, hue);
        left += child.images as f64 * scale;
    }
}

/// The sizes of the finest classes as a filled curve.
fn curve(drawing: &mut Drawing, tree: &[ClassNode], levels: &[LevelStatistics], [left, top]: [f64; 2]) {
    let mut sizes = Vec::new();
    tree.iter().for_each(|node| finest_sizes(node, &mut sizes));
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let Some(finest) = levels.last() else { return };
    let most = finest.most.max(1) as f64;
    let (right, bottom) = (WIDTH - MARGIN, top + CURVE);
    let title = format!("Images of each {}, from the largest class to the smallest", finest.level);
    write(drawing, [MARGIN, top - 22.0], 14.0, INK, &fitted(&title, 14.0, WIDTH - 2.0 * MARGIN));
    let mut outline = vec![[left, bottom]];
    let step = (right - left) / sizes.len().max(1) as f64;
    for (place, &size) in sizes.iter().enumerate() {
        let (from, to) = (left + place as f64 * step, left + (place + 1) as f64 * step);
        let y = bottom - CURVE * size as f64 / most;
        outline.extend([[from, y], [to, y]]);
    }
    outline.push([right, bottom]);
    drawing.polygon(outline, CURVE_FILL);
    drawing.line([left, bottom], [right, bottom], LINE, 1.0);
    let place = |size: usize| bottom - CURVE * size as f64 / most;
    drawing.line([left, place(finest.most)], [right, place(finest.most)], LINE, 0.6);
    write_end(drawing, [left - 8.0, place(finest.most) + 4.0], &format!("most {}", count(finest.most)));
    // The two would stand on each other.
    if place(finest.median) - place(finest.most) >= 14.0 {
        drawing.line([left, place(finest.median)], [right, place(finest.median)], LINE, 0.6);
        write_end(
            drawing,
            [left - 8.0, place(finest.median) + 4.0],
            &format!("median {}", count(finest.median)),
        );
    }
    write(drawing, [left, bottom + 24.0], 12.0, FAINT, &counted(sizes.len(), "class", "classes"));
}

fn finest_sizes(node: &ClassNode, sizes: &mut Vec<usize>) {
    // A class without children whose finest classes are not known is none of them.
    match node.children.is_empty() && node.finest == 1 {
        true => sizes.push(node.images),
        false => node.children.iter().for_each(|child| finest_sizes(child, sizes)),
    }
}

/// Neighbours get hues that are far apart.
fn hue(number: usize) -> f64 {
    (212.0 + 137.508 * number as f64) % 360.0
}

/// The colour of a hue in degrees, a saturation and a lightness.
fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> Colour {
    let strength = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|place| {
        let turn = (place + hue / 30.0) % 12.0;
        let part = lightness - strength * (turn - 3.0).min(9.0 - turn).clamp(-1.0, 1.0);
        (255.0 * part).round() as u8
    })
}

fn write(drawing: &mut Drawing, place: [f64; 2], size: f64, colour: Colour, text: &str) {
    drawing.text(place, Style { colour, ..Style::plain(size) }, text);
}

/// Writes a faint text that ends at a place.
fn write_end(drawing: &mut Drawing, place: [f64; 2], text: &str) {
    drawing.text(place, Style { colour: FAINT, anchor: Anchor::End, ..Style::plain(12.0) }, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_as_wide_as_its_share_and_names_are_escaped() {
        let leaf = |name: &str, images| ClassNode { name: name.into(), images, finest: 1, children: vec![] };
        let tree = [
            ClassNode {
                name: "A & B".into(),
                images: 3,
                finest: 2,
                children: vec![leaf("<x>", 2), leaf("y", 1)],
            },
            ClassNode { name: "C".into(), images: 1, finest: 1, children: vec![leaf("z", 1)] },
        ];
        let level = |name: &str, classes| LevelStatistics {
            level: name.into(),
            classes,
            fewest: 1,
            median: 1,
            mean: 1.0,
            most: 2,
            unknown: 0,
            children: None,
        };
        let svg = draw("Fruit", &[level("kind", 2), level("variety", 3)], &tree).svg("Fruit").unwrap();
        assert!(svg.contains("A &amp; B: 3 images") && svg.contains("&lt;x&gt;: 2 images"), "{svg}");
        let width = |name: &str| -> f64 {
            let line = svg.lines().find(|line| line.contains(&format!("<title>{name}"))).unwrap();
            line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(((width("A &amp; B") + 1.0) / (width("C") + 1.0) - 3.0).abs() < 1e-2);
        assert_eq!(svg.matches("<rect").count(), 1 + 5);
    }

    #[test]
    fn long_names_stay_in_their_places() {
        let name = "A very long name of a class that nobody can read in a narrow box";
        let leaf = ClassNode { name: name.into(), images: 1, finest: 1, children: vec![] };
        let other = ClassNode { name: "B".into(), images: 9, finest: 1, children: vec![] };
        let level = LevelStatistics {
            level: "the finest level of a taxonomy with long names".into(),
            classes: 2,
            fewest: 1,
            median: 5,
            mean: 5.0,
            most: 9,
            unknown: 0,
            children: None,
        };
        let svg = draw(name, &[level], &[other, leaf]).svg("t").unwrap();
        let shown = |text: &str| svg.contains(&format!(">{text}</text>"));
        assert!(shown(name), "the title has room");
        assert!(!shown("the finest level of a taxonomy with long names") && svg.contains('…'));
    }

    #[test]
    fn hues_have_their_colours() {
        assert_eq!(
            [0.0, 120.0, 240.0].map(|hue| from_hsl(hue, 1.0, 0.5)),
            [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
        );
    }
}
