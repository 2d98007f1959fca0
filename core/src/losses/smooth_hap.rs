//! Smooth-HAP: hierarchical average precision with a sigmoid for the step (Ramzi et al., *Hierarchical Average Precision
//! Training for Pertinent Image Retrieval*, ECCV 2022, table 5, first row: "Smooth").
//!
//! ```text
//! L = mean over queries i of 1 − (1 / Σ_k rel_k) Σ_k H_k / r_k          k: items with a relevance
//! H_k = rel_k + Σ_{j≠k} σ((s_ij − s_ik)/τ) · min(rel_j, rel_k)
//! r_k = 1     + Σ_{j≠k} σ((s_ij − s_ik)/τ)
//! ```
//!
//! It is to the H-AP surrogate what Smooth-AP is to SupAP: the baseline without bounds. On one level it is
//! [`smooth_ap`](mod@super::smooth_ap).
//!
//! A query ranks itself as one of its positives, so every query of a batch has a positive. Against a reference set, a
//! query without one is left out of the mean; the loss is 0 if no query has one. An exact tie counts one half. The
//! gradient is that of the equation.

use burn::module::Module;
use burn::tensor::Tensor;

use super::ranks::{
    Counts, are_sorted, by_shared_level, reference_items, shared_levels, smooth_rank_loss, weighted_quotients,
};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, matrix};
use crate::Result;
use crate::geometry::Space;
use crate::query_losses::CheckedSmoothHap;
use crate::smooth_ranks::{RankSteps, SmoothRanks};

pub use crate::query_losses::SmoothHapConfig;

impl BuildLoss for SmoothHapConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "smooth_hap",
        title: "Smooth-HAP",
        family: Family::AveragePrecision,
        summary: "1 − H-AP over all levels with sigmoids for steps",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2022"],
        complete: true,
        preset: None,
    };
    type Loss = SmoothHap;

    fn init(&self, context: &LossContext) -> Result<SmoothHap> {
        let settings = self.checked_for(context.classes)?;
        let ranks = SmoothRanks::new(RankSteps::Sigmoid { step: settings.step.clone() });
        Ok(SmoothHap { settings, ranks })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct SmoothHap {
    #[module(skip)]
    settings: CheckedSmoothHap,
    #[module(skip)]
    ranks: SmoothRanks,
}

impl Objective for SmoothHap {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        if are_sorted(batch) {
            let relevances = |counts: &[usize]| self.settings.relevance.by_level(counts);
            let places = by_shared_level(batch.labels, batch.items().labels, relevances);
            return smooth_rank_loss(batch.embeddings.clone(), reference_items(batch), &self.ranks, places);
        }
        self.compare(batch)
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        Some(self.compare(batch))
    }
}

impl SmoothHap {
    /// In tensor operations: O(B² · K) for K positives of a query.
    fn compare(&self, batch: &Batch) -> Tensor<1> {
        let scores = batch.scores();
        let [queries, size] = scores.dims();
        let shared = shared_levels(batch.labels, batch.items().labels);
        let (mut relevances, mut weights) = (Vec::new(), Vec::new());
        let mut counted = 0_u32;
        for levels in shared.chunks(size) {
            let mut counts = vec![0; batch.labels.levels() + 1];
            levels.iter().for_each(|&level| counts[level] += 1);
            let by_level = self.settings.relevance.by_level(&counts);
            let total: f64 = levels.iter().map(|&level| by_level[level]).sum();
            counted += u32::from(total > 0.0);
            relevances.extend(levels.iter().map(|&level| by_level[level]));
            weights.extend(levels.iter().map(|&level| if by_level[level] > 0.0 { 1.0 / total } else { 0.0 }));
        }
        weights.iter_mut().for_each(|weight| *weight /= f64::from(counted.max(1)));
        let relevances = matrix(relevances, [queries, size], &scores);
        let h_ap = weighted_quotients(scores, weights, |t, block| {
            let shape = t.dims();
            let relevance = block.along_k(&relevances);
            let shared = relevance.clone().expand(shape).min_pair(block.along_j(&relevances).expand(shape));
            let step = self.settings.step.apply(t);
            // At j = k the step gives σ(0) = ½ where the equations have 1.
            Counts {
                above: (step.value.clone() * shared.clone()).sum_dim(2) + relevance * 0.5,
                above_slope: Some(step.derivative.clone() * shared),
                rank: step.value.sum_dim(2) + 0.5,
                rank_slope: step.derivative,
            }
        });
        -h_ap + f64::from(counted.min(1))
    }
}
