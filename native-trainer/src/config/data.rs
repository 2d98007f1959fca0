//! `[data]`: which images to use, and how they are labelled.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use akin_base::problem::{did_you_mean, problem};
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Source;
use super::range::ensure;

/// `[data]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Which data set it is, or how it is stored. `akin list datasets` says more about each.
    pub kind: DataKind,
    /// The folder of the data set, or the CSV or Parquet file.
    pub path: PathBuf,
    /// `csv`, `parquet`: the folder that the paths in the file are relative to. Default: the folder of the file.
    pub images: Option<PathBuf>,
    /// The names of the levels, coarse to fine. In a CSV or Parquet file these columns hold the labels. A data set with
    /// levels of its own uses only the levels that stand here. Default: all levels of the data set; `folder`, `csv` and
    /// `parquet` have none.
    pub levels: Vec<String>,
    /// `cub200`, `cars196`: the file with the published hierarchy, from which the coarse levels are read. See
    /// GUIDE.md, "Data sets". Default: none, and the data set has one level.
    pub hierarchy: Option<PathBuf>,
    /// `dyml_vehicle`, `dyml_animal`: the benchmark whose queries and gallery are evaluated. Each has labels of one
    /// level; `akin eval --dyml` evaluates all three. Default `fine`.
    pub benchmark: Option<Benchmark>,
    /// How the evaluation splits are scored. Default `whole`.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub protocol: Protocol,
    /// `roxford5k`, `rparis6k`: which gallery images are positives of a query, and which are left out of its ranking.
    /// Default `medium`.
    pub difficulty: Option<Difficulty>,
    /// `csv`, `parquet`: a column with junk: for a gallery image, the finest classes whose queries leave it out of
    /// their rankings, separated by semicolons. Default: none.
    pub junk_column: Option<String>,
    /// `csv`, `parquet`: whether a class is its whole label path, so that `Apple / Gala` and `Pear / Gala` are two
    /// classes. If not, equal names are one class, and all its images must have the same labels above it. In a folder
    /// tree a class is always its path. Default false.
    #[serde(default)]
    pub qualify: bool,
    /// What to do with an image that has fewer labels than there are levels. Default `refuse`.
    #[serde(default)]
    pub ragged: Ragged,
    /// `csv`, `parquet`: the column with the paths of the images; in Parquet also with the images themselves, as bytes
    /// or as a group with a member `bytes`. Default `path`.
    #[serde(default = "path_column")]
    pub path_column: String,
    /// `csv`, `parquet`: the column with the split of each image. An image is not used if its cell is empty, or names
    /// another split to evaluate on than `test`, such as `validation`. A Parquet file without the column is a split,
    /// called as its name begins: `train-00000-of-00002.parquet`, or as its folder: `train/0000.parquet`. Files of a
    /// split that `train`, `test`, `query` and `gallery` do not name are not used. Default `split`.
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
    /// Whether the gallery is the training split, as is usual for hash codes. The queries are then the images of `test`
    /// or `query`. Images that `validation_fraction` holds out still rank each other. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub train_is_gallery: bool,
    /// For data without splits: the share of the finest classes that is held out as the `test` split, between 0 and 1.
    /// The classes are spread evenly over their parents and drawn with `split_seed`. Default: none.
    pub test_fraction: Option<f64>,
    /// For choosing settings without looking at the evaluation splits: the share of the finest classes of the training
    /// split that is held out and evaluated on instead, between 0 and 1. Drawn like `test_fraction`. Default: none.
    pub validation_fraction: Option<f64>,
    /// One of k folds for cross-validation, instead of `validation_fraction`: the finest classes of the training split
    /// are divided into `of` folds, and fold `number` is held out and evaluated on. For example
    /// `{ number = 1, of = 4 }`. Drawn like `test_fraction`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// The seed that `test_fraction`, `validation_fraction` and `fold` draw classes with. Trainings with other seeds are then
    /// tested on the same classes, and can be compared. Default: `run.seed`, which draws other classes for each seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_seed: Option<u64>,
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

