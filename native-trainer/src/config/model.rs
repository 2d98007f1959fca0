//! `[model]`: from image to embedding.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_core::digest::sha256;
use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
use akin_core::image::{Preprocessing, PreprocessingConfig};
use akin_core::models::{BackboneConfig, HeadConfig, LoraConfig, OnnxConfig, Pooling};
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
    /// The SHA-256 of the file `weights` in hexadecimal digits, or its first digits, at least 8: torch's files have 8 of
    /// them in their names. A file with another one is refused. Default: none; the file is not checked.
    pub weights_sha256: Option<String>,
    /// Where the file `weights` can be downloaded. `akin eval` and `akin embed` fetch it for a config, after asking, if it
    /// is not there. Default: none.
    pub weights_address: Option<String>,
    /// The name of a linear layer in the file `weights` that the head begins with, such as `fc`; a layer normalisation beside
    /// it becomes that of the head. `akin import` finds it. Default: none; the head begins with random weights.
    pub head_weights: Option<String>,
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
    /// Drop path, or stochastic depth, of a vision transformer: the probability, at least 0 and below 1, that training leaves
    /// a branch of the last block out for an image. It grows evenly from 0 in the first block (Huang et al., 2016). 0.1
    /// suits a ViT-B, 0.2 to 0.4 a ViT-L. Default 0.
    #[serde(default)]
    pub drop_path: f64,
    /// Low-rank adapters (LoRA) of a vision transformer, for example `{ rank = 8 }`: only they and the head are trained, which
    /// saves memory, and they are merged into the weights that are saved. Default: none.
    pub lora: Option<LoraConfig>,
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

    /// The SHA-256 of the bytes of `weights`.
    ///
    /// # Errors
    ///
    /// Another one than `weights_sha256`.
    pub fn check_weights(&self, bytes: &[u8]) -> Result<String> {
        let found = sha256(bytes);
        let published = self.weights_sha256.as_deref().unwrap_or_default();
        if found.starts_with(&published.to_ascii_lowercase()) {
            return Ok(found);
        }
        let file = self.weights.as_deref().unwrap_or(Path::new("")).display();
        Err(problem(
            format!("the weights {file} have the SHA-256 {found}, but model.weights_sha256 is {published}"),
            "the file is damaged or another one: remove it and download it again, or correct model.weights_sha256",
        ))
    }

    /// The parts of the encoder before a training. Without `head_weights` it has no head: the embedding is the features,
    /// scaled to unit length.
    pub fn bare_encoder(&self) -> EncoderConfig {
        EncoderConfig {
            backbone: self.backbone.clone(),
            pooling: self.pooling,
            head: self.head.clone().filter(|_| self.head_weights.is_some()),
            preprocessing: self.preprocessing.clone(),
        }
    }

    /// The ONNX file that is the backbone, if it is one.
    pub fn onnx(&self) -> Option<&OnnxConfig> {
        match &self.backbone {
            BackboneConfig::Onnx(onnx) => Some(onnx),
            _ => None,
        }
    }

    /// The backbone in print: its name, or that of its ONNX file.
    pub fn backbone_title(&self) -> String {
        match self.onnx() {
            Some(onnx) => {
                Path::new(&onnx.path).file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            None => self.backbone.entry().title.to_owned(),
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("weights_sha256", &self.weights_sha256),
            ("weights_address", &self.weights_address),
            ("head_weights", &self.head_weights),
        ] {
            ensure(value.is_none() || self.weights.is_some(), || {
                (
                    format!("model.{key} is set, but model.weights is not"),
                    "name the file that it belongs to as model.weights",
                )
            })?;
        }
        let is_sha256 = |text: &String| {
            (8..=64).contains(&text.len()) && text.chars().all(|digit| digit.is_ascii_hexdigit())
        };
        ensure(self.weights_sha256.as_ref().is_none_or(is_sha256), || {
            (
                format!("model.weights_sha256 is {:?}", self.weights_sha256.as_deref().unwrap_or_default()),
                "give all 64 hexadecimal digits of the SHA-256, or the first of them, at least 8",
            )
        })?;
        let is_address =
            |text: &String| ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
        ensure(self.weights_address.as_ref().is_none_or(is_address), || {
            (
                format!("model.weights_address is {:?}", self.weights_address.as_deref().unwrap_or_default()),
                "write an address that starts with https:// or http://",
            )
        })?;
        ensure(self.head_weights.is_none() || self.head.is_some(), || {
            (
                "model.head_weights is set, but there is no head".into(),
                "add model.head with the dimension of the layer, for example { dimension = 128, layer_norm = false }",
            )
        })?;
        ensure(self.onnx().is_none() || self.weights.is_none(), || {
            (
                "model.weights is set, but the backbone is an ONNX file, which has its weights".into(),
                "remove model.weights, or choose a backbone that `akin list backbones` prints",
            )
        })?;
        ensure((0.0..1.0).contains(&self.drop_path), || {
            (
                format!("model.drop_path is {}", self.drop_path),
                "give a number of at least 0 and below 1, such as 0.1",
            )
        })?;
        if let Some(lora) = &self.lora {
            lora.validate()?;
            let entry = self.backbone.entry();
            ensure(entry.patch.is_some(), || {
                (
                    format!("model.lora is set, but {} is no vision transformer", entry.name),
                    "remove model.lora, or choose a vision transformer as the backbone",
                )
            })?;
        }
        ensure(!self.freeze_backbone || self.head.is_some(), || {
            (
                "model.freeze_backbone is set and there is no head, so there is nothing to train".into(),
                "add model.head, for example { dimension = 128 }",
            )
        })
    }
}
