//! `[split]`: which images are trained on, which are evaluated, and how.

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;
use super::{Benchmark, Config, DataConfig, Source};

/// `[split]`: see the [module](self). Without it, the data give the splits.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SplitConfig {
    /// For data without splits: the share of the finest classes that is held out as the `test` split, between 0 and 1.
    /// The classes are spread evenly over their parents and drawn with `seed`. Default: none.
    pub test_fraction: Option<f64>,
    /// For choosing settings without looking at the evaluation splits: the share of the finest classes of the training
    /// split that is held out and evaluated on instead, between 0 and 1. Drawn like `test_fraction`. Default: none.
    pub validation_fraction: Option<f64>,
    /// One of k folds for cross-validation, instead of `validation_fraction`: the finest classes of the training split
    /// are divided into `of` folds, and fold `number` is held out and evaluated on. For example
    /// `{ number = 1, of = 4 }`. Drawn like `test_fraction`. Default: none.
    pub fold: Option<Fold>,
    /// The seed that `test_fraction`, `validation_fraction` and `fold` draw classes with. Trainings with other seeds are
    /// then tested on the same classes, and can be compared. Default: `run.seed`, which draws other classes for each seed.
    pub seed: Option<u64>,
    /// Whether the gallery is the training split, as is usual for hash codes. The queries are then the images of `test`
    /// or `query`. Images that `validation_fraction` holds out still rank each other. Default false.
    pub train_is_gallery: bool,
    /// How the evaluation splits are scored. Default `whole`.
    pub protocol: Protocol,
}

/// One of k folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fold {
    /// Which fold, from 1.
    pub number: usize,
    /// k, at least 2.
    pub of: usize,
}

/// How evaluation splits are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Every metric over the whole taxonomy.
    #[default]
    Whole,
    /// Each level by itself, then the mean over levels, as DyML does. `dyml_vehicle` and `dyml_animal` have a benchmark for each level.
    Dyml,
}

impl SplitConfig {
    /// Whether a split is drawn, and not given by the data.
    pub fn is_drawn(&self) -> bool {
        self.test_fraction.is_some() || self.validation_fraction.is_some() || self.fold.is_some()
    }

    /// Whether classes of the training split are held out to evaluate on them.
    pub fn holds_out(&self) -> bool {
        self.validation_fraction.is_some() || self.fold.is_some()
    }

    /// Whether runs with other seeds have other splits.
    pub fn is_drawn_by_run_seed(&self) -> bool {
        self.is_drawn() && self.seed.is_none()
    }

    pub(super) fn validate(&self, data: &DataConfig) -> Result<()> {
        let shares =
            [("test_fraction", self.test_fraction), ("validation_fraction", self.validation_fraction)];
        for (name, share) in shares {
            ensure(share.is_none_or(|share| share > 0.0 && share < 1.0), || {
                (
                    format!("split.{name} is {}", share.unwrap_or_default()),
                    "give a share of the finest classes between 0 and 1, for example 0.5",
                )
            })?;
        }
        if let Some(Fold { number, of }) = self.fold {
            ensure(of >= 2 && (1..=of).contains(&number), || {
                (
                    format!("split.fold is fold {number} of {of}"),
                    "give `of` at least 2, and `number` from 1 to `of`, for example { number = 1, of = 4 }",
                )
            })?;
            ensure(self.validation_fraction.is_none(), || {
                (
                    "the config sets both split.fold and split.validation_fraction".into(),
                    "set at most one of them",
                )
            })?;
        }
        ensure(self.seed.is_none() || self.is_drawn(), || {
            (
                "split.seed is set, but the splits are given by the data".into(),
                "remove it, or set split.test_fraction",
            )
        })?;
        let (DataConfig::DymlVehicle(settings) | DataConfig::DymlAnimal(settings)) = data else {
            return Ok(());
        };
        ensure(self.protocol == Protocol::Whole || settings.benchmark == Benchmark::default(), || {
            (
                "data.benchmark is set, but split.protocol is `dyml`, which evaluates all benchmarks".into(),
                "remove one of them",
            )
        })
    }
}

/// Which images are used, and in which splits: `[data]` and `[split]`, with the seed that draws classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Where the images are, and how they are labelled.
    pub data: DataConfig,
    /// How they are split.
    pub split: SplitConfig,
    /// The seed that draws the splits; 0 if none is drawn, so that equal selections have equal splits.
    pub seed: u64,
}

impl Selection {
    /// All images of these data, in the splits that the data give.
    pub fn of(data: DataConfig) -> Self {
        Self { data, split: SplitConfig::default(), seed: 0 }
    }

    /// The same with other data.
    pub fn with_data(&self, data: DataConfig) -> Self {
        Self { data, ..self.clone() }
    }

    pub(super) fn new(data: DataConfig, split: SplitConfig, run_seed: u64) -> Self {
        let seed = if split.is_drawn() { split.seed.unwrap_or(run_seed) } else { 0 };
        Self { data, split, seed }
    }

    /// Reads only `[data]`, `[split]` and `run.seed`, so that the other sections of the config may be missing.
    ///
    /// # Errors
    ///
    /// As [`Config::load`], for that part.
    pub fn load(file: &Path, sets: &[String]) -> Result<Self> {
        #[derive(JsonSchema, Deserialize)]
        struct Part {
            data: DataConfig,
            #[serde(default)]
            split: SplitConfig,
            #[serde(default)]
            run: Seed,
        }
        #[derive(Default, JsonSchema, Deserialize)]
        struct Seed {
            #[serde(default)]
            seed: u64,
        }
        let part = Source::read(file, sets)?.part(|part: &Part| {
            part.data.validate()?;
            part.split.validate(&part.data)
        })?;
        Ok(Self::new(part.data, part.split, part.run.seed))
    }
}

impl Config {
    /// Which images are used, and in which splits.
    pub fn selection(&self) -> Selection {
        Selection::new(self.data.clone(), self.split.clone(), self.run.seed)
    }

    /// Replaces the images, and their splits.
    pub fn select(&mut self, selection: Selection) {
        self.data = selection.data;
        self.split = selection.split;
        // Other seeds of the run have no effect on the splits.
        self.split.seed = self.split.is_drawn().then_some(selection.seed);
    }
}
