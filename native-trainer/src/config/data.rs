//! `[data]`: which images to use, and how they are labelled.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Source;
use super::range::ensure;

/// `[data]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// How the data set is stored.
    pub kind: DataKind,
    /// The folder, or the CSV file.
    pub path: PathBuf,
    /// `csv`: the folder that the paths in the file are relative to. Default: the folder of the CSV file.
    pub images: Option<PathBuf>,
    /// The names of the levels, coarse to fine. In a CSV file these columns hold the labels.
    pub levels: Vec<String>,
    /// `csv`: whether a class is its whole label path, so that `Apple / Gala` and `Pear / Gala` are two classes. If
    /// not, equal names are one class, and all its images must have the same labels above it. In a folder tree a class
    /// is always its path. Default false.
    #[serde(default)]
    pub qualify: bool,
    /// What to do with an image that has fewer labels than there are levels. Default `refuse`.
    #[serde(default)]
    pub ragged: Ragged,
    /// `csv`: the column with the paths of the images. Default `path`.
    #[serde(default = "path_column")]
    pub path_column: String,
    /// `csv`: the column with the split of each image. An image with an empty cell is not used. Default `split`.
    #[serde(default = "split_column")]
    pub split_column: String,
    /// The name of the training split: a folder inside `path`, or a value of the split column. Default `train`.
    #[serde(default = "train_name")]
    pub train: String,
    /// The name of the evaluation split in which every image is a query and the other images are its gallery.
    /// Default `test`.
    #[serde(default = "test_name")]
    pub test: String,
    /// The name of the evaluation split with the queries, if queries and gallery are different images. Default `query`.
    #[serde(default = "query_name")]
    pub query: String,
    /// The name of the evaluation split with the gallery, if queries and gallery are different images. Default
    /// `gallery`.
    #[serde(default = "gallery_name")]
    pub gallery: String,
    /// For data without splits: the share of the finest classes that is held out as the `test` split, between 0 and 1.
    /// The classes are spread evenly over their parents and drawn with the seed. Default: none.
    pub test_fraction: Option<f64>,
    /// For choosing settings without looking at the evaluation splits: the share of the finest classes of the training
    /// split that is held out and evaluated on instead, between 0 and 1. Drawn like `test_fraction`. Default: none.
    pub validation_fraction: Option<f64>,
}

/// How a data set is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// A folder tree in which each level of folders is a level of the taxonomy.
    Folder,
    /// A CSV file with one image a line: its path, a column for each level, and its split.
    Csv,
}

/// What to do with an image that has fewer labels than there are levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ragged {
    /// Stop with an error.
    #[default]
    Refuse,
    /// Use the label above for each missing label.
    Fill,
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

impl DataConfig {
    /// Whether a split is drawn with the seed, so that runs with other seeds have other splits.
    pub fn draws_split(&self) -> bool {
        self.test_fraction.is_some() || self.validation_fraction.is_some()
    }

    /// Reads only `[data]` and `run.seed`, so that the other sections of the config may be missing.
    ///
    /// # Errors
    ///
    /// As [`Config::load`](super::Config::load), for that part.
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
        let part: Part = Source::read(file, sets)?.part()?;
        part.data.validate().with_context(|| file.display().to_string())?;
        Ok((part.data, part.run.seed))
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure(!self.levels.is_empty(), || {
            (
                "data.levels is empty".into(),
                "name the levels, coarse to fine, for example [\"order\", \"species\"]",
            )
        })?;
        let mut seen = HashSet::new();
        for level in &self.levels {
            ensure(!level.trim().is_empty(), || {
                ("data.levels has an empty name".into(), "give every level a name")
            })?;
            ensure(seen.insert(level), || {
                (format!("data.levels has {level:?} twice"), "give every level a different name")
            })?;
        }
        let mut seen = HashSet::new();
        for name in [&self.train, &self.test, &self.query, &self.gallery] {
            ensure(!name.is_empty(), || {
                (
                    "a split of [data] has an empty name".into(),
                    "name train, test, query and gallery, or remove the key",
                )
            })?;
            ensure(seen.insert(name), || {
                (
                    format!("two splits of [data] are called {name:?}"),
                    "give train, test, query and gallery different names",
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
                "data.images is set, but data.kind is not `csv`".into(),
                "remove it; `path` says where the images are",
            )
        })
    }
}
