//! The similarity of two embeddings: cosine, Euclidean distance or dot product in flat space, the distance of the
//! Poincaré ball, or the Hamming distance of their signs.
//!
//! Every score is summed in one fixed order, as `panels.rs` says. It therefore does not depend on the block
//! it is computed in, on the number of threads or on the machine, and score(a, b) = score(b, a).

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::embeddings::Embeddings;
use crate::hamming::Codes;
use crate::pair_sums::PairSum;
use crate::panels::{Panels, Product, Queries, SquaredDifference};
use crate::poincare::Curvature;
use crate::{Error, Kind, Result, poincare};

/// The score that items are ranked by. A larger score is nearer.
///
/// In a config it is a name, `"cosine"`, or a table if it has a setting, `{ poincare = { curvature = 0.1 } }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
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
        #[cfg_attr(feature = "typescript", ts(as = "f64"))]
        curvature: Curvature,
    },
    /// Minus the number of bits in which the codes of x and y differ. A code is the signs of the numbers; see
    /// [`hamming`](crate::hamming).
    Hamming,
}

impl Similarity {
    /// What its scores are made of; none for Hamming's, which counts bits.
    pub(crate) fn pair_sum(self) -> Option<PairSum> {
        match self {
            Self::Cosine | Self::Dot => Some(PairSum::Products),
            Self::Euclidean | Self::Poincare { .. } => Some(PairSum::SquaredDifferences),
            Self::Hamming => None,
        }
    }
}

/// Reads `cosine`, `euclidean`, `dot`, `hamming` and `poincare:CURVATURE`.
impl FromStr for Similarity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = text.strip_prefix("poincare:").and_then(|number| number.parse::<f64>().ok());
        let curvature = number.and_then(|number| Curvature::try_from(number).ok());
        match (text, curvature) {
            ("cosine", _) => Ok(Self::Cosine),
            ("euclidean", _) => Ok(Self::Euclidean),
            ("dot", _) => Ok(Self::Dot),
            ("hamming", _) => Ok(Self::Hamming),
            (_, Some(curvature)) => Ok(Self::Poincare { curvature }),
            _ => Err(Error::new(
                Kind::Config,
                format!("there is no similarity `{text}`"),
                "write cosine, euclidean, dot, hamming or poincare:CURVATURE, for example poincare:0.1",
            )),
        }
    }
}

/// What a similarity needs to know of each embedding of a set: its length for cosine, its [`poincare::slack`] for the
/// Poincaré ball. Empty for the other similarities.
pub(crate) type Measures = Vec<f64>;

/// Measures embeddings [n, d], row-major, whose first is item `first` of its set, for a similarity. `set` names the set
/// in an error: "query" or "gallery".
///
/// # Errors
///
/// [`Kind::Embeddings`] for an embedding that the similarity is not defined for; the error names its row.
pub(crate) fn measure(
    similarity: Similarity,
    (dimension, rows): (usize, &[f32]),
    first: usize,
    set: &str,
) -> Result<Measures> {
    let mut measures = Measures::new();
    if similarity == Similarity::Hamming {
        return Ok(measures);
    }
    for (number, row) in (first..).zip(rows.chunks_exact(dimension)) {
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
        match similarity {
            Similarity::Cosine => measures.push(length),
            Similarity::Poincare { curvature } => {
                measures.push(poincare::slack(square, curvature).ok_or_else(|| {
                    poincare::outside(&format!("the {set} embedding in row {number}"), square, curvature)
                })?);
            }
            Similarity::Euclidean | Similarity::Dot | Similarity::Hamming => {}
        }
    }
    Ok(measures)
}

/// Embeddings prepared for one similarity, row by row: of unit length for cosine; codes for Hamming distance.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    similarity: Similarity,
    dimension: usize,
    /// [N, d], row-major; empty for codes.
    rows: Vec<f32>,
    /// The [`poincare::slack`] of each point of the Poincaré ball; empty for other similarities.
    slacks: Vec<f64>,
    codes: Codes,
}

