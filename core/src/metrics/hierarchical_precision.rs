//! Hierarchical precision (Deng et al., 2011) and two averages of it over ranks: one by Barz & Denzler (2019), one by
//! Zhang et al. (HPDH).

use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

/// The metric `hierarchical_precision`.
pub(super) const HIERARCHICAL_PRECISION: MetricEntry = MetricEntry {
    name: "hierarchical_precision",
    symbol: "HP",
    title: "hierarchical precision, similarity by the height of the lowest common ancestor",
    formula: "Σ_{rank(i) ≤ k} l(i)/L / ideal",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "deng2011",
    compute: Compute::FirstK(|input, k| hierarchical_precision(input.ranking, ClassSimilarity::LcaHeight, k)),
};

/// The metric `wu_palmer_precision`.
pub(super) const WU_PALMER_PRECISION: MetricEntry = MetricEntry {
    name: "wu_palmer_precision",
    symbol: "HP Wu-Palmer",
    title: "hierarchical precision, Wu-Palmer similarity",
    formula: "Σ_{rank(i) ≤ k} (l(i) + 1)/(L + 1) / ideal",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "deng2011",
    compute: Compute::FirstK(|input, k| hierarchical_precision(input.ranking, ClassSimilarity::WuPalmer, k)),
};

/// The metric `ahp`.
pub(super) const AHP: MetricEntry = MetricEntry {
    name: "ahp",
    symbol: "AHP",
    title: "area under hierarchical precision by the trapezoidal rule, at most (k − 1)/k",
    formula: "1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "barz2019",
    compute: Compute::FirstK(|input, k| {
        average_hierarchical_precision(input.ranking, ClassSimilarity::LcaHeight, k)
    }),
};

/// The metric `wu_palmer_ahp`.
pub(super) const WU_PALMER_AHP: MetricEntry = MetricEntry {
    name: "wu_palmer_ahp",
    symbol: "AHP Wu-Palmer",
    title: "area under hierarchical precision as `ahp`, with Wu-Palmer similarity",
    formula: "1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "barz2019",
    compute: Compute::FirstK(|input, k| {
        average_hierarchical_precision(input.ranking, ClassSimilarity::WuPalmer, k)
    }),
};

/// The metric `mahp`.
pub(super) const MAHP: MetricEntry = MetricEntry {
    name: "mahp",
    symbol: "mAHP",
    title: "mean of hierarchical precision over the first k ranks",
    formula: "1/k Σ_{n ≤ k} HP@n",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "zhang2019",
    compute: Compute::FirstK(|input, k| mahp(input.ranking, k)),
};

/// The similarity of two classes, from the height of their lowest common ancestor (LCA). In a tree of L levels below
/// one root, the LCA of items with shared level l has the height L − l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassSimilarity {
    /// 1 − height(LCA) / height(root) = l / L; 0 for a stranger.
    LcaHeight,
    /// Wu–Palmer: 2 depth(LCA) / (depth(a) + depth(b)) = (l + 1) / (L + 1), where the root has depth 1; 1 / (L + 1) for
    /// a stranger.
    WuPalmer,
}

/// HP@k, hierarchical precision: the similarity of the first k items, relative to the k most similar items.
///
/// ```text
/// HP@k = Σ_{i: rank(i) ≤ k} s(i) / max over all lists of the same sum
/// ```
///
/// with the [`ClassSimilarity`] s. In \[0, 1\]. For a list of fewer than k items it is computed over the whole list and
/// is 1. `None` without positives. Ties: in the order of the ranking's policy. O(k).
pub fn hierarchical_precision(ranking: &Ranking, similarity: ClassSimilarity, k: usize) -> Option<f64> {
    curve(ranking, similarity, k)?.last().copied()
}

/// AHP@k, the area under HP@1 … HP@k by the trapezoidal rule with steps of 1/k (Barz & Denzler, 2019):
///
/// ```text
/// AHP@k = 1/k · (Σ_{n ≤ k} HP@n − (HP@1 + HP@k) / 2)
/// ```
///
/// In \[0, (k − 1)/k\]; a perfect list reaches the upper end, because k points have k − 1 steps between them. For a
/// shorter list k is its length. `None` without positives. Ties: in the order of the ranking's policy. O(k).
pub fn average_hierarchical_precision(
    ranking: &Ranking,
    similarity: ClassSimilarity,
    k: usize,
) -> Option<f64> {
    let curve = curve(ranking, similarity, k)?;
    let sum = curve.iter().fold(0.0, |sum, hp| sum + hp);
    Some((sum - (curve.first()? + curve.last()?) / 2.0) / curve.len() as f64)
}

/// AHP@k as HPDH defines it, whose mean over queries is mAHP@k: the mean of HP@1 … HP@k with
/// [`ClassSimilarity::LcaHeight`].
///
/// ```text
/// mAHP@k = 1/k · Σ_{n ≤ k} HP@n
/// ```
///
/// In \[0, 1\], and 1 for a list by decreasing shared level. For a shorter list k is its length. `None` without
/// positives. Ties: in the order of the ranking's policy. O(k).
pub fn mahp(ranking: &Ranking, k: usize) -> Option<f64> {
    let curve = curve(ranking, ClassSimilarity::LcaHeight, k)?;
    Some(curve.iter().fold(0.0, |sum, hp| sum + hp) / curve.len() as f64)
}

/// HP@1 … HP@min(k, N). Sums whole numbers, L·s(i) = l(i) or (L + 1)·s(i) = l(i) + 1, so that nothing is rounded.
fn curve(ranking: &Ranking, similarity: ClassSimilarity, k: usize) -> Option<Vec<f64>> {
    let offset = match similarity {
        ClassSimilarity::LcaHeight => 0,
        ClassSimilarity::WuPalmer => 1,
    };
    let decided = ranking.decided(0);
    let mut positives = decided.positives().iter().peekable();
    positives.peek()?;
    let mut ideal = decided.ideal_levels();
    let (mut sum, mut best) = (0, 0);
    let hp = |rank| {
        sum += offset;
        while let Some(k) = positives.next_if(|positive| positive.rank == rank) {
            sum += k.level;
        }
        best += offset + ideal.next().unwrap_or(0);
        sum as f64 / best as f64
    };
    Some((1..=k.min(decided.len())).map(hp).collect())
}
