//! SmoothNDCG and SupNDCG: smooth stand-ins for 1 − NDCG over all levels (Ramzi et al., *Optimization of Rank Losses for
//! Image Retrieval*, TPAMI 2025).
//!
//! ```text
//! L = mean over queries i of 1 − Σ_k (2^{l_k} − 1) / log2(1 + r_k) ÷ the same sum in the order of levels
//! r_k = 1 + Σ_{j≠k} step(s_ij − s_ik)
//! ```
//!
//! l_k is the shared level of query and item, 0 … L. SmoothNDCG has the sigmoid for every step. SupNDCG has the
//! [`UpperStep`] for the items of a lower level than k, and the true step, which has no gradient, for the others. The
//! ideal sum is exact, with whole ranks. Therefore SupNDCG is an upper bound of 1 − NDCG, but for exact ties, which count
//! one half (see [`sup_ap`](mod@super::sup_ap)). With ties among relevant items the true step counts all of them above
//! each other, so that the loss of a perfect ranking with ties is above 0.
//!
//! A query ranks itself as one of its positives, as in the published code, so every query of a batch has a positive.
//! Against a reference set, a query without one is left out of the mean; the loss is 0 if no query has one. The
//! published code computes the discount of an item in a branch that overwrites its rank when queries and items differ;
//! here both cases are the equation.

use burn::module::Module;
use burn::tensor::Tensor;

use super::ranks::{
    Block, Counts, Values, are_sorted, by_shared_level, reference_items, shared_levels, smooth_rank_loss,
    weighted_values,
};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, matrix};
use crate::geometry::Space;
use crate::query_losses::gain;
use crate::smooth_ranks::{RankSteps, RankValue, SmoothRanks};
use crate::steps::UpperStep;
use crate::steps::tensors::heaviside;
use crate::{Checked, Result};

pub use crate::query_losses::{SmoothNdcgConfig, SupNdcgConfig};

impl BuildLoss for SmoothNdcgConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "smooth_ndcg",
        title: "SmoothNDCG",
        family: Family::AveragePrecision,
        summary: "1 − NDCG over all levels with sigmoids for steps",
        optimises: "ndcg",
        spaces: &[Space::Cosine],
        sources: &["ramzi2025"],
        complete: true,
        preset: None,
    };
    type Loss = Ndcg;

    fn init(&self, _: &LossContext) -> Result<Ndcg> {
        let step = self.checked()?.step();
        Ok(Ndcg::new(RankSteps::Sigmoid { step }))
    }
}

impl BuildLoss for SupNdcgConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "sup_ndcg",
        title: "SupNDCG",
        summary: "a smooth upper bound of 1 − NDCG over all levels",
        ..SmoothNdcgConfig::ENTRY
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "roadndcg",
            title: "ROADNDCG",
            summary: "SupNDCG with the clustering loss of HAPPIER, as in the code for SOP",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_ndcg", "step": { "offset": 1.44 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "roadndcg_inat",
            title: "ROADNDCG (iNaturalist)",
            summary: "SupNDCG with the clustering loss of HAPPIER, as in the code for iNaturalist",
            sources: &["ramzi2025"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 0.9, "loss": { "kind": "sup_ndcg", "step": { "offset": 1.0, "start": 0.0 } } },
                    { "weight": 0.1, "loss": { "kind": "norm_softmax" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = Ndcg;

    fn init(&self, _: &LossContext) -> Result<Ndcg> {
        let upper = self.checked()?.step();
        Ok(Ndcg::new(RankSteps::Bounds { upper, lower: None }))
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Ndcg {
    #[module(skip)]
    steps: RankSteps,
    #[module(skip)]
    ranks: SmoothRanks,
}

impl Ndcg {
    fn new(steps: RankSteps) -> Self {
        Self { ranks: SmoothRanks::with_value(steps.clone(), RankValue::DiscountedGain), steps }
    }

    /// In tensor operations: O(B² · K) for K positives of a query.
    fn compare(&self, batch: &Batch) -> Tensor<1> {
        let scores = batch.scores();
        let [queries, size] = scores.dims();
        let shared = shared_levels(batch.labels, batch.items().labels);
        let mut weights = Vec::with_capacity(shared.len());
        let mut counted = 0_u32;
        for levels in shared.chunks(size) {
            let mut best = levels.to_vec();
            best.sort_unstable_by(|a, b| b.cmp(a));
            let discounted = |(level, next): (usize, u32)| gain(level) / f64::from(next).log2();
            let ideal: f64 = best.into_iter().zip(2..).map(discounted).sum();
            counted += u32::from(ideal > 0.0);
            weights.extend(levels.iter().map(|&level| if level > 0 { gain(level) / ideal } else { 0.0 }));
        }
        weights.iter_mut().for_each(|weight| *weight /= f64::from(counted.max(1)));
        let levels = shared.into_iter().map(|level| level as f64).collect();
        let levels = matrix(levels, [queries, size], &scores);
        let count = |t: Tensor<3>, block: &Block| {
            rank_counts(&self.steps, t, || block.along_j(&levels).lower(block.along_k(&levels)))
        };
        let ndcg = weighted_values(scores, weights, count, |_, rank, _| {
            let logarithm = (rank.clone() + 1.0).log() * (1.0 / std::f64::consts::LN_2);
            let value = logarithm.clone().recip();
            let slope = (logarithm.square() * (rank + 1.0)).recip() * (-1.0 / std::f64::consts::LN_2);
            Values { above_slope: value.zeros_like(), rank_slope: slope, value }
        });
        -ndcg + f64::from(counted.min(1))
    }
}

/// The counts of a loss whose value is a function of the rank alone. `below` says which items belong below k.
pub(super) fn rank_counts(
    steps: &RankSteps,
    t: Tensor<3>,
    below: impl Fn() -> Tensor<3, burn::tensor::Bool>,
) -> Counts {
    let (rank, rank_slope) = match steps {
        RankSteps::Sigmoid { step } => {
            let step = step.apply(t);
            // At j = k the step gives σ(0) = ½ where the equation has 1.
            (step.value.sum_dim(2) + 0.5, step.derivative)
        }
        RankSteps::Bounds { upper, .. } => upper_counts(upper, t, below()),
    };
    Counts { above: rank.zeros_like(), above_slope: None, rank, rank_slope }
}

/// The rank and its slopes with the upper step where `below` is set, and the true step elsewhere, which supplies the 1.
fn upper_counts(
    upper: &Checked<UpperStep>,
    t: Tensor<3>,
    below: Tensor<3, burn::tensor::Bool>,
) -> (Tensor<3>, Tensor<3>) {
    let hard = heaviside(t.clone());
    let step = upper.apply(t);
    let rank = hard.mask_where(below.clone(), step.value).sum_dim(2);
    (rank, step.derivative.mask_fill(below.bool_not(), 0.0))
}

impl Objective for Ndcg {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        if are_sorted(batch) {
            let gains = |counts: &[usize]| (0..counts.len()).map(gain).collect();
            let places = by_shared_level(batch.labels, batch.items().labels, gains);
            return smooth_rank_loss(batch.embeddings.clone(), reference_items(batch), &self.ranks, places);
        }
        self.compare(batch)
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        Some(self.compare(batch))
    }
}
