//! A run: the directory that one training writes.
//!
//! | file | contents |
//! |---|---|
//! | `config.toml` | the resolved config |
//! | `run.json` | version, device, batch, time and memory of the training |
//! | `log.jsonl` | one JSON object per line: steps, evaluations, stops |
//! | `checkpoint.akin` | the state from which `akin resume` continues |
//! | `encoder.bpk` | the trained encoder |
//! | `report.json` | the final evaluation |

use std::fs;
use std::path::{Path, PathBuf};

use akin_core::digest::sha256;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::geometry::Space;
use anyhow::{Context, Result};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::config::Config;
use crate::files::write_atomic;
use crate::problem::{Advise, problem};

/// The file with the config.
pub const CONFIG_FILE: &str = "config.toml";

const FILES: [&str; 6] =
    [CONFIG_FILE, "run.json", "log.jsonl", "checkpoint.akin", "encoder.bpk", "report.json"];

/// A run directory with its config.
pub struct Run {
    /// The directory.
    pub directory: PathBuf,
    /// The resolved config.
    pub config: Config,
}

impl Run {
    /// Opens a run that `akin train` wrote.
    ///
    /// # Errors
    ///
    /// A directory that is not a run.
    pub fn open(directory: &Path) -> Result<Self> {
        let config = directory.join(CONFIG_FILE);
        if !config.is_file() {
            let fault = if directory.exists() {
                format!("is not a run: it has no {CONFIG_FILE}")
            } else {
                "does not exist".into()
            };
            return Err(problem(
                format!("{} {fault}", directory.display()),
                "give the directory of a run, which `akin train` wrote",
            ));
        }
        Ok(Self { directory: directory.to_owned(), config: Config::load(&config, &[])? })
    }

    /// The keys of the config that `config.toml` does not have. An older akin wrote it, without settings that have
    /// a default now; the training may have used other values.
    pub fn missing_keys(&self) -> Vec<String> {
        let written = fs::read_to_string(self.file(CONFIG_FILE)).ok().and_then(|text| text.parse().ok());
        let resolved = Table::try_from(&self.config).unwrap_or_default();
        let mut keys = Vec::new();
        find_missing("", &Value::Table(resolved), &Value::Table(written.unwrap_or_default()), &mut keys);
        keys
    }

    /// Writes the resolved config.
    ///
    /// # Errors
    ///
    /// A full disk, or a directory without write permission.
    pub fn write_config(&self) -> Result<()> {
        write_atomic(&self.file(CONFIG_FILE), |file| file.write_all(self.config.to_toml().as_bytes()))
    }

    /// The path of a file of the run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The paths of all files that a run has.
    pub fn files(&self) -> Vec<PathBuf> {
        FILES.iter().map(|name| self.file(name)).collect()
    }

    /// The trained encoder.
    ///
    /// # Errors
    ///
    /// A run whose training is not finished, or weights that are damaged or do not fit the config.
    pub fn encoder(&self, device: &Device) -> Result<Encoder> {
        let path = self.file("encoder.bpk");
        let weights = fs::read(&path).advise(
            || format!("the trained weights {} cannot be read", path.display()),
            "if the training was stopped, finish it with `akin resume RUN`",
        )?;
        self.check_weights(&path, &weights)?;
        Ok(encoder_config(&self.config).load(weights, device)?)
    }

    /// Refuses weights whose SHA-256 is not the one in `run.json`.
    fn check_weights(&self, path: &Path, weights: &[u8]) -> Result<()> {
        #[derive(Deserialize)]
        struct Summary {
            encoder_sha256: String,
        }
        let file = self.file("run.json");
        let again = "restore the run from a copy, or train it again";
        let summary = fs::read(&file).advise(|| format!("{} cannot be read", file.display()), again)?;
        let Summary { encoder_sha256 } =
            serde_json::from_slice(&summary).advise(|| format!("{} is damaged", file.display()), again)?;
        if sha256(weights) != encoder_sha256 {
            return Err(problem(
                format!("{} is damaged: its SHA-256 is not the one in run.json", path.display()),
                again,
            ));
        }
        Ok(())
    }

    /// Writes the trained weights.
    ///
    /// # Errors
    ///
    /// A full disk, or a directory without write permission.
    pub fn write_weights(&self, weights: &[u8]) -> Result<()> {
        write_atomic(&self.file("encoder.bpk"), |file| file.write_all(weights))
    }

    /// The encoder before its training. Without a head if embeddings are compared by cosine, because
    /// features can be compared so too; otherwise with a head of random weights.
    ///
    /// # Errors
    ///
    /// Weights that are missing or do not fit.
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
    /// A full disk, or a directory without write permission.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        write_atomic(&self.file(name), |file| {
            serde_json::to_writer_pretty(&mut *file, value)?;
            file.write_all(b"\n")
        })
    }
}

/// Adds the keys of tables in `resolved` that `written` does not have.
fn find_missing(place: &str, resolved: &Value, written: &Value, keys: &mut Vec<String>) {
    match (resolved, written) {
        (Value::Table(resolved), Value::Table(written)) => {
            for (key, value) in resolved {
                let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                match written.get(key) {
                    Some(written) => find_missing(&place, value, written, keys),
                    None => keys.push(place),
                }
            }
        }
        (Value::Array(resolved), Value::Array(written)) => {
            for (value, written) in resolved.iter().zip(written) {
                find_missing(place, value, written, keys);
            }
        }
        _ => {}
    }
}

/// The parts of [`Run::untrained`].
pub fn untrained_config(config: &Config) -> EncoderConfig {
    let mut config = encoder_config(config);
    if config.geometry().space() == Space::Cosine {
        config.head = None;
    }
    config
}

/// The parts of the encoder that a config describes.
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
    let bytes = fs::read(path).advise(
        || format!("the weights {} cannot be read", path.display()),
        "check model.weights, or remove it to start from random weights",
    )?;
    encoder.backbone.load_pretrained(bytes).with_context(|| path.display().to_string())
}
