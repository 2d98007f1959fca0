//! Pooling: what a network computes at each position of a picture becomes one vector.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Result};

/// What a backbone computes of a batch of pictures.
pub struct Outputs {
    /// The features at each position, [B, F, H′, W′].
    pub maps: Tensor<4>,
    /// The features that the network pools itself, [B, F]: of a transformer those of its class token.
    pub class_token: Option<Tensor<2>>,
}

impl From<Tensor<4>> for Outputs {
    fn from(maps: Tensor<4>) -> Self {
        Self { maps, class_token: None }
    }
}

/// How the features of all positions become those of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pooling {
    /// The mean over positions.
    Average,
    /// The largest value over positions.
    Max,
    /// The sum of both, as Proxy Anchor's published code has it.
    AverageMax,
    /// The generalised mean (Σ max(x, 10⁻⁶)^p / P)^(1/p) over P positions (Radenović, Tolias and Chum, 2018).
    Gem {
        /// p, at least 1: 1 is the mean; the larger, the nearer to the largest value. Default 3.
        #[serde(default = "default_exponent")]
        exponent: f64,
    },
    /// The features of a transformer's class token; with a distillation token: the mean of both. For SigLIP: the result
    /// of its attention pooling. For ConvNeXt: the normalised mean over positions.
    ClassToken,
}

fn default_exponent() -> f64 {
    3.0
}

/// Numbers below this count as this in the generalised mean.
const SMALLEST: f64 = 1e-6;

impl Pooling {
    /// Checks it against a network with or without a class token.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for an exponent out of range, and for the class token of a network that has none.
    pub fn validate(self, has_class_token: bool) -> Result<()> {
        match self {
            Self::Gem { exponent } if !(1.0..=100.0).contains(&exponent) => Err(Error::new(
                Kind::Config,
                format!("the exponent of the pooling is {exponent}"),
                "give a number from 1 to 100; 3 is the default",
            )),
            Self::ClassToken if !has_class_token => Err(Error::new(
                Kind::Config,
                "the pooling is class_token, but the backbone has no class token",
                "choose average, max, average_max or gem, or a vision transformer or ConvNeXt as the backbone",
            )),
            _ => Ok(()),
        }
    }

    /// The features of each picture, [B, F].
    ///
    /// # Panics
    ///
    /// For the class token of a network that has none; [`EncoderConfig::init`](crate::encoder::EncoderConfig::init)
    /// refuses it.
    pub fn pool(self, outputs: Outputs) -> Tensor<2> {
        if self == Self::ClassToken {
            return outputs.class_token.expect("the config was checked");
        }
        let [batch, features, height, width] = outputs.maps.dims();
        let positions = outputs.maps.reshape([batch, features, height * width]);
        match self {
            Self::Average | Self::ClassToken => positions.mean_dim(2),
            Self::Max => positions.max_dim(2),
            Self::AverageMax => positions.clone().mean_dim(2) + positions.max_dim(2),
            Self::Gem { exponent } => {
                positions.clamp_min(SMALLEST).powf_scalar(exponent).mean_dim(2).powf_scalar(1.0 / exponent)
            }
        }
        .squeeze_dim::<2>(2)
    }

    /// Features of the P positions of one picture, [P, F], whose mean is what [`Self::pool`] gives, from its maps
    /// [1, F, H′, W′]; none for the class token, which has no positions.
    ///
    /// A largest value belongs to the position that has it, and to equal parts if several have it. In the generalised
    /// mean a position has the share of its power.
    pub fn positions(self, maps: Tensor<4>) -> Option<Tensor<2>> {
        let [_, features, height, width] = maps.dims();
        let positions = maps.reshape([features, height * width]).transpose();
        let largest = |positions: Tensor<2>| {
            let count = (height * width) as f64;
            let is_largest = positions.clone().equal(positions.clone().max_dim(0)).float();
            let shares = is_largest.clone() / is_largest.sum_dim(0);
            positions * shares * count
        };
        Some(match self {
            Self::Average => positions,
            Self::Max => largest(positions),
            Self::AverageMax => positions.clone() + largest(positions),
            Self::Gem { exponent } => {
                let powers = positions.clamp_min(SMALLEST).powf_scalar(exponent);
                let mean = powers.clone().mean_dim(0);
                let pooled = mean.clone().powf_scalar(1.0 / exponent);
                powers * (pooled / mean)
            }
            Self::ClassToken => return None,
        })
    }
}
