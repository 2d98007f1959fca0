//! UMAP: a graph of neighbours, laid out in the plane or in the hyperbolic plane.
//!
//! The graph is that of the crate `umap-rs`: the edge from i to j has the weight exp(−(d_ij − ρ_i)/σ_i), and both
//! directions are joined by a + b − ab (McInnes et al., 2018, section 3.1). That crate's own layout draws from an
//! unseeded generator and lets threads race, so the layout is done here: the same stochastic gradient descent, on one
//! thread and from a seeded stream.
//!
//! Points at distance d are joined with probability 1/(1 + a d^(2b)). An edge is visited as often as its weight
//! says, and then attracts its ends along the geodesic by 2ab d^(2b−1)/(1 + a d^(2b)); every visit also draws five
//! items, which repel the first end by 2b d/((0.001 + d²)(1 + a d^(2b))). Steps shrink linearly to 0.

use akin_base::progress::Progress;
use akin_core::random::stream;
use ndarray::Array2;
use rand::RngExt;
use umap_rs::{GraphParams, Umap, UmapConfig};

use super::neighbours::Neighbours;
use super::pca::Plane;

/// The size of a neighbourhood, which counts the item itself.
pub(super) const NEIGHBOURS: usize = 15;
/// The number of items that each visit of an edge draws.
const REPELLED: usize = 5;
/// The longest step of one visit, before the learning rate.
const LONGEST: f64 = 4.0;
/// The largest Euclidean distance to the centre of the disk. Its hyperbolic distance is 7.6.
const RIM: f64 = 0.999;

/// An edge of the graph, from the end that moves most.
struct Edge {
    from: usize,
    to: usize,
    weight: f32,
}

/// The graph, with the constants a and b of the curve that belongs to a least distance of 0.1.
struct Graph {
    edges: Vec<Edge>,
    a: f64,
    b: f64,
}

/// The space of a layout.
trait Space {
    /// The distance from x to y, and the unit vector of the geodesic to y at x. (0, 0) for equal points.
    fn towards(x: [f64; 2], y: [f64; 2]) -> (f64, [f64; 2]);

    /// The point that the geodesic from x reaches after `step`, a vector at x.
    fn walk(x: [f64; 2], step: [f64; 2]) -> [f64; 2];
}

/// The Euclidean plane.
struct Flat;

/// The hyperbolic plane of curvature −1, as the Poincaré disk of radius 1.
struct Disk;

impl Space for Flat {
    fn towards(x: [f64; 2], y: [f64; 2]) -> (f64, [f64; 2]) {
        unit([y[0] - x[0], y[1] - x[1]])
    }

    fn walk(x: [f64; 2], step: [f64; 2]) -> [f64; 2] {
        [x[0] + step[0], x[1] + step[1]]
    }
}

impl Space for Disk {
    fn towards(x: [f64; 2], y: [f64; 2]) -> (f64, [f64; 2]) {
        let (length, direction) = unit(mobius([-x[0], -x[1]], y));
        (2.0 * length.min(1.0 - 1e-15).atanh(), direction)
    }

    fn walk(x: [f64; 2], step: [f64; 2]) -> [f64; 2] {
        let (length, direction) = unit(step);
        let half = (length / 2.0).tanh();
        let [x, y] = mobius(x, direction.map(|part| part * half));
        let shorten = (RIM / x.hypot(y)).min(1.0);
        [x * shorten, y * shorten]
    }
}

/// The length of a vector, and the vector scaled to length 1; a zero vector stays zero.
fn unit([x, y]: [f64; 2]) -> (f64, [f64; 2]) {
    let length = x.hypot(y);
    if length == 0.0 { (0.0, [0.0; 2]) } else { (length, [x / length, y / length]) }
}

