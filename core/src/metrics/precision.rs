use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

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
pub fn precision(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    (ranking.positives_at(level) > 0).then(|| positives_within(ranking, level, k) as f64 / k as f64)
}

/// P@k at a level, 1 … L, relative to the best that a list can reach: P@k where there are at least k positives of the level,
/// and else [`true_recall`](super::true_recall).
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn capped_precision(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    precision(ranking, level, k)
        .map(|_| positives_within(ranking, level, k) as f64 / k.min(ranking.positives_at(level)) as f64)
}

/// The number of a level's positives among the first k items.
pub(super) fn positives_within(ranking: &Ranking, level: usize, k: usize) -> usize {
    let found = ranking.positives().iter().take_while(|positive| positive.rank <= k);
    found.filter(|positive| positive.level >= level).count()
}

/// R-precision at a level: P@R, where R is the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn r_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    precision(ranking, level, ranking.positives_at(level))
}
