//! The config: one TOML file that says everything about a run.
//!
//! ```toml
//! [run]
//! epochs = 10
//!
//! [data]
//! kind = "csv"
//! path = "${AKIN_DATA}/grocery/labels.csv"
//! levels = ["department", "kind", "variety"]   # coarse → fine
//!
//! [model]
//! backbone = { kind = "small_resnet" }
//! head = { dimension = 128 }
//! preprocessing = { … }
//!
//! [loss]
//! kind = "happier"
//! ```
//!
//! Every key has its meaning and default beside it below. An unknown key is refused with the nearest
//! known one. Paths may name environment variables as `${NAME}`; a relative path counts from the
//! config file, one given by `--set` or in a built-in recipe from the current directory. The resolved
//! config, with every default and absolute paths, is saved in the run and reads back as the same config.
//! A section `[compare]` belongs to [`crate::compare`] and is no part of a run.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs, path};

use akin_core::evaluate::EvaluationConfig;
use akin_core::image::Preprocessing;
use akin_core::losses::LossConfig;
use akin_core::models::{BackboneConfig, HeadConfig};
use anyhow::Result;
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::problem::{Advise, did_you_mean, problem};
use crate::recipes;

/// A whole config. See the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long, where, from which seed.
    pub run: RunConfig,
    /// Which images, and how they are labelled.
    pub data: DataConfig,
    /// What happens to a training image. With `model.freeze_backbone` nothing does, and the section
    /// is refused.
    pub augment: Option<AugmentConfig>,
    /// Image → embedding.
    pub model: ModelConfig,
    /// What training minimises.
    pub loss: LossConfig,
    /// What a batch is made of.
    #[serde(default)]
    pub sampler: SamplerConfig,
    /// How weights move.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// How learning rates change.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// What evaluation reports. What it ranks by is, unless said, what the head's embeddings are compared by.
    #[serde(default)]
    pub eval: EvaluationConfig,
}

/// `[run]`: how long, where, from which seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// What tables and the page call the run. Default: the name of the config file.
    #[serde(default)]
    pub name: String,
    /// The run directory. Default: `runs/NAME` in the current directory.
    #[serde(default)]
    pub out: PathBuf,
    /// From this follows all that is random. Default 0.
    #[serde(default)]
    pub seed: u64,
    /// Where tensors are computed. Default `auto`: the first of cuda, vulkan, wgpu and cpu that this
    /// `akin` was built with and that works.
    #[serde(default)]
    pub device: DeviceName,
    /// How many batches to train on. Either this or `epochs`.
    pub steps: Option<u64>,
    /// How many epochs to train for. Either this or `steps`.
    pub epochs: Option<u64>,
    /// Epochs between checkpoints; there is always one at the end. Default 1.
    #[serde(default = "one")]
    pub checkpoint_every_epochs: u64,
    /// Epochs between evaluations; 0 evaluates only at the end. Default 0.
    #[serde(default)]
    pub evaluate_every_epochs: u64,
}

/// Where tensors are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DeviceName {
    /// The first of the others that this `akin` was built with and that works.
    #[default]
    Auto,
    /// An Nvidia GPU.
    Cuda,
    /// A GPU through Vulkan.
    Vulkan,
    /// A GPU through WebGPU's native form.
    Wgpu,
    /// The processor.
    Cpu,
}

/// `[data]`: which images, and how they are labelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// `folder`: a folder tree in which each folder level is a level of the taxonomy.
    /// `csv`: a file with a path, one column per level, and a split per line.
    pub kind: DataKind,
    /// The folder, or the CSV file.
    pub path: PathBuf,
    /// csv: the folder that its paths count from. Default: the folder that the CSV file is in.
    pub images: Option<PathBuf>,
    /// The names of the levels, coarse → fine; for a CSV they are its columns.
    pub levels: Vec<String>,
    /// csv: whether a class is its whole label path, so that `Apple / Gala` and `Pear / Gala` are two.
    /// Default false: equal names are one class, which must then have one parent. In a folder tree a
    /// class is always its path.
    #[serde(default)]
    pub qualify: bool,
    /// Images with fewer labels than levels: `refuse` them (the default), or `fill` what is missing
    /// with the label above.
    #[serde(default)]
    pub ragged: Ragged,
    /// csv: the column with the paths of the images. Default `path`.
    #[serde(default = "path_column")]
    pub path_column: String,
    /// csv: the column that says which split an image belongs to; empty cells leave an image out.
    /// Default `split`.
    #[serde(default = "split_column")]
    pub split_column: String,
    /// What the training split is called: a subfolder of the tree, or a value of the split column.
    /// Default `train`; `test`, `query` and `gallery` alike.
    #[serde(default = "train_name")]
    pub train: String,
    /// The evaluation split in which every image is a query and the others are its gallery.
    #[serde(default = "test_name")]
    pub test: String,
    /// The queries, where they and the gallery are two sets.
    #[serde(default = "query_name")]
    pub query: String,
    /// The gallery, where it and the queries are two sets.
    #[serde(default = "gallery_name")]
    pub gallery: String,
    /// For data without splits: hold out this share of the finest classes, spread evenly over their
    /// parents and drawn from the seed, as the `test` split. Default: none.
    pub test_fraction: Option<f64>,
    /// For choosing settings without a look at the evaluation splits: hold out this share of the
    /// finest classes of the training split, drawn in the same way, and evaluate on them instead.
    /// Default: none.
    pub validation_fraction: Option<f64>,
}

