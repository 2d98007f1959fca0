//! Max-pooling: on the CPU that of `akin-layers`, forwards and backwards, and on other devices that of Burn.

use burn::tensor::Tensor;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;

/// The largest number of each window, [B, C, H, W] → [B, C, H′, W′].
pub(super) fn max_pool(x: Tensor<4>, options: MaxPoolOptions<2>) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(&x, &options) {
        return output;
    }
    max_pool2d(x, options)
}

#[cfg(feature = "cpu")]
mod cpu {
    use std::sync::Arc;

    use akin_layers::MaxPool;
    use burn::backend::{Backend, backend_extension, tensor::FloatTensor};
    use burn::tensor::ops::MaxPoolOptions;
    use burn::tensor::{DType, Tensor};
    use burn_autodiff::Autodiff;
    use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
    use burn_autodiff::grads::Gradients;
    use burn_autodiff::ops::{Backward, Ops, OpsKind, unary};
    use burn_dispatch::Dispatch;
    use burn_flex::{Flex, FlexTensor};

    use super::super::cpu_tensor::{numbers, tensor};
    use crate::host;

    /// The output for 32-bit floats in the memory of the CPU, and windows without gaps and with equal padding.
    pub(super) fn apply(x: &Tensor<4>, options: &MaxPoolOptions<2>) -> Option<Tensor<4>> {
        let [_, _, height, width] = x.dims();
        let MaxPoolOptions { kernel_size: size, stride, dilation: [1, 1], ceil_mode: ceil, .. } = *options
        else {
            return None;
        };
        let padding = options.padding.map(|(before, behind)| (before == behind).then_some(before));
        let shape =
            MaxPool { input: [height, width], size, stride, padding: [padding[0]?, padding[1]?], ceil };
        let fits = |i: usize| shape.padding[i] < size[i] && size[i] <= shape.input[i] + 2 * shape.padding[i];
        let ours = fits(0) && fits(1) && !x.dims().contains(&0) && x.dtype() == DType::F32;
        (ours && host::is_cpu(&x.device()))
            .then(|| Tensor::from_dispatch(<Dispatch as Pool>::pool(x.clone().into_dispatch(), shape)))
    }

    /// What Burn calls for the tensors of a device.
    #[backend_extension(Flex, Autodiff)]
    trait Pool: Backend {
        fn pool(x: FloatTensor<Self>, shape: MaxPool) -> FloatTensor<Self>;
    }

    /// The output, and the places of its numbers in the maps of the input.
    fn pool_with_places(x: &FlexTensor, shape: MaxPool) -> (FlexTensor, Vec<u32>) {
        let x = x.to_contiguous();
        let (output, places) = shape.forward(numbers(&x));
        let [height, width] = shape.output();
        let dims = x.layout().shape();
        (tensor(output, vec![dims[0], dims[1], height, width]), places)
    }

    impl Pool for Flex {
        fn pool(x: FlexTensor, shape: MaxPool) -> FlexTensor {
            pool_with_places(&x, shape).0
        }
    }

    impl<C: CheckpointStrategy> Pool for Autodiff<Flex, C> {
        fn pool(x: FloatTensor<Self>, shape: MaxPool) -> FloatTensor<Self> {
            let node = x.node();
            let x = x.into_primitive();
            let (output, places) = pool_with_places(&x, shape);
            match Layer.prepare::<C>([node]).compute_bound().stateful() {
                OpsKind::Tracked(operation) => {
                    let dims = x.layout().shape().to_vec();
                    operation.finish(State { shape, dims, places: places.into() }, output)
                }
                OpsKind::UnTracked(operation) => operation.finish(output),
            }
        }
    }

    /// What the way back needs.
    #[derive(Clone, Debug)]
    struct State {
        shape: MaxPool,
        dims: Vec<usize>,
        places: Arc<[u32]>,
    }

    #[derive(Debug)]
    struct Layer;

    impl Backward<Flex, 1> for Layer {
        type State = State;

        fn backward(self, ops: Ops<State, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
            let State { shape, dims, places } = ops.state;
            unary::<Flex, _>(ops.parents, ops.node, gradients, |gradient| {
                tensor(shape.input_gradient(numbers(&gradient.to_contiguous()), &places), dims)
            });
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    use super::*;

    /// Numbers of which several are equal.
    fn numbers(shape: [usize; 4]) -> Tensor<4> {
        let numbers: Vec<_> =
            (0..shape.iter().product()).map(|i: usize| ((i * 37 + 11) % 13) as f32 - 20.0).collect();
        Tensor::from_data(TensorData::new(numbers, shape), &Device::flex().autodiff()).require_grad()
    }

    proptest! {
        #[test]
        fn output_and_gradient_are_those_of_burn(
            side in [1..12_usize, 1..12_usize],
            size in [1..4_usize, 1..4_usize],
            stride in [1..4_usize, 1..4_usize],
            padding in [0..2_usize, 0..2_usize],
            ceil in any::<bool>(),
        ) {
            prop_assume!((0..2).all(|i| padding[i] < size[i] && size[i] <= side[i] + 2 * padding[i]));
            let options =
                MaxPoolOptions::new(size).with_stride(stride).with_padding(padding).with_ceil_mode(ceil);
            let x = numbers([2, 3, side[0], side[1]]);
            let own = cpu::apply(&x, &options).expect("our own pooling");
            let burn = max_pool2d(x.clone(), options);
            let gradient = |output: &Tensor<4>| {
                let gradients = (output.clone() * numbers(output.dims())).sum().backward();
                x.grad(&gradients).expect("a gradient").into_data()
            };
            prop_assert_eq!(gradient(&own), gradient(&burn));
            prop_assert_eq!(own.into_data(), burn.into_data());
        }
    }

    #[test]
    fn what_is_not_finite_is_treated_as_burn_treats_it() {
        let numbers =
            [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, 2.0, f32::INFINITY, 3.0, f32::NEG_INFINITY];
        let x = Tensor::<4>::from_data(TensorData::new(numbers.to_vec(), [1, 1, 1, 8]), &Device::flex());
        let options = || MaxPoolOptions::new([1, 2]).with_stride([1, 1]);
        let [own, burn] = [max_pool(x.clone(), options()), max_pool2d(x, options())]
            .map(|output| output.into_data().try_to_vec::<f32>().unwrap());
        let bits =
            |numbers: Vec<f32>| numbers.into_iter().map(|x| (x.is_nan(), x.max(-9.0))).collect::<Vec<_>>();
        assert_eq!(format!("{:?}", bits(own)), format!("{:?}", bits(burn)));
    }
}
