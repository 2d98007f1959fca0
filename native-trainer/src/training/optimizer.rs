//! The optimisers of a run: one each for the backbone, the head and the proxies of the loss, with
//! their own learning rates. The proxies of each term of a sum can have a rate of their own.

use akin_core::encoder::Encoder;
use akin_core::losses::Loss;
use akin_core::models::Backbone;
use anyhow::{Result, anyhow};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdamConfig, AdamWConfig, GradientsAccumulator, GradientsParams, LearningRate, ModuleOptimizer, Optimizer,
    RmsPropConfig, SgdConfig,
};
use burn::store::burn_pack::{self, Reader, Writer};
use burn::tensor::{Bytes, Device, Gradients, Tensor};

use crate::config::{Adam, OptimizerConfig, RmsProp, Rule, Sgd};
use crate::runs::magnitude::gradient_magnitude;
use crate::training::clipping::{clip_norm, clip_values, scale_gradients};

/// Learning rates of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// The rate of the backbone; none if it is frozen.
    pub backbone: Option<f64>,
    /// The rate of the head.
    pub head: f64,
    /// The rate of the proxies.
    pub proxies: f64,
    /// The rates of the proxies of each term of a sum, instead of `proxies`; none if all terms have that rate.
    pub terms: Vec<f64>,
}

/// The gradients of one step, by part.
#[derive(Default)]
pub struct PartGradients {
    backbone: GradientsParams,
    head: GradientsParams,
    proxies: GradientsParams,
}

impl PartGradients {
    /// Takes the gradients of an encoder out of those of a backward pass.
    pub fn from_encoder(mut gradients: Gradients, encoder: &Encoder) -> Self {
        Self {
            backbone: GradientsParams::from_module(&mut gradients, &encoder.backbone),
            head: GradientsParams::from_module(&mut gradients, &encoder.head),
            ..Self::default()
        }
    }

    /// Takes the gradients of a loss out of those of a backward pass.
    pub fn from_loss(mut gradients: Gradients, loss: &Loss) -> Self {
        Self { proxies: GradientsParams::from_module(&mut gradients, loss), ..Self::default() }
    }

    /// These gradients, those of the encoder with others added to them.
    pub fn add_encoder(self, other: Self, encoder: &Encoder) -> Self {
        Self {
            backbone: sum(&encoder.backbone, self.backbone, other.backbone),
            head: sum(&encoder.head, self.head, other.head),
            proxies: self.proxies,
        }
    }

    /// The gradients of the encoder, multiplied by a factor.
    pub fn scale_encoder(mut self, factor: f64, encoder: &Encoder, device: &Device) -> Self {
        let factor = Tensor::from_data([factor as f32], device);
        scale_gradients(&encoder.backbone, &mut self.backbone, &factor);
        scale_gradients(&encoder.head, &mut self.head, &factor);
        self
    }

    /// The magnitudes of the gradients.
    pub fn magnitudes(&self, encoder: &Encoder, loss: &Loss) -> GradientMagnitudes {
        GradientMagnitudes {
            backbone: gradient_magnitude(&encoder.backbone, &self.backbone),
            head: gradient_magnitude(&encoder.head, &self.head),
            proxies: gradient_magnitude(loss, &self.proxies),
        }
    }

    /// The gradients of the encoder on another device.
    pub fn encoder_to_device(self, device: &Device, encoder: &Encoder) -> Self {
        Self {
            backbone: self.backbone.to_device(device, &encoder.backbone),
            head: self.head.to_device(device, &encoder.head),
            proxies: self.proxies,
        }
    }
}

#[cfg(test)]
impl PartGradients {
    /// Takes the gradients of an encoder and a loss out of those of a backward pass.
    pub fn new(mut gradients: Gradients, encoder: &Encoder, loss: &Loss) -> Self {
        let proxies = GradientsParams::from_module(&mut gradients, loss);
        Self { proxies, ..Self::from_encoder(gradients, encoder) }
    }

    /// The gradients of the weights of backbone, head and loss, in the order of a visitor.
    pub fn parts(&self, encoder: &Encoder, loss: &Loss) -> [Vec<f32>; 3] {
        struct Collect<'a>(&'a GradientsParams, Vec<f32>);

