//! A checkpoint: everything that a run needs to continue the very same sequence, in one file.
//!
//! It is a [sealed](akin_base::sealed) file. A new checkpoint replaces the previous one only when it is complete and on disk.

use std::io::Write;
use std::path::Path;

use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_base::sealed::{self, Flaw, Format};
use akin_core::encoder::{Encoder, Precision};
use akin_core::losses::Loss;
use anyhow::{Context, Result, anyhow};
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Int, Tensor};
use serde::{Deserialize, Serialize};

use crate::config::OptimizerConfig;
use crate::data::DataDigest;
use crate::training::average::Average;
use crate::training::loss_scale::LossScale;
use crate::training::optimizer::Optimizers;
use crate::training::trend::Trend;

const FORMAT: Format = Format { name: "akin-checkpoint", version: 4 };
const PARTS: [&str; 6] =
    ["encoder", "loss", "optimizer-backbone", "optimizer-head", "optimizer-proxies", "average"];

/// What a training was begun with. A resumed training must have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The resolved config as TOML.
    pub config: String,
    /// The digest of the data set.
    pub data: DataDigest,
}

/// The state of a run after `step` steps.
pub struct Checkpoint {
    /// Steps done.
    pub step: usize,
    /// What the training was begun with.
    pub origin: Origin,
    /// The evaluations before this step.
    pub trend: Trend,
    loss_scale: Option<LossScale>,
    /// The bytes of each of [`PARTS`]. Those of the average are empty if the training has none.
    parts: [Vec<u8>; 6],
}

#[derive(Serialize, Deserialize)]
struct Header {
    step: usize,
    origin: Origin,
    trend: Trend,
    loss_scale: Option<LossScale>,
}

/// The modules of a training whose state a checkpoint keeps.
pub struct Trained {
    /// The encoder.
    pub encoder: Encoder,
    /// The loss.
    pub loss: Loss,
    /// The optimisers of both.
    pub optimizers: Optimizers,
    /// The average of the encoder's weights, if the training has one.
    pub average: Option<Average>,
    /// The loss scale, in half precision.
    pub loss_scale: Option<LossScale>,
}

impl Trained {
    /// The state before the first step. Equal trainings give their weights equal ids, by which the optimisers know them.
    pub fn new(encoder: Encoder, loss: Loss, config: &OptimizerConfig, precision: Precision) -> Self {
        let mut numbers = Numbers(0);
        let (encoder, loss) = (encoder.map(&mut numbers), loss.map(&mut numbers));
        let average = config.ema_decay.map(|decay| Average::new(decay, &encoder));
        let loss_scale = match precision {
            Precision::Single => None,
            Precision::Half => Some(LossScale::FIRST),
        };
        Self { encoder, loss, optimizers: Optimizers::new(config), average, loss_scale }
    }

    /// The encoder that is evaluated, saved and exported: the average, if there is one, with its adapters merged.
    pub fn result(&self) -> Encoder {
        self.average.as_ref().map_or(&self.encoder, Average::encoder).merge_adapters()
    }
}

/// Numbers weights in the order of a visitor.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> ParamId {
        self.0 += 1;
        ParamId::from(self.0)
    }
}

impl ModuleMapper for Numbers {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (_, weight, mapper) = param.consume();
        Param::from_mapped_value(self.next(), weight, mapper)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let (_, weight, mapper) = param.consume();
        Param::from_mapped_value(self.next(), weight, mapper)
    }
}

impl Checkpoint {
    /// A checkpoint of this state.
    ///
    /// # Errors
    ///
    /// Weights that cannot be read back from the device.
    pub fn new(step: usize, origin: Origin, trend: Trend, trained: &Trained) -> Result<Self> {
        let loss = trained
            .loss
            .clone()
            .into_record()
            .into_bytes()
            .map_err(|error| anyhow!("the loss cannot be saved: {error}"))?;
        let [backbone, head, proxies] = trained.optimizers.to_bytes()?;
        let average = trained.average.as_ref().map(Average::to_bytes).transpose()?.unwrap_or_default();
        let encoder = trained.encoder.to_bytes_with_ids()?;
        let parts = [encoder, loss.to_vec(), backbone, head, proxies, average];
        Ok(Self { step, origin, trend, loss_scale: trained.loss_scale, parts })
    }

    /// Puts the state into modules of the same config.
    ///
    /// # Errors
    ///
    /// A state of another config or other data.
    pub fn restore(self, trained: Trained) -> Result<Trained> {
        let [encoder, loss, backbone, head, proxies, average] = self.parts;
        let optimizers = trained
            .optimizers
            .with_bytes([backbone, head, proxies])
            .map_err(|error| mismatch("optimiser", &error))?;
        Ok(Trained {
            loss: load_loss(trained.loss, loss)?,
            optimizers,
            encoder: trained.encoder.with_weights(encoder)?,
            average: trained.average.map(|begun| begun.with_bytes(average)).transpose()?,
            loss_scale: self.loss_scale,
        })
    }

