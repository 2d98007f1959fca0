//! The class tree of a data set as an SVG picture: a row per level, and a box per class that is as wide as its share of
//! the images. Below it, the sizes of the finest classes from the largest to the smallest.

use std::fmt::Write as _;

use crate::counts::count;
use crate::data::statistics::{ClassNode, LevelStatistics};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 32.0;
const LEFT: f64 = 148.0;
const TOP: f64 = 84.0;
const ROW: f64 = 88.0;
const GAP: f64 = 3.0;
const CURVE: f64 = 170.0;
/// The width of a character of a label, about.
const CHARACTER: f64 = 6.7;

/// Draws the tree under a title.
pub fn draw(title: &str, levels: &[LevelStatistics], tree: &[ClassNode]) -> String {
    let images: usize = tree.iter().map(|node| node.images).sum();
    let curve_top = TOP + levels.len() as f64 * (ROW + GAP) + 74.0;
    let height = curve_top + CURVE + 56.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\" \
         font-family=\"system-ui, sans-serif\">\n<title>{0}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n",
        escape(title)
    );
    text(&mut svg, MARGIN, 42.0, "22\" font-weight=\"600", "#1b1b1a", title);
    let summary = format!("{} images. The width of a class is its share of them.", count(images));
    text(&mut svg, MARGIN, 66.0, "14", "#5a5955", &summary);
    for (place, level) in levels.iter().enumerate() {
        let middle = TOP + place as f64 * (ROW + GAP) + ROW / 2.0;
        text(&mut svg, MARGIN, middle - 2.0, "14\" font-weight=\"600", "#1b1b1a", &level.level);
        text(&mut svg, MARGIN, middle + 16.0, "12", "#5a5955", &format!("{} classes", count(level.classes)));
    }
    let scale = (WIDTH - MARGIN - LEFT) / images.max(1) as f64;
    let mut left = LEFT;
    for (number, node) in tree.iter().enumerate() {
        boxes(&mut svg, node, 0, left, scale, hue(number));
        left += node.images as f64 * scale;
    }
    curve(&mut svg, tree, levels, curve_top);
    svg + "</svg>\n"
}

/// A class and those below it.
fn boxes(svg: &mut String, node: &ClassNode, level: usize, left: f64, scale: f64, hue: f64) {
    let width = node.images as f64 * scale;
    // What is narrower than that cannot be seen; its place keeps the colour of the class above.
    if width < 0.25 {
        return;
    }
    let top = TOP + level as f64 * (ROW + GAP);
    let lightness = 78.0 + 3.5 * (level as f64).min(4.0);
    let inner = (width - if width > 4.0 { 1.0 } else { 0.0 }).max(0.25);
    let about = format!("{}: {} images", node.name, count(node.images));
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.2}\" y=\"{top}\" width=\"{inner:.2}\" height=\"{ROW}\" rx=\"{:.1}\" \
         fill=\"hsl({hue:.0} 52% {lightness:.0}%)\"><title>{}</title></rect>",
        (width / 6.0).min(3.0),
        escape(&about)
    );
    let room = ((width - 12.0) / CHARACTER).floor();
    if room >= 4.0 {
        text(svg, left + 6.0, top + 26.0, "12.5", "#1b1b1a", &short(&node.name, room as usize));
        let number = count(node.images);
        if number.len() as f64 <= room {
            text(svg, left + 6.0, top + 44.0, "11.5", "#46453f", &number);
        }
    }
    if room < 4.0 && width >= 14.0 {
        let (x, y) = (left + width / 2.0 + 4.0, top + ROW - 6.0);
        let name = escape(&short(&node.name, ((ROW - 12.0) / CHARACTER) as usize));
        let _ = writeln!(
            svg,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" font-size=\"11.5\" fill=\"#1b1b1a\">{name}</text>"
        );
    }
    let mut left = left;
    for child in &node.children {
        boxes(svg, child, level + 1, left, scale, hue);
        left += child.images as f64 * scale;
    }
}

