//! The loss of a batch and its gradients, from the whole batch at once or in chunks.
//!
//! In chunks (gradient caching; Gao et al., *Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup*,
//! 2021): with e = f(x; w) the embeddings and L(e) the loss of the whole batch,
//!
//! 1. each chunk passes the network without gradient, which gives e;
//! 2. L and g = ∂L/∂e are computed once, from the whole batch;
//! 3. each chunk passes the network again, and the gradient of Σ g·e by w is added up.
//!
//! The sum is ∂L/∂w, because ∂L/∂w = Σ_i g_i · ∂e_i/∂w. Only one chunk's activations are held at a time. An embedding
//! must not depend on the other images of its pass, as it does with live batch normalisation.

use std::ops::Range;

use akin_core::encoder::Encoder;
use akin_core::losses::{Batch, Draws, Loss, Objective};
use akin_core::taxonomy::Labels;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::optimizer::PartGradients;

/// What a backward pass gives.
pub(super) struct Differentiated {
    /// The embeddings of the batch, [B, d], without gradient.
    pub(super) embeddings: Tensor<2>,
    /// The loss, of shape \[1\], without gradient.
    pub(super) loss: Tensor<1>,
    /// The gradients of all weights.
    pub(super) gradients: PartGradients,
}

/// A batch of B images with the way to embed them.
pub(super) struct Images<'a, E> {
    /// [B, L], B ≥ 1.
    pub(super) labels: &'a Labels,
    /// The random draws of the step.
    pub(super) draws: Draws,
    /// The images of a chunk, at most; at least 1.
    pub(super) chunk: usize,
    /// A device with gradients.
    pub(super) device: &'a Device,
    /// Embeds the images of a range with an encoder, on a device with or without gradients.
    pub(super) embed: E,
}

impl<E: Fn(&Encoder, Range<usize>, &Device) -> Tensor<2>> Images<'_, E> {
    /// The loss of the batch and its gradients.
    pub(super) fn differentiate(&self, encoder: &Encoder, loss: &Loss) -> Differentiated {
        if self.labels.len() <= self.chunk {
            let embeddings = (self.embed)(encoder, 0..self.labels.len(), self.device);
            let value = self.loss(loss, embeddings.clone());
            let gradients = PartGradients::new(value.backward(), encoder, loss);
            let (embeddings, loss) = (embeddings.without_autodiff(), value.without_autodiff());
            return Differentiated { embeddings, loss, gradients };
        }
        let embeddings = self.embed_in_chunks(encoder);
        let leaves = embeddings.clone().autodiff().require_grad();
        let value = self.loss(loss, leaves.clone());
        let mut gradients = value.backward();
        let by_embedding = leaves.grad_remove(&mut gradients);
        let mut gradients = PartGradients::new(gradients, encoder, loss);
        // A loss without anything to compare does not depend on the embeddings.
        if let Some(by_embedding) = by_embedding {
            for chunk in self.chunks() {
                let own = by_embedding.clone().slice([chunk.clone()]).autodiff();
                let product = ((self.embed)(encoder, chunk, self.device) * own).sum();
                let chunk_gradients = PartGradients::new(product.backward(), encoder, loss);
                gradients = gradients.add(chunk_gradients, encoder, loss);
            }
        }
        Differentiated { embeddings, loss: value.without_autodiff(), gradients }
    }

    fn loss(&self, loss: &Loss, embeddings: Tensor<2>) -> Tensor<1> {
        loss.forward(&Batch::new(embeddings, self.labels).with_draws(self.draws))
    }

    /// The embeddings of all images, [B, d], without gradient.
    fn embed_in_chunks(&self, encoder: &Encoder) -> Tensor<2> {
        let (encoder, device) = (encoder.valid(), self.device.clone().without_autodiff());
        Tensor::cat(self.chunks().map(|chunk| (self.embed)(&encoder, chunk, &device)).collect(), 0)
    }

    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let images = self.labels.len();
        (0..images).step_by(self.chunk).map(move |start| start..(start + self.chunk).min(images))
    }
}

#[cfg(test)]
mod tests {
    use akin_core::encoder::{BatchNormMode, EncoderConfig, Frozen};
    use akin_core::geometry::{Geometry, Space};
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::losses::{CATALOGUE, LossConfig, LossContext};
    use akin_core::models::{BackboneConfig, HeadConfig, SmallResnetConfig};
    use burn::module::{ModuleMapper, Param};
    use burn::tensor::TensorData;

    use super::*;
    use crate::config::OptimizerConfig;
    use crate::optimizer::{Optimizers, Rates};

    const IMAGES: usize = 9;
    const SIDE: usize = 16;

