//! How tree-like the distances of a data set are: Gromov's δ, and the curvature that fits them.

use crate::{Error, Kind, Result};

/// The δ-hyperbolicity of a set of points (Khrulkov et al., *Hyperbolic Image Embeddings*, CVPR 2020, section 3.1).
///
/// With the Gromov products (x|y) = ½ (d(x, p) + d(y, p) − d(x, y)) at a base point p, δ is the smallest number for
/// which (x|z) ≥ min((x|y), (y|z)) − δ for all x, y, z. It is the largest entry of A ⊗ A − A, for the matrix A of the
/// products and the max–min product ⊗. It is 0 for a tree. Paper and code take one base point; another one gives at most
/// twice this δ (Gromov, 1987).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyperbolicity {
    /// δ.
    pub delta: f64,
    /// The largest distance.
    pub diameter: f64,
    /// 2δ / diameter, from 0, a tree, to 1.
    pub relative: f64,
    /// c = (0.144 / relative)², the curvature that the paper suggests for embedding such data; infinite for a tree.
    pub curvature: f64,
}

impl Hyperbolicity {
    /// δ of the points 0 … `count` − 1 from their distances, with base point 0. Takes O(count³) time and O(count²)
    /// memory; of a large set, draw about 2,000 points.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] when a distance is not finite, or all distances are 0.
    pub fn new(count: usize, distance: impl Fn(usize, usize) -> f64) -> Result<Self> {
        let distances: Vec<f64> =
            (0..count * count).map(|place| distance(place / count, place % count)).collect();
        let refuse = |message: String| {
            Err(Error::new(Kind::Embeddings, message, "give points with finite distances that are not all 0"))
        };
        if let Some(distance) = distances.iter().find(|distance| !distance.is_finite()) {
            return refuse(format!("the distance of two of the {count} points is {distance}"));
        }
        let diameter = distances.iter().copied().fold(0.0, f64::max);
        if diameter <= 0.0 {
            return refuse(format!("{count} points with no distance above 0 have no hyperbolicity"));
        }
        let row = |values: &'_ [f64], i: usize| values[i * count..][..count].to_vec();
        let from_base = row(&distances, 0);
        let products: Vec<f64> = (0..count * count)
            .map(|place| (from_base[place / count] + from_base[place % count] - distances[place]) / 2.0)
            .collect();
        let mut delta = 0f64;
        for x in 0..count {
            let row_x = row(&products, x);
            let mut best = vec![f64::NEG_INFINITY; count];
            for (y, &xy) in row_x.iter().enumerate() {
                for (best, &yz) in best.iter_mut().zip(&products[y * count..][..count]) {
                    *best = best.max(xy.min(yz));
                }
            }
            delta = best.iter().zip(&row_x).fold(delta, |delta, (best, xz)| delta.max(best - xz));
        }
        let relative = 2.0 * delta / diameter;
        Ok(Self { delta, diameter, relative, curvature: suggested_curvature(relative) })
    }
}

/// c = (0.144 / relative)², the curvature that Khrulkov et al. suggest for data of a relative δ.
pub(crate) fn suggested_curvature(relative: f64) -> f64 {
    (0.144 / relative).powi(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest δ with the four-point condition d(x, z) + d(y, p) ≤ max(d(x, y) + d(z, p), d(y, z) + d(x, p)) + 2δ, for
    /// the base point p = 0. The condition of the Gromov products is the same, written out.
    fn naive_delta(count: usize, d: impl Fn(usize, usize) -> f64) -> f64 {
        let mut delta = 0f64;
        for x in 0..count {
            for y in 0..count {
                for z in 0..count {
                    let other = f64::max(d(x, y) + d(z, 0), d(y, z) + d(x, 0));
                    delta = delta.max((d(x, z) + d(y, 0) - other) / 2.0);
                }
            }
        }
        delta
    }

    proptest! {
        #[test]
        fn delta_is_that_of_the_four_point_condition(
            points in proptest::collection::vec(proptest::array::uniform3(-1.0..1.0f64), 2..12)
        ) {
            let between = |i: usize, j: usize| {
                points[i].iter().zip(&points[j]).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
            };
            let measured = Hyperbolicity::new(points.len(), between).unwrap();
            prop_assert!((measured.delta - naive_delta(points.len(), between)).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&measured.relative));
        }

        #[test]
        fn the_delta_of_paths_in_a_tree_is_0(edges in proptest::collection::vec((any::<usize>(), 0.1..1.0f64), 1..12)) {
            // Node i + 1 hangs on one of the nodes before it.
            let mut distances = vec![vec![0.0]];
            for (parent, length) in edges {
                let parent = parent % distances.len();
                let row: Vec<f64> = distances[parent].iter().map(|distance| distance + length).collect();
                distances.iter_mut().zip(&row).for_each(|(other, &distance)| other.push(distance));
                distances.push([row, vec![0.0]].concat());
            }
            let tree = Hyperbolicity::new(distances.len(), |i, j| distances[i][j]).unwrap();
            prop_assert!(tree.relative < 1e-12, "{tree:?}");
        }
    }

    #[test]
    fn the_delta_of_a_tree_is_0() {
        // Leaves of a binary tree of depth 3: the path through their closest common ancestor.
        let path = |i: usize, j: usize| 2.0 * f64::from((i ^ j).checked_ilog2().map_or(0, |bit| bit + 1));
        let tree = Hyperbolicity::new(8, path).unwrap();
        assert_eq!((tree.delta, tree.diameter, tree.curvature), (0.0, 6.0, f64::INFINITY));
    }

    #[test]
    fn the_delta_of_a_square_is_its_side() {
        // The corners of a square under the distance along its sides.
        let around = |i: usize, j: usize| [0.0, 1.0, 2.0, 1.0][i.abs_diff(j)];
        let square = Hyperbolicity::new(4, around).unwrap();
        assert_eq!((square.delta, square.relative), (1.0, 1.0));
    }

    #[test]
    fn points_without_distances_are_refused() {
        let fault = |count, distance| Hyperbolicity::new(count, |_, _| distance).unwrap_err();
        assert!(fault(0, 1.0).message().starts_with("0 points with no distance above 0"));
        assert!(fault(3, 0.0).message().starts_with("3 points with no distance above 0"));
        assert_eq!(fault(3, f64::NAN).message(), "the distance of two of the 3 points is NaN");
    }
}
