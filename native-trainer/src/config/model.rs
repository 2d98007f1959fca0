//! `[model]`: from image to embedding.

use std::path::PathBuf;

use akin_core::encoder::{BatchNormMode, Frozen};
use akin_core::image::{Preprocessing, PreprocessingConfig};
use akin_core::models::{BackboneConfig, HeadConfig, Pooling};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[model]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// A file with published weights for the backbone: `.safetensors`, or `.pth` as torch writes it, which is read as
    /// data and never executed. Default: random weights.
    pub weights: Option<PathBuf>,
    /// Whether the backbone keeps its initial weights. Its features are then computed once, without augmentation, and
    /// only the head is trained. Default false.
    #[serde(default)]
    pub freeze_backbone: bool,
    /// With `freeze_backbone`: a file that keeps the features for later runs. They are computed again if weights,
    /// preprocessing or images have changed. Default: none; each run computes them.
    pub feature_cache: Option<PathBuf>,
    /// What batch normalisation does in training.
    #[serde(default)]
    pub batch_norm: BatchNormMode,
    /// Whether the patch embedding of a vision transformer keeps its initial weights. Default false.
    #[serde(default)]
    pub freeze_patch_embedding: bool,
    /// How the features of all positions of an image become one vector. Default: `class_token` for a vision transformer,
    /// else `average`.
    pub pooling: Option<Pooling>,
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
    /// The parts of the backbone that keep their weights in training.
    pub fn frozen(&self) -> Frozen {
        Frozen { batch_norm: self.batch_norm, patch_embedding: self.freeze_patch_embedding }
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure(!self.freeze_backbone || self.head.is_some(), || {
            (
                "model.freeze_backbone is set and there is no head, so there is nothing to train".into(),
                "add model.head, for example { dimension = 128 }",
            )
        })
    }
}