/// A data set, or how one is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// A folder tree in which each level of folders is a level of the taxonomy.
    Folder,
    /// A CSV file with one image a line: its path, a column for each level, and its split.
    Csv,
    /// A Parquet file, or a folder of them, with a row per image: its path or its bytes, a column for each level, and
    /// its split.
    Parquet,
    /// Stanford Online Products.
    Sop,
    /// CUB-200-2011: the first 100 bird species for training, the others for evaluation.
    Cub200,
    /// Cars-196: the first 98 car models for training, the others for evaluation.
    Cars196,
    /// In-Shop Clothes Retrieval.
    Inshop,
    /// iNaturalist 2018 with species and their groups.
    InatBase,
    /// iNaturalist 2018 with the seven ranks of biology.
    InatFull,
    /// DyML-Vehicle.
    DymlVehicle,
    /// DyML-Animal.
    DymlAnimal,
    /// DyML-Product.
    DymlProduct,
    /// CIFAR-100 in its binary version.
    Cifar100,
    /// NABirds.
    Nabirds,
    /// Omniglot.
    Omniglot,
    /// Grocery Store.
    Grocery,
    /// FGVC-Aircraft.
    Aircraft,
    /// H-GLDv2: Google Landmarks v2 with categories.
    HGldv2,
    /// Revisited Oxford, which is only evaluated.
    Roxford5k,
    /// Revisited Paris, which is only evaluated.
    Rparis6k,
}

impl DataKind {
    /// The levels of the data set, coarse → fine. None if the config names them.
    pub fn levels(self, has_hierarchy: bool) -> &'static [&'static str] {
        match self {
            Self::Folder | Self::Csv | Self::Parquet => &[],
            Self::Sop => &["category", "product"],
            Self::Cub200 if has_hierarchy => &["order", "family", "species"],
            Self::Cub200 => &["species"],
            Self::Cars196 if has_hierarchy => &["type", "model"],
            Self::Cars196 => &["model"],
            Self::Inshop => &["gender", "category", "item"],
            Self::InatBase => &["group", "species"],
            Self::InatFull => &["kingdom", "phylum", "class", "order", "family", "genus", "species"],
            Self::DymlVehicle | Self::DymlAnimal | Self::DymlProduct => &["coarse", "middle", "fine"],
            Self::Cifar100 => &["superclass", "class"],
            Self::Nabirds => &["group", "family", "species", "plumage"],
            Self::Omniglot => &["alphabet", "character"],
            Self::Grocery => &["department", "kind", "variety"],
            Self::Aircraft => &["manufacturer", "family", "variant"],
            Self::HGldv2 => &["supercategory", "category", "landmark"],
            Self::Roxford5k | Self::Rparis6k => &["landmark"],
        }
    }

    /// Every kind.
    pub const ALL: [Self; 20] = [
        Self::Folder,
        Self::Csv,
        Self::Parquet,
        Self::Sop,
        Self::Cub200,
        Self::Cars196,
        Self::Inshop,
        Self::InatBase,
        Self::InatFull,
        Self::DymlVehicle,
        Self::DymlAnimal,
        Self::DymlProduct,
        Self::Cifar100,
        Self::Nabirds,
        Self::Omniglot,
        Self::Grocery,
        Self::Aircraft,
        Self::HGldv2,
        Self::Roxford5k,
        Self::Rparis6k,
    ];

    /// The names of all kinds in a config.
    pub fn names() -> Vec<String> {
        Self::ALL.iter().map(|kind| kind.name()).collect()
    }

    /// The name in a config.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A benchmark of DyML. Each has labels of the level that it is called after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Benchmark {
    /// The coarse labels.
    Coarse,
    /// The middle labels.
    Middle,
    /// The fine labels.
    #[default]
    Fine,
}

/// A set-up of the revisited data sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulty {
    /// Easy images are positives; hard and unclear ones are left out.
    Easy,
    /// Easy and hard images are positives; unclear ones are left out.
    #[default]
    Medium,
    /// Hard images are positives; easy and unclear ones are left out.
    Hard,
}

