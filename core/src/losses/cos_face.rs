//! CosFace: classifies embeddings by their cosine to one learned proxy for each class, with a margin on the own cosine (Wang
//! et al., *CosFace: Large Margin Cosine Loss for Deep Face Recognition*, CVPR 2018, eq. 4).
//!
//! ```text
//! L = −(1/B) Σ_i log softmax_c(s · (z_ic − m·[c = y_i])) at c = y_i          z_ic = cos θ_ic
//! ```
//!
//! θ_ic is the angle of x_i and proxy w_c, both scaled to unit length inside, and y the finest label.
//! [`arc_face`](super::arc_face) has its margin on the angle.
//!
//! Embeddings are [B, d], proxies [C, d]. Every item has a class, so every batch has a loss. The loss is smooth.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, not_negative};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`CosFace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CosFaceConfig {
    /// s > 0, the scale of the logits. Default 64.
    pub scale: f64,
    /// m ≥ 0, the margin. Default 0.35.
    pub margin: f64,
}

impl Default for CosFaceConfig {
    fn default() -> Self {
        Self { scale: 64.0, margin: 0.35 }
    }
}

/// One proxy for each fine class and the cross-entropy over their cosines.
#[derive(Module, Debug)]
pub struct CosFace {
    /// [C, d], of any length: only their direction matters.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: CosFaceConfig,
}

impl BuildLoss for CosFaceConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "cos_face",
        title: "CosFace",
        family: Family::Proxies,
        summary: "cross-entropy over the cosines to one proxy per fine class, with a margin on the own cosine",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2018", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = CosFace;

    /// Proxies come from U(−1/√d, 1/√d).
    fn init(&self, context: &LossContext) -> Result<CosFace> {
        above_zero("cos_face", "scale", self.scale, 64.0)?;
        not_negative("cos_face", "margin", self.margin, 0.35)?;
        let proxies = context.class_proxies(1);
        Ok(CosFace { proxies, config: self.clone() })
    }
}

impl Objective for CosFace {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let [cosines, own] = batch.class_cosines(self.proxies.val());
            let logits = (cosines - own.clone() * self.config.margin) * self.config.scale;
            (log_softmax(logits, 1) * own).sum() * (-1.0 / batch.labels.len() as f64)
        })
    }
}
