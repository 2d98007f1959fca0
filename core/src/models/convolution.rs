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
    use burn::tensor::{DType, Tensor, TensorData};
    use burn_autodiff::Autodiff;
    use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
    use burn_autodiff::grads::Gradients;
    use burn_autodiff::ops::{Backward, Ops, OpsKind};
    use burn_dispatch::Dispatch;
    use burn_flex::{Flex, FlexTensor};

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
                let output = numbers(&output);
                // A view of a larger tensor cannot be written to alone.
                if gradient.storage::<f32>().len() != output.len() {
                    gradient = tensor(numbers(&gradient).to_vec(), gradient.layout().shape().to_vec());
                }
                rectifier_gradient(gradient.storage_mut(), output);
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

    /// The numbers of a contiguous tensor of 32-bit floats.
    fn numbers(tensor: &FlexTensor) -> &[f32] {
        tensor.as_slice().expect("contiguous 32-bit floats")
    }

    fn tensor(numbers: Vec<f32>, shape: Vec<usize>) -> FlexTensor {
        FlexTensor::from_data(TensorData::new(numbers, shape))
    }
}
