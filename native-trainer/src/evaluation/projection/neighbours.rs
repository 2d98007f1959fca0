//! The nearest neighbours of each embedding, and the vectors that a similarity compares.

use akin_base::progress::Progress;
use akin_core::embeddings::Embeddings;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use anyhow::Result;
use nalgebra::DMatrix;
use rayon::prelude::*;

/// The most neighbours that a method uses: three times the perplexity of t-SNE.
const MOST: usize = 90;

/// The K nearest other items of each of N items, nearest first; K is 90, or N − 1 if that is less.
pub(super) struct Neighbours {
    /// [N, K]: items and their distances, at least 0.
    pub(super) rows: Vec<Vec<(usize, f32)>>,
}

impl Neighbours {
    /// Finds the neighbours of each item by comparing it with every other.
    pub(super) fn new(embeddings: &Embeddings, similarity: Similarity, progress: Progress) -> Result<Self> {
        // A dot product is no distance: longer vectors are nearer to everything.
        let similarity = if similarity == Similarity::Dot { Similarity::Euclidean } else { similarity };
        let gallery = Gallery::new(embeddings, similarity)?;
        let bar = progress.bar("Neighbours", embeddings.len() as u64);
        let row = |item: usize| {
            let hits = gallery.nearest(embeddings.row(item), MOST, Some(item))?;
            bar.advance(1);
            Ok(hits.iter().map(|hit| (hit.item, distance(similarity, hit.score))).collect())
        };
        let rows: akin_core::Result<_> = (0..embeddings.len()).into_par_iter().map(row).collect();
        Ok(Self { rows: rows? })
    }

    /// K.
    pub(super) fn per_item(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// The distance that belongs to a score: that of unit vectors for cosine.
fn distance(similarity: Similarity, score: f32) -> f32 {
    match similarity {
        Similarity::Cosine => (2.0 - 2.0 * score).max(0.0).sqrt(),
        Similarity::Euclidean | Similarity::Dot => (-score).max(0.0).sqrt(),
        Similarity::Poincare { .. } | Similarity::Hamming => (-score).max(0.0),
    }
}

/// The vectors that a similarity compares, [N, d]: of unit length for cosine, tangent vectors at the origin for the
/// Poincaré ball, ±1 for codes.
pub(super) fn vectors(embeddings: &Embeddings, similarity: Similarity) -> DMatrix<f64> {
    let (count, dimension) = (embeddings.len(), embeddings.dimension());
    let mut vectors =
        DMatrix::from_row_iterator(count, dimension, embeddings.values().iter().map(|&x| f64::from(x)));
    for mut row in vectors.row_iter_mut() {
        let length = row.norm();
        match similarity {
            Similarity::Cosine if length > 0.0 => row /= length,
            Similarity::Poincare { curvature } if length > 0.0 => {
                let root = curvature.value().sqrt();
                row *= (root * length).min(1.0 - 1e-12).atanh() / (root * length);
            }
            Similarity::Hamming => row.apply(|x| *x = if *x > 0.0 { 1.0 } else { -1.0 }),
            _ => {}
        }
    }
    vectors
}
