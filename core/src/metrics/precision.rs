use super::{Compute, MetricEntry, Unit};
use crate::ranking::{Decided, Ranking};

/// The metric `precision`.
pub(super) const PRECISION: MetricEntry = MetricEntry {
    name: "precision",
    symbol: "P",
    title: "precision at k, divided by k even where there are fewer positives",
    formula: "|positives of rank ≤ k| / k",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::FirstK(|input, k| precision(input.ranking, input.level, k)),
};

/// The metric `capped_precision`.
pub(super) const CAPPED_PRECISION: MetricEntry = MetricEntry {
    name: "capped_precision",
    symbol: "capped P",
    title: "precision at k, divided by the number of positives where there are fewer than k",
    formula: "|positives of rank ≤ k| / min(k, R)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::FirstK(|input, k| capped_precision(input.ranking, input.level, k)),
};

/// The metric `r_precision`.
pub(super) const R_PRECISION: MetricEntry = MetricEntry {
    name: "r_precision",
    symbol: "R-precision",
    title: "precision at R, the number of positives",
    formula: "|positives of rank ≤ R| / R",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::WholeList(|input| r_precision(input.ranking, input.level)),
};

/// P@k at a level, 1 … L: the share of the first k items that share the level or a finer one with the query.
///
/// In \[0, 1\], and below 1 when there are fewer than k positives. Ranks beyond the end of the list count as wrong.
/// `None` without positives at the level. Ties: in the order of the ranking's policy.
///
/// Where labels are unknown, it is the weight of the decided positives of rank at most k in the whole ranking, divided by
/// k. That is right in the mean over queries, see [`crate::unknown`].
pub fn precision(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    (decided.mass_at(level) > 0.0).then(|| found_within(&decided, level, k) / k as f64)
}

/// P@k at a level, 1 … L, relative to the best that a list can reach: P@k where there are at least k positives of the level,
/// and else [`true_recall`](super::true_recall).
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy. Where labels are unknown,
/// both numbers are weights, as in [`precision`].
pub fn capped_precision(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let all = decided.mass_at(level);
    (all > 0.0).then(|| found_within(&decided, level, k) / all.min(k as f64))
}

/// The weight of a level's positives of rank at most k in the whole ranking.
pub(super) fn found_within(decided: &Decided<'_>, level: usize, k: usize) -> f64 {
    let positives = decided.positives();
    let first = (0..positives.len()).take_while(|&place| decided.whole_rank(place) <= k);
    decided.weight(level) * first.filter(|&place| positives[place].level >= level).count() as f64
}

/// R-precision at a level: P@R, where R is the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn r_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let (positives, all) = (decided.positives(), decided.mass_at(level));
    let first = positives.iter().zip(decided.weighted_ranks(positives)).take_while(|(_, rank)| *rank <= all);
    let count = first.filter(|(positive, _)| positive.level >= level).count();
    (all > 0.0).then(|| decided.weight(level) * count as f64 / all)
}
