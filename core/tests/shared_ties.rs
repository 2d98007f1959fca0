//! The tie policy `shared`: against formulas written out, and against scikit-learn.

use akin_core::metrics::{
    ClassSimilarity, Gain, asi, average_precision, average_precision_at, capped_precision, h_recall,
    hierarchical_ap, hierarchical_precision, map_at_r, mistake_severity, ndcg, precision,
    precision_recall_curve, r_precision, recall, reciprocal_rank, trapezoid_average_precision, true_recall,
};
use akin_core::ranking::{KnownLabels, Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use akin_core::taxonomy::SharedInterval;
use proptest::prelude::*;

const DEPTH: usize = 3;

/// An item: its score, the level that it shares with the query, and the level down to which its label is known.
#[derive(Clone, Copy, Debug)]
struct Item {
    score: f32,
    shared: usize,
    known: usize,
}

impl Item {
    fn interval(self) -> SharedInterval {
        let most = if self.known > self.shared { self.shared } else { DEPTH };
        SharedInterval { least: self.shared.min(self.known), most }
    }

    fn is_decided(self, level: usize) -> bool {
        self.known > self.shared || self.known >= level
    }
}

fn items(known: impl Strategy<Value = usize>) -> impl Strategy<Value = Vec<Item>> {
    let item = (-2i8..=2, 0..=DEPTH, known);
    let item = item.prop_map(|(score, shared, known)| Item { score: f32::from(score), shared, known });
    prop::collection::vec(item, 1..30)
}

fn ranking(items: &[Item]) -> Ranking {
    Ranking::from_intervals(DEPTH, TiePolicy::Shared, items.iter().map(|item| (item.score, item.interval())))
}

/// The number of items that score at least as much as `item`: the last rank of its tie.
fn rank(items: &[Item], item: &Item) -> usize {
    items.iter().filter(|other| other.score >= item.score).count()
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    a.is_some() == b.is_some() && a.zip(b).is_none_or(|(a, b)| (a - b).abs() < 1e-12)
}

/// H-AP and AP of weighted items: those above an item are the others that score at least as much.
fn weighted_mean(items: &[Item], weight: &dyn Fn(&Item) -> f64, rel: &dyn Fn(&Item) -> f64) -> Option<f64> {
    let (mut sum, mut all) = (0.0, 0.0);
    for (k, item) in items.iter().enumerate().filter(|(_, item)| rel(item) > 0.0) {
        let above = || {
            items.iter().enumerate().filter(|&(j, other)| j != k && other.score >= item.score).map(|(_, j)| j)
        };
        let rank = 1.0 + above().map(weight).sum::<f64>();
        let shared: f64 = above().map(|j| weight(j) * rel(j).min(rel(item))).sum();
        sum += weight(item) * (rel(item) + shared) / rank;
        all += weight(item) * rel(item);
    }
    (all > 0.0).then(|| sum / all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn metrics_are_their_formulas_with_the_last_rank_of_each_tie(items in items(Just(DEPTH)), k in 1usize..12) {
        let list = ranking(&items);
        let one = |_: &Item| 1.0;
        for level in 1..=DEPTH {
            let positives: Vec<Item> = items.iter().copied().filter(|item| item.shared >= level).collect();
            let all = positives.len() as f64;
            let mean_of = |value: &dyn Fn(&Item) -> f64| {
                (all > 0.0).then(|| positives.iter().map(value).sum::<f64>() / all)
            };
            // Both count the item itself.
            let precision_of = |item: &Item| rank(&positives, item) as f64 / rank(&items, item) as f64;
            let within = |k: usize| positives.iter().filter(|item| rank(&items, item) <= k).count() as f64;
            let some = |value: f64| (all > 0.0).then_some(value);
            let of_first = |last: usize| {
                mean_of(&|item| if rank(&items, item) <= last { precision_of(item) } else { 0.0 })
            };
            prop_assert!(near(average_precision(&list, level), mean_of(&precision_of)));
            prop_assert!(near(average_precision_at(&list, level, k), of_first(k)));
            prop_assert!(near(map_at_r(&list, level), of_first(positives.len())));
            let trapezoid = |item: &Item| {
                let before = match rank(&items, item) {
                    1 => 1.0,
                    r => (rank(&positives, item) - 1) as f64 / (r - 1) as f64,
                };
                (before + precision_of(item)) / 2.0
            };
            prop_assert!(near(trapezoid_average_precision(&list, level), mean_of(&trapezoid)));
            prop_assert!(near(recall(&list, level, k), some(within(k).min(1.0))));
            prop_assert!(near(true_recall(&list, level, k), some(within(k) / all)));
            prop_assert!(near(precision(&list, level, k), some(within(k) / k as f64)));
            prop_assert!(near(capped_precision(&list, level, k), some(within(k) / all.min(k as f64))));
            prop_assert!(near(r_precision(&list, level), some(within(positives.len()) / all)));
            let first = positives.iter().map(|item| rank(&items, item)).min();
            prop_assert!(near(reciprocal_rank(&list, level), first.map(|rank| 1.0 / rank as f64)));
        }
        for relevance in [Relevance::default(), Relevance::Plain { alpha: 1.0 }] {
            let relevance = relevance.checked(DEPTH).unwrap();
            let rel = relevance.by_level(list.counts());
            let expected = weighted_mean(&items, &one, &|item| rel[item.shared]);
            prop_assert!(near(hierarchical_ap(&list, &relevance), expected));
            let mut recall = 0.0;
            let curve = precision_recall_curve(&list, &relevance);
            let area = curve.iter().map(|r| r.precision * (r.recall - std::mem::replace(&mut recall, r.recall)));
            prop_assert!(near(expected, (!curve.is_empty()).then(|| area.sum())));
            let sum = |k: usize| {
                items.iter().filter(|item| rank(&items, item) <= k).map(|item| rel[item.shared]).sum::<f64>()
            };
            let all = sum(items.len());
            prop_assert!(near(h_recall(&list, &relevance, k), (all > 0.0).then(|| sum(k) / all)));
        }

        let mut ideal: Vec<usize> = items.iter().map(|item| item.shared).collect();
        ideal.sort_by_key(|&level| std::cmp::Reverse(level));
        let some = |value: f64| (ideal[0] > 0).then_some(value);
        let discounted = |level: usize, rank: usize| level as f64 / (1.0 + rank as f64).log2();
        let best: f64 = (1..).zip(&ideal).map(|(rank, &level)| discounted(level, rank)).sum();
        let gained: f64 = items.iter().map(|item| discounted(item.shared, rank(&items, item))).sum();
        prop_assert!(near(ndcg(&list, Gain::Linear, None), some(gained / best)));
        // How many of the first n items of each list have the level.
        let found = |n: usize, level: usize| {
            items.iter().filter(|item| item.shared == level && rank(&items, item) <= n).count()
        };
        let best = |n: usize, level: usize| ideal[..n].iter().filter(|&&l| l == level).count();
        let common = |n: usize| {
            let both = (1..=DEPTH).map(|level| found(n, level).min(best(n, level)));
            both.sum::<usize>() as f64 / n as f64
        };
        let positives = ideal.iter().filter(|&&level| level > 0).count();
        prop_assert!(near(asi(&list), some((1..=positives).map(common).sum::<f64>() / positives as f64)));
        let n = k.min(items.len());
        let sum: usize = (1..=DEPTH).map(|level| level * found(n, level)).sum();
        let most: usize = ideal[..n].iter().sum();
        prop_assert!(near(
            hierarchical_precision(&list, ClassSimilarity::LcaHeight, k), some(sum as f64 / most as f64)
        ));
        let wrong = || items.iter().filter(|item| item.shared < DEPTH);
        let first = wrong().map(|item| rank(&items, item)).min();
        let level = wrong().filter(|item| Some(rank(&items, item)) == first).map(|item| item.shared).min();
        prop_assert!(near(mistake_severity(&list), some(level.map_or(0.0, |level| (DEPTH - level) as f64))));
    }

    #[test]
    fn weights_of_unknown_labels_follow_their_page(items in items(1..=DEPTH)) {
        let shares = [1.0, 0.8, 0.6];
        let known = KnownLabels { query: DEPTH, shares: shares.to_vec() };
        let list = ranking(&items).with_known(known);
        for level in 1..=DEPTH {
            let decided: Vec<Item> = items.iter().copied().filter(|item| item.is_decided(level)).collect();
            let weight = |item: &Item| 1.0 / shares[(item.shared + 1).min(level) - 1];
            let expected = weighted_mean(&decided, &weight, &|item| f64::from(u8::from(item.shared >= level)));
            prop_assert!(near(average_precision(&list, level), expected));
            let all: f64 = decided.iter().filter(|item| item.shared >= level).map(weight).sum();
            let within = decided.iter().filter(|item| item.shared >= level && rank(&items, item) <= 5).map(weight);
            prop_assert!(near(true_recall(&list, level, 5), (all > 0.0).then(|| within.sum::<f64>() / all)));
        }
        let decided: Vec<Item> = items.iter().copied().filter(|item| item.is_decided(DEPTH)).collect();
        let weight = |item: &Item| 1.0 / shares[(item.shared + 1).min(DEPTH) - 1];
        let relevance = Relevance::default().checked(DEPTH).unwrap();
        let mut masses = vec![0.0; DEPTH + 1];
        decided.iter().for_each(|item| masses[item.shared] += weight(item));
        let rel = relevance.by_mass(&masses);
        let expected = weighted_mean(&decided, &weight, &|item| rel[item.shared]);
        prop_assert!(near(hierarchical_ap(&list, &relevance), expected));
    }
}

/// Printed by scikit-learn 1.9.1 with NumPy 2.4.6; `label_ranking_average_precision_score` of one row gives the same:
///
/// ```python
/// rng = np.random.default_rng(0)
/// for n, steps in [(4, 1), (6, 2), (8, 3), (8, 4), (12, 3), (12, 5), (16, 4), (20, 6)]:
///     scores = rng.integers(-steps, steps + 1, n)
///     relevant = rng.integers(0, 2, n)
///     relevant[rng.integers(n)] = 1
///     print(scores.tolist(), relevant.tolist(), average_precision_score(relevant, scores))
/// ```
const SCIKIT_LEARN: [(&[i8], &[usize], f64); 8] = [
    (&[1, 0, 0, -1], &[1, 0, 0, 0], 1.0),
    (&[2, 1, 2, 0, 1, 2], &[1, 1, 1, 1, 1, 0], 0.7533333333333334),
    (&[1, -3, -1, 3, 0, -3, 2, 2], &[1, 0, 0, 1, 0, 1, 0, 0], 0.625),
    (&[-1, -1, -4, -4, -3, -4, 2, 0], &[1, 0, 1, 1, 0, 0, 1, 1], 0.8),
    (&[-1, 1, 3, 1, 2, 1, 1, -1, 3, -3, 1, 2], &[1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0], 0.501082251082251),
    (&[1, -3, -2, 2, 1, 0, -2, 3, -1, -2, 4, -3], &[0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1], 0.5142857142857143),
    (
        &[-4, -4, 2, -1, 1, -3, 3, 0, 4, 3, 2, -2, 2, -4, 1, -1],
        &[1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0],
        0.8740384615384615,
    ),
    (
        &[-5, 0, 2, 3, 6, -1, -1, 0, 6, -4, 0, -6, -1, 6, 2, -2, 6, 1, 6, -6],
        &[0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0],
        0.575462962962963,
    ),
];

#[test]
fn ap_is_that_of_scikit_learn() {
    for (scores, relevant, expected) in SCIKIT_LEARN {
        let items = scores.iter().map(|&score| f32::from(score)).zip(relevant.iter().copied());
        let ap = average_precision(&Ranking::from_scores(1, TiePolicy::Shared, items), 1).unwrap();
        assert!((ap - expected).abs() < 1e-12, "{ap} instead of {expected}");
    }
}