impl Benchmark {
    /// The benchmark of a level.
    pub fn named(level: &str) -> Option<Self> {
        toml::Value::from(level).try_into().ok()
    }
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

// A config that an older akin wrote has no protocol.
fn is_whole(protocol: &Protocol) -> bool {
    *protocol == Protocol::Whole
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
    /// Whether the column of splits has another name than the default.
    pub fn names_split_column(&self) -> bool {
        self.split_column != split_column()
    }

    /// Whether a class is its name or its whole path.
    pub fn identity(&self) -> ClassIdentity {
        if self.qualify { ClassIdentity::Path } else { ClassIdentity::Name }
    }

    /// Whether a new image at this path would be read as one of the data.
    ///
    /// # Errors
    ///
    /// A current directory that is gone.
    pub fn would_read(&self, image: &Path) -> Result<bool> {
        Ok(self.kind == DataKind::Folder && std::path::absolute(image)?.starts_with(&self.path))
    }

    /// Whether a split is drawn, and not given by the data.
    pub fn draws_split(&self) -> bool {
        self.test_fraction.is_some() || self.validation_fraction.is_some() || self.fold.is_some()
    }

    /// Whether runs with other seeds have other splits.
    pub fn splits_by_run_seed(&self) -> bool {
        self.draws_split() && self.split_seed.is_none()
    }

    /// The benchmark of each level, if the data set has one per level.
    pub fn benchmarks(&self) -> Option<Vec<Benchmark>> {
        [DataKind::DymlVehicle, DataKind::DymlAnimal]
            .contains(&self.kind)
            .then(|| self.levels.iter().filter_map(|level| Benchmark::named(level)).collect())
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
        let part = Source::read(file, sets)?.part(|part: &Part| part.data.validate())?;
        Ok((part.data, part.run.seed))
    }

    /// The section for a copy of a data set in this folder, with every other setting left at its default.
    ///
    /// # Errors
    ///
    /// A name that is no data set, or one of a kind that needs more settings.
    pub fn for_copy(name: &str, path: &Path) -> Result<Self> {
        let kind: DataKind = toml::Value::from(name).try_into().map_err(|_| {
            let near = did_you_mean(name, DataKind::names().iter().map(String::as_str));
            problem(
                format!("there is no data set `{name}`"),
                format!("{near}`akin list datasets` lists all of them"),
            )
        })?;
        let levels = kind.levels(false);
        ensure(!levels.is_empty(), || {
            (
                format!("`{name}` needs more settings than a path"),
                "write a config with `akin init PATH`, and give that instead",
            )
        })?;
        let mut section = toml::Table::new();
        section.insert("kind".into(), name.into());
        section.insert("path".into(), path.to_string_lossy().as_ref().into());
        section.insert("levels".into(), levels.to_vec().into());
        Ok(section.try_into()?)
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
        if let Some(Fold { number, of }) = self.fold {
            ensure(of >= 2 && (1..=of).contains(&number), || {
                (
                    format!("data.fold is fold {number} of {of}"),
                    "give `of` at least 2, and `number` from 1 to `of`, for example { number = 1, of = 4 }",
                )
            })?;
            ensure(self.validation_fraction.is_none(), || {
                (
                    "the config sets both data.fold and data.validation_fraction".into(),
                    "set at most one of them",
                )
            })?;
        }
        ensure(self.split_seed.is_none() || self.draws_split(), || {
            (
                "data.split_seed is set, but the splits are given by the data".into(),
                "remove it, or set data.test_fraction",
            )
        })?;
        ensure([DataKind::Csv, DataKind::Parquet].contains(&self.kind) || self.images.is_none(), || {
            (
                "data.images is set, but data.kind is neither `csv` nor `parquet`".into(),
                "remove it; `path` says where the images are",
            )
        })?;
        let optional_settings: [(&str, bool, &[DataKind]); 4] = [
            ("hierarchy", self.hierarchy.is_some(), &[DataKind::Cub200, DataKind::Cars196]),
            ("benchmark", self.benchmark.is_some(), &[DataKind::DymlVehicle, DataKind::DymlAnimal]),
            ("difficulty", self.difficulty.is_some(), &[DataKind::Roxford5k, DataKind::Rparis6k]),
            ("junk_column", self.junk_column.is_some(), &[DataKind::Csv, DataKind::Parquet]),
        ];
        for (key, is_set, kinds) in optional_settings {
            ensure(!is_set || kinds.contains(&self.kind), || {
                let kinds = kinds.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>();
                let message = format!(
                    "data.{key} is set, but data.kind is `{}`; it belongs to {}",
                    self.kind.name(),
                    kinds.join(" and ")
                );
                (message, "remove it, or correct data.kind")
            })?;
        }
        ensure(self.benchmark.is_none() || self.protocol == Protocol::Whole, || {
            (
                "data.benchmark is set, but data.protocol is `dyml`, which evaluates all benchmarks".into(),
                "remove one of them",
            )
        })?;
        let known = self.kind.levels(self.hierarchy.is_some());
        let mut places = Vec::new();
        for level in self.levels.iter().filter(|_| !known.is_empty()) {
            let Some(place) = known.iter().position(|known| known == level) else {
                return Err(self.unknown_level(level, known));
            };
            places.push(place);
        }
        ensure(places.is_sorted(), || {
            (
                format!("data.levels is {}, which is not coarse to fine", self.levels.join(", ")),
                "write the levels in the order in which `akin list datasets` shows them",
            )
        })
    }

    /// The error for a level that the data set does not have.
    fn unknown_level(&self, level: &str, known: &[&str]) -> anyhow::Error {
        let hint = if self.kind.levels(true).contains(&level) {
            "set data.hierarchy to the file with the published hierarchy; GUIDE.md, \"Data sets\", says where to find \
             it"
            .to_owned()
        } else {
            format!("{}remove it from data.levels", did_you_mean(level, known.iter().copied()))
        };
        problem(
            format!("`{}` has no level `{level}`; its levels are {}", self.kind.name(), known.join(", ")),
            hint,
        )
    }
}
