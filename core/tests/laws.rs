//! Laws that the metrics obey, and the formulas that they equal, on random rankings.

#[path = "oracle/mod.rs"]
mod oracle;

use akin_core::metrics::{
    asi, average_precision, hierarchical_ap, map_at_r, ndcg, precision_recall_curve, recall,
};
use akin_core::ranking::{Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use proptest::prelude::*;

/// L and the shared levels of a gallery, in ranked order or not.
fn lists() -> impl Strategy<Value = (usize, Vec<usize>)> {
    (1..=4usize).prop_flat_map(|depth| (Just(depth), prop::collection::vec(0..=depth, 0..60)))
}

/// The same with scores from a small grid, so that many are tied (and some are −0).
fn tied_lists() -> impl Strategy<Value = (usize, Vec<f32>, Vec<usize>)> {
    let score = (-3i8..=3).prop_map(|step| -f32::from(step) / 4.0);
    lists().prop_flat_map(move |(depth, levels)| {
        (Just(depth), prop::collection::vec(score.clone(), levels.len()), Just(levels))
    })
}

/// Any relevance for up to four levels.
fn relevances() -> impl Strategy<Value = Relevance> {
    prop_oneof![
        (0.0..4.0).prop_map(|alpha| Relevance::HierarchicalAp { alpha }),
        (0.0..4.0).prop_map(|alpha| Relevance::Plain { alpha }),
        prop::collection::vec(0.01..1.0, 4).prop_map(|weights| Relevance::WeightedAp { weights }),
    ]
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

fn all_close(a: Option<f64>, b: Option<f64>) -> bool {
    a.is_some() == b.is_some() && close(a.unwrap_or(0.0), b.unwrap_or(0.0))
}

fn from_scores(depth: usize, ties: TiePolicy, scores: &[f32], levels: &[usize]) -> Ranking {
    Ranking::from_scores(depth, ties, scores.iter().copied().zip(levels.iter().copied()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn h_ap_is_ap_when_there_is_one_level(levels in prop::collection::vec(0..=1usize, 0..60), relevance in relevances()) {
        let ranking = Ranking::from_levels(1, &levels);
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), average_precision(&ranking, 1)));
    }

    #[test]
    fn h_ap_is_1_exactly_for_decreasing_relevance((depth, mut levels) in lists(), relevance in relevances()) {
        let rel = relevance.table(Ranking::from_levels(depth, &levels).counts());
        let decreasing = levels.windows(2).all(|pair| rel[pair[0]] >= rel[pair[1]]);
        if let Some(h_ap) = hierarchical_ap(&Ranking::from_levels(depth, &levels), &relevance) {
            prop_assert_eq!(close(h_ap, 1.0), decreasing, "{}", h_ap);
        }
        levels.sort_by(|&a, &b| rel[b].total_cmp(&rel[a]));
        if let Some(h_ap) = hierarchical_ap(&Ranking::from_levels(depth, &levels), &relevance) {
            prop_assert!(close(h_ap, 1.0), "{}", h_ap);
        }
    }

    #[test]
    fn weighted_ap_is_the_weighted_sum_of_ap(
        (depth, levels) in lists(),
        weights in prop::collection::vec(0.0..1.0, 4),
    ) {
        let ranking = Ranking::from_levels(depth, &levels);
        // The weights of levels without positives are left out, and the others rescaled.
        let with_positives = (1..=depth).zip(&weights).filter_map(|(l, w)| Some((w, average_precision(&ranking, l)?)));
        let (total, sum) = with_positives.fold((0.0, 0.0), |(total, sum), (w, ap)| (total + w, sum + w * ap));
        let h_ap = hierarchical_ap(&ranking, &Relevance::WeightedAp { weights });
        prop_assert!(all_close(h_ap, (total > 0.0).then(|| sum / total)));
    }

    #[test]
    fn swapping_neighbours_moves_h_ap_by_what_the_law_says((depth, mut levels) in lists(), relevance in relevances()) {
        let h_ap = |levels: &[usize]| hierarchical_ap(&Ranking::from_levels(depth, levels), &relevance);
        let rel = relevance.table(Ranking::from_levels(depth, &levels).counts());
        let total: f64 = levels.iter().map(|&level| rel[level]).sum();
        for r in 1..levels.len() {
            let before = h_ap(&levels);
            let shared = |x: f64| levels[..r - 1].iter().map(|&level| rel[level].min(x)).sum::<f64>();
            let (a, b) = (rel[levels[r - 1]], rel[levels[r]]);
            // A fall when a > b, a rise when a < b.
            let fall = (a - b + shared(a) - shared(b)) / ((r * (r + 1)) as f64 * total);
            levels.swap(r - 1, r);
            if let Some(before) = before {
                prop_assert!(close(before - h_ap(&levels).unwrap(), fall));
            }
        }
    }

    #[test]
    fn the_curves_area_is_h_ap((depth, levels) in lists(), relevance in relevances(), query_counts: bool) {
        let ranking = Ranking::from_levels(depth, &levels).count_query(query_counts);
        let curve = precision_recall_curve(&ranking, &relevance);
        let mut recall = 0.0;
        let area: f64 = curve.iter().map(|r| r.precision * (r.recall - std::mem::replace(&mut recall, r.recall))).sum();
        prop_assert!(close(area, hierarchical_ap(&ranking, &relevance).unwrap_or(0.0)));
        prop_assert!(curve.is_empty() || close(recall, 1.0));
    }

    #[test]
    fn strict_ties_follow_the_papers_formula((depth, scores, levels) in tied_lists(), relevance in relevances()) {
        let ranking = from_scores(depth, TiePolicy::Strict, &scores, &levels);
        let rel = relevance.table(ranking.counts());
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), oracle::h_ap(&scores, &levels, &rel)));
        for level in 1..=depth {
            prop_assert!(all_close(average_precision(&ranking, level), oracle::ap(&scores, &levels, level)));
        }
    }

    #[test]
    fn stable_ties_follow_the_formulas_in_gallery_order(
        (depth, scores, levels) in tied_lists(),
        relevance in relevances(),
    ) {
        let ranking = from_scores(depth, TiePolicy::Stable, &scores, &levels);
        let ranked = oracle::ranked(&scores, &levels);
        let falling: Vec<f32> = (0..ranked.len()).map(|rank| -(rank as f32)).collect();
        let rel = relevance.table(ranking.counts());
        prop_assert!(all_close(hierarchical_ap(&ranking, &relevance), oracle::h_ap(&falling, &ranked, &rel)));
        prop_assert!(all_close(ndcg(&ranking), oracle::ndcg(&ranked)));
        prop_assert!(all_close(asi(&ranking), oracle::asi(&ranked)));
        for level in 1..=depth {
            prop_assert!(all_close(average_precision(&ranking, level), oracle::ap(&falling, &ranked, level)));
            prop_assert!(all_close(map_at_r(&ranking, level), oracle::map_at_r(&ranked, level)));
            for k in [1, 4, 100] {
                prop_assert_eq!(recall(&ranking, level, k), oracle::recall(&ranked, level, k));
            }
        }
    }

    #[test]
    fn every_metric_lies_between_its_pessimistic_and_optimistic_value(
        (depth, scores, levels) in tied_lists(),
        relevance in relevances(),
    ) {
        let metrics = |ties| {
            let ranking = from_scores(depth, ties, &scores, &levels);
            let mut values = vec![hierarchical_ap(&ranking, &relevance), ndcg(&ranking), asi(&ranking)];
            for level in 1..=depth {
                values.push(average_precision(&ranking, level));
                values.push(map_at_r(&ranking, level));
                values.push(recall(&ranking, level, 3));
            }
            values
        };
        let [low, stable, high] = [TiePolicy::Pessimistic, TiePolicy::Stable, TiePolicy::Optimistic].map(metrics);
        for ((low, stable), high) in low.into_iter().zip(stable).zip(high) {
            if let (Some(low), Some(stable), Some(high)) = (low, stable, high) {
                prop_assert!(0.0 <= low && low <= stable + 1e-12 && stable <= high + 1e-12 && high <= 1.0);
                // −0 would look odd in a table.
                prop_assert!(low.is_sign_positive());
            } else {
                prop_assert_eq!((low, stable, high), (None, None, None));
            }
        }
    }

    #[test]
    fn without_ties_the_order_of_the_gallery_does_not_matter(
        (depth, levels) in lists(),
        relevance in relevances(),
        turn in any::<prop::sample::Index>(),
    ) {
        let mut items: Vec<(f32, usize)> = (0u8..).map(f32::from).zip(levels).collect();
        let before = Ranking::from_scores(depth, TiePolicy::Stable, items.clone());
        let turn = turn.index(items.len().max(1));
        items.rotate_left(turn);
        let after = Ranking::from_scores(depth, TiePolicy::Stable, items);
        prop_assert_eq!(hierarchical_ap(&before, &relevance), hierarchical_ap(&after, &relevance));
    }
}
