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

use std::path::{Path, PathBuf};

use akin_core::evaluate::EvaluationConfig;
use akin_core::image::{Preprocessing, PreprocessingConfig};
use akin_core::losses::LossConfig;
use akin_core::models::{BackboneConfig, HeadConfig};
use anyhow::Result;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

mod fault;
mod overlay;
mod range;
pub mod reference;
mod schema;
mod source;

pub use overlay::{lay_over, put};
pub use source::Source;

/// A whole config. See the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize, ValueEnum)]
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
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// A folder tree.
    Folder,
    /// A CSV file.
    Csv,
}

/// What to do with images that have fewer labels than there are levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ragged {
    /// Refuse them.
    #[default]
    Refuse,
    /// Give them the label above.
    Fill,
}

/// `[augment]`: what happens to a training image.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
    /// What happens to an image before the backbone sees it: resize, centre crop, normalise. For example `"imagenet"`,
    /// or `{ name = "imagenet", crop = 128 }`. Default: what the backbone expects, which for `small_resnet` is
    /// `{ name = "inception", crop = 96 }` and for `squeezenet` `{ name = "caffe", crop = 224 }`.
    #[schemars(with = "Option<PreprocessingConfig>")]
    pub preprocessing: Preprocessing,
}

/// `[sampler]`: what a batch is made of.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplerConfig {
    /// P: the number of finest classes in a batch. Default: 16, or as many as the training split has if
    /// those are fewer.
    pub classes_per_batch: Option<usize>,
    /// K: the number of images of each class in a batch. A class with fewer images repeats them.
    /// Default 4.
    pub images_per_class: usize,
}

impl SamplerConfig {
    /// P if the config does not set it and there are enough classes.
    pub const DEFAULT_CLASSES: usize = 16;

    /// A batch in words: `16 classes × 4 images`.
    pub fn describe(&self) -> String {
        let classes = match self.classes_per_batch {
            Some(classes) => classes.to_string(),
            None => format!("up to {}", Self::DEFAULT_CLASSES),
        };
        format!("{classes} classes × {} images", self.images_per_class)
    }
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { classes_per_batch: None, images_per_class: 4 }
    }
}

