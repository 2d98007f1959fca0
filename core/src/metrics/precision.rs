use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `precision`.
pub(super) const PRECISION: MetricEntry = MetricEntry {
    name: "precision",
    symbol: "P",
    title: "precision at k",
    formula: "|positives of rank ≤ k| / k",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::FirstK(|input, k| precision(input.ranking, input.level, k)),
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
    let found = ranking.positives().iter().take_while(|positive| positive.rank <= k);
    let count = found.filter(|positive| positive.level >= level).count();
    (ranking.positives_at(level) > 0).then(|| count as f64 / k as f64)
}

/// R-precision at a level: P@R, where R is the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn r_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    precision(ranking, level, ranking.positives_at(level))
}