impl Points {
    /// Prepares embeddings [N, d], row-major, with their measures.
    pub(crate) fn new(
        similarity: Similarity,
        (dimension, mut rows): (usize, Vec<f32>),
        measures: Measures,
    ) -> Self {
        let mut points =
            Self { similarity, dimension, rows: vec![], slacks: vec![], codes: Codes::default() };
        match similarity {
            Similarity::Hamming => points.codes = Codes::from_signs(dimension, &rows),
            Similarity::Cosine => {
                for (row, &length) in rows.chunks_exact_mut(dimension).zip(&measures) {
                    row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
                }
                points.rows = rows;
            }
            Similarity::Poincare { .. } => (points.rows, points.slacks) = (rows, measures),
            Similarity::Euclidean | Similarity::Dot => points.rows = rows,
        }
        points
    }

    /// The number of embeddings.
    pub(crate) fn len(&self) -> usize {
        if self.similarity == Similarity::Hamming {
            self.codes.len()
        } else {
            self.rows.len() / self.dimension
        }
    }

    /// The numbers that are multiplied or subtracted, [N, d]: of unit length for the cosine. None for Hamming's similarity.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The numbers of a range of embeddings.
    pub(crate) fn rows_of(&self, range: Range<usize>) -> &[f32] {
        &self.rows[range.start * self.dimension..range.end * self.dimension]
    }

    /// A range of these embeddings as queries.
    pub(crate) fn batch(&self, range: Range<usize>) -> Batch<'_> {
        let has_sums = self.similarity.pair_sum().is_some();
        let queries = has_sums.then(|| Queries::new(self.dimension, self.rows_of(range.clone())));
        Batch { points: self, range, queries }
    }

    /// Makes scores of the [sums](Similarity::pair_sum) of one of these queries with items, whose slacks are given for
    /// the Poincaré ball.
    pub(crate) fn finish(&self, query: usize, slacks: &[f64], scores: &mut [f32]) {
        match self.similarity {
            Similarity::Cosine | Similarity::Dot | Similarity::Hamming => {}
            Similarity::Euclidean => scores.iter_mut().for_each(|score| *score = -*score),
            Similarity::Poincare { curvature } => {
                for (score, slack) in scores.iter_mut().zip(slacks) {
                    let slacks = self.slacks[query] * slack;
                    *score = -poincare::distance_from(f64::from(*score), slacks, curvature) as f32;
                }
            }
        }
    }

    /// Measures and prepares embeddings; see [`measure`].
    pub(crate) fn checked(similarity: Similarity, embeddings: &Embeddings, set: &str) -> Result<Self> {
        let (dimension, rows) = (embeddings.dimension(), embeddings.values());
        let measures = measure(similarity, (dimension, rows), 0, set)?;
        Ok(Self::new(similarity, (dimension, rows.to_vec()), measures))
    }
}

/// What a device needs.
#[cfg(not(target_family = "wasm"))]
impl Points {
    /// The numbers of an embedding.
    pub(crate) fn row(&self, place: usize) -> &[f32] {
        self.rows_of(place..place + 1)
    }

    /// Some of the embeddings, which are not codes.
    pub(crate) fn select(&self, some: &[usize]) -> Self {
        let rows = some.iter().flat_map(|&place| self.row(place)).copied().collect();
        let slacks = match self.slacks.is_empty() {
            true => vec![],
            false => some.iter().map(|&place| self.slacks[place]).collect(),
        };
        Self { rows, slacks, codes: Codes::default(), ..*self }
    }

    /// These and others behind them.
    pub(crate) fn followed_by(mut self, others: Self) -> Self {
        self.rows.extend(others.rows);
        self.slacks.extend(others.slacks);
        self
    }

    /// What each embedding keeps for [`finish`](Self::finish).
    pub(crate) fn slacks(&self) -> &[f64] {
        &self.slacks
    }
}

