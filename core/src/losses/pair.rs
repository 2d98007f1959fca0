//! The loss of pairs that cross-batch memory was published with (Wang et al., *Cross-Batch Memory for Embedding
//! Learning*, CVPR 2020; `PairLoss` of ROADMAP's code).
//!
//! ```text
//! L = (1/B) Σ_i ( Σ_{j∈P_i} (1 − s_ij) + Σ_{j∈N_i, s_ij > λ} s_ij )
//! ```
//!
//! This is a sum over pairs, not a mean: it grows with the number of items that a query is compared with. The value
//! jumps by λ where a negative's score passes λ. Without pairs the loss is 0. The published code leaves out positives
//! with a score of 1 up to 10⁻⁵, which removes the query itself. Here the query is left out by its position, and an
//! exact copy of it counts.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, finite};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`Pair`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PairConfig {
    /// λ: negatives that score at most this have no loss. Default 0.5.
    pub margin: f64,
}

impl Default for PairConfig {
    fn default() -> Self {
        Self { margin: 0.5 }
    }
}

impl BuildLoss for PairConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "pair",
        title: "Pair (XBM)",
        family: Family::Pairs,
        summary: "the sum over positive pairs and over negative pairs that score above a margin",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2020"],
        complete: true,
        preset: None,
    };
    type Loss = Pair;

    fn init(&self, _: &LossContext) -> Result<Pair> {
        finite("pair", "margin", self.margin, 0.5)?;
        Ok(Pair { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Pair {
    #[module(skip)]
    config: PairConfig,
}

impl Objective for Pair {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let scores = batch.scores();
        let [positives, negatives] = batch.pairs();
        let counted_negatives =
            negatives.mask_fill(scores.clone().lower_equal_scalar(self.config.margin), 0.0);
        let sum = ((-scores.clone() + 1.0) * positives + scores * counted_negatives).sum();
        sum * (1.0 / batch.labels.len() as f64)
    }
}
