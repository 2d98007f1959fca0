use crate::ranking::Ranking;
use crate::relevance::Relevance;

/// H-AP, the hierarchical average precision (HAPPIER, eq. 2–3):
///
/// ```text
/// H-AP = 1 / Σ_k rel(k) · Σ_k H-rank(k) / rank(k),    H-rank(k) = rel(k) + Σ_{j above k} min(rel(j), rel(k))
/// ```
///
/// over the positives k. It is AP when L = 1, and 1 exactly for a list by decreasing relevance. In (0, 1]; `None`
/// when no ranked item has a relevance.
///
/// Ties: in the order of the ranking's policy, which here goes by relevance; under
/// [`Strict`](crate::ranking::TiePolicy::Strict) tied items are not above each other. O(P·L) for P positives.
pub fn hierarchical_ap(ranking: &Ranking, relevance: &Relevance) -> Option<f64> {
    let rel = relevance.by_level(&ranking.class_sizes());
    let total: f64 = rel.iter().zip(ranking.counts()).map(|(rel, &count)| rel * count as f64).sum();
    if total == 0.0 {
        return None;
    }
    // above[l]: how many items of Ω(l) are above. Levels of equal relevance stay apart, so nothing counts twice.
    let mut above = vec![0.0; rel.len()];
    let mut sum = 0.0;
    for step in ranking.steps(&ranking.by_worth(&rel)) {
        let rank = step[0].rank as f64;
        for k in step {
            let shared: f64 =
                above.iter().zip(&rel).map(|(count, &rel_j)| count * rel_j.min(rel[k.level])).sum();
            sum += (rel[k.level] + shared) / rank;
        }
        for k in step {
            above[k.level] += 1.0;
        }
    }
    Some((sum / total).min(1.0)) // min: only rounding exceeds 1.
}

/// One point of the [`precision_recall_curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The rank r of a relevant item.
    pub rank: usize,
    /// H-R@r, the share of all relevance found down to this rank. In (0, 1].
    pub recall: f64,
    /// H-P@r, the relevance above, as far as this item can tell it, against a list of its equals. In (0, 1].
    pub precision: f64,
}

/// The H-precision/H-recall curve (HAPPIER, eq. 9–11):
///
/// ```text
/// H-R@r = Σ_{j ≤ r} rel(j) / Σ_j rel(j),    H-P@r = Σ_{j ≤ r} min(rel(j), rel(r)) / (r · rel(r))
/// ```
///
/// at every rank r of an item with a relevance; between them recall stands still, and at an irrelevant item H-P has
/// no value. The area Σ_r H-P@r · (H-R@r − H-R@(r−1)) is H-AP. Empty when no ranked item has a relevance.
///
/// Ties: in the order of the ranking's policy, which here goes by relevance.
pub fn precision_recall_curve(ranking: &Ranking, relevance: &Relevance) -> Vec<CurvePoint> {
    let rel = relevance.by_level(&ranking.class_sizes());
    let total: f64 = rel.iter().zip(ranking.counts()).map(|(rel, &count)| rel * count as f64).sum();
    let mut found = vec![0.0; rel.len()];
    let mut curve = Vec::new();
    for r in ranking.by_worth(&rel).iter().filter(|positive| rel[positive.level] > 0.0) {
        found[r.level] += 1.0;
        let over_found = |value: &dyn Fn(f64) -> f64| -> f64 {
            found.iter().zip(&rel).map(|(count, &rel_j)| count * value(rel_j)).sum()
        };
        curve.push(CurvePoint {
            rank: r.rank,
            recall: over_found(&|rel_j| rel_j) / total,
            precision: over_found(&|rel_j| rel_j.min(rel[r.level])) / (r.rank as f64 * rel[r.level]),
        });
    }
    curve
}

/// H-R@k, the share of all relevance that the first k items hold (HAPPIER, eq. 9–11): the recall of the
/// [`precision_recall_curve`] at any rank.
///
/// In \[0, 1\], rising with k, and 1 for the whole list; `None` when no ranked item has a relevance. Ties: as for the
/// curve.
pub fn h_recall(ranking: &Ranking, relevance: &Relevance, k: usize) -> Option<f64> {
    let rel = relevance.by_level(&ranking.class_sizes());
    let sum = |levels: &mut dyn Iterator<Item = usize>| levels.fold(0.0, |sum, level| sum + rel[level]);
    let all = ranking.by_worth(&rel);
    let total = sum(&mut all.iter().map(|positive| positive.level));
    let found = sum(&mut all.iter().take_while(|positive| positive.rank <= k).map(|positive| positive.level));
    (total > 0.0).then(|| found / total)
}

/// H-P@k, the relevance of the first k items as far as the k-th can tell it, against a list of its equals (HAPPIER,
/// eq. 9–11): the precision of the [`precision_recall_curve`], at any rank.
///
/// Where the k-th item has no relevance, or the list is shorter, the formula is 0/0; the value is then its limit as
/// the relevance goes to 0, which is the share of relevant items among the first k.
///
/// In \[0, 1\]; `None` when no ranked item has a relevance. Ties: as for the curve. A better order can lower it, since
/// an item that is worth less is content with less.
pub fn h_precision(ranking: &Ranking, relevance: &Relevance, k: usize) -> Option<f64> {
    let rel = relevance.by_level(&ranking.class_sizes());
    let all = ranking.by_worth(&rel);
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

    #[test]
    fn nothing_relevant_has_no_h_ap() {
        let plain = Relevance::Plain { alpha: 1.0 };
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[0, 0]), &plain), None);
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[]), &plain), None);
        let fine_only = Relevance::WeightedAp { weights: vec![0.0, 1.0] };
        assert_eq!(hierarchical_ap(&Ranking::from_levels(2, &[1, 0]), &fine_only), None);
        assert!(precision_recall_curve(&Ranking::from_levels(2, &[1, 0]), &fine_only).is_empty());
    }

    #[test]
    fn levels_of_equal_relevance_count_once() {
        // |Ω(2)| = 2 |Ω(1)| gives both levels the relevance 1/2: three equals, in the best order.
        let ranking = Ranking::from_levels(2, &[1, 2, 2, 0]);
        let h_ap = hierarchical_ap(&ranking, &Relevance::HierarchicalAp { alpha: 1.0 }).unwrap();
        assert!((h_ap - 1.0).abs() < 1e-12, "{h_ap}");
    }

    #[test]
    fn the_optimistic_order_of_ties_goes_by_relevance() {
        // One item of the coarse level outweighs each of four of the fine one.
        let items = [(0.5, 2), (0.5, 2), (0.5, 1), (0.5, 2), (0.5, 2)];
        let relevance = Relevance::HierarchicalAp { alpha: 1.0 };
        let h_ap = |ties| hierarchical_ap(&Ranking::from_scores(2, ties, items), &relevance).unwrap();
        assert_eq!(h_ap(TiePolicy::Optimistic), 1.0);
        assert!(h_ap(TiePolicy::Pessimistic) < h_ap(TiePolicy::Stable));
    }
}