/// Some embeddings as queries, in the order in which their sums with items are computed.
pub(crate) struct Batch<'a> {
    points: &'a Points,
    range: Range<usize>,
    /// None for codes.
    queries: Option<Queries>,
}

/// Items prepared to be scored: the numbers of [`Points`] in [`Panels`].
#[derive(Clone, Debug)]
pub(crate) struct Items {
    similarity: Similarity,
    panels: Panels,
    slacks: Vec<f64>,
    codes: Codes,
}

impl From<Points> for Items {
    fn from(points: Points) -> Self {
        let Points { similarity, dimension, rows, slacks, codes } = points;
        Self { similarity, panels: Panels::new(dimension, &rows), slacks, codes }
    }
}

impl Items {
    pub(crate) fn len(&self) -> usize {
        if self.similarity == Similarity::Hamming { self.codes.len() } else { self.panels.len() }
    }

    pub(crate) fn codes(&self) -> Option<&Codes> {
        (self.similarity == Similarity::Hamming).then_some(&self.codes)
    }

    /// Writes the scores of a batch of queries with all N items into the first N columns of `scores`, which has a row of
    /// `stride` numbers for each query.
    pub(crate) fn score(&self, batch: &Batch<'_>, scores: &mut [f32], stride: usize) {
        let Batch { points, range, queries } = batch;
        match self.similarity.pair_sum().zip(queries.as_ref()) {
            Some((PairSum::Products, queries)) => self.panels.add_up(queries, scores, stride, Product),
            Some((PairSum::SquaredDifferences, queries)) => {
                self.panels.add_up(queries, scores, stride, SquaredDifference);
            }
            None => self.codes.score(&points.codes, range.clone(), scores, stride),
        }
        for (query, scores) in range.clone().zip(scores.chunks_mut(stride.max(1))) {
            let count = self.len().min(scores.len());
            points.finish(query, &self.slacks, &mut scores[..count]);
        }
    }

    /// The scores of a batch of Q queries: [Q, N], row-major.
    pub(crate) fn scores(&self, batch: &Batch<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; batch.range.len() * self.len()];
        self.score(batch, &mut scores, self.len());
        scores
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
                let points = Points::checked(similarity, &items, "gallery").unwrap();
                let scores = Items::from(points.clone()).scores(&points.batch(0..5));
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
            let points = Points::checked(similarity, &embeddings(39, 21), "gallery").unwrap();
            let items = Items::from(points.clone());
            let all = items.scores(&points.batch(0..39));
            for block in [1, 2, 7] {
                let blocks =
                    (0..39).step_by(block).map(|at| items.scores(&points.batch(at..39.min(at + block))));
                assert_eq!(blocks.collect::<Vec<_>>().concat(), all);
            }
            assert!((0..39).all(|a| (0..39).all(|b| all[a * 39 + b] == all[b * 39 + a])));
        }
    }

    #[test]
    fn embeddings_that_cannot_be_compared_are_refused_by_row() {
        let zero = Embeddings::new(2, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
        let error = Points::checked(Similarity::Cosine, &zero, "query").unwrap_err();
        assert!(error.message().contains("query embedding in row 1 is all zero"), "{error}");
        assert!(Points::checked(Similarity::Dot, &zero, "query").is_ok());
        assert!(Points::checked(Similarity::Hamming, &zero, "query").is_ok());

        let error = Points::checked(poincare(1.0), &zero, "gallery").unwrap_err();
        assert!(error.message().contains("gallery embedding in row 0 lies outside"), "{error}");
        assert!(Points::checked(poincare(0.5), &zero, "gallery").is_ok());
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
        let points = Points::checked(Similarity::Cosine, &huge, "gallery").unwrap();
        assert!(
            Items::from(points.clone())
                .scores(&points.batch(0..2))
                .iter()
                .all(|score| score.abs() <= 1.0 + 1e-6)
        );
        assert!(Points::checked(Similarity::Dot, &huge, "gallery").is_err());
        assert!(Points::checked(Similarity::Euclidean, &huge, "gallery").is_err());
    }
}
