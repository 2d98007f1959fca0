//! Smooth-AP: average precision with a sigmoid for the step (Brown et al., *Smooth-AP: Smoothing the Path Towards
//! Large-Scale Image Retrieval*, ECCV 2020).
//!
//! ```text
//! L = mean over queries i of 1 − (1/|P_i|) Σ_{k∈P_i} a_k / r_k
//! a_k = 1 + Σ_{j∈P_i, j≠k} σ((s_ij − s_ik)/τ)        r_k = 1 + Σ_{j≠k} σ((s_ij − s_ik)/τ)
//! ```
//!
//! A query ranks itself as one of its positives, as in the published code, so every query of a batch has a positive.
//! Against a reference set, a query without a positive is left out of the mean; the loss is 0 if no query has one.
//! An exact tie counts one half. The gradient is that of the equation.

use burn::module::Module;
use burn::tensor::Tensor;

use super::ranks::{Counts, are_sorted, fine_class_loss, positive_weights, weighted_quotients};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective};
use crate::geometry::Space;
use crate::smooth_ranks::{RankSteps, SmoothRanks};
use crate::steps::{Smooth, UpperStep};
use crate::{Checked, Result};

pub use crate::query_losses::SmoothApConfig;

impl BuildLoss for SmoothApConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "smooth_ap",
        title: "Smooth-AP",
        family: Family::AveragePrecision,
        summary: "1 − AP with sigmoids for steps",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["brown2020"],
        complete: true,
        preset: None,
    };
    type Loss = SmoothAp;

    fn init(&self, _: &LossContext) -> Result<SmoothAp> {
        let step = self.checked()?.step();
        let ranks = SmoothRanks::new(RankSteps::Sigmoid { step: step.clone() });
        Ok(SmoothAp { step, ranks })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct SmoothAp {
    /// The sigmoid alone, without the line of [`UpperStep`].
    #[module(skip)]
    step: Checked<UpperStep>,
    #[module(skip)]
    ranks: SmoothRanks,
}

impl Objective for SmoothAp {
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

impl SmoothAp {
    /// In tensor operations: O(B² · K) for K positives of a query.
    fn compare(&self, batch: &Batch) -> Tensor<1> {
        let [_, negatives] = batch.pairs();
        let positives = -negatives + 1.0;
        let weights = positive_weights(batch);
        let whole: f64 = weights.iter().sum();
        let scores = batch.scores();
        let ap = weighted_quotients(scores, weights, |t, block| {
            let Smooth { value, derivative } = self.step.apply(t);
            let positive = block.along_j(&positives);
            // At j = k the step gives σ(0) = ½ where the equation has 1.
            Counts {
                above: (value.clone() * positive.clone()).sum_dim(2) + 0.5,
                above_slope: Some(derivative.clone() * positive),
                rank: value.sum_dim(2) + 0.5,
                rank_slope: derivative,
            }
        });
        -ap + whole
    }
}
