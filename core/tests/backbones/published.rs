//! Features and gradients as torchvision, timm and pretrainedmodels compute them.

use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
use akin_core::image::Normalisation;
use akin_core::image::Preprocessing;
use akin_core::models::{BACKBONES, Backbone, BackboneConfig, HeadConfig, PublishedWeights};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};

use super::files::{Stored, pth, safetensors};
use super::fixture::{Fixture, Measured, formula};

/// The names of the backbones with published weights.
fn names() -> impl Iterator<Item = &'static str> {
    BACKBONES.iter().filter(|entry| entry.weights.is_some()).map(|entry| entry.name)
}

/// The gradient of each weight, or another number of it, in the order of the network.
struct Collect<'a> {
    gradients: &'a Gradients,
    /// By the place among all weights of the network.
    found: Vec<Option<(Vec<usize>, Vec<f64>)>>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.gradients);
        self.found.push(
            gradient.map(|gradient| (gradient.dims().to_vec(), gradient.into_data().try_to_vec().unwrap())),
        );
    }
}

/// Turns every weight into numbers of double precision. In single precision, a gradient through ten ReLUs and more
/// depends in its fourth digit on the order of sums, because a sum near 0 falls on one side or the other.
struct Precise;

impl ModuleMapper for Precise {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            let learns = tensor.is_require_grad();
            tensor.cast(DType::F64).detach().set_require_grad(learns)
        })
    }
}

/// Compares features and gradients of a backbone with what a published implementation computed.
fn check(
    name: &str,
    fixture: &Fixture,
    backbone: Backbone,
    expected: &Measured,
    device: &Device,
) -> Backbone {
    let config = BackboneConfig::named(name).unwrap();
    let single =
        config.pooling().pool(backbone.valid().outputs(fixture.images(device).without_autodiff()).unwrap());
    fixture.frozen.features.check(&format!("{name}: features in single precision"), single);
    let backbone = backbone.map(&mut Precise);
    let images = fixture.images(device).cast(DType::F64).detach().require_grad();
    let features = config.pooling().pool(backbone.outputs(images.clone()).unwrap());
    let [batch, count] = features.dims();
    assert_eq!(count, config.features(), "{name}");
    expected.features.check(&format!("{name}: features"), features.clone());
    let factors: Vec<f64> = formula("factors", batch * count).collect();
    let factors = Tensor::from_data(TensorData::new(factors, [batch, count]), (device, DType::F64));
    let gradients = (features * factors).sum().backward();
    let mut collect = Collect { gradients: &gradients, found: Vec::new() };
    backbone.visit(&mut collect);
    let names = backbone.weight_names();
    for (weight, sample) in &expected.gradients {
        let what = format!("{name}: gradient of {weight}");
        if weight == "images" {
            sample.check(&what, images.grad(&gradients).unwrap());
            continue;
        }
        let place = names.iter().position(|name| name == weight).expect("the weight has its published name");
        let (shape, values) = collect.found[place].clone().expect("the weight learns");
        let file_shape = &fixture.weights[weight];
        let gradient = Tensor::<1>::from_data(
            TensorData::new(values, [file_shape.iter().product::<usize>()]),
            (device, DType::F64),
        );
        // Burn has the inputs of a linear layer first, files have the outputs.
        if shape != *file_shape {
            let [inputs, outputs] = shape[..] else { panic!("{what} has the shape {shape:?}") };
            assert_eq!(*file_shape, [outputs, inputs]);
            sample.check(&what, gradient.reshape([inputs, outputs]).transpose());
        } else {
            sample.check(&what, gradient);
        }
    }
    backbone
}

#[test]
fn features_and_gradients_of_small_networks_are_those_of_the_published_implementations() {
    check_all(&["squeezenet", "mobilenet_v1_quarter"]);
}

#[test]
fn features_and_gradients_of_resnets_are_those_of_torchvision() {
    check_all(&["resnet18", "resnet34", "resnet50"]);
}

#[test]
fn features_and_gradients_of_bn_inception_are_those_of_pretrainedmodels() {
    check_all(&["bn_inception"]);
}

