//! `[data]`: which images to use, and how they are labelled.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use akin_base::problem::{did_you_mean, problem};
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data_sets::data_sets;
use super::range::ensure;
use super::setting_name;

/// Makes `[data]` of the list of data sets.
macro_rules! data_config {
    ($($(#[$doc:meta])* $kind:ident: $settings:ty, [$($level:literal),*], $list:path, $entry:path;)+) => {
        /// `[data]`: see the [module](self).
        // A run has one.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum DataConfig {
            $($(#[$doc])* $kind($settings),)+
        }

        /// A data set, or how one is stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum DataKind {
            $($(#[$doc])* $kind,)+
        }

        impl DataConfig {
            /// Which data set it is.
            pub fn kind(&self) -> DataKind {
                match self { $(Self::$kind(_) => DataKind::$kind,)+ }
            }

            /// The folder of the data set, or the CSV or Parquet file.
            pub fn path(&self) -> &Path {
                match self { $(Self::$kind(settings) => &settings.path,)+ }
            }

            /// Sets the folder of the data set, or the CSV or Parquet file.
            #[cfg(test)]
            pub fn set_path(&mut self, path: PathBuf) {
                match self { $(Self::$kind(settings) => settings.path = path,)+ }
            }

            /// The names of the levels, coarse to fine.
            pub fn levels(&self) -> &[String] {
                match self { $(Self::$kind(settings) => &settings.levels,)+ }
            }
        }

        impl DataKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            fn all_levels(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$($level),*],)+ }
            }
        }
    };
}

data_sets!(data_config);

/// Adds to the settings of a data set those that all have.
macro_rules! settings {
    ($(#[$doc:meta])* $name:ident { $($settings:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The folder of the data set, or the CSV or Parquet file.
            pub path: PathBuf,
            /// The names of the levels, coarse to fine. In a CSV or Parquet file these columns hold the labels. A data set
            /// with levels of its own uses only the levels that stand here. Default: all levels of the data set; `folder`,
            /// `csv` and `parquet` have none.
            pub levels: Vec<String>,
            $($settings)*
        }
    };
}

settings! {
    /// The settings of a copy of a published data set.
    CopyConfig {}
}

settings! {
    /// The settings of a folder tree.
    FolderConfig {
        /// What to do with an image whose labels are missing from some level down. Default `unknown`.
        #[serde(default)]
        pub missing: Missing,
        /// Words that stand for a missing label, such as `unknown` or `sp.`: a label is missing if it is such a word, or
        /// ends with one, as `Quercus sp.` does. Upper and lower case are the same. Default: none.
        #[serde(default)]
        pub unknown_words: Vec<String>,
        /// What the splits are called.
        #[serde(default)]
        pub splits: SplitNames,
    }
}

settings! {
    /// The settings of a CSV or Parquet file.
    TableConfig {
        /// The folder that the paths in the file are relative to. Default: the folder of the file.
        pub images: Option<PathBuf>,
        /// Whether a class is its whole label path, so that `Apple / Gala` and `Pear / Gala` are two classes. If not,
        /// equal names are one class, and all its images must have the same labels above it. In a folder tree a class is
        /// always its path. Default false.
        #[serde(default)]
        pub qualify: bool,
        /// What to do with an image whose labels are missing from some level down. Default `unknown`.
        #[serde(default)]
        pub missing: Missing,
        /// Words that stand for a missing label, such as `unknown` or `sp.`: a label is missing if it is such a word, or
        /// ends with one, as `Quercus sp.` does. Upper and lower case are the same. Default: none.
        #[serde(default)]
        pub unknown_words: Vec<String>,
        /// The column with the paths of the images; in Parquet also with the images themselves, as bytes or as a group
        /// with a member `bytes`. Default `path`.
        #[serde(default = "path_column")]
        pub path_column: String,
        /// The column with the split of each image. An image is not used if its cell is empty, or names another split to
        /// evaluate on than `test`, such as `validation`. A Parquet file without the column is a split, called as its name
        /// begins: `train-00000-of-00002.parquet`, or as its folder: `train/0000.parquet`. Files of a split that `splits`
        /// does not name are not used. Default `split`.
        #[serde(default = "split_column")]
        pub split_column: String,
        /// The text between the labels of a cell that holds several, such as `;` in `fruit;vegetable`. The first labels of
        /// a row form a label path, and so do the second; a cell with one label belongs to all paths. Default: none, and a
        /// cell is one label.
        pub label_separator: Option<String>,
        /// A CSV file with the columns `class` and `parent`, and a row for each parent of a class, which may have several.
        /// An image has one label, its class. The levels are the depths below the root. Default: none.
        pub parents: Option<PathBuf>,
        /// A CSV file with the relevance of each pair of classes in place of a tree: a row and a column for each class. An
        /// image has one label, its class. The levels are the different values above 0. Default: none.
        pub relevance_matrix: Option<PathBuf>,
        /// With `parents` or `relevance_matrix`, the column with the class. Default `class`.
        #[serde(default = "class_column")]
        pub class_column: String,
        /// A column with junk: for a gallery image, the finest classes whose queries leave it out of their rankings,
        /// separated by semicolons. Default: none.
        pub junk_column: Option<String>,
        /// What to do with a row whose file does not exist. Default `refuse`.
        #[serde(default)]
        pub missing_files: MissingFiles,
        /// What the splits are called.
        #[serde(default)]
        pub splits: SplitNames,
    }
}

