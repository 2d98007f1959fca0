//! The numbers of tensors that are in the memory of the CPU.

use burn::tensor::TensorData;
use burn_flex::FlexTensor;

/// The numbers of a contiguous tensor of 32-bit floats.
///
/// # Panics
///
/// For any other tensor.
pub(super) fn numbers(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("contiguous 32-bit floats")
}

/// A tensor of 32-bit floats.
pub(super) fn tensor(numbers: Vec<f32>, shape: Vec<usize>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(numbers, shape))
}

/// The same tensor of 32-bit floats with memory of its own size, so that its numbers can be written over.
pub(super) fn writable(tensor: FlexTensor) -> FlexTensor {
    let tensor = tensor.to_contiguous();
    if tensor.storage::<f32>().len() == numbers(&tensor).len() {
        return tensor;
    }
    self::tensor(numbers(&tensor).to_vec(), tensor.layout().shape().to_vec())
}

/// Numbers from −1 to 1 that have gradients, for tests.
#[cfg(test)]
pub(super) fn random<const D: usize>(shape: [usize; D], seed: u64) -> burn::tensor::Tensor<D> {
    let mut stream = crate::random::stream(seed, "test", &[]);
    let numbers = crate::random::uniform(&mut stream, shape.iter().product(), -1.0, 1.0);
    let device = burn::tensor::Device::flex().autodiff();
    burn::tensor::Tensor::from_data(TensorData::new(numbers, shape), &device).require_grad()
}
