//! The explanation of one ranking against its scores, and against every order of short rankings.

use akin_core::Kind;
use akin_core::explanation::{
    Goal, ItemTerm, PairRequest, RankedList, Scoring, level_curve, order, pair, swaps, terms,
};
use akin_core::metrics::{average_precision, hierarchical_ap};
use akin_core::ranking::TiePolicy;
use akin_core::relevance::Relevance;
use proptest::prelude::*;

const POLICIES: [TiePolicy; 5] =
    [TiePolicy::Stable, TiePolicy::Strict, TiePolicy::Optimistic, TiePolicy::Pessimistic, TiePolicy::Shared];

fn scoring(depth: usize, relevance: &Relevance, ties: TiePolicy, count_query: bool) -> Scoring {
    let relevance = match relevance {
        Relevance::WeightedAp { weights } => Relevance::WeightedAp { weights: weights[..depth].to_vec() },
        other => other.clone(),
    };
    Scoring { relevance: relevance.checked(depth).unwrap(), ties, count_query }
}

fn plain(depth: usize) -> Scoring {
    scoring(depth, &Relevance::Plain { alpha: 1.0 }, TiePolicy::Stable, false)
}

/// Any relevance, with weights for four levels.
fn relevances() -> impl Strategy<Value = Relevance> {
    prop_oneof![
        (0.0..4.0).prop_map(|alpha| Relevance::HierarchicalAp { alpha }),
        (0.0..4.0).prop_map(|alpha| Relevance::Plain { alpha }),
        prop::collection::vec(0.01..1.0, 4).prop_map(|weights| Relevance::WeightedAp { weights }),
    ]
}

fn policies() -> impl Strategy<Value = TiePolicy> {
    prop::sample::select(&POLICIES[..])
}

/// A list of up to `longest` items; `tied` says how often an item is tied with the one above it.
fn lists(longest: usize, tied: f64) -> impl Strategy<Value = RankedList> {
    (1..=4usize)
        .prop_flat_map(move |depth| {
            let item = (0..=depth, prop::bool::weighted(1.0 - tied));
            (Just(depth), prop::collection::vec(item, 1..=longest))
        })
        .prop_map(|(depth, items)| {
            let (levels, starts): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            let mut group = 0;
            let groups = starts.into_iter().map(|starts| {
                group += usize::from(starts);
                group
            });
            RankedList::new(depth, levels, Some(groups.collect())).unwrap()
        })
}

fn h_ap(list: &RankedList, scoring: &Scoring) -> Option<f64> {
    hierarchical_ap(&list.ranking(scoring), &scoring.relevance)
}

/// HAPPIER's eq. 2: H-rank(k) = rel(k) + Σ_j H(s_j − s_k) min(rel(j), rel(k)), with the ranks of the items as −s. H(0) is
/// 0, and 1 if tied items count.
fn naive_h_rank(terms: &[ItemTerm], k: usize, ties_count: bool) -> f64 {
    let is_above =
        |j: usize| terms[j].rank < terms[k].rank || ties_count && j != k && terms[j].rank == terms[k].rank;
    let above = (0..terms.len()).filter(|&j| is_above(j)).map(|j| &terms[j]);
    if terms[k].relevance == 0.0 {
        return 0.0;
    }
    terms[k].relevance + above.map(|j| j.relevance.min(terms[k].relevance)).sum::<f64>()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

/// All orders of 0 … n − 1.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![vec![]] };
    let inserted = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    orders(last).into_iter().flat_map(inserted).collect()
}

