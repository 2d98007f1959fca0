//! Whether numbers of a tensor can be computed in plain Rust without a trip between devices.

use burn::tensor::Device;
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
