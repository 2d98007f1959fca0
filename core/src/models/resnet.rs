//! ResNet-18, 34 and 50 (He et al., *Deep residual learning for image recognition*, 2016), in torchvision's layout,
//! without the classifier.
//!
//! A 7×7 convolution and a max-pooling, each of stride 2, then four stages of blocks with 64, 128, 256 and 512
//! channels. A block of ResNet-18 and 34 has two 3×3 convolutions; one of ResNet-50 has a 1×1, a 3×3 and a 1×1
//! convolution and four times the channels at its end. The 3×3 convolution has the stride, as in torchvision and unlike
//! the paper.

use burn::module::Module;
use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use burn::tensor::ops::MaxPoolOptions;

use super::batch_norm::{add_convolved_rectified, convolve_normalised, convolve_normalised_rectified};
use super::entry::{BackboneEntry, fixed_backbones};
use super::layers::{Cost, Initial, Window};
use super::max_pool::max_pool;
use super::pooling::Outputs;
use crate::Result;

/// The published form of a network of this family.
struct Form {
    /// The blocks of each stage.
    blocks: [usize; 4],
    /// Whether a block has three convolutions.
    bottleneck: bool,
}

const fn entry(name: &'static str, title: &'static str, summary: &'static str) -> BackboneEntry {
    BackboneEntry {
        weights: Some("torchvision"),
        classifier: &["fc."],
        published_name: resnet_name,
        ..BackboneEntry::new(name, title, summary)
    }
}

fixed_backbones! {
    form: Form, network: Resnet, features: |form: &Form| if form.bottleneck { 2048 } else { 512 };
    Resnet18Config =
        entry("resnet18", "ResNet-18", "ResNet-18 (He et al., 2016), 512 features, torchvision's names of weights"),
        Form { blocks: [2, 2, 2, 2], bottleneck: false };
    Resnet34Config =
        entry("resnet34", "ResNet-34", "ResNet-34 (He et al., 2016), 512 features, torchvision's names of weights"),
        Form { blocks: [3, 4, 6, 3], bottleneck: false };
    Resnet50Config =
        entry("resnet50", "ResNet-50", "ResNet-50 (He et al., 2016), 2,048 features, torchvision's names of weights"),
        Form { blocks: [3, 4, 6, 3], bottleneck: true };
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct Resnet {
    conv1: Conv2d,
    bn1: BatchNorm,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
}

/// relu(f(x) + shortcut(x)), where f is two or three convolutions with ReLUs between them.
#[derive(Module, Debug)]
struct Block {
    conv1: Conv2d,
    bn1: BatchNorm,
    conv2: Conv2d,
    bn2: BatchNorm,
    conv3: Option<Conv2d>,
    bn3: Option<BatchNorm>,
    downsample: Option<Shortcut>,
}

#[derive(Module, Debug)]
struct Shortcut {
    conv: Conv2d,
    norm: BatchNorm,
}

/// torchvision's name of a weight.
fn resnet_name(path: &str) -> String {
    path.replace("downsample.conv", "downsample.0").replace("downsample.norm", "downsample.1")
}

impl Resnet {
    fn new(form: &Form, initial: &mut Initial) -> Result<Self> {
        let conv1 = initial.convolution([3, 64], Window::new(7, 2));
        let bn1 = initial.batch_norm(64);
        let mut input = 64;
        let mut stage = |number: usize| -> Vec<Block> {
            let block = |i: usize| {
                let stride = if i == 0 && number > 0 { 2 } else { 1 };
                let block = Block::new(input, 64 << number, stride, form.bottleneck, initial);
                input = (64 << number) * if form.bottleneck { 4 } else { 1 };
                block
            };
            (0..form.blocks[number]).map(block).collect()
        };
        Ok(Self { conv1, bn1, layer1: stage(0), layer2: stage(1), layer3: stage(2), layer4: stage(3) })
    }

    /// [B, 3, H, W] → [B, F, ⌈H/32⌉, ⌈W/32⌉].
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let x = convolve_normalised_rectified(&self.conv1, &self.bn1, images);
        let x = max_pool(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]));
        self.blocks().fold(x, |x, block| block.forward(x)).into()
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.conv1);
        cost.halving(1, false);
        for block in self.blocks() {
            if let Some(shortcut) = &block.downsample {
                let side = cost.side;
                cost.convolution(&shortcut.conv);
                cost.side = side;
            }
            cost.convolution(&block.conv1);
            cost.convolution(&block.conv2);
            block.conv3.iter().for_each(|layer| cost.convolution(layer));
        }
        cost.multiply_adds
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        [&self.layer1, &self.layer2, &self.layer3, &self.layer4].into_iter().flatten()
    }
}

impl Block {
    fn new(input: usize, width: usize, stride: usize, bottleneck: bool, initial: &mut Initial) -> Self {
        let output = if bottleneck { 4 * width } else { width };
        let first = if bottleneck { Window::new(1, 1) } else { Window::new(3, stride) };
        let second = Window::new(3, if bottleneck { stride } else { 1 });
        Self {
            conv1: initial.convolution([input, width], first),
            bn1: initial.batch_norm(width),
            conv2: initial.convolution([width, width], second),
            bn2: initial.batch_norm(width),
            conv3: bottleneck.then(|| initial.convolution([width, output], Window::new(1, 1))),
            bn3: bottleneck.then(|| initial.batch_norm(output)),
            downsample: (stride != 1 || input != output).then(|| Shortcut {
                conv: initial.convolution([input, output], Window::new(1, stride)),
                norm: initial.batch_norm(output),
            }),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let inner = convolve_normalised_rectified(&self.conv1, &self.bn1, x.clone());
        let outer = match &self.downsample {
            Some(shortcut) => convolve_normalised(&shortcut.conv, &shortcut.norm, x),
            None => x,
        };
        match (&self.conv3, &self.bn3) {
            (Some(conv), Some(norm)) => {
                let inner = convolve_normalised_rectified(&self.conv2, &self.bn2, inner);
                add_convolved_rectified(outer, conv, norm, inner)
            }
            _ => add_convolved_rectified(outer, &self.conv2, &self.bn2, inner),
        }
    }
}
