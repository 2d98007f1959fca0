//! Multi-Similarity on hyperbolic distances, a base loss of HIER's tables.
//!
//! The score s_ij is −d(x_i, x_j) in the ball and x_i·x_j on the sphere; the base b is the mean score of all pairs of
//! the batch. With these scores the loss is Multi-Similarity without its miner (Wang et al., CVPR 2019, eq. 15):
//!
//! ```text
//! L = (1/B) Σ_i [ (1/α) log(1 + Σ_{j∈P_i} e^{−α(s_ij − b)}) + (1/β) log(1 + Σ_{j∈N_i} e^{β(s_ij − b)}) ]
//! ```
//!
//! Distances have no usual threshold, as cosines have, so the base is their mean. The gradient flows through the mean.
//! No paper gives this form: α, β and b are those of HIER's public code (Kim et al., CVPR 2023). Only fine labels are
//! used. An item without pairs adds nothing to the sum but counts in B. Memory is O(B²).

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, log_one_plus_sum_exp};
use crate::Result;
use crate::geometry::{Geometry, Space};

/// Settings of [`HyperbolicMultiSimilarity`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HyperbolicMultiSimilarityConfig {
    /// α > 0; a larger α gives more weight to the farthest positives. Default 1.
    pub alpha: f64,
    /// β > 0; a larger β gives more weight to the nearest negatives. Default 5.
    pub beta: f64,
}

impl Default for HyperbolicMultiSimilarityConfig {
    fn default() -> Self {
        Self { alpha: 1.0, beta: 5.0 }
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct HyperbolicMultiSimilarity {
    #[module(skip)]
    config: HyperbolicMultiSimilarityConfig,
    #[module(skip)]
    geometry: Geometry,
}

impl BuildLoss for HyperbolicMultiSimilarityConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hyperbolic_multi_similarity",
        title: "Multi-Similarity (hyperbolic)",
        family: Family::Hyperbolic,
        summary: "Multi-Similarity on hyperbolic distances, measured from their mean",
        optimises: "ap",
        spaces: &[Space::Poincare, Space::Cosine],
        sources: &["kim2023", "wang2019"],
        complete: true,
        preset: None,
    };
    type Loss = HyperbolicMultiSimilarity;

    fn init(&self, context: &LossContext) -> Result<HyperbolicMultiSimilarity> {
        above_zero(Self::ENTRY.name, "alpha", self.alpha, 1.0)?;
        above_zero(Self::ENTRY.name, "beta", self.beta, 5.0)?;
        Ok(HyperbolicMultiSimilarity { config: self.clone(), geometry: context.geometry.clone() })
    }
}

impl Objective for HyperbolicMultiSimilarity {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let scores = self.geometry.scores(batch.embeddings.clone(), batch.items().embeddings);
        let [positive, negative] = batch.pairs();
        let pairs = positive.clone() + negative.clone();
        let [queries, _] = scores.dims();
        let base = (scores.clone() * pairs.clone()).sum() / pairs.sum().clamp_min(1.0);
        let scores = scores - base.unsqueeze();
        let Self { config: HyperbolicMultiSimilarityConfig { alpha, beta }, .. } = *self;
        let pull = log_one_plus_sum_exp(scores.clone() * -alpha, positive) * (1.0 / alpha);
        let push = log_one_plus_sum_exp(scores * beta, negative) * (1.0 / beta);
        (pull + push).sum() * (1.0 / queries as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::in_the_ball;

    #[test]
    fn exponents_that_are_not_above_zero_are_refused() {
        assert!(in_the_ball(r#"{ "kind": "hyperbolic_multi_similarity" }"#).is_ok());
        let error = in_the_ball(r#"{ "kind": "hyperbolic_multi_similarity", "beta": 0.0 }"#).unwrap_err();
        assert!(error.message().contains("the beta of hyperbolic_multi_similarity is 0"), "{error}");
        assert!(in_the_ball(r#"{ "kind": "hyperbolic_multi_similarity", "alpha": -1.0 }"#).is_err());
    }
}