settings! {
    /// The settings of a data set whose hierarchy was published apart.
    HierarchyConfig {
        /// The file with the published hierarchy, from which the coarse levels are read. See GUIDE.md, "Data sets".
        /// Default: none, and the data set has one level.
        pub hierarchy: Option<PathBuf>,
    }
}

settings! {
    /// The settings of a data set of DyML with a benchmark for each level.
    BenchmarkConfig {
        /// The benchmark whose queries and gallery are evaluated. Each has labels of one level; `akin eval --dyml`
        /// evaluates all three. Default `fine`.
        #[serde(default)]
        pub benchmark: Benchmark,
    }
}

settings! {
    /// The settings of a revisited data set.
    RevisitedConfig {
        /// Which gallery images are positives of a query, and which are left out of its ranking. Default `medium`.
        #[serde(default)]
        pub difficulty: Difficulty,
    }
}

/// What the splits are called: folders inside `path`, values of the split column, or the beginnings of file names.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SplitNames {
    /// The training split. Default `train`.
    pub train: String,
    /// The evaluation split in which every image is a query and the other images are its gallery. Default `test`.
    pub test: String,
    /// The evaluation split with the queries, if queries and gallery are different images. Default `query`.
    pub query: String,
    /// The evaluation split with the gallery, if queries and gallery are different images. Default `gallery`.
    pub gallery: String,
}

impl Default for SplitNames {
    fn default() -> Self {
        let [train, test, query, gallery] = ["train", "test", "query", "gallery"].map(str::to_owned);
        Self { train, test, query, gallery }
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

/// What to do with an image whose labels are missing from some level down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// Stop with an error.
    Refuse,
    /// The label is not known. Unknown is not a class: at a level where the label of one of two images is unknown, the pair
    /// has no part in losses and rankings, unless the two differ at a coarser level.
    #[default]
    Unknown,
    /// Use the label above. Images of one such label are then one class, as if they were of one species.
    Parent,
}

/// What to do with a row whose file does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingFiles {
    /// Stop with an error that names the files.
    #[default]
    Refuse,
    /// Leave the row out, with a warning that counts the rows.
    Skip,
}

/// What a data set has in place of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KinshipSource {
    /// Cells with several labels, and the text between them. The first labels of a row form a path, and so do the second.
    /// A cell with one label belongs to all paths.
    Separator(String),
    /// A CSV file with the columns `class` and `parent`, and a row for each parent of a class. An item has one label, its
    /// class, and its label paths are all ways from the root down to it.
    Parents(PathBuf),
    /// A CSV file with the relevance of each pair of classes: a row and a column for each class, with its name in the first
    /// cell. An item has one label, its class.
    Matrix(PathBuf),
}

fn path_column() -> String {
    "path".into()
}

fn class_column() -> String {
    "class".into()
}

fn split_column() -> String {
    "split".into()
}

impl DataKind {
    /// The levels of the data set, coarse → fine. None if the config names them. Without a file with their hierarchy, some
    /// data sets have only the finest.
    pub fn levels(self, has_hierarchy: bool) -> &'static [&'static str] {
        match (self, self.all_levels()) {
            (Self::Cub200 | Self::Cars196, [.., finest]) if !has_hierarchy => std::slice::from_ref(finest),
            (_, levels) => levels,
        }
    }

    /// The names of all kinds in a config.
    pub fn names() -> Vec<String> {
        Self::ALL.iter().map(|kind| kind.name()).collect()
    }

    /// The name in a config.
    pub fn name(self) -> String {
        setting_name(self)
    }

    /// The kind with a name.
    ///
    /// # Errors
    ///
    /// A name that is no data set.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| {
            let near = did_you_mean(name, Self::names().iter().map(String::as_str));
            problem(
                format!("there is no data set `{name}`"),
                format!("{near}`akin list datasets` lists all of them"),
            )
        })
    }
}

impl TableConfig {
    /// Whether the column of splits has another name than the default.
    pub fn names_split_column(&self) -> bool {
        self.split_column != split_column()
    }

    /// What there is in place of a tree, if there is something.
    pub fn kinship(&self) -> Option<KinshipSource> {
        let Self { label_separator, parents, relevance_matrix, .. } = self;
        label_separator
            .clone()
            .map(KinshipSource::Separator)
            .or_else(|| parents.clone().map(KinshipSource::Parents))
            .or_else(|| relevance_matrix.clone().map(KinshipSource::Matrix))
    }

    /// The columns with labels.
    pub fn label_columns(&self) -> &[String] {
        match self.kinship() {
            Some(KinshipSource::Parents(_) | KinshipSource::Matrix(_)) => {
                std::slice::from_ref(&self.class_column)
            }
            _ => &self.levels,
        }
    }

    /// Whether a class is its name or its whole path.
    pub fn identity(&self) -> ClassIdentity {
        if self.qualify { ClassIdentity::Path } else { ClassIdentity::Name }
    }
}

