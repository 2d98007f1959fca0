//! In half precision a backbone gives nearly the features and gradients of single precision.

use akin_core::encoder::{BatchNormMode, Encoder, EncoderConfig, Frozen};
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::models::{BackboneConfig, HeadConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};

use super::fixture::formula;

fn encoder(name: &str, side: u32, device: &Device) -> Encoder {
    let config = EncoderConfig {
        backbone: BackboneConfig::named(name).unwrap(),
        pooling: None,
        head: Some(HeadConfig {
            dimension: 8,
            layer_norm: false,
            geometry: Default::default(),
            initial_weights: Default::default(),
        }),
        preprocessing: Preprocessing::new(Normalisation::Imagenet, side).unwrap(),
    };
    config.init(0, device).unwrap()
}

fn images(side: u32, device: &Device) -> Tensor<4> {
    let side = side as usize;
    let values: Vec<f32> = formula("images", 2 * 3 * side * side).map(|x| x as f32).collect();
    Tensor::from_data(TensorData::new(values, [2, 3, side, side]), device)
}

fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    assert_eq!(tensor.dtype(), DType::F32);
    tensor.into_data().try_to_vec().unwrap()
}

/// The gradient of all weights, and how many weights have one.
struct Collected<'a> {
    gradients: &'a Gradients,
    numbers: Vec<f32>,
    weights: usize,
}

impl ModuleVisitor for Collected<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(self.gradients) {
            self.numbers.extend(to_vec(gradient));
            self.weights += 1;
        }
    }
}

/// The gradient of a sum of products of embeddings by the weights of `encoder`, when `used` embeds.
fn gradient(encoder: &Encoder, used: &Encoder, images: Tensor<4>) -> (Vec<f32>, usize) {
    let embeddings = used.forward(images).unwrap();
    let gradients = (embeddings.clone() * embeddings.roll(&[1], &[1])).sum().backward();
    let mut collected = Collected { gradients: &gradients, numbers: Vec::new(), weights: 0 };
    encoder.visit(&mut collected);
    (collected.numbers, collected.weights)
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let product =
        |x: &[f32], y: &[f32]| -> f64 { x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum() };
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

#[test]
fn backbones_compute_in_half_precision_nearly_what_they_compute_in_single() {
    let device = Device::flex().autodiff();
    // One of each kind of network.
    let names =
        ["small_resnet", "squeezenet", "mobilenet_v1_quarter", "resnet18", "bn_inception", "dinov2_s14"];
    for name in names {
        let side = BackboneConfig::named(name).unwrap().entry().smallest_side;
        let frozen = Frozen { batch_norm: BatchNormMode::FixedStatistics, ..Frozen::default() };
        let encoder = encoder(name, side, &device).freeze(frozen);
        let half = encoder.in_half_precision();
        let [single, rounded] = [&encoder, &half]
            .map(|encoder| to_vec(encoder.valid().forward(images(side, &Device::flex())).unwrap()));
        assert_ne!(single, rounded, "{name} computes in half precision");
        assert!(cosine(&single, &rounded) > 0.999, "{name}: {single:?} and {rounded:?}");
        let [single, rounded] = [&encoder, &half].map(|used| gradient(&encoder, used, images(side, &device)));
        assert_eq!(single.1, rounded.1, "{name}: the weights that have a gradient");
        assert!(cosine(&single.0, &rounded.0) > 0.99, "{name}: {}", cosine(&single.0, &rounded.0));
    }
}

/// The bytes of an encoder hold the statistics too, and nothing else has changed.
#[test]
fn live_batch_normalisation_in_half_precision_follows_its_batches_in_single() {
    let device = Device::flex().autodiff();
    let statistics = |used: fn(&Encoder) -> Encoder| {
        let encoder = encoder("small_resnet", 32, &device);
        let before = encoder.to_bytes().unwrap();
        used(&encoder).forward(images(32, &device)).unwrap();
        assert_ne!(encoder.to_bytes().unwrap(), before);
        struct Visitor(Vec<f32>);
        impl ModuleVisitor for Visitor {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.extend(to_vec(param.val()));
            }
        }
        let mut visitor = Visitor(Vec::new());
        encoder.valid().visit(&mut visitor);
        visitor.0
    };
    let [single, half] = [statistics(Clone::clone), statistics(Encoder::in_half_precision)];
    assert!(single.iter().zip(&half).all(|(single, half)| (single - half).abs() < 1e-2));
}

#[test]
fn a_frozen_backbone_in_half_precision_leaves_the_gradient_to_the_head() {
    let device = Device::flex().autodiff();
    let encoder = encoder("squeezenet", 32, &device);
    let embeddings = encoder.in_half_precision().forward_frozen(images(32, &device)).unwrap();
    let gradients = (embeddings.clone() * embeddings.roll(&[1], &[1])).sum().backward();
    let mut collected = Collected { gradients: &gradients, numbers: Vec::new(), weights: 0 };
    encoder.visit(&mut collected);
    assert_eq!(collected.weights, 2, "the weights and the bias of the head");
}
