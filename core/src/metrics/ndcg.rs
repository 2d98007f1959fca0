use std::sync::LazyLock;

use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `ndcg`.
pub(super) const NDCG: MetricEntry = MetricEntry {
    name: "ndcg",
    symbol: "NDCG",
    title: "normalised discounted cumulative gain, exponential gain",
    formula: "Σ_i (2^l(i) − 1) / log2(1 + rank(i)) / ideal",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "burges2005",
    compute: Compute::Either(|input, k| ndcg(input.ranking, Gain::Exponential, k)),
};

/// The metric `ndcg_linear`.
pub(super) const NDCG_LINEAR: MetricEntry = MetricEntry {
    name: "ndcg_linear",
    symbol: "NDCG linear",
    title: "normalised discounted cumulative gain, linear gain",
    formula: "Σ_i l(i) / log2(1 + rank(i)) / ideal",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "jarvelin2002",
    compute: Compute::Either(|input, k| ndcg(input.ranking, Gain::Linear, k)),
};

/// The gain of an item with shared level l in [`ndcg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// 2^l − 1, as in most publications.
    Exponential,
    /// l.
    Linear,
}

impl Gain {
    fn value(self, level: usize) -> f64 {
        match self {
            Self::Exponential => (level as f64).exp2() - 1.0,
            Self::Linear => level as f64,
        }
    }
}

/// NDCG, the normalised discounted cumulative gain of the first k items, or of the whole list:
///
/// ```text
/// DCG = Σ_{i: rank(i) ≤ k} gain(l(i)) / log2(1 + rank(i)),    NDCG = DCG / DCG of the first k of the ideal list
/// ```
///
/// where l(i) is the shared level; the ideal list holds all items by decreasing shared level. In \[0, 1\]; `None`
/// without positives. Ties: in the order of the ranking's policy.
pub fn ndcg(ranking: &Ranking, gain: Gain, k: Option<usize>) -> Option<f64> {
    let k = k.unwrap_or(usize::MAX);
    let gains: Vec<f64> = (0..=ranking.depth()).map(|level| gain.value(level)).collect();
    let discounted = |level: usize, rank: usize| gains[level] / discount(rank);
    let found = ranking.positives().iter().take_while(|positive| positive.rank <= k);
    // Not `sum`: the sum of no f64 is −0.
    let dcg = found.fold(0.0, |sum, positive| sum + discounted(positive.level, positive.rank));
    let ideal: f64 =
        ranking.ideal_levels().zip(1..).take(k).map(|(level, rank)| discounted(level, rank)).sum();
    (ideal > 0.0).then(|| (dcg / ideal).min(1.0)) // min: only rounding exceeds 1.
}

/// log2(1 + rank). The first ranks, where the whole ideal list usually is, are in a table.
fn discount(rank: usize) -> f64 {
    const TABLE: usize = 1 << 14;
    static FIRST: LazyLock<Vec<f64>> = LazyLock::new(|| (0..TABLE).map(compute).collect());
    fn compute(rank: usize) -> f64 {
        (1.0 + rank as f64).log2()
    }
    FIRST.get(rank).copied().unwrap_or_else(|| compute(rank))
}
