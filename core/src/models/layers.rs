//! Layers with initial weights, and what they cost.

use burn::module::{Param, ParamId};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, PaddingConfig2d,
};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::random::{normal, orthonormal, uniform};

/// Where the initial weights of a network come from.
pub struct Initial<'a> {
    rng: Option<&'a mut ChaCha8Rng>,
    device: &'a Device,
}

impl<'a> Initial<'a> {
    /// Weights drawn from a random stream, and not by the device: a seed gives the same weights on every back end.
    pub fn drawn(rng: &'a mut ChaCha8Rng, device: &'a Device) -> Self {
        Self { rng: Some(rng), device }
    }

    /// No weights: a weight that is not loaded is zero, and takes no memory before it is used.
    pub fn absent(device: &'a Device) -> Self {
        Self { rng: None, device }
    }

    /// A weight of a shape with the numbers that `draw` gives.
    pub(super) fn weight<const D: usize>(
        &mut self,
        shape: [usize; D],
        draw: impl FnOnce(&mut ChaCha8Rng, usize) -> Vec<f32>,
    ) -> Param<Tensor<D>> {
        match &mut self.rng {
            Some(rng) => {
                let values = draw(rng, shape.iter().product());
                Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), self.device))
            }
            None => self.constant(shape, 0.0),
        }
    }

    /// A weight of a shape whose numbers are all the same. It is made when it is first used.
    pub(super) fn constant<const D: usize>(&self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        let make =
            move |device: &Device, learns: bool| Tensor::full(shape, value, device).set_require_grad(learns);
        Param::uninitialized(ParamId::new(), make, self.device.clone(), true, shape.into())
    }

    /// A convolution with weights from N(0, 2 / fan-out), which suits a ReLU after it.
    pub(super) fn convolution(&mut self, channels: [usize; 2], window: Window) -> Conv2d {
        let [input, output] = channels;
        let Window { side, stride, padding, groups, bias } = window;
        let mut layer = Conv2dConfig::new(channels, [side, side])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .with_groups(groups)
            .with_bias(false)
            .init(self.device);
        let deviation = (2.0 / (output / groups * side * side) as f32).sqrt();
        layer.weight =
            self.weight([output, input / groups, side, side], |rng, count| normal(rng, count, deviation));
        layer.bias = bias.then(|| self.constant([output], 0.0));
        layer
    }

    /// Batch normalisation with scale 1, shift 0, ε = 1e-5.
    pub(super) fn batch_norm(&self, channels: usize) -> BatchNorm {
        BatchNormConfig::new(channels).init(self.device)
    }

    /// Layer normalisation with scale 1 and shift 0.
    pub(super) fn layer_norm(&self, features: usize, epsilon: f64) -> LayerNorm {
        LayerNormConfig::new(features).with_epsilon(epsilon).init(self.device)
    }

    /// A linear layer with weights and bias from U(−1/√in, 1/√in), torch's default.
    pub(super) fn linear(&mut self, input: usize, output: usize) -> Linear {
        let bound = 1.0 / (input as f32).sqrt();
        let mut layer = LinearConfig::new(input, output).init(self.device);
        layer.weight = self.weight([input, output], |rng, count| uniform(rng, count, -bound, bound));
        layer.bias = Some(self.weight([output], |rng, count| uniform(rng, count, -bound, bound)));
        layer
    }

    /// A linear layer with a random W [out, in] for which W·Wᵀ = I, or WᵀW = I if there are more outputs than inputs, and
    /// without bias at first.
    pub(super) fn orthogonal_linear(&mut self, input: usize, output: usize) -> Linear {
        let mut layer = LinearConfig::new(input, output).init(self.device);
        // Burn keeps Wᵀ.
        layer.weight = self.weight([input, output], |rng, _| {
            if input <= output {
                return orthonormal(rng, input, output);
            }
            let weight = orthonormal(rng, output, input);
            (0..input * output).map(|place| weight[place % output * input + place / output]).collect()
        });
        layer.bias = Some(self.constant([output], 0.0));
        layer
    }
}

/// The window of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// k of a k×k window.
    pub side: usize,
    pub stride: usize,
    pub padding: usize,
    pub groups: usize,
    pub bias: bool,
}

impl Window {
    /// A window that keeps the side of its input, divided by the stride. No bias, as suits a batch normalisation after
    /// it.
    pub(super) fn new(side: usize, stride: usize) -> Self {
        Self { side, stride, padding: side / 2, groups: 1, bias: false }
    }
}

/// The multiplications of one picture's way through a network.
pub(super) struct Cost {
    /// The side of the maps at this place.
    pub side: usize,
    /// The multiplications up to here.
    pub multiply_adds: u64,
}

impl Cost {
    pub(super) fn new(side: usize) -> Self {
        Self { side, multiply_adds: 0 }
    }

    /// Passes a convolution.
    pub(super) fn convolution(&mut self, layer: &Conv2d) {
        let PaddingConfig2d::Explicit(padding, ..) = layer.padding else {
            unreachable!("every convolution here is made by `Initial::convolution`")
        };
        self.side = (self.side + 2 * padding - layer.kernel_size[0]) / layer.stride[0] + 1;
        self.multiply_adds +=
            layer.weight.lazy_shape().num_elements() as u64 * (self.side * self.side) as u64;
    }

    /// Passes a pooling of stride 2 with a window of 3.
    pub(super) fn halving(&mut self, padding: usize, ceil: bool) {
        let span = self.side + 2 * padding - 3;
        self.side = if ceil { span.div_ceil(2) } else { span / 2 } + 1;
    }

    /// Passes a linear layer, for each of some rows.
    pub(super) fn linear(&mut self, layer: &Linear, rows: usize) {
        self.multiply_adds += (layer.weight.lazy_shape().num_elements() * rows) as u64;
    }
}
