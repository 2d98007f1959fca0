//! Devices: the name in the config becomes a Burn device.

use anyhow::Result;
use burn::tensor::Device;

use crate::config::DeviceName;
use crate::problem::problem;

/// Opens the device of this name. `auto` takes the first that works: cuda, vulkan, wgpu, cpu.
///
/// # Errors
///
/// A back end that this `akin` was built without, or that does not work on this machine.
pub fn open(name: DeviceName) -> Result<Device> {
    let mut candidates = [DeviceName::Cuda, DeviceName::Vulkan, DeviceName::Wgpu, DeviceName::Cpu]
        .into_iter()
        .filter(|&candidate| name == candidate || name == DeviceName::Auto);
    match candidates.find_map(built_in) {
        Some(device) => Ok(device),
        _ if name == DeviceName::Auto => Err(problem(
            "none of the back ends in this build of akin works on this machine",
            "build akin with `cargo build --release`, which includes the back end for the CPU",
        )),
        _ if name == DeviceName::Cuda && cfg!(feature = "cuda") => Err(problem(
            "`--device cuda` needs an NVIDIA driver, and this machine has none",
            "install the driver, or choose another `--device`",
        )),
        _ => {
            let name = format!("{name:?}").to_lowercase();
            Err(problem(
                format!("this build of akin has no back end for `--device {name}`"),
                format!(
                    "build akin with `cargo build --release --features {name}`, or choose `--device cpu`"
                ),
            ))
        }
    }
}

/// The device of this name, if this build and this machine have it.
fn built_in(name: DeviceName) -> Option<Device> {
    match name {
        #[cfg(feature = "cuda")]
        DeviceName::Cuda => {
            // Without a driver the CUDA back end panics, so look for the driver first.
            let driver = ["/proc/driver/nvidia/version", "/dev/nvidia0", "/dev/dxg"];
            driver.iter().any(|path| std::path::Path::new(path).exists()).then(|| Device::cuda(0))
        }
        #[cfg(feature = "vulkan")]
        DeviceName::Vulkan => Some(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "wgpu")]
        DeviceName::Wgpu => Some(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "cpu")]
        DeviceName::Cpu => Some(Device::flex()),
        _ => None,
    }
}
