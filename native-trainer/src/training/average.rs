//! The moving average of an encoder's weights (EMA): after each step, average ← average + (1 − decay) · (weights − average).
//!
//! It begins at the initial weights, and covers the statistics of batch normalisation too.

use akin_core::encoder::Encoder;
use anyhow::Result;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// See the [module](self).
pub struct Average {
    decay: f64,
    /// Without gradients.
    encoder: Encoder,
}

impl Average {
    /// An average that begins at these weights. `decay` is above 0 and below 1.
    pub fn new(decay: f64, encoder: &Encoder) -> Self {
        Self { decay, encoder: encoder.valid() }
    }

    /// The encoder with the averaged weights.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The average after another step. `encoder` is the one after the step.
    pub fn follow(self, encoder: &Encoder) -> Self {
        // Without `valid` the statistics that the step added to the normalisation would be missing.
        let mut weights = Weights(GradientsParams::new());
        encoder.valid().visit(&mut weights);
        let mut mapper = Follow { weights: weights.0, share: 1.0 - self.decay };
        Self { encoder: self.encoder.map(&mut mapper), ..self }
    }

    /// The weights as bytes, see [`Encoder::to_bytes_with_ids`].
    ///
    /// # Errors
    ///
    /// Weights that cannot be read back from the device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.encoder.to_bytes_with_ids()?)
    }

    /// This average with weights that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    ///
    /// Weights of another encoder.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Result<Self> {
        Ok(Self { encoder: self.encoder.with_weights(bytes)?, ..self })
    }
}

/// The weights of a module by their ids. Burn's container of gradients holds any tensors.
struct Weights(GradientsParams);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.register(param.id, param.val());
    }
}

struct Follow {
    weights: GradientsParams,
    /// 1 − decay.
    share: f64,
}

impl ModuleMapper for Follow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(weight) = self.weights.remove::<D>(param.id) else { return param };
        // In this form a weight that does not change is its own average, without rounding.
        param.map(|average| average.clone() + (weight - average) * self.share)
    }
}

#[cfg(test)]
mod tests {
    use akin_core::encoder::EncoderConfig;
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::models::{BackboneConfig, SmallResnetConfig};
    use burn::tensor::Device;

    use super::*;

    fn encoder(seed: u64, device: &Device) -> Encoder {
        let config = EncoderConfig {
            backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 2 }),
            pooling: None,
            head: None,
            preprocessing: Preprocessing::new(Normalisation::Inception, 16).unwrap(),
        };
        config.init(seed, device).unwrap()
    }

    fn numbers(encoder: &Encoder) -> Vec<f32> {
        struct Collect(Vec<f32>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.extend(param.val().into_data().try_to_vec::<f32>().unwrap());
            }
        }
        let mut collect = Collect(Vec::new());
        encoder.valid().visit(&mut collect);
        collect.0
    }

    #[test]
    fn the_average_moves_towards_the_weights_by_its_share() {
        let device = Device::flex().autodiff();
        let start = encoder(0, &device);
        // Other weights with the same ids, as a step gives them; a clone would share the statistics.
        let stepped = start.valid().map(&mut Add(0.5));
        let average = Average::new(0.9, &start).follow(&stepped).follow(&stepped);
        let (before, averaged) = (numbers(&start), numbers(average.encoder()));
        assert!(before.len() > 100 && before.len() == averaged.len());
        for (before, averaged) in before.iter().zip(averaged) {
            let expected = before + 0.5 * (1.0 - 0.9_f32 * 0.9);
            assert!((averaged - expected).abs() < 1e-6, "{averaged} instead of {expected}");
        }
        assert_eq!(numbers(&start), before, "the average has weights of its own");
    }

    struct Add(f64);

    impl ModuleMapper for Add {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|weight| weight + self.0)
        }
    }

    #[test]
    fn weights_that_do_not_change_are_their_own_average() {
        let device = Device::flex().autodiff();
        let encoder = encoder(1, &device);
        let average = Average::new(0.999, &encoder).follow(&encoder).follow(&encoder);
        assert_eq!(numbers(average.encoder()), numbers(&encoder));
    }

    #[test]
    fn an_average_continues_from_its_bytes() {
        let device = Device::flex().autodiff();
        let start = encoder(2, &device);
        let stepped = start.valid().map(&mut Add(0.25));
        let average = Average::new(0.9, &start).follow(&stepped);
        let restored = Average::new(0.9, &start).with_bytes(average.to_bytes().unwrap()).unwrap();
        assert_eq!(numbers(restored.follow(&stepped).encoder()), numbers(average.follow(&stepped).encoder()));
    }
}
