//! Low-rank adapters (LoRA; Hu et al., *LoRA: low-rank adaptation of large language models*, 2022): a way to tune a large
//! network of which only small matrices learn. A linear layer x ↦ x·W + b becomes
//!
//! ```text
//! x ↦ x·W + b + (α/r) · x·A·B
//! ```
//!
//! with A of r columns and B of r rows, which learn, while W and b stay as they are. A begins with random numbers and B with
//! zeros, as in the published code, so that the network begins as it was. After training, W + (α/r)·A·B takes the place of W.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::layers::Initial;
use super::linear::linear;
use super::{Backbone, VisionTransformer};
use crate::{Error, Kind, Result};

/// Settings of low-rank adapters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// r, the columns of A and the rows of B, from 1 to 256.
    pub rank: usize,
    /// α, a finite number above 0; α/r multiplies what the adapters add. Default: the rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// The layers of each block that have adapters. Default `["qkv", "proj"]`.
    #[serde(default = "default_layers")]
    pub layers: Vec<AdaptedLayer>,
}

/// A linear layer of a transformer's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AdaptedLayer {
    /// Tokens → queries, keys and values.
    Qkv,
    /// The results of all heads → tokens.
    Proj,
    /// The first layer of the MLP.
    Fc1,
    /// The last layer of the MLP.
    Fc2,
}

fn default_layers() -> Vec<AdaptedLayer> {
    vec![AdaptedLayer::Qkv, AdaptedLayer::Proj]
}

impl LoraConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a setting out of range.
    pub fn validate(&self) -> Result<()> {
        let refused = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
        if !(1..=256).contains(&self.rank) {
            return refused(
                format!("the rank of the adapters is {}", self.rank),
                "give a whole number from 1 to 256; 8 is a good start",
            );
        }
        match self.alpha {
            Some(alpha) if !(alpha.is_finite() && alpha > 0.0) => {
                return refused(
                    format!("the alpha of the adapters is {alpha}"),
                    "give a finite number above 0, or remove it: it is the rank then",
                );
            }
            _ => {}
        }
        if self.layers.is_empty() {
            return refused(
                "the adapters are for no layer".into(),
                "name at least one of qkv, proj, fc1 and fc2, or remove the key `layers`",
            );
        }
        Ok(())
    }
}

/// The adapters of a block.
#[derive(Module, Debug, Default)]
pub(super) struct Adapters {
    pub(super) qkv: Option<Adapter>,
    pub(super) proj: Option<Adapter>,
    pub(super) fc1: Option<Adapter>,
    pub(super) fc2: Option<Adapter>,
}

/// The adapter of a linear layer.
#[derive(Module, Debug)]
pub(super) struct Adapter {
    /// A.
    down: Linear,
    /// B.
    up: Linear,
    /// α/r.
    #[module(skip)]
    factor: f64,
}

/// What a layer computes, with its adapter if it has one.
pub(super) fn map(layer: &Linear, adapter: &Option<Adapter>, x: Tensor<3>) -> Tensor<3> {
    match adapter {
        Some(adapter) => linear(layer, x.clone()) + adapter.forward(x),
        None => linear(layer, x),
    }
}

impl Adapter {
    /// The adapter of a layer, if it is to have one.
    pub(super) fn new(
        config: &LoraConfig,
        layer: AdaptedLayer,
        adapted: &Linear,
        initial: &mut Initial,
    ) -> Option<Self> {
        let [inputs, outputs] = adapted.weight.lazy_shape().dims();
        let rank = config.rank;
        config.layers.contains(&layer).then(|| Self {
            down: Linear { bias: None, ..initial.linear(inputs, rank) },
            up: Linear { weight: initial.constant([rank, outputs], 0.0), bias: None },
            factor: config.alpha.unwrap_or(rank as f64) / rank as f64,
        })
    }

    /// What it adds to the output of its layer.
    pub(super) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        linear(&self.up, linear(&self.down, x)) * self.factor
    }

    /// Adds it to the weights of its layer.
    pub(super) fn merge_into(self, layer: &mut Linear) {
        let product = self.down.weight.val().matmul(self.up.weight.val()).detach() * self.factor;
        layer.weight = layer.weight.clone().map(|weight| weight.detach() + product);
    }
}

