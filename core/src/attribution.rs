//! Attribution: which parts of two pictures carry their score.
//!
//! A backbone ends with the mean over the P cells of its last map, and a head is linear up to numbers that belong to
//! the picture as a whole: the deviation of its features, and the length that the geometry gives its embedding. With
//! these numbers as they are, the embedding of a picture is a sum over its cells:
//!
//! ```text
//! x = Σ_p x_p      x_p = c (W (f_p − mean f_p) / σ + b) / P
//! ```
//!
//! f_p are the features of cell p, σ the deviation of the picture's mean features (without LayerNorm the mean is not
//! taken away and σ = 1), W and b the head's, c the factor of the geometry; the bias is shared equally. The dot product
//! of two pictures is then a sum over the cells of either, and over the pairs of their cells (Stylianou, Souvenir and
//! Pless, *Visualizing Deep Similarity Networks*, WACV 2019):
//!
//! ```text
//! q · x = Σ_p q_p · x = Σ_r q · x_r = Σ_p Σ_r q_p · x_r
//! ```
//!
//! The cosine has the same parts, divided by both lengths. Other similarities have no such parts. For them
//! [`Occlusion`] tells how the score changes when a patch of a picture is covered.
//!
//! The features of a cell see more of the picture than the cell: their receptive field.

#[cfg(feature = "image")]
mod occlusion;

use crate::similarity::Similarity;
use crate::{Error, Kind, Result};

#[cfg(feature = "image")]
pub use occlusion::Occlusion;

/// The embedding of a picture as a sum over the cells of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    rows: usize,
    columns: usize,
    dimension: usize,
    parts: Vec<f32>,
}

impl Cells {
    /// A grid of `rows` × `columns` cells with the part of each, [rows · columns, `dimension`], row-major.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] for an empty grid, another number of parts, or a number that is not finite.
    pub fn new(rows: usize, columns: usize, dimension: usize, parts: Vec<f32>) -> Result<Self> {
        let fits = rows * columns * dimension > 0 && parts.len() == rows * columns * dimension;
        if !fits || !parts.iter().all(|part| part.is_finite()) {
            return Err(Error::new(
                Kind::Embeddings,
                format!(
                    "{} numbers are not the finite parts of an embedding of {dimension} dimensions over {rows} × {columns} cells",
                    parts.len()
                ),
                "try again, or use the CPU",
            ));
        }
        Ok(Self { rows, columns, dimension, parts })
    }

    /// The number of rows of the grid.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns of the grid.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The part of cell p, [d], counted row by row.
    pub fn part(&self, p: usize) -> &[f32] {
        &self.parts[p * self.dimension..][..self.dimension]
    }

    /// The embedding, [d]: the sum of all parts.
    pub fn embedding(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.dimension];
        for part in self.parts.chunks_exact(self.dimension) {
            for (sum, &part) in sum.iter_mut().zip(part) {
                *sum += f64::from(part);
            }
        }
        sum
    }

    fn count(&self) -> usize {
        self.rows * self.columns
    }
}

/// What the cells of a query and of an item add to their score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreParts {
    /// The score of the two pictures.
    pub score: f64,
    /// The part of each cell of the query, row by row. They add up to the score.
    pub query: Vec<f64>,
    /// The part of each cell of the item, row by row. They add up to the score.
    pub item: Vec<f64>,
    /// The part of each pair of cells, [query's cells, item's cells]: its rows add up to `query`, its columns to
    /// `item`.
    pub pairs: Vec<f64>,
}

impl ScoreParts {
    /// Whether a score of this similarity is a sum over cells: cosine and dot product.
    pub fn exist(similarity: Similarity) -> bool {
        matches!(similarity, Similarity::Cosine | Similarity::Dot)
    }