/// What kind of data set it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// A folder tree.
    Folder,
    /// A CSV file.
    Csv,
}

/// What to do with images that have fewer labels than there are levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ragged {
    /// Refuse them.
    #[default]
    Refuse,
    /// Give them the label above.
    Fill,
}

/// `[augment]`: what happens to a training image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// The share of the image's area that a random crop keeps, from … to. Default [0.4, 1].
    pub crop_scale: [f64; 2],
    /// Width ÷ height of a random crop, from … to. Default [3/4, 4/3].
    pub crop_ratio: [f64; 2],
    /// Whether every second image is mirrored. Default true.
    pub flip: bool,
}

impl Default for AugmentConfig {
    fn default() -> Self {
        Self { crop_scale: [0.4, 1.0], crop_ratio: [0.75, 4.0 / 3.0], flip: true }
    }
}

/// `[model]`: image → embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// A safetensors file with weights for the backbone. Default: random weights.
    pub weights: Option<PathBuf>,
    /// Whether the backbone keeps its first weights. Its features are then computed once, without
    /// augmentation, and only the head is trained on them. Default false.
    #[serde(default)]
    pub freeze_backbone: bool,
    /// freeze_backbone: a file that keeps the features for later runs. It is computed anew where
    /// weights, preprocessing or images have changed. Default: none, so that each run computes them.
    pub feature_cache: Option<PathBuf>,
    /// Image → features, for example `{ kind = "small_resnet", width = 16 }`.
    pub backbone: BackboneConfig,
    /// Features → embedding, for example `{ dimension = 128, layer_norm = true }`. Without it the
    /// embedding is the features, brought to unit length.
    pub head: Option<HeadConfig>,
    /// Image bytes → numbers.
    pub preprocessing: Preprocessing,
}

/// `[sampler]`: what a batch is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplerConfig {
    /// P: finest classes in a batch. Default 16.
    pub classes_per_batch: usize,
    /// K: images of each of them. Default 4.
    pub images_per_class: usize,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { classes_per_batch: 16, images_per_class: 4 }
    }
}

/// `[optimizer]`: how weights move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// `adam` (weight decay added to the gradient, as torch does), `adamw` (decoupled) or `sgd`.
    /// Default `adam`.
    pub kind: OptimizerKind,
    /// Learning rate of the backbone. Default 1e-4.
    pub lr_backbone: f64,
    /// Learning rate of the head. Default 5e-4.
    pub lr_head: f64,
    /// Learning rate of what the loss learns, its proxies. Default 1e-2.
    pub lr_proxies: f64,
    /// Weight decay of backbone and head. Default 1e-4.
    pub weight_decay: f64,
    /// Weight decay of the proxies. Default 0.
    pub weight_decay_proxies: f64,
    /// Adam: how slowly the mean gradient moves. Default 0.9.
    pub beta_1: f64,
    /// Adam: how slowly the mean squared gradient moves. Default 0.999.
    pub beta_2: f64,
    /// Adam: what keeps the division finite. Default 1e-8.
    pub epsilon: f64,
    /// sgd: the share of the last step that is taken again. Default 0.
    pub momentum: f64,
    /// sgd: whether the gradient is taken after that share. Default false.
    pub nesterov: bool,
    /// The gradient's greatest norm, over all weights together; longer ones are shortened.
    /// Default: no limit.
    pub clip_norm: Option<f64>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            kind: OptimizerKind::Adam,
            lr_backbone: 1e-4,
            lr_head: 5e-4,
            lr_proxies: 1e-2,
            weight_decay: 1e-4,
            weight_decay_proxies: 0.0,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            momentum: 0.0,
            nesterov: false,
            clip_norm: None,
        }
    }
}

/// The rule by which weights move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Kingma & Ba, 2015; weight decay is added to the gradient.
    Adam,
    /// Loshchilov & Hutter, 2019; weight decay is apart.
    AdamW,
    /// Plain descent, with momentum if asked for.
    Sgd,
}

/// `[schedule]`: how learning rates change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// `cosine`: from 1 to `final_factor` times the learning rates along half a cosine.
    /// `constant`: no change. Default `cosine`.
    pub kind: ScheduleKind,
    /// Steps at the start in which only head and proxies learn, the backbone being frozen. Either
    /// this or `warmup_epochs`. Default: none.
    pub warmup_steps: Option<u64>,
    /// The same in epochs.
    pub warmup_epochs: Option<u64>,
    /// cosine: what is left of the learning rates at the end, 0 … 1. Default 0.
    pub final_factor: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { kind: ScheduleKind::Cosine, warmup_steps: None, warmup_epochs: None, final_factor: 0.0 }
    }
}

/// The curve of the learning rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Half a cosine.
    Cosine,
    /// No change.
    Constant,
}

fn one() -> u64 {
    1
}

fn path_column() -> String {
    "path".into()
}

fn split_column() -> String {
    "split".into()
}

fn train_name() -> String {
    "train".into()
}

fn test_name() -> String {
    "test".into()
}

