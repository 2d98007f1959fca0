//! The optimisers of a run: one each for the backbone, the head and the proxies of the loss, with
//! their own learning rates.

use akin_core::encoder::Encoder;
use akin_core::losses::Loss;
use anyhow::{Result, anyhow};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Bytes, Gradients, Tensor};

use crate::config::{OptimizerConfig, OptimizerKind};
use crate::magnitude::gradient_magnitude;

/// Learning rates of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The rate of the backbone; none if it is frozen.
    pub backbone: Option<f64>,
    /// The rate of the head.
    pub head: f64,
    /// The rate of the proxies.
    pub proxies: f64,
}

/// The [magnitude](crate::magnitude) of each part's gradients; none without gradients.
pub struct GradientMagnitudes {
    /// Of the backbone.
    pub backbone: Option<Tensor<1>>,
    /// Of the head.
    pub head: Option<Tensor<1>>,
    /// Of the proxies.
    pub proxies: Option<Tensor<1>>,
}

/// See the [module](self).
pub struct Optimizers {
    backbone: ModuleOptimizer,
    head: ModuleOptimizer,
    proxies: ModuleOptimizer,
    clip_norm: Option<f64>,
}

impl Optimizers {
    /// New optimisers, without momentum.
    pub fn new(config: &OptimizerConfig) -> Self {
        Self {
            backbone: optimizer(config, config.weight_decay),
            head: optimizer(config, config.weight_decay),
            proxies: optimizer(config, config.weight_decay_proxies),
            clip_norm: config.clip_norm,
        }
    }

    /// Takes one step, after clipping the norm of all gradients together. Also returns the magnitudes of the gradients
    /// before they were clipped.
    pub fn step(
        &mut self,
        encoder: Encoder,
        loss: Loss,
        mut gradients: Gradients,
        rates: Rates,
    ) -> (Encoder, Loss, GradientMagnitudes) {
        let mut backbone_gradients = GradientsParams::from_module(&mut gradients, &encoder.backbone);
        let mut head_gradients = GradientsParams::from_module(&mut gradients, &encoder.head);
        let mut loss_gradients = GradientsParams::from_module(&mut gradients, &loss);
        let magnitudes = GradientMagnitudes {
            backbone: gradient_magnitude(&encoder.backbone, &backbone_gradients),
            head: gradient_magnitude(&encoder.head, &head_gradients),
            proxies: gradient_magnitude(&loss, &loss_gradients),
        };
        if let Some(limit) = self.clip_norm {
            let squares = [
                squared_norm(&encoder.backbone, &backbone_gradients),
                squared_norm(&encoder.head, &head_gradients),
                squared_norm(&loss, &loss_gradients),
            ];
            if let Some(square) = squares.into_iter().flatten().reduce(|sum, square| sum + square) {
                // The scale of torch's clip_grad_norm_: min(1, limit / (norm + 1e-6)).
                let scale = ((square.sqrt() + 1e-6).recip() * limit).clamp_max(1.0);
                scale_gradients(&encoder.backbone, &mut backbone_gradients, &scale);
                scale_gradients(&encoder.head, &mut head_gradients, &scale);
                scale_gradients(&loss, &mut loss_gradients, &scale);
            }
        }
        let (encoder, ()) = encoder.map_parts(|backbone, head| {
            let backbone = match rates.backbone {
                Some(rate) => self.backbone.step(rate, backbone, backbone_gradients),
                None => backbone,
            };
            (backbone, self.head.step(rates.head, head, head_gradients), ())
        });
        let loss = self.proxies.step(rates.proxies, loss, loss_gradients);
        (encoder, loss, magnitudes)
    }

    /// The state of the three optimisers, for a checkpoint: backbone, head, proxies.
    ///
    /// # Errors
    ///
    /// A state that cannot be read back from the device.
    pub fn to_bytes(&self) -> Result<[Vec<u8>; 3]> {
        let bytes = |optimizer: &ModuleOptimizer| -> Result<Vec<u8>> {
            let bytes =
                optimizer.into_bytes().map_err(|error| anyhow!("the optimiser cannot be saved: {error}"))?;
            Ok(bytes.to_vec())
        };
        Ok([bytes(&self.backbone)?, bytes(&self.head)?, bytes(&self.proxies)?])
    }

