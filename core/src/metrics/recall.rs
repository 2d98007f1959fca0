use super::precision::found_within;
use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;
use crate::unknown::LARGEST_FACTOR_WEIGHT;

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
///
/// Where labels are unknown, it is 1 − Π (1 − w_i) over the decided positives of rank at most k in the whole ranking. That
/// is right in the mean over queries, see [`crate::unknown`], and for a single query it may be above 1. For k > 1 and a
/// weight above 2 its variance would be too large: then it is 1 if the first decided positive has a weighted rank of at
/// most k.
pub fn recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let (positives, weight) = (decided.positives(), decided.weight(level));
    let mut places = (0..positives.len()).filter(|&place| positives[place].level >= level).peekable();
    let first = *places.peek()?;
    if k > 1 && weight > LARGEST_FACTOR_WEIGHT {
        return Some(f64::from(u8::from(decided.weighted_ranks(positives)[first] <= k as f64)));
    }
    let found = places.take_while(|&place| decided.whole_rank(place) <= k).count();
    Some(1.0 - (1.0 - weight).powi(i32::try_from(found).unwrap_or(i32::MAX)))
}

/// The share of a level's R positives, 1 … L, that are among the first k items.
///
/// In \[0, 1\], and below 1 when there are more than k positives. `None` without positives at the level. Ties: in the
/// order of the ranking's policy. Where labels are unknown, both numbers are weights, as in [`precision`](super::precision).
pub fn true_recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let all = decided.mass_at(level);
    (all > 0.0).then(|| found_within(&decided, level, k) / all)
}
