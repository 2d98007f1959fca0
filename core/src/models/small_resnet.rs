//! A small residual network for small images and for browsers.
//!
//! A 3×3 convolution of stride 2, then four stages of one basic block each (He et al., *Deep residual learning*, 2016,
//! fig. 5 left) with w, 2w, 4w and 8w channels. Each stage after the first halves the side. At 64 pixels and w = 16 an
//! image takes 16 million multiplications.

use burn::module::Module;
use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::batch_norm::{add_convolved_rectified, convolve_normalised, convolve_normalised_rectified};
use super::entry::BackboneEntry;
use super::layers::{Cost, Initial, Window};
use super::pooling::Outputs;
use crate::{Error, Kind, Result};

/// Settings of a [`SmallResnet`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SmallResnetConfig {
    /// The channels of the first stage, 1 … 256. Default 16.
    #[serde(default = "default_width")]
    pub width: usize,
}

fn default_width() -> usize {
    16
}

impl Default for SmallResnetConfig {
    fn default() -> Self {
        Self { width: default_width() }
    }
}

impl SmallResnetConfig {
    /// Its entry in the catalogue. Its training starts from random weights.
    pub const ENTRY: BackboneEntry = BackboneEntry {
        side: 96,
        smallest_side: 16,
        #[cfg(feature = "image")]
        normalisation: crate::image::Normalisation::Inception,
        ..BackboneEntry::new(
            "small_resnet",
            "small residual network",
            "Four residual stages with 1, 2, 4 and 8 × `width` channels, for small images and for browsers",
        )
    };

    /// F, the number of features.
    pub fn features(&self) -> usize {
        8 * self.width
    }

    pub(super) fn init(&self, initial: &mut Initial) -> Result<SmallResnet> {
        if !(1..=256).contains(&self.width) {
            return Err(Error::new(
                Kind::Config,
                format!("the width of small_resnet is {}", self.width),
                "give a number from 1 to 256; 16 is the default",
            ));
        }
        Ok(SmallResnet::new(self.width, initial))
    }
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct SmallResnet {
    stem: Unit,
    blocks: Vec<Block>,
}

/// Convolution and batch normalisation.
#[derive(Module, Debug)]
struct Unit {
    convolution: Conv2d,
    norm: BatchNorm,
}

/// relu(second(relu(first(x))) + shortcut(x)).
#[derive(Module, Debug)]
struct Block {
    first: Unit,
    second: Unit,
    shortcut: Option<Unit>,
}

impl SmallResnet {
    /// A network with `width` channels in its first stage.
    fn new(width: usize, initial: &mut Initial) -> Self {
        let stem = Unit::new([3, width], 3, 2, initial);
        let mut input = width;
        let blocks = [(1, 1), (2, 2), (4, 2), (8, 2)]
            .map(|(factor, stride)| {
                let output = factor * width;
                let block = Block {
                    first: Unit::new([input, output], 3, stride, initial),
                    second: Unit::new([output, output], 3, 1, initial),
                    shortcut: (input != output).then(|| Unit::new([input, output], 1, stride, initial)),
                };
                input = output;
                block
            })
            .to_vec();
        Self { stem, blocks }
    }

    /// [B, 3, H, W] → [B, 8w, ⌈H/16⌉, ⌈W/16⌉].
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let x = self.stem.rectified(images);
        self.blocks.iter().fold(x, |x, block| block.forward(x)).into()
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.stem.convolution);
        for block in &self.blocks {
            if let Some(shortcut) = &block.shortcut {
                let side = cost.side;
                cost.convolution(&shortcut.convolution);
                cost.side = side;
            }
            cost.convolution(&block.first.convolution);
            cost.convolution(&block.second.convolution);
        }
        cost.multiply_adds
    }
}

impl Unit {
    fn new(channels: [usize; 2], kernel: usize, stride: usize, initial: &mut Initial) -> Self {
        Self {
            convolution: initial.convolution(channels, Window::new(kernel, stride)),
            norm: initial.batch_norm(channels[1]),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        convolve_normalised(&self.convolution, &self.norm, x)
    }

    fn rectified(&self, x: Tensor<4>) -> Tensor<4> {
        convolve_normalised_rectified(&self.convolution, &self.norm, x)
    }
}

impl Block {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let inner = self.first.rectified(x.clone());
        let outer = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x),
            None => x,
        };
        add_convolved_rectified(outer, &self.second.convolution, &self.second.norm, inner)
    }
}
