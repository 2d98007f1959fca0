//! Layers of `akin-layers` as operations of Burn on the CPU, forwards and backwards.

use std::fmt::Debug;
use std::sync::Arc;

use burn::backend::{Backend, DispatchTensor, backend_extension, tensor::FloatTensor};
use burn::tensor::{DType, Tensor, TensorData};
use burn_dispatch::Dispatch;
use burn_flex::{Flex, FlexTensor};

use crate::host;

/// What an operator reads: an input, then its weights. Where it reads fewer tensors, the last are without meaning.
pub(super) type Inputs<T> = [T; 5];

/// The gradients of an operator's first inputs.
pub(super) type Gradients = Vec<Option<FlexTensor>>;

/// A layer on the CPU. Its inputs are contiguous tensors of 32-bit floats.
pub(super) trait Operator: Debug + Send + Sync + 'static {
    /// The output, and the tensors that the way back needs.
    fn forward(&self, inputs: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>);

    /// The output alone, where nothing has gradients. It may be written over an input that nothing else uses.
    fn evaluate(&self, inputs: Inputs<FlexTensor>) -> FlexTensor {
        self.forward(inputs).0
    }

    /// The gradients of the inputs that are wanted, from the tensors that were kept and the contiguous gradient of the
    /// output.
    #[cfg_attr(not(feature = "autodiff"), expect(dead_code, reason = "nothing asks for gradients"))]
    fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, wanted: Inputs<bool>) -> Gradients;
}

/// Whether a tensor is one of 32-bit floats in the memory of the CPU, and not empty.
pub(super) fn fits<const D: usize>(x: &Tensor<D>) -> bool {
    x.dtype() == DType::F32 && !x.dims().contains(&0) && host::is_cpu(&x.device())
}

/// The output of an operator for tensors that [fit](fits).
pub(super) fn operate<const D: usize>(
    operator: impl Operator,
    inputs: impl IntoIterator<Item = DispatchTensor>,
) -> Tensor<D> {
    let mut inputs = inputs.into_iter().peekable();
    // Only the device is kept: an operator may write over an input that nothing else uses.
    let device = inputs.peek().map(|first| Tensor::<D>::from_dispatch(first.clone()).device());
    // An operation of Burn's cannot leave out a tensor.
    let unused = || match &device {
        Some(device) => Tensor::<1>::zeros([1], device).into_dispatch(),
        None => unreachable!("an operator has an input"),
    };
    let [a, b, c, d, e] = std::array::from_fn(|_| inputs.next().unwrap_or_else(unused));
    Tensor::from_dispatch(<Dispatch as Operate>::operate(a, b, c, d, e, Arc::new(operator)))
}

/// What Burn calls for the tensors of a device. Its macro reads no arrays.
#[cfg_attr(feature = "autodiff", backend_extension(Flex, Autodiff))]
#[cfg_attr(not(feature = "autodiff"), backend_extension(Flex))]
trait Operate: Backend {
    fn operate(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        operator: Arc<dyn Operator>,
    ) -> FloatTensor<Self>;
}

impl Operate for Flex {
    fn operate(
        a: FlexTensor,
        b: FlexTensor,
        c: FlexTensor,
        d: FlexTensor,
        e: FlexTensor,
        operator: Arc<dyn Operator>,
    ) -> FlexTensor {
        operator.evaluate([a, b, c, d, e].map(|tensor| tensor.to_contiguous()))
    }
}

#[cfg(feature = "autodiff")]
mod backward {
    use burn_autodiff::Autodiff;
    use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
    use burn_autodiff::grads;
    use burn_autodiff::ops::{Backward, Ops, OpsKind};

    use super::*;

    impl<C: CheckpointStrategy> Operate for Autodiff<Flex, C> {
        fn operate(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            c: FloatTensor<Self>,
            d: FloatTensor<Self>,
            e: FloatTensor<Self>,
            operator: Arc<dyn Operator>,
        ) -> FloatTensor<Self> {
            let nodes = [a.node(), b.node(), c.node(), d.node(), e.node()];
            let inputs = [a, b, c, d, e].map(|tensor| tensor.into_primitive().to_contiguous());
            match Operation.prepare::<C>(nodes).compute_bound().stateful() {
                OpsKind::Tracked(operation) => {
                    let (output, kept) = operator.forward(inputs);
                    operation.finish(State { operator, kept }, output)
                }
                OpsKind::UnTracked(operation) => operation.finish(operator.evaluate(inputs)),
            }
        }
    }

