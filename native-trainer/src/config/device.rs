//! Devices: the name in the config becomes a Burn device.

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_core::pair_sums::PairSums;
use anyhow::Result;
#[cfg(any(feature = "cuda", feature = "vulkan", feature = "wgpu"))]
use burn::tensor::DeviceType;
use burn::tensor::{Device, ExecutionError, Tensor};

use crate::config::{DeviceName, setting_name};

/// The back ends, in the order in which `auto` tries them.
pub const BACK_ENDS: [DeviceName; 4] =
    [DeviceName::Cuda, DeviceName::Vulkan, DeviceName::Wgpu, DeviceName::Cpu];

/// Opens the device of this name. `auto` takes the first that works: cuda, vulkan, wgpu, cpu.
///
/// # Errors
///
/// A back end that this `akin` was built without, or that does not work on this machine.
pub fn open(name: DeviceName) -> Result<Device> {
    let mut candidates =
        BACK_ENDS.into_iter().filter(|&candidate| name == candidate || name == DeviceName::Auto);
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
        _ => Err(not_built_in(name)),
    }
}

fn not_built_in(name: DeviceName) -> anyhow::Error {
    let name = setting_name(name);
    problem(
        format!("this build of akin has no back end for `--device {name}`"),
        format!("build akin with `cargo build --release --features {name}`, or choose `--device cpu`"),
    )
}

/// Opens the GPU of this name to add up for the scores of evaluations; none for the CPU, which does it by itself. `auto`
/// takes the first that is likely to be quicker than the CPU.
///
/// # Errors
///
/// A back end that this `akin` was built without or that this machine has no GPU for, and a GPU that does not add up
/// as the CPU does.
pub fn open_pair_sums(name: DeviceName) -> Result<Option<Box<dyn PairSums>>> {
    match name {
        DeviceName::Cpu => Ok(None),
        DeviceName::Auto => Ok(BACK_ENDS.into_iter().find_map(quick_gpu_sums)),
        _ if !is_built_in(name) => Err(not_built_in(name)),
        _ => match gpu_sums(name) {
            Some(gpu) => gpu.map(Some),
            None => Err(problem(
                format!("this machine has no GPU for `--device {}`", setting_name(name)),
                "install the driver of the GPU, or choose another `--device`",
            )),
        },
    }
}

/// This device to add up for the scores of evaluations, if it is a GPU that is likely to be quicker than the CPU and adds
/// up as it does.
pub fn pair_sums(device: &Device) -> Option<Box<dyn PairSums>> {
    // The other back ends need not work on this machine.
    if is_cpu(device) {
        return None;
    }
    let name = BACK_ENDS.into_iter().find(|&name| built_in(name).as_ref() == Some(device))?;
    quick_gpu_sums(name)
}

/// The GPU of a back end, if there is one that adds up as the CPU does and is likely to be quicker.
fn quick_gpu_sums(name: DeviceName) -> Option<Box<dyn PairSums>> {
    gpu_sums(name)?.ok().filter(|gpu| gpu.is_quick())
}

/// The GPU of a back end, if this build and this machine have it.
fn gpu_sums(name: DeviceName) -> Option<Result<Box<dyn PairSums>>> {
    #[cfg(any(feature = "cuda", feature = "vulkan", feature = "wgpu"))]
    {
        use akin_pair_sums::{Device, GpuSums};
        let device = match name {
            DeviceName::Cuda => Device::cuda(0).ok()?,
            DeviceName::Vulkan => Device::vulkan(Default::default()).ok()?,
            DeviceName::Wgpu => Device::wgpu(Default::default()).ok()?,
            DeviceName::Cpu | DeviceName::Auto => return None,
        };
        Some(GpuSums::open(&device).map(|gpu| Box::new(gpu) as _).map_err(Into::into))
    }
    #[cfg(not(any(feature = "cuda", feature = "vulkan", feature = "wgpu")))]
    {
        let _ = name;
        None
    }
}

