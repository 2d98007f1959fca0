use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `recall`.
pub(super) const RECALL: MetricEntry = MetricEntry {
    name: "recall",
    symbol: "R",
    title: "recall at k: is there a positive among the first k items?",
    formula: "1 if the first positive's rank ≤ k, else 0",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "jegou2011",
    compute: Compute::FirstK(|input, k| recall(input.ranking, input.level, k)),
};

/// R@k at a level, 1 … L: 1 if one of the first k items shares the level or a finer one with the query, otherwise 0.
///
/// `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let first = ranking.positives().iter().find(|positive| positive.level >= level)?;
    Some(f64::from(u8::from(first.rank <= k)))
}
