//! `[model]`: from image to embedding.

use std::path::PathBuf;

use akin_core::image::{Preprocessing, PreprocessingConfig};
use akin_core::models::{BackboneConfig, HeadConfig};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[model]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// A safetensors file with weights for the backbone. Default: random weights.
    pub weights: Option<PathBuf>,
    /// Whether the backbone keeps its initial weights. Its features are then computed once, without augmentation, and
    /// only the head is trained. Default false.
    #[serde(default)]
    pub freeze_backbone: bool,
    /// `freeze_backbone`: a file that keeps the features for later runs. They are computed again if weights,
    /// preprocessing or images have changed. Default: none; each run computes them.
    pub feature_cache: Option<PathBuf>,
    /// The network from image to features, for example `{ kind = "small_resnet", width = 16 }`.
    pub backbone: BackboneConfig,
    /// The layer from features to embedding, for example `{ dimension = 128 }`. Default: none; the embedding is the
    /// features, scaled to unit length.
    pub head: Option<HeadConfig>,
    /// What happens to an image before the backbone sees it: resize, centre crop, normalise. Either a name, such as
    /// `"imagenet"`, or a table, such as `{ name = "imagenet", crop = 128 }`. Default: what the backbone expects.
    #[schemars(with = "Option<PreprocessingConfig>")]
    pub preprocessing: Preprocessing,
}

impl ModelConfig {
    pub(super) fn validate(&self) -> Result<()> {
        ensure(self.freeze_backbone || self.feature_cache.is_none(), || {
            (
                "model.feature_cache is set, but the backbone is trained, so its features change with every step"
                    .into(),
                "remove it, or set model.freeze_backbone = true",
            )
        })?;
        ensure(!self.freeze_backbone || self.head.is_some(), || {
            (
                "model.freeze_backbone is set and there is no head, so there is nothing to train".into(),
                "add model.head, for example { dimension = 128 }",
            )
        })
    }
}