fn query_name() -> String {
    "query".into()
}

fn gallery_name() -> String {
    "gallery".into()
}

impl RunConfig {
    /// How many steps the run takes.
    pub fn total_steps(&self, steps_per_epoch: usize) -> u64 {
        self.steps.or(self.epochs.map(|epochs| epochs.saturating_mul(steps_per_epoch as u64))).unwrap_or(0)
    }
}

impl ScheduleConfig {
    /// How many steps the backbone is frozen for.
    pub fn total_warmup_steps(&self, steps_per_epoch: usize) -> u64 {
        self.warmup_steps
            .or(self.warmup_epochs.map(|epochs| epochs.saturating_mul(steps_per_epoch as u64)))
            .unwrap_or(0)
    }

    /// The factor of all learning rates at a step, 0 … `steps`.
    pub fn factor(&self, step: u64, steps: u64) -> f64 {
        match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Cosine => {
                let done = step as f64 / steps.max(1) as f64;
                let falling = (1.0 + (std::f64::consts::PI * done.min(1.0)).cos()) / 2.0;
                self.final_factor + (1.0 - self.final_factor) * falling
            }
        }
    }
}

impl Config {
    /// Reads a config file, with `--set` values over it, and checks it.
    ///
    /// # Errors
    ///
    /// A file that is not there or not TOML, an unknown or missing key, a value of the wrong type or
    /// out of its range, an unset environment variable.
    pub fn load(file: &Path, sets: &[String]) -> Result<Self> {
        Source::read(file, sets)?.config(&Table::new())
    }

    /// The config as TOML, from which it reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self)
            .expect("a checked config has only names and finite numbers, which TOML can say")
    }

    fn validate(&self) -> Result<()> {
        self.run.validate()?;
        self.data.validate()?;
        self.model.validate()?;
        if let Some(augment) = &self.augment {
            ensure(!self.model.freeze_backbone, || {
                (
                    "model.freeze_backbone is set beside [augment], but features are computed once, from \
                     images as they are"
                        .into(),
                    "remove [augment], or train the backbone too",
                )
            })?;
            augment.validate()?;
        }
        self.optimizer.validate()?;
        self.schedule.validate()?;
        self.eval.validate(self.data.levels.len())?;
        let SamplerConfig { classes_per_batch, images_per_class } = self.sampler;
        ensure(classes_per_batch > 0 && images_per_class > 0, || {
            (
                format!(
                    "[sampler] asks for batches of {classes_per_batch} classes × {images_per_class} images"
                ),
                "both must be at least 1; 16 and 4 are usual",
            )
        })
    }
}

impl DataConfig {
    /// Whether a split is drawn from the seed, so that runs of other seeds have other ones.
    pub fn draws_split(&self) -> bool {
        self.test_fraction.is_some() || self.validation_fraction.is_some()
    }

    /// Reads only what the data need, `[data]` and `run.seed`, from a config that may not be finished.
    ///
    /// # Errors
    ///
    /// As [`Config::load`], for that part.
    pub fn load(file: &Path, sets: &[String]) -> Result<(Self, u64)> {
        #[derive(Deserialize)]
        struct Part {
            data: DataConfig,
            #[serde(default)]
            run: Seed,
        }
        #[derive(Default, Deserialize)]
        struct Seed {
            #[serde(default)]
            seed: u64,
        }
        let source = Source::read(file, sets)?;
        let part: Part = source.parse(source.table.clone())?;
        part.data.validate()?;
        Ok((part.data, part.run.seed))
    }

    fn validate(&self) -> Result<()> {
        ensure(!self.levels.is_empty(), || {
            (
                "data.levels is empty".into(),
                "name the levels, coarse to fine, for example [\"order\", \"species\"]",
            )
        })?;
        let mut seen = HashSet::new();
        for level in &self.levels {
            ensure(!level.trim().is_empty() && seen.insert(level), || {
                (
                    format!("data.levels names {level:?} twice, or not at all"),
                    "give every level a name of its own",
                )
            })?;
        }
        let mut seen = HashSet::new();
        for name in [&self.train, &self.test, &self.query, &self.gallery] {
            ensure(!name.is_empty() && seen.insert(name), || {
                (
                    format!("two splits in [data] are called {name:?}, or one has no name"),
                    "give train, test, query and gallery names of their own",
                )
            })?;
        }
        let shares =
            [("test_fraction", self.test_fraction), ("validation_fraction", self.validation_fraction)];
        for (name, share) in shares {
            ensure(share.is_none_or(|share| share > 0.0 && share < 1.0), || {
                (
                    format!("data.{name} is {}", share.unwrap_or_default()),
                    "give a share of the finest classes between 0 and 1, for example 0.5",
                )
            })?;
        }
        ensure(self.kind == DataKind::Csv || self.images.is_none(), || {
            (
                "data.images is only for CSV data".into(),
                "remove it; in a folder tree `path` says where the images are",
            )
        })
    }
}

impl ModelConfig {
    fn validate(&self) -> Result<()> {
        ensure(self.freeze_backbone || self.feature_cache.is_none(), || {
            (
                "model.feature_cache is set, but the features of a backbone that learns change with every step"
                    .into(),
                "remove it, or set model.freeze_backbone = true",
            )
        })?;
        ensure(!self.freeze_backbone || self.head.is_some(), || {
            (
                "model.freeze_backbone is set without a head, so there is nothing to train".into(),
                "add model.head, for example { dimension = 128 }",
            )
        })
    }
}

