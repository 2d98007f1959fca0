//! Convolutions with a rectifier behind them or none: on the CPU those of `akin-layers`, forwards and backwards, and on
//! other devices those of Burn.

use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation::relu};

/// The output of a convolution.
pub(super) fn convolve(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, false)
}

/// The output of a convolution, with what is negative made zero.
pub(super) fn convolve_rectified(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, true)
}

fn apply(layer: &Conv2d, x: Tensor<4>, rectified: bool) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, &x, rectified) {
        return output;
    }
    let output = layer.forward(x);
    if rectified { relu(output) } else { output }
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers::{Convolution, rectifier_gradient};
    use burn::backend::{Backend, backend_extension, tensor::FloatTensor};
    use burn::nn::PaddingConfig2d;
    use burn::nn::conv::Conv2d;
    use burn::tensor::{DType, Tensor};
    use burn_autodiff::Autodiff;
    use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
    use burn_autodiff::grads::Gradients;
    use burn_autodiff::ops::{Backward, Ops, OpsKind};
    use burn_dispatch::Dispatch;
    use burn_flex::{Flex, FlexTensor};

    use super::super::cpu_tensor::{numbers, tensor, writable};
    use crate::host;

    /// The output of the layer, if it is one of 32-bit floats in the memory of the CPU.
    pub(super) fn apply(layer: &Conv2d, x: &Tensor<4>, rectified: bool) -> Option<Tensor<4>> {
        let padding = match layer.padding {
            PaddingConfig2d::Valid => Some([0, 0]),
            PaddingConfig2d::Explicit(top, left, bottom, right) if top == bottom && left == right => {
                Some([top, left])
            }
            _ => None,
        };
        let weight = layer.weight.val();
        let (Some(padding), DType::F32, DType::F32, true) =
            (padding, x.dtype(), weight.dtype(), host::is_cpu(&x.device()))
        else {
            return None;
        };
        let [_, channels, height, width] = x.dims();
        let [outputs, inputs, rows, columns] = weight.dims();
        let shape = Convolution {
            input: [channels, height, width],
            outputs,
            size: [rows, columns],
            stride: layer.stride,
            padding,
            dilation: layer.dilation,
            groups: layer.groups,
        };
        // What Burn refuses, it explains.
        let fits = channels == inputs * layer.groups && shape.output().iter().all(|&side| side > 0);
        if !fits || x.dims()[0] == 0 {
            return None;
        }
        // An operation of Burn's cannot leave out a tensor.
        let bias =
            layer.bias.as_ref().map_or_else(|| Tensor::zeros([outputs], &x.device()), |bias| bias.val());
        let [x, weight, bias] = [x.clone().into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
        Some(Tensor::from_dispatch(<Dispatch as Convolve>::convolve(x, weight, bias, shape, rectified)))
    }

    /// What Burn calls for the tensors of a device.
    #[backend_extension(Flex, Autodiff)]
    trait Convolve: Backend {
        fn convolve(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            shape: Convolution,
            rectified: bool,
        ) -> FloatTensor<Self>;
    }

    impl Convolve for Flex {
        fn convolve(
            x: FlexTensor,
            weight: FlexTensor,
            bias: FlexTensor,
            shape: Convolution,
            rectified: bool,
        ) -> FlexTensor {
            let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.to_contiguous());
            let output = shape.forward(numbers(&x), numbers(&weight), Some(numbers(&bias)), rectified);
            let [height, width] = shape.output();
            let batch = x.layout().shape()[0];
            tensor(output, vec![batch, shape.outputs, height, width])
        }
    }

    impl<C: CheckpointStrategy> Convolve for Autodiff<Flex, C> {
        fn convolve(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            shape: Convolution,
            rectified: bool,
        ) -> FloatTensor<Self> {
            let nodes = [x.node(), weight.node(), bias.node()];
            let [x, weight] = [x, weight].map(|tensor| tensor.into_primitive().to_contiguous());
            let output = Flex::convolve(x.clone(), weight.clone(), bias.into_primitive(), shape, rectified);
            match Layer.prepare::<C>(nodes).compute_bound().stateful() {
                OpsKind::Tracked(operation) => {
                    let rectified = rectified.then(|| output.clone());
                    operation.finish(State { x, weight, shape, rectified }, output)
                }
                OpsKind::UnTracked(operation) => operation.finish(output),
            }
        }
    }

    /// What the way back needs.
    #[derive(Clone, Debug)]
    struct State {
        x: FlexTensor,
        weight: FlexTensor,
        shape: Convolution,
        /// The output, if negative sums were made zero.
        rectified: Option<FlexTensor>,
    }

    #[derive(Debug)]
    struct Layer;

    /// The parents are the input, the weights and the bias.
    impl Backward<Flex, 3> for Layer {
        type State = State;

        fn backward(self, ops: Ops<State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
            let State { x, weight, shape, rectified } = ops.state;
            let mut gradient = gradients.consume::<Flex>(&ops.node).to_contiguous();
            if let Some(output) = rectified {
                gradient = writable(gradient);
                rectifier_gradient(gradient.storage_mut(), numbers(&output));
            }
            let gradient = numbers(&gradient);
            for (i, parent) in ops.parents.iter().enumerate() {
                let Some(parent) = parent else { continue };
                let result = match i {
                    0 => {
                        tensor(shape.input_gradient(gradient, numbers(&weight)), x.layout().shape().to_vec())
                    }
                    1 => {
                        tensor(shape.weight_gradient(numbers(&x), gradient), weight.layout().shape().to_vec())
                    }
                    _ => tensor(shape.bias_gradient(gradient), vec![shape.outputs]),
                };
                gradients.register::<Flex>(parent.id, result);
            }
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use burn::module::Module;
    use burn::nn::PaddingConfig2d;
    use burn::nn::conv::Conv2dConfig;
    use burn::tensor::{Device, TensorData, Tolerance};
    use proptest::prelude::*;

    use super::super::cpu_tensor::random;
    use super::*;
    use crate::random::{stream, uniform};

    /// A layer with weights from −1 to 1, with a bias or none.
    fn layer(
        channels: [usize; 2],
        size: [usize; 2],
        window: [[usize; 2]; 3],
        groups: usize,
        bias: bool,
    ) -> Conv2d {
        let [stride, padding, dilation] = window;
        let device = Device::flex().autodiff();
        let mut layer = Conv2dConfig::new(channels, size)
            .with_stride(stride)
            .with_padding(PaddingConfig2d::Explicit(padding[0], padding[1], padding[0], padding[1]))
            .with_dilation(dilation)
            .with_groups(groups)
            .with_bias(bias)
            .init(&device);
        let shape = layer.weight.val().dims();
        layer.weight = layer.weight.map(|_| random(shape, 1));
        layer.bias = layer.bias.map(|bias| bias.map(|_| random([channels[1]], 2)));
        layer
    }

    /// The output, and the gradients of the input, the weights and the bias.
    fn directions(layer: &Conv2d, x: &Tensor<4>, output: Tensor<4>) -> Vec<TensorData> {
        let value = (output.clone() * random(output.dims(), 3)).sum();
        let gradients = value.backward();
        let weight = layer.weight.val().grad(&gradients).expect("a gradient of the weights").into_data();
        let bias =
            layer.bias.as_ref().map(|bias| bias.val().grad(&gradients).expect("of the bias").into_data());
        let x = x.grad(&gradients).expect("a gradient of the input").into_data();
        [output.into_data(), x, weight].into_iter().chain(bias).collect()
    }

    fn agree(layer: &Conv2d, x: [usize; 4]) {
        let x = random(x, 4);
        for rectified in [false, true] {
            assert!(cpu::apply(layer, &x, rectified).is_some(), "our own convolution");
            let burn = layer.forward(x.clone());
            let burn = directions(layer, &x, if rectified { relu(burn) } else { burn });
            let own = directions(layer, &x, apply(layer, x.clone(), rectified));
            for (own, burn) in own.iter().zip(&burn) {
                own.assert_approx_eq::<f32>(burn, Tolerance::absolute(2e-4));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_direction_agrees_with_burn(
            (groups, inputs, outputs) in (1..4_usize, 1..5_usize, 1..12_usize),
            size in [1..4_usize, 1..4_usize],
            (stride, padding, dilation) in ([1..4_usize, 1..4_usize], [0..3_usize, 0..3_usize], [1..3_usize, 1..3_usize]),
            side in [1..10_usize, 1..10_usize],
            batch in 1..4_usize,
            bias in any::<bool>(),
        ) {
            prop_assume!((0..2).all(|i| side[i] + 2 * padding[i] > dilation[i] * (size[i] - 1)));
            let layer = layer([groups * inputs, groups * outputs], size, [stride, padding, dilation], groups, bias);
            agree(&layer, [batch, groups * inputs, side[0], side[1]]);
        }
    }

    #[test]
    fn what_is_not_finite_stays_where_burn_has_it() {
        let layer = layer([2, 9], [3, 3], [[1, 1], [1, 1], [1, 1]], 1, true).valid();
        let mut numbers = uniform(&mut stream(0, "test", &[]), 2 * 36, -1.0, 1.0);
        (numbers[7], numbers[50], numbers[71]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let x = Tensor::from_data(TensorData::new(numbers, [1, 2, 6, 6]), &Device::flex());
        let [own, burn] = [convolve(&layer, x.clone()), layer.forward(x)]
            .map(|output| output.into_data().try_to_vec::<f32>().unwrap());
        let kind = |numbers: Vec<f32>| -> Vec<_> {
            numbers.into_iter().map(|number| (number.is_nan(), number.is_infinite())).collect()
        };
        assert_eq!(kind(own), kind(burn));
    }

    #[test]
    fn a_gradient_that_is_part_of_a_larger_tensor_is_read_where_it_lies() {
        let layer = layer([3, 4], [3, 3], [[1, 1], [1, 1], [1, 1]], 1, true);
        let x = random([2, 3, 5, 5], 4);
        let twice =
            |output: Tensor<4>| Tensor::cat(vec![output.clone().swap_dims(2, 3), output], 1).narrow(1, 2, 4);
        let gradients = |output: Tensor<4>| {
            let output = twice(output);
            (output.clone() * random(output.dims(), 3)).sum().backward()
        };
        let own = gradients(convolve_rectified(&layer, x.clone()));
        let burn = gradients(relu(layer.forward(x.clone())));
        let [own, burn] = [own, burn].map(|gradients| x.grad(&gradients).unwrap().into_data());
        own.assert_approx_eq::<f32>(&burn, Tolerance::absolute(2e-4));
    }

    #[test]
    fn numbers_of_64_bits_are_left_to_burn() {
        let layer = layer([2, 3], [3, 3], [[1, 1], [0, 0], [1, 1]], 1, false);
        let x = random([1, 2, 5, 5], 4).cast(burn::tensor::DType::F64);
        assert!(cpu::apply(&layer, &x, false).is_none());
    }
}
