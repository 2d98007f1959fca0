use super::{Compute, MetricEntry, Unit};
use crate::ranking::{Decided, Ranking};

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
///
/// Where labels are unknown, the two lists are compared at every whole weighted rank n, by the weights of their items.
pub fn asi(ranking: &Ranking) -> Option<f64> {
    let decided = ranking.decided(0);
    if !decided.is_unweighted() {
        return weighted_asi(&decided);
    }
    let mut found = vec![0; decided.depth() + 1];
    let mut ideal = vec![0; decided.depth() + 1];
    let mut positives = decided.positives().iter().peekable();
    let (mut common, mut sum, mut n) = (0, 0.0, 0);
    for level in (1..=decided.depth()).rev() {
        for _ in 0..decided.counts()[level] {
            n += 1;
            // An item adds to the intersection when the other list is ahead at its level.
            common += usize::from(ideal[level] < found[level]);
            ideal[level] += 1;
            while let Some(k) = positives.next_if(|k| k.rank == n) {
                common += usize::from(found[k.level] < ideal[k.level]);
                found[k.level] += 1;
            }
            sum += common as f64 / n as f64;
        }
    }
    (n > 0).then(|| sum / n as f64)
}

fn weighted_asi(decided: &Decided<'_>) -> Option<f64> {
    let masses = decided.masses();
    let last = masses[1..].iter().sum::<f64>().round() as usize;
    let positives = decided.positives();
    let mut ranked = positives.iter().zip(decided.weighted_ranks(positives)).peekable();
    let mut found = vec![0.0; masses.len()];
    let mut sum = 0.0;
    for n in 1..=last {
        while let Some((positive, _)) = ranked.next_if(|(_, rank)| *rank <= n as f64) {
            found[positive.level] += decided.weight(positive.level);
        }
        let (mut room, mut common) = (n as f64, 0.0);
        for level in (1..masses.len()).rev() {
            let ideal = masses[level].min(room);
            room -= ideal;
            common += ideal.min(found[level]);
        }
        sum += common / n as f64;
    }
    (last > 0).then(|| sum / last as f64)
}
