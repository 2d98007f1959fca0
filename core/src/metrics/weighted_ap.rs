use super::{Compute, MetricEntry, Unit, average_precision};
use crate::ranking::Ranking;
use crate::relevance::CheckedRelevance;

/// The metric `weighted_ap`.
pub(super) const WEIGHTED_AP: MetricEntry = MetricEntry {
    name: "weighted_ap",
    symbol: "Σ wAP",
    title: "weighted sum of the AP of every level; weights of a `weighted_ap` relevance, otherwise equal",
    formula: "Σ_l w_l AP(l) / Σ_l w_l",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "ramzi2022",
    compute: Compute::WholeList(|input| weighted_ap(input.ranking, input.relevance)),
};

/// Σ wAP, the weighted sum of the AP of every level (HAPPIER, property 1):
///
/// ```text
/// Σ wAP = Σ_l w_l AP^(l) / Σ_l w_l
/// ```
///
/// over the levels l that have positives; the weights of the other levels are left out. The weights are those of
/// [`Relevance::WeightedAp`](crate::relevance::Relevance::WeightedAp), or 1 for every level with any other relevance.
///
/// In (0, 1]; `None` without positives at a level of positive weight. Ties: as in [`average_precision`]. With a
/// `WeightedAp` relevance it equals H-AP, unless the query is counted.
pub fn weighted_ap(ranking: &Ranking, relevance: &CheckedRelevance) -> Option<f64> {
    if ranking.known().is_some_and(|known| known.query < ranking.depth()) {
        return None;
    }
    let levels = (1..=ranking.depth()).zip(relevance.level_weights());
    let with_positives =
        levels.filter_map(|(level, weight)| Some((weight, average_precision(ranking, level)?)));
    let (sum, total) =
        with_positives.fold((0.0, 0.0), |(sum, total), (weight, ap)| (sum + weight * ap, total + weight));
    (total > 0.0).then(|| (sum / total).min(1.0)) // min: only rounding exceeds 1.
}