/// `[optimizer]`: how weights move.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
        #[derive(JsonSchema, Deserialize)]
        struct Part {
            data: DataConfig,
            #[serde(default)]
            run: Seed,
        }
        #[derive(Default, JsonSchema, Deserialize)]
        struct Seed {
            #[serde(default)]
            seed: u64,
        }
        let source = Source::read(file, sets)?;
        let part: Part = source.part()?;
        part.data.validate()?;
        Ok((part.data, part.run.seed))
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use akin_core::geometry::Geometry;
    use akin_core::image::Normalisation;
    use akin_core::similarity::Similarity;

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
scale = 0.00392156862745098
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
    fn another_kind_begins_without_the_keys_of_the_one_before() {
        let cold = GOOD.replace("kind = \"norm_softmax\"", "kind = \"norm_softmax\"\ntemperature = 0.01");
        let loss = |sets: &[&str]| load(&cold, sets).unwrap().loss;
        assert_eq!(loss(&["loss.kind=fast_ap"]), LossConfig::named("fast_ap").unwrap());
        assert_eq!(loss(&["loss.bins=4", "loss.kind=fast_ap"]), loss(&["loss={kind='fast_ap',bins=4}"]));
        assert_eq!(loss(&["loss.kind=norm_softmax"]), loss(&[]));
        let levels = load(&cold, &["loss.loss.kind=fast_ap", "loss.kind=levels"]).unwrap().loss;
        assert_eq!(levels, load(&cold, &["loss={kind='levels',loss={kind='fast_ap'}}"]).unwrap().loss);
        let happier = loss(&["loss.kind=happier", "loss={kind='fast_ap'}"]);
        assert_eq!(happier, LossConfig::named("happier").unwrap());
        let head = ["model.head.geometry.kind=binary", "model.head={dimension=4}"];
        let head = load(&cold, &head).unwrap().model.head.unwrap();
        assert_eq!((head.dimension, head.geometry), (4, Geometry::Binary));
        // An optimiser has the same keys whatever its kind.
        let optimizer = load(&cold, &["optimizer.lr_head=0.5", "optimizer.kind=adamw"]).unwrap().optimizer;
        assert_eq!((optimizer.kind, optimizer.lr_head), (OptimizerKind::AdamW, 0.5));
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
        assert!(
            hint.starts_with("did you mean `epochs`? the keys are checkpoint_every_epochs, device"),
            "{hint}"
        );

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
    fn all_missing_keys_are_named_at_once() {
        let (message, _) = refusal(&GOOD.replace("kind = \"csv\"", ""), &[]);
        assert!(message.ends_with("the setting `data.kind` (folder, csv) is missing"), "{message}");
        let (message, hint) = refusal("[model]\nhead = {}", &[]);
        assert!(
            message.ends_with(
                "these settings are missing: `model.head.dimension`, `model.backbone.kind` (small_resnet, \
                 squeezenet), `data.kind` (folder, csv), `data.path`, `data.levels`, `loss.kind`, \
                 `run.steps` or `run.epochs`"
            ),
            "{message}"
        );
        assert!(hint.contains("`--set`"), "{hint}");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_key_and_line() {
        let (message, hint) = with("run.seed=-1");
        assert!(
            message.ends_with("tiny.toml: `run.seed` is -1, not a whole number of at least 0"),
            "{message}"
        );
        assert_eq!(hint, "give `run.seed` a whole number of at least 0");
        assert!(
            with("augment.crop_scale=0.4").0.contains("`augment.crop_scale` is 0.4, not a list of 2 values")
        );
        let (message, _) = refusal(&GOOD.replace("dimension = 8", "dimension = 8.5"), &[]);
        assert!(message.contains("tiny.toml, line 12: `model.head.dimension` is 8.5, not"), "{message}");
    }

    #[test]
    fn a_fault_inside_a_table_with_a_kind_is_named_with_its_key() {
        let happier = "loss={kind='happier_f',surrogate={upper_step={temperature='hot'}}}";
        let terms = "terms=[{weight=1,loss={kind='fast_ap'}},{weight='one',loss={kind='fast_ap'}}]";
        let term = &format!("loss={{kind='sum',{terms}}}");
        for (set, part) in [
            ("loss.temperature=hot", "`loss.temperature` is \"hot\", not a number"),
            (happier, "`loss.surrogate.upper_step.temperature` is \"hot\", not a number"),
            (term, "`loss.terms.weight` is \"one\", not a number"),
            ("loss={kind='contrastive',miner='all'}", "`loss.miner` is \"all\", not a table with a `kind`"),
            ("loss={kind='contrastive',miner={kind='al'}}", "unknown miner `al` in `loss.miner.kind`"),
            ("loss={kind='levels',loss={kind='fast_app'}}", "unknown loss `fast_app` in `loss.loss.kind`"),
            ("loss={kind='levels',loss={kind='fast_ap',bin=3}}", "unknown key `bin` in [loss.loss]"),
            ("loss={kind='sum_triplet',weight=[1]}", "unknown key `weight` in [loss]"),
            ("loss={kind=3}", "`loss.kind` is 3, not a text in quotes"),
        ] {
            let (message, _) = with(set);
            assert!(message.contains(part), "{set}: {message}");
        }
        let (message, hint) = with("loss={kind='hapier'}");
        assert!(message.ends_with("unknown loss `hapier` in `loss.kind`"), "{message}");
        assert!(hint.starts_with("did you mean `happier`?"), "{hint}");
    }

    #[test]
    fn preprocessing_is_a_name_or_follows_from_the_backbone() {
        let preprocessing = |sets: &[&str]| load(GOOD, sets).unwrap().model.preprocessing;
        let own = Preprocessing::new(Normalisation::Inception, 32).unwrap();
        assert_eq!(preprocessing(&[]), own);
        assert_eq!(preprocessing(&["model.preprocessing={name='inception',crop=32}"]), own);
        let caffe = "model.preprocessing={resize=128,crop=128,filter='bilinear',channels='bgr',scale=1.0,\
                     mean=[104.0,117.0,123.0],deviation=[1.0,1.0,1.0]}";
        assert_eq!(preprocessing(&[caffe]), preprocessing(&["model.preprocessing={name='caffe',crop=128}"]));
        let squeezenet = ["model.backbone={kind='squeezenet'}", "model.preprocessing={}"];
        assert_eq!(preprocessing(&squeezenet), Preprocessing::new(Normalisation::Caffe, 224).unwrap());
        assert_eq!(preprocessing(&["model.preprocessing=imagenet"]).side(), 96);

        let (message, hint) = with("model.preprocessing=imagenett");
        assert!(message.ends_with("unknown value `imagenett` in `model.preprocessing`"), "{message}");
        assert!(hint.starts_with("did you mean `imagenet`?"), "{hint}");
        assert!(with("model.preprocessing={name='imagenet',scale=1}").0.contains("a name and also scale"));
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
            ("sampler.images_per_class=0", "sampler.images_per_class is 0"),
            ("sampler.classes_per_batch=0", "sampler.classes_per_batch is 0"),
            ("optimizer.lr_head=-1", "optimizer.lr_head is -1"),
            ("optimizer.lr_head=nan", "optimizer.lr_head is NaN"),
            ("optimizer.epsilon=0", "optimizer.epsilon is 0"),
            ("optimizer.beta_1=1", "optimizer.beta_1 is 1"),
            ("optimizer.momentum=0.9", "belong to sgd"),
            ("schedule.final_factor=2", "final_factor is 2"),
            ("eval.block=0", "`block`"),
            ("eval.metrics=[]", "`metrics` is empty"),
            ("eval.metrics=[\"recal@1\"]", "no metric `recal@1`"),
            ("eval.relevance={ kind = \"weighted_ap\", weights = [1] }", "the relevance has 1 weights"),
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
        assert!(with("run.epochs.deep=1").0.contains("`epochs` is not a table"));
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
        assert!(with("data.path=${OPEN").0.contains("no `}`"));
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