        impl ModuleVisitor for Collect<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(gradient) = self.0.get::<D>(param.id) {
                    self.1.extend(gradient.into_data().try_to_vec::<f32>().unwrap());
                }
            }
        }

        fn collect(module: &impl Module, gradients: &GradientsParams) -> Vec<f32> {
            let mut collect = Collect(gradients, Vec::new());
            module.visit(&mut collect);
            collect.1
        }

        [
            collect(&encoder.backbone, &self.backbone),
            collect(&encoder.head, &self.head),
            collect(loss, &self.proxies),
        ]
    }
}

fn sum<M: Module>(module: &M, first: GradientsParams, second: GradientsParams) -> GradientsParams {
    let mut accumulator = GradientsAccumulator::new();
    accumulator.accumulate(module, first);
    accumulator.accumulate(module, second);
    accumulator.grads()
}

/// The [magnitude](crate::runs::magnitude) of each part's gradients; none without gradients.
#[derive(Clone, Default)]
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
    layer_decay: f64,
    clip_value: Option<f64>,
    clip_norm: Option<f64>,
}

impl Optimizers {
    /// New optimisers, without momentum.
    pub fn new(config: &OptimizerConfig) -> Self {
        let decay = Decay {
            matrices: config.weight_decay,
            vectors: if config.decay_norms_and_biases { config.weight_decay } else { 0.0 },
        };
        let decay_of_proxies =
            Decay { matrices: config.weight_decay_proxies, vectors: config.weight_decay_proxies };
        Self {
            backbone: optimizer(config.rule, decay),
            head: optimizer(config.rule, decay),
            proxies: optimizer(config.rule, decay_of_proxies),
            layer_decay: config.layer_decay,
            clip_value: config.clip_value,
            clip_norm: config.clip_norm,
        }
    }

    /// Takes one step, after clipping each number of the gradients and then the norm of all gradients together.
    pub fn step(
        &mut self,
        encoder: Encoder,
        loss: Loss,
        gradients: PartGradients,
        rates: &Rates,
    ) -> (Encoder, Loss) {
        let PartGradients { mut backbone, mut head, mut proxies } = gradients;
        if let Some(limit) = self.clip_value {
            clip_values(&encoder.backbone, &mut backbone, limit);
            clip_values(&encoder.head, &mut head, limit);
            clip_values(&loss, &mut proxies, limit);
        }
        if let Some(limit) = self.clip_norm {
            clip_norm(&encoder, &loss, [&mut backbone, &mut head, &mut proxies], limit);
        }
        let (encoder, ()) = encoder.map_parts(|module, module_head| {
            let module = match rates.backbone {
                Some(rate) => self.step_backbone(module, backbone, rate),
                None => module,
            };
            (module, self.head.step(rates.head, module_head, head), ())
        });
        (encoder, self.step_proxies(loss, proxies, rates))
    }

    fn step_backbone(&mut self, mut backbone: Backbone, gradients: GradientsParams, rate: f64) -> Backbone {
        if self.layer_decay == 1.0 {
            return self.backbone.step(rate, backbone, gradients);
        }
        // A weight without a gradient does not move, so each depth can take its step apart.
        for (above, gradients) in by_depth(&backbone, gradients).into_iter().rev().enumerate() {
            backbone = self.backbone.step(rate * self.layer_decay.powi(above as i32), backbone, gradients);
        }
        backbone
    }

    fn step_proxies(&mut self, mut loss: Loss, mut gradients: GradientsParams, rates: &Rates) -> Loss {
        if rates.terms.is_empty() {
            return self.proxies.step(rates.proxies, loss, gradients);
        }
        // A weight without a gradient does not move, so each term can take its step apart.
        let by_term: Vec<GradientsParams> =
            loss.terms().iter().map(|term| take(&mut gradients, term)).collect();
        for (&rate, gradients) in rates.terms.iter().zip(by_term) {
            loss = self.proxies.step(rate, loss, gradients);
        }
        loss
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
            sorted(bytes).map_err(|error| anyhow!("the optimiser cannot be saved: {error}"))
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
            ..self
        })
    }
}

