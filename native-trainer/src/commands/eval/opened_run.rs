//! The device, the encoder and the data set with which a run is evaluated.

use akin_core::encoder::Encoder;
use anyhow::Result;
use burn::tensor::Device;

use crate::config::DeviceName;
use crate::config::device;
use crate::data::Dataset;
use crate::runs::run::{Run, Which};

/// The device, the encoder and the data set of a run.
pub struct OpenedRun {
    /// The device that tensors are computed on.
    pub device: Device,
    /// The encoder to evaluate.
    pub encoder: Encoder,
    /// The data set with its evaluation splits.
    pub dataset: Dataset,
}

impl OpenedRun {
    /// Opens the encoder and the data set of a run. With `untrained` the encoder is the backbone that training started
    /// from, without a head. `device` replaces the device of the run.
    ///
    /// # Errors
    ///
    /// An encoder or a data set that cannot be read.
    pub fn open(run: &Run, which: Which, untrained: bool, device: Option<DeviceName>) -> Result<Self> {
        let device = device::open(device.unwrap_or(run.config.run.device))?;
        let encoder = if untrained { run.untrained(&device)? } else { run.encoder(which, &device)? };
        let dataset = Dataset::load_to_evaluate(&run.config.selection())?;
        Ok(Self { device, encoder, dataset })
    }
}
