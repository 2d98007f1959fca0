//! Backbones and heads: images [B, 3, H, W] → features [B, F] → embeddings [B, d].
//!
//! | backbone | file | features F |
//! |---|---|---|
//! | small residual network | [`small_resnet`] | 8 × width |
//! | SqueezeNet 1.1 | [`squeezenet`] | 512 |
//!
//! A backbone ends with the mean over positions; the [`head`] maps it to an embedding. Initial weights are drawn from a
//! named random stream and not by the device, so that a seed gives the same weights on every back end.
//!
//! # How to add a backbone
//!
//! `CONTRIBUTING.md` lists the files to touch. In this file the compiler asks for an arm wherever a new variant of
//! [`BackboneConfig`] or [`Backbone`] needs one.

pub mod head;
pub mod small_resnet;
pub mod squeezenet;

use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::random::{normal, uniform};
use crate::{Error, Kind, Result};

pub use head::{Head, HeadConfig};
pub use small_resnet::SmallResnet;
pub use squeezenet::Squeezenet;

/// A backbone by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum BackboneConfig {
    /// Four residual stages with 1, 2, 4 and 8 × `width` channels. Its default preprocessing is
    /// `{ name = "inception", crop = 96 }`.
    SmallResnet {
        /// The channels of the first stage, 1 … 256. Default 16.
        #[serde(default = "default_width")]
        width: usize,
    },
    /// SqueezeNet 1.1 (Iandola et al., 2016), in torchvision's layout. Its default preprocessing is
    /// `{ name = "caffe", crop = 224 }`.
    Squeezenet,
}

fn default_width() -> usize {
    16
}

impl BackboneConfig {
    /// F, the number of features.
    pub fn features(&self) -> usize {
        match self {
            Self::SmallResnet { width } => 8 * width,
            Self::Squeezenet => 512,
        }
    }

    /// The smallest side, in pixels, of an image that the backbone can read.
    pub fn smallest_side(&self) -> u32 {
        match self {
            Self::SmallResnet { .. } => 16,
            Self::Squeezenet => 17,
        }
    }

    /// What the backbone expects of images: [`Inception`](crate::image::Normalisation::Inception) at 96 pixels for the
    /// small residual network, whose training starts from random weights; for SqueezeNet
    /// [`Caffe`](crate::image::Normalisation::Caffe) at 224 pixels, with which its authors' weights were trained.
    /// Weights that torchvision trained expect [`Imagenet`](crate::image::Normalisation::Imagenet).
    #[cfg(feature = "image")]
    pub fn preprocessing(&self) -> crate::image::Preprocessing {
        use crate::image::{Normalisation, Preprocessing};
        let (normalisation, side) = match self {
            Self::SmallResnet { .. } => (Normalisation::Inception, 96),
            Self::Squeezenet => (Normalisation::Caffe, 224),
        };
        Preprocessing::new(normalisation, side).expect("both sides are from 1 to 4096")
    }

    /// The backbone with random weights.
    ///
    /// # Errors
    ///
    /// A width out of range.
    pub fn init(&self, rng: &mut ChaCha8Rng, device: &Device) -> Result<Backbone> {
        match self {
            Self::SmallResnet { width } if (1..=256).contains(width) => {
                Ok(Backbone::SmallResnet(SmallResnet::new(*width, rng, device)))
            }
            Self::SmallResnet { width } => Err(Error::new(
                Kind::Config,
                format!("the width of small_resnet is {width}"),
                "give a number from 1 to 256; 16 is the default",
            )),
            Self::Squeezenet => Ok(Backbone::Squeezenet(Squeezenet::new(rng, device))),
        }
    }
}

/// A network from images to features.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Backbone {
    /// See [`small_resnet`].
    SmallResnet(SmallResnet),
    /// See [`squeezenet`].
    Squeezenet(Squeezenet),
}

impl Backbone {
    /// Normalised images [B, 3, H, W] → features [B, F], the mean over positions.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.maps(images);
        let [batch, features, height, width] = maps.dims();
        maps.reshape([batch, features, height * width]).mean_dim(2).squeeze_dim::<2>(2)
    }

    /// Normalised images [B, 3, H, W] → features by position, [B, F, H′, W′].
    pub fn maps(&self, images: Tensor<4>) -> Tensor<4> {
        match self {
            Self::SmallResnet(network) => network.forward(images),
            Self::Squeezenet(network) => network.forward(images),
        }
    }

    /// Replaces the weights by published ones, from the bytes of a safetensors file.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a backbone that has no published weights, [`Kind::Weights`] for a file that does not fit.
    pub fn load_pretrained(&mut self, bytes: Vec<u8>) -> Result<()> {
        match self {
            Self::Squeezenet(network) => network.load_safetensors(bytes),
            Self::SmallResnet(_) => Err(Error::new(
                Kind::Config,
                "weights are given for a backbone that has no published weights, such as small_resnet",
                "remove the weights to start from random ones, or choose the backbone squeezenet",
            )),
        }
    }
}

/// A k×k convolution with weights from N(0, 2 / fan-out), which suits a ReLU after it.
fn convolution(
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
    padding: usize,
    bias: bool,
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Conv2d {
    let [input, output] = channels;
    let mut layer = Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
        .with_bias(false)
        .init(device);
    let deviation = (2.0 / (output * kernel * kernel) as f32).sqrt();
    let shape = [output, input, kernel, kernel];
    let weights = normal(rng, shape.iter().product(), deviation);
    layer.weight = Param::from_tensor(Tensor::from_data(TensorData::new(weights, shape), device));
    layer.bias = bias.then(|| Param::from_tensor(Tensor::zeros([output], device)));
    layer
}

/// A linear layer with weights and bias from U(−1/√in, 1/√in), torch's default.
fn linear(input: usize, output: usize, rng: &mut ChaCha8Rng, device: &Device) -> Linear {
    let bound = 1.0 / (input as f32).sqrt();
    let mut layer = LinearConfig::new(input, output).init(device);
    let weights = uniform(rng, input * output, -bound, bound);
    let bias = uniform(rng, output, -bound, bound);
    layer.weight = Param::from_tensor(Tensor::from_data(TensorData::new(weights, [input, output]), device));
    layer.bias = Some(Param::from_tensor(Tensor::from_data(TensorData::new(bias, [output]), device)));
    layer
}
