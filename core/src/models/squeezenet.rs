//! SqueezeNet 1.1: a convolution and eight *fire* modules (Iandola et al., *SqueezeNet*, 2016), in torchvision's
//! layout, without its classifier.
//!
//! A fire module reduces the channels of its input by 1×1 convolutions and expands them by 1×1 and 3×3 convolutions
//! side by side. Weights are loaded by torchvision's names, `features.0.weight` … `features.12.expand3x3.bias`. Its
//! authors trained with Caffe's normalisation, which is the default; weights that torchvision trained expect
//! [`Imagenet`](crate::image::Normalisation::Imagenet).

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use burn::tensor::ops::MaxPoolOptions;

use super::convolution::{convolve_both_rectified, convolve_rectified};
use super::entry::{BackboneEntry, fixed_backbones};
use super::layers::{Cost, Initial, Window};
use super::max_pool::max_pool;
use super::pooling::Outputs;
use crate::Result;

/// The input, squeeze and expand channels of the fire modules, with their index in torchvision's `features`. A
/// max-pooling comes before the first, third and fifth.
const FIRES: [(usize, [usize; 3]); 8] = [
    (3, [64, 16, 64]),
    (4, [128, 16, 64]),
    (6, [128, 32, 128]),
    (7, [256, 32, 128]),
    (9, [256, 48, 192]),
    (10, [384, 48, 192]),
    (11, [384, 64, 256]),
    (12, [512, 64, 256]),
];

fixed_backbones! {
    form: (), network: Squeezenet, features: |_: &()| 512;
    SqueezenetConfig = BackboneEntry {
        weights: Some("torchvision"),
        classifier: &["classifier."],
        smallest_side: 17,
        #[cfg(feature = "image")]
        normalisation: crate::image::Normalisation::Caffe,
        batch_norm: false,
        published_name: squeezenet_name,
        ..BackboneEntry::new(
            "squeezenet",
            "SqueezeNet 1.1",
            "SqueezeNet 1.1 (Iandola et al., 2016), 512 features, torchvision's names of weights",
        )
    }, ();
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct Squeezenet {
    stem: Conv2d,
    fires: Vec<Fire>,
}

#[derive(Module, Debug)]
struct Fire {
    squeeze: Conv2d,
    expand1x1: Conv2d,
    expand3x3: Conv2d,
}

impl Squeezenet {
    fn new(_: &(), initial: &mut Initial) -> Result<Self> {
        let window = |side, stride| Window { bias: true, ..Window::new(side, stride) };
        let stem = initial.convolution([3, 64], Window { padding: 0, ..window(3, 2) });
        let fires = FIRES
            .map(|(_, [input, squeezed, expanded])| Fire {
                squeeze: initial.convolution([input, squeezed], window(1, 1)),
                expand1x1: initial.convolution([squeezed, expanded], window(1, 1)),
                expand3x3: initial.convolution([squeezed, expanded], window(3, 1)),
            })
            .to_vec();
        Ok(Self { stem, fires })
    }

    /// [B, 3, H, W] → [B, 512, ~H/16, ~W/16].
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let mut x = convolve_rectified(&self.stem, images);
        for (i, fire) in self.fires.iter().enumerate() {
            if is_halved_before(i) {
                x = halve(x);
            }
            x = fire.forward(x);
        }
        x.into()
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.stem);
        for (i, fire) in self.fires.iter().enumerate() {
            if is_halved_before(i) {
                cost.halving(0, true);
            }
            for layer in [&fire.squeeze, &fire.expand1x1, &fire.expand3x3] {
                cost.convolution(layer);
            }
        }
        cost.multiply_adds
    }
}

/// torchvision's name of a weight.
fn squeezenet_name(path: &str) -> String {
    if let Some(rest) = path.strip_prefix("stem.") {
        return format!("features.0.{rest}");
    }
    let fire = path.strip_prefix("fires.").and_then(|rest| rest.split_once('.'));
    match fire.and_then(|(i, rest)| Some((FIRES.get(i.parse::<usize>().ok()?)?, rest))) {
        Some(((number, _), rest)) => format!("features.{number}.{rest}"),
        None => path.to_owned(),
    }
}

/// Whether a max-pooling comes before a fire module.
fn is_halved_before(fire: usize) -> bool {
    matches!(fire, 0 | 2 | 4)
}

impl Fire {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let squeezed = convolve_rectified(&self.squeeze, x);
        convolve_both_rectified([&self.expand1x1, &self.expand3x3], squeezed)
    }
}

/// 3×3 max-pooling of stride 2. A last window that extends beyond the edge counts, as in torchvision.
fn halve(x: Tensor<4>) -> Tensor<4> {
    max_pool(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_ceil_mode(true))
}
