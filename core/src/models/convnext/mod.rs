//! ConvNeXt (Liu et al., *A ConvNet for the 2020s*, 2022), in timm's layout, without its classifier: four stages of
//! blocks
//!
//! ```text
//! x ← x + γ · W₂ gelu(W₁ norm(depthwise 7×7(x)))
//! ```
//!
//! with a normalisation and a convolution of stride 2 before each stage but the first. The features are the mean over
//! positions, normalised.

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;

use super::convolution::convolve;
use super::drop_path::{Branches, Factors, depths};
use super::entry::{BackboneEntry, fixed_backbones};
use super::gelu::gelu;
use super::layer_norm::layer_norm;
use super::layers::{Cost, Initial, Window};
use super::linear::linear;
use super::pooling::Outputs;
use crate::Result;

const EPSILON: f64 = 1e-6;

/// The blocks and the channels of each stage.
#[derive(Clone, Copy)]
struct Form {
    blocks: [usize; 4],
    channels: [usize; 4],
}

const fn entry(name: &'static str, title: &'static str, summary: &'static str) -> BackboneEntry {
    BackboneEntry {
        weights: Some("timm"),
        classifier: &["head.fc.", "classifier."],
        pools: true,
        batch_norm: false,
        published_name,
        ..BackboneEntry::new(name, title, summary)
    }
}

/// timm numbers the layers of a sequence.
fn published_name(path: &str) -> String {
    path.replace("stem.conv.", "stem.0.")
        .replace("stem.norm.", "stem.1.")
        .replace("downsample.norm.", "downsample.0.")
        .replace("downsample.conv.", "downsample.1.")
}

fixed_backbones! {
    form: Form, network: Convnext, features: |form: &Form| form.channels[3];
    ConvnextTConfig =
        entry("convnext_t", "ConvNeXt-T", "ConvNeXt-T (Liu et al., 2022), 768 features"),
        Form { blocks: [3, 3, 9, 3], channels: [96, 192, 384, 768] };
    ConvnextBConfig =
        entry("convnext_b", "ConvNeXt-B", "ConvNeXt-B (Liu et al., 2022), 1024 features"),
        Form { blocks: [3, 3, 27, 3], channels: [128, 256, 512, 1024] };
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct Convnext {
    stem: Stem,
    stages: Vec<Stage>,
    head: Head,
}

#[derive(Module, Debug)]
struct Stem {
    conv: Conv2d,
    norm: LayerNorm,
}

#[derive(Module, Debug)]
struct Stage {
    downsample: Option<Downsample>,
    blocks: Vec<Block>,
}

#[derive(Module, Debug)]
struct Downsample {
    norm: LayerNorm,
    conv: Conv2d,
}

#[derive(Module, Debug)]
struct Block {
    conv_dw: Conv2d,
    norm: LayerNorm,
    mlp: Mlp,
    gamma: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

#[derive(Module, Debug)]
struct Head {
    norm: LayerNorm,
}

impl Convnext {
    fn new(form: &Form, initial: &mut Initial) -> Result<Self> {
        let Form { blocks, channels } = *form;
        let window = |side| Window { padding: 0, bias: true, ..Window::new(side, side) };
        let stem = Stem {
            conv: initial.convolution([3, channels[0]], window(4)),
            norm: initial.layer_norm(channels[0], EPSILON),
        };
        let stages = (0..4).map(|i| Stage {
            downsample: (i > 0).then(|| Downsample {
                norm: initial.layer_norm(channels[i - 1], EPSILON),
                conv: initial.convolution([channels[i - 1], channels[i]], window(2)),
            }),
            blocks: (0..blocks[i]).map(|_| Block::new(channels[i], initial)).collect(),
        });
        Ok(Self {
            stem,
            stages: stages.collect(),
            head: Head { norm: initial.layer_norm(channels[3], EPSILON) },
        })
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.stem.conv);
        for stage in &self.stages {
            if let Some(downsample) = &stage.downsample {
                cost.convolution(&downsample.conv);
            }
            for block in &stage.blocks {
                cost.convolution(&block.conv_dw);
                cost.linear(&block.mlp.fc1, cost.side * cost.side);
                cost.linear(&block.mlp.fc2, cost.side * cost.side);
            }
        }
        cost.multiply_adds
    }
}

impl Branches for Convnext {
    fn depths(&self) -> Vec<f64> {
        depths(self.stages.iter().map(|stage| stage.blocks.len()).sum()).collect()
    }

    /// [B, 3, H, W] → maps [B, F, H/32, W/32] and their normalised mean [B, F].
    fn outputs(&self, images: Tensor<4>, factors: Option<&Factors>) -> Outputs {
        let mut x = normalise(&self.stem.norm, convolve(&self.stem.conv, images));
        let mut branch = 0;
        for stage in &self.stages {
            if let Some(downsample) = &stage.downsample {
                x = convolve(&downsample.conv, normalise(&downsample.norm, x));
            }
            for block in &stage.blocks {
                x = block.forward(x, factors, branch);
                branch += 1;
            }
        }
        let mean = tokens(x.clone()).mean_dim(1);
        let pooled = layer_norm(&self.head.norm, EPSILON, mean).squeeze_dim::<2>(1);
        Outputs { maps: x, class_token: Some(pooled) }
    }
}

impl Block {
    fn new(channels: usize, initial: &mut Initial) -> Self {
        let window = Window { groups: channels, bias: true, ..Window::new(7, 1) };
        Self {
            conv_dw: initial.convolution([channels, channels], window),
            norm: initial.layer_norm(channels, EPSILON),
            mlp: Mlp {
                fc1: initial.linear(channels, 4 * channels),
                fc2: initial.linear(4 * channels, channels),
            },
            gamma: initial.constant([channels], 1e-6),
        }
    }

    fn forward(&self, x: Tensor<4>, factors: Option<&Factors>, branch: usize) -> Tensor<4> {
        let inner = layer_norm(&self.norm, EPSILON, tokens(convolve(&self.conv_dw, x.clone())));
        let inner = linear(&self.mlp.fc2, gelu(linear(&self.mlp.fc1, inner)));
        let added = Factors::apply(factors, branch, inner * self.gamma.val().unsqueeze());
        let dims = x.dims();
        x + maps(added, dims)
    }
}

/// [B, C, H, W] → [B, H · W, C].
fn tokens(x: Tensor<4>) -> Tensor<3> {
    x.flatten::<3>(2, 3).swap_dims(1, 2)
}

/// [B, H · W, C] → [B, C, H, W].
fn maps(x: Tensor<3>, dims: [usize; 4]) -> Tensor<4> {
    x.swap_dims(1, 2).reshape(dims)
}

/// Maps, normalised over their channels.
fn normalise(norm: &LayerNorm, x: Tensor<4>) -> Tensor<4> {
    let dims = x.dims();
    maps(layer_norm(norm, EPSILON, tokens(x)), dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::fixtures;

    #[test]
    fn features_and_gradients_are_those_of_the_published_implementations() {
        let small = Form { blocks: [1, 2, 1, 1], channels: [8, 12, 16, 24] };
        fixtures::check(include_str!("published.json"), |_, initial| Convnext::new(&small, initial).unwrap());
    }
}
