use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `asi`.
pub(super) const ASI: MetricEntry = MetricEntry {
    name: "asi",
    symbol: "ASI",
    title: "average set intersection with the ideal list",
    formula: "1/P Σ_{n ≤ P} 1/n Σ_{l ≥ 1} min(n_l, ideal n_l)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "sun2021",
    compute: Compute::WholeList(|input| asi(input.ranking)),
};

/// ASI, the average set intersection of the list with the ideal list:
///
/// ```text
/// ASI = 1 / P · Σ_{n = 1 … P} SI(n),    SI(n) = 1 / n · Σ_{l ≥ 1} min(top n of level l, ideal top n of level l)
/// ```
///
/// for P positives. The ideal list is ordered by decreasing shared level. In \[0, 1\]; `None` without positives.
/// Ties: in the order of the ranking's policy.
pub fn asi(ranking: &Ranking) -> Option<f64> {
    let mut found = vec![0; ranking.depth() + 1];
    let mut ideal = vec![0; ranking.depth() + 1];
    let mut positives = ranking.positives().iter().peekable();
    let (mut common, mut sum, mut n) = (0, 0.0, 0);
    for level in ranking.ideal_levels() {
        n += 1;
        // An item adds to the intersection when the other list is ahead at its level.
        common += usize::from(ideal[level] < found[level]);
        ideal[level] += 1;
        if let Some(k) = positives.next_if(|k| k.rank == n) {
            common += usize::from(found[k.level] < ideal[k.level]);
            found[k.level] += 1;
        }
        sum += common as f64 / n as f64;
    }
    (n > 0).then(|| sum / n as f64)
}
