//! BN-Inception (Ioffe and Szegedy, *Batch normalization*, 2015), in the layout of `pretrainedmodels` 0.7.4, without its
//! classifier. Many works of metric learning start from it.
//!
//! Three convolutions, then ten *inception* modules that put side by side a 1×1 convolution, a 3×3 one, two 3×3 ones
//! and a pooled one. Two modules (3c and 4e) halve the maps; they have no 1×1 convolution and pool without one.

use burn::module::Module;
use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use burn::tensor::module::avg_pool2d;
use burn::tensor::ops::{AvgPoolOptions, MaxPoolOptions};

use super::batch_norm::convolve_normalised_rectified;
use super::entry::{BackboneEntry, fixed_backbones};
use super::layers::{Cost, Initial, Window};
use super::max_pool::max_pool;
use super::pooling::Outputs;
use crate::Result;

/// The channels of a module: the 1×1 branch, the 3×3 branch (reduced, out), the double 3×3 branch (reduced, out), the
/// pooled branch. A module without a 1×1 branch has stride 2.
struct Channels {
    name: &'static str,
    pointwise: usize,
    spatial: [usize; 2],
    double: [usize; 2],
    pooled: usize,
}

const fn channels(
    name: &'static str,
    pointwise: usize,
    spatial: [usize; 2],
    double: [usize; 2],
    pooled: usize,
) -> Channels {
    Channels { name, pointwise, spatial, double, pooled }
}

const MODULES: [Channels; 10] = [
    channels("3a", 64, [64, 64], [64, 96], 32),
    channels("3b", 64, [64, 96], [64, 96], 64),
    channels("3c", 0, [128, 160], [64, 96], 0),
    channels("4a", 224, [64, 96], [96, 128], 128),
    channels("4b", 192, [96, 128], [96, 128], 128),
    channels("4c", 160, [128, 160], [128, 160], 128),
    channels("4d", 96, [128, 192], [160, 192], 128),
    channels("4e", 0, [128, 192], [192, 256], 0),
    channels("5a", 352, [192, 320], [160, 224], 128),
    channels("5b", 352, [192, 320], [192, 224], 128),
];

fixed_backbones! {
    form: (), network: BnInception, features: |_: &()| 1024;
    BnInceptionConfig = BackboneEntry {
        weights: Some("pretrainedmodels"),
        classifier: &["last_linear.", "fc."],
        #[cfg(feature = "image")]
        normalisation: crate::image::Normalisation::BnInception,
        published_name: bn_inception_name,
        ..BackboneEntry::new(
            "bn_inception",
            "BN-Inception",
            "BN-Inception (Ioffe and Szegedy, 2015), 1,024 features, the names of weights of pretrainedmodels",
        )
    }, ();
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct BnInception {
    conv1: Unit,
    reduce: Unit,
    conv2: Unit,
    modules: Vec<Inception>,
}

/// Convolution with bias, batch normalisation, ReLU.
#[derive(Module, Debug)]
struct Unit {
    conv: Conv2d,
    norm: BatchNorm,
}

#[derive(Module, Debug)]
struct Inception {
    pointwise: Option<Unit>,
    reduce: Unit,
    spatial: Unit,
    double_reduce: Unit,
    double_first: Unit,
    double_second: Unit,
    projection: Option<Unit>,
    /// Whether the pooled branch takes the largest value, as it does in modules of stride 2 and in the last one.
    largest: bool,
}

/// The name of a weight in pretrainedmodels.
fn bn_inception_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let (layer, kind, weight) = match parts[..] {
        ["modules", module, layer, kind, weight] => {
            let module = module.parse::<usize>().ok().and_then(|module| MODULES.get(module));
            let module = module.map_or("?", |module| module.name);
            let layer = match layer {
                "pointwise" => "1x1",
                "reduce" => "3x3_reduce",
                "spatial" => "3x3",
                "double_reduce" => "double_3x3_reduce",
                "double_first" => "double_3x3_1",
                "double_second" => "double_3x3_2",
                _ => "pool_proj",
            };
            (format!("inception_{module}_{layer}"), kind, weight)
        }
        ["conv1", kind, weight] => ("conv1_7x7_s2".to_owned(), kind, weight),
        ["reduce", kind, weight] => ("conv2_3x3_reduce".to_owned(), kind, weight),
        ["conv2", kind, weight] => ("conv2_3x3".to_owned(), kind, weight),
        _ => return path.to_owned(),
    };
    let suffix = if kind == "norm" { "_bn" } else { "" };
    format!("{layer}{suffix}.{weight}")
}

