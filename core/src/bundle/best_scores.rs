use serde::{Deserialize, Serialize};

/// The distribution of the best scores of a gallery's own items, so that a page can say how unusual the best score
/// of a query is.
///
/// The best score of a gallery item is its score to the most similar *other* gallery item, by the similarity that the
/// encoder's embeddings are ranked by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestScores {
    /// The 0th, 1st, … 100th percentile: 101 numbers, ascending. Of N sorted scores, percentile p is the one at
    /// position ⌊p (N − 1) / 100⌋, counted from 0: the first number is the lowest score, the last the highest.
    pub quantiles: Vec<f32>,
}

impl BestScores {
    /// The number of quantiles.
    pub const COUNT: usize = 101;

    /// The distribution of the best score of each gallery item, given in any order. `None` for no scores: a gallery
    /// of one item has no other item.
    pub fn from_scores(mut scores: Vec<f32>) -> Option<Self> {
        scores.sort_unstable_by(f32::total_cmp);
        let last = scores.len().checked_sub(1)?;
        let quantiles = (0..Self::COUNT).map(|p| scores[p * last / (Self::COUNT - 1)]).collect();
        Some(Self { quantiles })
    }

    /// Whether these are 101 finite numbers in ascending order.
    pub(super) fn is_valid(&self) -> bool {
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
    fn few_scores_repeat_and_none_have_no_distribution() {
        let quantiles = BestScores::from_scores(vec![0.5, -1.0]).unwrap().quantiles;
        assert_eq!(quantiles[..100], [-1.0; 100]);
        assert_eq!(quantiles[100], 0.5);
        assert_eq!(BestScores::from_scores(vec![]), None);
    }
}
