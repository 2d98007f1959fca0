//! Where tensors are computed: a name from the config becomes a Burn device.

use anyhow::Result;
use burn::tensor::Device;

use crate::config::DeviceName;
use crate::problem::problem;

/// The device of this name.
///
/// # Errors
///
/// A back end that this `akin` was built without, or no back end at all.
pub fn open(name: DeviceName) -> Result<Device> {
    let mut candidates = [DeviceName::Cuda, DeviceName::Vulkan, DeviceName::Wgpu, DeviceName::Cpu]
        .into_iter()
        .filter(|&candidate| name == candidate || name == DeviceName::Auto);
    match candidates.find_map(built_in) {
        Some(device) => Ok(device),
        _ if name == DeviceName::Auto => Err(problem(
            "no back end that this akin was built with works here",
            "build it with `cargo build --release`, which brings the one for the processor",
        )),
        _ if name == DeviceName::Cuda && cfg!(feature = "cuda") => Err(problem(
            "there is no Nvidia driver here, which `--device cuda` needs",
            "install the driver, or use another `--device`",
        )),
        _ => {
            let name = format!("{name:?}").to_lowercase();
            Err(problem(
                format!("this akin was built without the back end for `--device {name}`"),
                format!("build it with `cargo build --release --features {name}`, or use `--device cpu`"),
            ))
        }
    }
}

/// A device of this name, if it was built in and is there.
fn built_in(name: DeviceName) -> Option<Device> {
    match name {
        #[cfg(feature = "cuda")]
        DeviceName::Cuda => {
            // Without a driver the CUDA back end panics; the driver's library tells beforehand.
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