impl RunConfig {
    fn validate(&self) -> Result<()> {
        ensure(self.steps.is_some() != self.epochs.is_some(), || {
            let both =
                if self.steps.is_some() { "gives both run.steps and run.epochs" } else { "gives neither" };
            (
                format!("the config {both}, so how long to train is unclear"),
                "set exactly one of run.steps and run.epochs",
            )
        })?;
        ensure(self.steps != Some(0) && self.epochs != Some(0), || {
            ("the run would train for no step at all".into(), "set run.steps or run.epochs to 1 or more")
        })?;
        ensure(self.checkpoint_every_epochs > 0, || {
            (
                "run.checkpoint_every_epochs is 0".into(),
                "set it to 1 or more; there is always a checkpoint at the end",
            )
        })?;
        ensure(i64::try_from(self.seed).is_ok(), || {
            (
                format!("run.seed is {}", self.seed),
                "choose a seed below 2^63, the largest whole number of TOML",
            )
        })
    }
}

impl AugmentConfig {
    fn validate(&self) -> Result<()> {
        let [from, to] = self.crop_scale;
        ensure(0.0 < from && from <= to && to <= 1.0, || {
            (
                format!("augment.crop_scale is [{from}, {to}]"),
                "give two shares of the area, 0 < from ≤ to ≤ 1, for example [0.4, 1.0]",
            )
        })?;
        let [from, to] = self.crop_ratio;
        ensure(0.0 < from && from <= to && to.is_finite(), || {
            (
                format!("augment.crop_ratio is [{from}, {to}]"),
                "give two ratios of width to height, 0 < from ≤ to, for example [0.75, 1.3333]",
            )
        })
    }
}

impl OptimizerConfig {
    fn validate(&self) -> Result<()> {
        let numbers = [
            ("lr_backbone", self.lr_backbone, 0.0),
            ("lr_head", self.lr_head, 0.0),
            ("lr_proxies", self.lr_proxies, 0.0),
            ("weight_decay", self.weight_decay, 0.0),
            ("weight_decay_proxies", self.weight_decay_proxies, 0.0),
            ("epsilon", self.epsilon, f64::MIN_POSITIVE),
            ("clip_norm", self.clip_norm.unwrap_or(1.0), f64::MIN_POSITIVE),
        ];
        for (name, value, least) in numbers {
            ensure(value.is_finite() && value >= least, || {
                let hint = if least > 0.0 {
                    "give a finite number above 0"
                } else {
                    "give a finite number of at least 0"
                };
                (format!("optimizer.{name} is {value}"), hint)
            })?;
        }
        for (name, value) in [("beta_1", self.beta_1), ("beta_2", self.beta_2), ("momentum", self.momentum)] {
            ensure((0.0..1.0).contains(&value), || {
                (format!("optimizer.{name} is {value}"), "give a number of at least 0 and below 1")
            })?;
        }
        ensure(self.kind == OptimizerKind::Sgd || (self.momentum == 0.0 && !self.nesterov), || {
            (
                "optimizer.momentum and optimizer.nesterov belong to sgd, and the optimizer is another"
                    .into(),
                "remove them, or set optimizer.kind = \"sgd\"; Adam's momentum is beta_1",
            )
        })?;
        ensure(!self.nesterov || self.momentum > 0.0, || {
            ("optimizer.nesterov needs a momentum".into(), "set optimizer.momentum, for example 0.9")
        })
    }
}