/// A burnpack file with its tensors in the order of their names, so that equal states have equal bytes.
fn sorted(bytes: Bytes) -> std::result::Result<Vec<u8>, burn_pack::Error> {
    let reader = Reader::from_bytes(bytes)?;
    let (scalars, metadata) = (reader.scalars().clone(), reader.metadata().clone());
    let mut tensors = reader.into_tensors()?;
    tensors.sort_by(|one, other| one.name.cmp(&other.name));
    let mut writer = Writer::new(tensors);
    for (key, value) in scalars {
        writer = writer.with_scalar(&key, value);
    }
    for (key, value) in metadata {
        writer = writer.with_metadata(&key, &value);
    }
    Ok(writer.into_bytes()?.to_vec())
}

/// The weight decay of weights of one dimension, and that of all others.
#[derive(Clone, Copy)]
struct Decay {
    matrices: f64,
    vectors: f64,
}

/// An optimiser for weights of one dimension, and one for all others. They differ only in their weight decay.
#[derive(Clone)]
struct ByDimensions<O> {
    matrices: O,
    vectors: O,
}

impl<O: Optimizer> Optimizer for ByDimensions<O> {
    type State<const D: usize> = O::State<D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        weight: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<O::State<D>>,
    ) -> (Tensor<D>, Option<O::State<D>>) {
        let optimizer = if D == 1 { &self.vectors } else { &self.matrices };
        optimizer.step(rate, weight, gradient, state)
    }

    fn to_device<const D: usize>(state: O::State<D>, device: &Device) -> O::State<D> {
        O::to_device(state, device)
    }
}

fn optimizer(rule: Rule, decay: Decay) -> ModuleOptimizer {
    let added = |decay: f64| (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32));
    match rule {
        Rule::Adam(Adam { beta_1, beta_2, epsilon }) => by_dimensions(decay, |decay| {
            AdamConfig::new()
                .with_beta_1(beta_1 as f32)
                .with_beta_2(beta_2 as f32)
                .with_epsilon(epsilon as f32)
                .with_weight_decay(added(decay))
                .build()
        }),
        Rule::AdamW(Adam { beta_1, beta_2, epsilon }) => by_dimensions(decay, |decay| {
            AdamWConfig::new()
                .with_beta_1(beta_1 as f32)
                .with_beta_2(beta_2 as f32)
                .with_epsilon(epsilon as f32)
                .with_weight_decay(decay as f32)
                .build()
        }),
        Rule::Sgd(Sgd { momentum, nesterov }) => by_dimensions(decay, |decay| {
            SgdConfig::new()
                .with_momentum((momentum > 0.0).then(|| {
                    MomentumConfig::new().with_momentum(momentum).with_dampening(0.0).with_nesterov(nesterov)
                }))
                .with_weight_decay(added(decay))
                .build()
        }),
        Rule::RmsProp(RmsProp { alpha, epsilon, momentum }) => by_dimensions(decay, |decay| {
            RmsPropConfig::new()
                .with_alpha(alpha as f32)
                .with_momentum(momentum as f32)
                .with_epsilon(epsilon as f32)
                .with_centered(false)
                .with_weight_decay(added(decay))
                .build()
        }),
    }
}

fn by_dimensions<O: Optimizer>(decay: Decay, build: impl Fn(f64) -> O) -> ModuleOptimizer {
    ByDimensions { matrices: build(decay.matrices), vectors: build(decay.vectors) }.into()
}

/// The gradients of a backbone by the depth of their weights, the shallowest first.
fn by_depth(backbone: &Backbone, gradients: GradientsParams) -> Vec<GradientsParams> {
    struct Sort<'a> {
        from: GradientsParams,
        depths: std::slice::Iter<'a, usize>,
        sorted: Vec<GradientsParams>,
    }

    impl ModuleVisitor for Sort<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let depth = self.depths.next();
            if let (Some(&depth), Some(gradient)) = (depth, self.from.remove::<D>(param.id)) {
                self.sorted[depth].register(param.id, gradient);
            }
        }
    }

    let depths = backbone.depths();
    let count = depths.iter().max().map_or(0, |deepest| deepest + 1);
    let sorted = (0..count).map(|_| GradientsParams::new()).collect();
    let mut sort = Sort { from: gradients, depths: depths.iter(), sorted };
    backbone.visit(&mut sort);
    sort.sorted
}

