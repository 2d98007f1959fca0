//! Bounds of the decomposability gap of one query, from what its batches hold (ROADMAP, eq. 8 and 9).
//!
//! Both assume that the query's AP is 1 in every batch: its positives rank above its negatives there. The gap is then
//! 1 − AP of the whole ranking, in which the batches lie between one another. In the worst case they lie one after
//! another.
//!
//! The sums run over the batches in the order given. Paper and proof take batches with the same counts, for which there
//! is only one order. Batches with other counts can lie in any order, and in some the gap is larger than in the one given:
//! take the largest bound over the orders.
//!
//! ```
//! use akin_core::evaluate::{BatchCounts, calibrated_gap_bound, gap_bound};
//!
//! // Two batches of two positives and three negatives. One of these has a score above β.
//! let batch = BatchCounts { good_positives: 2, bad_positives: 0, good_negatives: 2, bad_negatives: 1 };
//! let bounds = [gap_bound(&[batch; 2]), calibrated_gap_bound(&[batch; 2])].map(Option::unwrap);
//! assert_eq!(bounds.map(|bound| (1e4 * bound).round()), [2321.0, 1125.0]);
//! ```

/// The items of one batch as one query sees them. With calibration, positives should have scores of at least α and
/// negatives of at most β.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// G⁺, the positives with a score of at least α.
    pub good_positives: usize,
    /// E⁺, the positives with a lower score.
    pub bad_positives: usize,
    /// G⁻, the negatives with a score of at most β.
    pub good_negatives: usize,
    /// E⁻, the negatives with a higher score.
    pub bad_negatives: usize,
}

impl BatchCounts {
    /// |P|, the number of positives.
    pub fn positives(&self) -> usize {
        self.good_positives + self.bad_positives
    }

    /// |N|, the number of negatives.
    pub fn negatives(&self) -> usize {
        self.good_negatives + self.bad_negatives
    }
}

/// The largest decomposability gap of a query whose AP is 1 in each batch (ROADMAP, eq. 8):
///
/// ```text
/// DG_AP ≤ 1 − 1/Σ_b |P_b| · Σ_b Σ_{j = 1 … |P_b|} (j + P) / (j + P + N)
/// ```
///
/// where P = |P_1| + … + |P_{b−1}| and N = |N_1| + … + |N_{b−1}|. The paper lets j run to the size of the batch, but each
/// term belongs to a positive. In [0, 1); 0 for one batch. `None` without a positive.
pub fn gap_bound(batches: &[BatchCounts]) -> Option<f64> {
    let (mut positives, mut negatives) = (0, 0);
    let mut precisions = 0.0;
    for batch in batches {
        precisions += precisions_after(positives, negatives, batch.positives());
        positives += batch.positives();
        negatives += batch.negatives();
    }
    bound(precisions, positives)
}

/// The bound that knows how far the batches are calibrated (ROADMAP, eq. 9):
///
/// ```text
/// DG_AP ≤ 1 − 1/Σ_b |P_b| · Σ_b [ Σ_{j = 1 … G⁺_b} (j + G) / (j + G + E)
///                               + Σ_{j = 1 … E⁺_b} (j + G⁺_b + P) / (j + G⁺_b + P + N) ]
/// ```
///
/// where G = G⁺_1 + … + G⁺_{b−1}, E = E⁻_1 + … + E⁻_{b−1}, and P and N are those of [`gap_bound`]: above a positive with a
/// score of at least α there are only negatives with a score above β. It is 0 if all scores keep to calibration, and at
/// most [`gap_bound`] for batches with the same counts and no positive below α. With such positives it can be larger,
/// although the paper calls it the tighter one: G leaves out the positives below α of the earlier batches. The gap is below
/// both. `None` without a positive.
pub fn calibrated_gap_bound(batches: &[BatchCounts]) -> Option<f64> {
    let (mut good, mut bad_negatives, mut positives, mut negatives) = (0, 0, 0, 0);
    let mut precisions = 0.0;
    for batch in batches {
        precisions += precisions_after(good, bad_negatives, batch.good_positives);
        precisions += precisions_after(positives + batch.good_positives, negatives, batch.bad_positives);
        good += batch.good_positives;
        bad_negatives += batch.bad_negatives;
        positives += batch.positives();
        negatives += batch.negatives();
    }
    bound(precisions, positives)
}