#[test]
fn features_and_gradients_of_vision_transformers_are_those_of_timm() {
    check_all(&["vit_s16", "deit_s16", "deit_s16_distilled", "dino_s16", "dinov2_s14"]);
}

/// Backbones that are too large for this file: `core/src/models` checks smaller networks of the same form.
const LARGE: &[&str] = &[
    "vit_b16",
    "vit_l16",
    "dinov2_b14",
    "dinov2_l14",
    "dinov2_b14_reg4",
    "dinov2_l14_reg4",
    "clip_b16",
    "open_clip_b16",
    "bioclip2",
    "siglip2_b16",
    "dinov3_s16",
    "dinov3_s16_plus",
    "dinov3_b16",
    "dinov3_l16",
    "convnext_t",
    "convnext_b",
];

#[test]
fn large_backbones_have_the_published_numbers_of_weights() {
    let counts: serde_json::Value = serde_json::from_str(include_str!("large.json")).unwrap();
    for name in LARGE {
        let backbone = BackboneConfig::named(name).unwrap().absent(&Device::flex()).unwrap();
        assert_eq!(Some(backbone.parameters()), counts[name].as_u64(), "{name}");
    }
}

#[test]
fn every_backbone_with_published_weights_has_its_test() {
    let tests = include_str!("published.rs");
    assert!(names().all(|name| tests.contains(&format!("\"{name}\""))));
}

fn check_all(names: &[&str]) {
    let device = Device::flex().autodiff();
    for &name in names {
        let fixture = Fixture::read(name);
        let backbone = fixture.backbone(name, &device);
        let side = fixture.side.try_into().unwrap();
        let preprocessing = Preprocessing::new(Normalisation::Imagenet, side).unwrap();
        let config = EncoderConfig {
            backbone: BackboneConfig::named(name).unwrap(),
            pooling: None,
            head: None,
            preprocessing,
        };
        let mut encoder = config.absent(&device).unwrap();
        encoder.backbone = backbone;
        let frozen = Frozen { batch_norm: BatchNormMode::FixedStatistics, patch_embedding: false };
        check(name, &fixture, encoder.freeze(frozen).backbone, &fixture.frozen, &device);
        if let Some(live) = &fixture.live {
            // A network of its own: the first forward pass changes the running statistics.
            let backbone = fixture.backbone(name, &device);
            let backbone = check(name, &fixture, backbone, live, &device);
            let (names, values) = (backbone.weight_names(), statistics(&backbone.valid()));
            for (weight, sample) in &live.running_mean {
                let place = names.iter().position(|name| name == weight).unwrap();
                let mean = TensorData::new(values[place].clone(), [values[place].len()]);
                sample.check(&format!("{name}: {weight}"), Tensor::<1>::from_data(mean, &device));
            }
        }
    }
}

/// The numbers of every weight.
fn statistics(backbone: &Backbone) -> Vec<Vec<f32>> {
    struct Values(Vec<Vec<f32>>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().cast(DType::F32).into_data().try_to_vec().unwrap());
        }
    }
    let mut values = Values(Vec::new());
    backbone.visit(&mut values);
    values.0
}

#[test]
fn parameters_and_multiply_adds_are_those_of_the_published_implementations() {
    let device = Device::flex();
    for name in names().filter(|name| !LARGE.contains(name)) {
        let fixture = Fixture::read(name);
        let backbone = BackboneConfig::named(name).unwrap().absent(&device).unwrap();
        assert_eq!(backbone.parameters(), fixture.parameters, "{name}");
        for (side, &expected) in &fixture.multiply_adds {
            assert_eq!(backbone.multiply_adds(side.parse().unwrap()), expected, "{name} at {side}");
        }
    }
}

