//! The config: one TOML file that describes a run.
//!
//! ```toml
//! [run]
//! epochs = 10
//!
//! [data]
//! kind = "csv"
//! path = "${AKIN_DATA}/grocery/labels.csv"
//! levels = ["department", "kind", "variety"]   # coarse to fine
//!
//! [model]
//! backbone = { kind = "small_resnet" }
//! head = { dimension = 128 }
//!
//! [loss]
//! kind = "happier"
//! ```
//!
//! Each section has a file of its own, and `CONFIG.md` lists every setting. The way from a file to a [`Config`]:
//!
//! | file | |
//! |---|---|
//! | [`data_sets`] | every data set, one line each |
//! | [`source`] | reads the TOML, with `--set` and other tables laid over it, and resolves paths and preprocessing |
//! | [`overlay`] | how one table is laid over another |
//! | [`schema`] | what a config may contain, from the types of the sections |
//! | [`fault`] | which key is wrong and why, or which keys are missing |
//! | [`range`] | how a section refuses a value that is out of range |
//! | [`mod@reference`] | every setting with its default and meaning, for `CONFIG.md` and `akin list` |
//! | [`onnx`] | what a config leaves to an ONNX file |
//! | [`pretrained`] | a config without a training, for `akin eval` |
//! | [`unused`] | settings that can never take effect |
//!
//! A table with a `kind` is a serde enum: serde refuses the keys of another kind. What every kind needs stands beside the
//! table.
//!
//! A path may contain environment variables, written `${NAME}`. A relative path starts at the folder of the config
//! file; in `--set` and in a built-in recipe it starts at the current directory. The resolved config, with every
//! default and with absolute paths, is saved in the run and reads back as the same config. The sections
//! `[compare]` and `[tune]` belong to [`crate::comparison::compare`] and [`crate::comparison::tune`] and are not part of a run.

use std::path::Path;

use akin_base::problem::problem;
use akin_core::encoder::{BatchNormMode, Precision};
use akin_core::evaluate::EvaluationConfig;
use akin_core::losses::LossConfig;
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Table;

mod augment;
mod data;
pub(crate) mod data_sets;
pub mod device;
mod difference;
pub mod explained;
mod fault;
mod model;
pub mod onnx;
mod optimizer;
mod overlay;
mod pretrained;
mod published;
mod range;
pub mod recipes;
pub mod reference;
mod run;
mod sampler;
mod schedule;
mod schema;
mod source;
mod split;
#[cfg(test)]
mod tests;
mod unused;

pub use augment::{AugmentConfig, CropKind};
pub use data::{
    Benchmark, BenchmarkConfig, CopyConfig, DataConfig, DataKind, Difficulty, FolderConfig, HierarchyConfig,
    KinshipSource, Missing, MissingFiles, RevisitedConfig, SplitNames, TableConfig,
};
pub use difference::{NO_RESULT_DEPENDS_ON, differences, dotted, last_part};
pub use model::ModelConfig;
pub use optimizer::{Adam, OptimizerConfig, RmsProp, Rule, Sgd};
pub use overlay::{lay_over, put};
pub use pretrained::{PretrainedConfig, onnx_model};
pub use published::{AVERAGE, OtherData, PublishedConfig, PublishedResult};
pub use run::{DeviceName, LogFormat, RunConfig};
pub use sampler::SamplerConfig;
pub use schedule::{Curve, Moment, ScheduleConfig};
pub use source::{Origin, Source};
pub use split::{Fold, Protocol, Selection, SplitConfig};

/// A whole config. See the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long to train, where to write, and the seed.
    pub run: RunConfig,
    /// Which images to use, and how they are labelled. `akin list datasets` says more about each data set.
    pub data: DataConfig,
    /// Which images are trained on, which are evaluated, and how. Without it, the data give the splits.
    #[serde(default)]
    pub split: SplitConfig,
    /// Random changes to training images. It has no effect with `model.freeze_backbone`, whose features are computed once.
    pub augment: Option<AugmentConfig>,
    /// From image to embedding.
    pub model: ModelConfig,
    /// What training minimises.
    pub loss: LossConfig,
    /// What a batch consists of.
    #[serde(default)]
    pub sampler: SamplerConfig,
    /// How the weights are updated.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// How the learning rates change during training.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// What evaluation reports. If `similarity` is left out, it is the one that belongs to the head's geometry.
    #[serde(default)]
    pub eval: EvaluationConfig,
    /// What a paper reports for a training with these settings. `akin train`, `eval` and `compare` print it beside what
    /// they measure. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedConfig>,
}

impl Config {
    /// Reads a config file, with `--set` values laid over it, and checks it.
    ///
    /// # Errors
    ///
    /// A file that does not exist or is not TOML, an unknown or missing key, a value of the wrong type or out of its
    /// range, an environment variable that is not set.
    pub fn load(file: &Path, sets: &[String]) -> Result<Self> {
        Source::read(file, sets)?.config(&Table::new())
    }