/// The Möbius addition x ⊕ y in the disk of radius 1: (x + y)/(1 + x̄y) as complex numbers.
fn mobius([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    let (re, im) = (1.0 + a * c + b * d, a * d - b * c);
    let (x, y) = (a + c, b + d);
    let square = re * re + im * im;
    [(x * re + y * im) / square, (y * re - x * im) / square]
}

/// The points of UMAP, [N, 2], from the points of PCA. Needs at least 15 neighbours per item or all others.
pub(super) fn project_to_plane(
    neighbours: &Neighbours,
    start: &[[f32; 2]],
    seed: u64,
    progress: Progress,
) -> Vec<[f32; 2]> {
    let points = lay_out::<Flat>(neighbours, spread(start, 10.0), seed, progress, "UMAP");
    points.into_iter().map(|point| point.map(|x| x as f32)).collect()
}

/// The points of UMAP's graph in the Poincaré disk of radius 1, [N, 2], moved so that their mean direction from the
/// centre vanishes.
pub(super) fn project_to_disk(
    neighbours: &Neighbours,
    start: &Plane,
    seed: u64,
    progress: Progress,
) -> Vec<[f32; 2]> {
    let mut points = lay_out::<Disk>(neighbours, spread(&start.points, 0.5), seed, progress, "Poincaré");
    // A fixed-point iteration for the centre of mass in the disk.
    for _ in 0..100 {
        let count = points.len() as f64;
        let sum = points.iter().fold([0.0; 2], |sum, point| [sum[0] + point[0], sum[1] + point[1]]);
        let back = sum.map(|x| -0.5 * x / count);
        points = points.into_iter().map(|point| mobius(back, point)).collect();
    }
    // In f32 a point must stay inside the disk.
    let inside = |point: [f64; 2]| {
        let shorten = (0.99999 / point[0].hypot(point[1])).min(1.0);
        point.map(|x| (x * shorten) as f32)
    };
    points.into_iter().map(inside).collect()
}

/// The point of the Poincaré disk with the least sum of squared hyperbolic distances to `points`, of which there is at
/// least one.
pub(super) fn mean_in_disk(points: &[[f32; 2]]) -> [f32; 2] {
    let points: Vec<[f64; 2]> = points.iter().map(|point| point.map(f64::from)).collect();
    let mut mean = [0.0; 2];
    for _ in 0..200 {
        let (mut pull, mut steepness) = ([0.0; 2], 0.0);
        for &point in &points {
            let (distance, direction) = Disk::towards(mean, point);
            pull = [pull[0] + distance * direction[0], pull[1] + distance * direction[1]];
            // The slope of the pull is at most d coth d, which is at most 1 + d.
            steepness += 1.0 + distance;
        }
        mean = Disk::walk(mean, pull.map(|pull| pull / steepness));
    }
    mean.map(|x| x as f32)
}

/// Points scaled so that the largest coordinate has this size.
fn spread(points: &[[f32; 2]], size: f64) -> Vec<[f64; 2]> {
    let largest = points.iter().flatten().map(|x| f64::from(x.abs())).fold(f64::MIN_POSITIVE, f64::max);
    points.iter().map(|point| point.map(|x| f64::from(x) * size / largest)).collect()
}

impl Graph {
    fn new(neighbours: &Neighbours) -> Self {
        let count = neighbours.rows.len();
        let size = NEIGHBOURS.min(neighbours.per_item() + 1);
        let at = |item: usize, place: usize| match place {
            0 => (item, 0.0),
            _ => neighbours.rows[item][place - 1],
        };
        let items = Array2::from_shape_fn((count, size), |(item, place)| at(item, place).0 as u32);
        let distances = Array2::from_shape_fn((count, size), |(item, place)| at(item, place).1);
        let config = UmapConfig {
            graph: GraphParams {
                n_neighbors: size,
                disconnection_distance: Some(f32::INFINITY),
                ..GraphParams::default()
            },
            ..UmapConfig::default()
        };
        // The crate reads no more of the data than the number of its rows.
        let rows = Array2::zeros((count, 1));
        let manifold = Umap::new(config).learn_manifold(rows.view(), items.view(), distances.view());
        let (a, b) = manifold.curve_params();
        let mut edges = Vec::new();
        for (from, row) in manifold.graph().outer_iterator().enumerate() {
            edges.extend(row.iter().map(|(to, &weight)| Edge { from, to, weight }));
        }
        // The crate fills its rows in parallel.
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        Self { edges, a: f64::from(a), b: f64::from(b) }
    }
}

fn lay_out<S: Space>(
    neighbours: &Neighbours,
    mut points: Vec<[f64; 2]>,
    seed: u64,
    progress: Progress,
    verb: &'static str,
) -> Vec<[f64; 2]> {
    let Graph { edges, a, b } = Graph::new(neighbours);
    let count = points.len();
    let epochs = if count <= 10_000 { 500 } else { 200 };
    let mut rng = stream(seed, "umap", &[]);
    // Equal points have no direction to part in.
    for point in &mut points {
        *point = S::walk(*point, [0; 2].map(|_| 1e-3 * (rng.random::<f64>() - 0.5)));
    }
    let heaviest = edges.iter().map(|edge| edge.weight).fold(0.0, f32::max);
    let bar = progress.bar(verb, epochs);
    for epoch in 0..epochs {
        let rate = 1.0 - epoch as f64 / epochs as f64;
        for &Edge { from, to, weight } in &edges {
            // An edge of weight w is visited in about w/w_max of the epochs.
            let share = f64::from(weight / heaviest);
            if ((epoch + 1) as f64 * share).floor() == (epoch as f64 * share).floor() {
                continue;
            }
            let (distance, direction) = S::towards(points[from], points[to]);
            if distance > 0.0 {
                let power = distance.powf(2.0 * b);
                let pull = 2.0 * a * b * power / distance / (1.0 + a * power);
                let step = rate * pull.min(LONGEST).min(distance / 2.0);
                let back = S::towards(points[to], points[from]).1;
                points[from] = S::walk(points[from], direction.map(|part| part * step));
                points[to] = S::walk(points[to], back.map(|part| part * step));
            }
            for _ in 0..REPELLED {
                let other = rng.random_range(0..count);
                let (distance, direction) = S::towards(points[from], points[other]);
                if distance > 0.0 {
                    let push = 2.0 * b * distance
                        / ((0.001 + distance * distance) * (1.0 + a * distance.powf(2.0 * b)));
                    let step = -rate * push.min(LONGEST);
                    points[from] = S::walk(points[from], direction.map(|part| part * step));
                }
            }
        }
        bar.advance(1);
    }
    points
}

#[cfg(test)]
mod tests {
    use akin_core::poincare::{Curvature, distance};

    use super::*;

    #[test]
    fn a_step_in_the_disk_has_its_hyperbolic_length_and_direction() {
        let curvature = Curvature::try_from(1.0).unwrap();
        for x in [[0.0, 0.0], [0.3, -0.5], [-0.7, 0.6]] {
            let y = Disk::walk(x, [0.3, 0.4]);
            assert!((distance(&x, &y, curvature).unwrap() - 0.5).abs() < 1e-9);
            let (length, direction) = Disk::towards(x, y);
            assert!((length - 0.5).abs() < 1e-9);
            assert!((direction[0] - 0.6).abs() < 1e-9 && (direction[1] - 0.8).abs() < 1e-9);
        }
    }

    #[test]
    fn the_mean_of_two_points_is_the_middle_of_their_geodesic() {
        let [a, b] = [[0.9f32, 0.1], [-0.2, -0.95]];
        let mean = mean_in_disk(&[a, b]).map(f64::from);
        let to = |point: [f32; 2]| Disk::towards(mean, point.map(f64::from));
        let ((to_a, towards_a), (to_b, towards_b)) = (to(a), to(b));
        assert!((to_a - to_b).abs() < 1e-4, "{to_a} {to_b}");
        assert!(towards_a.iter().zip(towards_b).all(|(a, b)| (a + b).abs() < 1e-4));
        assert_eq!(mean_in_disk(&[[0.5, 0.0]; 3]), [0.5, 0.0]);
        let around = mean_in_disk(&[[0.99, 0.0], [-0.99, 0.0], [0.0, 0.5], [0.0, -0.5]]);
        assert!(around.iter().all(|x| x.abs() < 1e-6));
    }

    #[test]
    fn no_step_leaves_the_disk() {
        let [x, y] = Disk::walk([0.9, 0.0], [100.0, 0.0]);
        assert!(x <= RIM && y == 0.0);
    }
}
