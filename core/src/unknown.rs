//! Unknown labels: what a pair of items tells where a label is not known, and how scores are estimated without it.
//!
//! A label path may be known down to any level. Unknown is not a class: two owls of unknown species share "owl", and may
//! share more. So the shared level of two items is an interval, [`shared_interval`](crate::taxonomy::shared_interval).
//!
//! # Which pairs are decided
//!
//! A pair is decided at level l if both labels are known there, or if they differ at a coarser level:
//! [`SharedInterval::share`](crate::taxonomy::SharedInterval::share). Losses have no term for a pair at a level at which it
//! is not decided; losses that rank by all levels rank for a query by the levels at which it is known. A ranking leaves the
//! pair out, as it leaves out junk: [`Ranking::decided`](crate::ranking::Ranking::decided).
//! A metric over all levels needs the shared level itself, so it ranks the pairs whose interval is a single level. A
//! query whose own label is unknown at l has no decided positive there, and is left out of the mean at l; metrics over
//! all levels leave out every query with an unknown label, because their mean would mix taxonomies of different depth.
//!
//! # Why decided pairs have weights
//!
//! Assume that labels are missing at random: whether a label is known depends neither on the item's class nor on its place
//! in the ranking. Let p_l be the share of the gallery whose label is known at level l; it falls with l, and p_1 = 1. An
//! item that shares exactly level s < l with the query differs from it at level s + 1. The pair is decided at l if the item
//! is known at s + 1, which has the probability p_(s+1). An item that shares l is decided with the probability p_l. So
//! strangers are decided more often than kin, and a list without the undecided pairs has too few kin.
//!
//! Let d_i be 1 if item i is decided and w_i = 1 / P(d_i = 1), that is 1 / p_min(s+1, l). For any number a_i of an item,
//!
//! ```text
//! E[Σ_i d_i w_i a_i] = Σ_i a_i
//! ```
//!
//! which is the estimator of Horvitz and Thompson (1952) for a sample in which items have different chances. With a_i = 1
//! for items above i, for positives above i, and for all positives, the terms of AP become
//!
//! ```text
//! rank(i)  ≈ 1 + Σ_{j above i} d_j w_j
//! rank⁺(i) ≈ 1 + Σ_{j above i} d_j w_j [j positive]
//! AP ≈ Σ_i d_i w_i rank⁺(i) / rank(i) / Σ_i d_i w_i        over the positives i
//! ```
//!
//! An item counts 1 in its own rank, because its term exists only if it is decided. |Ω(l)| is the weight of its decided
//! items, so that H-AP follows in the same way. Each sum is right in the mean over ways to lose labels; their quotient has
//! a bias that falls with the number of positives. Sampled judgements of retrieval are scored in the same way (Aslam, Pavlu
//! & Yilmaz, 2006).
//!
//! What needs no other item's label than i's needs the rank of i in the whole list, in which items that are left out keep
//! their ranks: these are known. P@k is Σ d_i w_i / k over the positives of rank at most k. R@k is 1 − Π (1 − y_i), where
//! y_i says whether item i is a positive. The factors of different items are independent, so that 1 − Π (1 − d_i w_i y_i)
//! has the right mean. The value of a single query may leave \[0, 1\].
//!
//! # NDCG
//!
//! DCG needs the rank in the whole list, too, and is a sum over items. With g_i for the gain of item i,
//!
//! ```text
//! DCG ≈ Σ_i d_i w_i g_i / log2(1 + rank(i))
//! ```
//!
//! has the right mean. The ideal DCG needs N_l, the number of items that share at least level l, only. With g_l for the
//! gain of level l, g_0 = 0, and D(n) = Σ_{r ≤ n} 1 / log2(1 + r) it is Σ_l (g_l − g_(l−1)) D(N_l), in which the weight of
//! the decided items stands for N_l. It need not be a whole number: D is linear between whole numbers, so that an item of
//! weight 1.4 fills one rank and two fifths of the next.
//!
//! The quotient has two biases of second order. D is concave, so that the ideal DCG comes out too low and NDCG too high.
//! Both DCGs are large when many items are decided, which makes their quotient too low. The two are of similar size, so
//! that correcting the first alone would enlarge the error.
//!
//! These estimates are made for H-AP, H-R@k, AP, AP@k, mAP@R, NDCG, ASI, R@k, P@k, R-precision, MRR and Σ wAP. The other
//! metrics are those of the ranking without its undecided pairs: H-P@k, mean NDCG, hierarchical precision and its
//! averages, and the severity of mistakes.
//!
//! With every label known each weight is 1 and nothing is left out, so that no score changes by a digit.
//!
//! # Bounds without the assumption
//!
//! [`bounds`](crate::metrics::bounds) are valid whatever the hidden labels are, and a mean lies between the means of its
//! queries' bounds. They may be loose.

use rand::{Rng, RngExt};

use crate::taxonomy::{Labels, UNKNOWN};

/// The labels with holes: a share of the items, drawn one by one, is known only down to a level that is drawn from 1 … L − 1.
/// With one level nothing is cut. So scores of the full labels can be compared with what would be seen of them.
pub fn cut_at_random(labels: &Labels, share: f64, random: &mut impl Rng) -> Labels {
    let levels = labels.levels();
    let rows = (0..labels.len()).flat_map(|item| {
        let mut row = labels.row(item).to_vec();
        let known = labels.known(item);
        if random.random_bool(share) && known > 1 {
            row[random.random_range(1..known)..].fill(UNKNOWN);
        }
        row
    });
    Labels::new(levels, rows.collect()).expect("level 1 stays known, and unknown labels are the last")
}

/// Above this weight a product of factors 1 − w has too large a variance: it grows in size with each factor.
pub(crate) const LARGEST_FACTOR_WEIGHT: f64 = 2.0;
