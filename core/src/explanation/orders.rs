use serde::{Deserialize, Serialize};

use super::{RankedList, Scoring, sort_by_decreasing};

/// What an [`order`] is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// H-AP is 1: all items by decreasing relevance.
    Ideal,
    /// The highest H-AP of all orders in which the ranks of the items of level L stay, and so AP at level L.
    BestSameAp,
    /// The lowest H-AP of these orders.
    WorstSameAp,
}

/// The order that reaches a goal: for each place of the new list, the place of its item in this one. Items of equal
/// relevance keep their order.
///
/// With the ranks of level L fixed, the other items in order of decreasing relevance give the highest H-AP, and in order
/// of increasing relevance the lowest. To see it, exchange two of them at ranks p < q that have only fixed items between
/// them. With relevances a > b, the order with a at p exceeds the other by
///
/// ```text
/// (a − b + S_a − S_b) (1/p − 1/q) + Σ_k (min(a, c_k) − min(b, c_k)) (1/rank(k) − 1/q)
/// ```
///
/// divided by Σ rel, where k runs over the items between and c_k is the relevance of k. No term is negative, and the
/// first is positive. Every order becomes the best, or the worst, by such exchanges.
///
/// The new list has no ties: tied items count in the order of the policy, and under
/// [`TiePolicy::Strict`](crate::ranking::TiePolicy::Strict) and [`TiePolicy::Shared`](crate::ranking::TiePolicy::Shared),
/// which have none, in the optimistic order. O(N log N).
///
/// # Panics
///
/// When the relevance was checked for another number of levels than the list has.
pub fn order(list: &RankedList, scoring: &Scoring, goal: Goal) -> Vec<usize> {
    let rel = list.relevance_by_level(scoring);
    let rel_of = |place: usize| rel[list.levels()[place]];
    let mut places = list.ranked_places(scoring, &rel);
    let is_free = |place: usize| goal == Goal::Ideal || list.levels()[place] < list.depth();
    let mut free: Vec<usize> = places.iter().copied().filter(|&place| is_free(place)).collect();
    match goal {
        Goal::Ideal | Goal::BestSameAp => sort_by_decreasing(&mut free, &rel_of),
        Goal::WorstSameAp => sort_by_decreasing(&mut free, &|place| -rel_of(place)),
    }
    let slots = places.iter_mut().filter(|place| is_free(**place));
    for (slot, place) in slots.zip(free) {
        *slot = place;
    }
    places
}
