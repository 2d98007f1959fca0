//! Exact search: the ranked list of one query.

use crate::embeddings::Embeddings;
use crate::hamming::Codes;
use crate::ranking::sort_key;
use crate::similarity::{Items, Points, Similarity};
use crate::{Error, Kind, Result};

/// A gallery prepared for search.
///
/// ```
/// use akin_core::embeddings::Embeddings;
/// use akin_core::similarity::Similarity;
/// use akin_core::search::Gallery;
///
/// let items = Embeddings::new(2, vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8])?;
/// let gallery = Gallery::new(&items, Similarity::Cosine)?;
/// let nearest = gallery.nearest(&[0.0, 2.0], 2, None)?;
/// assert_eq!(nearest[0].item, 1);
/// assert_eq!(nearest[1].score, 0.8);
/// # Ok::<(), akin_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gallery {
    items: Items,
    similarity: Similarity,
    dimension: usize,
}

/// One search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The item's row in the gallery.
    pub item: usize,
    /// Its similarity to the query. A larger score is nearer.
    pub score: f32,
}

impl Gallery {
    /// Prepares a gallery for one similarity.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] for an embedding that the similarity is not defined for; the error names its row.
    pub fn new(embeddings: &Embeddings, similarity: Similarity) -> Result<Self> {
        let items = Points::checked(similarity, embeddings, "gallery")?.into();
        Ok(Self { items, similarity, dimension: embeddings.dimension() })
    }

    /// The number of items.
    #[expect(clippy::len_without_is_empty, reason = "a gallery is searched, not asked whether it is empty")]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The codes of the items, if they are compared by Hamming distance.
    pub fn codes(&self) -> Option<&Codes> {
        self.items.codes()
    }

    /// The score of every item, in gallery order.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] for a query of another dimension, or one that the similarity is not defined for.
    pub fn scores(&self, query: &[f32]) -> Result<Vec<f32>> {
        if query.len() != self.dimension {
            return Err(Error::new(
                Kind::Embeddings,
                format!(
                    "the query has {} numbers, but the gallery's embeddings have {}",
                    query.len(),
                    self.dimension
                ),
                "embed the query with the encoder of the gallery",
            ));
        }
        let query = Embeddings::new(self.dimension, query.to_vec())?;
        Ok(self.items.scores(&Points::checked(self.similarity, &query, "query")?.batch(0..1)))
    }

    /// The `k` nearest items, or all items if there are fewer; best first, ties in gallery order. `excluded` is the
    /// query's own row, if it is in the gallery.
    ///
    /// # Errors
    ///
    /// As [`scores`](Self::scores).
    pub fn nearest(&self, query: &[f32], k: usize, excluded: Option<usize>) -> Result<Vec<Hit>> {
        Ok(top_k(&self.scores(query)?, k, excluded))
    }
}

/// The `k` best of finite scores in gallery order; best first, ties in gallery order. Only the `k` best are sorted:
/// O(N + k log k).
pub fn top_k(scores: &[f32], k: usize, excluded: Option<usize>) -> Vec<Hit> {
    let items = (0..scores.len()).filter(|&item| Some(item) != excluded);
    let mut keys: Vec<u64> = items.map(|item| sort_key(scores[item], item)).collect();
    if k < keys.len() {
        keys.select_nth_unstable(k);
        keys.truncate(k);
    }
    keys.sort_unstable();
    let hit = |key: u64| {
        let item = key as u32 as usize; // The low half of the key.
        Hit { item, score: scores[item] }
    };
    keys.into_iter().map(hit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(hits: &[Hit]) -> Vec<usize> {
        hits.iter().map(|hit| hit.item).collect()
    }

    #[test]
    fn the_best_come_first_and_ties_in_gallery_order() {
        let scores = [0.5, -1.0, 0.5, 0.9, 0.0, -0.0];
        assert_eq!(items(&top_k(&scores, 3, None)), [3, 0, 2]);
        assert_eq!(items(&top_k(&scores, 99, None)), [3, 0, 2, 4, 5, 1]);
        assert!(top_k(&scores, 0, None).is_empty());
        assert!(top_k(&[], 3, None).is_empty());
    }

    #[test]
    fn a_query_never_finds_itself() {
        let twins = Embeddings::new(2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0]).unwrap();
        let gallery = Gallery::new(&twins, Similarity::Euclidean).unwrap();
        assert_eq!(items(&gallery.nearest(twins.row(0), 9, Some(0)).unwrap()), [1, 2]);
    }

    #[test]
    fn a_query_of_another_dimension_is_refused() {
        let gallery = Gallery::new(&Embeddings::new(2, vec![1.0, 0.0]).unwrap(), Similarity::Cosine).unwrap();
        assert!(gallery.scores(&[1.0]).unwrap_err().message().contains("the query has 1 numbers"));
        assert!(gallery.scores(&[f32::NAN, 0.0]).is_err());
        assert!(gallery.scores(&[0.0, 0.0]).is_err());
    }
}
