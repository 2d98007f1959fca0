//! `[run]`: how long to train, where to write, and the seed.

use std::path::PathBuf;

use akin_core::encoder::Precision;
use akin_core::metrics::Metric;
use anyhow::Result;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// The most workers: more than any machine has devices or cores for.
const MOST_WORKERS: usize = 1_024;

/// `[run]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The name of the run in tables and on the page. Default: the name of the config file.
    #[serde(default)]
    pub name: String,
    /// The directory that the run is written to. Default: `runs/NAME` in the current directory.
    #[serde(default)]
    pub out: PathBuf,
    /// The seed for everything random: initial weights, batches, augmentation, splits drawn by fractions. A whole
    /// number below 2^63. Default 0.
    #[serde(default)]
    pub seed: u64,
    /// The device that computes. Default `auto`.
    #[serde(default)]
    pub device: DeviceName,
    /// The number of devices of the kind `device` that share the images of each batch, 1 to 1024: the first GPUs of the
    /// machine, or parts of the CPU. Embeddings are gathered, and the loss is that of the whole batch. Batch
    /// normalisation must not be live. Default 1.
    #[schemars(range(min = 1))]
    #[serde(default = "one_worker")]
    pub workers: usize,
    /// The precision in which the backbone computes in training: `half` takes less memory and less time on most GPUs.
    /// Weights, normalisation, head, loss and optimiser stay in single precision, and so does evaluation. Gradients are
    /// multiplied by a scale on their way through the backbone. Default `single`.
    #[serde(default)]
    pub precision: Precision,
    /// The number of batches to train on. With 0 the weights of `model.weights` become a run as they are. Default: none; exactly one of `steps` and `epochs` must be set.
    pub steps: Option<u64>,
    /// The number of epochs to train for. Default: none; exactly one of `steps` and `epochs` must be set.
    pub epochs: Option<u64>,
    /// The number of epochs between checkpoints, at least 1. The end of training always writes one. Default 1.
    #[serde(default = "one")]
    pub checkpoint_every_epochs: u64,
    /// The number of steps between checkpoints, besides those of the epochs. With 0 there are none. Default 0.
    #[serde(default)]
    pub checkpoint_every_steps: u64,
    /// The number of minutes after which a checkpoint is written, whatever the epoch. With 0 there are none. Default 30.
    #[serde(default = "half_an_hour")]
    pub checkpoint_every_minutes: u64,
    /// The number of epochs between evaluations. With 0 there is only the one at the end. Default 0.
    #[serde(default)]
    pub evaluate_every_epochs: u64,
    /// The metric by which the best evaluation is chosen; a metric per level counts at the finest. With
    /// `evaluate_every_epochs`, the encoder of the best evaluation is kept beside the last one. Default `h_ap`.
    #[serde(default = "h_ap")]
    pub best_by: Metric,
    /// The number of evaluations in a row without a better one than the best by `best_by` after which the training ends;
    /// it has no effect without `evaluate_every_epochs`. Each evaluation comes after a checkpoint then. Default: none; it trains to the end.
    pub patience: Option<u64>,
    /// What the log is written as besides `log.jsonl`. Default: none.
    #[serde(default)]
    pub log: Option<LogFormat>,
}

/// What a log is written as besides JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Event files in the run directory, for `tensorboard --logdir runs`.
    Tensorboard,
}

/// The device that computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DeviceName {
    /// The first that works of CUDA, Vulkan, WebGPU and the CPU.
    #[default]
    Auto,
    /// An NVIDIA GPU.
    Cuda,
    /// A GPU, through Vulkan.
    Vulkan,
    /// A GPU, through WebGPU.
    Wgpu,
    /// The CPU.
    Cpu,
}

fn h_ap() -> Metric {
    Metric::named("h_ap")
}

fn one_worker() -> usize {
    1
}

fn one() -> u64 {
    1
}

fn half_an_hour() -> u64 {
    30
}

impl RunConfig {
    /// The number of steps of the run.
    pub fn total_steps(&self, steps_per_epoch: usize) -> u64 {
        self.steps.or(self.epochs.map(|epochs| epochs.saturating_mul(steps_per_epoch as u64))).unwrap_or(0)
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure(self.steps.is_some() != self.epochs.is_some(), || {
            let which = if self.steps.is_some() { "both" } else { "neither" };
            (
                format!(
                    "the config sets {which} of run.steps and run.epochs, so the length of training is unclear"
                ),
                "set exactly one of run.steps and run.epochs",
            )
        })?;
        ensure(self.workers > 0, || {
            ("run.workers is 0".into(), "set it to 1, or to the number of GPUs to train on")
        })?;
        ensure(self.workers <= MOST_WORKERS, || {
            (
                format!("run.workers is {}; there are at most {MOST_WORKERS}", self.workers),
                "set it to 1, or to the number of GPUs to train on",
            )
        })?;
        ensure(self.checkpoint_every_epochs > 0, || {
            (
                "run.checkpoint_every_epochs is 0".into(),
                "set it to 1 or more; a large number leaves only the checkpoint at the end",
            )
        })?;
        ensure(self.patience != Some(0), || {
            ("run.patience is 0".into(), "set it to 1 or more, or remove it to train to the end")
        })?;
        ensure(i64::try_from(self.seed).is_ok(), || {
            (
                format!("run.seed is {}", self.seed),
                "choose a seed below 2^63, since TOML has no larger whole numbers",
            )
        })
    }
}
