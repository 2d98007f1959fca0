//! The fixtures, and the formula of their weights and images.

use std::collections::BTreeMap;

use akin_core::models::{Backbone, BackboneConfig};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use super::files::{Stored, safetensors};
pub(crate) use super::numbers::{Sample, formula, weight};

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
