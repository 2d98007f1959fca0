//! Points on a plane or a disk.

use super::drawing::{Drawing, FAINT_INK, HAIRLINE, Legend, Style, fitted};
use super::{colour_of_group, point_names};

const SIDE: f64 = 720.0;
const MARGIN: f64 = 28.0;
/// The space for names on each side of the points.
const NAME_MARGIN: f64 = 60.0;
/// The most names of points; more would hide the points.
const MOST_NAMES: usize = 120;

/// A point.
pub struct Point {
    /// Its place.
    pub place: [f32; 2],
    /// The number of its group.
    pub group: usize,
    /// What it is.
    pub name: String,
}

/// What a map shows.
pub struct PointMap<'a> {
    /// The points.
    pub points: &'a [Point],
    /// The names of the groups.
    pub groups: &'a [String],
    /// Whether each point has its name beside it, if there are not too many and there is room.
    pub names: bool,
    /// On the disk of radius 1: the proxies with their numbers, and lines from the proxies to points.
    pub disk: Option<Disk>,
}

/// What is on a disk besides points.
#[derive(Default)]
pub struct Disk {
    /// The places of proxies.
    pub proxies: Vec<[f32; 2]>,
    /// Lines between places.
    pub lines: Vec<[[f32; 2]; 2]>,
}

/// Draws a map, with the names of groups below it.
pub fn map(map: &PointMap<'_>) -> Drawing {
    let inner = SIDE - 2.0 * MARGIN;
    let groups = map.groups.iter().enumerate();
    let legend = Legend::new(inner, groups.map(|(number, name)| (colour_of_group(number), name.clone())));
    let [low_x, low_y] = corner(map.points, f32::min, f32::INFINITY);
    let [high_x, high_y] = corner(map.points, f32::max, f32::NEG_INFINITY);
    let scale = f64::from((high_x - low_x).max(high_y - low_y)).max(1e-9);
    // A flat map is a low picture.
    let bottom = match map.disk {
        Some(_) => SIDE,
        None => 2.0 * MARGIN + inner * (f64::from(high_y - low_y) / scale).clamp(0.4, 1.0),
    };
    let mut drawing = Drawing::new(SIDE, bottom + legend.height + 12.0);
    let place: Box<dyn Fn([f32; 2]) -> [f64; 2]> = match &map.disk {
        Some(_) => {
            let middle = SIDE / 2.0;
            drawing.circle([middle, middle], inner / 2.0, FAINT_INK);
            Box::new(move |[x, y]| [middle + f64::from(x) * inner / 2.0, middle - f64::from(y) * inner / 2.0])
        }
        None => {
            // Names stand beside the outermost points, too.
            let spread = if map.names { inner - 2.0 * NAME_MARGIN } else { inner };
            let offset =
                |space: f64, low: f32, high: f32| (space - f64::from(high - low) / scale * spread) / 2.0;
            let left = offset(inner, low_x, high_x);
            let top = offset(bottom - 2.0 * MARGIN, low_y, high_y);
            drawing.frame([MARGIN / 2.0, MARGIN / 2.0, SIDE - MARGIN, bottom - MARGIN], HAIRLINE, 1.0);
            Box::new(move |[x, y]| {
                let share = |x: f32, low: f32| f64::from(x - low) / scale * spread;
                [MARGIN + left + share(x, low_x), bottom - MARGIN - top - share(y, low_y)]
            })
        }
    };
    for [from, to] in map.disk.iter().flat_map(|disk| &disk.lines) {
        drawing.line(place(*from), place(*to), [186, 183, 176], 0.7);
    }
    let radius = match map.points.len() {
        0..=150 => 5.0,
        151..=1500 => 3.2,
        _ => 2.0,
    };
    let named = if map.names && map.points.len() <= MOST_NAMES { map.points } else { &[] };
    let names: Vec<String> =
        named.iter().map(|point| fitted(&point.name, point_names::SIZE, 160.0)).collect();
    let places: Vec<[f64; 2]> = named.iter().map(|point| place(point.place)).collect();
    let edge = MARGIN / 2.0 + 2.0;
    let spots = point_names::spots(&names, &places, radius, [edge, edge, SIDE - edge, bottom - edge]);
    for (from, spot) in places.iter().zip(&spots) {
        if let Some(to) = spot.and_then(|spot| spot.line_to) {
            drawing.line(*from, to, FAINT_INK, 0.6);
        }
    }
    for point in map.points {
        drawing.dot(place(point.place), radius, colour_of_group(point.group), &point.name);
    }
    for proxy in map.disk.iter().flat_map(|disk| &disk.proxies) {
        drawing.diamond(place(*proxy), 6.0);
    }
    for (name, spot) in names.iter().zip(spots) {
        if let Some(spot) = spot {
            let style = Style { anchor: spot.anchor, rim: true, ..Style::plain(point_names::SIZE) };
            drawing.text(spot.place, style, name);
        }
    }
    legend.draw(&mut drawing, [MARGIN, bottom + 2.0], true);
    drawing
}

/// The smallest, or the largest, of each coordinate.
fn corner(points: &[Point], better: fn(f32, f32) -> f32, first: f32) -> [f32; 2] {
    let corner = points.iter().fold([first; 2], |corner, point| {
        [better(corner[0], point.place[0]), better(corner[1], point.place[1])]
    });
    corner.map(|number| if number.is_finite() { number } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_inside_and_names_are_text() {
        let point = |x: f32, y: f32| Point { place: [x, y], group: 1, name: "<i>".into() };
        let points = [point(-5.0, 0.0), point(5.0, 1.0), point(0.0, 0.5)];
        let groups = ["a".to_owned(), "b&b".to_owned()];
        for disk in [None, Some(Disk { proxies: vec![[0.0, 0.5]], lines: vec![[[0.0, 0.0], [0.1, 0.1]]] })] {
            let svg =
                map(&PointMap { points: &points, groups: &groups, names: true, disk }).svg("t").unwrap();
            assert_eq!(svg.matches("fill-opacity").count(), 5);
            assert!(svg.contains("b&amp;b") && !svg.contains("<i>"), "{svg}");
        }
        let none = map(&PointMap { points: &[], groups: &[], names: true, disk: None }).svg("t").unwrap();
        assert!(!none.contains("NaN") && !none.contains("inf"), "{none}");
    }
}
