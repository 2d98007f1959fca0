//! Features and gradients as torchvision, timm and pretrainedmodels compute them.

use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
use akin_core::image::Normalisation;
use akin_core::image::Preprocessing;
use akin_core::models::{BACKBONES, Backbone, BackboneConfig};
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
    let single = config.pooling().pool(backbone.valid().outputs(fixture.images(device).without_autodiff()));
    fixture.frozen.features.check(&format!("{name}: features in single precision"), single);
    let backbone = backbone.map(&mut Precise);
    let images = fixture.images(device).cast(DType::F64).detach().require_grad();
    let features = config.pooling().pool(backbone.outputs(images.clone()));
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
    assert!(error.message().starts_with("the weights do not fit ResNet-18, with "), "{error}");
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
