use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `mrr`.
pub(super) const MRR: MetricEntry = MetricEntry {
    name: "mrr",
    symbol: "MRR",
    title: "mean reciprocal rank",
    formula: "1 / rank of the first positive",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "voorhees1999",
    compute: Compute::WholeList(|input| reciprocal_rank(input.ranking, input.level)),
};

/// The reciprocal rank at a level, 1 … L: 1 / rank of the first item that shares the level or a finer one with the
/// query. Its mean over queries is MRR.
///
/// In (0, 1]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn reciprocal_rank(ranking: &Ranking, level: usize) -> Option<f64> {
    let first = ranking.positives().iter().find(|positive| positive.level >= level)?;
    Some(1.0 / first.rank as f64)
}
