//! Calibration: scores that mean the same in every batch, so that AP over batches equals AP over the whole set (Ramzi
//! et al., *Robust and Decomposable Average Precision for Image Retrieval*, NeurIPS 2021, eq. 7).
//!
//! ```text
//! L = mean over queries i of (1/|P_i|) Σ_{j∈P_i} [α − s_ij]₊ + (1/|N_i|) Σ_{j∈N_i} [s_ij − β]₊
//! ```
//!
//! If L = 0 and β < α, every positive of any batch scores above every negative of any other. Each of the two sums is
//! averaged over the queries that have such pairs, and is 0 if no query has any. At s = α or β, and where no pair has a
//! loss, the gradient is 0.
//!
//! # Text and code
//!
//! The defaults are the text. The published code averages over all pairs that have a loss at once ([`PairMean::Active`]):
//! the preset `calibration_published`. ROADMAP with the text's mean is the better one in the table of
//! [`roadmap`](super::roadmap). The paper's P_i are all
//! relevant items of a set that contains the query. It does not say whether a query is relevant to itself. If it is, it
//! adds 0 to the sum and 1 to |P_i|: [`PairMean::QueriesWithSelf`].

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, mask_above_zero, normalise_if,
    query_mean_weights,
};
use crate::geometry::Space;
use crate::{Checked, Result};

pub use crate::query_losses::{CalibrationConfig, PairMean};

impl BuildLoss for CalibrationConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "calibration",
        title: "Calibration",
        family: Family::Decomposability,
        summary: "positives above one score and negatives below another, the same in every batch",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2021"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "calibration_published",
        title: "Calibration (code)",
        summary: "the calibration as in its published code, averaged over the pairs that have a loss",
        preset: Some(r#"{ "kind": "calibration", "mean": "active", "normalise_embeddings": true }"#),
        ..Self::ENTRY
    }];
    type Loss = Calibration;

    fn init(&self, _: &LossContext) -> Result<Calibration> {
        Ok(Calibration { config: self.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Calibration {
    #[module(skip)]
    config: Checked<CalibrationConfig>,
}

impl Objective for Calibration {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let unit = |rows| normalise_if(self.config.normalise_embeddings, rows);
        let scores = unit(batch.embeddings.clone()).matmul(unit(batch.items().embeddings).transpose());
        let [positives, negatives] = batch.pairs();
        let [positives_and_self, _] = batch.pairs_with_self();
        let mean = |excess: Tensor<2>, pairs: Tensor<2>, pairs_and_self: Tensor<2>| {
            let excess = relu(excess);
            let weights = match self.config.mean {
                PairMean::Queries => query_mean_weights(pairs),
                // Multiplied by the pairs, because a query has no excess with itself.
                PairMean::QueriesWithSelf => query_mean_weights(pairs_and_self) * pairs,
                PairMean::Active => {
                    let active = mask_above_zero(&excess) * pairs;
                    let count = active.clone().sum().clamp_min(1.0);
                    active / count.unsqueeze()
                }
            };
            (excess * weights).sum()
        };
        mean(-scores.clone() + self.config.positive, positives, positives_and_self)
            + mean(scores - self.config.negative, negatives.clone(), negatives)
    }
}
