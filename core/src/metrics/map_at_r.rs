use super::average_precision::of_first;
use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `map_at_r`.
pub(super) const MAP_AT_R: MetricEntry = MetricEntry {
    name: "map_at_r",
    symbol: "mAP@R",
    title: "average precision of the first R items",
    formula: "1/R Σ_{rank(i) ≤ R} rank⁺(i) / rank(i)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "musgrave2020",
    compute: Compute::WholeList(|input| map_at_r(input.ranking, input.level)),
};

/// mAP@R at a level, 1 … L: [AP@k](super::average_precision_at) with k = R, the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn map_at_r(ranking: &Ranking, level: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    of_first(&decided, level, decided.mass_at(level))
}
