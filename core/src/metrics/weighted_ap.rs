use super::average_precision;
use crate::ranking::Ranking;

/// Σ wAP, the weighted sum of the AP of every level (HAPPIER, property 1):
///
/// ```text
/// Σ wAP = Σ_l w_l AP^(l) / Σ_l w_l
/// ```
///
/// over the levels l that have positives, so that the weights of the others are left out and the rest rescaled.
/// `weights` are w_1 … w_L, coarse → fine. In (0, 1]; `None` without positives at a level of positive weight.
///
/// It is H-AP with [`Relevance::WeightedAp`](crate::relevance::Relevance::WeightedAp), as long as the query is not
/// counted. Ties: as in [`average_precision`].
pub fn weighted_ap(ranking: &Ranking, weights: &[f64]) -> Option<f64> {
    let levels = (1..=ranking.depth()).zip(weights);
    let with_positives =
        levels.filter_map(|(level, weight)| Some((weight, average_precision(ranking, level)?)));
    let (sum, total) =
        with_positives.fold((0.0, 0.0), |(sum, total), (weight, ap)| (sum + weight * ap, total + weight));
    (total > 0.0).then(|| (sum / total).min(1.0)) // min: only rounding exceeds 1.
}
