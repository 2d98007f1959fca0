use super::precision::positives_within;
use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `recall`.
pub(super) const RECALL: MetricEntry = MetricEntry {
    name: "recall",
    symbol: "R",
    title: "hit rate at k, which metric learning calls recall: is there a positive among the first k items?",
    formula: "1 if the first positive's rank ≤ k, else 0",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "jegou2011",
    compute: Compute::FirstK(|input, k| recall(input.ranking, input.level, k)),
};

/// The metric `true_recall`.
pub(super) const TRUE_RECALL: MetricEntry = MetricEntry {
    name: "true_recall",
    symbol: "true R",
    title: "recall at k as information retrieval has it: the share of the positives among the first k items",
    formula: "|positives of rank ≤ k| / R",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::FirstK(|input, k| true_recall(input.ranking, input.level, k)),
};

/// R@k at a level, 1 … L: 1 if one of the first k items shares the level or a finer one with the query, otherwise 0.
///
/// `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let first = ranking.positives().iter().find(|positive| positive.level >= level)?;
    Some(f64::from(u8::from(first.rank <= k)))
}

/// The share of a level's R positives, 1 … L, that are among the first k items.
///
/// In \[0, 1\], and below 1 when there are more than k positives. `None` without positives at the level. Ties: in the
/// order of the ranking's policy.
pub fn true_recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let r = ranking.positives_at(level);
    (r > 0).then(|| positives_within(ranking, level, k) as f64 / r as f64)
}
