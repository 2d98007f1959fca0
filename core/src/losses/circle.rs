//! Circle loss: scores that are far from their optimum are pushed harder (Sun et al., *Circle Loss: A Unified Perspective of
//! Pair Similarity Optimization*, CVPR 2020, eq. 6, with the margins of eq. 8).
//!
//! ```text
//! L   = mean over queries i of log(1 + Σ_{n ∈ N_i} e^(γ α_n (s_in − m)) · Σ_{p ∈ P_i} e^(−γ α_p (s_ip − (1 − m))))
//! α_p = [1 + m − s_ip]₊        α_n = [s_in + m]₊
//! ```
//!
//! s are cosines, m the relaxation and γ the scale. The mean is over the queries with a positive and a negative. A pair that a
//! miner chooses several times counts once.
//!
//! # Gradient
//!
//! The weights α are constants for the gradient, as in the paper. Without a query that has both, the loss is 0.

use burn::module::Module;
use burn::tensor::{
    Tensor,
    activation::{log_sigmoid, relu},
};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, finite, log_sum_exp,
    mask_above_zero, mask_exponents,
};
use crate::geometry::Space;
use crate::miners::Miner;
use crate::{Checked, Result};

/// Settings of [`Circle`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CircleConfig {
    /// m, the relaxation: positives should score 1 − m, negatives m. Default 0.4.
    pub margin: f64,
    /// γ > 0, the scale. Default 80.
    pub scale: f64,
    /// Which pairs count. Default all.
    pub miner: Miner,
}

impl Default for CircleConfig {
    fn default() -> Self {
        Self { margin: 0.4, scale: 80.0, miner: Miner::default() }
    }
}

impl BuildLoss for CircleConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "circle",
        title: "Circle",
        family: Family::Pairs,
        summary: "pairs, each weighed by its distance from the score that it should have",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["sun2020", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = Circle;

    fn init(&self, _: &LossContext) -> Result<Circle> {
        finite("circle", "margin", self.margin, 0.4)?;
        above_zero("circle", "scale", self.scale, 80.0)?;
        Ok(Circle { margin: self.margin, scale: self.scale, miner: self.miner.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Circle {
    #[module(skip)]
    margin: f64,
    #[module(skip)]
    scale: f64,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for Circle {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let scores = batch.cosines();
        let [positives, negatives] = batch.mined_pairs(&self.miner).map(|counts| mask_above_zero(&counts));
        let both = positives.clone().max_dim(1) * negatives.clone().max_dim(1);
        let fixed = scores.clone().detach();
        let weights_of_positives = relu(-fixed.clone() + (1.0 + self.margin)) * -self.scale;
        let weights_of_negatives = relu(fixed + self.margin) * self.scale;
        let pull = weights_of_positives * (scores.clone() - (1.0 - self.margin));
        let push = weights_of_negatives * (scores - self.margin);
        let sum = log_sum_exp(mask_exponents(pull, positives)) + log_sum_exp(mask_exponents(push, negatives));
        let count = both.clone().sum().clamp_min(1.0);
        -(log_sigmoid(-sum) * both).sum() / count
    }
}
