//! The loss of a batch and its gradients, from the whole batch at once, in chunks, or on several devices.
//!
//! With e = f(x; w) the embeddings and L(e) the loss of the whole batch,
//!
//! 1. each worker embeds its part of the batch with its copy of the encoder, and all e are gathered on the first device;
//! 2. L and g = ∂L/∂e are computed there once, from the whole batch;
//! 3. each worker computes the gradient of Σ g·e by w over its part, and all are added up on the first device.
//!
//! The sum is ∂L/∂w, because ∂L/∂w = Σ_i g_i · ∂e_i/∂w. The numbers are those of one worker, but for the rounding of
//! sums. A part that is larger than a chunk passes the network in chunks: in step 1 without gradient, and again in step
//! 3, so that only one chunk's activations are held at a time (Revaud et al., *Learning with Average Precision: Training
//! Image Retrieval with a Listwise Loss*, 2019; also called gradient caching).
//!
//! An embedding must not depend on the other images of its pass, as it does with live batch normalisation.

use std::ops::Range;

use akin_core::encoder::Encoder;
use akin_core::losses::{Batch, Draws, Loss, Objective};
use akin_core::taxonomy::Labels;
use anyhow::Result;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::workers::Workers;
use crate::training::optimizer::{GradientMagnitudes, PartGradients};

/// What a backward pass gives.
pub(super) struct Differentiated {
    /// The embeddings of the batch, [B, d], without gradient.
    pub(super) embeddings: Tensor<2>,
    /// The loss, of shape \[1\], without gradient.
    pub(super) loss: Tensor<1>,
    /// The gradient of the loss by the embeddings, [B, d]; none if the loss does not depend on them.
    pub(super) by_embedding: Option<Tensor<2>>,
    /// The gradients of all weights.
    pub(super) gradients: PartGradients,
}

impl Differentiated {
    /// Whether the network's gradients alone are not finite: they were too large in half precision. Waits for the device.
    ///
    /// # Errors
    ///
    /// Numbers that cannot be read from the device.
    pub(super) fn overflows(&self, magnitudes: &GradientMagnitudes) -> Result<bool> {
        let by_embedding = self.by_embedding.clone().map(|gradient| gradient.abs().sum());
        let cause = [Some(self.loss.clone()), by_embedding];
        let network = [magnitudes.backbone.clone(), magnitudes.head.clone()];
        let is_finite = |sums: [Option<Tensor<1>>; 2]| -> Result<bool> {
            let sums = Tensor::cat(sums.into_iter().flatten().collect(), 0).try_into_data()?;
            Ok(sums.iter::<f32>().all(f32::is_finite))
        };
        Ok(network.iter().any(Option::is_some) && !is_finite(network)? && is_finite(cause)?)
    }
}

/// A batch of B images with the way to embed them.
pub(super) struct Images<'a, E> {
    /// [B, L], B ≥ 1.
    pub(super) labels: &'a Labels,
    /// The random draws of the step.
    pub(super) draws: Draws,
    /// The images of a chunk, at most; at least 1.
    pub(super) chunk: usize,
    /// The factor of gradients on their way through the network; none to leave them as they are. The gradients that come
    /// out are not multiplied by it.
    pub(super) loss_scale: Option<f64>,
    /// Who embeds them.
    pub(super) workers: &'a Workers,
    /// Embeds the images of a range with an encoder, on a device with or without gradients.
    pub(super) embed: E,
}

/// A worker's part of a batch, after it has been embedded.
struct Part {
    images: Range<usize>,
    /// The copy of the encoder on the worker's device.
    encoder: Encoder,
    /// On the worker's device, with gradient if the part passed the network as a whole.
    embeddings: Tensor<2>,
}

