use serde::{Deserialize, Serialize};

use super::Promise;
use super::measure::spread;
use crate::Result;
use crate::embeddings::Embeddings;
use crate::search::Gallery;
use crate::similarity::Similarity;
use crate::threads::in_order;

/// The distribution of the best scores of a gallery's own items, so that a page can say how unusual the best score
/// of a query is.
///
/// The best score of a gallery item is its score to the most similar *other* gallery item, by the similarity that the
/// encoder's embeddings are ranked by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BestScores {
    /// The 0th, 1st, … 100th percentile: 101 numbers, ascending. Of N sorted scores, percentile p is the one at
    /// position ⌊p (N − 1) / 100⌋, counted from 0: the first number is the lowest score, the last the highest.
    pub quantiles: Vec<f32>,
}

impl BestScores {
    /// The number of quantiles.
    pub const COUNT: usize = 101;

    /// The percentile below which a picture is unlike the gallery, see [`unlike_below`](Self::unlike_below).
    pub const UNLIKE_PERCENTILE: usize = 1;

    /// The distribution of the best scores of at most `most` rows of `embeddings`, evenly spread. `None` for fewer than two
    /// rows.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`](crate::Kind::Embeddings) for an embedding that the similarity is not defined for.
    pub fn of_gallery(embeddings: &Embeddings, similarity: Similarity, most: usize) -> Result<Option<Self>> {
        let gallery = Gallery::new(embeddings, similarity)?;
        let items = spread(gallery.len(), most);
        let best = |place| -> Result<Option<f32>> {
            let item = items[place];
            Ok(gallery.nearest(embeddings.row(item), 1, Some(item))?.first().map(|hit| hit.score))
        };
        let scores = in_order(items.len(), best).into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Self::from_scores(scores.into_iter().flatten().collect()))
    }

    /// The distribution of the best score of each gallery item, given in any order. `None` for no scores: a gallery
    /// of one item has no other item.
    pub fn from_scores(mut scores: Vec<f32>) -> Option<Self> {
        scores.sort_unstable_by(f32::total_cmp);
        let last = scores.len().checked_sub(1)?;
        let quantiles = (0..Self::COUNT).map(|p| scores[p * last / (Self::COUNT - 1)]).collect();
        Some(Self { quantiles })
    }

    /// The best score below which a picture is unlike everything in the gallery, so that neither its neighbours nor their
    /// votes say what it shows: the 1st percentile, which 99 % of the gallery's own items reach; from a promise of 99 % on
    /// the lowest best score, which all of them reach. `None` if there are too few percentiles.
    ///
    /// Of pictures that are exchangeable with the N items of the gallery, at most a share of 1 − promise is told so, if
    /// N + 1 ≥ 1 / (1 − promise): a picture is as likely to have any rank among the N + 1 best scores, and it is below the
    /// k-th lowest for k of these ranks.
    ///
    /// The percentile was chosen by measurement on the gallery of groceries, whose README has the rates: few photos of
    /// groceries that are not in the gallery have a lower best score, and most pictures of other things have.
    pub fn unlike_below(&self, promise: Promise) -> Option<f32> {
        let percentile = if promise.share() < 0.99 { Self::UNLIKE_PERCENTILE } else { 0 };
        self.quantiles.get(percentile).copied()
    }

    /// Whether a picture with this best score is unlike everything in the gallery.
    pub fn is_unlike(&self, best: f32, promise: Promise) -> bool {
        self.unlike_below(promise).is_some_and(|least| best < least)
    }

    /// Whether these are 101 finite numbers in ascending order.
    pub fn is_valid(&self) -> bool {
        self.quantiles.len() == Self::COUNT
            && self.quantiles.is_sorted()
            && self.quantiles.iter().all(|score| score.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_scores_from_the_lowest_to_the_highest() {
        let scores: Vec<f32> = (0..=200).rev().map(|score| score as f32).collect();
        let quantiles = BestScores::from_scores(scores).unwrap().quantiles;
        let expected: Vec<f32> = (0..=100).map(|p| 2.0 * p as f32).collect();
        assert_eq!(quantiles, expected);
    }

    #[test]
    fn the_best_score_of_an_item_is_that_of_another_item() {
        let rows = Embeddings::new(2, vec![1.0, 0.0, 0.6, 0.8, 0.0, 2.0]).unwrap();
        let scores = BestScores::of_gallery(&rows, Similarity::Cosine, rows.len()).unwrap();
        assert_eq!(scores, BestScores::from_scores(vec![0.6, 0.8, 0.8]));
        let one = Embeddings::new(2, vec![1.0, 0.0]).unwrap();
        assert_eq!(BestScores::of_gallery(&one, Similarity::Cosine, 1).unwrap(), None);
    }

    #[test]
    fn a_picture_is_unlike_below_the_first_percentile() {
        let scores = BestScores::from_scores((0..=100).map(|score| score as f32).collect()).unwrap();
        assert_eq!(scores.unlike_below(Promise::default()), Some(1.0));
        assert_eq!(scores.unlike_below(Promise::new(0.99).unwrap()), Some(0.0));
    }

    #[test]
    fn few_scores_repeat_and_none_have_no_distribution() {
        let quantiles = BestScores::from_scores(vec![0.5, -1.0]).unwrap().quantiles;
        assert_eq!(quantiles[..100], [-1.0; 100]);
        assert_eq!(quantiles[100], 0.5);
        assert_eq!(BestScores::from_scores(vec![]), None);
    }
}
