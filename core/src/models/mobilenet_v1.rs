//! MobileNetV1 with a quarter of its channels (Howard et al., *MobileNets*, 2017), for browsers and slow machines.
//!
//! A 3×3 convolution and thirteen pairs of a depthwise 3×3 and a 1×1 convolution, each followed by batch normalisation
//! and a leaky ReLU of slope 0.1. The names are those of the published weights of RetinaFace's backbone: three stages,
//! `stage1.0.0.weight` … `stage3.1.4.running_var`.

use burn::module::Module;
use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation::leaky_relu};

use super::batch_norm::convolve_normalised;
use super::entry::{BackboneEntry, fixed_backbones};
use super::layers::{Cost, Initial, Window};
use super::pooling::Outputs;
use crate::Result;

/// The output channels and the stride of each pair, by stage. The first stage begins with the plain convolution.
const STAGES: [&[(usize, usize)]; 3] = [
    &[(16, 1), (32, 2), (32, 1), (64, 2), (64, 1)],
    &[(128, 2), (128, 1), (128, 1), (128, 1), (128, 1), (128, 1)],
    &[(256, 2), (256, 1)],
];

fixed_backbones! {
    form: (), network: MobilenetV1, features: |_: &()| 256;
    MobilenetV1QuarterConfig = BackboneEntry {
        weights: Some("RetinaFace"),
        classifier: &["fc."],
        published_name: mobilenet_name,
        ..BackboneEntry::new(
            "mobilenet_v1_quarter",
            "MobileNetV1 ×0.25",
            "MobileNetV1 (Howard et al., 2017) with a quarter of its channels, 256 features, the names of weights of \
             RetinaFace's backbone",
        )
    }, ();
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct MobilenetV1 {
    stem: Unit,
    stages: Vec<Vec<Pair>>,
}

/// Convolution, batch normalisation, leaky ReLU.
#[derive(Module, Debug)]
struct Unit {
    conv: Conv2d,
    norm: BatchNorm,
}

#[derive(Module, Debug)]
struct Pair {
    depthwise: Unit,
    pointwise: Unit,
}

/// The published name of a weight: the layers of a pair are numbered 0 (convolution), 1 (normalisation), 3 and 4.
fn mobilenet_name(path: &str) -> String {
    let name = path
        .replace("stem.conv", "stage1.0.0")
        .replace("stem.norm", "stage1.0.1")
        .replace("depthwise.conv", "0")
        .replace("depthwise.norm", "1")
        .replace("pointwise.conv", "3")
        .replace("pointwise.norm", "4");
    let mut parts = name.split('.');
    let (Some("stages"), Some(stage), Some(pair)) = (parts.next(), parts.next(), parts.next()) else {
        return name;
    };
    let number = |part: &str| part.parse::<usize>().unwrap_or_default();
    // The plain convolution is the first of the first stage.
    let (stage, pair) = (number(stage), number(pair) + usize::from(stage == "0"));
    let rest: Vec<&str> = parts.collect();
    format!("stage{}.{pair}.{}", stage + 1, rest.join("."))
}

impl MobilenetV1 {
    fn new(_: &(), initial: &mut Initial) -> Result<Self> {
        let stem = Unit::new([3, 8], Window::new(3, 2), initial);
        let mut input = 8;
        let mut pair = |&(output, stride): &(usize, usize)| {
            let depthwise = Window { groups: input, ..Window::new(3, stride) };
            let pair = Pair {
                depthwise: Unit::new([input, input], depthwise, initial),
                pointwise: Unit::new([input, output], Window::new(1, 1), initial),
            };
            input = output;
            pair
        };
        let stages = STAGES.map(|stage| stage.iter().map(&mut pair).collect()).to_vec();
        Ok(Self { stem, stages })
    }

    /// [B, 3, H, W] → [B, 256, ⌈H/32⌉, ⌈W/32⌉].
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let x = self.stem.forward(images);
        let pair = |x, pair: &Pair| pair.pointwise.forward(pair.depthwise.forward(x));
        self.stages.iter().flatten().fold(x, pair).into()
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.stem.conv);
        for pair in self.stages.iter().flatten() {
            cost.convolution(&pair.depthwise.conv);
            cost.convolution(&pair.pointwise.conv);
        }
        cost.multiply_adds
    }
}

impl Unit {
    fn new(channels: [usize; 2], window: Window, initial: &mut Initial) -> Self {
        Self { conv: initial.convolution(channels, window), norm: initial.batch_norm(channels[1]) }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        leaky_relu(convolve_normalised(&self.conv, &self.norm, x), 0.1)
    }
}