/// Takes the gradients of a module out of `gradients`.
fn take(gradients: &mut GradientsParams, module: &impl Module) -> GradientsParams {
    struct Take<'a> {
        from: &'a mut GradientsParams,
        taken: GradientsParams,
    }

    impl ModuleVisitor for Take<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.from.remove::<D>(param.id) {
                self.taken.register(param.id, gradient);
            }
        }
    }

    let mut visitor = Take { from: gradients, taken: GradientsParams::new() };
    module.visit(&mut visitor);
    visitor.taken
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

#[cfg(test)]
mod tests {
    use akin_core::encoder::EncoderConfig;
    use akin_core::geometry::Geometry;
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::losses::{Batch, LossConfig, LossContext, NormSoftmaxConfig, Objective, SumConfig, Term};
    use akin_core::models::{BackboneConfig, HeadConfig, SmallResnetConfig};
    use akin_core::taxonomy::Labels;
    use burn::tensor::{Device, TensorData};

    use super::*;

    /// One weight that starts at 1, as torch documents its optimisers.
    fn by_hand(rule: Rule, decay: f64, rate: f64, gradients: &[f64]) -> f64 {
        let (mut weight, mut mean, mut square, mut velocity) = (1.0, 0.0, 0.0, None);
        for (step, gradient) in (1..).zip(gradients) {
            let is_apart = matches!(rule, Rule::AdamW(_));
            if is_apart {
                weight -= rate * decay * weight;
            }
            let gradient = gradient + if is_apart { 0.0 } else { decay * weight };
            weight -= rate
                * match rule {
                    Rule::Adam(Adam { beta_1, beta_2, epsilon })
                    | Rule::AdamW(Adam { beta_1, beta_2, epsilon }) => {
                        mean = beta_1 * mean + (1.0 - beta_1) * gradient;
                        square = beta_2 * square + (1.0 - beta_2) * gradient * gradient;
                        let mean = mean / (1.0 - beta_1.powi(step));
                        let square: f64 = square / (1.0 - beta_2.powi(step));
                        mean / (square.sqrt() + epsilon)
                    }
                    Rule::RmsProp(RmsProp { alpha, epsilon, momentum }) => {
                        square = alpha * square + (1.0 - alpha) * gradient * gradient;
                        let scaled = gradient / (square.sqrt() + epsilon);
                        let next = velocity.map_or(scaled, |velocity: f64| momentum * velocity + scaled);
                        velocity = Some(next);
                        next
                    }
                    Rule::Sgd(Sgd { momentum, nesterov }) => {
                        let next = velocity.map_or(gradient, |velocity| momentum * velocity + gradient);
                        velocity = Some(next);
                        if nesterov { gradient + momentum * next } else { next }
                    }
                };
        }
        weight
    }

    #[derive(Module, Debug)]
    struct Weights {
        vector: Param<Tensor<1>>,
        matrix: Param<Tensor<2>>,
    }

    /// A weight of one dimension and one of two, which start at 1, after steps with these gradients.
    fn after_steps(rule: Rule, decay: Decay, rate: f64, gradients: &[f64]) -> [f64; 2] {
        let device = Device::flex().autodiff();
        let mut optimizer = optimizer(rule, decay);
        let mut module = Weights {
            vector: Param::from_data([1.0_f32], &device),
            matrix: Param::from_data([[1.0_f32]], &device),
        };
        for &gradient in gradients {
            let loss = (module.vector.val() * gradient).sum() + (module.matrix.val() * gradient).sum();
            let gradients = GradientsParams::from_grads(loss.backward(), &module);
            module = optimizer.step(rate, module, gradients);
        }
        let (vector, matrix) = (module.vector.val().into_data(), module.matrix.val().into_data());
        [vector, matrix].map(|data| f64::from(data.try_to_vec::<f32>().unwrap()[0]))
    }

