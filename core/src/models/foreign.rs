//! A backbone that another engine runs: an ONNX file. The trainer opens the file and attaches its engine to the encoder;
//! in the page JavaScript runs the file, and the encoder begins at what it computed.
//!
//! The network maps normalised images [B, 3, S, S] to a vector [B, F], to tokens [B, T, F], or to features at positions
//! [B, F, H′, W′]. The first tokens may be prefix tokens: the class token and the registers behind it. The others stand
//! for the patches of the image, row by row.

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::entry::BackboneEntry;
use super::pooling::Outputs;
use crate::{Error, Kind, Result};

/// The largest number of features that a foreign backbone may have.
pub const MAX_FEATURES: usize = 16_384;

/// A network in an ONNX file, whose weights stay as they are: with `model.freeze_backbone` heads are trained on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OnnxConfig {
    /// The ONNX file; in a bundle its path there.
    pub path: String,
    /// The name of the output to use. Default: the only one, or the first of `image_embeds`, `pooler_output` and
    /// `last_hidden_state`; with `model.pooling` the last of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// With an output of tokens: how many stand before those of the patches. The first of them is the class token.
    /// Default: what is left over from a square of patches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_tokens: Option<usize>,
    /// F, the number of features. Default: read from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// The SHA-256 of the file in hexadecimal digits; a file with another one is refused. Default: that of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The licence of its weights, an SPDX expression where there is one. `akin export` needs it, here or as `--licence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

impl OnnxConfig {
    /// Its entry, which is not in the catalogue: without a file there is no network.
    pub const ENTRY: BackboneEntry = BackboneEntry {
        smallest_side: 1,
        batch_norm: false,
        ..BackboneEntry::new("onnx", "ONNX", "a network in an ONNX file, whose weights stay as they are")
    };

    /// F, the number of features; 0 until the file has been opened.
    pub fn features(&self) -> usize {
        self.features.unwrap_or(0)
    }

    /// Whether its outputs are tokens with a class token.
    pub fn has_class_token(&self) -> bool {
        self.prefix_tokens.is_some_and(|count| count > 0)
    }

    /// The backbone, without an engine that runs it.
    pub(super) fn init(&self) -> Result<Foreign> {
        let features = self.features();
        if !(1..=MAX_FEATURES).contains(&features) {
            let (message, hint) = match self.features {
                None => (
                    format!("the number of features of the ONNX file {} is not known", self.path),
                    "open the file first; `akin` with the feature `onnx` does so".to_owned(),
                ),
                Some(_) => (
                    format!("the ONNX file {} has {features} features", self.path),
                    format!("use an output with 1 to {MAX_FEATURES} features"),
                ),
            };
            return Err(Error::new(Kind::Config, message, hint));
        }
        Ok(Foreign { features, prefix_tokens: self.prefix_tokens.unwrap_or(0), network: None })
    }
}

/// A network that another engine runs.
pub trait ForeignNetwork: Debug + Send + Sync {
    /// What it computes of B normalised images [B, 3, S, S] in row-major order. The engine brings them into the layout and
    /// the type of the network.
    ///
    /// # Errors
    ///
    /// The engine fails, or the network does not take images of this size.
    fn run(&self, images: &[f32], shape: [usize; 4]) -> Result<ForeignOutput>;
}

/// What a foreign network computes of B images, in row-major order: [B, F], [B, T, F] or [B, F, H′, W′].
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignOutput {
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub values: Vec<f32>,
}

/// A backbone without weights of its own: see the [module](self).
#[derive(Module, Debug)]
pub struct Foreign {
    #[module(skip)]
    features: usize,
    #[module(skip)]
    prefix_tokens: usize,
    #[module(skip)]
    network: Option<Arc<dyn ForeignNetwork>>,
}

impl Foreign {
    /// The same backbone, run by this network.
    pub fn attach(self, network: Arc<dyn ForeignNetwork>) -> Self {
        Self { network: Some(network), ..self }
    }

    /// Normalised images [B, 3, S, S] → features.
    pub(super) fn forward(&self, images: Tensor<4>) -> Result<Outputs> {
        let Some(network) = &self.network else {
            return Err(Error::new(
                Kind::Config,
                "the backbone is an ONNX file, and no engine runs it",
                "use `akin` with the feature `onnx`",
            ));
        };
        let (shape, device) = (images.dims(), images.device().without_autodiff());
        let images = images.try_into_data().map_err(|error| unreadable(&error))?.convert::<f32>();
        let images = images.try_to_vec::<f32>().map_err(|error| unreadable(&format!("{error:?}")))?;
        let output = network.run(&images, shape)?;
        self.outputs(output, shape[0], &device)
    }

    /// The outputs of the network of `batch` images as tensors on `device`.
    ///
    /// # Errors
    ///
    /// [`Kind::Weights`] for an output of another shape than the config says, or with numbers that are not finite.
    pub fn outputs(&self, output: ForeignOutput, batch: usize, device: &Device) -> Result<Outputs> {
        let ForeignOutput { shape, values } = output;
        let refused = |why: String| {
            Error::new(
                Kind::Weights,
                format!("the ONNX file computes {shape:?} of {batch} images, {why}"),
                "use an output [B, F], [B, T, F] or [B, F, H, W], and set model.backbone.prefix_tokens for one of tokens",
            )
        };
        if shape.iter().try_fold(1, |product: usize, &length| product.checked_mul(length))
            != Some(values.len())
        {
            return Err(refused(format!("but gives {} numbers", values.len())));
        }
        if shape.first() != Some(&batch) || shape.contains(&0) {
            return Err(refused("which are not that many results".into()));
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(refused("and some of the numbers are NaN or infinite".into()));
        }
        let of_features = |features: usize| match features == self.features {
            true => Ok(()),
            false => Err(refused(format!("{features} features instead of {}", self.features))),
        };
        let data = TensorData::new(values, shape.clone());
        match shape[..] {
            [_, features] => {
                of_features(features)?;
                Ok(Tensor::<2>::from_data(data, device).reshape([batch, features, 1, 1]).into())
            }
            [_, features, _, _] => {
                of_features(features)?;
                Ok(Tensor::<4>::from_data(data, device).into())
            }
            [_, tokens, features] => {
                of_features(features)?;
                let prefix = self.prefix_tokens;
                if tokens <= prefix {
                    return Err(refused(format!(
                        "so few tokens that none is left behind {prefix} prefix tokens"
                    )));
                }
                let all = Tensor::<3>::from_data(data, device);
                let class_token = (prefix > 0).then(|| all.clone().narrow(1, 0, 1).squeeze_dim::<2>(1));
                let patches = tokens - prefix;
                let side = patches.isqrt();
                let [height, width] = if side * side == patches { [side, side] } else { [1, patches] };
                let maps = all.narrow(1, prefix, patches).swap_dims(1, 2);
                Ok(Outputs { maps: maps.reshape([batch, features, height, width]), class_token })
            }
            _ => Err(refused("which is neither a vector, nor tokens, nor maps".into())),
        }
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    Error::new(
        Kind::Device,
        format!("the images could not be read from the device: {error}"),
        "try again, or use the CPU",
    )
}
