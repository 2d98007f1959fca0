//! The similarity of two embeddings: cosine, Euclidean distance or dot product in flat space, the distance of the
//! Poincaré ball, or the Hamming distance of their signs.
//!
//! Every score is summed in one fixed order, as `panels.rs` says. It therefore does not depend on the block
//! it is computed in, on the number of threads or on the machine, and score(a, b) = score(b, a).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::embeddings::Embeddings;
use crate::hamming::Codes;
use crate::panels::{Panels, Product, SquaredDifference};
use crate::poincare::Curvature;
use crate::{Error, Kind, Result, poincare};

/// The score that items are ranked by. A larger score is nearer.
///
/// In a config it is a name, `"cosine"`, or a table if it has a setting, `{ poincare = { curvature = 0.1 } }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Similarity {
    /// x·y / (‖x‖ ‖y‖), in \[−1, 1\] up to rounding. An all-zero embedding has no cosine and is refused.
    #[default]
    Cosine,
    /// −‖x − y‖², which ranks as the Euclidean distance does.
    Euclidean,
    /// x·y.
    Dot,
    /// −d(x, y), the [distance](poincare::distance) of the Poincaré ball. An embedding outside the ball is refused.
    Poincare {
        /// c of the ball that the embeddings were trained in; a finite number above 0.
        #[cfg_attr(feature = "schema", schemars(with = "f64"))]
        curvature: Curvature,
    },
    /// Minus the number of bits in which the codes of x and y differ. A code is the signs of the numbers; see
    /// [`hamming`](crate::hamming).
    Hamming,
}

/// Embeddings prepared for one similarity: of unit length for cosine; codes for Hamming distance.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    similarity: Similarity,
    count: usize,
    panels: Panels,
    /// The [`poincare::slack`] of each point of the Poincaré ball; empty for other similarities.
    slacks: Vec<f64>,
    codes: Codes,
}

