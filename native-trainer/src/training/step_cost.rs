//! What a training step of a backbone costs on this machine.

use std::time::Instant;

use akin_base::machine;
use akin_core::encoder::EncoderConfig;
use akin_core::image::Pixels;
use akin_core::models::BackboneConfig;
use anyhow::Result;
use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::dry_run::activations;
use crate::config::device::is_cpu;

/// The cost of a step of AdamW, all of whose images pass the network at once.
#[derive(Serialize, Deserialize)]
pub struct StepCost {
    /// The memory of weights, gradients, optimiser and activations, in bytes; none where the system does not tell it.
    pub memory: Option<u64>,
    /// The time; none if there is too little memory to measure it.
    pub seconds: Option<f64>,
}

/// Measures the cost of a step of `images` images, by a step of a few images. Their time and the memory of their
/// activations are multiplied up to `images`; the rest does not depend on the number of images. The memory is that of a
/// process that measured nothing before.
///
/// # Errors
///
/// A device that fails.
pub fn step_cost(config: &BackboneConfig, images: u64, device: &Device) -> Result<StepCost> {
    let preprocessing = config.preprocessing();
    let side = preprocessing.side();
    let encoder = EncoderConfig { backbone: config.clone(), pooling: None, head: None, preprocessing };
    // Weights, gradients, and the two means of AdamW.
    let fixed = 4 * 4 * encoder.absent(device)?.num_params() as u64;
    if machine::free_memory().is_some_and(|free| free < fixed + fixed / 2) {
        return Ok(StepCost { memory: Some(fixed), seconds: None });
    }
    let activations = activations(&encoder.absent(&Device::flex().autodiff())?);

    let device = device.clone().autodiff();
    let encoder = encoder.init(0, &device)?;
    let measured = if is_cpu(&device) { 2 } else { 8 };
    let picture = Pixels::new(side, side, vec![100; 3 * (side * side) as usize])?;
    let batch = encoder.batch(&vec![picture; measured], &device);
    // The first pass of a device may compile its kernels.
    for _ in 0..usize::from(!is_cpu(&device)) {
        encoder.features(batch.clone())?.sum().backward();
    }
    device.sync()?;
    let start = Instant::now();
    let mut gradients = encoder.features(batch)?.sum().backward();
    let gradients = GradientsParams::from_module(&mut gradients, &encoder.backbone);
    device.sync()?;
    let pass = start.elapsed().as_secs_f64();
    let mut optimizer: ModuleOptimizer = AdamWConfig::new().init();
    let start = Instant::now();
    drop(optimizer.step(1e-6, encoder.backbone, gradients));
    device.sync()?;
    let update = start.elapsed().as_secs_f64();
    Ok(StepCost {
        memory: activations.map(|each| fixed + each * images),
        seconds: Some(update + pass * images as f64 / measured as f64),
    })
}