impl Backbone {
    /// The backbone with adapters, which alone learn.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a setting out of range, and for a network that is no vision transformer.
    pub fn adapt(self, config: &LoraConfig, rng: &mut ChaCha8Rng) -> Result<Self> {
        config.validate()?;
        let name = self.entry().name;
        let device = self.devices().pop().expect("a network has weights");
        let mut adapted = self.no_grad();
        let Some(network) = adapted.network_mut().downcast_mut::<VisionTransformer>() else {
            return Err(Error::new(
                Kind::Config,
                format!("there are no adapters for {name}, which is no vision transformer"),
                "remove model.lora, or choose a vision transformer as the backbone",
            ));
        };
        network.adapt(config, &mut Initial::drawn(rng, &device));
        Ok(adapted)
    }

    /// The backbone without adapters, which are added to its weights.
    pub fn merge_adapters(mut self) -> Self {
        if let Some(network) = self.network_mut().downcast_mut::<VisionTransformer>() {
            network.merge_adapters();
        }
        self
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::module::{ModuleMapper, ModuleVisitor, Param};
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::models::BackboneConfig;
    use crate::random::{normal, stream};

    fn images(device: &Device) -> Tensor<4> {
        let values: Vec<f32> = (0..2 * 3 * 32 * 32).map(|i| (i as f32 * 0.7).sin()).collect();
        Tensor::from_data(TensorData::new(values, [2, 3, 32, 32]), device)
    }

    /// Gives every adapter other weights than those of the beginning.
    struct Stir(u64);

    impl ModuleMapper for Stir {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if !param.is_require_grad() {
                return param;
            }
            self.0 += 1;
            let numbers = normal(&mut stream(self.0, "test", &[]), param.lazy_shape().num_elements(), 0.1);
            param.map(|weight| {
                let data = TensorData::new(numbers, weight.shape());
                Tensor::from_data(data, &weight.device()).require_grad()
            })
        }
    }

    fn furthest(x: &[f32], y: &[f32]) -> f32 {
        x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn adapters_begin_as_nothing_and_merged_ones_compute_the_same() {
        let device = Device::flex().autodiff();
        for name in ["vit_s16", "dinov2_s14"] {
            let config = BackboneConfig::named(name).unwrap();
            let side = 28 + 4 * usize::from(name == "vit_s16");
            let token = |backbone: &Backbone| -> Vec<f32> {
                let images = images(&device).narrow(2, 0, side).narrow(3, 0, side);
                backbone.outputs(images).unwrap().class_token.unwrap().into_data().try_to_vec().unwrap()
            };
            let backbone = config.init(&mut stream(0, "test", &[]), &device).unwrap();
            let plain = token(&backbone);
            let layers = vec![AdaptedLayer::Qkv, AdaptedLayer::Proj, AdaptedLayer::Fc1, AdaptedLayer::Fc2];
            let lora = LoraConfig { rank: 4, alpha: Some(6.0), layers };
            let names = backbone.weight_names();
            let adapted = backbone.adapt(&lora, &mut stream(1, "test", &[])).unwrap();
            assert_eq!(token(&adapted), plain);
            let adapted = adapted.map(&mut Stir(0));
            let changed = token(&adapted);
            let merged = adapted.merge_adapters();
            assert_eq!(merged.weight_names(), names);
            let (moved, apart) = (furthest(&changed, &plain), furthest(&changed, &token(&merged)));
            assert!(apart < 1e-4 && moved > 100.0 * apart, "{name}: {apart} apart after {moved}");
        }
    }

    #[test]
    fn only_adapters_have_gradients() {
        struct Learning(Vec<usize>);
        impl ModuleVisitor for Learning {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if param.is_require_grad() {
                    self.0.push(param.lazy_shape().num_elements());
                }
            }
        }
        let device = Device::flex().autodiff();
        let backbone = BackboneConfig::named("vit_s16").unwrap().absent(&device).unwrap();
        let lora = LoraConfig { rank: 8, alpha: None, layers: default_layers() };
        let adapted = backbone.adapt(&lora, &mut stream(1, "test", &[])).unwrap();
        let mut learning = Learning(Vec::new());
        adapted.visit(&mut learning);
        // Twelve blocks with A and B of two layers.
        assert_eq!(learning.0.len(), 12 * 4);
        assert_eq!(learning.0[..4], [384 * 8, 8 * 3 * 384, 384 * 8, 8 * 384]);
        let resnet = BackboneConfig::named("resnet18").unwrap().absent(&device).unwrap();
        let error = resnet.adapt(&lora, &mut stream(1, "test", &[])).unwrap_err();
        assert!(error.message().contains("resnet18"), "{error}");
    }
}
