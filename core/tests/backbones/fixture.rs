//! The fixtures, and the formula of their weights and images.

use std::collections::BTreeMap;

use akin_core::digest::sha256;
use akin_core::models::{Backbone, BackboneConfig};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::Deserialize;

use super::files::{Stored, safetensors};

/// What a published implementation computed; see `fixtures.py`.
#[derive(Deserialize)]
pub(crate) struct Fixture {
    pub(crate) batch: usize,
    pub(crate) side: usize,
    pub(crate) parameters: u64,
    /// By the side of the image.
    pub(crate) multiply_adds: BTreeMap<String, u64>,
    /// The shape of each weight by its name.
    pub(crate) weights: BTreeMap<String, Vec<usize>>,
    pub(crate) frozen: Measured,
    pub(crate) live: Option<Measured>,
}

#[derive(Deserialize)]
pub(crate) struct Measured {
    pub(crate) features: Sample,
    /// The gradient of the sum of the features, each times its factor, by weight; and by the images.
    pub(crate) gradients: BTreeMap<String, Sample>,
    #[serde(default)]
    pub(crate) running_mean: BTreeMap<String, Sample>,
}

/// Some elements of a tensor, at equal distances.
#[derive(Deserialize)]
pub(crate) struct Sample {
    largest: f64,
    norm: f64,
    values: Vec<f64>,
}

impl Fixture {
    pub(crate) fn read(name: &str) -> Self {
        let text = match name {
            "squeezenet" => include_str!("squeezenet.json"),
            "mobilenet_v1_quarter" => include_str!("mobilenet_v1_quarter.json"),
            "resnet18" => include_str!("resnet18.json"),
            "resnet34" => include_str!("resnet34.json"),
            "resnet50" => include_str!("resnet50.json"),
            "bn_inception" => include_str!("bn_inception.json"),
            "vit_s16" => include_str!("vit_s16.json"),
            "deit_s16" => include_str!("deit_s16.json"),
            "deit_s16_distilled" => include_str!("deit_s16_distilled.json"),
            "dino_s16" => include_str!("dino_s16.json"),
            "dinov2_s14" => include_str!("dinov2_s14.json"),
            other => panic!("no fixture for {other}: add it to fixtures.py"),
        };
        serde_json::from_str(text).unwrap()
    }

    /// The weights by formula, as a file would hold them.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        self.weights.iter().map(|(name, shape)| Stored::new(name, shape, weight(name, shape))).collect()
    }

    pub(crate) fn images(&self, device: &Device) -> Tensor<4> {
        let shape = [self.batch, 3, self.side, self.side];
        let values: Vec<f32> = formula("images", shape.iter().product()).map(|x| x as f32).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// The backbone with the weights by formula.
    pub(crate) fn backbone(&self, name: &str, device: &Device) -> Backbone {
        let mut backbone = BackboneConfig::named(name).unwrap().absent(device).unwrap();
        backbone.load_pretrained(safetensors(&self.stored())).unwrap();
        backbone
    }
}

impl Sample {
    /// Asserts that a tensor agrees within 1e-4 of its largest element.
    pub(crate) fn check<const D: usize>(&self, what: &str, tensor: Tensor<D>) {
        let all: Vec<f64> = tensor.cast(DType::F64).into_data().try_to_vec().unwrap();
        let norm = all.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Live batch normalisation takes the bias before it away, so the gradient of that bias is 0, up to rounding.
        if self.norm < 1e-12 {
            return assert!(norm < 1e-12, "{what}: norm {norm} instead of 0");
        }
        assert!((norm - self.norm).abs() < 1e-4 * self.norm, "{what}: norm {norm} instead of {}", self.norm);
        for (i, &expected) in self.values.iter().enumerate() {
            let got = all[i * all.len() / self.values.len()];
            let error = (got - expected).abs() / self.largest;
            assert!(error < 1e-4, "{what}: {got} instead of {expected}, of at most {}", self.largest);
        }
    }
}

/// Numbers from −1 to 1 by the name of a tensor and the number of the element.
pub(crate) fn formula(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let seed = u64::from_str_radix(&sha256(name.as_bytes())[..16], 16).unwrap().swap_bytes();
    (1..=count as u64).map(move |i| {
        let mut x = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

fn weight(name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let fan_in: usize = shape.iter().skip(1).product();
    let scaled =
        |centre: f64, scale: f64| formula(name, count).map(|x| (centre + scale * x) as f32).collect();
    match shape {
        [] => vec![0.0],
        [1, _, ..] => scaled(0.0, 0.5),
        [_, _, ..] => scaled(0.0, (6.0 / fan_in as f64).sqrt()),
        _ if name.ends_with("running_var") => scaled(1.0, 0.5),
        _ if name.ends_with(".weight") => scaled(1.0, 0.25),
        _ if name.ends_with(".gamma") => scaled(0.5, 0.25),
        _ => scaled(0.0, 0.1),
    }
}
