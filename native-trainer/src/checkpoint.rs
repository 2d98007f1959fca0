//! A checkpoint: everything that a run needs to continue the very same sequence, in one file.
//!
//! The file is a line of JSON, the header, which lists the parts with their lengths and SHA-256; a line with the SHA-256
//! of the header; and the parts themselves. A new checkpoint replaces the previous one only when it is complete and on
//! disk.

use std::io::Write;
use std::path::Path;

use akin_core::digest::sha256;
use akin_core::encoder::Encoder;
use akin_core::losses::Loss;
use anyhow::{Context, Result, anyhow, bail};
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};

use crate::files::write_atomic;
use crate::optimizer::Optimizers;
use crate::problem::{Advise, problem};

const FORMAT: &str = "akin-checkpoint";
const VERSION: u32 = 2;
const PARTS: [&str; 5] = ["encoder", "loss", "optimizer-backbone", "optimizer-head", "optimizer-proxies"];

/// What a training was begun with. A resumed training must have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The resolved config as TOML.
    pub config: String,
    /// The [digest](crate::data::Dataset::digest) of the data set.
    pub data: String,
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
    format: String,
    version: u32,
    step: usize,
    origin: Origin,
    parts: Vec<Part>,
}

/// The part of a [`Header`] that every version has.
#[derive(Deserialize)]
struct Version {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: usize,
    sha256: String,
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
        Ok(Self { step, origin, parts: [encoder.to_bytes()?, loss.to_vec(), backbone, head, proxies] })
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
        let parts = PARTS
            .iter()
            .zip(&self.parts)
            .map(|(name, bytes)| Part { name: name.to_string(), bytes: bytes.len(), sha256: sha256(bytes) })
            .collect();
        let origin = self.origin.clone();
        let header = Header { format: FORMAT.into(), version: VERSION, step: self.step, origin, parts };
        let header = serde_json::to_string(&header)?;
        writeln!(out, "{header}\n{}", sha256(header.as_bytes()))?;
        self.parts.iter().try_for_each(|bytes| out.write_all(bytes))
    }

    /// Reads a checkpoint and checks every part.
    ///
    /// # Errors
    ///
    /// A file that is missing, damaged, or of another version.
    pub fn load(path: &Path) -> Result<Self> {
        let file = path.display();
        const RESTART: &str = "start the run again with `akin train CONFIG --overwrite`";
        let bytes = std::fs::read(path).advise(
            || format!("the checkpoint {file} cannot be read"),
            &format!("if the run was stopped before its first checkpoint, {RESTART}"),
        )?;
        Self::parse(&bytes)
            .map_err(|error| problem(format!("the checkpoint {file} is damaged: {error:#}"), RESTART))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut lines = bytes.splitn(3, |&byte| byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let Version { format, version } =
            serde_json::from_slice(first).context("its first line is not a header")?;
        if format != FORMAT || version != VERSION {
            bail!("it is {format} version {version}, and this akin reads {FORMAT} version {VERSION}");
        }
        if lines.next() != Some(sha256(first).as_bytes()) {
            bail!("the SHA-256 of its header does not match");
        }
        let header: Header = serde_json::from_slice(first).context("its first line is not a header")?;
        let mut rest = lines.next().context("it has no parts")?;
        let mut parts = Vec::new();
        for (part, name) in header.parts.iter().zip(PARTS) {
            let (bytes, after) = rest
                .split_at_checked(part.bytes)
                .with_context(|| format!("the file ends in the middle of part {:?}", part.name))?;
            if part.name != name || sha256(bytes) != part.sha256 {
                bail!("the SHA-256 of part {:?} does not match", part.name);
            }
            parts.push(bytes.to_vec());
            rest = after;
        }
        let parts = parts
            .try_into()
            .map_err(|_| anyhow!("it has {} parts instead of {}", header.parts.len(), PARTS.len()))?;
        Ok(Self { step: header.step, origin: header.origin, parts })
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
        let origin = Origin { config: "[run]\n".into(), data: "digest".into() };
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
    fn a_truncated_or_changed_checkpoint_is_refused() {
        let whole = to_bytes(&checkpoint(7));
        for length in 0..whole.len() {
            assert!(Checkpoint::parse(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert!(Checkpoint::parse(&changed).is_err(), "byte {place}");
        }
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
