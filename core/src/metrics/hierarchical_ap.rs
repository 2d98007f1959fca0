use super::{Compute, MetricEntry, Unit};
use crate::ranking::{Positive, Ranking};
use crate::relevance::CheckedRelevance;

/// The metric `h_ap`.
pub(super) const H_AP: MetricEntry = MetricEntry {
    name: "h_ap",
    symbol: "H-AP",
    title: "hierarchical average precision",
    formula: "Σ_i H-rank(i) / rank(i) / Σ_i rel(i)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "ramzi2022",
    compute: Compute::WholeList(|input| hierarchical_ap(input.ranking, input.relevance)),
};

/// The metric `h_precision`.
pub(super) const H_PRECISION: MetricEntry = MetricEntry {
    name: "h_precision",
    symbol: "H-P",
    title: "hierarchical precision at rank k of the H-AP curve",
    formula: "Σ_{rank(i) ≤ k} min(rel(i), rel_k) / (k rel_k)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "ramzi2022",
    compute: Compute::FirstK(|input, k| h_precision(input.ranking, input.relevance, k)),
};

/// The metric `h_recall`.
pub(super) const H_RECALL: MetricEntry = MetricEntry {
    name: "h_recall",
    symbol: "H-R",
    title: "hierarchical recall at rank k of the H-AP curve",
    formula: "Σ_{rank(i) ≤ k} rel(i) / Σ_i rel(i)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: false,
    source: "ramzi2022",
    compute: Compute::FirstK(|input, k| h_recall(input.ranking, input.relevance, k)),
};

/// H-AP, the hierarchical average precision (HAPPIER, eq. 2–3):
///
/// ```text
/// H-AP = 1 / Σ_k rel(k) · Σ_k H-rank(k) / rank(k),    H-rank(k) = rel(k) + Σ_{j above k} min(rel(j), rel(k))
/// ```
///
/// over the positives k. With L = 1 it is AP. It is 1 exactly when the list is in order of decreasing relevance. In
/// (0, 1]; `None` when every ranked item has relevance 0.
///
/// Ties: in the order of the ranking's policy, by relevance instead of level; under
/// [`Strict`](crate::ranking::TiePolicy::Strict) tied items do not count as above each other, under
/// [`Shared`](crate::ranking::TiePolicy::Shared) they do. O(P·L) for P positives.
///
/// # Panics
///
/// When the relevance was checked for another number of levels than the ranking has; so do all functions that take a
/// relevance.
pub fn hierarchical_ap(ranking: &Ranking, relevance: &CheckedRelevance) -> Option<f64> {
    let decided = ranking.decided(0);
    let rel = relevance.by_mass(&decided.class_sizes());
    let total: f64 = rel.iter().zip(decided.masses()).map(|(rel, mass)| rel * mass).sum();
    if total == 0.0 {
        return None;
    }
    // above[l]: the weight of the items of Ω(l) above. Levels of equal relevance are counted apart, so that no item counts
    // twice.
    let mut above = vec![0.0; rel.len()];
    let mut sum = 0.0;
    let positives = decided.ties_by_relevance(&rel);
    if decided.is_plain() {
        // What the loop below comes to, without a copy of the ranks.
        for k in positives.iter() {
            let rel_k = rel[k.level];
            let shared: f64 = above.iter().zip(&rel).map(|(count, rel_j)| count * rel_j.min(rel_k)).sum();
            sum += (rel_k + shared) / k.rank as f64;
            above[k.level] += 1.0;
        }
        return Some((sum / total).min(1.0));
    }
    let ranks = decided.ranks_of_steps(&positives);
    let add = |above: &mut [f64], group: &[Positive]| {
        group.iter().for_each(|k| above[k.level] += decided.weight(k.level));
    };
    for group in decided.rank_groups(&positives) {
        let ties_count = decided.ties_count() && group.len() > 1;
        if ties_count {
            add(&mut above, &positives[group.clone()]);
        }
        for (k, rank) in positives[group.clone()].iter().zip(&ranks[group.clone()]) {
            let (rel_k, weight) = (rel[k.level], decided.weight(k.level));
            let shared: f64 = above.iter().zip(&rel).map(|(count, &rel_j)| count * rel_j.min(rel_k)).sum();
            // An item is among those above that count its tie, and it counts 1 in its own H-rank.
            let own = if ties_count { 1.0 - weight } else { 1.0 };
            sum += weight * (own * rel_k + shared) / rank;
        }
        if !ties_count {
            add(&mut above, &positives[group]);
        }
    }
    Some((sum / total).min(1.0)) // min: only rounding exceeds 1.
}

/// One point of the [`precision_recall_curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The rank r of an item with a relevance above 0.
    pub rank: usize,
    /// H-R@r, the share of all relevance in the first r items. In (0, 1].
    pub recall: f64,
    /// H-P@r, the relevance of the first r items, each capped at that of item r, relative to r items like item r. In
    /// (0, 1].
    pub precision: f64,
}