#[test]
fn a_pth_file_and_a_safetensors_file_give_the_same_network() {
    let device = Device::flex();
    for name in ["mobilenet_v1_quarter", "squeezenet"] {
        let stored = Fixture::read(name).stored();
        let load = |bytes| {
            let mut backbone = BackboneConfig::named(name).unwrap().absent(&device).unwrap();
            backbone.load_pretrained(bytes).unwrap();
            statistics(&backbone)
        };
        assert_eq!(load(pth(&stored)), load(safetensors(&stored)), "{name}");
        // Names as torch writes them for a model on several devices.
        let parallel: Vec<Stored> = stored
            .iter()
            .map(|tensor| Stored { name: format!("module.{}", tensor.name), ..tensor.clone() })
            .collect();
        assert_eq!(load(pth(&parallel)), load(pth(&stored)), "{name}");
    }
}

#[test]
fn weights_of_another_backbone_are_recognised() {
    let device = Device::flex();
    let refusal = |name: &str, stored: &[Stored]| {
        let mut backbone = BackboneConfig::named(name).unwrap().absent(&device).unwrap();
        backbone.load_pretrained(pth(stored)).unwrap_err()
    };
    let resnet18 = Fixture::read("resnet18").stored();
    let error = refusal("resnet50", &resnet18);
    assert_eq!(error.message(), "these look like weights of resnet18, but the backbone is resnet50");
    assert!(error.hint().starts_with("set model.backbone to { kind = \"resnet18\" }"), "{error}");
    let error = refusal("vit_s16", &Fixture::read("deit_s16_distilled").stored());
    assert!(error.message().starts_with("these look like weights of deit_s16_distilled"), "{error}");
    // Weights of nothing that is known.
    let error = refusal("resnet18", &resnet18[..10]);
    assert!(error.message().starts_with("the weights do not fit ResNet-18 ("), "{error}");
}

#[test]
fn vectors_that_a_conversion_keeps_as_rows_are_read() {
    // So are those of pretrainedmodels' BN-Inception.
    let mut stored = Fixture::read("bn_inception").stored();
    for tensor in &mut stored {
        if tensor.name.contains("_bn.") && tensor.shape.len() == 1 {
            tensor.shape.insert(0, 1);
        }
    }
    let mut backbone = BackboneConfig::named("bn_inception").unwrap().absent(&Device::flex()).unwrap();
    backbone.load_pretrained(pth(&stored)).unwrap();
}

#[test]
fn a_file_says_whose_weights_it_has() {
    let device = Device::flex();
    let recognised = |stored: &[Stored]| -> Vec<&str> {
        let weights = PublishedWeights::parse(safetensors(stored)).unwrap();
        weights.backbones(&device).into_iter().map(|entry| entry.name).collect()
    };
    for name in names().filter(|name| !LARGE.contains(name)) {
        let mut stored = Fixture::read(name).stored();
        stored.iter_mut().for_each(|tensor| tensor.name.insert_str(0, "_orig_mod.encoder."));
        let expected = match name {
            // They differ only in how they were trained.
            "vit_s16" | "deit_s16" | "dino_s16" => vec!["vit_s16", "deit_s16", "dino_s16"],
            _ => vec![name],
        };
        assert_eq!(recognised(&stored), expected);
    }
    assert!(recognised(&Fixture::read("resnet18").stored()[..10]).is_empty());
}