impl DataConfig {
    /// The settings of a CSV or Parquet file, if it is one.
    pub fn table(&self) -> Option<&TableConfig> {
        match self {
            Self::Csv(table) | Self::Parquet(table) => Some(table),
            _ => None,
        }
    }

    /// What the splits are called; none for a data set with splits of its own.
    pub fn split_names(&self) -> Option<&SplitNames> {
        match self {
            Self::Folder(FolderConfig { splits, .. }) => Some(splits),
            _ => self.table().map(|table| &table.splits),
        }
    }

    /// The file with the published hierarchy.
    pub fn hierarchy(&self) -> Option<&Path> {
        match self {
            Self::Cub200(settings) | Self::Cars196(settings) => settings.hierarchy.as_deref(),
            _ => None,
        }
    }

    /// Which gallery images are positives, for the revisited sets.
    pub fn difficulty(&self) -> Option<Difficulty> {
        match self {
            Self::Roxford5k(settings) | Self::Rparis6k(settings) => Some(settings.difficulty),
            _ => None,
        }
    }

    /// Whether a new image at this path would be read as one of the data.
    ///
    /// # Errors
    ///
    /// A current directory that is gone.
    pub fn would_read(&self, image: &Path) -> Result<bool> {
        Ok(matches!(self, Self::Folder(_)) && std::path::absolute(image)?.starts_with(self.path()))
    }

    /// The data with each of their benchmarks, by level, if they have one per level.
    pub fn benchmarks(&self) -> Option<Vec<Self>> {
        let with = |level: &String| {
            let mut data = self.clone();
            let (Self::DymlVehicle(settings) | Self::DymlAnimal(settings)) = &mut data else { return None };
            settings.benchmark = Benchmark::named(level)?;
            Some(data)
        };
        matches!(self, Self::DymlVehicle(_) | Self::DymlAnimal(_))
            .then(|| self.levels().iter().filter_map(with).collect())
    }

    /// The section for a copy of a data set in this folder, with every other setting left at its default.
    ///
    /// # Errors
    ///
    /// A name that is no data set, or one of a kind that needs more settings.
    pub fn for_copy(name: &str, path: &Path) -> Result<Self> {
        let levels = DataKind::named(name)?.levels(false);
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
        let levels = self.levels();
        ensure(!levels.is_empty(), || {
            (
                "data.levels is empty".into(),
                "name the levels, coarse to fine, for example [\"order\", \"species\"]",
            )
        })?;
        let mut seen = HashSet::new();
        for level in levels {
            ensure(!level.trim().is_empty(), || {
                ("data.levels has an empty name".into(), "give every level a name")
            })?;
            ensure(seen.insert(level), || {
                (format!("data.levels has {level:?} twice"), "give every level a different name")
            })?;
        }
        if let Some(names) = self.split_names() {
            names.validate()?;
        }
        if let Some(TableConfig { label_separator, parents, relevance_matrix, .. }) = self.table() {
            let given = [label_separator.is_some(), parents.is_some(), relevance_matrix.is_some()];
            ensure(given.into_iter().filter(|given| *given).count() <= 1, || {
                (
                    "two of data.label_separator, data.parents and data.relevance_matrix are set".into(),
                    "keep the one that says how the classes are related",
                )
            })?;
            ensure(label_separator.as_ref().is_none_or(|separator| !separator.is_empty()), || {
                ("data.label_separator is empty".into(), "write the text between two labels, such as \";\"")
            })?;
        }
        let known = self.kind().levels(self.hierarchy().is_some());
        let mut places = Vec::new();
        for level in levels.iter().filter(|_| !known.is_empty()) {
            let Some(place) = known.iter().position(|known| known == level) else {
                return Err(self.unknown_level(level, known));
            };
            places.push(place);
        }
        ensure(places.is_sorted(), || {
            (
                format!("data.levels is {}, which is not coarse to fine", levels.join(", ")),
                "write the levels in the order in which `akin list datasets` shows them",
            )
        })
    }

    /// The error for a level that the data set does not have.
    fn unknown_level(&self, level: &str, known: &[&str]) -> anyhow::Error {
        let hint = if self.kind().levels(true).contains(&level) {
            "set data.hierarchy to the file with the published hierarchy; GUIDE.md, \"Data sets\", says where to find \
             it"
            .to_owned()
        } else {
            format!("{}remove it from data.levels", did_you_mean(level, known.iter().copied()))
        };
        problem(
            format!("`{}` has no level `{level}`; its levels are {}", self.kind().name(), known.join(", ")),
            hint,
        )
    }
}

impl SplitNames {
    fn validate(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for name in [&self.train, &self.test, &self.query, &self.gallery] {
            ensure(!name.is_empty(), || {
                (
                    "a split of data.splits has an empty name".into(),
                    "name train, test, query and gallery, or remove the key",
                )
            })?;
            ensure(seen.insert(name), || {
                (
                    format!("two splits of data.splits are called {name:?}"),
                    "give train, test, query and gallery different names",
                )
            })?;
        }
        Ok(())
    }
}
