//! Hierarchical precision (Deng et al., 2011) and its two averages over ranks, one by Barz & Denzler (2019) and one
//! by Zhang et al. (HPDH).

use crate::ranking::Ranking;

/// How alike two classes are, by where their lowest common ancestor (LCA) stands. In a tree of L levels below one
/// root, items of shared level l have an LCA of height L − l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassSimilarity {
    /// 1 − height(LCA) / height(root) = l / L. A stranger's is 0.
    LcaHeight,
    /// Wu–Palmer: 2 depth(LCA) / (depth(a) + depth(b)) = (l + 1) / (L + 1), the root's depth being 1. A stranger's is
    /// 1 / (L + 1).
    WuPalmer,
}

/// HP@k, hierarchical precision: how similar the first k items are, against the k most similar ones.
///
/// ```text
/// HP@k = Σ_{i: rank(i) ≤ k} s(i) / max over all lists of the same sum
/// ```
///
/// with the [`ClassSimilarity`] s. In \[0, 1\]; where the list is shorter than k, it is that of the whole list, which
/// is 1. `None` without positives. Ties: in the order of the ranking's policy. O(k).
pub fn hierarchical_precision(ranking: &Ranking, similarity: ClassSimilarity, k: usize) -> Option<f64> {
    curve(ranking, similarity, k)?.last()
}

/// AHP@k, the area under HP@1 … HP@k by the trapezoidal rule with steps of 1/k (Barz & Denzler, 2019):
///
/// ```text
/// AHP@k = 1/k · (Σ_{n ≤ k} HP@n − (HP@1 + HP@k) / 2)
/// ```
///
/// In \[0, (k − 1)/k\], the upper end for a perfect list: k points have k − 1 steps between them. Where the list is
/// shorter, k is its length. `None` without positives. Ties: in the order of the ranking's policy. O(k).
pub fn average_hierarchical_precision(
    ranking: &Ranking,
    similarity: ClassSimilarity,
    k: usize,
) -> Option<f64> {
    let (first, last) = (curve(ranking, similarity, 1)?.last()?, curve(ranking, similarity, k)?.last()?);
    let (sum, count) = curve(ranking, similarity, k)?.fold((0.0, 0), |(sum, n), hp| (sum + hp, n + 1));
    Some((sum - (first + last) / 2.0) / f64::from(count))
}

/// AHP@k as HPDH defines it, whose mean over queries is mAHP@k: the mean of HP@1 … HP@k with
/// [`ClassSimilarity::LcaHeight`].
///
/// ```text
/// mAHP@k = 1/k · Σ_{n ≤ k} HP@n
/// ```
///
/// In \[0, 1\], and 1 for a list by decreasing level. Where the list is shorter, k is its length. `None` without
/// positives. Ties: in the order of the ranking's policy. O(k).
pub fn mahp(ranking: &Ranking, k: usize) -> Option<f64> {
    let curve = curve(ranking, ClassSimilarity::LcaHeight, k)?;
    let (sum, count) = curve.fold((0.0, 0), |(sum, n), hp| (sum + hp, n + 1));
    Some(sum / f64::from(count))
}

/// HP@1 … HP@min(k, N). The sums are of whole numbers: L·s(i) = l(i), or (L + 1)·s(i) = l(i) + 1.
fn curve(ranking: &Ranking, similarity: ClassSimilarity, k: usize) -> Option<impl Iterator<Item = f64>> {
    let rootward = match similarity {
        ClassSimilarity::LcaHeight => 0,
        ClassSimilarity::WuPalmer => 1,
    };
    let mut positives = ranking.positives().iter().peekable();
    positives.peek()?;
    let mut ideal = ranking.ideal_levels();
    let (mut sum, mut best) = (0, 0);
    Some((1..=k.min(ranking.len())).map(move |rank| {
        sum += rootward + positives.next_if(|positive| positive.rank == rank).map_or(0, |k| k.level);
        best += rootward + ideal.next().unwrap_or(0);
        sum as f64 / best as f64
    }))
}