    /// These optimisers with the state that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    ///
    /// A state of optimisers of another kind or of other weights.
    pub fn with_bytes(self, [backbone, head, proxies]: [Vec<u8>; 3]) -> Result<Self> {
        let load = |optimizer: ModuleOptimizer, bytes: Vec<u8>| {
            optimizer.from_bytes(Bytes::from_bytes_vec(bytes)).map_err(|error| anyhow!("{error}"))
        };
        Ok(Self {
            backbone: load(self.backbone, backbone)?,
            head: load(self.head, head)?,
            proxies: load(self.proxies, proxies)?,
            clip_norm: self.clip_norm,
        })
    }
}

fn optimizer(config: &OptimizerConfig, weight_decay: f64) -> ModuleOptimizer {
    match config.kind {
        OptimizerKind::Adam => AdamConfig::new()
            .with_beta_1(config.beta_1 as f32)
            .with_beta_2(config.beta_2 as f32)
            .with_epsilon(config.epsilon as f32)
            .with_weight_decay((weight_decay > 0.0).then(|| WeightDecayConfig::new(weight_decay as f32)))
            .init(),
        OptimizerKind::AdamW => AdamWConfig::new()
            .with_beta_1(config.beta_1 as f32)
            .with_beta_2(config.beta_2 as f32)
            .with_epsilon(config.epsilon as f32)
            .with_weight_decay(weight_decay as f32)
            .init(),
        OptimizerKind::Sgd => SgdConfig::new()
            .with_momentum((config.momentum > 0.0).then(|| {
                MomentumConfig::new()
                    .with_momentum(config.momentum)
                    .with_dampening(0.0)
                    .with_nesterov(config.nesterov)
            }))
            .with_weight_decay((weight_decay > 0.0).then(|| WeightDecayConfig::new(weight_decay as f32)))
            .init(),
    }
}

/// Whether a loss has proxies, which learn by `optimizer.lr_proxies`.
pub fn has_proxies(loss: &Loss) -> bool {
    struct Search(bool);

    impl ModuleVisitor for Search {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 |= param.is_require_grad();
        }
    }

    let mut search = Search(false);
    loss.visit(&mut search);
    search.0
}

/// The sum of the squares of a module's gradients, on the device; none without gradients.
fn squared_norm(module: &impl Module, gradients: &GradientsParams) -> Option<Tensor<1>> {
    let mut visitor = SquaredNorm { gradients, sum: None };
    module.visit(&mut visitor);
    visitor.sum
}

struct SquaredNorm<'a> {
    gradients: &'a GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let square = gradient.square().sum();
            self.sum = Some(match self.sum.take() {
                Some(sum) => sum + square,
                None => square,
            });
        }
    }
}

