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

/// The metric `mean_ndcg`.
pub(super) const MEAN_NDCG: MetricEntry = MetricEntry {
    name: "mean_ndcg",
    symbol: "mean NDCG",
    title: "mean of the normalised discounted cumulative gains at ranks 1 … k, as in HPDH's code",
    formula: "1/k Σ_{n ≤ k} DCG(n) / ideal DCG(n), with DCG(n) = Σ_{rank(i) ≤ n} l(i) / log2(max(2, rank(i) − 1))",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "zhang2019",
    compute: Compute::FirstK(|input, k| mean_ndcg(input.ranking, k)),
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
///
/// Where labels are unknown, rank(i) is the rank in the whole ranking, each decided item counts with its weight, and the
/// ideal list has as many items of each level as their weight says. The value may then exceed 1, see [`crate::unknown`].
pub fn ndcg(ranking: &Ranking, gain: Gain, k: Option<usize>) -> Option<f64> {
    let k = k.unwrap_or(usize::MAX);
    let decided = ranking.decided(0);
    let gains: Vec<f64> = (0..=decided.depth()).map(|level| gain.value(level)).collect();
    let (discount, mut dcg) = (discount(), 0.0);
    for (place, positive) in decided.positives().iter().enumerate() {
        let rank = decided.whole_rank(place);
        if rank > k {
            break;
        }
        dcg += decided.weight(positive.level) * gains[positive.level] / discount(rank);
    }
    let ideal = match decided.is_unweighted() {
        true => ideal_dcg_of_counts(decided.counts(), &gains, k),
        false => ideal_dcg(&decided.masses(), &gains, k),
    };
    let most = if decided.is_unweighted() { 1.0 } else { f64::INFINITY }; // Only rounding exceeds 1.
    (ideal > 0.0).then(|| (dcg / ideal).min(most))
}

/// The DCG of the first k of the ideal list, of which `counts` has the number of items of each level: [`ideal_dcg`] of whole
/// numbers, where no two levels share a rank.
fn ideal_dcg_of_counts(counts: &[usize], gains: &[f64], k: usize) -> f64 {
    let (discount, mut dcg, mut filled) = (discount(), 0.0, 0);
    for level in (1..counts.len()).rev() {
        let end = (filled + counts[level]).min(k);
        dcg = (filled..end).fold(dcg, |dcg, above| dcg + gains[level] / discount(above + 1));
        filled = end;
    }
    dcg
}

/// The DCG of the first k of the ideal list, of which `masses` has the number of items of each level. If it is not whole,
/// two levels share a rank.
fn ideal_dcg(masses: &[f64], gains: &[f64], k: usize) -> f64 {
    let (discount, mut dcg, mut filled, mut end) = (discount(), 0.0, 0.0_f64, 0.0_f64);
    for level in (1..masses.len()).rev() {
        end = (end + masses[level]).min(k as f64);
        while filled < end {
            let rank = filled.floor() + 1.0;
            let next = rank.min(end);
            dcg += (next - filled) * gains[level] / discount(rank as usize);
            filled = next;
        }
    }
    dcg
}

/// The function log2(1 + rank). The first ranks, where the whole ideal list usually is, are in a table.
fn discount() -> impl Fn(usize) -> f64 {
    const TABLE: usize = 1 << 14;
    static FIRST: LazyLock<Vec<f64>> = LazyLock::new(|| (0..TABLE).map(compute).collect());
    fn compute(rank: usize) -> f64 {
        (1.0 + rank as f64).log2()
    }
    let first = FIRST.as_slice();
    move |rank| first.get(rank).copied().unwrap_or_else(|| compute(rank))
}

/// The nDCG@k that HPDH's published code computes, under the name of [`ndcg`] with a linear gain:
///
/// ```text
/// 1/k Σ_{n ≤ k} DCG(n) / ideal DCG(n),    DCG(n) = Σ_{i: rank(i) ≤ n} l(i) / d(rank(i))
/// d(1) = d(2) = d(3) = 1,    d(rank) = log2(rank − 1)
/// ```
///
/// It is the mean over the first k ranks where [`ndcg`] is the value at rank k, and its discount begins two ranks later.
/// For a shorter list k is its length. In \[0, 1\]; `None` without positives. Ties: in the order of the ranking's policy. O(k).
pub fn mean_ndcg(ranking: &Ranking, k: usize) -> Option<f64> {
    let decided = ranking.decided(0);
    let mut positives = decided.positives().iter().peekable();
    positives.peek()?;
    let mut ideal = decided.ideal_levels();
    let (mut dcg, mut best, mut sum) = (0.0, 0.0, 0.0);
    let k = k.min(decided.len());
    for rank in 1..=k {
        let discount = (rank.max(3) as f64 - 1.0).log2();
        while let Some(positive) = positives.next_if(|positive| positive.rank == rank) {
            dcg += positive.level as f64 / discount;
        }
        best += ideal.next().unwrap_or(0) as f64 / discount;
        sum += dcg / best;
    }
    Some((sum / k as f64).min(1.0)) // min: only rounding exceeds 1.
}