    #[test]
    fn optimisers_take_the_steps_that_torch_takes() {
        let gradients = [0.5, -0.2, 0.1, 1e-3, 0.3];
        for rule in [
            Rule::default(),
            // The ε of HIER, and that of ProxyNCA++.
            Rule::AdamW(Adam { epsilon: 1e-4, ..Adam::default() }),
            Rule::Adam(Adam { epsilon: 1.0, ..Adam::default() }),
            Rule::Sgd(Sgd::default()),
            Rule::Sgd(Sgd { momentum: 0.9, nesterov: false }),
            Rule::Sgd(Sgd { momentum: 0.9, nesterov: true }),
            Rule::RmsProp(RmsProp::default()),
            Rule::RmsProp(RmsProp { momentum: 0.9, alpha: 0.9, ..RmsProp::default() }),
        ] {
            for decay in [0.0, 0.1] {
                let got = after_steps(rule, Decay { matrices: decay, vectors: decay }, 0.01, &gradients);
                let expected = by_hand(rule, decay, 0.01, &gradients);
                for got in got {
                    assert!((got - expected).abs() < 1e-6, "{rule:?}: {got} instead of {expected}");
                }
            }
        }
    }

    #[test]
    fn vectors_may_be_left_out_of_the_weight_decay() {
        let gradients = [0.5, -0.2, 0.1];
        for rule in [
            Rule::Adam(Adam::default()),
            Rule::AdamW(Adam::default()),
            Rule::Sgd(Sgd::default()),
            Rule::RmsProp(RmsProp::default()),
        ] {
            let decay = Decay { matrices: 0.5, vectors: 0.0 };
            let [vector, matrix] = after_steps(rule, decay, 0.01, &gradients);
            assert!((vector - by_hand(rule, 0.0, 0.01, &gradients)).abs() < 1e-6, "{rule:?}");
            assert!((matrix - by_hand(rule, 0.5, 0.01, &gradients)).abs() < 1e-6, "{rule:?}");
        }
    }

