//! What plain Rust computes on the CPU in place of tensor operations: whether a device allows it, the numbers of a tensor,
//! and a result with a gradient.

use burn::tensor::{Device, Tensor};
use burn_backend::Backend;
use burn_dispatch::Dispatch;

/// Whether the tensors of this device are in the memory of the CPU: those of Burn's back end Flex.
///
/// A library has no feature of a back end, without which Burn does not let it name the type of a device. Every back end
/// tells its name.
pub(crate) fn is_cpu(device: &Device) -> bool {
    let device = device.clone().without_autodiff();
    Dispatch::name(device.as_dispatch()) == "dispatch<flex>"
}

/// The numbers of an f32 matrix, row by row.
pub(crate) fn numbers(matrix: &Tensor<2>) -> Vec<f32> {
    matrix.clone().without_autodiff().into_data().try_into_vec().expect("these are f32")
}

/// `value` with the gradient of `linear`. It is value + (linear − detach linear): the bracket is exactly 0.
pub(crate) fn with_gradient_of<const D: usize>(value: Tensor<D>, linear: Tensor<D>) -> Tensor<D> {
    value + (linear.clone() - linear.detach())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_end_for_the_cpu_is_recognised_with_and_without_autodiff() {
        assert!(is_cpu(&Device::flex()));
        assert!(is_cpu(&Device::flex().autodiff()));
        assert!(is_cpu(&Device::flex().autodiff().gradient_checkpointing()));
    }
}
