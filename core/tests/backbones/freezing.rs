//! What is frozen does not learn, and every pooling is a sum over positions where it says so.

use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::models::{BackboneConfig, Outputs, Pooling};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use super::fixture::formula;

fn encoder(name: &str, side: u32, frozen: Frozen, device: &Device) -> akin_core::encoder::Encoder {
    let config = EncoderConfig {
        backbone: BackboneConfig::named(name).unwrap(),
        pooling: None,
        head: None,
        preprocessing: Preprocessing::new(Normalisation::Imagenet, side).unwrap(),
    };
    config.init(0, device).unwrap().freeze(frozen)
}

/// Whether each weight gets a gradient.
struct Learning<'a>(&'a Gradients, Vec<bool>);

impl ModuleVisitor for Learning<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.1.push(param.val().grad(self.0).is_some());
    }
}

/// The names of the weights that get a gradient.
fn learning(name: &str, side: u32, frozen: Frozen) -> Vec<String> {
    let device = Device::flex().autodiff();
    let mut encoder = encoder(name, side, frozen, &device);
    // A checkpoint in between changes nothing.
    let weights = encoder.to_bytes().unwrap();
    encoder = encoder.with_weights(weights).unwrap();
    let count = 2 * 3 * (side * side) as usize;
    let images: Vec<f32> = formula("images", count).map(|x| x as f32).collect();
    let images = TensorData::new(images, [2, 3, side as usize, side as usize]);
    let before = encoder.to_bytes().unwrap();
    let gradients = encoder.features(Tensor::from_data(images, &device)).unwrap().sum().backward();
    assert_eq!(
        encoder.to_bytes().unwrap() == before,
        frozen.batch_norm != BatchNormMode::Live,
        "{name}: statistics"
    );
    let mut learning = Learning(&gradients, Vec::new());
    encoder.backbone.visit(&mut learning);
    let names = encoder.backbone.weight_names();
    names.into_iter().zip(learning.1).filter(|(_, learns)| *learns).map(|(name, _)| name).collect()
}

#[test]
fn batch_normalisation_learns_wholly_or_without_its_statistics_or_not_at_all() {
    let learning =
        |batch_norm| learning("mobilenet_v1_quarter", 32, Frozen { batch_norm, patch_embedding: false });
    let (live, fixed, frozen) = (
        learning(BatchNormMode::Live),
        learning(BatchNormMode::FixedStatistics),
        learning(BatchNormMode::Frozen),
    );
    assert_eq!(live, fixed);
    assert_eq!(live.len(), 3 * 27, "a convolution, a scale and a shift for each of 27 layers");
    assert_eq!(frozen.len(), 27, "{frozen:?}");
    assert!(frozen.iter().all(|name| live.contains(name) && name.ends_with(".weight")), "{frozen:?}");
}

#[test]
fn a_frozen_patch_embedding_keeps_its_weights() {
    let learning = |patch_embedding| {
        // Without batch normalisation nothing changes in a forward pass.
        learning("dino_s16", 32, Frozen { batch_norm: BatchNormMode::Frozen, patch_embedding })
    };
    let (free, frozen) = (learning(false), learning(true));
    let held: Vec<&String> = free.iter().filter(|name| !frozen.contains(name)).collect();
    assert_eq!(held, ["patch_embed.proj.weight", "patch_embed.proj.bias"]);
}

const POOLINGS: [Pooling; 5] = [
    Pooling::Average,
    Pooling::Max,
    Pooling::AverageMax,
    Pooling::Gem { exponent: 3.0 },
    Pooling::Gem { exponent: 1.0 },
];

fn maps(device: &Device) -> (Vec<f32>, Tensor<4>) {
    let values: Vec<f32> = formula("maps", 5 * 12).map(|x| x as f32).collect();
    let tensor = Tensor::from_data(TensorData::new(values.clone(), [1, 5, 3, 4]), device);
    (values, tensor)
}

#[test]
fn poolings_are_what_their_formulas_say() {
    let (values, tensor) = maps(&Device::flex());
    for pooling in POOLINGS {
        let pooled = pooling.pool(Outputs::from(tensor.clone())).into_data().try_to_vec::<f32>().unwrap();
        for (feature, pooled) in values.chunks_exact(12).zip(pooled) {
            let mean = feature.iter().sum::<f32>() / 12.0;
            let largest = feature.iter().copied().fold(f32::MIN, f32::max);
            let expected = match pooling {
                Pooling::Average => mean,
                Pooling::Max => largest,
                Pooling::AverageMax => mean + largest,
                Pooling::Gem { exponent } => {
                    let sum: f64 = feature.iter().map(|&x| f64::from(x).max(1e-6).powf(exponent)).sum();
                    (sum / 12.0).powf(1.0 / exponent) as f32
                }
                Pooling::ClassToken => unreachable!("it is not in the list"),
            };
            assert!((pooled - expected).abs() < 1e-5, "{pooling:?}: {pooled} instead of {expected}");
        }
    }
}

#[test]
fn the_mean_over_positions_is_what_is_pooled() {
    let (_, tensor) = maps(&Device::flex());
    for pooling in POOLINGS {
        let pooled = pooling.pool(Outputs::from(tensor.clone()));
        let mean = pooling.positions(tensor.clone()).unwrap().mean_dim(0);
        let error = (pooled - mean).abs().max().into_scalar::<f32>();
        assert!(error < 1e-5, "{pooling:?}: {error}");
    }
    assert!(Pooling::ClassToken.positions(tensor).is_none());
}

#[test]
fn settings_that_do_not_fit_the_backbone_are_refused() {
    let refusal = |name: &str, side: u32, pooling: Option<Pooling>| {
        let config = EncoderConfig {
            backbone: BackboneConfig::named(name).unwrap(),
            pooling,
            head: None,
            preprocessing: Preprocessing::new(Normalisation::Imagenet, side).unwrap(),
        };
        config.absent(&Device::flex()).unwrap_err().to_string()
    };
    let error = refusal("resnet18", 224, Some(Pooling::ClassToken));
    assert!(error.contains("the backbone has no class token"), "{error}");
    let error = refusal("resnet18", 224, Some(Pooling::Gem { exponent: 0.5 }));
    assert!(error.contains("the exponent of the pooling is 0.5"), "{error}");
    let error = refusal("dino_s16", 200, None);
    assert!(error.contains("no multiple of 16; set `crop` of the preprocessing to 208"), "{error}");
    let error = refusal("resnet50", 16, None);
    assert!(error.contains("images of at least 32×32 pixels"), "{error}");
}
