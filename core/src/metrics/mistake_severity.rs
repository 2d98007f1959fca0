use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `mistake_severity`.
pub(super) const MISTAKE_SEVERITY: MetricEntry = MetricEntry {
    name: "mistake_severity",
    symbol: "severity",
    title: "height of the lowest common ancestor of the query and the first wrong item",
    formula: "L − l(first wrong item)",
    unit: Unit::Levels,
    greater_is_better: false,
    per_level: false,
    source: "bertinetto2020",
    compute: Compute::WholeList(|input| mistake_severity(input.ranking)),
};

/// The severity of the first mistake (Bertinetto et al., 2020): the height, in levels, of the lowest common ancestor
/// of the query and the first item that is not of the query's finest class.
///
/// ```text
/// severity = L − l(first wrong item)
/// ```
///
/// From 0 to L; smaller is better. 1 is a sibling, L a stranger, and 0 means that no item of the list is wrong. `None`
/// without positives. Ties: in the order of the ranking's policy. Under
/// [`Shared`](crate::ranking::TiePolicy::Shared) several wrong items may be the first; the least relevant of them counts.
pub fn mistake_severity(ranking: &Ranking) -> Option<f64> {
    let ranking = ranking.decided(0);
    let depth = ranking.depth();
    let positives = ranking.positives();
    let mut right = 0;
    for together in positives.chunk_by(|a, b| a.rank == b.rank) {
        right += together.len();
        // Strangers are above these items or tied with them.
        let level = if together[0].rank > right { Some(0) } else { together.iter().map(|k| k.level).min() };
        if let Some(level) = level.filter(|&level| level < depth) {
            return Some((depth - level) as f64);
        }
    }
    let level = if right == ranking.len() { depth } else { 0 };
    (right > 0).then(|| (depth - level) as f64)
}