    /// A small network and a loss of two terms with proxies, with the gradients of a batch.
    fn small_network() -> (Encoder, Loss, PartGradients) {
        let device = Device::flex().autodiff();
        let config = EncoderConfig {
            backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 2 }),
            pooling: None,
            head: Some(HeadConfig {
                dimension: 4,
                layer_norm: true,
                geometry: Geometry::Cosine,
                initial_weights: Default::default(),
            }),
            preprocessing: Preprocessing::new(Normalisation::Inception, 16).unwrap(),
        };
        let encoder = config.init(0, &device).unwrap();
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        let term = || Term { weight: 1.0, loss: LossConfig::NormSoftmax(NormSoftmaxConfig::default()) };
        let loss = LossConfig::Sum(SumConfig { terms: vec![term(), term()] }).init(&context).unwrap();
        let images = Tensor::from_data(
            TensorData::new((0..2 * 3 * 256).map(|i| (i as f32).sin()).collect(), [2, 3, 16, 16]),
            &device,
        );
        let embeddings = encoder.forward(images).unwrap();
        let gradients = loss.forward(&Batch::new(embeddings, &classes)).backward();
        let gradients = PartGradients::new(gradients, &encoder, &loss);
        (encoder, loss, gradients)
    }

    /// How far backbone, head and each term of the loss move in one step of plain descent on the small network: in
    /// total, and at most in one number.
    fn moved(config: &OptimizerConfig, rates: &Rates) -> Vec<[f64; 2]> {
        let descent =
            OptimizerConfig { rule: Rule::Sgd(Sgd::default()), weight_decay: 0.0, ..config.clone() };
        let all = |encoder: &Encoder, loss: &Loss| {
            let parts = [weights(&encoder.backbone), weights(&encoder.head)];
            parts.into_iter().chain(loss.terms().iter().map(weights)).collect::<Vec<_>>()
        };
        let (encoder, loss, gradients) = small_network();
        let before = all(&encoder, &loss);
        let (encoder, loss) = Optimizers::new(&descent).step(encoder, loss, gradients, rates);
        let distances = |(before, after): (&Vec<f32>, &Vec<f32>)| {
            let moves = before.iter().zip(after).map(|(x, y)| f64::from(x - y).abs());
            [moves.clone().map(|distance| distance.powi(2)).sum::<f64>().sqrt(), moves.fold(0.0, f64::max)]
        };
        before.iter().zip(&all(&encoder, &loss)).map(distances).collect()
    }

    /// The Euclidean distance that all weights together move.
    fn distance_moved(clip_norm: Option<f64>, rates: &Rates) -> f64 {
        let config = OptimizerConfig { clip_norm, ..OptimizerConfig::default() };
        moved(&config, rates).iter().map(|[distance, _]| distance.powi(2)).sum::<f64>().sqrt()
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

    /// The numbers of each weight, statistics included.
    fn by_weight(module: &impl Module) -> Vec<Vec<f32>> {
        struct Collect(Vec<Vec<f32>>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.push(param.val().into_data().try_to_vec().unwrap());
            }
        }
        let mut collect = Collect(Vec::new());
        module.visit(&mut collect);
        collect.0
    }

    const ALL: Rates = Rates { backbone: Some(1.0), head: 1.0, proxies: 1.0, terms: Vec::new() };

    #[test]
    fn the_clipped_norm_is_that_of_all_gradients_together() {
        let unclipped = distance_moved(None, &ALL);
        assert!(unclipped > 0.1, "the gradient is long enough to be clipped: {unclipped}");
        assert!((distance_moved(Some(0.05), &ALL) - 0.05).abs() < 1e-3);
        assert!((distance_moved(Some(10.0 * unclipped), &ALL) - unclipped).abs() < 1e-3 * unclipped);
    }

    #[test]
    fn no_number_of_a_gradient_exceeds_the_limit_for_values() {
        let largest = |clip_value| {
            let config = OptimizerConfig { clip_value, ..OptimizerConfig::default() };
            moved(&config, &ALL).iter().map(|[_, largest]| *largest).collect::<Vec<_>>()
        };
        let unclipped = largest(None);
        let limit = unclipped.iter().copied().fold(f64::INFINITY, f64::min) / 2.0;
        assert!(limit > 0.0, "every part moves: {unclipped:?}");
        for largest in largest(Some(limit)) {
            assert!((largest - limit).abs() < 1e-6, "{largest} instead of {limit}");
        }
    }

    #[test]
    fn a_frozen_backbone_does_not_move() {
        let frozen = Rates { backbone: None, head: 0.0, proxies: 0.0, terms: Vec::new() };
        assert_eq!(distance_moved(None, &frozen), 0.0);
    }

    #[test]
    fn each_depth_of_the_backbone_moves_by_its_own_rate() {
        let step = |layer_decay| {
            let (encoder, loss, gradients) = small_network();
            let rule = Rule::Sgd(Sgd::default());
            let config =
                OptimizerConfig { rule, layer_decay, weight_decay: 0.0, ..OptimizerConfig::default() };
            let before = by_weight(&encoder.backbone);
            let (encoder, _) = Optimizers::new(&config).step(encoder, loss, gradients, &ALL);
            let after = by_weight(&encoder.backbone);
            let moved = |(x, y): (&Vec<f32>, &Vec<f32>)| -> f64 {
                x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>().sqrt()
            };
            let moves: Vec<f64> = before.iter().zip(&after).map(moved).collect();
            (moves, encoder.backbone.depths())
        };
        let ((together, depths), (apart, _)) = (step(1.0), step(0.5));
        let deepest = depths[depths.len() - 1];
        assert!(deepest > 2 && together.len() == depths.len());
        for ((together, apart), depth) in together.iter().zip(&apart).zip(&depths) {
            let expected = together * 0.5_f64.powi((deepest - depth) as i32);
            assert!((apart - expected).abs() < 1e-5 * together.max(1e-3), "{depth}: {apart}, not {expected}");
        }
    }

    #[test]
    fn the_proxies_of_each_term_have_a_rate_of_their_own() {
        let distances = |terms: &[f64]| -> Vec<f64> {
            let rates = Rates { terms: terms.to_vec(), ..ALL };
            moved(&OptimizerConfig::default(), &rates).iter().map(|[distance, _]| *distance).collect()
        };
        let together = distances(&[]);
        assert_eq!(together.len(), 4);
        assert_eq!(distances(&[1.0, 1.0]), together);
        let apart = distances(&[0.0, 3.0]);
        assert_eq!(apart[..3], [together[0], together[1], 0.0]);
        assert!((apart[3] - 3.0 * together[3]).abs() < 1e-5 * together[3]);
    }
}
