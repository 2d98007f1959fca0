//! A checkpoint: everything that a run needs to continue the very same sequence, in one file.
//!
//! It is a [sealed](crate::sealed) file. A new checkpoint replaces the previous one only when it is complete and on disk.

use std::io::Write;
use std::path::Path;

use akin_core::encoder::Encoder;
use akin_core::losses::Loss;
use anyhow::{Context, Result, anyhow};
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};

use crate::data::DataDigest;
use crate::files::{read_regular_file, write_atomic};
use crate::optimizer::Optimizers;
use crate::problem::{Advise, problem};
use crate::sealed::{self, Flaw, Format};

const FORMAT: Format = Format { name: "akin-checkpoint", version: 3 };
const PARTS: [&str; 5] = ["encoder", "loss", "optimizer-backbone", "optimizer-head", "optimizer-proxies"];

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
    /// The bytes of each of [`PARTS`].
    parts: [Vec<u8>; 5],
}

#[derive(Serialize, Deserialize)]
struct Header {
    step: usize,
    origin: Origin,
}

impl Checkpoint {
    /// A checkpoint of this state.
    ///
    /// # Errors
    ///
    /// Weights that cannot be read back from the device.
    pub fn new(
        step: usize,
        origin: Origin,
        encoder: &Encoder,
        loss: &Loss,
        optimizers: &Optimizers,
    ) -> Result<Self> {
        let loss = loss
            .clone()
            .into_record()
            .into_bytes()
            .map_err(|error| anyhow!("the loss cannot be saved: {error}"))?;
        let [backbone, head, proxies] = optimizers.to_bytes()?;
        Ok(Self {
            step,
            origin,
            parts: [encoder.to_bytes_with_ids()?, loss.to_vec(), backbone, head, proxies],
        })
    }

    /// Puts the state into an encoder, a loss and optimisers of the same config.
    ///
    /// # Errors
    ///
    /// A state of another config or other data.
    pub fn restore(
        self,
        encoder: Encoder,
        loss: Loss,
        optimizers: Optimizers,
    ) -> Result<(Encoder, Loss, Optimizers)> {
        let [encoder_bytes, loss_bytes, optimizer_bytes @ ..] = self.parts;
        let loss = load_loss(loss, loss_bytes)?;
        let optimizers =
            optimizers.with_bytes(optimizer_bytes).map_err(|error| mismatch("optimiser", &error))?;
        Ok((encoder.with_weights(encoder_bytes)?, loss, optimizers))
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
        sealed::write(out, FORMAT, Header { step: self.step, origin: self.origin.clone() }, &parts)
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
        let (Header { step, origin }, parts) = sealed::read(bytes, FORMAT, PARTS)?;
        Ok(Self { step, origin, parts })
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
    use super::*;

    fn checkpoint(step: usize) -> Checkpoint {
        let origin = Origin { config: "[run]\n".into(), data: DataDigest::default() };
        Checkpoint { step, origin, parts: [vec![1; 10], vec![], vec![2; 3], vec![3], vec![4; 7]] }
    }

    fn to_bytes(checkpoint: &Checkpoint) -> Vec<u8> {
        let mut bytes = Vec::new();
        checkpoint.write(&mut bytes).expect("writing to a vector cannot fail");
        bytes
    }

    #[test]
    fn a_checkpoint_reads_back_what_was_written() {
        let read = Checkpoint::parse(&to_bytes(&checkpoint(7))).unwrap();
        let Checkpoint { step, origin, parts } = checkpoint(7);
        assert_eq!((read.step, read.origin, read.parts), (step, origin, parts));
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