/// The sizes of the finest classes as a filled curve.
fn curve(svg: &mut String, tree: &[ClassNode], levels: &[LevelStatistics], top: f64) {
    let mut sizes = Vec::new();
    tree.iter().for_each(|node| finest_sizes(node, &mut sizes));
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let Some(finest) = levels.last() else { return };
    let most = finest.most.max(1) as f64;
    let (right, bottom) = (WIDTH - MARGIN, top + CURVE);
    let title = format!("Images of each {}, from the largest class to the smallest", finest.level);
    text(svg, MARGIN, top - 22.0, "14\" font-weight=\"600", "#1b1b1a", &title);
    let mut path = format!("M{LEFT} {bottom}");
    let step = (right - LEFT) / sizes.len().max(1) as f64;
    for (place, &size) in sizes.iter().enumerate() {
        let (from, to) = (LEFT + place as f64 * step, LEFT + (place + 1) as f64 * step);
        let y = bottom - CURVE * size as f64 / most;
        let _ = write!(path, "L{from:.2} {y:.2}L{to:.2} {y:.2}");
    }
    let _ = writeln!(svg, "<path d=\"{path}L{right} {bottom}Z\" fill=\"#8fa9c4\"/>");
    let _ = writeln!(svg, "<path d=\"M{LEFT} {bottom}H{right}\" stroke=\"#8d8b83\" fill=\"none\"/>");
    let mut marks = vec![finest.most, finest.median];
    marks.dedup();
    for size in marks {
        let y = bottom - CURVE * size as f64 / most;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.2}H{right}\" stroke=\"#8d8b83\" stroke-dasharray=\"2 4\" fill=\"none\"/>"
        );
        let name = if size == finest.most { "most" } else { "median" };
        text(svg, MARGIN, y + 4.0, "12", "#5a5955", &format!("{name} {}", count(size)));
    }
    text(svg, LEFT, bottom + 24.0, "12", "#5a5955", &format!("{} classes", count(sizes.len())));
}

fn finest_sizes(node: &ClassNode, sizes: &mut Vec<usize>) {
    match node.children.is_empty() {
        true => sizes.push(node.images),
        false => node.children.iter().for_each(|child| finest_sizes(child, sizes)),
    }
}

/// Neighbours get hues that are far apart.
fn hue(number: usize) -> f64 {
    (212.0 + 137.508 * number as f64) % 360.0
}

/// `size` may go on with other attributes.
fn text(svg: &mut String, x: f64, y: f64, size: &str, colour: &str, content: &str) {
    let content = escape(content);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\">{content}</text>"
    );
}

/// A name in this number of characters.
fn short(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn escape(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_as_wide_as_its_share_and_names_are_escaped() {
        let leaf = |name: &str, images| ClassNode { name: name.into(), images, children: vec![] };
        let tree = [
            ClassNode { name: "A & B".into(), images: 3, children: vec![leaf("<x>", 2), leaf("y", 1)] },
            ClassNode { name: "C".into(), images: 1, children: vec![leaf("z", 1)] },
        ];
        let level = |name: &str, classes| LevelStatistics {
            level: name.into(),
            classes,
            fewest: 1,
            median: 1,
            mean: 1.0,
            most: 2,
            children: None,
        };
        let svg = draw("Fruit", &[level("kind", 2), level("variety", 3)], &tree);
        assert!(svg.contains("A &amp; B: 3 images") && svg.contains("&lt;x&gt;: 2 images"), "{svg}");
        let width = |name: &str| -> f64 {
            let line = svg.lines().find(|line| line.contains(&format!("<title>{name}"))).unwrap();
            line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!(((width("A &amp; B") + 1.0) / (width("C") + 1.0) - 3.0).abs() < 1e-2);
        assert_eq!(svg.matches("<rect").count(), 1 + 5);
    }
}
