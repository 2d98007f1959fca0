//! SmoothRecall and SupRecall: smooth stand-ins for 1 − R@K on the fine classes (Ramzi et al., *Optimization of Rank
//! Losses for Image Retrieval*, TPAMI 2025).
//!
//! ```text
//! L = mean over queries i of 1 − mean over K of Σ_{k∈P_i} σ((K − r_k)/T) ÷ min(|P_i|, K)
//! r_k = 1 + Σ_{j≠k} step(s_ij − s_ik)
//! ```
//!
//! P_i are the items of the query's fine class, the query among them. SmoothRecall has the sigmoid for every step.
//! SupRecall has the [`UpperStep`](crate::steps::UpperStep) for negatives, and the true step, which has no gradient, for
//! positives.
//!
//! R@K here is the share of the first K places that positives take, of those they could. The metric `recall@K` asks only
//! whether there is one positive; at K = 1 both are the same. Both sigmoids are ½ at their corner: a positive at exactly
//! rank K counts one half. So the loss of a perfect ranking is not 0: with T = 1, K = 1 and one positive it is ½.
//!
//! A query ranks itself as one of its positives, as in the published code. Against a reference set, a query without a
//! positive is left out of the mean; the loss is 0 if no query has one. The published code needs equally many positives
//! for every query; here each has its own number.

use burn::module::Module;
use burn::tensor::Tensor;

use super::ndcg::rank_counts;
use super::ranks::{Block, Values, are_sorted, fine_class_loss, weighted_values};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, matrix};
use crate::Result;
use crate::geometry::Space;
use crate::smooth_ranks::{RankSteps, RankValue, SmoothRanks};

pub use crate::query_losses::{SmoothRecallConfig, SupRecallConfig};

impl BuildLoss for SmoothRecallConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "smooth_recall",
        title: "SmoothRecall",
        family: Family::AveragePrecision,
        summary: "1 − R@K on the fine classes with sigmoids for steps",
        optimises: "recall@1",
        spaces: &[Space::Cosine],
        sources: &["ramzi2025"],
        complete: true,
        preset: None,
    };
    type Loss = Recall;

    fn init(&self, _: &LossContext) -> Result<Recall> {
        let step = self.checked()?.step();
        Ok(Recall::new(RankSteps::Sigmoid { step }, &self.cutoffs, self.cutoff_temperature))
    }
}

impl BuildLoss for SupRecallConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "sup_recall",
        title: "SupRecall",
        summary: "1 − R@K on the fine classes with an upper bound of each rank",
        ..SmoothRecallConfig::ENTRY
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "roadratk",
            title: "ROADRatk",
            summary: "SupRecall with the clustering loss of HAPPIER, as in the code for SOP",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_recall", "step": { "offset": 1.44 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "roadratk_inat",
            title: "ROADRatk (iNaturalist)",
            summary: "SupRecall with the clustering loss of HAPPIER, as in the code for iNaturalist",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_recall", "step": { "offset": 1.0, "start": 0.0 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = Recall;

    fn init(&self, _: &LossContext) -> Result<Recall> {
        let upper = self.checked()?.step();
        Ok(Recall::new(RankSteps::Bounds { upper, lower: None }, &self.cutoffs, self.cutoff_temperature))
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Recall {
    #[module(skip)]
    steps: RankSteps,
    #[module(skip)]
    cutoffs: Vec<usize>,
    #[module(skip)]
    cutoff_temperature: f64,
    #[module(skip)]
    ranks: SmoothRanks,
}

impl Recall {
    fn new(steps: RankSteps, cutoffs: &[usize], cutoff_temperature: f64) -> Self {
        let cutoffs = cutoffs.to_vec();
        let value = RankValue::Recall { cutoffs: cutoffs.clone(), temperature: cutoff_temperature };
        Self { ranks: SmoothRanks::with_value(steps.clone(), value), steps, cutoffs, cutoff_temperature }
    }

    /// In tensor operations: O(B² · K) for K positives of a query.
    fn compare(&self, batch: &Batch) -> Tensor<1> {
        let scores = batch.scores();
        let [queries, _] = scores.dims();
        let [_, negatives] = batch.pairs();
        let item_labels = batch.items().labels;
        let item_classes = item_labels.column(item_labels.levels());
        let query_classes = batch.labels.column(batch.labels.levels());
        let positives: Vec<usize> = query_classes
            .iter()
            .map(|class| item_classes.iter().filter(|other| *other == class).count())
            .collect();
        let counted = positives.iter().filter(|&&count| count > 0).count().max(1);
        let row = |class| {
            item_classes.iter().map(move |other| if class == other { 1.0 / counted as f64 } else { 0.0 })
        };
        let weights: Vec<f64> = query_classes.iter().flat_map(row).collect();
        let cutoffs: Vec<(f64, Tensor<2>)> = self
            .cutoffs
            .iter()
            .map(|&cutoff| {
                let share = |&count: &usize| 1.0 / (self.cutoffs.len() * cutoff.min(count.max(1))) as f64;
                let shares = positives.iter().map(share).collect();
                (cutoff as f64, matrix(shares, [queries, 1], &scores))
            })
            .collect();
        let count = |t: Tensor<3>, block: &Block| {
            rank_counts(&self.steps, t, || block.along_j(&negatives).greater_scalar(0.5))
        };
        let per_temperature = 1.0 / self.cutoff_temperature;
        let whole = f64::from(u8::from(positives.iter().any(|&count| count > 0)));
        let recall = weighted_values(scores, weights, count, |_, rank, block| {
            let (mut value, mut rank_slope) = (rank.zeros_like(), rank.zeros_like());
            for (cutoff, shares) in &cutoffs {
                let share = block.along_queries(shares);
                let hit = (((rank.clone() - *cutoff) * per_temperature).exp() + 1.0).recip();
                rank_slope =
                    rank_slope - share.clone() * hit.clone() * (-hit.clone() + 1.0) * per_temperature;
                value = value + share * hit;
            }
            Values { above_slope: value.zeros_like(), rank_slope, value }
        });
        -recall + whole
    }
}

impl Objective for Recall {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        if are_sorted(batch) {
            return fine_class_loss(batch, &self.ranks);
        }
        self.compare(batch)
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        Some(self.compare(batch))
    }
}
