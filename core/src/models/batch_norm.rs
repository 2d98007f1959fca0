//! Batch normalisation with a rectifier behind it or none: live on the CPU that of `akin-layers`, forwards and backwards,
//! and otherwise that of Burn.

use burn::nn::BatchNorm;
use burn::tensor::{Tensor, activation::relu};

/// Batch normalisation in the precision of its weights. The output has the precision of the input.
pub(super) fn normalise(layer: &BatchNorm, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, false)
}

/// The same, with what is negative made zero.
pub(super) fn normalise_rectified(layer: &BatchNorm, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, true)
}

fn apply(layer: &BatchNorm, x: Tensor<4>, rectified: bool) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, &x, rectified) {
        return output;
    }
    let (own, outer) = (layer.gamma.val().dtype(), x.dtype());
    let output = layer.forward(x.cast(own)).cast(outer);
    if rectified { relu(output) } else { output }
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers::{self as layers, Normalised};
    use burn::backend::{Backend, backend_extension, tensor::FloatTensor};
    use burn::nn::BatchNorm;
    use burn::tensor::{DType, Tensor};
    use burn_autodiff::Autodiff;
    use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
    use burn_autodiff::grads::Gradients;
    use burn_autodiff::ops::{Backward, Ops, OpsKind};
    use burn_dispatch::Dispatch;
    use burn_flex::{Flex, FlexTensor};

    use super::super::cpu_tensor::{numbers, tensor, writable};
    use crate::host;

    /// The output of a layer that learns, if it is one of 32-bit floats in the memory of the CPU. The running mean and
    /// variance follow those of the batch.
    pub(super) fn apply(layer: &BatchNorm, x: &Tensor<4>, rectified: bool) -> Option<Tensor<4>> {
        let device = x.device();
        let (gamma, beta) = (layer.gamma.val(), layer.beta.val());
        let single = [x.dtype(), gamma.dtype(), beta.dtype()].iter().all(|&number| number == DType::F32);
        let lives = device.is_autodiff() && layer.training.is_enabled();
        if !single || !lives || x.dims().contains(&0) || !host::is_cpu(&device) {
            return None;
        }
        let [x, gamma, beta] = [x.clone().into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()];
        let (output, mean, variance) =
            <Dispatch as Normalise>::normalise(x, gamma, beta, layer.epsilon as f32, rectified);
        for (running, batch) in [(&layer.running_mean, mean), (&layer.running_var, variance)] {
            let batch = Tensor::<1>::from_dispatch(batch).detach();
            let kept = running.value_sync().to_device(&device).mul_scalar(1.0 - layer.momentum);
            running.update(kept.add(batch.mul_scalar(layer.momentum)).detach());
        }
        Some(Tensor::from_dispatch(output))
    }

    /// What Burn calls for the tensors of a device: the output, and the mean and variance of the batch.
    #[backend_extension(Flex, Autodiff)]
    trait Normalise: Backend {
        fn normalise(
            x: FloatTensor<Self>,
            gamma: FloatTensor<Self>,
            beta: FloatTensor<Self>,
            epsilon: f32,
            rectified: bool,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
    }

    impl Normalise for Flex {
        fn normalise(
            x: FlexTensor,
            gamma: FlexTensor,
            beta: FlexTensor,
            epsilon: f32,
            rectified: bool,
        ) -> (FlexTensor, FlexTensor, FlexTensor) {
            let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.to_contiguous());
            let Normalised { output, mean, variance } =
                layer(&x, &gamma, &beta, epsilon, rectified).forward(numbers(&x));
            let channels = vec![mean.len()];
            (
                tensor(output, x.layout().shape().to_vec()),
                tensor(mean, channels.clone()),
                tensor(variance, channels),
            )
        }
    }

    fn layer<'a>(
        x: &FlexTensor,
        gamma: &'a FlexTensor,
        beta: &'a FlexTensor,
        epsilon: f32,
        rectified: bool,
    ) -> layers::BatchNorm<'a> {
        let positions = x.layout().shape()[2..].iter().product();
        layers::BatchNorm { gamma: numbers(gamma), beta: numbers(beta), epsilon, positions, rectified }
    }

    impl<C: CheckpointStrategy> Normalise for Autodiff<Flex, C> {
        fn normalise(
            x: FloatTensor<Self>,
            gamma: FloatTensor<Self>,
            beta: FloatTensor<Self>,
            epsilon: f32,
            rectified: bool,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
            let nodes = [x.node(), gamma.node(), beta.node()];
            let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.into_primitive().to_contiguous());
            let (output, mean, variance) =
                Flex::normalise(x.clone(), gamma.clone(), beta.clone(), epsilon, rectified);
            let output = match Layer.prepare::<C>(nodes).compute_bound().stateful() {
                OpsKind::Tracked(operation) => {
                    let moments = [mean.clone(), variance.clone()];
                    operation.finish(State { x, gamma, beta, moments, epsilon, rectified }, output)
                }
                OpsKind::UnTracked(operation) => operation.finish(output),
            };
            (output, <FloatTensor<Self>>::new(mean), <FloatTensor<Self>>::new(variance))
        }
    }

    /// What the way back needs.
    #[derive(Clone, Debug)]
    struct State {
        x: FlexTensor,
        gamma: FlexTensor,
        beta: FlexTensor,
        /// The mean and the variance of the batch.
        moments: [FlexTensor; 2],
        epsilon: f32,
        rectified: bool,
    }

    #[derive(Debug)]
    struct Layer;

    /// The parents are the input, γ and β.
    impl Backward<Flex, 3> for Layer {
        type State = State;

        fn backward(self, ops: Ops<State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
            let State { x, gamma, beta, moments, epsilon, rectified } = ops.state;
            let mut gradient = writable(gradients.consume::<Flex>(&ops.node));
            let [mean, variance] = [&moments[0], &moments[1]].map(numbers);
            let layer = layer(&x, &gamma, &beta, epsilon, rectified);
            let weights = layer.gradient(numbers(&x), [mean, variance], gradient.storage_mut());
            let [by_gamma, by_beta] = weights.map(|numbers| {
                let channels = vec![numbers.len()];
                tensor(numbers, channels)
            });
            for (parent, result) in ops.parents.into_iter().zip([gradient, by_gamma, by_beta]) {
                if let Some(parent) = parent {
                    gradients.register::<Flex>(parent.id, result);
                }
            }
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use burn::nn::BatchNormConfig;
    use burn::tensor::{Device, TensorData, Tolerance};

    use super::super::cpu_tensor::random;
    use super::*;

    fn layer(channels: usize) -> BatchNorm {
        let mut layer = BatchNormConfig::new(channels).init(&Device::flex().autodiff());
        layer.gamma = layer.gamma.map(|_| random([channels], 1));
        layer.beta = layer.beta.map(|_| random([channels], 2));
        layer
    }

    /// The output, the running mean and variance after it, and the gradients of the input, γ and β.
    fn results(
        output: impl FnOnce(&BatchNorm, Tensor<4>) -> Tensor<4>,
        shape: [usize; 4],
    ) -> Vec<TensorData> {
        let layer = layer(shape[1]);
        let x = random(shape, 3);
        let output = output(&layer, x.clone() * 3.0 + 5.0);
        let gradients = (output.clone() * random(shape, 4)).sum().backward();
        let weight = |weight: Tensor<1>| weight.grad(&gradients).expect("a gradient").into_data();
        vec![
            output.into_data(),
            layer.running_mean.value_sync().into_data(),
            layer.running_var.value_sync().into_data(),
            x.grad(&gradients).expect("a gradient").into_data(),
            weight(layer.gamma.val()),
            weight(layer.beta.val()),
        ]
    }

    #[test]
    fn output_statistics_and_gradients_agree_with_burn() {
        for shape in [[4, 3, 5, 7], [2, 1, 1, 1], [1, 40, 6, 6], [9, 5, 33, 2], [3, 2, 1, 64]] {
            for rectified in [false, true] {
                assert!(
                    cpu::apply(&layer(shape[1]), &random(shape, 3), rectified).is_some(),
                    "our own layer"
                );
                let own = results(|layer, x| apply(layer, x, rectified), shape);
                let burn = results(
                    |layer, x| {
                        let output = layer.forward(x);
                        if rectified { relu(output) } else { output }
                    },
                    shape,
                );
                for (own, burn) in own.iter().zip(&burn) {
                    own.assert_approx_eq::<f32>(burn, Tolerance::absolute(5e-4));
                }
            }
        }
    }

    #[test]
    fn a_frozen_layer_and_one_that_does_not_learn_are_left_to_burn() {
        use burn::module::Module;
        let x = random([2, 3, 4, 4], 3);
        assert!(cpu::apply(&layer(3).freeze(), &x, false).is_none());
        assert!(cpu::apply(&layer(3).valid(), &x.without_autodiff(), false).is_none());
    }
}
