//! A run: the directory that one training writes.
//!
//! | file | contents |
//! |---|---|
//! | `config.toml` | the resolved config |
//! | `run.json` | version, device, batch, time and memory of the training |
//! | `log.jsonl` | one JSON object per line: steps, evaluations, stops |
//! | `checkpoint.akin` | the state from which `akin resume` continues |
//! | `encoder.bpk` | the trained encoder, after the last step |
//! | `best.akin` | the encoder of the best evaluation, if there were evaluations on the way: a [sealed](akin_base::sealed) file |
//! | `report.json` | the final evaluation |

use std::path::{Path, PathBuf};
use std::{fs, io};

use akin_base::directory::{self, Kind};
use akin_base::files::{is_fault_of_file, read_regular_file, system_fault, write_atomic};
use akin_base::problem::{Advise, a_few, problem, repeated};
use akin_base::quantities::counted;
use akin_base::sealed::{self, Format};
use akin_base::{shell, terminal};
use akin_core::digest::sha256;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::geometry::Space;
use akin_core::metrics::Metric;
use akin_core::models::PublishedWeights;
use anyhow::{Context, Result};
use burn::tensor::Device;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ModelConfig, Protocol, onnx};
use crate::data::DataDigest;
use crate::runs::magnitude::is_finite;

/// The file with the config.
pub const CONFIG_FILE: &str = "config.toml";

const FILES: [&str; 7] =
    [CONFIG_FILE, "run.json", "log.jsonl", "checkpoint.akin", "encoder.bpk", BEST_FILE, "report.json"];

/// What to do about a damaged run.
const RESTORE: &str = "restore the run from a copy, or train it again";

/// The entries of `run.json` that are read again.
#[derive(Deserialize)]
struct Summary {
    encoder_sha256: String,
    data: DataDigest,
    encoder: EncoderConfig,
}

const BEST_FILE: &str = "best.akin";
const BEST_FORMAT: Format = Format { name: "akin-best", version: 1 };
const BEST_PART: &str = "encoder";

/// Which encoder of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The one after the last step.
    #[default]
    Last,
    /// The one of the best evaluation, by `run.best_by`. It was chosen on the splits that it is evaluated on, so its
    /// scores flatter it.
    Best,
}

