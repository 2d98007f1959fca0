//! Where the names of points stand: beside their points, inside the frame, and neither on each other nor on a point.
//!
//! A name stands beside its point where there is room, and otherwise at the end of a thin line, as short as can be. Names for
//! which there is no room are left out.

use super::drawing::{Anchor, text_width};

/// The size of the text.
pub(crate) const SIZE: f64 = 10.0;
/// The space around a name.
const SPACE: f64 = 1.5;
/// How far from its point a name stands, the nearest first.
const DISTANCES: [f64; 7] = [0.0, 8.0, 16.0, 26.0, 38.0, 52.0, 68.0];

/// The place of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    /// Where its baseline begins, is in the middle, or ends.
    pub place: [f64; 2],
    /// Which of these.
    pub anchor: Anchor,
    /// Where a line from the point to the name ends, if they are apart.
    pub line_to: Option<[f64; 2]>,
}

impl Spot {
    /// The edges of a name of this width.
    fn edges(&self, width: f64) -> Edges {
        let [x, baseline] = self.place;
        let left = match self.anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        [left, baseline - 0.8 * SIZE, left + width, baseline + 0.25 * SIZE]
    }
}

/// Left, top, right and bottom.
type Edges = [f64; 4];

/// A spot for each name, where there is room. `frame` is its left, top, right and bottom edge; the points are circles of
/// this radius.
pub(crate) fn spots(names: &[String], points: &[[f64; 2]], radius: f64, frame: Edges) -> Vec<Option<Spot>> {
    let mut spots = vec![None; names.len()];
    let mut taken: Vec<Edges> = Vec::new();
    let mut lines: Vec<[[f64; 2]; 2]> = Vec::new();
    // All that can stand beside their points do, before others come between.
    for distance in DISTANCES {
        for (number, (name, &point)) in names.iter().zip(points).enumerate() {
            if spots[number].is_some() {
                continue;
            }
            let free = |(spot, edges): &(Spot, Edges)| {
                let line = spot.line_to.map(|to| [point, to]);
                let others = points.iter().filter(|&&other| other != point);
                let inside = edges[0] >= frame[0]
                    && edges[1] >= frame[1]
                    && edges[2] <= frame[2]
                    && edges[3] <= frame[3];
                inside
                    && !points.iter().any(|&point| overlap(edges, &square(point, radius)))
                    && !taken.iter().any(|other| overlap(edges, other))
                    && !lines.iter().any(|line| crosses(line, edges))
                    && !line.is_some_and(|line| {
                        taken.iter().any(|name| crosses(&line, name))
                            || others.clone().any(|&other| crosses(&line, &square(other, radius)))
                    })
            };
            if let Some((spot, edges)) = around(point, radius, distance, text_width(name, SIZE)).find(free) {
                lines.extend(spot.line_to.map(|to| [point, to]));
                taken.push(edges);
                spots[number] = Some(spot);
            }
        }
    }
    spots
}

/// The spots around a point, the best one first, with the edges of the name there.
fn around(point: [f64; 2], radius: f64, distance: f64, width: f64) -> impl Iterator<Item = (Spot, Edges)> {
    // Below, above, right, left, and between these.
    const DIRECTIONS: [[f64; 2]; 12] = [
        [0.0, 1.0],
        [0.0, -1.0],
        [1.0, 0.0],
        [-1.0, 0.0],
        [0.9, 0.4],
        [0.9, -0.4],
        [-0.9, 0.4],
        [-0.9, -0.4],
        [0.4, 0.9],
        [0.4, -0.9],
        [-0.4, 0.9],
        [-0.4, -0.9],
    ];
    DIRECTIONS.into_iter().map(move |[right, down]| {
        let reach = radius + 3.0 + distance;
        // The point of the name that is nearest to the point.
        let near = [point[0] + right * reach, point[1] + down * reach];
        let anchor = match right {
            0.0 => Anchor::Middle,
            right if right > 0.0 => Anchor::Start,
            _ => Anchor::End,
        };
        let baseline = near[1] + SIZE * (0.3 + 0.5 * down);
        let line_to = (distance > 0.0).then_some(near);
        let spot = Spot { place: [near[0], baseline], anchor, line_to };
        let [left, top, right, bottom] = spot.edges(width);
        (spot, [left - SPACE, top - SPACE, right + SPACE, bottom + SPACE])
    })
}

