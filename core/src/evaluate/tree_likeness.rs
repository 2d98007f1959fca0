//! How tree-like the distances of the ranked items are: their δ-hyperbolicity, from a few draws.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::embeddings::Rows;
use crate::poincare::{self, Hyperbolicity};
use crate::random::stream;
use crate::similarity::Similarity;
use crate::statistics::{deviation, mean};
use crate::{Error, Kind, Result};

/// The range of [`TreeLikeness::points`]: fewer than 4 points are always a tree, and more take gigabytes.
const POINTS: std::ops::RangeInclusive<usize> = 4..=5_000;

/// The most [`TreeLikeness::draws`].
const MOST_DRAWS: usize = 1_000;

/// What to do if items are ranked by something else.
const DISTANCES: &str = "rank by cosine, euclidean or poincare, or leave out the hyperbolicity";

/// The relative δ of a tree whose distances are rounded is below this.
const ROUNDING: f64 = 1e-9;

/// How the [δ-hyperbolicity](Hyperbolicity) of the ranked items is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TreeLikeness {
    /// The number of items in a draw, 4 to 5000. A draw from a smaller set has all items. The time grows with its third power. Hyp's code
    /// takes 2000.
    pub points: usize,
    /// The number of draws, 1 to 1000. Default: 10.
    #[serde(default = "ten")]
    pub draws: usize,
    /// Seed of the draws. Default: 0.
    #[serde(default)]
    pub seed: u64,
}

/// The mean of the relative δ over the draws, 2δ / diameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanHyperbolicity {
    /// The number of items of a draw.
    pub points: usize,
    /// The number of draws that have two different items.
    pub draws: usize,
    /// From 0, a tree, to 1; `None` if all items of each draw are the same.
    pub relative: Option<f64>,
    /// The deviation over the draws, with two or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// c = (0.144 / relative)², the curvature of the Poincaré ball that suits such distances (Khrulkov et al., 2020);
    /// `None` for a tree, for which it is infinite.
    pub curvature: Option<f64>,
}

fn ten() -> usize {
    10
}

impl TreeLikeness {
    /// Checks the settings, and that items are ranked by a distance.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for numbers out of range, and for the dot product and the Hamming distance.
    pub(super) fn check(&self, similarity: Similarity) -> Result<()> {
        let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
        if !POINTS.contains(&self.points) {
            return refuse(
                format!("the hyperbolicity has draws of {} points", self.points),
                "choose 4 to 5000; 1000 take some seconds",
            );
        }
        if !(1..=MOST_DRAWS).contains(&self.draws) {
            return refuse(
                format!("the hyperbolicity has {} draws", self.draws),
                "choose 1 to 1000; 10 is usual",
            );
        }
        match similarity {
            Similarity::Cosine | Similarity::Euclidean | Similarity::Poincare { .. } => Ok(()),
            Similarity::Dot => refuse(
                "the hyperbolicity needs a distance, and the dot product, by which items are ranked, is none"
                    .into(),
                DISTANCES,
            ),
            Similarity::Hamming => refuse(
                "the hyperbolicity is not measured for the Hamming distance, by which items are ranked"
                    .into(),
                DISTANCES,
            ),
        }
    }
}