fn reordered(list: &RankedList, order: &[usize]) -> RankedList {
    let levels = order.iter().map(|&place| list.levels()[place]).collect();
    RankedList::new(list.depth(), levels, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_contributions_add_up_to_h_ap(
        list in lists(40, 0.4), relevance in relevances(), ties in policies(), count_query: bool,
    ) {
        let scoring = scoring(list.depth(), &relevance, ties, count_query);
        let terms = terms(&list, &scoring);
        let sum: f64 = terms.iter().map(|term| term.contribution).sum();
        prop_assert!(close(sum, h_ap(&list, &scoring).unwrap_or(0.0)));
    }

    #[test]
    fn each_term_follows_equation_2(list in lists(40, 0.4), relevance in relevances(), ties in policies()) {
        let scoring = scoring(list.depth(), &relevance, ties, false);
        let rel = scoring.relevance.by_level(list.ranking(&scoring).counts());
        let terms = terms(&list, &scoring);
        for (k, term) in terms.iter().enumerate() {
            prop_assert_eq!(term.relevance, rel[list.levels()[k]]);
            prop_assert!(close(term.h_rank, naive_h_rank(&terms, k, ties == TiePolicy::Shared)));
        }
    }

    #[test]
    fn ranks_follow_the_tie_policy(list in lists(40, 0.4), ties in policies()) {
        let scoring = scoring(list.depth(), &Relevance::Plain { alpha: 1.0 }, ties, false);
        let ranks: Vec<usize> = terms(&list, &scoring).iter().map(|term| term.rank).collect();
        let groups = list.tie_groups();
        for (k, &rank) in ranks.iter().enumerate() {
            let above = groups.iter().filter(|&&group| group < groups[k]).count();
            let tied = groups.iter().filter(|&&group| group == groups[k]).count();
            match ties {
                TiePolicy::Stable => prop_assert_eq!(rank, k + 1),
                TiePolicy::Strict => prop_assert_eq!(rank, above + 1),
                TiePolicy::Shared => prop_assert_eq!(rank, above + tied),
                _ => prop_assert!((above + 1..=above + tied).contains(&rank)),
            }
        }
    }

    #[test]
    fn the_swaps_of_a_move_add_up_to_its_change_of_h_ap(
        list in lists(30, 0.2), relevance in relevances(), ties in policies(), count_query: bool, from: prop::sample::Index, to: prop::sample::Index,
    ) {
        let scoring = scoring(list.depth(), &relevance, ties, count_query);
        let (from, to) = (from.index(list.levels().len()), to.index(list.levels().len()));
        let moved = list.moved(from, to).unwrap();
        let found = swaps(&list, &scoring, from, to).unwrap();
        let law_holds = ties == TiePolicy::Stable || !(list.has_ties() || moved.has_ties());
        let before = h_ap(&list, &scoring);
        prop_assert_eq!(found.is_some(), law_holds && before.is_some());
        if let (Some(swaps), Some(before)) = (found, before) {
            prop_assert_eq!(swaps.len(), from.abs_diff(to));
            let sum: f64 = swaps.iter().map(|swap| swap.delta).sum();
            prop_assert!(close(sum, h_ap(&moved, &scoring).unwrap() - before));
            // Every swap is the move of one item by one rank.
            let mut now = RankedList::new(list.depth(), list.levels().to_vec(), None).unwrap();
            for swap in swaps {
                let next = now.moved(swap.rank, swap.rank - 1).unwrap();
                prop_assert!(close(swap.delta, h_ap(&next, &scoring).unwrap() - h_ap(&now, &scoring).unwrap()));
                now = next;
            }
            prop_assert_eq!(now.levels(), moved.levels());
        }
    }

    #[test]
    fn a_level_curves_area_is_ap(list in lists(40, 0.4), ties in policies(), count_query: bool) {
        prop_assume!(ties != TiePolicy::Strict);
        let scoring = scoring(list.depth(), &Relevance::default(), ties, count_query);
        for level in 1..=list.depth() {
            let mut recall = 0.0;
            let curve = level_curve(&list, &scoring, level);
            let area: f64 =
                curve.iter().map(|point| point.precision * (point.recall - std::mem::replace(&mut recall, point.recall))).sum();
            prop_assert!(close(area, average_precision(&list.ranking(&scoring), level).unwrap_or(0.0)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_with_the_same_ranks_of_the_finest_level_exceeds_the_best_or_the_worst(
        list in lists(6, 0.0), relevance in relevances(), count_query: bool,
    ) {
        let scoring = scoring(list.depth(), &relevance, TiePolicy::Stable, count_query);
        let finest = |list: &RankedList| list.levels().iter().map(|&level| level == list.depth()).collect::<Vec<_>>();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for order in orders(list.levels().len()) {
            let other = reordered(&list, &order);
            if finest(&other) == finest(&list) {
                let h_ap = h_ap(&other, &scoring).unwrap_or(0.0);
                (low, high) = (low.min(h_ap), high.max(h_ap));
            }
        }
        for (goal, expected) in [(Goal::BestSameAp, high), (Goal::WorstSameAp, low)] {
            let reached = reordered(&list, &order(&list, &scoring, goal));
            prop_assert_eq!(finest(&reached), finest(&list));
            prop_assert!(close(h_ap(&reached, &scoring).unwrap_or(0.0), expected));
        }
    }

    #[test]
    fn the_ideal_order_has_h_ap_1_and_the_other_goals_keep_ap(
        list in lists(40, 0.3), relevance in relevances(), ties in policies(),
    ) {
        prop_assume!(!matches!(ties, TiePolicy::Strict | TiePolicy::Shared));
        let scoring = scoring(list.depth(), &relevance, ties, false);
        let reached = |goal| reordered(&list, &order(&list, &scoring, goal));
        if let Some(ideal) = h_ap(&reached(Goal::Ideal), &scoring) {
            prop_assert!(close(ideal, 1.0));
        }
        // With eq. 4 a coarse level can outweigh the finest one, and ties of H-AP and of AP then have different orders.
        if matches!(relevance, Relevance::HierarchicalAp { .. }) && list.has_ties() { return Ok(()); }
        let ap = |list: &RankedList| average_precision(&list.ranking(&scoring), list.depth());
        for goal in [Goal::BestSameAp, Goal::WorstSameAp] {
            prop_assert_eq!(ap(&reached(goal)), ap(&list));
        }
    }
}

#[test]
fn the_worked_example_of_happier_has_its_scores() {
    for (levels, expected) in [([2, 3, 0, 1, 3], "0.78"), ([1, 3, 0, 2, 3], "0.67")] {
        let list = RankedList::new(3, levels.to_vec(), None).unwrap();
        let terms = terms(&list, &plain(3));
        let h_ap: f64 = terms.iter().map(|term| term.contribution).sum();
        assert_eq!(format!("{h_ap:.2}"), expected);
        assert_eq!(format!("{:.2}", average_precision(&list.ranking(&plain(3)), 3).unwrap()), "0.45");
        // The item of the query's own class at rank 5: 1 + 2/3 + 1 + 1/3, whatever the order above it.
        assert!(close(terms[4].h_rank, 3.0));
        assert!(close(terms[4].quotient(), 0.6));
    }
}

#[test]
fn the_worked_example_is_the_best_and_the_worst_order_with_its_ap() {
    let list = RankedList::new(3, vec![2, 3, 0, 1, 3], None).unwrap();
    let levels = |goal| reordered(&list, &order(&list, &plain(3), goal)).levels().to_vec();
    assert_eq!(levels(Goal::BestSameAp), [2, 3, 1, 0, 3]);
    assert_eq!(levels(Goal::WorstSameAp), [0, 3, 1, 2, 3]);
    assert_eq!(levels(Goal::Ideal), [3, 3, 2, 1, 0]);
}

#[test]
fn a_moved_item_is_tied_only_between_tied_items() {
    let list = RankedList::new(1, vec![1, 0, 0, 1], Some(vec![0, 1, 1, 2])).unwrap();
    let groups = |from, to| list.moved(from, to).unwrap().tie_groups().to_vec();
    assert_eq!(groups(0, 1), [0, 0, 0, 1]);
    assert_eq!(groups(0, 2), [0, 0, 1, 2]);
    assert_eq!(groups(1, 0), [0, 1, 2, 3]);
    assert_eq!(groups(3, 0), [0, 1, 2, 2]);
    assert_eq!(groups(2, 2), [0, 1, 1, 2]);
    assert_eq!(list.moved(0, 4).unwrap_err().kind(), Kind::Config);
}

#[test]
fn wrong_lists_are_refused() {
    for (depth, levels, ties) in [
        (0, vec![0], None),
        (usize::MAX, vec![0], None),
        (2, vec![1, 3], None),
        (2, vec![1, 2], Some(vec![0])),
        (2, vec![1, 2], Some(vec![1, 0])),
    ] {
        assert_eq!(RankedList::new(depth, levels, ties).unwrap_err().kind(), Kind::Config);
    }
}

/// AP and H-AP of a ranking with three levels, to two decimals.
fn two_decimals(levels: &[usize], scoring: &Scoring) -> [String; 2] {
    let list = RankedList::new(3, levels.to_vec(), None).unwrap();
    let ap = average_precision(&list.ranking(scoring), 3).unwrap();
    [ap, h_ap(&list, scoring).unwrap()].map(|score| format!("{score:.2}"))
}

#[test]
fn a_pair_has_the_scores_of_happiers_first_figure() {
    // With 19 items the relevance of eq. 4 does not rise with the level; with 21 it does.
    for (size, relevance, rises) in [
        (19, Relevance::default(), false),
        (21, Relevance::default(), true),
        (24, Relevance::Plain { alpha: 1.0 }, true),
    ] {
        let scoring = scoring(3, &relevance, TiePolicy::Stable, false);
        let request = PairRequest {
            depth: 3,
            size,
            average_precision: 0.9,
            h_ap: [0.94, 0.68],
            relevance: scoring.relevance.clone(),
        };
        let [first, second] = pair(&request).unwrap();
        assert_eq!(two_decimals(&first, &scoring), ["0.90", "0.94"], "{first:?}");
        assert_eq!(two_decimals(&second, &scoring), ["0.90", "0.68"], "{second:?}");
        let counts = RankedList::new(3, first.clone(), None).unwrap().ranking(&scoring).class_sizes();
        assert_eq!(scoring.relevance.by_level(&counts).is_sorted(), rises, "{counts:?}");
        let sorted = |mut levels: Vec<usize>| {
            levels.sort_unstable();
            levels
        };
        assert_eq!(sorted(first), sorted(second));
    }
}

#[test]
fn a_pair_that_cannot_be_is_the_nearest_or_refused() {
    let request = |depth, size, average_precision, h_ap| PairRequest {
        depth,
        size,
        average_precision,
        h_ap,
        relevance: Relevance::Plain { alpha: 1.0 }.checked(depth).unwrap(),
    };
    for (depth, size) in [(2, 3), (3, 4), (4, 5), (2, 40), (4, 20)] {
        for h_ap in [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]] {
            let [first, second] = pair(&request(depth, size, 0.5, h_ap)).unwrap();
            assert_eq!((first.len(), second.len()), (size, size));
        }
    }
    for refused in [
        request(1, 19, 0.9, [0.9, 0.7]),
        request(5, 19, 0.9, [0.9, 0.7]),
        request(3, 3, 0.9, [0.9, 0.7]),
        request(3, 41, 0.9, [0.9, 0.7]),
        request(3, 19, f64::NAN, [0.9, 0.7]),
        request(3, 19, 0.9, [0.7, 0.9]),
        request(3, 19, 0.9, [1.5, 0.9]),
    ] {
        assert_eq!(pair(&refused).unwrap_err().kind(), Kind::Config);
    }
}