fn square([x, y]: [f64; 2], radius: f64) -> Edges {
    [x - radius, y - radius, x + radius, y + radius]
}

fn overlap(a: &Edges, b: &Edges) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Whether a line has a part inside a rectangle.
fn crosses([from, to]: &[[f64; 2]; 2], edges: &Edges) -> bool {
    // The shares of the line that are between both pairs of edges.
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for axis in 0..2 {
        let (low, high, length) =
            (edges[axis] - from[axis], edges[axis + 2] - from[axis], to[axis] - from[axis]);
        if length == 0.0 {
            if low >= 0.0 || high <= 0.0 {
                return false;
            }
            continue;
        }
        let (enter, leave) = (low / length, high / length);
        start = start.max(enter.min(leave));
        end = end.min(enter.max(leave));
    }
    start < end
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Edges = [0.0, 0.0, 700.0, 700.0];

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("Species {number}")).collect()
    }

    #[test]
    fn a_name_stands_below_a_point_that_is_alone() {
        let spots = spots(&names(1), &[[350.0, 350.0]], 5.0, FRAME);
        let spot = spots[0].unwrap();
        assert_eq!((spot.anchor, spot.place[0], spot.line_to), (Anchor::Middle, 350.0, None));
        assert!(spot.place[1] > 355.0);
    }

    #[test]
    fn names_are_inside_the_frame_even_at_its_corners() {
        let points = [[1.0, 1.0], [699.0, 1.0], [1.0, 699.0], [699.0, 699.0]];
        let spots = spots(&names(4), &points, 5.0, FRAME);
        for (spot, name) in spots.into_iter().zip(names(4)) {
            let spot = spot.expect("there is room");
            let [left, _, right, _] = spot.edges(text_width(&name, SIZE));
            assert!(left >= 0.0 && right <= 700.0 && spot.place[1] <= 700.0, "{spot:?}");
        }
    }

    #[test]
    fn names_of_a_crowd_are_apart_and_those_without_room_are_left_out() {
        let points: Vec<_> = (0..60)
            .map(|number| [300.0 + f64::from(number % 8) * 12.0, 300.0 + f64::from(number / 8) * 12.0])
            .collect();
        let names = names(60);
        let spots = spots(&names, &points, 5.0, FRAME);
        assert!(spots.iter().flatten().any(|spot| spot.line_to.is_some()));
        assert!(spots.iter().any(Option::is_none));
        let edges: Vec<Edges> = spots
            .iter()
            .zip(&names)
            .filter_map(|(spot, name)| spot.map(|spot| spot.edges(text_width(name, SIZE))))
            .collect();
        for (number, edge) in edges.iter().enumerate() {
            assert!(edges[..number].iter().all(|other| !overlap(edge, other)));
            assert!(points.iter().all(|&point| !overlap(edge, &square(point, 5.0))));
            for (spot, point) in spots.iter().zip(&points) {
                let line = spot.and_then(|spot| spot.line_to).map(|to| [*point, to]);
                assert!(!line.is_some_and(|line| crosses(&line, edge)), "{line:?} {edge:?}");
            }
        }
    }

    #[test]
    fn a_line_crosses_a_rectangle_if_a_part_of_it_is_inside() {
        let edges = [10.0, 10.0, 20.0, 20.0];
        for (line, expected) in [
            ([[0.0, 15.0], [30.0, 15.0]], true),
            ([[15.0, 12.0], [15.0, 18.0]], true),
            ([[0.0, 0.0], [30.0, 30.0]], true),
            ([[0.0, 15.0], [9.0, 15.0]], false),
            ([[0.0, 25.0], [30.0, 25.0]], false),
            ([[0.0, 15.0], [15.0, 35.0]], false),
        ] {
            assert_eq!(crosses(&line, &edges), expected, "{line:?}");
            let [from, to] = line;
            assert_eq!(crosses(&[to, from], &edges), expected, "{line:?}, backwards");
        }
    }

    #[test]
    fn no_points_have_no_names() {
        assert!(spots(&[], &[], 5.0, FRAME).is_empty());
    }
}