/// Multiplies the gradients of a module by `scale`, on the device.
fn scale_gradients(module: &impl Module, gradients: &mut GradientsParams, scale: &Tensor<1>) {
    module.visit(&mut Scale { gradients, scale });
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    scale: &'a Tensor<1>,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let scale = self.scale.clone().reshape([1; D]);
            self.gradients.register(param.id, gradient * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use akin_core::encoder::EncoderConfig;
    use akin_core::geometry::Geometry;
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::losses::{Batch, LossConfig, LossContext, NormSoftmaxConfig, Objective};
    use akin_core::models::{BackboneConfig, HeadConfig, SmallResnetConfig};
    use akin_core::taxonomy::Labels;
    use burn::tensor::{Device, TensorData};

    use super::*;

    /// One weight under Adam with weight decay added to the gradient, as torch documents it.
    fn adam_by_hand(config: &OptimizerConfig, decay: f64, rate: f64, gradients: &[f64]) -> f64 {
        let (mut weight, mut mean, mut square) = (1.0, 0.0, 0.0);
        for (step, gradient) in (1..).zip(gradients) {
            let gradient = gradient + decay * weight;
            mean = config.beta_1 * mean + (1.0 - config.beta_1) * gradient;
            square = config.beta_2 * square + (1.0 - config.beta_2) * gradient * gradient;
            let (mean, square) =
                (mean / (1.0 - config.beta_1.powi(step)), square / (1.0 - config.beta_2.powi(step)));
            weight -= rate * mean / (square.sqrt() + config.epsilon);
        }
        weight
    }

    #[test]
    fn adam_takes_the_steps_that_torch_takes() {
        #[derive(Module, Debug)]
        struct Weight {
            weight: Param<Tensor<1>>,
        }
        let device = Device::flex().autodiff();
        let config = OptimizerConfig::default();
        let gradients = [0.5, -0.2, 0.1, 1e-3];
        let mut adam = optimizer(&config, 0.1);
        let mut module = Weight { weight: Param::from_data([1.0_f32], &device) };
        for gradient in gradients {
            let loss = (module.weight.val() * gradient).sum();
            let gradients = GradientsParams::from_grads(loss.backward(), &module);
            module = adam.step(0.01, module, gradients);
        }
        let got = module.weight.val().into_data().try_to_vec::<f32>().unwrap()[0];
        let expected = adam_by_hand(&config, 0.1, 0.01, &gradients);
        assert!((f64::from(got) - expected).abs() < 1e-6, "{got} instead of {expected}");
    }

    /// The Euclidean distance that all weights together move in one step of plain descent on a small
    /// network.
    fn distance_moved(clip_norm: Option<f64>, rates: Rates) -> f64 {
        let device = Device::flex().autodiff();
        let config = EncoderConfig {
            backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 2 }),
            pooling: None,
            head: Some(HeadConfig { dimension: 4, layer_norm: true, geometry: Geometry::Cosine }),
            preprocessing: Preprocessing::new(Normalisation::Inception, 16).unwrap(),
        };
        let encoder = config.init(0, &device).unwrap();
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        let loss = LossConfig::NormSoftmax(NormSoftmaxConfig::default()).init(&context).unwrap();
        let images = Tensor::from_data(
            TensorData::new((0..2 * 3 * 256).map(|i| (i as f32).sin()).collect(), [2, 3, 16, 16]),
            &device,
        );
        let embeddings = encoder.forward(images);
        let value = loss.forward(&Batch::new(embeddings, &classes));
        let gradients = value.backward();
        let descent = OptimizerConfig {
            kind: OptimizerKind::Sgd,
            weight_decay: 0.0,
            clip_norm,
            ..OptimizerConfig::default()
        };
        let before = (weights(&encoder), weights(&loss));
        let (encoder, loss, _) = Optimizers::new(&descent).step(encoder, loss, gradients, rates);
        let after = (weights(&encoder), weights(&loss));
        let square =
            |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(x, y)| f64::from(x - y).powi(2)).sum() };
        (square(&before.0, &after.0) + square(&before.1, &after.1)).sqrt()
    }

    fn weights(module: &impl Module) -> Vec<f32> {
        struct Collect(Vec<f32>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if param.val().is_require_grad() {
                    self.0.extend(param.val().into_data().try_to_vec::<f32>().unwrap());
                }
            }
        }
        let mut collect = Collect(Vec::new());
        module.visit(&mut collect);
        collect.0
    }

    const ALL: Rates = Rates { backbone: Some(1.0), head: 1.0, proxies: 1.0 };

    #[test]
    fn the_clipped_norm_is_that_of_all_gradients_together() {
        let unclipped = distance_moved(None, ALL);
        assert!(unclipped > 0.1, "the gradient is long enough to be clipped: {unclipped}");
        assert!((distance_moved(Some(0.05), ALL) - 0.05).abs() < 1e-3);
        assert!((distance_moved(Some(10.0 * unclipped), ALL) - unclipped).abs() < 1e-3 * unclipped);
    }

    #[test]
    fn a_frozen_backbone_does_not_move() {
        let frozen = Rates { backbone: None, head: 0.0, proxies: 0.0 };
        assert_eq!(distance_moved(None, frozen), 0.0);
    }
}
