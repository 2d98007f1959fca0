//! What a ranking is worth: one metric a file, each an exact function of a [`Ranking`](crate::ranking::Ranking).
//!
//! | metric | asks |
//! |---|---|
//! | [`hierarchical_ap`] | is the list in order of relevance, every level weighed? |
//! | [`precision_recall_curve`] | the same, rank by rank: its area is H-AP |
//! | [`average_precision`] | do the positives of one level come first? |
//! | [`ndcg`] | is the list in order of level, the top most of all? |
//! | [`asi`] | how much do the list's and the ideal list's tops agree? |
//! | [`recall`] | is there a positive among the first k? |
//! | [`map_at_r`] | AP that looks no further than the number of positives |
//!
//! All are in f64, lie in \[0, 1\], and are `None` for a query without positives, never NaN.

mod asi;
mod average_precision;
mod hierarchical_ap;
mod map_at_r;
mod ndcg;
mod recall;

pub use asi::asi;
pub use average_precision::average_precision;
pub use hierarchical_ap::{CurvePoint, hierarchical_ap, precision_recall_curve};
pub use map_at_r::map_at_r;
pub use ndcg::ndcg;
pub use recall::recall;
