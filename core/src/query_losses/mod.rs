//! Ranking losses of one query, as functions of its scores: plain numbers, without Burn.
//!
//! A query ranks N items. Item j has the score s_j and shares l_j levels with the query. Each function here takes these
//! and returns the loss and ∂L/∂s_j, the direction in which a training step moves the score of item j: down where it is
//! above 0, up where it is below.
//!
//! | function | loss |
//! |---|---|
//! | [`smooth_ap`] | 1 − AP with sigmoids for the step |
//! | [`sup_ap`] | a smooth upper bound of 1 − AP |
//! | [`calibration`] | positives above one score, negatives below another |
//! | [`roadmap`] | the last two together |
//! | [`hap_surrogate`] | a smooth upper bound of 1 − H-AP |
//! | [`smooth_hap`] | 1 − H-AP with sigmoids for the step |
//! | [`smooth_ndcg`], [`sup_ndcg`] | 1 − NDCG with sigmoids, and an upper bound of it |
//! | [`smooth_recall`], [`sup_recall`] | 1 − R@K with sigmoids, at every positive |
//!
//! They write the equations out as loops over pairs, O(N²) for a query, to explain the losses and to check them. For
//! training, `losses` (feature `tensor`) computes the same for batches, on any device. Its losses have the settings of
//! this module, and `tests/query_losses.rs` compares values and gradients. There a query also ranks itself, as one of its
//! positives; here it does so if the items contain it.
//!
//! ```
//! use akin_core::query_losses::{ScoredItems, SmoothApConfig, SupApConfig, smooth_ap, sup_ap};
//!
//! // A stranger ranks far above two items of the query's class (ROADMAP, fig. 8).
//! let items = ScoredItems::new(1, vec![0.60, 0.61, 0.74], vec![1, 1, 0])?;
//! let smooth = smooth_ap(&items, &SmoothApConfig::default().checked()?);
//! let bound = sup_ap(&items, &SupApConfig::default().checked()?);
//!
//! // The sigmoid is flat that far above: Smooth-AP leaves the stranger where it is. SupAP moves it down.
//! assert!(smooth.gradient[2].abs() < 1e-3);
//! assert!(bound.gradient[2] > 1.0);
//! # akin_core::Result::Ok(())
//! ```

mod calibration;
mod hap_surrogate;
mod ndcg;
mod recall;
mod roadmap;
mod smooth_ap;
mod smooth_hap;
mod sup_ap;

use crate::steps::Smooth;
use crate::{Error, Kind, Result};

pub use calibration::{CalibrationConfig, PairMean, calibration};
pub use hap_surrogate::{CheckedHapSurrogate, HapSurrogateConfig, ItemOrder, hap_surrogate};
#[cfg(feature = "tensor")]
pub(crate) use ndcg::gain;
pub use ndcg::{SmoothNdcgConfig, SupNdcgConfig, smooth_ndcg, sup_ndcg};
pub use recall::{SmoothRecallConfig, SupRecallConfig, smooth_recall, sup_recall};
pub use roadmap::{RoadmapConfig, roadmap};
pub use smooth_ap::{SmoothApConfig, smooth_ap};
pub use smooth_hap::{CheckedSmoothHap, SmoothHapConfig, smooth_hap};
pub use sup_ap::{SupApConfig, sup_ap};

/// The items that one query ranks: the score and the shared level of each.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredItems {
    depth: usize,
    scores: Vec<f64>,
    levels: Vec<usize>,
}

impl ScoredItems {
    /// Items of a taxonomy of `depth` levels, in any order.
    ///
    /// # Errors
    ///
    /// `depth` is 0; there are not as many levels as scores; a score is not finite; a level exceeds `depth`.
    pub fn new(depth: usize, scores: Vec<f64>, levels: Vec<usize>) -> Result<Self> {
        let refused = |message: String, hint: &str| Err(Error::new(Kind::Embeddings, message, hint));
        if depth == 0 {
            return refused("the taxonomy has no levels".into(), "give at least one level");
        }
        if scores.len() != levels.len() {
            let message = format!("there are {} scores and {} shared levels", scores.len(), levels.len());
            return refused(message, "give one shared level for each score");
        }
        if let Some(score) = scores.iter().find(|score| !score.is_finite()) {
            return refused(format!("a score is {score}"), "give finite scores");
        }
        if let Some(level) = levels.iter().find(|&&level| level > depth) {
            return refused(
                format!("an item shares level {level}, but there are {depth}"),
                "give shared levels from 0, a stranger, to the number of levels",
            );
        }
        Ok(Self { depth, scores, levels })
    }