impl<E: Fn(&Encoder, Range<usize>, &Device) -> Result<Tensor<2>> + Sync> Images<'_, E> {
    /// The loss of the batch and its gradients. `encoder` and `loss` are on the first device.
    ///
    /// # Errors
    ///
    /// Images that cannot be embedded.
    pub(super) fn differentiate(&self, encoder: &Encoder, loss: &Loss) -> Result<Differentiated> {
        let first = self.workers.first().clone().without_autodiff();
        let parts = self.workers.run(self.parts(), |device, images| self.embed_part(encoder, images, device));
        let parts = parts.into_iter().collect::<Result<Vec<Part>>>()?;
        let gathered = parts.iter().map(|part| part.embeddings.clone().without_autodiff().to_device(&first));
        let embeddings = Tensor::cat(gathered.collect(), 0);

        let leaves = embeddings.clone().autodiff().require_grad();
        let value = loss.forward(&Batch::new(leaves.clone(), self.labels).with_draws(self.draws));
        let mut gradients = value.backward();
        let by_embedding = leaves.grad_remove(&mut gradients);
        let mut gradients = PartGradients::from_loss(gradients, loss);

        // A loss without anything to compare does not depend on the embeddings.
        if let Some(by_embedding) = &by_embedding {
            let by_embedding = match self.loss_scale {
                Some(factor) => by_embedding.clone() * factor,
                None => by_embedding.clone(),
            };
            let part_gradients = self.workers.run(parts, |device, part| {
                let own = by_embedding.clone().slice([part.images.clone()]);
                self.differentiate_part(part, own.to_device(&device.clone().without_autodiff()), device)
            });
            for part in part_gradients {
                let part = part?.encoder_to_device(&first, encoder);
                gradients = gradients.add_encoder(part, encoder);
            }
            if let Some(factor) = self.loss_scale {
                gradients = gradients.scale_encoder(1.0 / factor, encoder, &first);
            }
        }
        Ok(Differentiated { embeddings, loss: value.without_autodiff(), by_embedding, gradients })
    }

    /// The images of each worker, as evenly as they can be dealt out. A small batch leaves workers without any.
    fn parts(&self) -> Vec<Range<usize>> {
        let (images, workers) = (self.labels.len(), self.workers.count());
        let start = |worker: usize| worker * images / workers;
        let parts = (0..workers).map(|worker| start(worker)..start(worker + 1));
        parts.filter(|part| !part.is_empty()).collect()
    }

    fn embed_part(&self, encoder: &Encoder, images: Range<usize>, device: &Device) -> Result<Part> {
        let inner = device.clone().without_autodiff();
        let encoder = match self.workers.count() {
            1 => encoder.clone(),
            // Without `valid` the copy would share the statistics of batch normalisation, which are on one device.
            _ => encoder.valid().to_device(&inner).train(),
        };
        let embeddings = if images.len() <= self.chunk {
            (self.embed)(&encoder, images.clone(), device)?
        } else {
            let encoder = encoder.valid();
            let chunks = self.chunks(images.clone());
            let embedded = chunks.map(|chunk| (self.embed)(&encoder, chunk, &inner));
            Tensor::cat(embedded.collect::<Result<_>>()?, 0)
        };
        Ok(Part { images, encoder, embeddings })
    }

    /// The gradient of Σ g·e by the weights of the part's encoder, with g `by_embedding`.
    fn differentiate_part(
        &self,
        part: Part,
        by_embedding: Tensor<2>,
        device: &Device,
    ) -> Result<PartGradients> {
        let Part { images, encoder, embeddings } = part;
        let differentiate = |embeddings: Tensor<2>, by_embedding: Tensor<2>| {
            let product = (embeddings * by_embedding.autodiff()).sum();
            PartGradients::from_encoder(product.backward(), &encoder)
        };
        if images.len() <= self.chunk {
            return Ok(differentiate(embeddings, by_embedding));
        }
        let start = images.start;
        let mut sum = PartGradients::default();
        for (place, chunk) in self.chunks(images).enumerate() {
            let own = by_embedding.clone().narrow(0, chunk.start - start, chunk.len());
            let gradients = differentiate((self.embed)(&encoder, chunk, device)?, own);
            sum = if place == 0 { gradients } else { sum.add_encoder(gradients, &encoder) };
        }
        Ok(sum)
    }

    fn chunks(&self, images: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let end = images.end;
        images.step_by(self.chunk).map(move |start| start..(start + self.chunk).min(end))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
    use akin_core::geometry::{Geometry, Space};
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::losses::{CATALOGUE, LossConfig, LossContext};
    use akin_core::models::{BackboneConfig, HeadConfig, SmallResnetConfig};
    use burn::module::{ModuleMapper, ModuleVisitor, Param};
    use burn::tensor::TensorData;

    use super::*;
    use crate::config::{Adam, OptimizerConfig, Rule};
    use crate::training::optimizer::{Optimizers, Rates};

    const IMAGES: usize = 9;
    const SIDE: usize = 16;

    fn config(geometry: Geometry) -> EncoderConfig {
        EncoderConfig {
            backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 2 }),
            pooling: None,
            head: Some(HeadConfig {
                dimension: 6,
                layer_norm: true,
                geometry,
                initial_weights: Default::default(),
            }),
            preprocessing: Preprocessing::new(Normalisation::Inception, SIDE as u32).unwrap(),
        }
    }

    fn network(geometry: Geometry, device: &Device) -> Encoder {
        let frozen = Frozen { batch_norm: BatchNormMode::FixedStatistics, ..Frozen::default() };
        config(geometry).init(3, device).unwrap().freeze(frozen)
    }

    /// How the images of a batch pass the network.
    #[derive(Clone, Copy, Debug)]
    struct Way {
        chunk: usize,
        workers: usize,
    }

    /// The network, the loss and the labels of a batch for the space that a loss prefers.
    fn setting(kind: &str) -> (Encoder, Loss, Labels) {
        let device = Device::flex().autodiff();
        let space = CATALOGUE.iter().find(|entry| entry.name == kind).unwrap().spaces[0];
        let geometry = match space {
            Space::Cosine => Geometry::Cosine,
            Space::Poincare => Geometry::poincare(),
            Space::Binary => Geometry::Binary,
        };
        let encoder = network(geometry.clone(), &device);
        let labels = Labels::new(2, [0, 0, 0, 1, 1, 2].repeat(3)).unwrap();
        let classes = labels.classes();
        let context = LossContext::new(&classes, 6, &geometry, 0, &device);
        let loss = LossConfig::named(kind).unwrap().init(&context).unwrap();
        (encoder, loss, labels)
    }

    fn workers(count: usize) -> Workers {
        Workers::new(&vec![Device::flex(); count]).unwrap()
    }

    fn forward(encoder: &Encoder, images: Tensor<4>, backbone_learns: bool) -> Result<Tensor<2>> {
        Ok(if backbone_learns || !images.device().is_autodiff() {
            encoder.forward(images)
        } else {
            encoder.forward_frozen(images)
        }?)
    }

    fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    /// The embeddings, the loss, and the gradients of backbone, head and proxies.
    type Numbers = (Vec<f32>, Vec<f32>, [Vec<f32>; 3]);

    /// The step of one device in one pass, as Burn's autodiff gives it.
    fn plain(kind: &str, backbone_learns: bool) -> Numbers {
        let (encoder, loss, labels) = setting(kind);
        let embeddings =
            forward(&encoder, waves(0..IMAGES, &Device::flex().autodiff()), backbone_learns).unwrap();
        let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
        let gradients = PartGradients::new(value.backward(), &encoder, &loss);
        (to_vec(embeddings), to_vec(value), gradients.parts(&encoder, &loss))
    }

    /// What a batch gives in another way, and how many images passed the network at once.
    fn differentiate(kind: &str, way: Way, backbone_learns: bool) -> (Numbers, usize) {
        let (encoder, loss, labels) = setting(kind);
        let largest = AtomicUsize::new(0);
        let embed = |encoder: &Encoder, range: Range<usize>, device: &Device| {
            largest.fetch_max(range.len(), Ordering::Relaxed);
            forward(encoder, waves(range, device), backbone_learns)
        };
        let images = Images {
            labels: &labels,
            draws: Draws::default(),
            chunk: way.chunk,
            loss_scale: None,
            workers: &workers(way.workers),
            embed,
        };
        let Differentiated { embeddings, loss: value, gradients, .. } =
            images.differentiate(&encoder, &loss).unwrap();
        let numbers = (to_vec(embeddings), to_vec(value), gradients.parts(&encoder, &loss));
        (numbers, largest.into_inner())
    }

    fn assert_close(numbers: &[f32], expected: &[f32], what: &str) {
        assert_eq!(numbers.len(), expected.len(), "{what}");
        let largest = expected.iter().fold(1.0_f32, |largest, value| largest.max(value.abs()));
        for (number, expected) in numbers.iter().zip(expected) {
            assert!((number - expected).abs() <= 1e-6 * largest, "{what}: {number} for {expected}");
        }
    }

    /// Compares the gradients that ways give with those of the plain step. Returns the latter.
    fn compare(kind: &str, ways: &[Way], backbone_learns: bool) -> [Vec<f32>; 3] {
        let (embeddings, loss, gradients) = plain(kind, backbone_learns);
        for &way in ways {
            let what = format!("{kind}, {way:?}");
            let (numbers, at_once) = differentiate(kind, way, backbone_learns);
            assert_eq!(at_once, way.chunk.min(IMAGES.div_ceil(way.workers)), "{what}");
            assert_eq!(numbers.0, embeddings, "{what}");
            assert_eq!(numbers.1, loss, "{what}");
            for (numbers, expected) in numbers.2.iter().zip(&gradients) {
                assert_close(numbers, expected, &what);
            }
        }
        gradients
    }

    const WHOLE: usize = usize::MAX;

    /// A loss of pairs, one of rankings at several levels, and one with proxies.
    #[test]
    fn chunks_and_workers_give_the_gradients_of_the_plain_step() {
        let ways =
            [(WHOLE, 1), (1, 1), (7, 1), (IMAGES, 1), (WHOLE, 2), (WHOLE, 3), (2, 2), (3, 3), (WHOLE, 9)]
                .map(|(chunk, workers)| Way { chunk, workers });
        for kind in ["contrastive", "hap_surrogate", "proxy_anchor"] {
            for backbone_learns in [true, false] {
                let [backbone, head, proxies] = compare(kind, &ways, backbone_learns);
                assert_eq!(backbone.is_empty(), !backbone_learns, "{kind}");
                assert_eq!(proxies.is_empty(), kind != "proxy_anchor");
                assert!(head.iter().any(|gradient| gradient.abs() > 1e-4), "{kind} has a gradient");
            }
        }
    }

    #[test]
    fn every_loss_has_the_same_gradients_in_chunks_and_on_two_workers() {
        // The gradient of HIER through its draws takes ten seconds in a debug build; `hier_text` has the rest of it.
        let slow = ["hier", "hier_multi_similarity", "hier_proxy_anchor"];
        let tested = CATALOGUE.iter().filter(|entry| entry.complete && !slow.contains(&entry.name));
        for entry in tested {
            let ways = [Way { chunk: 4, workers: 1 }, Way { chunk: WHOLE, workers: 2 }];
            compare(entry.name, &ways, true);
        }
    }

    /// The loss and the gradients as SupRank's code computes them over a whole set, `run_large_batch`: descriptors in parts
    /// and without gradient, the gradient of the loss by the descriptors, and parts in another order, each sent back with its
    /// rows of that gradient. The parts pass with the same images both times.
    fn as_suprank(kind: &str) -> (Vec<f32>, [Vec<f32>; 3]) {
        let (encoder, loss, labels) = setting(kind);
        let (inner, device) = (Device::flex(), Device::flex().autodiff());
        let parts = [0..4, 4..8, 8..IMAGES];
        let plain = encoder.valid();
        let embed = |part: &Range<usize>| plain.forward(waves(part.clone(), &inner)).unwrap();
        let descriptors = Tensor::cat(parts.iter().map(embed).collect(), 0).autodiff().require_grad();
        let value = loss.forward(&Batch::new(descriptors.clone(), &labels));
        let mut gradients = value.backward();
        let by_descriptor = descriptors.grad_remove(&mut gradients).unwrap();
        let mut sum = PartGradients::from_loss(gradients, &loss);
        for part in [2, 0, 1].map(|part| parts[part].clone()) {
            let embedded = encoder.forward(waves(part.clone(), &device)).unwrap();
            let back = (embedded * by_descriptor.clone().slice([part]).autodiff()).sum().backward();
            sum = sum.add_encoder(PartGradients::from_encoder(back, &encoder), &encoder);
        }
        (to_vec(value), sum.parts(&encoder, &loss))
    }

    #[test]
    fn a_whole_set_in_chunks_has_the_gradients_of_the_step_of_suprank_and_of_one_batch() {
        for kind in ["sup_ap", "sup_ndcg", "sup_recall", "happier", "roadmap_plus_plus"] {
            let (loss, gradients) = as_suprank(kind);
            let (numbers, _) = differentiate(kind, Way { chunk: 4, workers: 1 }, true);
            assert_eq!(numbers.1, loss, "{kind}");
            let (_, of_batch, gradients_of_batch) = plain(kind, true);
            assert_eq!(of_batch, loss, "{kind}");
            for (part, expected) in gradients.iter().enumerate() {
                assert_close(&numbers.2[part], expected, kind);
                assert_close(&gradients_of_batch[part], expected, kind);
            }
        }
    }

    /// The weights of encoder and loss after some steps of Adam, and the losses.
    fn train(kind: &str, way: Way) -> ([Vec<f32>; 2], Vec<f32>) {
        let (mut encoder, mut loss, labels) = setting(kind);
        let mut optimizers = Optimizers::new(&OptimizerConfig {
            rule: Rule::Adam(Adam { epsilon: 1e-3, ..Adam::default() }),
            ..Default::default()
        });
        let rates = Rates { backbone: Some(1e-3), head: 1e-3, proxies: 1e-2, terms: Vec::new() };
        let workers = workers(way.workers);
        let mut losses = Vec::new();
        for step in 0..4 {
            let draws = Draws { seed: 0, step };
            loss.before_step(draws);
            let images = Images {
                labels: &labels,
                draws,
                chunk: way.chunk,
                loss_scale: None,
                workers: &workers,
                embed: embed_waves,
            };
            let Differentiated { embeddings, loss: value, gradients, .. } =
                images.differentiate(&encoder, &loss).unwrap();
            (encoder, loss) = optimizers.step(encoder, loss, gradients, &rates);
            loss.after_step(embeddings, &labels);
            losses.extend(to_vec(value));
        }
        ([weights(&encoder), weights(&loss)], losses)
    }

    fn weights(module: &impl Module) -> Vec<f32> {
        struct Collect(Vec<f32>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.extend(to_vec(param.val()));
            }
        }
        let mut collect = Collect(Vec::new());
        module.visit(&mut collect);
        collect.0
    }

    #[test]
    fn several_workers_train_the_weights_of_one() {
        for kind in ["happier", "proxy_anchor", "hpdh"] {
            let (expected, losses) = train(kind, Way { chunk: WHOLE, workers: 1 });
            assert!(losses.windows(2).all(|pair| pair[0] != pair[1]), "{kind} learns: {losses:?}");
            for (chunk, count) in [(WHOLE, 2), (WHOLE, 3), (2, 2), (2, 3)] {
                let what = format!("{kind}, {count} workers, chunks of {chunk}");
                let (weights, of_workers) = train(kind, Way { chunk, workers: count });
                assert_close(&of_workers, &losses, &what);
                for (weights, expected) in weights.iter().zip(&expected) {
                    assert_close(weights, expected, &what);
                }
            }
        }
    }

    /// The copy of a worker learns what the encoder learns, and has its own statistics.
    #[test]
    fn what_is_frozen_stays_frozen_in_the_copies() {
        let device = Device::flex().autodiff();
        let labels = Labels::new(1, vec![0, 0, 1, 1]).unwrap();
        let classes = labels.classes();
        let context = LossContext::new(&classes, 6, &Geometry::Cosine, 0, &device);
        let loss = LossConfig::named("contrastive").unwrap().init(&context).unwrap();
        for batch_norm in [BatchNormMode::Frozen, BatchNormMode::FixedStatistics] {
            let frozen = Frozen { batch_norm, ..Frozen::default() };
            let encoder = config(Geometry::Cosine).init(3, &device).unwrap().freeze(frozen);
            let [one, two] = [1, 2].map(|count| {
                let workers = workers(count);
                let images = Images {
                    labels: &labels,
                    draws: Draws::default(),
                    chunk: WHOLE,
                    loss_scale: None,
                    workers: &workers,
                    embed: embed_waves,
                };
                images.differentiate(&encoder, &loss).unwrap().gradients.parts(&encoder, &loss)
            });
            assert_close(&two[0], &one[0], "the backbone");
        }
    }

    /// The gradients of a batch in half precision with a loss scale, and whether they overflow. The images of a `factor`
    /// other than 1 are brighter by that factor.
    fn in_half_precision(loss_scale: f64, factor: f64) -> ([Vec<f32>; 3], bool) {
        let (encoder, loss, labels) = setting("proxy_anchor");
        let embed = |encoder: &Encoder, range: Range<usize>, device: &Device| {
            Ok(encoder.in_half_precision().forward(waves(range, device) * factor)?)
        };
        let images = Images {
            labels: &labels,
            draws: Draws::default(),
            chunk: 4,
            loss_scale: Some(loss_scale),
            workers: &workers(2),
            embed,
        };
        let differentiated = images.differentiate(&encoder, &loss).unwrap();
        let overflows = differentiated.overflows(&differentiated.gradients.magnitudes(&encoder, &loss));
        (differentiated.gradients.parts(&encoder, &loss), overflows.unwrap())
    }

    #[test]
    fn a_loss_scale_changes_no_gradient_unless_it_overflows() {
        let (_, _, expected) = plain("proxy_anchor", true);
        let product = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum::<f64>();
        for loss_scale in [1.0, 1024.0] {
            let (gradients, overflows) = in_half_precision(loss_scale, 1.0);
            assert!(!overflows, "with a scale of {loss_scale}");
            for (half, single) in gradients.iter().zip(&expected) {
                let cosine = product(half, single) / (product(half, half) * product(single, single)).sqrt();
                let ratio = (product(half, half) / product(single, single)).sqrt();
                assert!(cosine > 0.999 && (ratio - 1.0).abs() < 0.01, "{cosine} and {ratio}");
            }
        }
    }

    #[test]
    fn gradients_that_overflow_are_told_from_a_network_that_does() {
        let (gradients, overflows) = in_half_precision(f64::from(1 << 24), 1.0);
        assert!(overflows, "the gradient of {} numbers is finite", gradients[0].len());
        assert!(
            gradients[2].iter().all(|gradient| gradient.is_finite()),
            "that of the proxies is not scaled"
        );
        let (gradients, overflows) = in_half_precision(1.0, 1e7);
        assert!(!overflows && gradients[0].iter().any(|gradient| !gradient.is_finite()));
    }

    /// The addresses of the weights that learn, in the order of a visitor. Makes the mapped module their only owner.
    #[derive(Default)]
    struct Addresses(Vec<usize>);

    impl ModuleMapper for Addresses {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, weight, mapper) = param.consume();
            if !weight.is_require_grad() {
                return Param::from_mapped_value(id, weight, mapper);
            }
            let device = weight.device();
            // The only owner of a tensor on the CPU gives its memory away, and takes it from the data again.
            let data = weight.without_autodiff().into_data();
            self.0.push(data.as_bytes().as_ptr().addr());
            Param::from_mapped_value(id, Tensor::from_data(data, &device).require_grad(), mapper)
        }
    }

    fn addresses<M: Module>(module: M) -> (M, Vec<usize>) {
        let mut addresses = Addresses::default();
        let module = module.map(&mut addresses);
        (module, addresses.0)
    }

    #[test]
    fn a_step_changes_the_weights_where_they_are() {
        let device = Device::flex().autodiff();
        let labels = Labels::new(2, [0, 0, 0, 1, 1, 2].repeat(3)).unwrap();
        let classes = labels.classes();
        let context = LossContext::new(&classes, 6, &Geometry::Cosine, 0, &device);
        let loss = LossConfig::named("proxy_anchor").unwrap().init(&context).unwrap();
        let (mut encoder, before) = addresses(network(Geometry::Cosine, &device));
        let (mut loss, proxies) = addresses(loss);
        assert!(before.len() > 10 && !proxies.is_empty());
        let mut optimizers = Optimizers::new(&OptimizerConfig { clip_norm: Some(1.0), ..Default::default() });
        let rates = Rates { backbone: Some(0.1), head: 0.1, proxies: 0.1, terms: Vec::new() };
        for (chunk, count) in [(WHOLE, 1), (4, 1), (WHOLE, 2), (2, 2), (WHOLE, 1)] {
            let workers = self::workers(count);
            let images = Images {
                labels: &labels,
                draws: Draws::default(),
                chunk,
                loss_scale: None,
                workers: &workers,
                embed: embed_waves,
            };
            let Differentiated { gradients, .. } = images.differentiate(&encoder, &loss).unwrap();
            (encoder, loss) = optimizers.step(encoder, loss, gradients, &rates);
        }
        assert_eq!(addresses(encoder).1, before);
        assert_eq!(addresses(loss).1, proxies);
    }

    /// Embeds invented images.
    fn embed_waves(encoder: &Encoder, range: Range<usize>, device: &Device) -> Result<Tensor<2>> {
        Ok(encoder.forward(waves(range, device))?)
    }

    fn waves(range: Range<usize>, device: &Device) -> Tensor<4> {
        let size = 3 * SIDE * SIDE;
        let values = (range.start * size..range.end * size).map(|i| (i as f32 * 0.7).sin()).collect();
        Tensor::from_data(TensorData::new::<f32, _>(values, [range.len(), 3, SIDE, SIDE]), device)
    }
}