/// The sum of the precisions of `count` positives in a row, after `positives` and `negatives`.
fn precisions_after(positives: usize, negatives: usize, count: usize) -> f64 {
    (1..=count).map(|j| (j + positives) as f64 / (j + positives + negatives) as f64).sum()
}

/// The gap of a query whose positives have these precisions, none below 0 by rounding.
fn bound(precisions: f64, positives: usize) -> Option<f64> {
    (positives > 0).then(|| (1.0 - precisions / positives as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::average_precision;
    use crate::ranking::Ranking;

    const ALPHA: f64 = 0.7;
    const BETA: f64 = 0.4;

    /// A score, and whether the item is a positive.
    type Item = (f64, bool);

    /// A batch with these counts in which positives rank above negatives. `draws` are numbers from 0 to 1.
    fn batch(counts: BatchCounts, draws: &[f64]) -> Vec<Item> {
        let (cut, draws) = draws.split_first().unwrap();
        let mut draws = draws.iter();
        let mut between = |low: f64, high: f64| low + (high - low) * draws.next().unwrap();
        // All positives lie above the cut, and all negatives below.
        let cut = match (counts.bad_positives, counts.bad_negatives) {
            (0, 0) => ALPHA,
            (0, _) => BETA + 0.01 + (0.98 - BETA) * cut,
            (_, 0) => (ALPHA - 0.01) * cut,
            _ => BETA + 0.01 + (ALPHA - BETA - 0.02) * cut,
        };
        let mut items = Vec::new();
        for _ in 0..counts.good_positives {
            items.push((between(cut.max(ALPHA), 1.0), true));
        }
        for _ in 0..counts.bad_positives {
            items.push((between(cut, ALPHA - 0.001), true));
        }
        for _ in 0..counts.good_negatives {
            items.push((between(0.0, cut.min(BETA)) - 0.001, false));
        }
        for _ in 0..counts.bad_negatives {
            items.push((between(BETA + 0.001, cut) - 0.0005, false));
        }
        items
    }

    /// AP of the ranking of these items.
    fn ap(mut items: Vec<Item>) -> f64 {
        items.sort_by(|a, b| b.0.total_cmp(&a.0));
        let levels: Vec<usize> = items.iter().map(|&(_, positive)| usize::from(positive)).collect();
        average_precision(&Ranking::from_levels(1, &levels), 1).unwrap()
    }

    /// A bound over all orders of the batches: the largest.
    fn largest(bound: fn(&[BatchCounts]) -> Option<f64>, batches: &[BatchCounts]) -> f64 {
        fn orders(rest: Vec<BatchCounts>) -> Vec<Vec<BatchCounts>> {
            if rest.is_empty() {
                return vec![vec![]];
            }
            let with_first = |first: usize| {
                let mut rest = rest.clone();
                let batch = rest.remove(first);
                orders(rest).into_iter().map(move |order| [vec![batch], order].concat())
            };
            (0..rest.len()).flat_map(with_first).collect()
        }
        orders(batches.to_vec()).iter().map(|order| bound(order).unwrap()).fold(0.0, f64::max)
    }

    /// Counts of a batch with at least one positive.
    fn counts() -> impl Strategy<Value = BatchCounts> {
        (0usize..4, 0usize..4, 0usize..4, 0usize..4).prop_filter_map(
            "a positive",
            |(good_positives, bad_positives, good_negatives, bad_negatives)| {
                let counts = BatchCounts { good_positives, bad_positives, good_negatives, bad_negatives };
                (counts.positives() > 0).then_some(counts)
            },
        )
    }

    fn draws(batches: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
        proptest::collection::vec(proptest::collection::vec(0.0..1.0f64, 13), batches)
    }

    proptest! {
        #[test]
        fn batches_one_after_another_have_the_gap_of_equation_8(batches in proptest::collection::vec(counts(), 1..5)) {
            let mut items = Vec::new();
            for batch in &batches {
                for is_positive in [vec![true; batch.positives()], vec![false; batch.negatives()]].concat() {
                    items.push((-(items.len() as f64), is_positive));
                }
            }
            let gap = 1.0 - ap(items);
            prop_assert!((gap_bound(&batches).unwrap() - gap).abs() < 1e-12);
        }

        #[test]
        fn no_gap_of_equal_batches_is_above_a_bound(
            (counts, draws) in (counts(), (1usize..6).prop_flat_map(draws))
        ) {
            let batches = vec![counts; draws.len()];
            let items: Vec<Item> = draws.iter().flat_map(|draws| batch(counts, draws)).collect();
            for draws in &draws {
                prop_assert_eq!(ap(batch(counts, draws)), 1.0);
            }
            let gap = 1.0 - ap(items);
            for bound in [gap_bound(&batches).unwrap(), calibrated_gap_bound(&batches).unwrap()] {
                prop_assert!(gap <= bound + 1e-12, "{gap} is above {bound}");
            }
        }

        #[test]
        fn no_gap_is_above_a_bound_of_the_worst_order(
            batches in (1usize..5).prop_flat_map(|count| (proptest::collection::vec(counts(), count), draws(count)))
        ) {
            let (counts, draws) = batches;
            let items = counts.iter().zip(&draws).flat_map(|(&counts, draws)| batch(counts, draws)).collect();
            let gap = 1.0 - ap(items);
            for bound in [gap_bound, calibrated_gap_bound] {
                let bound = largest(bound, &counts);
                prop_assert!(gap <= bound + 1e-12, "{gap} is above {bound}");
            }
        }

        #[test]
        fn calibration_of_all_positives_makes_the_bound_no_larger(counts in counts(), batches in 1usize..6) {
            let counts = BatchCounts {
                good_positives: counts.positives(),
                bad_positives: 0,
                ..counts
            };
            let batches = vec![counts; batches];
            prop_assert!(calibrated_gap_bound(&batches) <= gap_bound(&batches));
            let calibrated = BatchCounts { good_negatives: counts.negatives(), bad_negatives: 0, ..counts };
            prop_assert_eq!(calibrated_gap_bound(&vec![calibrated; batches.len()]), Some(0.0));
        }
    }

    fn of([good_positives, bad_positives, good_negatives, bad_negatives]: [usize; 4]) -> BatchCounts {
        BatchCounts { good_positives, bad_positives, good_negatives, bad_negatives }
    }

    #[test]
    fn one_batch_has_no_gap_and_no_positive_no_bound() {
        let batch = of([1, 2, 3, 4]);
        assert_eq!((gap_bound(&[batch]), calibrated_gap_bound(&[batch])), (Some(0.0), Some(0.0)));
        let strangers = of([0, 0, 3, 4]);
        assert_eq!((gap_bound(&[strangers]), calibrated_gap_bound(&[])), (None, None));
        // Two batches of one positive and one negative: AP is the mean of 1 and 2/3.
        assert!((gap_bound(&[of([1, 0, 1, 0]); 2]).unwrap() - 1.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn in_the_order_given_unequal_batches_can_have_a_larger_gap() {
        // The batch with the fewest negatives above β lies last.
        let batches = [of([3, 0, 1, 1]), of([3, 0, 0, 2]), of([3, 0, 0, 2])];
        let mut items = Vec::new();
        for (batch, top) in [(batches[1], 0.99), (batches[2], 0.89), (batches[0], 0.79)] {
            let score = |place: usize| top - 0.01 * place as f64;
            items.extend((0..3).map(|place| (score(place), true)));
            items.extend((3..3 + batch.bad_negatives).map(|place| (score(place), false)));
            items.extend((0..batch.good_negatives).map(|place| (0.1 - 0.01 * place as f64, false)));
        }
        let gap = 1.0 - ap(items);
        assert!(gap > calibrated_gap_bound(&batches).unwrap() + 0.04);
        assert!((gap - largest(calibrated_gap_bound, &batches)).abs() < 1e-12);
    }

    #[test]
    fn with_positives_below_alpha_equation_9_is_not_always_the_smaller_bound() {
        let batches = [of([1, 1, 0, 1]); 2];
        assert!(calibrated_gap_bound(&batches).unwrap() > gap_bound(&batches).unwrap() + 0.02);
    }
}