impl BnInception {
    fn new(_: &(), initial: &mut Initial) -> Result<Self> {
        let conv1 = Unit::new([3, 64], 7, 2, initial);
        let reduce = Unit::new([64, 64], 1, 1, initial);
        let conv2 = Unit::new([64, 192], 3, 1, initial);
        let mut input = 192;
        let modules = MODULES.iter().map(|channels| {
            let module = Inception::new(input, channels, initial);
            let pooled = if channels.pooled == 0 { input } else { channels.pooled };
            input = channels.pointwise + channels.spatial[1] + channels.double[1] + pooled;
            module
        });
        let modules = modules.collect();
        Ok(Self { conv1, reduce, conv2, modules })
    }

    /// [B, 3, H, W] → [B, 1024, ~H/32, ~W/32].
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let x = halve(self.conv1.forward(images));
        let x = halve(self.conv2.forward(self.reduce.forward(x)));
        self.modules.iter().fold(x, |x, module| module.forward(x)).into()
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.conv1.conv);
        cost.halving(0, true);
        cost.convolution(&self.reduce.conv);
        cost.convolution(&self.conv2.conv);
        cost.halving(0, true);
        for module in &self.modules {
            let side = cost.side;
            let double = [&module.double_reduce, &module.double_first, &module.double_second];
            module.pointwise.iter().chain(&module.projection).for_each(|unit| cost.convolution(&unit.conv));
            double.into_iter().for_each(|unit| cost.convolution(&unit.conv));
            cost.side = side;
            [&module.reduce, &module.spatial].into_iter().for_each(|unit| cost.convolution(&unit.conv));
        }
        cost.multiply_adds
    }
}

impl Unit {
    fn new(channels: [usize; 2], side: usize, stride: usize, initial: &mut Initial) -> Self {
        let window = Window { bias: true, ..Window::new(side, stride) };
        Self { conv: initial.convolution(channels, window), norm: initial.batch_norm(channels[1]) }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        convolve_normalised_rectified(&self.conv, &self.norm, x)
    }
}

impl Inception {
    fn new(input: usize, channels: &Channels, initial: &mut Initial) -> Self {
        let stride = if channels.pointwise == 0 { 2 } else { 1 };
        let ([reduced, spatial], [double_reduced, double]) = (channels.spatial, channels.double);
        let mut pointwise = |output| (output > 0).then(|| Unit::new([input, output], 1, 1, &mut *initial));
        Self {
            pointwise: pointwise(channels.pointwise),
            projection: pointwise(channels.pooled),
            reduce: Unit::new([input, reduced], 1, 1, initial),
            spatial: Unit::new([reduced, spatial], 3, stride, initial),
            double_reduce: Unit::new([input, double_reduced], 1, 1, initial),
            double_first: Unit::new([double_reduced, double], 3, 1, initial),
            double_second: Unit::new([double, double], 3, stride, initial),
            largest: stride == 2 || channels.name == "5b",
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let spatial = self.spatial.forward(self.reduce.forward(x.clone()));
        let double = self.double_first.forward(self.double_reduce.forward(x.clone()));
        let double = self.double_second.forward(double);
        let pooled = match &self.projection {
            None => halve(x.clone()),
            Some(projection) => {
                let pooled = if self.largest {
                    let options = MaxPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
                    max_pool(x.clone(), options)
                } else {
                    let options = AvgPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
                    avg_pool2d(x.clone(), options)
                };
                projection.forward(pooled)
            }
        };
        let branches = [self.pointwise.as_ref().map(|unit| unit.forward(x)), Some(spatial), Some(double)];
        Tensor::cat(branches.into_iter().flatten().chain([pooled]).collect(), 1)
    }
}

/// 3×3 max-pooling of stride 2. A last window that extends beyond the edge counts.
fn halve(x: Tensor<4>) -> Tensor<4> {
    max_pool(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_ceil_mode(true))
}
