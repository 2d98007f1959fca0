//! Metrics: how good a ranking is. One metric a file, each an exact function of a [`Ranking`](crate::ranking::Ranking).
//!
//! For one query, item i of the list has the rank rank(i), from 1, and the shared level l(i), 0 … L. It is a positive
//! at level l when l(i) ≥ l. R is the number of positives at the level, and rank⁺(i) is 1 + the number of them above i.
//! P is the number of positives at any level. "Ideal" is the largest value of the same sum over all orders of the list.
//!
//! | over all levels | question | equation | source |
//! |---|---|---|---|
//! | [`hierarchical_ap`] | is the list in order of relevance? | Σ H-rank(i)/rank(i) / Σ rel(i) | HAPPIER eq. 2–3 |
//! | [`weighted_ap`] | do the positives of every level come first? The weighted mean of AP | Σ w_l AP(l) / Σ w_l | HAPPIER property 1 |
//! | [`precision_recall_curve`] | how does precision change as recall rises? H-AP is the area below | [`h_precision`] over [`h_recall`] | HAPPIER eq. 9–11 |
//! | [`h_precision`] | how relevant are the first k items, relative to item k? | Σ_{rank(i) ≤ k} min(rel(i), rel_k) / (k rel_k) | HAPPIER eq. 10 |
//! | [`h_recall`] | what share of all relevance is in the first k items? | Σ_{rank(i) ≤ k} rel(i) / Σ rel(i) | HAPPIER eq. 9 |
//! | [`ndcg`] | is the list in order of level, above all at the top? | Σ gain(l(i)) / log2(1 + rank(i)) / ideal | Järvelin & Kekäläinen 2002; gain 2^l − 1: Burges et al. 2005 |
//! | [`mean_ndcg`] | the same, as HPDH's code computes it: the mean over the ranks up to k | 1/k Σ_{n ≤ k} DCG(n) / ideal DCG(n) | HPDH, Zhang et al. 2019 |
//! | [`asi`] | how far do the tops of the list and of the ideal list agree? | 1/P Σ_n SI(n) | DyML, Sun et al. 2021 |
//! | [`hierarchical_precision`] | how similar to the query's class are those of the first k items? | Σ_{rank(i) ≤ k} s(i) / ideal | Deng et al. 2011 |
//! | [`average_hierarchical_precision`] | the same over all ranks up to k, as an area | 1/k (Σ HP@n − (HP@1 + HP@k)/2) | Barz & Denzler 2019 |
//! | [`mahp`] | the same, as a mean | 1/k Σ_{n ≤ k} HP@n | HPDH, Zhang et al. 2019 |
//! | [`mistake_severity`] | how far from the query is the first mistake? | L − l(first wrong item) | Bertinetto et al. 2020 |
//!
//! | per level | question | equation | source |
//! |---|---|---|---|
//! | [`average_precision`] | do the positives of the level come first? | 1/R Σ rank⁺(i)/rank(i) | Manning et al. 2008 |
//! | [`trapezoid_average_precision`] | the same by trapezoids, as on Oxford and Paris | 1/R Σ (precision before i + precision at i)/2 | Radenović et al. 2018 |
//! | [`average_precision_at`] | the same as AP for the first k items | the same, rank(i) ≤ k | TREC's `map_cut` |
//! | [`map_at_r`] | the same for as many items as there are positives | the same, rank(i) ≤ R | Musgrave et al. 2020 |
//! | [`recall`] | is there a positive among the first k items? | 1 if any rank(i) ≤ k | Jégou et al. 2011 |
//! | [`true_recall`] | which share of the positives is among the first k items? | count / R | Manning et al. 2008 |
//! | [`capped_precision`] | how many of the first k items are positives, of those that can be? | count / min(k, R) | Manning et al. 2008 |
//! | [`precision`], [`r_precision`] | how many of the first k, or R, items are positives? | count / k | Manning et al. 2008 |
//! | [`reciprocal_rank`] | how soon does the first positive come? MRR is its mean | 1 / rank | Voorhees 1999 |
//!
//! All values are f64, and `None`, never NaN, for a query without positives. They are in \[0, 1\], and greater is
//! better; only [`mistake_severity`] counts levels, 0 … L, and smaller is better. A mean over queries leaves out those
//! without a value. [`crate::sources`] has the BibTeX of the sources.
//!
//! Three measures are functions of whole sets: the [decomposability gap](crate::evaluate::DecomposabilityGap) of ROADMAP,
//! the [δ-hyperbolicity](crate::evaluate::MeanHyperbolicity) of the distances, and the average over label sets of
//! [DyML](fn@crate::evaluate::dyml). The
//! [`Similarity`](crate::similarity::Similarity) decides what items are ranked by. The mAP@all of hash codes, for
//! example, is the mean of [`average_precision`] over rankings by Hamming distance.
//!
//! # How to add a metric
//!
//! `CONTRIBUTING.md` lists the files to touch. The `MetricEntry` says how configs and tables write the metric and how
//! it is computed. Its place in the [`CATALOGUE`] is its place in reports. Configs, reports and `akin list metrics`
//! read the catalogue; so do the laws in `tests/laws.rs`, which hold the metric to its range, to the ideal order and to
//! the tie policies.

mod asi;
mod average_precision;
mod bounds;
mod elsewhere;
mod hierarchical_ap;
mod hierarchical_precision;
mod map_at_r;
mod metric;
mod mistake_severity;
mod ndcg;
mod precision;
mod recall;
mod reciprocal_rank;
mod weighted_ap;

use metric::Compute;

pub use asi::asi;
pub use average_precision::{average_precision, average_precision_at, trapezoid_average_precision};
pub use bounds::{Bounds, bounds};
pub use hierarchical_ap::{CurvePoint, h_precision, h_recall, hierarchical_ap, precision_recall_curve};
pub use hierarchical_precision::{
    ClassSimilarity, average_hierarchical_precision, hierarchical_precision, mahp,
};
pub use map_at_r::map_at_r;
pub use metric::{Metric, MetricEntry, Unit};
pub use mistake_severity::mistake_severity;
pub use ndcg::{Gain, mean_ndcg, ndcg};
pub use precision::{capped_precision, precision, r_precision};
pub use recall::{recall, true_recall};
pub use reciprocal_rank::reciprocal_rank;
pub use weighted_ap::weighted_ap;

/// Every metric that a config can name, in the order of reports.
pub const CATALOGUE: &[MetricEntry] = &[
    hierarchical_ap::H_AP,
    weighted_ap::WEIGHTED_AP,
    hierarchical_ap::H_PRECISION,
    hierarchical_ap::H_RECALL,
    ndcg::NDCG,
    ndcg::NDCG_LINEAR,
    ndcg::MEAN_NDCG,
    asi::ASI,
    hierarchical_precision::HIERARCHICAL_PRECISION,
    hierarchical_precision::WU_PALMER_PRECISION,
    hierarchical_precision::AHP,
    hierarchical_precision::WU_PALMER_AHP,
    hierarchical_precision::MAHP,
    mistake_severity::MISTAKE_SEVERITY,
    average_precision::AP,
    average_precision::TRAPEZOID_AP,
    map_at_r::MAP_AT_R,
    recall::RECALL,
    recall::TRUE_RECALL,
    precision::PRECISION,
    precision::CAPPED_PRECISION,
    precision::R_PRECISION,
    reciprocal_rank::MRR,
];
