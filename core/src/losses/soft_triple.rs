//! SoftTriple: several centres for each class, so that one class may have several clusters.
//!
//! With w_ck, k = 1 … K, the centres of class c, of unit length (Qian et al., ICCV 2019),
//!
//! ```text
//! S_ic = Σ_k softmax_k(x_i·w_ck / γ) · x_i·w_ck
//! L    = −(1/B) Σ_i log softmax_c(λ(S_ic − δ·[c = y_i])) at c = y_i
//!      + τ / (C K (K − 1)) · Σ_c Σ_{k < m} √(2 − 2 w_ck·w_cm)
//! ```
//!
//! The second term is the sum of the distances between the centres of one class: it merges centres that are not
//! needed. pytorch-metric-learning leaves it out and scales embeddings to unit length: τ = 0 and
//! `normalise_embeddings`.
//!
//! Embeddings are [B, d], centres [C·K, d], class by class. 10⁻⁵ is added under the root, as in the published code, so
//! that the gradient of merged centres is finite. Every item has a class, so every batch has a loss.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::{log_softmax, softmax};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, matrix, normalise_if,
    not_negative, one_hot, within,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`SoftTriple`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SoftTripleConfig {
    /// K, the number of centres of each class, 1 … 1000. Default 10.
    pub centres: usize,
    /// λ > 0, the scale of the similarities. Default 20.
    pub lambda: f64,
    /// γ > 0: how soft the choice among the centres of a class is. Default 0.1.
    pub gamma: f64,
    /// τ ≥ 0: how strongly the centres of a class are pulled together. Default 0.2.
    pub tau: f64,
    /// δ ≥ 0, the margin. Default 0.01.
    pub margin: f64,
    /// Whether to scale embeddings to unit length first. The heads of akin already do. Default false.
    pub normalise_embeddings: bool,
}

impl Default for SoftTripleConfig {
    fn default() -> Self {
        Self { centres: 10, lambda: 20.0, gamma: 0.1, tau: 0.2, margin: 0.01, normalise_embeddings: false }
    }
}

/// K centres for each fine class.
#[derive(Module, Debug)]
pub struct SoftTriple {
    /// [C·K, d], of any length; class c has rows c·K … c·K + K − 1.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: SoftTripleConfig,
}

impl BuildLoss for SoftTripleConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "soft_triple",
        title: "SoftTriple",
        family: Family::Proxies,
        summary: "cross-entropy over classes with several centres each",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["qian2019"],
        complete: true,
        preset: None,
    };
    type Loss = SoftTriple;

    /// Centres come from U(−1/√(C·K), 1/√(C·K)), as in the published code.
    fn init(&self, context: &LossContext) -> Result<SoftTriple> {
        within("soft_triple", "number of centres", self.centres, 1..=1000, 10)?;
        above_zero("soft_triple", "lambda", self.lambda, 20.0)?;
        above_zero("soft_triple", "gamma", self.gamma, 0.1)?;
        not_negative("soft_triple", "tau", self.tau, 0.2)?;
        not_negative("soft_triple", "margin", self.margin, 0.01)?;
        let count = context.fine_classes() * self.centres;
        let proxies = context.uniform_proxies(count, 1.0 / (count as f64).sqrt());
        Ok(SoftTriple { proxies, config: self.clone() })
    }
}

impl Objective for SoftTriple {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let SoftTripleConfig { centres, lambda, gamma, margin, .. } = self.config;
            let proxies = normalise(self.proxies.val());
            let classes = proxies.dims()[0] / centres;
            let embeddings = normalise_if(self.config.normalise_embeddings, batch.embeddings.clone());
            let scores = embeddings.matmul(proxies.clone().transpose()).reshape([
                batch.labels.len(),
                classes,
                centres,
            ]);
            let shares = softmax(scores.clone() * (1.0 / gamma), 2);
            let similarities = (shares * scores).sum_dim(2).squeeze_dim::<2>(2);
            let own = one_hot(batch.labels, classes, &similarities);
            let logits = (similarities - own.clone() * margin) * lambda;
            let loss = (log_softmax(logits, 1) * own).sum() * (-1.0 / batch.labels.len() as f64);
            if self.config.tau == 0.0 || centres == 1 { loss } else { loss + self.spread(proxies) }
        })
    }
}

impl SoftTriple {
    /// τ times half the mean distance between two centres of one class.
    fn spread(&self, proxies: Tensor<2>) -> Tensor<1> {
        let SoftTripleConfig { centres, tau, .. } = self.config;
        let [count, dimension] = proxies.dims();
        let upper_triangle =
            (0..centres * centres).map(|at| f64::from(u8::from(at / centres < at % centres)));
        let upper_triangle =
            matrix(upper_triangle.collect(), [centres, centres], &proxies).unsqueeze_dim::<3>(0);
        let by_class = proxies.reshape([count / centres, centres, dimension]);
        let cosines = by_class.clone().matmul(by_class.swap_dims(1, 2));
        let distances = (cosines * -2.0 + (2.0 + 1e-5)).sqrt();
        (distances * upper_triangle).sum() * (tau / (count * (centres - 1)) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = refusal(&SoftTripleConfig { centres: 0, ..Default::default() });
        assert_eq!(error.message(), "the number of centres of soft_triple is 0");
        let error = refusal(&SoftTripleConfig { gamma: 0.0, ..Default::default() });
        assert_eq!(error.message(), "the gamma of soft_triple is 0");
    }
}