impl ScheduleConfig {
    fn validate(&self) -> Result<()> {
        ensure((0.0..=1.0).contains(&self.final_factor), || {
            (format!("schedule.final_factor is {}", self.final_factor), "give a number from 0 to 1")
        })?;
        ensure(self.warmup_steps.is_none() || self.warmup_epochs.is_none(), || {
            (
                "the config gives both schedule.warmup_steps and schedule.warmup_epochs".into(),
                "set at most one of them",
            )
        })
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> (String, &'static str)) -> Result<()> {
    if holds {
        return Ok(());
    }
    let (message, hint) = otherwise();
    Err(problem(message, hint))
}

/// Keys of which one replaces the other when it comes from `--set`.
const ALTERNATIVES: [[&str; 2]; 2] =
    [["run.steps", "run.epochs"], ["schedule.warmup_steps", "schedule.warmup_epochs"]];

/// Keys that hold paths.
const PATHS: [&str; 5] = ["run.out", "data.path", "data.images", "model.weights", "model.feature_cache"];

/// A config file with `--set` values over it, read but not yet a [`Config`].
pub struct Source {
    /// The file, or the name of a built-in recipe.
    file: PathBuf,
    text: String,
    /// Its paths are absolute.
    table: Table,
    compare: Table,
}

impl Source {
    /// Reads a file, or the built-in recipe of that name where there is no such file.
    ///
    /// # Errors
    ///
    /// A file that is not there or not TOML; a `--set` that is no assignment; an unset environment
    /// variable.
    pub fn read(file: &Path, sets: &[String]) -> Result<Self> {
        let shown = file.display();
        let text = match recipes::built_in(file) {
            Some(recipe) => recipe.text.to_owned(),
            None => fs::read_to_string(file).advise(
                || format!("the config {shown} cannot be read"),
                "check the path; `akin list recipes` names configs that are built in",
            )?,
        };
        let mut table: Table = toml::from_str(&text).map_err(|error| {
            let hint = "correct that line; tables are written [data], texts in double quotes";
            problem(format!("{shown} is not valid TOML\n{error}"), hint)
        })?;

        let mut given = HashSet::new();
        for set in sets {
            let (key, value) = parse_set(set)?;
            for [one, other] in ALTERNATIVES.into_iter().chain(ALTERNATIVES.map(|[one, other]| [other, one]))
            {
                if key == one {
                    take(&mut table, other);
                }
            }
            put(&mut table, &key, value)?;
            given.insert(key);
        }
        let compare = match table.remove("compare") {
            None => Table::new(),
            Some(Value::Table(compare)) => compare,
            Some(_) => {
                return Err(problem(format!("{shown}: `compare` is not a section"), "write [compare]"));
            }
        };
        let mut source = Self { file: file.to_owned(), text, table: Table::new(), compare };
        source.resolve(&mut table, |key| given.contains(key))?;
        source.table = table;
        Ok(source)
    }

    /// What the file is called, without its ending.
    pub fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The config of a run, with the values of `over` laid over those of the file.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn config(&self, over: &Table) -> Result<Config> {
        let mut table = self.table.clone();
        table.entry("run").or_insert_with(|| Value::Table(Table::new()));
        lay_over(&mut table, over);
        self.resolve(&mut table, |_| false)?;
        let ranked_as_said = find(&mut table, "eval.similarity").is_some();
        let mut config: Config = self.parse(table)?;
        if !ranked_as_said && let Some(head) = &config.model.head {
            config.eval.similarity = head.geometry.similarity();
        }
        if config.run.name.is_empty() {
            config.run.name = self.name();
        }
        if config.run.out.as_os_str().is_empty() {
            config.run.out = current_directory()?.join("runs").join(&config.run.name);
        }
        config.validate()?;
        Ok(config)
    }

    /// The section `[compare]`.
    ///
    /// # Errors
    ///
    /// An unknown key or a value of the wrong type.
    pub fn compare<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse(self.compare.clone())
    }

    /// Makes the paths of a config absolute.
    fn resolve(&self, table: &mut Table, from_here: impl Fn(&str) -> bool) -> Result<()> {
        let beside =
            path::absolute(self.file.parent().unwrap_or(Path::new(""))).or_else(|_| current_directory())?;
        for key in PATHS {
            let Some(Value::String(text)) = find(table, key) else { continue };
            let here = if from_here(key) { current_directory()? } else { beside.clone() };
            *text = utf8(&here.join(expand(text, key)?))?;
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&self, table: Table) -> Result<T> {
        table.clone().try_into().map_err(|error: toml::de::Error| {
            let (message, hint) = explain(error.message(), &place_of_fault::<T>(&table, &error));
            let place = self.line_of::<T>(&error).map(|line| format!(", line {line}")).unwrap_or_default();
            problem(format!("{}{place}: {message}", self.file.display()), hint)
        })
    }

    /// Where the file, as it stands without `--set`, has the same fault.
    fn line_of<T: DeserializeOwned>(&self, error: &toml::de::Error) -> Option<usize> {
        let in_file = toml::from_str::<T>(&self.text).err()?;
        let start = in_file.span().filter(|_| in_file.message() == error.message())?.start;
        Some(self.text.get(..start)?.matches('\n').count() + 1)
    }
}

/// The dotted key at fault. Inside a table with a `kind`, serde names no more than the table; there the key is found
/// as the one without which the config has another fault, or none.
fn place_of_fault<T: DeserializeOwned>(table: &Table, error: &toml::de::Error) -> String {
    let said = error.to_string();
    let named =
        said.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`')).unwrap_or_default();
    if error.message().starts_with("missing field") {
        return named.into();
    }
    let whole = Value::Table(table.clone());
    let changes = |place: &[String]| {
        let rest = without(whole.clone(), place).try_into::<T>();
        rest.err().is_none_or(|other| other.message() != error.message())
    };
    let mut place = Vec::new();
    let mut here = &whole;
    'deeper: loop {
        for (key, value) in parts_of(here) {
            place.push(key);
            if changes(&place) {
                here = value;
                continue 'deeper;
            }
            place.pop();
        }
        break;
    }
    place.retain(|key| key.parse::<usize>().is_err());
    let found = place.join(".");
    if found.len() > named.len() { found } else { named.into() }
}

/// The keys, or places, of a value with what they hold; `kind`, without which nothing is as it was, comes last.
fn parts_of(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Table(table) => {
            let mut parts: Vec<_> = table.iter().map(|(key, value)| (key.clone(), value)).collect();
            parts.sort_by_key(|(key, _)| key == "kind");
            parts
        }
        Value::Array(items) => items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect(),
        _ => Vec::new(),
    }
}

/// A value without what is at a place in it.
fn without(mut value: Value, place: &[String]) -> Value {
    let [key, rest @ ..] = place else { return value };
    match &mut value {
        Value::Table(table) => {
            if let (Some(part), [_, ..]) = (table.remove(key), rest) {
                table.insert(key.clone(), without(part, rest));
            }
        }
        Value::Array(items) => {
            let number = key.parse().expect("`parts_of` numbers items");
            let item = items.remove(number);
            if !rest.is_empty() {
                items.insert(number, without(item, rest));
            }
        }
        _ => {}
    }
    value
}

/// What a serde error says, in the words of a config.
fn explain(message: &str, place: &str) -> (String, String) {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let suggestion = did_you_mean(word, known.iter().copied());
    if message.starts_with("unknown field") {
        let place = match place.rsplit_once('.') {
            Some((table, key)) if key == word => table,
            None if place == word => "",
            _ => place,
        };
        let (what, list) =
            if place.is_empty() { ("section", "the sections are") } else { ("key", "the keys are") };
        let at = if place.is_empty() { String::new() } else { format!(" in [{place}]") };
        (format!("unknown {what} `{word}`{at}"), format!("{suggestion}{list} {}", known.join(", ")))
    } else if message.starts_with("unknown variant") {
        let at = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
        (format!("unknown value `{word}`{at}"), format!("{suggestion}it can be {}", known.join(", ")))
    } else if message.starts_with("missing field") {
        let (what, at) = match place {
            "" => ("section", String::new()),
            place => ("key", format!(" in [{place}]")),
        };
        (format!("the {what} `{word}` is missing{at}"), "add it, in the file or with `--set`".into())
    } else {
        let words = [
            ("expected u64", "expected a whole number of at least 0"),
            ("expected usize", "expected a whole number of at least 0"),
            ("expected f64", "expected a number"),
            ("floating point `", "number `"),
            ("expected a sequence", "expected a list"),
            ("invalid type: map", "invalid type: table"),
        ];
        let plain = words.iter().fold(message.to_owned(), |plain, (from, to)| plain.replace(from, to));
        let plain = match plain.split_once("expected internally tagged enum") {
            Some((before, _)) => format!("{before}expected a table with a `kind`"),
            None => plain,
        };
        (format!("`{place}` has a wrong value: {plain}"), format!("correct the value of `{place}`"))
    }
}

/// `a.b=value`, or `a={ b = value }` → the key and the value; what is not TOML is a string.
fn parse_set(set: &str) -> Result<(String, Value)> {
    let Some((key, text)) = set.split_once('=') else {
        return Err(problem(
            format!("`--set {set}` has no `=`"),
            "write `--set SECTION.KEY=VALUE`, for example run.seed=1",
        ));
    };
    let (key, text) = (key.trim(), text.trim());
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok().filter(|table| table.len() == 1);
    let value =
        parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()));
    let section = !key.contains('.');
    if section && !value.is_table() || key.split('.').any(|part| part.trim().is_empty()) {
        return Err(problem(
            format!("`--set {set}` does not name a section and a key"),
            "write `--set SECTION.KEY=VALUE`, for example run.seed=1, or a whole section as a table",
        ));
    }
    Ok((key.to_owned(), value))
}

/// Lays the values of one table over those of another. A table with a `kind` replaces the one below
/// it, as its keys belong to that kind.
pub fn lay_over(below: &mut Table, over: &Table) {
    for (key, value) in over {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(over)) if !over.contains_key("kind") => {
                lay_over(below, over);
            }
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Puts a value at a dotted key, in tables that are made where they are missing.
///
/// # Errors
///
/// A part of the key that is there and not a table.
pub fn put(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut here = table;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        here = here.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(
            || {
                problem(
                    format!("`--set {key}=…` reaches into `{part}`, which is not a table"),
                    format!("set `{part}` itself"),
                )
            },
        )?;
    }
    here.insert(last.to_owned(), value);
    Ok(())
}

fn find<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let (section, key) = key.split_once('.')?;
    table.get_mut(section)?.as_table_mut()?.get_mut(key)
}

fn take(table: &mut Table, key: &str) {
    if let Some((section, key)) = key.split_once('.')
        && let Some(Value::Table(section)) = table.get_mut(section)
    {
        section.remove(key);
    }
}

/// Replaces every `${NAME}` by the environment variable of that name.
fn expand(text: &str, key: &str) -> Result<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err(problem(format!("`{key}` has `${{` without `}}`: {text}"), "write ${NAME}"));
        };
        let value = env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
            problem(
                format!("`{key}` is {text}, but the environment variable {name} is not set"),
                format!("set it, for example `export {name}=/path/to/data`, or pass `--set {key}=…`"),
            )
        })?;
        expanded = expanded + before + &value;
        rest = after;
    }
    Ok(expanded + rest)
}

fn current_directory() -> Result<PathBuf> {
    env::current_dir()
        .advise(|| "the current directory is not there any more".into(), "change to one that is")
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        problem(
            format!("the path {} is not UTF-8", path.display()),
            "use a path that is: a config is UTF-8 text",
        )
    })
}

#[cfg(test)]
mod tests {
    use akin_core::cosine::Similarity;

    use super::*;
    use crate::problem::parts;

    const GOOD: &str = r#"
[run]
epochs = 2

[data]
kind = "csv"
path = "labels.csv"
levels = ["order", "species"]

[model]
backbone = { kind = "small_resnet" }
head = { dimension = 8 }


[model.preprocessing]
resize = 32
crop = 32
filter = "bilinear"
channels = "rgb"
scale = 0.003921569
mean = [0.5, 0.5, 0.5]
deviation = [0.5, 0.5, 0.5]

[loss]
kind = "norm_softmax"
"#;

    fn load(text: &str, sets: &[&str]) -> Result<Config> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tiny.toml");
        fs::write(&file, text).unwrap();
        Config::load(&file, &sets.iter().map(|&set| set.to_owned()).collect::<Vec<_>>())
    }

    fn refusal(text: &str, sets: &[&str]) -> (String, String) {
        let (message, hint) = parts(&load(text, sets).unwrap_err());
        (message, hint.expect("every refusal says what to do"))
    }

    fn with(set: &str) -> (String, String) {
        refusal(GOOD, &[set])
    }

    #[test]
    fn a_short_config_has_every_default_and_reads_back_as_itself() {
        let config = load(GOOD, &[]).unwrap();
        assert_eq!(config.run.name, "tiny");
        assert!(config.run.out.ends_with("runs/tiny"));
        assert!(config.data.path.is_absolute() && config.data.path.ends_with("labels.csv"));
        assert_eq!(config.sampler, SamplerConfig::default());
        let elsewhere = tempfile::tempdir().unwrap();
        let saved = elsewhere.path().join("config.toml");
        fs::write(&saved, config.to_toml()).unwrap();
        assert_eq!(Config::load(&saved, &[]).unwrap(), config);
    }

    #[test]
    fn set_reaches_every_key_and_bare_words_are_strings() {
        let sets =
            ["run.seed=7", "optimizer.kind=sgd", "optimizer.momentum=0.9", "augment.crop_scale=[0.2, 1]"];
        let config = load(GOOD, &sets).unwrap();
        assert_eq!(config.run.seed, 7);
        assert_eq!(config.optimizer.kind, OptimizerKind::Sgd);
        assert_eq!(config.augment.unwrap().crop_scale, [0.2, 1.0]);
        assert_eq!(load(GOOD, &["loss={kind='fast_ap'}"]).unwrap().loss.name(), "fast_ap");
    }

    #[test]
    fn embeddings_are_ranked_as_their_space_compares_them_unless_said_otherwise() {
        let similarity = |sets: &[&str]| load(GOOD, sets).unwrap().eval.similarity;
        assert_eq!(similarity(&[]), Similarity::Cosine);
        let binary = "model.head.geometry={kind='binary'}";
        assert_eq!(similarity(&[binary]), Similarity::Hamming);
        assert_eq!(similarity(&[binary, "eval.similarity='dot'"]), Similarity::Dot);
        let ball = Similarity::Poincare { curvature: 0.3 };
        assert_eq!(similarity(&["model.head.geometry={kind='poincare',curvature=0.3}"]), ball);
    }

    #[test]
    fn steps_from_the_command_line_replace_epochs_from_the_file() {
        let run = load(GOOD, &["run.steps=30"]).unwrap().run;
        assert_eq!((run.steps, run.epochs, run.total_steps(5)), (Some(30), None, 30));
        assert_eq!(load(GOOD, &[]).unwrap().run.total_steps(5), 10);
    }

    #[test]
    fn a_path_given_by_set_counts_from_the_current_directory() {
        let config = load(GOOD, &["data.path=other.csv"]).unwrap();
        assert_eq!(config.data.path, env::current_dir().unwrap().join("other.csv"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let (message, hint) = refusal(&GOOD.replace("epochs", "epocs"), &[]);
        assert!(message.contains("tiny.toml, line 3: unknown key `epocs` in [run]"), "{message}");
        assert!(hint.starts_with("did you mean `epochs`? the keys are name, out, seed"), "{hint}");

        let (message, hint) = with("optimiser.kind=sgd");
        assert!(message.ends_with("unknown section `optimiser`"), "{message}");
        assert!(hint.starts_with("did you mean `optimizer`?"), "{hint}");
    }

    #[test]
    fn an_unknown_value_is_refused_with_the_nearest_known_one() {
        let (message, hint) = with("optimizer.kind=adamm");
        assert!(message.ends_with("unknown value `adamm` in `optimizer.kind`"), "{message}");
        assert_eq!(hint, "did you mean `adam`? it can be adam, adamw, sgd");
    }

    #[test]
    fn a_missing_key_or_section_is_named() {
        let (message, _) = refusal(&GOOD.replace("kind = \"csv\"", ""), &[]);
        assert!(message.ends_with("the key `kind` is missing in [data]"), "{message}");
        let (message, _) = refusal("[run]\nsteps = 1", &[]);
        assert!(message.ends_with("the section `data` is missing"), "{message}");
    }

    #[test]
    fn a_wrong_type_is_named_with_its_key() {
        let (message, hint) = with("run.seed=-1");
        assert!(message.contains("`run.seed` has a wrong value"), "{message}");
        assert!(message.contains("a whole number of at least 0"), "{message}");
        assert!(hint.contains("run.seed"));
        assert!(with("augment.crop_scale=0.4").0.contains("augment.crop_scale"));
    }

    #[test]
    fn a_fault_inside_a_table_with_a_kind_is_named_with_its_key() {
        let happier = "loss={kind='happier_f',surrogate={upper_step={temperature='hot'}}}";
        let terms = "terms=[{weight=1,loss={kind='fast_ap'}},{weight='one',loss={kind='fast_ap'}}]";
        let term = &format!("loss={{kind='sum',{terms}}}");
        for (set, part) in [
            ("loss.temperature=hot", "`loss.temperature` has a wrong value: invalid type: string \"hot\""),
            (happier, "`loss.surrogate.upper_step.temperature` has a wrong value"),
            (term, "`loss.terms.weight` has a wrong value: invalid type: string \"one\""),
            (
                "loss={kind='contrastive',miner='all'}",
                "`loss.miner` has a wrong value: invalid type: string \"all\", expected a table with a `kind`",
            ),
            ("loss={kind='contrastive',miner={kind='al'}}", "unknown value `al` in `loss.miner.kind`"),
            ("loss={kind='levels',loss={kind='fast_app'}}", "unknown value `fast_app` in `loss.loss.kind`"),
            ("loss={kind='levels',loss={kind='fast_ap',bin=3}}", "unknown key `bin` in [loss.loss]"),
        ] {
            let (message, _) = with(set);
            assert!(message.contains(part), "{set}: {message}");
        }
    }

    #[test]
    fn values_out_of_their_range_are_refused() {
        for (set, part) in [
            ("run.epochs=0", "no step at all"),
            ("run.checkpoint_every_epochs=0", "checkpoint_every_epochs is 0"),
            ("data.levels=[]", "data.levels is empty"),
            ("data.levels=[\"a\", \"a\"]", "names \"a\" twice"),
            ("data.test=train", "called \"train\""),
            ("data.test_fraction=1", "test_fraction is 1"),
            ("augment.crop_scale=[0, 1]", "crop_scale is [0, 1]"),
            ("augment.crop_ratio=[2, 1]", "crop_ratio is [2, 1]"),
            ("sampler.images_per_class=0", "16 classes × 0 images"),
            ("optimizer.lr_head=-1", "optimizer.lr_head is -1"),
            ("optimizer.lr_head=nan", "optimizer.lr_head is NaN"),
            ("optimizer.epsilon=0", "optimizer.epsilon is 0"),
            ("optimizer.beta_1=1", "optimizer.beta_1 is 1"),
            ("optimizer.momentum=0.9", "belong to sgd"),
            ("schedule.final_factor=2", "final_factor is 2"),
            ("eval.block=0", "`block`"),
            ("eval.metrics=[]", "`metrics` is empty"),
            ("eval.metrics=[\"recal@1\"]", "no metric `recal@1`"),
            ("eval.relevance={ kind = \"weighted_ap\", weights = [1] }", "1 relevance weights"),
        ] {
            let (message, hint) = with(set);
            assert!(message.contains(part), "{set}: {message}");
            assert!(!hint.is_empty());
        }
        assert!(refusal(&GOOD.replace("epochs = 2", "epochs = 2\nsteps = 2"), &[]).0.contains("both"));
        assert!(refusal(&GOOD.replace("epochs = 2", ""), &[]).0.contains("neither"));
    }

    #[test]
    fn a_set_that_is_no_assignment_is_refused() {
        assert!(with("run.seed").0.contains("has no `=`"));
        assert!(with("seed=1").0.contains("does not name a section"));
        assert!(with("loss=happier").0.contains("does not name a section"));
        assert!(with("run.epochs.deep=1").0.contains("`epochs`, which is not a table"));
    }

    #[test]
    fn a_file_that_is_missing_or_not_toml_is_refused() {
        let (message, hint) = parts(&Config::load(Path::new("nowhere.toml"), &[]).unwrap_err());
        assert!(message.contains("the config nowhere.toml cannot be read"), "{message}");
        assert!(hint.is_some());
        let (message, _) = refusal("[run\nsteps = 1", &[]);
        assert!(message.contains("not valid TOML") && message.contains("line 1"), "{message}");
    }

    #[test]
    fn an_unset_environment_variable_is_named() {
        let (message, hint) = with("data.path=${AKIN_SURELY_UNSET}/labels.csv");
        assert!(message.contains("`data.path`") && message.contains("AKIN_SURELY_UNSET"), "{message}");
        assert!(hint.contains("export AKIN_SURELY_UNSET="), "{hint}");
        assert!(with("data.path=${OPEN").0.contains("without `}`"));
        let home = load(GOOD, &["data.path=${CARGO_MANIFEST_DIR}/x.csv"]).unwrap();
        assert_eq!(home.data.path, Path::new(env!("CARGO_MANIFEST_DIR")).join("x.csv"));
    }

    #[test]
    fn the_learning_rate_falls_along_half_a_cosine() {
        let schedule = ScheduleConfig { final_factor: 0.1, ..ScheduleConfig::default() };
        assert_eq!(schedule.factor(0, 100), 1.0);
        assert!((schedule.factor(50, 100) - 0.55).abs() < 1e-12);
        assert!((schedule.factor(100, 100) - 0.1).abs() < 1e-12);
    }
}
