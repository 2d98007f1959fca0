//! The graphics device: opened here through wgpu, and shared by the tensors and the map.

use akin_bridge::{Result, thrown};
use burn::tensor::Device;
use burn::tensor::wgpu::WgpuSetup;
use burn::tensor::wgpu::wgpu;
use js_sys::{Function, Reflect};
use wasm_bindgen::prelude::*;

use crate::messages::Adapter;

/// What CubeCL cannot do without in a browser: it measures kernels, and panics without timestamps.
const NEEDED: wgpu::Features = wgpu::Features::TIMESTAMP_QUERY;

/// A device of WebGPU, with the tensors' device on it.
pub(crate) struct Graphics {
    pub(crate) tensors: Device,
    pub(crate) setup: WgpuSetup,
}

impl Graphics {
    /// Opens a device with the limits and the features that the adapter has. `on_lost(reason)` runs if the device is
    /// lost.
    ///
    /// # Errors
    ///
    /// The browser has no WebGPU or no adapter, the adapter lacks what the tensors need, or it gives no device.
    pub(crate) async fn open(on_lost: Function) -> Result<Self> {
        if !browser_has_webgpu() {
            return Err(unusable(
                "this browser does not offer WebGPU here".to_owned(),
                "open the page over HTTPS or from localhost in a browser with WebGPU, or compute on the CPU, with ?backend=cpu",
            ));
        }
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::BROWSER_WEBGPU,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = instance.request_adapter(&options).await.map_err(|_| {
            unusable("the browser found no graphics adapter for WebGPU".to_owned(), USE_THE_CPU)
        })?;
        let features = adapter.features();
        if !features.contains(NEEDED) {
            return Err(unusable(
                "the graphics adapter lacks the feature timestamp-query, which the computation needs"
                    .to_owned(),
                USE_THE_CPU,
            ));
        }
        let descriptor = wgpu::DeviceDescriptor {
            // CubeCL computes with whatever the adapter has.
            required_features: features.difference(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
            required_limits: adapter.limits(),
            // CubeCL makes few large buffers and divides them itself.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(|error| {
            unusable(format!("the graphics adapter gave no device: {error}"), USE_THE_CPU)
        })?;
        let backend = wgpu::Backend::BrowserWebGpu;
        let setup = WgpuSetup { instance, adapter, device, queue, backend };
        let tensors = Device::wgpu_options()
            .setup(setup.clone())
            .init()
            .map_err(|error| unusable(format!("WebGPU did not start: {error}"), USE_THE_CPU))?;
        setup.device.set_device_lost_callback(move |_, message| {
            // A page that throws in its own callback hears of it by itself.
            let _ = on_lost.call1(&JsValue::UNDEFINED, &message.into());
        });
        Ok(Self { tensors, setup })
    }

    pub(crate) fn adapter(&self) -> Adapter {
        let WgpuSetup { adapter, device, .. } = &self.setup;
        let info = adapter.get_info();
        let limits = device.limits();
        Adapter {
            name: if info.name.is_empty() { maker(device) } else { info.name },
            software: info.device_type == wgpu::DeviceType::Cpu,
            largest_buffer: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            half_precision: device.features().contains(wgpu::Features::SHADER_F16),
        }
    }
}

const USE_THE_CPU: &str = "compute on the CPU, with ?backend=cpu";

/// A failure of WebGPU.
pub(crate) fn unusable(message: String, hint: &str) -> JsValue {
    thrown(akin_core::Error::new(akin_core::Kind::Device, message, hint))
}

fn browser_has_webgpu() -> bool {
    let gpu = Reflect::get(&js_sys::global(), &"navigator".into())
        .and_then(|navigator| Reflect::get(&navigator, &"gpu".into()));
    gpu.is_ok_and(|gpu| gpu.is_object())
}

/// Vendor and architecture, which wgpu does not pass on. Most browsers tell no more of an adapter.
fn maker(device: &wgpu::Device) -> String {
    let Some(device) = device.as_webgpu() else { return String::new() };
    let Ok(info) = Reflect::get(device.as_ref(), &"adapterInfo".into()) else { return String::new() };
    let word = |name: &str| Reflect::get(&info, &name.into()).ok()?.as_string();
    let words = ["vendor", "architecture"].into_iter().filter_map(word).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