    /// Puts the state of the loss alone into a loss of the same config.
    ///
    /// # Errors
    ///
    /// As for [`Self::restore`].
    pub fn restore_loss(self, loss: Loss) -> Result<Loss> {
        let [_, bytes, ..] = self.parts;
        load_loss(loss, bytes)
    }

    /// Writes the checkpoint. The previous one stays until this one is complete and on disk.
    ///
    /// # Errors
    ///
    /// A full disk, or a directory without write permission.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomic(path, |file| self.write(file))
            .with_context(|| format!("the checkpoint {} cannot be written", path.display()))
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let parts: Vec<(&str, &[u8])> =
            PARTS.iter().copied().zip(self.parts.iter().map(Vec::as_slice)).collect();
        let Self { step, trend, loss_scale, .. } = *self;
        let header = Header { step, origin: self.origin.clone(), trend, loss_scale };
        sealed::write(out, FORMAT, header, &parts)
    }

    /// Reads a checkpoint and checks every part.
    ///
    /// # Errors
    ///
    /// A file that is missing, damaged, or of another version.
    pub fn load(path: &Path) -> Result<Self> {
        let file = path.display();
        const RESTART: &str = "start the run again with `akin train CONFIG --overwrite`";
        let bytes = read_regular_file(path).advise(
            || format!("the checkpoint {file} cannot be read"),
            &format!("if the run was stopped before its first checkpoint, {RESTART}"),
        )?;
        Self::parse(&bytes).map_err(|flaw| match flaw {
            Flaw::OtherVersion(text) => problem(
                format!("the checkpoint {file} cannot be read: {text}"),
                format!("finish the run with the akin that began it, or {RESTART}"),
            ),
            flaw => problem(format!("the checkpoint {file} is damaged: {flaw}"), RESTART),
        })
    }

    fn parse(bytes: &[u8]) -> std::result::Result<Self, Flaw> {
        let (Header { step, origin, trend, loss_scale }, parts) = sealed::read(bytes, FORMAT, PARTS)?;
        Ok(Self { step, origin, trend, loss_scale, parts })
    }
}

fn load_loss(loss: Loss, bytes: Vec<u8>) -> Result<Loss> {
    let record =
        ModuleRecord::from_bytes(Bytes::from_bytes_vec(bytes)).map_err(|error| mismatch("loss", &error))?;
    loss.try_load_record(record).map_err(|error| mismatch("loss", &error))
}

fn mismatch(part: &str, error: &dyn std::fmt::Display) -> anyhow::Error {
    problem(
        format!("the {part} of the checkpoint does not fit the config of this run: {error}"),
        "use the config.toml and the data that the run was started with",
    )
}

#[cfg(test)]
mod tests {
    use akin_core::metrics::Metric;

    use super::*;

    fn checkpoint(step: usize) -> Checkpoint {
        let origin = Origin { config: "[run]\n".into(), data: DataDigest::default() };
        let mut trend = Trend::default();
        trend.add(Metric::named("h_ap"), 0.1 + 0.2, Some(0));
        let parts = [vec![1; 10], vec![], vec![2; 3], vec![3], vec![4; 7], vec![5; 2]];
        let loss_scale = LossScale::FIRST.after_step().after_overflow();
        Checkpoint { step, origin, trend, loss_scale, parts }
    }

    fn to_bytes(checkpoint: &Checkpoint) -> Vec<u8> {
        let mut bytes = Vec::new();
        checkpoint.write(&mut bytes).expect("writing to a vector cannot fail");
        bytes
    }

    #[test]
    fn a_checkpoint_reads_back_what_was_written() {
        let read = Checkpoint::parse(&to_bytes(&checkpoint(7))).unwrap();
        let Checkpoint { step, origin, trend, loss_scale, parts } = checkpoint(7);
        assert_eq!((read.step, read.origin, read.trend), (step, origin, trend));
        assert_eq!((read.loss_scale, read.parts), (loss_scale, parts));
    }

    #[test]
    fn a_checkpoint_of_an_unknown_version_is_refused_with_the_one_that_is_written() {
        let bytes = String::from_utf8_lossy(&to_bytes(&checkpoint(7)))
            .replacen("\"version\":4", "\"version\":9", 1)
            .into_bytes();
        let flaw = Checkpoint::parse(&bytes).err().unwrap().to_string();
        assert_eq!(flaw, "it is akin-checkpoint version 9, and this akin reads version 4");
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_the_previous_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.akin");
        checkpoint(1).save(&path).unwrap();
        let failed = write_atomic(&path, |file| {
            let bytes = to_bytes(&checkpoint(2));
            file.write_all(&bytes[..bytes.len() / 2])?;
            Err(std::io::Error::other("no space left on device"))
        });
        assert!(failed.is_err());
        assert_eq!(Checkpoint::load(&path).unwrap().step, 1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
