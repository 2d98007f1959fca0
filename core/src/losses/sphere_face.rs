//! SphereFace: classifies embeddings by their angle to one learned proxy for each class, where the own angle counts m times
//! (Liu et al., *SphereFace: Deep Hypersphere Embedding for Face Recognition*, CVPR 2017, eq. 7).
//!
//! ```text
//! L = −(1/B) Σ_i log softmax_c(s · z_ic) at c = y_i          z_ic = cos θ_ic,  but z_iy = ψ(θ_iy)
//! ψ(θ) = (−1)^k cos(mθ) − 2k     for θ from kπ/m to (k + 1)π/m, k = 0 … m − 1
//! ```
//!
//! θ_ic is the angle of x_i and proxy w_c, both scaled to unit length inside, and y the finest label. ψ falls from 1 to
//! 1 − 2m, and below cos θ everywhere. In the paper the length of x_i takes the place of s.
//! [`arc_face`](super::arc_face) and [`cos_face`](super::cos_face) add to the angle and to the cosine.
//!
//! Embeddings are [B, d], proxies [C, d]. Every item has a class, so every batch has a loss. It is continuous, and its
//! gradient jumps where θ is a multiple of π/m.

use std::f64::consts::PI;

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, mask_above_zero, within,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`SphereFace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SphereFaceConfig {
    /// s > 0, the scale of the logits. Default 30.
    pub scale: f64,
    /// m, how often the own angle counts, 1 … 8. Default 4.
    pub margin: usize,
}

impl Default for SphereFaceConfig {
    fn default() -> Self {
        Self { scale: 30.0, margin: 4 }
    }
}

/// One proxy for each fine class and the cross-entropy over their cosines.
#[derive(Module, Debug)]
pub struct SphereFace {
    /// [C, d], of any length: only their direction matters.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: SphereFaceConfig,
}

impl BuildLoss for SphereFaceConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "sphere_face",
        title: "SphereFace",
        family: Family::Proxies,
        summary: "cross-entropy over the cosines to one proxy per fine class, with a multiple of the own angle",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["liu2017", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = SphereFace;

    /// Proxies come from U(−1/√d, 1/√d).
    fn init(&self, context: &LossContext) -> Result<SphereFace> {
        above_zero("sphere_face", "scale", self.scale, 30.0)?;
        within("sphere_face", "margin", self.margin, 1..=8, 4)?;
        let proxies = context.class_proxies(1);
        Ok(SphereFace { proxies, config: self.clone() })
    }
}

impl Objective for SphereFace {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let [cosines, own] = batch.class_cosines(self.proxies.val());
            let own_cosines = (cosines.clone() * own.clone()).sum_dim(1);
            let beyond = multiplied(own_cosines.clone(), self.config.margin) - own_cosines;
            let logits = (cosines + own.clone() * beyond) * self.config.scale;
            (log_softmax(logits, 1) * own).sum() * (-1.0 / batch.labels.len() as f64)
        })
    }
}

/// ψ(θ) of cosines [B, 1].
fn multiplied(cosines: Tensor<2>, margin: usize) -> Tensor<2> {
    // cos(mθ) is the Chebyshev polynomial T_m of cos θ.
    let (mut before, mut multiple) = (cosines.ones_like(), cosines.clone());
    for _ in 1..margin {
        let next = cosines.clone() * multiple.clone() * 2.0 - before;
        before = std::mem::replace(&mut multiple, next);
    }
    let mut sign = cosines.ones_like();
    let mut twice = cosines.zeros_like();
    for boundary in 1..margin {
        let boundary = (boundary as f64 * PI / margin as f64).cos();
        let is_past = mask_above_zero(&(-cosines.clone() + boundary));
        sign = sign * (-is_past.clone() * 2.0 + 1.0);
        twice = twice + is_past * 2.0;
    }
    multiple * sign - twice
}
