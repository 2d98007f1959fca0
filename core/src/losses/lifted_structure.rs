//! Lifted structure: each positive pair against all negatives of its two items (Oh Song et al., *Deep Metric Learning via
//! Lifted Structured Feature Embedding*, CVPR 2016, eq. 4).
//!
//! ```text
//! L = mean over pairs (i, j), j ∈ P_i, of ½ [ d_ij − m⁺ + log( Σ_{n ∈ N_i} e^(m⁻ − d_in) + Σ_{n ∈ N_j} e^(m⁻ − d_jn) ) ]₊²
//! ```
//!
//! d is the Euclidean distance of embeddings scaled to unit length; m⁺ and m⁻ are the margins. In the paper m⁺ is 0. Every pair
//! is in the mean, in both orders. An item of a reference set has no negatives of its own, so only those of i are summed there.
//!
//! The gradient is 0 where a term is 0 and between items that coincide. A pair without negatives adds 0. Without pairs the
//! loss is 0.

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, finite, log_sum_exp, mask_exponents,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`LiftedStructure`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LiftedStructureConfig {
    /// m⁺. Default 0.
    pub positive_margin: f64,
    /// m⁻. Default 1.
    pub negative_margin: f64,
}

impl Default for LiftedStructureConfig {
    fn default() -> Self {
        Self { positive_margin: 0.0, negative_margin: 1.0 }
    }
}

impl BuildLoss for LiftedStructureConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "lifted_structure",
        title: "Lifted structure",
        family: Family::Pairs,
        summary: "each positive pair against all negatives of its two items",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["ohsong2016", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = LiftedStructure;

    fn init(&self, _: &LossContext) -> Result<LiftedStructure> {
        finite("lifted_structure", "positive_margin", self.positive_margin, 0.0)?;
        finite("lifted_structure", "negative_margin", self.negative_margin, 1.0)?;
        Ok(LiftedStructure { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct LiftedStructure {
    #[module(skip)]
    config: LiftedStructureConfig,
}

impl Objective for LiftedStructure {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let LiftedStructureConfig { positive_margin, negative_margin } = self.config;
        let distances = batch.distances();
        let [positives, negatives] = batch.pairs();
        let query_sums = log_sum_exp(mask_exponents(-distances.clone() + negative_margin, negatives));
        let pair_sums = match batch.reference {
            Some(_) => query_sums.expand(distances.dims()),
            None => {
                let own = query_sums.clone().expand(distances.dims());
                let others = query_sums.transpose().expand(distances.dims());
                let larger = own.clone().max_pair(others.clone()).detach();
                ((own - larger.clone()).exp() + (others - larger.clone()).exp()).log() + larger
            }
        };
        let count = positives.clone().sum().clamp_min(1.0);
        (relu(distances - positive_margin + pair_sums).square() * positives).sum() * 0.5 / count
    }
}