    /// L, the number of levels.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The score of each item.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The shared level of each item, 0 … L.
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// Whether item k is of the query's own fine class.
    fn is_positive(&self, item: usize) -> bool {
        self.levels[item] == self.depth
    }

    /// 1/|P| for the items of the query's own fine class, 0 for the others.
    fn positive_weights(&self) -> Vec<f64> {
        let positives = self.levels.iter().filter(|&&level| level == self.depth).count();
        let weight = |&level: &usize| if level == self.depth { 1.0 / positives as f64 } else { 0.0 };
        self.levels.iter().map(weight).collect()
    }
}

/// A loss of one query, and what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryLoss {
    /// The loss.
    pub value: f64,
    /// ∂L/∂s_j for every item j. A training step moves the score of an item against it.
    pub gradient: Vec<f64>,
    /// The quotients of ranks that the loss averages, by item. Empty for a loss that is not a mean of such quotients.
    pub quotients: Vec<Quotient>,
}

/// The smooth ranks of an item k that counts in the average of a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quotient {
    /// k.
    pub item: usize,
    /// The numerator: the smooth rank among the positives, or the smooth H-rank.
    pub above: f64,
    /// The denominator: the smooth rank, above 0.
    pub rank: f64,
    /// The weight w_k of the quotient in the average.
    pub weight: f64,
}

/// What one item j adds to the two ranks of another item k.
struct Addends {
    above: Smooth<f64>,
    rank: Smooth<f64>,
}

/// Something constant that is added to a rank.
fn constant(value: f64) -> Smooth<f64> {
    Smooth { value, derivative: 0.0 }
}

/// 1 − Σ_k w_k · above_k / rank_k, or 0 if no item has a weight.
///
/// `start(k)` is what item k itself adds to above_k and rank_k; `addends(k, j, s_j − s_k)` is what another item j adds.
fn one_minus_quotients(
    items: &ScoredItems,
    weights: &[f64],
    start: impl Fn(usize) -> [f64; 2],
    addends: impl Fn(usize, usize, f64) -> Addends,
) -> QueryLoss {
    let size = items.scores.len();
    let mut loss = QueryLoss { value: 0.0, gradient: vec![0.0; size], quotients: Vec::new() };
    for (k, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        let others: Vec<(usize, Addends)> = (0..size)
            .filter(|&j| j != k)
            .map(|j| (j, addends(k, j, items.scores[j] - items.scores[k])))
            .collect();
        let [mut above, mut rank] = start(k);
        for (_, addends) in &others {
            above += addends.above.value;
            rank += addends.rank.value;
        }
        // ∂(above/rank)/∂s_j = (above′_j − (above/rank) · rank′_j) / rank, and minus that for s_k.
        let quotient = above / rank;
        for (j, addends) in others {
            let slope = weight * (addends.above.derivative - quotient * addends.rank.derivative) / rank;
            loss.gradient[j] -= slope;
            loss.gradient[k] += slope;
        }
        loss.value -= weight * quotient;
        loss.quotients.push(Quotient { item: k, above, rank, weight });
    }
    if !loss.quotients.is_empty() {
        loss.value += 1.0;
    }
    loss
}

