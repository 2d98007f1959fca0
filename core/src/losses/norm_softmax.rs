//! NormSoftmax: classifies embeddings by their cosine to one learned proxy for each class.
//!
//! ```text
//! L = −(1/B) Σ_i log softmax_c(x_i·ŵ_c / T) at c = y_i
//! ```
//!
//! ŵ is the proxy of unit length and y the finest label. It is the fine-grained baseline of HAPPIER's tables (Zhai &
//! Wu, *Classification is a strong baseline for deep metric learning*, BMVC 2019, eq. 3), and also the clustering loss
//! that HAPPIER adds to its surrogate (HAPPIER, eq. 6).

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, normalise_if, one_hot};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`NormSoftmax`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NormSoftmaxConfig {
    /// T > 0, the temperature. Default 0.05.
    pub temperature: f64,
    /// Whether to scale embeddings to unit length first, as pytorch-metric-learning does. The heads of akin already do;
    /// the published code of both papers does not. Default false.
    pub normalise_embeddings: bool,
}

impl Default for NormSoftmaxConfig {
    fn default() -> Self {
        Self { temperature: 0.05, normalise_embeddings: false }
    }
}

/// One proxy for each fine class and the cross-entropy over their cosines.
#[derive(Module, Debug)]
pub struct NormSoftmax {
    /// [C, d], of any length: only their direction matters.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: NormSoftmaxConfig,
}

impl BuildLoss for NormSoftmaxConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "norm_softmax",
        title: "NormSoftmax",
        family: Family::Proxies,
        summary: "cross-entropy over the cosines to one proxy per fine class",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["zhai2019"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "normalized_softmax",
        title: "NormalizedSoftmax",
        summary: "NormSoftmax as in pytorch-metric-learning, which scales embeddings to unit length",
        sources: &["zhai2019", "musgrave2020library"],
        preset: Some(r#"{ "kind": "norm_softmax", "normalise_embeddings": true }"#),
        ..Self::ENTRY
    }];
    type Loss = NormSoftmax;

    /// Proxies come from U(−1/√d, 1/√d).
    fn init(&self, context: &LossContext) -> Result<NormSoftmax> {
        above_zero("norm_softmax", "temperature", self.temperature, 0.05)?;
        let proxies = context.class_proxies(1);
        Ok(NormSoftmax { proxies, config: self.clone() })
    }
}

impl NormSoftmaxConfig {
    /// The loss with these proxies, [C, d].
    pub fn with_proxies(&self, proxies: Tensor<2>) -> NormSoftmax {
        NormSoftmax { proxies: Param::from_tensor(proxies), config: self.clone() }
    }
}

impl Objective for NormSoftmax {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let proxies = normalise(self.proxies.val());
            let [classes, _] = proxies.dims();
            let embeddings = normalise_if(self.config.normalise_embeddings, batch.embeddings.clone());
            // Multiplied, not divided: Burn rounds the gradient of a scalar division to f32.
            let logits = embeddings.matmul(proxies.transpose()) * (1.0 / self.config.temperature);
            let own = one_hot(batch.labels, classes, &logits);
            (log_softmax(logits, 1) * own).sum() * (-1.0 / batch.labels.len() as f64)
        })
    }
}