impl Points {
    /// Prepares embeddings. `set` names them in an error: "query" or "gallery".
    pub(crate) fn new(similarity: Similarity, embeddings: &Embeddings, set: &str) -> Result<Self> {
        let count = embeddings.len();
        if similarity == Similarity::Hamming {
            let codes = Codes::from_signs(embeddings.dimension(), embeddings.values());
            return Ok(Self { similarity, count, panels: Panels::default(), slacks: Vec::new(), codes });
        }
        let mut panels = Panels::new(count, embeddings.dimension());
        let mut slacks = Vec::new();
        for (number, row) in embeddings.values().chunks_exact(embeddings.dimension()).enumerate() {
            // f64: the square of a finite f32 does not overflow.
            let square: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
            let length = if similarity == Similarity::Cosine { square.sqrt() } else { 1.0 };
            if length == 0.0 {
                return Err(Error::new(
                    Kind::Embeddings,
                    format!("the {set} embedding in row {number} is all zero and has no cosine"),
                    "leave out that item, or choose the similarity euclidean or dot",
                ));
            }
            // |x·y| and ‖x − y‖² are at most 4 max ‖x‖², which must not overflow.
            if square / length.powi(2) > f64::from(f32::MAX) / 4.0 {
                return Err(Error::new(
                    Kind::Embeddings,
                    format!(
                        "the {set} embedding in row {number} is too long to be compared ({:e})",
                        square.sqrt()
                    ),
                    "scale the embeddings down, or choose the similarity cosine",
                ));
            }
            if let Similarity::Poincare { curvature } = similarity {
                slacks.push(poincare::slack(square, curvature).ok_or_else(|| {
                    poincare::outside(&format!("the {set} embedding in row {number}"), square, curvature)
                })?);
            }
            panels.set(number, row.iter().map(|&x| (f64::from(x) / length) as f32));
        }
        Ok(Self { similarity, count, panels, slacks, codes: Codes::default() })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn codes(&self) -> Option<&Codes> {
        (self.similarity == Similarity::Hamming).then_some(&self.codes)
    }

    /// The scores of a range of queries against all these points: [queries, N], row-major.
    pub(crate) fn scores(&self, queries: &Points, range: Range<usize>) -> Vec<f32> {
        match self.similarity {
            Similarity::Cosine | Similarity::Dot => self.panels.sums(&queries.panels, range, Product),
            Similarity::Euclidean => {
                let mut scores = self.panels.sums(&queries.panels, range, SquaredDifference);
                scores.iter_mut().for_each(|score| *score = -*score);
                scores
            }
            Similarity::Poincare { curvature } => {
                let mut scores = self.panels.sums(&queries.panels, range.clone(), SquaredDifference);
                for (query, scores) in range.zip(scores.chunks_exact_mut(self.len().max(1))) {
                    for (score, slack) in scores.iter_mut().zip(&self.slacks) {
                        let slacks = queries.slacks[query] * slack;
                        *score = -poincare::distance_from(f64::from(*score), slacks, curvature) as f32;
                    }
                }
                scores
            }
            Similarity::Hamming => self.codes.scores(&queries.codes, range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embeddings(count: usize, dimension: usize) -> Embeddings {
        let value = |i: usize| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0;
        Embeddings::new(dimension, (0..count * dimension).map(value).collect()).unwrap()
    }

    fn score(similarity: Similarity, a: &[f32], b: &[f32]) -> f64 {
        let sum = |term: fn(f64, f64) -> f64| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| term(f64::from(a), f64::from(b))).sum()
        };
        let length = |a: &[f32]| a.iter().map(|&a| f64::from(a).powi(2)).sum::<f64>().sqrt();
        match similarity {
            Similarity::Cosine => sum(|a, b| a * b) / (length(a) * length(b)),
            Similarity::Euclidean => -sum(|a, b| (a - b).powi(2)),
            Similarity::Dot => sum(|a, b| a * b),
            Similarity::Poincare { curvature } => {
                let point = |a: &[f32]| a.iter().map(|&a| f64::from(a)).collect::<Vec<_>>();
                -poincare::distance(&point(a), &point(b), curvature).unwrap()
            }
            Similarity::Hamming => sum(|a, b| -f64::from(u8::from((a > 0.0) != (b > 0.0)))),
        }
    }

    fn poincare(c: f64) -> Similarity {
        Similarity::Poincare { curvature: Curvature::try_from(c).unwrap() }
    }

    fn every_similarity() -> [Similarity; 5] {
        [Similarity::Cosine, Similarity::Euclidean, Similarity::Dot, poincare(0.01), Similarity::Hamming]
    }

    #[test]
    fn scores_equal_their_definition_in_every_dimension() {
        for similarity in every_similarity() {
            for dimension in [1, 3, 8, 21] {
                let items = embeddings(5, dimension);
                let points = Points::new(similarity, &items, "gallery").unwrap();
                let scores = points.scores(&points, 0..5);
                for (place, &got) in scores.iter().enumerate() {
                    let expected = score(similarity, items.row(place / 5), items.row(place % 5));
                    assert!(
                        (f64::from(got) - expected).abs() < 1e-5,
                        "{similarity:?} {dimension}: {got} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_score_does_not_depend_on_its_block() {
        for similarity in every_similarity() {
            let points = Points::new(similarity, &embeddings(39, 21), "gallery").unwrap();
            let all = points.scores(&points, 0..39);
            for block in [1, 2, 7] {
                let blocks = (0..39).step_by(block).map(|at| points.scores(&points, at..39.min(at + block)));
                assert_eq!(blocks.collect::<Vec<_>>().concat(), all);
            }
            assert!((0..39).all(|a| (0..39).all(|b| all[a * 39 + b] == all[b * 39 + a])));
        }
    }

    #[test]
    fn embeddings_that_cannot_be_compared_are_refused_by_row() {
        let zero = Embeddings::new(2, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
        let error = Points::new(Similarity::Cosine, &zero, "query").unwrap_err();
        assert!(error.message().contains("query embedding in row 1 is all zero"), "{error}");
        assert!(Points::new(Similarity::Dot, &zero, "query").is_ok());
        assert!(Points::new(Similarity::Hamming, &zero, "query").is_ok());

        let error = Points::new(poincare(1.0), &zero, "gallery").unwrap_err();
        assert!(error.message().contains("gallery embedding in row 0 lies outside"), "{error}");
        assert!(Points::new(poincare(0.5), &zero, "gallery").is_ok());
    }

    #[test]
    fn a_similarity_is_read_from_a_name_or_a_table() {
        let read = |json: &str| serde_json::from_str::<Similarity>(json);
        assert_eq!(read(r#""dot""#).unwrap(), Similarity::Dot);
        let poincare = poincare(0.1);
        assert_eq!(read(r#"{ "poincare": { "curvature": 0.1 } }"#).unwrap(), poincare);
        assert_eq!(read(&serde_json::to_string(&poincare).unwrap()).unwrap(), poincare);
        assert!(read(r#"{ "poincare": { "curvature": -1.0 } }"#).is_err());
    }

    #[test]
    fn finite_embeddings_have_finite_scores() {
        let huge = Embeddings::new(2, vec![f32::MAX, f32::MAX, -f32::MAX, 1e-45]).unwrap();
        let points = Points::new(Similarity::Cosine, &huge, "gallery").unwrap();
        assert!(points.scores(&points, 0..2).iter().all(|score| score.abs() <= 1.0 + 1e-6));
        assert!(Points::new(Similarity::Dot, &huge, "gallery").is_err());
        assert!(Points::new(Similarity::Euclidean, &huge, "gallery").is_err());
    }
}