/// 1 − Σ_k f_k(rank_k) over the items k that `ranked` chooses, or 0 if it chooses none.
///
/// `addend(k, j, s_j − s_k)` is what another item j adds to the rank of k, `value(k, rank_k)` is f_k.
fn one_minus_ranked(
    items: &ScoredItems,
    ranked: impl Fn(usize) -> bool,
    addend: impl Fn(usize, usize, f64) -> Smooth<f64>,
    value: impl Fn(usize, f64) -> Smooth<f64>,
) -> QueryLoss {
    let size = items.scores.len();
    let mut loss = QueryLoss { value: 0.0, gradient: vec![0.0; size], quotients: Vec::new() };
    let chosen: Vec<usize> = (0..size).filter(|&k| ranked(k)).collect();
    if !chosen.is_empty() {
        loss.value = 1.0;
    }
    for k in chosen {
        let others: Vec<(usize, Smooth<f64>)> = (0..size)
            .filter(|&j| j != k)
            .map(|j| (j, addend(k, j, items.scores[j] - items.scores[k])))
            .collect();
        let rank = others.iter().fold(1.0, |rank, (_, addend)| rank + addend.value);
        let item_value = value(k, rank);
        loss.value -= item_value.value;
        for (j, addend) in others {
            let slope = item_value.derivative * addend.derivative;
            loss.gradient[j] -= slope;
            loss.gradient[k] += slope;
        }
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Gain, average_precision, hierarchical_ap, ndcg};
    use crate::ranking::{Ranking, TiePolicy};
    use crate::steps::UpperStep;

    type Loss = Box<dyn Fn(&ScoredItems) -> QueryLoss>;

    fn losses(depth: usize) -> Vec<(&'static str, Loss)> {
        let smooth = SmoothApConfig::default().checked().unwrap();
        let sup = SupApConfig::default().checked().unwrap();
        let calibrated = CalibrationConfig::default().checked().unwrap();
        let both = RoadmapConfig::default().checked().unwrap();
        let surrogate = HapSurrogateConfig::default().checked(depth).unwrap();
        let hap = SmoothHapConfig::default().checked(depth).unwrap();
        let ndcg = SmoothNdcgConfig::default().checked().unwrap();
        let ndcg_bound = SupNdcgConfig::default().checked().unwrap();
        let recall = SmoothRecallConfig::default().checked().unwrap();
        let recall_bound = SupRecallConfig::default().checked().unwrap();
        vec![
            ("smooth_ap", Box::new(move |items| smooth_ap(items, &smooth))),
            ("sup_ap", Box::new(move |items| sup_ap(items, &sup))),
            ("calibration", Box::new(move |items| calibration(items, &calibrated))),
            ("roadmap", Box::new(move |items| roadmap(items, &both))),
            ("hap_surrogate", Box::new(move |items| hap_surrogate(items, &surrogate))),
            ("smooth_hap", Box::new(move |items| smooth_hap(items, &hap))),
            ("smooth_ndcg", Box::new(move |items| smooth_ndcg(items, &ndcg))),
            ("sup_ndcg", Box::new(move |items| sup_ndcg(items, &ndcg_bound))),
            ("smooth_recall", Box::new(move |items| smooth_recall(items, &recall))),
            ("sup_recall", Box::new(move |items| sup_recall(items, &recall_bound))),
        ]
    }

    fn mixed() -> ScoredItems {
        ScoredItems::new(2, vec![0.83, 0.81, 0.795, 0.74, 0.61, 0.602, 0.53], vec![0, 2, 1, 0, 1, 2, 2])
            .unwrap()
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let items = mixed();
        for (name, loss) in losses(2) {
            let gradient = loss(&items).gradient;
            for (j, slope) in gradient.into_iter().enumerate() {
                let value_with = |change: f64| {
                    let mut moved = items.clone();
                    moved.scores[j] += change;
                    loss(&moved).value
                };
                let difference = (value_with(1e-7) - value_with(-1e-7)) / 2e-7;
                assert!((slope - difference).abs() < 1e-5, "{name}, item {j}: {slope} {difference}");
            }
        }
    }

    #[test]
    fn a_query_without_positives_has_no_loss() {
        let strangers = ScoredItems::new(2, vec![0.5, 0.4], vec![0, 0]).unwrap();
        let nothing = ScoredItems::new(2, vec![], vec![]).unwrap();
        for (name, loss) in
            losses(2).into_iter().filter(|(name, _)| !["roadmap", "calibration"].contains(name))
        {
            let none = QueryLoss { value: 0.0, gradient: vec![0.0; 2], quotients: vec![] };
            assert_eq!(loss(&strangers), none, "{name}");
            assert_eq!(loss(&nothing).value, 0.0, "{name}");
        }
    }

    #[test]
    fn sup_ap_bounds_ap_and_the_surrogate_bounds_h_ap() {
        let items = mixed();
        let list = || items.scores.iter().map(|&s| s as f32).zip(items.levels.iter().copied());
        let ranking = Ranking::from_scores(2, TiePolicy::Stable, list());
        let step = UpperStep { start_at_zero: true, ..Default::default() };
        let bound = sup_ap(&items, &SupApConfig { step }.checked().unwrap());
        assert!(bound.value >= 1.0 - average_precision(&ranking, 2).unwrap());
        let config = HapSurrogateConfig::default();
        let h_ap = hierarchical_ap(&ranking, &config.relevance.checked(2).unwrap()).unwrap();
        assert!(hap_surrogate(&items, &config.checked(2).unwrap()).value >= 1.0 - h_ap);
    }

    #[test]
    fn sup_ndcg_bounds_ndcg_and_the_gain_is_that_of_the_metric() {
        let items = mixed();
        let list = || items.scores.iter().map(|&s| s as f32).zip(items.levels.iter().copied());
        let ranking = Ranking::from_scores(2, TiePolicy::Stable, list());
        let exact = 1.0 - ndcg(&ranking, Gain::Exponential, None).unwrap();
        let step = UpperStep { start_at_zero: true, ..Default::default() };
        assert!(sup_ndcg(&items, &SupNdcgConfig { step }.checked().unwrap()).value >= exact);
        let sharp = SmoothNdcgConfig { temperature: 1e-6 }.checked().unwrap();
        assert!((smooth_ndcg(&items, &sharp).value - exact).abs() < 1e-12);
    }

    #[test]
    fn with_narrow_sigmoids_the_recall_is_the_share_of_places_that_positives_take() {
        // The positives have the ranks 2, 6 and 7, so one is among the first 2 and two are among the first 6.
        let items = mixed();
        for (cutoff, recall) in [(1, 0.0), (2, 0.5), (4, 1.0 / 3.0), (6, 2.0 / 3.0), (100, 1.0)] {
            let config =
                SmoothRecallConfig { cutoffs: vec![cutoff], cutoff_temperature: 1e-6, temperature: 1e-6 };
            // Half of the sigmoid belongs to a rank that is exactly K.
            let at_cutoff =
                items.levels.iter().zip([1, 2, 3, 4, 5, 6, 7]).any(|(&l, r)| l == 2 && r == cutoff);
            let counted = recall - if at_cutoff { 0.5 / 3.0_f64.min(cutoff as f64) } else { 0.0 };
            let loss = smooth_recall(&items, &config.checked().unwrap());
            assert!((loss.value - (1.0 - counted)).abs() < 1e-9, "{cutoff}: {}", loss.value);
        }
    }

    #[test]
    fn cutoffs_that_cannot_be_are_refused() {
        let with = |cutoffs: Vec<usize>| SupRecallConfig { cutoffs, ..Default::default() };
        assert_eq!(with(vec![]).checked().unwrap_err().message(), "the cutoffs of sup_recall are []");
        assert_eq!(with(vec![1, 0]).checked().unwrap_err().message(), "the cutoffs of sup_recall are [1, 0]");
        let flat = SmoothRecallConfig { cutoff_temperature: 0.0, ..Default::default() };
        let message = "the cutoff_temperature of smooth_recall is 0";
        assert_eq!(flat.checked().unwrap_err().message(), message);
    }

    #[test]
    fn items_that_cannot_be_are_refused() {
        for (depth, scores, levels, start) in [
            (0, vec![], vec![], "the taxonomy has no levels"),
            (2, vec![0.5], vec![], "there are 1 scores and 0 shared levels"),
            (2, vec![f64::NAN], vec![1], "a score is NaN"),
            (2, vec![0.5], vec![3], "an item shares level 3, but there are 2"),
        ] {
            assert_eq!(ScoredItems::new(depth, scores, levels).unwrap_err().message(), start);
        }
    }
}