/// Opens the devices that share the batches of a training. A single one is that of [`open`].
///
/// # Errors
///
/// As [`open`]; fewer devices than workers.
pub fn open_workers(name: DeviceName, workers: usize) -> Result<Vec<Device>> {
    let device = open(name)?;
    if workers == 1 {
        return Ok(vec![device]);
    }
    if is_cpu(&device) {
        return Ok(vec![device; workers]);
    }
    let mut devices = gpus(name);
    if devices.len() < workers {
        let found = counted(devices.len(), "device", "devices");
        return Err(problem(
            format!(
                "run.workers is {workers}, but this machine has only {found} for `--device {}`",
                setting_name(name)
            ),
            match devices.len() {
                0 | 1 => "remove run.workers, or choose another `--device`".to_owned(),
                count => format!("set run.workers to {count} or less, or choose another `--device`"),
            },
        ));
    }
    devices.truncate(workers);
    Ok(devices)
}

/// Whether a device is the CPU.
pub fn is_cpu(device: &Device) -> bool {
    *device == Device::flex()
}

/// The words of a back end in an error that says that a device has too little memory; none for any other error. Only errors
/// of a back end are searched, because other errors may name files.
pub fn out_of_memory(error: &anyhow::Error) -> Option<String> {
    let errors = error.chain().filter_map(|cause| cause.downcast_ref::<ExecutionError>());
    errors.map(ToString::to_string).find(|words| is_out_of_memory(words))
}

/// Whether these words of a back end say that a device has too little memory.
pub fn is_out_of_memory(words: &str) -> bool {
    const SIGNS: [&str; 4] =
        ["out of device memory", "out-of-memory", "out of memory", "can't allocate buffer of size"];
    SIGNS.iter().any(|sign| words.contains(sign))
}

/// The GPUs of a back end; for `auto` those of the first that works.
fn gpus(name: DeviceName) -> Vec<Device> {
    match name {
        DeviceName::Auto => {
            let works = |candidate: &DeviceName| built_in(*candidate).is_some();
            BACK_ENDS.into_iter().find(works).map(gpus).unwrap_or_default()
        }
        #[cfg(feature = "cuda")]
        DeviceName::Cuda => Device::enumerate(DeviceType::Cuda).into_iter().collect(),
        #[cfg(feature = "vulkan")]
        DeviceName::Vulkan => Device::enumerate(DeviceType::Vulkan).into_iter().collect(),
        #[cfg(feature = "wgpu")]
        DeviceName::Wgpu => Device::enumerate(DeviceType::Wgpu).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether a back end for GPUs is in this build, and finds one.
pub fn has_gpu() -> bool {
    BACK_ENDS.into_iter().any(|name| name != DeviceName::Cpu && built_in(name).is_some())
}

/// Whether this build has the back end of this name.
pub fn is_built_in(name: DeviceName) -> bool {
    match name {
        DeviceName::Auto => true,
        DeviceName::Cuda => cfg!(feature = "cuda"),
        DeviceName::Vulkan => cfg!(feature = "vulkan"),
        DeviceName::Wgpu => cfg!(feature = "wgpu"),
        DeviceName::Cpu => cfg!(feature = "cpu"),
    }
}

/// Computes something small on a device, and returns what the back end calls the device.
///
/// A back end without a driver or an adapter may panic, or never answer. Callers that must not are in a process of
/// their own.
///
/// # Errors
///
/// The errors of [`open`], and a wrong result.
pub fn try_out(name: DeviceName) -> Result<String> {
    let device = open(name)?;
    let ones = Tensor::<2>::ones([8, 8], &device);
    let sum = ones.clone().matmul(ones).sum().into_data().iter::<f32>().next();
    if sum != Some(512.0) {
        return Err(problem(
            format!("the back end computes wrong numbers: {sum:?} instead of 512"),
            "choose another `--device`, and update the driver of the GPU",
        ));
    }
    Ok(plain_name(&device))
}

/// What a device is called: `CPU`, or the name that a GPU has.
pub fn plain_name(device: &Device) -> String {
    if is_cpu(device) {
        return "CPU".into();
    }
    #[cfg(any(feature = "cuda", feature = "vulkan", feature = "wgpu"))]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    format!("{device:?}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_back_end_can_say_that_its_device_has_too_little_memory() {
        let words = "the file out of memory/a.png cannot be read";
        assert_eq!(out_of_memory(&problem(words, "look at it")), None);
        let failed = |reason: &str| anyhow::Error::new(ExecutionError::WithContext { reason: reason.into() });
        let said = out_of_memory(&failed("CUDA_ERROR: out of memory").context("step 3"));
        assert!(said.is_some_and(|words| words.contains("CUDA_ERROR: out of memory")));
        assert_eq!(out_of_memory(&failed("no such kernel")), None);
    }
}