/// The best evaluation so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The steps done before it.
    pub step: u64,
    /// The metric that it is the best by.
    pub metric: Metric,
    /// The score.
    pub score: f64,
}

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
        directory::recover(directory)?;
        let config = directory.join(CONFIG_FILE);
        if !config.is_file() {
            const HINT: &str = "give the directory of a run, which `akin train` wrote";
            if let Some(error) = directory::other_kind(directory, &[Kind::Run], HINT) {
                return Err(error);
            }
            let fault = if directory.exists() {
                format!("is not a run: it has no {CONFIG_FILE}")
            } else {
                "does not exist".into()
            };
            return Err(problem(format!("{} {fault}", directory.display()), HINT));
        }
        Ok(Self { directory: directory.to_owned(), config: Config::load(&config, &[])? })
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
    /// A run whose training is not finished, or was not evaluated on the way; weights that are damaged, do not fit the
    /// config, or are not finite.
    pub fn encoder(&self, which: Which, device: &Device) -> Result<Encoder> {
        match which {
            Which::Last => self.last(device),
            Which::Best => {
                let Some((_, weights)) = self.best()? else {
                    return Err(problem(
                        format!(
                            "{} has no {BEST_FILE}: the training was not evaluated on the way",
                            self.directory.display()
                        ),
                        "use the last encoder, or train with run.evaluate_every_epochs",
                    ));
                };
                self.load(&self.file(BEST_FILE), weights, device)
            }
        }
    }

    /// The best evaluation so far, with the weights of its encoder; none if there was no evaluation.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is damaged.
    pub fn best(&self) -> Result<Option<(Best, Vec<u8>)>> {
        let path = self.file(BEST_FILE);
        let bytes = match read_regular_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error)
                    .advise(|| format!("{} cannot be read", path.display()), "check its permissions");
            }
        };
        let (best, [weights]) = sealed::read(&bytes, BEST_FORMAT, [BEST_PART]).map_err(|flaw| {
            problem(
                format!("{} cannot be used: {flaw}", path.display()),
                "remove it to go on without it; the last encoder is not affected",
            )
        })?;
        Ok(Some((best, weights)))
    }

    /// Writes the encoder of the best evaluation.
    ///
    /// # Errors
    ///
    /// A full disk, or a directory without write permission.
    pub fn write_best(&self, best: &Best, weights: &[u8]) -> Result<()> {
        write_atomic(&self.file(BEST_FILE), |file| {
            sealed::write(file, BEST_FORMAT, best, &[(BEST_PART, weights)])
        })
    }

    /// The encoder after the last step.
    fn last(&self, device: &Device) -> Result<Encoder> {
        let path = self.file("encoder.bpk");
        let weights = read_regular_file(&path).map_err(|error| match is_fault_of_file(&error) {
            true => problem(
                format!("the trained weights {} cannot be read: {error}", path.display()),
                format!(
                    "if the training was stopped, finish it with `akin resume {}`",
                    shell::path(&self.directory)
                ),
            ),
            false => system_fault(&path, &error),
        })?;
        self.check_weights(&path, &weights)?;
        self.load(&path, weights, device)
    }

    /// The encoder with weights from a file of the run.
    fn load(&self, path: &Path, weights: Vec<u8>, device: &Device) -> Result<Encoder> {
        let config = encoder_config(&self.config);
        self.check_encoder_config(&config)?;
        let encoder = onnx::attach(config.load(weights, device)?, &self.config.model)?;
        if !is_finite(&encoder) {
            return Err(problem(
                format!("the trained weights {} have NaN or infinity", path.display()),
                "train again with lower learning rates or with optimizer.clip_norm",
            ));
        }
        Ok(encoder)
    }

    /// Refuses an encoder that is not the trained one: its weights may fit another, which computes other embeddings.
    fn check_encoder_config(&self, now: &EncoderConfig) -> Result<()> {
        // A training that was stopped has no summary.
        if !self.file("run.json").exists() {
            return Ok(());
        }
        let trained = self.summary()?.encoder;
        let parts = [
            ("model.backbone", trained.backbone.computed() != now.backbone.computed()),
            ("model.pooling", trained.pooling != now.pooling),
            ("model.head", trained.head != now.head),
            ("model.preprocessing", trained.preprocessing != now.preprocessing),
        ];
        let changed: Vec<&str> =
            parts.iter().filter(|(_, differs)| *differs).map(|(part, _)| *part).collect();
        if changed.is_empty() {
            return Ok(());
        }
        Err(problem(
            format!(
                "{} has changed since the training: {}",
                self.file(CONFIG_FILE).display(),
                changed.join(", ")
            ),
            format!(
                "set it back; `akin verify {}` names each setting that has changed",
                shell::path(&self.directory)
            ),
        ))
    }

    /// Refuses weights whose SHA-256 is not the one in `run.json`.
    fn check_weights(&self, path: &Path, weights: &[u8]) -> Result<()> {
        if sha256(weights) != self.summary()?.encoder_sha256 {
            return Err(problem(
                format!("{} is damaged: its SHA-256 is not the one in run.json", path.display()),
                RESTORE,
            ));
        }
        Ok(())
    }

    fn summary(&self) -> Result<Summary> {
        let file = self.file("run.json");
        let bytes =
            read_regular_file(&file).advise(|| format!("{} cannot be read", file.display()), RESTORE)?;
        serde_json::from_slice(&bytes).advise(|| format!("{} is damaged", file.display()), RESTORE)
    }

    /// Compares the data set of today with that of the training. A change is a warning or, if the test classes are drawn
    /// from all classes, an error: others would be drawn today, and the encoder was trained on some of them.
    ///
    /// # Errors
    ///
    /// Changed data with a `test_fraction` or a `validation_fraction`; a damaged `run.json`.
    pub fn check_data(&self, today: &DataDigest) -> Result<()> {
        // A training that was stopped has no summary. The digest of the protocol of DyML is that of one of its benchmarks.
        if !self.file("run.json").exists() || self.config.split.protocol == Protocol::Dyml {
            return Ok(());
        }
        let changes = today.changes(&self.summary()?.data);
        if changes.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the data in {} have changed since the training of {}: {}",
            self.config.data.path().display(),
            self.directory.display(),
            changes.join(", ")
        );
        if self.config.split.is_drawn() {
            return Err(problem(
                format!("{message}; the classes to test on would be drawn again, and some were trained on"),
                "put the data back as they were, or train a new run on them",
            ));
        }
        terminal::warn(message);
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

    /// The encoder before its training. Unless the head has published weights, it is without one if embeddings are compared by cosine, because
    /// features can be compared so too; otherwise with a head of random weights.
    ///
    /// # Errors
    ///
    /// Weights that are missing or do not fit.
    pub fn untrained(&self, device: &Device) -> Result<Encoder> {
        let mut encoder = untrained_config(&self.config).init(self.config.run.seed, device)?;
        load_weights(&mut encoder, &self.config.model)?;
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

/// Refuses a run that is given twice, also by another path.
///
/// # Errors
///
/// Two runs in one directory, or a directory that cannot be found.
pub fn refuse_twins(runs: &[Run]) -> Result<()> {
    let directories: Vec<PathBuf> =
        runs.iter().map(|run| fs::canonicalize(&run.directory)).collect::<io::Result<_>>()?;
    match repeated(&directories) {
        Some(twice) => {
            Err(problem(format!("the run {} is given twice", twice.display()), "give each run once"))
        }
        None => Ok(()),
    }
}

/// The parts of [`Run::untrained`].
pub fn untrained_config(config: &Config) -> EncoderConfig {
    let mut encoder = encoder_config(config);
    if encoder.geometry().space() == Space::Cosine && config.model.head_weights.is_none() {
        encoder.head = None;
    }
    encoder
}

/// The parts of the encoder that a config describes.
pub fn encoder_config(config: &Config) -> EncoderConfig {
    EncoderConfig {
        backbone: config.model.backbone.clone(),
        pooling: config.model.pooling,
        head: config.model.head.clone(),
        preprocessing: config.model.preprocessing.clone(),
    }
}

/// The weights of `model.weights` that went into an encoder.
pub struct Loaded {
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The tensors of the file that are not used, without those of published classifiers.
    pub unused: Vec<String>,
}

/// Reads `model.weights` into the backbone, if the config names them, and into the head, if it names a layer for it and the
/// encoder has a head; attaches the engine of an ONNX file.
///
/// # Errors
///
/// A file that cannot be read, has another SHA-256 than `model.weights_sha256` or does not fit, or a backbone without
/// published weights.
pub fn load_weights(encoder: &mut Encoder, model: &ModelConfig) -> Result<Option<Loaded>> {
    if model.onnx().is_some() {
        *encoder = onnx::attach(encoder.clone(), model)?;
    }
    let Some(path) = &model.weights else { return Ok(None) };
    let bytes = read_weights(path)?;
    let sha256 = model.check_weights(&bytes)?;
    let head = model.head_weights.as_deref().filter(|_| encoder.head.is_some());
    let unused = PublishedWeights::parse(bytes)
        .and_then(|weights| encoder.load_published(&weights, head))
        .with_context(|| path.display().to_string())?;
    if !is_finite(&*encoder) {
        return Err(problem(
            format!("the weights {} have NaN or infinity", path.display()),
            "the training that made them diverged, or the file is damaged: use other weights",
        ));
    }
    Ok(Some(Loaded { sha256, unused }))
}

/// Says which tensors of a file of weights are not used.
pub fn warn_of_unused(path: &Path, unused: &[String]) {
    if !unused.is_empty() {
        terminal::warn(format_args!(
            "{} of {} {} not used: {}; model.head_weights can name a linear layer that becomes the head",
            counted(unused.len(), "tensor", "tensors"),
            path.display(),
            if unused.len() == 1 { "is" } else { "are" },
            a_few(unused),
        ));
    }
}

/// The bytes of a file of published weights.
///
/// # Errors
///
/// A file that cannot be read.
pub fn read_weights(path: &Path) -> Result<Vec<u8>> {
    read_regular_file(path).advise(
        || format!("the weights {} cannot be read", path.display()),
        "check the path; without model.weights a training starts from random weights",
    )
}