    fn network(geometry: Geometry, device: &Device) -> Encoder {
        let config = EncoderConfig {
            backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 2 }),
            pooling: None,
            head: Some(HeadConfig { dimension: 6, layer_norm: true, geometry }),
            preprocessing: Preprocessing::new(Normalisation::Inception, SIDE as u32).unwrap(),
        };
        let frozen = Frozen { batch_norm: BatchNormMode::FixedStatistics, ..Frozen::default() };
        config.init(3, device).unwrap().freeze(frozen)
    }

    /// What a batch gives in chunks of a size, and how many images passed the network at once.
    fn differentiate(
        kind: &str,
        chunk: usize,
        backbone_learns: bool,
    ) -> (Vec<f32>, f32, [Vec<f32>; 3], usize) {
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
        let largest = std::cell::Cell::new(0);
        let embed = |encoder: &Encoder, range: Range<usize>, device: &Device| {
            largest.set(largest.get().max(range.len()));
            let images = waves(range, device);
            if backbone_learns || !device.is_autodiff() {
                encoder.forward(images)
            } else {
                encoder.forward_frozen(images)
            }
        };
        let images = Images { labels: &labels, draws: Draws::default(), chunk, device: &device, embed };
        let Differentiated { embeddings, loss: value, gradients } = images.differentiate(&encoder, &loss);
        let to_vec = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().unwrap();
        (
            to_vec(embeddings),
            to_vec(value.reshape([1, 1]))[0],
            gradients.parts(&encoder, &loss),
            largest.get(),
        )
    }

    /// Compares the gradients of chunks with those of the whole batch. Returns those of the whole batch.
    fn compare(kind: &str, chunks: &[usize], backbone_learns: bool) -> [Vec<f32>; 3] {
        let (embeddings, loss, whole, at_once) = differentiate(kind, usize::MAX, backbone_learns);
        assert_eq!(at_once, IMAGES);
        for &chunk in chunks {
            let in_chunks = differentiate(kind, chunk, backbone_learns);
            assert_eq!(in_chunks.3, chunk);
            assert_eq!(in_chunks.0, embeddings, "{kind} in chunks of {chunk}");
            assert_eq!(in_chunks.1, loss, "{kind} in chunks of {chunk}");
            for (whole, part) in whole.iter().zip(&in_chunks.2) {
                assert_eq!(whole.len(), part.len(), "{kind}");
                let largest = whole.iter().fold(1.0_f32, |largest, value| largest.max(value.abs()));
                for (whole, part) in whole.iter().zip(part) {
                    let difference = (whole - part).abs();
                    assert!(difference <= 1e-6 * largest, "{kind} in chunks of {chunk}: {part} for {whole}");
                }
            }
        }
        whole
    }

    /// A loss of pairs, one of rankings at several levels, and one with proxies.
    #[test]
    fn chunks_give_the_gradients_of_the_whole_batch() {
        for kind in ["contrastive", "hap_surrogate", "proxy_anchor"] {
            for backbone_learns in [true, false] {
                let [backbone, head, proxies] = compare(kind, &[1, 7, IMAGES], backbone_learns);
                assert_eq!(backbone.is_empty(), !backbone_learns, "{kind}");
                assert_eq!(proxies.is_empty(), kind != "proxy_anchor");
                assert!(head.iter().any(|gradient| gradient.abs() > 1e-4), "{kind} has a gradient");
            }
        }
    }

    #[test]
    fn every_loss_has_the_same_gradients_in_chunks() {
        // The gradient of that preset through its draws takes ten seconds in a debug build; `hier` has the rest of it.
        let tested = CATALOGUE.iter().filter(|entry| entry.complete && entry.name != "hier_published");
        for entry in tested {
            compare(entry.name, &[4], true);
        }
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
        for chunk in [usize::MAX, 4, usize::MAX] {
            let images = Images {
                labels: &labels,
                draws: Draws::default(),
                chunk,
                device: &device,
                embed: embed_waves,
            };
            let Differentiated { gradients, .. } = images.differentiate(&encoder, &loss);
            (encoder, loss, _) = optimizers.step(encoder, loss, gradients, &rates);
        }
        assert_eq!(addresses(encoder).1, before);
        assert_eq!(addresses(loss).1, proxies);
    }

    /// Embeds invented images.
    fn embed_waves(encoder: &Encoder, range: Range<usize>, device: &Device) -> Tensor<2> {
        encoder.forward(waves(range, device))
    }

    fn waves(range: Range<usize>, device: &Device) -> Tensor<4> {
        let size = 3 * SIDE * SIDE;
        let values = (range.start * size..range.end * size).map(|i| (i as f32 * 0.7).sin()).collect();
        Tensor::from_data(TensorData::new::<f32, _>(values, [range.len(), 3, SIDE, SIDE]), device)
    }
}