/// The δ-hyperbolicity of embeddings by the distance that ranks them. In the Poincaré ball this is the distance along its
/// geodesics. Elsewhere it is the Euclidean distance; for cosine it is that of unit vectors, which has the same order.
/// Khrulkov et al. and Hyp's code instead take Euclidean distances of a pretrained
/// backbone's features, before any head, to choose a curvature: that is this function with [`Similarity::Euclidean`] on
/// such features. Each draw is without repetition, and its first item is the base point, as in Hyp's code. Takes
/// O(draws · points³) time.
///
/// # Errors
///
/// [`Kind::Config`] for settings out of range, and for the dot product and the Hamming distance; [`Kind::Embeddings`] for
/// embeddings that cannot be read or are not finite.
pub fn mean_hyperbolicity(
    rows: &dyn Rows,
    similarity: Similarity,
    settings: TreeLikeness,
) -> Result<MeanHyperbolicity> {
    settings.check(similarity)?;
    let (count, dimension) = (rows.len(), rows.dimension());
    let points = settings.points.min(count);
    let mut relatives = Vec::new();
    for draw in 0..settings.draws {
        let mut items: Vec<usize> = (0..count).collect();
        let mut random = stream(settings.seed, "hyperbolicity", &[draw as u64]);
        let (items, _) = items.partial_shuffle(&mut random, points);
        let read = |&item: &usize| -> Result<Vec<f64>> {
            let mut row = vec![0.0; dimension];
            rows.read(item, &mut row)?;
            let mut row: Vec<f64> = row.into_iter().map(f64::from).collect();
            if similarity == Similarity::Cosine {
                let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter_mut().for_each(|x| *x /= length);
            }
            Ok(row)
        };
        let drawn = items.iter().map(read).collect::<Result<Vec<_>>>()?;
        let distance = |i: usize, j: usize| match similarity {
            Similarity::Poincare { curvature } => {
                poincare::distance(&drawn[i], &drawn[j], curvature).unwrap_or(f64::NAN)
            }
            _ => drawn[i].iter().zip(&drawn[j]).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt(),
        };
        // Items that are all the same have no hyperbolicity.
        if drawn.iter().any(|row| *row != drawn[0]) {
            relatives.push(Hyperbolicity::new(points, distance)?.relative);
        }
    }
    let relative = mean(&relatives);
    Ok(MeanHyperbolicity {
        points,
        draws: relatives.len(),
        relative,
        deviation: deviation(&relatives),
        curvature: relative.filter(|&relative| relative > ROUNDING).map(poincare::suggested_curvature),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embeddings::Embeddings;
    use crate::poincare::Curvature;
    use crate::random::normal;

    fn measured(rows: &Embeddings, similarity: Similarity, points: usize, draws: usize) -> MeanHyperbolicity {
        mean_hyperbolicity(rows, similarity, TreeLikeness { points, draws, seed: 3 }).unwrap()
    }

    fn random(count: usize) -> Embeddings {
        Embeddings::new(3, normal(&mut stream(1, "test", &[]), 3 * count, 0.2)).unwrap()
    }

    #[test]
    fn the_hyperbolicity_of_all_items_is_that_of_their_distances() {
        let rows = random(12);
        let row = |i: usize| rows.row(i).iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let between =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let unit = |i: usize| {
            let length = between(&row(i), &[0.0; 3]);
            row(i).iter().map(|x| x / length).collect::<Vec<_>>()
        };
        let curvature = Curvature::try_from(0.5).unwrap();
        // δ depends on the base point, and that on the draw.
        let for_each_base = |distance: &dyn Fn(usize, usize) -> f64| {
            let with_base = |base: usize| {
                let at = |i: usize| (i + base) % 12;
                Hyperbolicity::new(12, |i, j| distance(at(i), at(j))).unwrap().relative
            };
            (0..12).map(with_base).collect::<Vec<_>>()
        };
        for (similarity, expected) in [
            (Similarity::Euclidean, for_each_base(&|i, j| between(&row(i), &row(j)))),
            (Similarity::Cosine, for_each_base(&|i, j| between(&unit(i), &unit(j)))),
            (
                Similarity::Poincare { curvature },
                for_each_base(&|i, j| poincare::distance(&row(i), &row(j), curvature).unwrap()),
            ),
        ] {
            let got = measured(&rows, similarity, 100, 1);
            assert_eq!((got.points, got.draws, got.deviation), (12, 1, None));
            let relative = got.relative.unwrap();
            assert!(expected.iter().any(|one| (one - relative).abs() < 1e-12), "{relative}: {expected:?}");
            assert!((got.curvature.unwrap() - (0.144 / relative).powi(2)).abs() < 1e-12);
        }
    }

    #[test]
    fn draws_are_averaged_and_repeatable() {
        let rows = random(40);
        let one = measured(&rows, Similarity::Cosine, 10, 5);
        assert_eq!(measured(&rows, Similarity::Cosine, 10, 5), one);
        assert_eq!(one.draws, 5);
        // The first draw is the same whatever their number. Two numbers are deviation / √2 from their mean.
        let first = measured(&rows, Similarity::Cosine, 10, 1).relative.unwrap();
        let two = measured(&rows, Similarity::Cosine, 10, 2);
        let distance = (two.relative.unwrap() - first).abs();
        assert!(distance > 0.0);
        assert!((distance - two.deviation.unwrap() / 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn points_on_a_line_are_a_tree_and_equal_points_have_no_hyperbolicity() {
        // Distances along a line that is not an axis are rounded.
        let line = Embeddings::new(2, (0..8).flat_map(|x| [x as f32, 0.3 * x as f32]).collect()).unwrap();
        let tree = measured(&line, Similarity::Euclidean, 8, 2);
        assert!(tree.relative.unwrap() < ROUNDING && tree.curvature.is_none(), "{tree:?}");
        let same = Embeddings::new(1, vec![1.0; 8]).unwrap();
        let none = measured(&same, Similarity::Euclidean, 8, 2);
        assert_eq!((none.draws, none.relative, none.curvature), (0, None, None));
        let json = serde_json::to_string(&tree).unwrap();
        assert_eq!(serde_json::from_str::<MeanHyperbolicity>(&json).unwrap(), tree);
    }

    #[test]
    fn settings_out_of_range_and_similarities_without_distance_are_refused() {
        let refusal = |points, draws, similarity| {
            TreeLikeness { points, draws, seed: 0 }.check(similarity).unwrap_err().message().to_owned()
        };
        assert_eq!(refusal(3, 1, Similarity::Cosine), "the hyperbolicity has draws of 3 points");
        assert_eq!(refusal(6_000, 1, Similarity::Cosine), "the hyperbolicity has draws of 6000 points");
        assert_eq!(refusal(10, 0, Similarity::Cosine), "the hyperbolicity has 0 draws");
        assert!(refusal(10, 1, Similarity::Dot).contains("needs a distance"));
        assert!(refusal(10, 1, Similarity::Hamming).contains("Hamming distance"));
    }
}
