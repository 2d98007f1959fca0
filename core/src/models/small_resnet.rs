//! A small residual network for small images and for browsers.
//!
//! A 3×3 convolution of stride 2, then four stages of one basic block each (He et al., *Deep residual learning*, 2016,
//! fig. 5 left) with w, 2w, 4w and 8w channels. Each stage after the first halves the side. At 64 pixels and w = 16 an
//! image takes 16 million multiplications.

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::nn::{BatchNorm, BatchNormConfig};
use burn::tensor::{Device, Tensor, activation::relu};
use rand_chacha::ChaCha8Rng;

use super::convolution;

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
    pub fn new(width: usize, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let stem = Unit::new([3, width], 3, 2, rng, device);
        let mut input = width;
        let blocks = [(1, 1), (2, 2), (4, 2), (8, 2)]
            .map(|(factor, stride)| {
                let output = factor * width;
                let block = Block {
                    first: Unit::new([input, output], 3, stride, rng, device),
                    second: Unit::new([output, output], 3, 1, rng, device),
                    shortcut: (input != output).then(|| Unit::new([input, output], 1, stride, rng, device)),
                };
                input = output;
                block
            })
            .to_vec();
        Self { stem, blocks }
    }

    /// [B, 3, H, W] → [B, 8w, ⌈H/16⌉, ⌈W/16⌉].
    pub fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let x = relu(self.stem.forward(images));
        self.blocks.iter().fold(x, |x, block| block.forward(x))
    }
}

impl Unit {
    fn new(
        channels: [usize; 2],
        kernel: usize,
        stride: usize,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        Self {
            convolution: convolution(channels, kernel, stride, kernel / 2, false, rng, device),
            norm: BatchNormConfig::new(channels[1]).init(device),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.convolution.forward(x))
    }
}

impl Block {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let inner = self.second.forward(relu(self.first.forward(x.clone())));
        let outer = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x),
            None => x,
        };
        relu(inner + outer)
    }
}