#[test]
fn embeddings_of_positions_of_another_grid_are_interpolated() {
    let device = Device::flex();
    let fixture = Fixture::read("vit_s16");
    // A network for images of 96 pixels is one for 224 pixels whose positions were interpolated before.
    let images = Tensor::<4>::ones([1, 3, 96, 96], &device) * 0.5;
    let features = |stored: &[Stored]| -> Vec<f32> {
        let mut backbone = BackboneConfig::named("vit_s16").unwrap().absent(&device).unwrap();
        backbone.load_pretrained(safetensors(stored)).unwrap();
        backbone.outputs(images.clone()).unwrap().class_token.unwrap().into_data().try_to_vec().unwrap()
    };
    let mut stored = fixture.stored();
    let positions = stored.iter_mut().find(|tensor| tensor.name == "pos_embed").unwrap();
    // Positions that are the same everywhere stay so in every grid.
    let one: Vec<f32> = positions.values[..384].to_vec();
    positions.values = one.repeat(197);
    let whole = features(&stored);
    let positions = stored.iter_mut().find(|tensor| tensor.name == "pos_embed").unwrap();
    (positions.shape, positions.values) = (vec![1, 37, 384], one.repeat(37));
    let smaller = features(&stored);
    assert!(whole.iter().zip(&smaller).all(|(a, b)| (a - b).abs() < 1e-4));
    let positions = stored.iter_mut().find(|tensor| tensor.name == "pos_embed").unwrap();
    (positions.shape, positions.values) = (vec![1, 38, 384], one.repeat(38));
    let mut backbone = BackboneConfig::named("vit_s16").unwrap().absent(&device).unwrap();
    let error = backbone.load_pretrained(safetensors(&stored)).unwrap_err();
    assert!(error.message().contains("pos_embed is [1, 38, 384] instead of [1, 197, 384]"), "{error}");
}

#[test]
fn a_linear_layer_of_the_file_becomes_the_head() {
    let device = Device::flex();
    let mut stored = Fixture::read("squeezenet").stored();
    let numbers = |count: usize| formula("head", count).map(|x| x as f32).collect::<Vec<_>>();
    stored.extend([
        Stored::new("head.0.weight", &[512], numbers(512)),
        Stored::new("head.0.bias", &[512], numbers(512).into_iter().rev().collect()),
        Stored::new("head.1.weight", &[7, 512], numbers(7 * 512)),
        Stored::new("fc.weight", &[1000, 512], numbers(512_000)),
    ]);
    let weights = PublishedWeights::parse(safetensors(&stored)).unwrap();
    let config = |layer_norm| EncoderConfig {
        backbone: BackboneConfig::named("squeezenet").unwrap(),
        pooling: None,
        head: Some(HeadConfig { layer_norm, ..serde_json::from_str(r#"{ "dimension": 7 }"#).unwrap() }),
        preprocessing: Preprocessing::new(Normalisation::Imagenet, 64).unwrap(),
    };
    let mut encoder = config(true).init(0, &device).unwrap();
    let heads = weights.heads(&encoder.backbone, 512);
    let found: Vec<_> =
        heads.iter().map(|head| (head.name.as_str(), head.dimension, head.is_classifier)).collect();
    assert_eq!(found, [("fc", 1000, true), ("head.1", 7, false)]);
    assert_eq!(heads[1].layer_norm.as_deref(), Some("head.0"));
    assert_eq!(encoder.load_published(&weights, Some("head.1")).unwrap(), ["fc.weight"]);

    // LayerNorm with scale and shift, then the linear layer, then unit length.
    let features: Vec<f32> = formula("features", 512).map(|x| x as f32).collect();
    let mean = features.iter().sum::<f32>() / 512.0;
    let variance = features.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 512.0;
    let (scale, shift, rows) = (numbers(512), numbers(512), numbers(7 * 512));
    let normalised: Vec<f32> = (0..512)
        .map(|i| (features[i] - mean) / (variance + 1e-5).sqrt() * scale[i] + shift[511 - i])
        .collect();
    let expected: Vec<f32> =
        rows.chunks(512).map(|row| row.iter().zip(&normalised).map(|(a, b)| a * b).sum()).collect();
    let length = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
    let features = Tensor::<2>::from_data(TensorData::new(features, [1, 512]), &device);
    let embedding: Vec<f32> = encoder.embed_features(features).into_data().try_to_vec().unwrap();
    for (found, expected) in embedding.iter().zip(&expected) {
        assert!((found - expected / length).abs() < 1e-5, "{found} {}", expected / length);
    }

    let error = config(false).init(0, &device).unwrap().load_published(&weights, Some("head.1")).unwrap_err();
    assert_eq!(error.hint(), "set model.head to { dimension = 7, layer_norm = true }");
    let error = encoder.load_published(&weights, Some("neck")).unwrap_err();
    assert_eq!(error.hint(), "name one of these: fc, head.1");
}