    /// The parts of the score of two pictures. `None` for a similarity without parts.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] for embeddings of different dimensions, and for one that is all zero and has no cosine.
    pub fn new(similarity: Similarity, query: &Cells, item: &Cells) -> Result<Option<Self>> {
        if !Self::exist(similarity) {
            return Ok(None);
        }
        if query.dimension != item.dimension {
            return Err(Error::new(
                Kind::Embeddings,
                format!(
                    "the pictures have embeddings of {} and {} dimensions",
                    query.dimension, item.dimension
                ),
                "embed both with the same encoder",
            ));
        }
        let dot = |x: &[f32], y: &[f32]| -> f64 {
            x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
        };
        let lengths = match similarity {
            Similarity::Cosine => length(query)? * length(item)?,
            _ => 1.0,
        };
        let mut parts = Self {
            score: 0.0,
            query: vec![0.0; query.count()],
            item: vec![0.0; item.count()],
            pairs: Vec::with_capacity(query.count() * item.count()),
        };
        for p in 0..query.count() {
            for r in 0..item.count() {
                let part = dot(query.part(p), item.part(r)) / lengths;
                parts.pairs.push(part);
                parts.query[p] += part;
                parts.item[r] += part;
            }
            parts.score += parts.query[p];
        }
        Ok(Some(parts))
    }
}

/// The length of a picture's embedding.
fn length(cells: &Cells) -> Result<f64> {
    let length = cells.embedding().iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 0.0 {
        return Ok(length);
    }
    Err(Error::new(
        Kind::Embeddings,
        "the embedding of a picture is all zero and has no cosine",
        "choose another picture",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{normal, stream};

    fn cells(seed: u64, rows: usize, columns: usize) -> Cells {
        let parts = normal(&mut stream(seed, "cells", &[]), rows * columns * 5, 0.3);
        Cells::new(rows, columns, 5, parts).unwrap()
    }

    #[test]
    fn rows_columns_and_score_are_sums_of_the_pairs() {
        for similarity in [Similarity::Cosine, Similarity::Dot] {
            let (query, item) = (cells(1, 2, 3), cells(2, 4, 2));
            let parts = ScoreParts::new(similarity, &query, &item).unwrap().unwrap();
            // A naive transcription of the two sums.
            let (q, x) = (query.embedding(), item.embedding());
            let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let lengths = if similarity == Similarity::Cosine { norm(&q) * norm(&x) } else { 1.0 };
            let dot = |part: &[f32], whole: &[f64]| -> f64 {
                part.iter().zip(whole).map(|(&part, whole)| f64::from(part) * whole).sum()
            };
            for p in 0..6 {
                assert!((parts.query[p] - dot(query.part(p), &x) / lengths).abs() < 1e-12);
                assert!((parts.query[p] - parts.pairs[p * 8..][..8].iter().sum::<f64>()).abs() < 1e-12);
            }
            for r in 0..8 {
                assert!((parts.item[r] - dot(item.part(r), &q) / lengths).abs() < 1e-12);
            }
            let score = q.iter().zip(&x).map(|(q, x)| q * x).sum::<f64>() / lengths;
            assert!((parts.score - score).abs() < 1e-12);
            assert!((parts.item.iter().sum::<f64>() - score).abs() < 1e-12);
        }
    }

    #[test]
    fn other_similarities_have_no_parts() {
        let poincare = Similarity::Poincare { curvature: Default::default() };
        for similarity in [Similarity::Hamming, Similarity::Euclidean, poincare] {
            assert_eq!(ScoreParts::new(similarity, &cells(1, 1, 1), &cells(2, 1, 1)).unwrap(), None);
        }
    }

    #[test]
    fn cells_that_do_not_fit_are_refused() {
        assert!(Cells::new(1, 2, 3, vec![0.0; 5]).is_err());
        assert!(Cells::new(0, 2, 3, vec![]).is_err());
        assert!(Cells::new(1, 1, 1, vec![f32::NAN]).is_err());
        let zero = Cells::new(1, 2, 5, vec![0.0; 10]).unwrap();
        assert!(ScoreParts::new(Similarity::Cosine, &zero, &cells(1, 1, 2)).is_err());
        assert_eq!(
            ScoreParts::new(Similarity::Dot, &zero, &cells(1, 1, 2)).unwrap().map(|parts| parts.score),
            Some(0.0)
        );
        let other = Cells::new(1, 1, 4, vec![1.0; 4]).unwrap();
        assert!(ScoreParts::new(Similarity::Cosine, &other, &cells(1, 1, 1)).is_err());
    }
}