/// The H-precision/H-recall curve (HAPPIER, eq. 9–11):
///
/// ```text
/// H-R@r = Σ_{j ≤ r} rel(j) / Σ_j rel(j),    H-P@r = Σ_{j ≤ r} min(rel(j), rel(r)) / (r · rel(r))
/// ```
///
/// at every rank r of an item with a relevance above 0. At other ranks recall does not change and H-P is undefined. The
/// area Σ_r H-P@r · (H-R@r − H-R@(r−1)) is H-AP. Empty when every ranked item has relevance 0.
///
/// Ties: in the order of the ranking's policy, by relevance instead of level. Under
/// [`Shared`](crate::ranking::TiePolicy::Shared) tied items have one rank, and each has a point there.
pub fn precision_recall_curve(ranking: &Ranking, relevance: &CheckedRelevance) -> Vec<CurvePoint> {
    let decided = ranking.decided(0);
    let rel = relevance.by_mass(&decided.class_sizes());
    let total: f64 = rel.iter().zip(decided.counts()).map(|(rel, &count)| rel * count as f64).sum();
    let (mut found, mut passed) = (vec![0.0; rel.len()], vec![0.0; rel.len()]);
    let sum = |counts: &[f64], value: &dyn Fn(f64) -> f64| -> f64 {
        counts.iter().zip(&rel).map(|(count, &rel_j)| count * value(rel_j)).sum()
    };
    let mut curve = Vec::new();
    for together in decided.ties_by_relevance(&rel).chunk_by(|a, b| a.rank == b.rank) {
        together.iter().for_each(|r| found[r.level] += 1.0);
        for r in together.iter().filter(|r| rel[r.level] > 0.0) {
            passed[r.level] += 1.0;
            curve.push(CurvePoint {
                rank: r.rank,
                recall: sum(&passed, &|rel_j| rel_j) / total,
                precision: sum(&found, &|rel_j| rel_j.min(rel[r.level])) / (r.rank as f64 * rel[r.level]),
            });
        }
    }
    curve
}

/// H-R@k, the share of all relevance in the first k items (HAPPIER, eq. 9): the recall of the
/// [`precision_recall_curve`], at any rank.
///
/// In \[0, 1\]; it never falls as k grows, and is 1 for the whole list. `None` when every ranked item has relevance 0.
/// Ties: as in the curve.
pub fn h_recall(ranking: &Ranking, relevance: &CheckedRelevance, k: usize) -> Option<f64> {
    let decided = ranking.decided(0);
    let rel = relevance.by_mass(&decided.class_sizes());
    let sum = |levels: &mut dyn Iterator<Item = usize>| {
        levels.fold(0.0, |sum, level| sum + decided.weight(level) * rel[level])
    };
    let all = decided.ties_by_relevance(&rel);
    let total = sum(&mut all.iter().map(|positive| positive.level));
    let first = (0..all.len()).take_while(|&place| decided.whole_rank(place) <= k);
    let found = sum(&mut first.map(|place| all[place].level));
    (total > 0.0).then(|| found / total)
}

/// H-P@k, the relevance of the first k items, each capped at that of item k, relative to k items like item k (HAPPIER,
/// eq. 10): the precision of the [`precision_recall_curve`], at any rank.
///
/// When item k has relevance 0, or the list is shorter than k, the formula is 0/0. The value is then its limit as the
/// relevance goes to 0: the share of items with a relevance above 0 among the first k.
///
/// In \[0, 1\]; `None` when every ranked item has relevance 0. Ties: as in the curve. A better order can lower it: a
/// more relevant item at rank k raises the divisor. Where several have rank k, as
/// [`Shared`](crate::ranking::TiePolicy::Shared) allows, the least relevant of them is item k.
pub fn h_precision(ranking: &Ranking, relevance: &CheckedRelevance, k: usize) -> Option<f64> {
    let decided = ranking.decided(0);
    let rel = relevance.by_mass(&decided.class_sizes());
    let all = decided.ties_by_relevance(&rel);
    if !all.iter().any(|positive| rel[positive.level] > 0.0) {
        return None;
    }
    let first: Vec<_> = all.iter().take_while(|positive| positive.rank <= k).collect();
    let last = first.last().filter(|positive| positive.rank == k).map_or(0.0, |positive| rel[positive.level]);
    let share = |rel: f64| if last > 0.0 { rel.min(last) / last } else { f64::from(u8::from(rel > 0.0)) };
    Some(first.iter().fold(0.0, |sum, positive| sum + share(rel[positive.level])) / k as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::TiePolicy;
    use crate::relevance::Relevance;

    fn checked(relevance: Relevance) -> CheckedRelevance {
        relevance.checked(2).unwrap()
    }

    #[test]
    fn a_list_without_relevant_items_has_no_h_ap() {
        let plain = checked(Relevance::Plain { alpha: 1.0 });
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[0, 0]), &plain), None);
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[]), &plain), None);
        let fine_only = checked(Relevance::WeightedAp { weights: vec![0.0, 1.0] });
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[1, 0]), &fine_only), None);
        assert!(precision_recall_curve(&Ranking::from_levels(2, &[1, 0]), &fine_only).is_empty());
    }

    #[test]
    fn levels_of_equal_relevance_count_once() {
        // |Ω(2)| = 2 |Ω(1)| gives both levels the relevance 1/2, so that every order of the three is ideal.
        let ranking = Ranking::from_levels(2, &[1, 2, 2, 0]);
        let h_ap = hierarchical_ap(&ranking, &checked(Relevance::default())).unwrap();
        assert!((h_ap - 1.0).abs() < 1e-12, "{h_ap}");
    }

    #[test]
    fn optimistic_ties_are_ordered_by_relevance() {
        // One item of the coarse level outweighs each of four of the fine one.
        let items = [(0.5, 2), (0.5, 2), (0.5, 1), (0.5, 2), (0.5, 2)];
        let relevance = checked(Relevance::default());
        let h_ap = |ties| hierarchical_ap(&Ranking::from_scores(2, ties, items), &relevance).unwrap();
        assert_eq!(h_ap(TiePolicy::Optimistic), 1.0);
        assert!(h_ap(TiePolicy::Pessimistic) < h_ap(TiePolicy::Stable));
    }
}
