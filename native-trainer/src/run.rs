//! A run: the directory that one training leaves.
//!
//! | file | what |
//! |---|---|
//! | `config.toml` | the resolved config |
//! | `run.json` | how it came about: version, device, seconds |
//! | `log.jsonl` | one JSON object a line: steps, epochs, evaluations |
//! | `checkpoint.akin` | what `akin resume` continues from |
//! | `encoder.bpk` | the trained weights |
//! | `report.json` | the evaluation at the end |

use std::path::{Path, PathBuf};

use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::geometry::Space;
use anyhow::{Context, Result};
use burn::tensor::Device;
use serde::Serialize;

use crate::config::Config;
use crate::files::{create_directory, write_atomic};
use crate::problem::{Advise, problem};

/// The file that marks a directory as a run.
pub const MARK: &str = "config.toml";

/// A run directory with its config.
pub struct Run {
    /// Where it is.
    pub directory: PathBuf,
    /// The resolved config.
    pub config: Config,
}

impl Run {
    /// A run that `akin train` left.
    ///
    /// # Errors
    ///
    /// A directory that is not a run.
    pub fn open(directory: &Path) -> Result<Self> {
        let config = directory.join(MARK);
        if !config.is_file() {
            return Err(problem(
                format!("{} is not a run: it has no {MARK}", directory.display()),
                "give the directory that `akin train` wrote",
            ));
        }
        Ok(Self { directory: directory.to_owned(), config: Config::load(&config, &[])? })
    }

    /// Makes the directory, with the resolved config in it.
    ///
    /// # Errors
    ///
    /// A directory that is not empty, unless it is a run and `overwrite` is set.
    pub fn create(&self, overwrite: bool) -> Result<()> {
        create_directory(&self.directory, "run", MARK, overwrite)?;
        write_atomic(&self.file(MARK), |file| file.write_all(self.config.to_toml().as_bytes()))
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The trained encoder.
    ///
    /// # Errors
    ///
    /// A run whose training has not ended, or weights that do not fit.
    pub fn encoder(&self, device: &Device) -> Result<Encoder> {
        let path = self.file("encoder.bpk");
        let weights = std::fs::read(&path).advise(
            || format!("the trained weights {} cannot be read", path.display()),
            "if training was stopped, end it with `akin resume RUN`",
        )?;
        Ok(encoder_config(&self.config).load(weights, device)?)
    }

    /// What the run started from: its backbone, without a head; with one of random weights where the
    /// embeddings are not compared by their cosine, as features can only be.
    ///
    /// # Errors
    ///
    /// Weights that are not there or do not fit.
    pub fn untrained(&self, device: &Device) -> Result<Encoder> {
        let mut encoder = untrained_config(&self.config).init(self.config.run.seed, device)?;
        if let Some(weights) = &self.config.model.weights {
            load_backbone(&mut encoder, weights)?;
        }
        Ok(encoder)
    }

    /// Writes a JSON file of the run.
    ///
    /// # Errors
    ///
    /// A disk that is full or not writable.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        write_atomic(&self.file(name), |file| {
            serde_json::to_writer_pretty(&mut *file, value)?;
            file.write_all(b"\n")
        })
    }
}

/// What [`Run::untrained`] consists of.
pub fn untrained_config(config: &Config) -> EncoderConfig {
    let mut config = encoder_config(config);
    if config.geometry().space() == Space::Cosine {
        config.head = None;
    }
    config
}

/// What the model section of a config describes.
pub fn encoder_config(config: &Config) -> EncoderConfig {
    EncoderConfig {
        backbone: config.model.backbone.clone(),
        head: config.model.head.clone(),
        preprocessing: config.model.preprocessing.clone(),
    }
}

/// Reads the published weights of the backbone, `model.weights`, into the encoder.
///
/// # Errors
///
/// A file that cannot be read or does not fit, or a backbone without published weights.
pub fn load_backbone(encoder: &mut Encoder, path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).advise(
        || format!("the weights {} cannot be read", path.display()),
        "check model.weights, or remove it to start from random weights",
    )?;
    Ok(encoder.backbone.load_pretrained(bytes).with_context(|| path.display().to_string())?)
}
