//! ArcFace: classifies embeddings by their angle to one learned proxy for each class, with a margin on the own class
//! (Deng et al., *ArcFace: Additive Angular Margin Loss for Deep Face Recognition*, CVPR 2019, eq. 3).
//!
//! ```text
//! L = −(1/B) Σ_i log softmax_c(s · z_ic) at c = y_i          z_ic = cos θ_ic,  but z_iy = cos(θ_iy + m)
//! ```
//!
//! θ_ic is the angle of x_i and proxy w_c, both scaled to unit length inside, and y the finest label. Beyond θ = π − m the
//! cosine of the larger angle would rise again. There z_iy is cos θ − m · sin m, as in the published codes. With
//! `easy_margin` the margin acts only where cos θ > 0, and elsewhere z_iy is cos θ.
//!
//! # Label smoothing
//!
//! With ε = `label_smoothing` the target of an item is (1 − ε) for its own class, plus ε/C for every class, and the loss is
//! the cross-entropy with that target. The code of SupRank mixes the *logits* with these weights instead: every z_ic is
//! (target) · cos(θ + m) + (1 − target) · cos θ, and the cross-entropy has the plain label. That smooths nothing: it
//! weakens the own margin and gives every other class a little of it. `smoothing = "logits"` (preset
//! `arc_face_logit_smoothing`) computes it.
//!
//! # Sub-centres
//!
//! With K = `sub_centres` each class has K proxies, and z_ic is the cosine of the nearest: items of noisy labels gather
//! around a proxy of their own (Deng et al., *Sub-center ArcFace: Boosting Face Recognition by Large-Scale Noisy Web Faces*,
//! ECCV 2020; preset `sub_centre_arc_face`).
//!
//! # Shapes and limits
//!
//! Embeddings are [B, d], proxies [C·K, d], class by class. Every item has a class, so every batch has a loss. The loss jumps where
//! cos θ = cos(π − m), with `easy_margin` where cos θ = 0. At θ = 0 and θ = π the sine has no slope; its gradient is 0
//! there, where that of the published code can be NaN.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, one_hot, within};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`ArcFace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ArcFaceConfig {
    /// s > 0, the scale of the logits. Default 30.
    pub scale: f64,
    /// m, the margin, an angle from 0 to π/2. Default 0.5.
    pub margin: f64,
    /// Whether the margin acts only within a right angle of the proxy. Default false.
    pub easy_margin: bool,
    /// ε in 0 … 1, the share of the target that is spread over all classes. Default 0.
    pub label_smoothing: f64,
    /// What ε mixes. Default: targets.
    pub smoothing: Smoothing,
    /// K, the number of proxies of each class, 1 … 1000. Default 1.
    pub sub_centres: usize,
}

/// What label smoothing mixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Smoothing {
    /// The target of each item with the uniform distribution.
    #[default]
    Targets,
    /// The logits with and without the margin, as in the code of SupRank.
    Logits,
}

impl Default for ArcFaceConfig {
    fn default() -> Self {
        Self {
            scale: 30.0,
            margin: 0.5,
            easy_margin: false,
            label_smoothing: 0.0,
            smoothing: Smoothing::Targets,
            sub_centres: 1,
        }
    }
}

/// One proxy for each fine class and the cross-entropy over their angles.
#[derive(Module, Debug)]
pub struct ArcFace {
    /// [C·K, d], of any length: only their direction matters.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: ArcFaceConfig,
}

impl BuildLoss for ArcFaceConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "arc_face",
        title: "ArcFace",
        family: Family::Proxies,
        summary: "cross-entropy over the cosines to one proxy per fine class, with a margin on the own angle",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["deng2019"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "arc_face_logit_smoothing",
            title: "ArcFace (smoothed logits)",
            summary: "ArcFace with the label smoothing of SupRank's code, 0.1, which mixes logits",
            sources: &["deng2019", "ramzi2025"],
            preset: Some(r#"{ "kind": "arc_face", "label_smoothing": 0.1, "smoothing": "logits" }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "sub_centre_arc_face",
            title: "Sub-centre ArcFace",
            summary: "ArcFace with three proxies for each class, of which the nearest counts",
            sources: &["deng2020", "deng2019"],
            preset: Some(r#"{ "kind": "arc_face", "sub_centres": 3, "scale": 64.0 }"#),
            ..Self::ENTRY
        },
    ];
    type Loss = ArcFace;

    /// Proxies come from U(−1/√d, 1/√d).
    fn init(&self, context: &LossContext) -> Result<ArcFace> {
        above_zero("arc_face", "scale", self.scale, 30.0)?;
        within("arc_face", "margin", self.margin, 0.0..=std::f64::consts::FRAC_PI_2, 0.5)?;
        within("arc_face", "label_smoothing", self.label_smoothing, 0.0..=1.0, 0.1)?;
        within("arc_face", "number of sub-centres", self.sub_centres, 1..=1000, 3)?;
        let proxies = context.class_proxies(self.sub_centres);
        Ok(ArcFace { proxies, config: self.clone() })
    }
}

impl ArcFaceConfig {
    /// cos(θ + m), or what stands for it where the margin does not act.
    fn with_margin(&self, cosines: Tensor<2>) -> Tensor<2> {
        let (sin, cos) = self.margin.sin_cos();
        let square = -cosines.clone().square() + 1.0;
        let straight = square.clone().lower_equal_scalar(0.0);
        let sine = square.mask_fill(straight.clone(), 1.0).sqrt().mask_fill(straight, 0.0);
        let turned = cosines.clone() * cos - sine * sin;
        let (within, elsewhere) = if self.easy_margin {
            (cosines.clone().greater_scalar(0.0), cosines)
        } else {
            (cosines.clone().greater_scalar(-cos), cosines - self.margin * sin)
        };
        elsewhere.mask_where(within, turned)
    }
}

impl Objective for ArcFace {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let ArcFaceConfig { scale, label_smoothing, smoothing, sub_centres, .. } = self.config;
            let proxies = normalise(self.proxies.val());
            let classes = proxies.dims()[0] / sub_centres;
            let cosines = normalise(batch.embeddings.clone()).matmul(proxies.transpose());
            let by_class = cosines.reshape([batch.labels.len(), classes, sub_centres]);
            let cosines = by_class.max_dim(2).squeeze_dim::<2>(2);
            let own = one_hot(batch.labels, classes, &cosines);
            let smooth = own.clone() * (1.0 - label_smoothing) + label_smoothing / classes as f64;
            let (margins, targets) = match smoothing {
                Smoothing::Targets => (own, smooth),
                Smoothing::Logits => (smooth, own),
            };
            let with_margin = self.config.with_margin(cosines.clone());
            let logits = cosines.clone() + (with_margin - cosines) * margins;
            (log_softmax(logits * scale, 1) * targets).sum() * (-1.0 / batch.labels.len() as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = refusal(&ArcFaceConfig { scale: 0.0, ..Default::default() });
        assert_eq!(error.message(), "the scale of arc_face is 0");
        let error = refusal(&ArcFaceConfig { margin: 2.0, ..Default::default() });
        assert_eq!(error.message(), "the margin of arc_face is 2");
        refusal(&ArcFaceConfig { label_smoothing: -0.1, ..Default::default() });
    }
}
