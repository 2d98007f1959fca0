//! What a ranking is worth: one metric a file, each an exact function of a [`Ranking`](crate::ranking::Ranking).
//!
//! For one query, item i of the list has the rank rank(i), from 1, and the shared level l(i), 0 … L. It is a positive
//! at level l when l(i) ≥ l; R counts them, and rank⁺(i) is 1 + the number of them above i. P counts the positives at
//! any level. "Ideal" is the largest value of the same sum over all orders of the list. The sources are
//! those of [`crate::sources`].
//!
//! | over all levels | asks | equation | source |
//! |---|---|---|---|
//! | [`hierarchical_ap`] | is the list in order of relevance, every level weighed? | Σ H-rank(i)/rank(i) / Σ rel(i) | HAPPIER eq. 2–3 |
//! | [`weighted_ap`] | the AP of every level, weighed | Σ w_l AP(l) / Σ w_l | HAPPIER property 1 |
//! | [`precision_recall_curve`] | H-AP rank by rank: it is the area below | [`h_precision`] over [`h_recall`] | HAPPIER eq. 9–11 |
//! | [`h_precision`] | how relevant are the first k, for the k-th? | Σ_{rank(i) ≤ k} min(rel(i), rel_k) / (k rel_k) | HAPPIER eq. 9–11 |
//! | [`h_recall`] | which part of all relevance have the first k? | Σ_{rank(i) ≤ k} rel(i) / Σ rel(i) | HAPPIER eq. 9–11 |
//! | [`ndcg`] | is the list in order of level, the top most of all? | Σ gain(l(i)) / log2(1 + rank(i)) / ideal | Järvelin & Kekäläinen 2002; gain 2^l − 1: Burges et al. 2005 |
//! | [`asi`] | how much do the list's and the ideal list's tops agree? | 1/P Σ_n SI(n) | DyML, Sun et al. 2021 |
//! | [`hierarchical_precision`] | how like the query's are the classes of the first k? | Σ_{rank(i) ≤ k} s(i) / ideal | Deng et al. 2011 |
//! | [`average_hierarchical_precision`] | the same over all ranks up to k, as an area | 1/k (Σ HP@n − (HP@1 + HP@k)/2) | Barz & Denzler 2019 |
//! | [`mahp`] | the same, as a mean | 1/k Σ_{n ≤ k} HP@n | HPDH, Zhang et al. 2019 |
//! | [`mistake_severity`] | how far off is the first mistake? | L − l(first wrong item) | Bertinetto et al. 2020 |
//!
//! | per level | asks | equation | source |
//! |---|---|---|---|
//! | [`average_precision`] | do the positives of the level come first? | 1/R Σ rank⁺(i)/rank(i) | Manning et al. 2008 |
//! | [`average_precision_at`] | the same of the first k items | the same, rank(i) ≤ k | TREC's `map_cut` |
//! | [`map_at_r`] | AP that looks no further than the number of positives | the same, rank(i) ≤ R | Musgrave et al. 2020 |
//! | [`recall`] | is there a positive among the first k? | 1 if any rank(i) ≤ k | Jégou et al. 2011 |
//! | [`precision`], [`r_precision`] | how many of the first k, or R, are positives? | count / k | Manning et al. 2008 |
//! | [`reciprocal_rank`] | how soon does the first positive come? MRR is its mean | 1 / rank | Voorhees 1999 |
//!
//! All are in f64 and `None`, never NaN, for a query without positives. They lie in \[0, 1\], and more is better; only
//! [`mistake_severity`] counts levels, 0 … L, and less is better. A mean over queries leaves out those without a value.
//!
//! Functions of whole sets, not of one ranking, are the [decomposability gap](crate::evaluate::DecomposabilityGap) of
//! ROADMAP and the average over label sets of [DyML](fn@crate::evaluate::dyml).
//! [`Similarity`](crate::similarity::Similarity) says what the rankings are by, so that, for one, mAP@all of hash codes is
//! the mean of [`average_precision`] over rankings by Hamming distance.
//!
//! # To add a metric
//!
//! Write the function in a file of its own; give it a variant of [`Metric`], which the compiler then asks for in two
//! matches of `catalogue.rs`; and describe it in [`CATALOGUE`], from which configs, reports, `akin list metrics` and
//! the laws of `tests/laws.rs` take it.

mod asi;
mod average_precision;
mod catalogue;
mod hierarchical_ap;
mod hierarchical_precision;
mod map_at_r;
mod mistake_severity;
mod ndcg;
mod precision;
mod recall;
mod reciprocal_rank;
mod weighted_ap;

pub use asi::asi;
pub use average_precision::average_precision;
pub use catalogue::{CATALOGUE, Metric, MetricEntry, Unit};
pub use hierarchical_ap::{CurvePoint, h_precision, h_recall, hierarchical_ap, precision_recall_curve};
pub use hierarchical_precision::{
    ClassSimilarity, average_hierarchical_precision, hierarchical_precision, mahp,
};
pub use map_at_r::{average_precision_at, map_at_r};
pub use mistake_severity::mistake_severity;
pub use ndcg::{Gain, ndcg};
pub use precision::{precision, r_precision};
pub use recall::recall;
pub use reciprocal_rank::reciprocal_rank;
pub use weighted_ap::weighted_ap;