    /// The config as TOML, which reads back as the same config.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self)
            .expect("a checked config has only texts and finite numbers, which TOML can hold")
    }

    /// The precision in which the backbone is trained. The features of a frozen one are computed in single precision.
    pub fn precision(&self) -> Precision {
        if self.model.freeze_backbone { Precision::Single } else { self.run.precision }
    }

    /// The learning rate of each term of the loss, if the terms have rates of their own.
    pub fn lr_terms(&self) -> &[f64] {
        match self.loss {
            LossConfig::Sum(_) => &self.optimizer.lr_terms,
            _ => &[],
        }
    }

    /// Whether each batch is the whole training split.
    pub fn has_whole_set_batches(&self) -> bool {
        matches!(self.sampler, SamplerConfig::WholeSet {})
    }

    /// The number of images that pass the backbone at once; none if whole batches do.
    pub fn chunk(&self) -> Option<usize> {
        self.optimizer.chunk.or(self.has_whole_set_batches().then_some(SamplerConfig::DEFAULT_BATCH))
    }

    fn validate(&self) -> Result<()> {
        self.run.validate()?;
        self.data.validate()?;
        self.split.validate(&self.data)?;
        self.model.validate()?;
        if let Some(augment) = &self.augment {
            augment.validate(self.model.preprocessing.side())?;
        }
        self.sampler.validate(self.data.levels())?;
        self.optimizer.validate()?;
        self.schedule.validate()?;
        self.eval.checked(self.data.levels().len())?;
        if let Some(published) = &self.published {
            published.validate(self.data.levels())?;
        }
        self.check_length()?;
        if self.model.onnx().is_some() && !self.model.freeze_backbone {
            return Err(problem(
                "the backbone is an ONNX file, whose weights akin cannot train: the engine computes it forwards only",
                "set model.freeze_backbone = true, and a head is trained on its features",
            ));
        }
        self.check_terms()?;
        self.check_parts()?;
        if self.has_whole_set_batches() && self.loss.has_memory() {
            return Err(problem(
                "sampler.kind is `whole_set`, but the loss `cross_batch_memory` adds images of earlier batches, and this \
                 batch has all images already",
                "name the loss inside `cross_batch_memory` alone, or use another sampler.kind",
            ));
        }
        if matches!(self.schedule.curve, Curve::Plateau { .. }) && self.run.evaluate_every_epochs == 0 {
            return Err(problem(
                "schedule.curve is `plateau`, but there is no evaluation before the end of the training",
                "set run.evaluate_every_epochs, for example to 1",
            ));
        }
        let best_by = self.run.best_by;
        if self.run.evaluate_every_epochs > 0 && !self.eval.metrics.contains(&best_by) {
            return Err(problem(
                format!("run.best_by is {best_by}, but eval.metrics does not have it"),
                "set run.best_by to a metric of eval.metrics, or add it there",
            ));
        }
        Ok(())
    }

    /// Checks that a training of no steps has all its weights from a file.
    fn check_length(&self) -> Result<()> {
        let length = self.run.steps.map_or("run.epochs", |_| "run.steps");
        if self.run.steps != Some(0) && self.run.epochs != Some(0) {
            return Ok(());
        }
        let lacks = match &self.model {
            ModelConfig { weights: None, .. } => "model.weights",
            ModelConfig { head: Some(_), head_weights: None, .. } => "model.head_weights",
            _ => return Ok(()),
        };
        Err(problem(
            format!("{length} is 0, so nothing would be trained, and {lacks} is not set"),
            format!("set {length} to 1 or more, or use `akin import` for weights that are trained already"),
        ))
    }

    /// Checks that parts of a batch give the embeddings that the whole batch gives.
    fn check_parts(&self) -> Result<()> {
        let entry = self.model.backbone.entry();
        let is_live = entry.batch_norm && self.model.batch_norm == BatchNormMode::Live;
        let whole = "let whole batches pass one device: remove optimizer.chunk and run.workers";
        let (setting, part, way_out) = match (self.run.workers, self.optimizer.chunk) {
            _ if self.has_whole_set_batches() => (
                "sampler.kind is `whole_set`, whose images pass in chunks".to_owned(),
                "a chunk",
                "use another sampler.kind",
            ),
            (2.., _) => (format!("run.workers is {}", self.run.workers), "a worker", whole),
            (_, Some(_)) => ("optimizer.chunk is set".to_owned(), "a chunk", whole),
            _ => return Ok(()),
        };
        if !is_live || self.model.freeze_backbone {
            return Ok(());
        }
        Err(problem(
            format!(
                "{setting}, but the batch normalisation of {} is live: it normalises by the statistics of the batch, which \
                 {part} does not have",
                entry.name
            ),
            format!("set model.batch_norm = \"frozen\" or \"fixed_statistics\", or {way_out}"),
        ))
    }

    /// Checks that `optimizer.lr_terms` has a rate for each term of the loss.
    fn check_terms(&self) -> Result<()> {
        let rates = self.optimizer.lr_terms.len();
        let terms = match &self.loss {
            LossConfig::Sum(sum) => sum.terms.len(),
            _ => return Ok(()),
        };
        if rates != 0 && rates != terms {
            return Err(problem(
                format!("optimizer.lr_terms has {rates} rates, but loss.terms has {terms} terms"),
                "give one rate for each term, in the same order",
            ));
        }
        Ok(())
    }
}

/// The name of a setting in a config, without its numbers, such as the curvature of the Poincaré ball.
pub fn setting_name(setting: impl Serialize) -> String {
    match serde_json::to_value(setting) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(table)) if table.contains_key("kind") => setting_name(&table["kind"]),
        Ok(Value::Object(table)) => table.keys().cloned().collect(),
        other => unreachable!("neither a name nor a name with settings: {other:?}"),
    }
}
