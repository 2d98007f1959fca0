//! The network: measurements [B, F] → points [B, d] of a space.

use akin_core::geometry::Geometry;
use akin_core::random::{stream, uniform};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

/// The width of both hidden layers.
const HIDDEN: usize = 48;

/// Two hidden layers with tanh and a linear layer, whose output is mapped into the space.
#[derive(Module, Debug)]
pub(crate) struct Network {
    first: Linear,
    second: Linear,
    last: Linear,
    #[module(skip)]
    geometry: Geometry,
}

impl Network {
    /// Random weights, which follow from the seed alone.
    pub(crate) fn new(
        features: usize,
        dimension: usize,
        geometry: Geometry,
        seed: u64,
        device: &Device,
    ) -> Self {
        let mut rng = stream(seed, "initialisation", &[]);
        let mut layer = |input, output| linear(input, output, &mut rng, device);
        Self {
            first: layer(features, HIDDEN),
            second: layer(HIDDEN, HIDDEN),
            last: layer(HIDDEN, dimension),
            geometry,
        }
    }

    /// Measurements [B, F] → points [B, d].
    pub(crate) fn forward(&self, measurements: Tensor<2>) -> Tensor<2> {
        let hidden = tanh(self.first.forward(measurements));
        let hidden = tanh(self.second.forward(hidden));
        self.geometry.embed(self.last.forward(hidden))
    }
}

/// A linear layer with weights from U(−b, b), b = √(3 / inputs), and no bias at the start.
fn linear(input: usize, output: usize, rng: &mut ChaCha8Rng, device: &Device) -> Linear {
    let bound = (3.0 / input as f32).sqrt();
    let values = uniform(rng, input * output, -bound, bound);
    // Burn's initialisers would make the module larger, and none is needed.
    Linear {
        weight: Param::from_tensor(Tensor::from_data(TensorData::new(values, [input, output]), device)),
        bias: Some(Param::from_tensor(Tensor::zeros([output], device))),
    }
}
