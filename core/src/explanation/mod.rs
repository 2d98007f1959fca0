//! One ranking explained: what each item adds to H-AP, what a move changes and why, and which orders are best.
//!
//! A [`Ranking`] keeps only what metrics need. A [`RankedList`] keeps every item in its place, so that a
//! reader can move one. The scores themselves come from [`crate::metrics`], of the list's [`ranking`](RankedList::ranking).
//!
//! ```
//! use akin_core::explanation::{RankedList, Scoring, swaps};
//! use akin_core::metrics::hierarchical_ap;
//! use akin_core::ranking::TiePolicy;
//! use akin_core::relevance::Relevance;
//!
//! let relevance = Relevance::Plain { alpha: 1.0 }.checked(3)?;
//! let scoring = Scoring { relevance, ties: TiePolicy::Stable, count_query: false };
//! // The second item, of the query's own class, moves to the top.
//! let list = RankedList::new(3, vec![2, 3, 0, 1, 3], None)?;
//! let h_ap = |list: &RankedList| hierarchical_ap(&list.ranking(&scoring), &scoring.relevance).unwrap();
//! let rise = h_ap(&list.moved(1, 0)?) - h_ap(&list);
//! let swap = swaps(&list, &scoring, 1, 0)?.unwrap()[0];
//! assert!((swap.delta - rise).abs() < 1e-12);
//! // Both have no item above them, so that only their own relevances count: (1 − 2/3) / (1 · 2 · 3).
//! assert!((rise - 1.0 / 18.0).abs() < 1e-12);
//! # akin_core::Result::Ok(())
//! ```

mod orders;
mod pair;
mod ranked_list;
mod swaps;
mod terms;

pub use orders::{Goal, order};
pub use pair::{PairRequest, pair};
pub use ranked_list::{RankedList, Scoring};
pub use swaps::{Swap, Swapped, swaps};
pub use terms::{ItemTerm, level_curve, terms};

#[cfg(doc)]
use crate::ranking::Ranking;

/// Sorts numbers by decreasing value; those of equal value keep their order. It is the only sort of this module and not
/// generic, because each other would add kilobytes to the module that the page loads.
fn sort_by_decreasing(numbers: &mut [usize], value: &dyn Fn(usize) -> f64) {
    numbers.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
}