    /// What the way back needs.
    #[derive(Clone, Debug)]
    struct State {
        operator: Arc<dyn Operator>,
        kept: Vec<FlexTensor>,
    }

    #[derive(Debug)]
    struct Operation;

    impl Backward<Flex, 5> for Operation {
        type State = State;

        fn backward(self, ops: Ops<State, 5>, gradients: &mut grads::Gradients, _: &mut Checkpointer) {
            let gradient = gradients.consume::<Flex>(&ops.node).to_contiguous();
            let wanted = ops.parents.each_ref().map(Option::is_some);
            let results = ops.state.operator.backward(ops.state.kept, gradient, wanted);
            for (parent, result) in ops.parents.into_iter().zip(results) {
                if let (Some(parent), Some(result)) = (parent, result) {
                    gradients.register::<Flex>(parent.id, result);
                }
            }
        }
    }
}

/// The numbers of a contiguous tensor of 32-bit floats.
///
/// # Panics
///
/// For any other tensor.
pub(super) fn numbers(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("contiguous 32-bit floats")
}

/// A tensor of 32-bit floats.
pub(super) fn tensor(numbers: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(numbers, shape))
}

/// The shape of a tensor.
pub(super) fn shape(tensor: &FlexTensor) -> &[usize] {
    tensor.layout().shape()
}

/// A contiguous tensor after its numbers were written over. One that is part of a larger tensor is copied before.
pub(super) fn written(mut tensor: FlexTensor, write: impl FnOnce(&mut [f32])) -> FlexTensor {
    if tensor.storage::<f32>().len() != numbers(&tensor).len() {
        tensor = self::tensor(numbers(&tensor).to_vec(), shape(&tensor));
    }
    write(tensor.storage_mut());
    tensor
}

/// Numbers from −1 to 1 that have gradients, for tests.
#[cfg(test)]
pub(super) fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut stream = crate::random::stream(seed, "test", &[]);
    let numbers = crate::random::uniform(&mut stream, shape.iter().product(), -1.0, 1.0);
    let device = burn::tensor::Device::flex().autodiff();
    Tensor::from_data(TensorData::new(numbers, shape), &device).require_grad()
}

/// Asserts that two computations have the same output, and the same gradient of their input.
#[cfg(test)]
pub(super) fn assert_agree<const D: usize, const E: usize>(
    x: [usize; D],
    own: impl FnOnce(Tensor<D>) -> Tensor<E>,
    burn: impl FnOnce(Tensor<D>) -> Tensor<E>,
) {
    let tolerance = burn::tensor::Tolerance::<f32>::absolute(2e-5);
    let x = random(x, 4);
    let results = |output: Tensor<E>| {
        let gradients = (output.clone() * random(output.dims(), 3)).sum().backward();
        [output.into_data(), x.grad(&gradients).expect("a gradient of the input").into_data()]
    };
    let (own, burn) = (results(own(x.clone())), results(burn(x.clone())));
    own.iter().zip(&burn).for_each(|(own, burn)| own.assert_approx_eq(burn, tolerance));
}

/// Asserts that two computations of what is not finite give numbers of the same kinds, forwards and backwards: none, infinite
/// or finite.
#[cfg(test)]
pub(super) fn assert_same_kinds<const D: usize, const E: usize>(
    x: [usize; D],
    own: impl Fn(Tensor<D>) -> Tensor<E>,
    burn: impl Fn(Tensor<D>) -> Tensor<E>,
) {
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut numbers = random(x, 4).into_data().try_to_vec::<f32>().expect("32-bit floats");
        let middle = numbers.len() / 2;
        numbers[middle] = number;
        let device = burn::tensor::Device::flex().autodiff();
        let x = Tensor::<D>::from_data(TensorData::new(numbers, x), &device).require_grad();
        let kinds = |output: Tensor<E>| {
            let gradients = (output.clone() * random(output.dims(), 3)).sum().backward();
            let gradient = x.grad(&gradients).expect("a gradient of the input").into_data();
            [output.into_data(), gradient].map(|data| -> Vec<_> {
                let numbers = data.try_to_vec::<f32>().expect("32-bit floats");
                numbers.into_iter().map(|number| (number.is_nan(), number.is_infinite())).collect()
            })
        };
        assert_eq!(kinds(own(x.clone())), kinds(burn(x.clone())), "{number}");
    }
}
