//! Data sets: images with label paths, in splits.
//!
//! Each data set is a file of this folder: [`sop`] is a short example. It states what is published about the data set
//! and lists the images of a copy of it. This module builds the taxonomy and the splits from that list, and [`check`]
//! looks for mistakes in them. No image is decoded here.
//!
//! An *item* is an image of the data set, known by its number: its path and its labels stand at that
//! place in [`Dataset::paths`] and [`Dataset::labels`], and the splits are lists of such numbers.

mod aircraft;
mod cars196;
pub mod check;
mod cifar100;
mod csv;
mod cub200;
pub mod detect;
pub mod download;
mod dyml;
pub mod folder;
mod grocery;
mod h_gldv2;
mod hierarchy;
mod inaturalist;
mod inshop;
pub mod junk;
pub mod listing;
mod nabirds;
mod omniglot;
mod parquet;
pub mod published;
mod revisited;
mod sop;
pub mod statistics;
mod storage;
mod table;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_core::digest::sha256;
use akin_core::taxonomy::{Labels, Taxonomy, check_order};
use anyhow::{Context, Result};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

use self::listing::{Entry, ListedImage, Listing, LocalCopy, Split};
pub use self::storage::Storage;
use crate::config::data_sets::data_sets;
use crate::config::{DataConfig, DataKind, Protocol, Selection, SplitNames};
use akin_base::problem::{a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{count, counted};
use akin_base::{directory, files};

/// Images with their labels, in splits.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The label tree over the images of all splits, so that class ids mean the same in each.
    pub taxonomy: Taxonomy,
    /// The file of every item, or its name inside a larger file. Absolute if `data.path` is.
    pub paths: Vec<PathBuf>,
    /// Which parts of these files are the images.
    pub storage: Arc<Storage>,
    /// The class ids of every item, [N, L].
    pub labels: Labels,
    /// For every item, the finest classes whose queries leave it out of their rankings. Empty if there are none at all.
    pub junk: Vec<Vec<u32>>,
    /// The items of each split.
    pub splits: Splits,
}

/// What identifies a data set: the names and sizes of its images, their labels and splits, each as a SHA-256. Where every
/// image is read, also their contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDigest {
    /// The number of images.
    pub images: usize,
    names: String,
    sizes: String,
    /// The images that were unpacked from a larger file. Empty if there are none.
    contents: String,
    /// Every image as it is stored. None if the images were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pictures: Option<String>,
    labels: String,
    /// The names of the classes.
    classes: String,
    splits: String,
}

impl DataDigest {
    /// What has changed since an earlier digest, in words; empty if nothing has. The contents of the images count if both
    /// digests have them.
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let pictures_differ =
            self.pictures.as_ref().zip(before.pictures.as_ref()).is_some_and(|(a, b)| a != b);
        let mut changes = Vec::new();
        if self.images != before.images {
            changes.push(format!(
                "there are {} images instead of {}",
                count(self.images),
                count(before.images)
            ));
        } else if self.names != before.names {
            changes.push("images have other names".into());
        } else if self.sizes != before.sizes {
            changes.push("image files have other sizes".into());
        } else if self.contents != before.contents || pictures_differ {
            changes.push("images differ".into());
        }
        if self.images == before.images && self.labels != before.labels {
            changes.push("labels differ".into());
        } else if self.classes != before.classes {
            changes.push("classes have other names".into());
        }
        if self.images == before.images && self.splits != before.splits {
            changes.push("splits differ".into());
        }
        changes
    }
}

/// The items of each split, in increasing order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Splits {
    /// The training images.
    pub train: Vec<usize>,
    /// The queries.
    pub query: Vec<usize>,
    /// The gallery, which may be the training images. Empty if the queries rank each other, each without itself.
    pub gallery: Vec<usize>,
}

impl Splits {
    /// Whether the queries rank each other.
    pub fn leave_one_out(&self) -> bool {
        self.gallery.is_empty()
    }

    /// The number of items that a query ranks, without junk.
    pub fn ranked(&self) -> usize {
        if self.leave_one_out() { self.query.len().saturating_sub(1) } else { self.gallery.len() }
    }

    /// The splits by name, in a fixed order: `train` and then `test`, or `query` and `gallery`. None has the images of
    /// another: with the training images as gallery there are `train` and `test`.
    pub fn named(&self) -> Vec<(&'static str, &[usize])> {
        let train = ("train", self.train.as_slice());
        if self.leave_one_out() || self.gallery == self.train {
            vec![train, ("test", &self.query)]
        } else {
            vec![train, ("query", &self.query), ("gallery", &self.gallery)]
        }
    }
}

/// Makes the functions that need every data set.
macro_rules! readers {
    ($($(#[$doc:meta])* $kind:ident: $settings:ty, $levels:tt, $list:path, $entry:path;)+) => {
        /// What is published about a data set.
        pub fn entry(kind: DataKind) -> &'static Entry {
            match kind { $(DataKind::$kind => &$entry,)+ }
        }

        /// Lists the images of a copy of a data set.
        fn list(selection: &Selection) -> Result<Listing> {
            match &selection.data {
                $(DataConfig::$kind(settings) => $list(&local_copy(selection, settings)),)+
            }
        }
    };
}

data_sets!(readers);

/// The copy of a data set with these settings.
fn local_copy<'a, Settings>(selection: &'a Selection, settings: &'a Settings) -> LocalCopy<'a, Settings> {
    let kind = selection.data.kind();
    let draws_test = selection.split.test_fraction.is_some();
    LocalCopy { settings, data_path: selection.data.path(), kind, layout: entry(kind).layout, draws_test }
}

/// Refuses an output that would replace a file of the data, besides what [`files::check_output`] refuses.
///
/// # Errors
///
/// As above.
pub fn check_output(path: &Path, inputs: &[PathBuf], selection: &Selection, overwrite: bool) -> Result<()> {
    let data = &selection.data;
    files::check_output(path, inputs, overwrite)?;
    if !path.is_file() {
        return Ok(());
    }
    let mut files = vec![data.path().to_owned()];
    files.extend(data.hierarchy().map(Path::to_owned));
    if !matches!(data, DataConfig::Folder(_) | DataConfig::Csv(_)) {
        // Its tables and containers are near the top.
        let entries = WalkDir::new(data.path()).max_depth(2).into_iter().filter_map(std::result::Result::ok);
        files.extend(entries.map(DirEntry::into_path));
    }
    // If the data cannot be read, the command that reads them says so.
    if let DataConfig::Parquet(table) = data {
        files.extend(parquet::named_files(table).unwrap_or_default());
    } else if let Ok(listing) = list(selection) {
        files.extend(listing.images.into_iter().map(|image| image.path));
    }
    files::check_output(path, &files, overwrite)?;
    directory::refuse_own_file(path)
}

/// Checks that the file of a data set has the columns that the config names, without reading its rows.
///
/// # Errors
///
/// A file that cannot be read, and a missing column.
pub fn check_columns(selection: &Selection) -> Result<()> {
    match &selection.data {
        DataConfig::Csv(table) => csv::check_columns(&local_copy(selection, table)),
        DataConfig::Parquet(table) => parquet::check_columns(&local_copy(selection, table)),
        _ => Ok(()),
    }
}

impl Dataset {
    /// Reads a data set and checks that it can be trained on and evaluated: no split is empty, some
    /// query has a positive, and every image file exists; with the protocol of DyML also in the benchmarks of all levels.
    ///
    /// # Errors
    ///
    /// The errors of [`Dataset::read`], and a data set that fails one of these checks.
    pub fn load(selection: &Selection) -> Result<Self> {
        let dataset = Self::read(selection)?;
        dataset.check_splits(&selection.data, &dataset.splits.named())?;
        dataset.check_files(&selection.data)?;
        // Training ends with all benchmarks.
        if selection.split.protocol == Protocol::Dyml {
            for data in selection.data.benchmarks().unwrap_or_default() {
                Self::load_to_evaluate(&selection.with_data(data))?;
            }
        }
        Ok(dataset)
    }

    /// As [`Dataset::load`], for a data set that is only evaluated: it needs no training split.
    ///
    /// # Errors
    ///
    /// As [`Dataset::load`].
    pub fn load_to_evaluate(selection: &Selection) -> Result<Self> {
        let dataset = Self::read(selection)?;
        dataset.check_splits(&selection.data, &dataset.splits.named()[1..])?;
        dataset.check_files(&selection.data)?;
        Ok(dataset)
    }

    /// Reads a data set without checking whether it can be trained on.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, labels that do not form a tree, or splits that contradict each
    /// other.
    pub fn read(selection: &Selection) -> Result<Self> {
        let Selection { data, split, seed } = selection;
        let listing = list(selection)?;
        let (mut images, identity) = (listing.images, listing.identity);
        // Only the levels that the config names are used.
        let all_levels = data.kind().levels(data.hierarchy().is_some());
        let is_used = |place: usize| {
            all_levels.is_empty() || data.levels().iter().any(|level| level == all_levels[place])
        };
        for image in &mut images {
            let mut place = 0..;
            image.labels.retain(|_| place.next().is_some_and(is_used));
        }
        if split.test_fraction.is_none() {
            images.retain(|image| image.split.is_some());
        }
        if images.is_empty() {
            return Err(problem(
                format!("{} has no images", data.path().display()),
                "check data.path; images are JPEG, PNG or WebP files",
            ));
        }
        let label_names: Vec<Vec<&str>> =
            images.iter().map(|image| image.labels.iter().map(String::as_str).collect()).collect();
        // With an option, and not by the layout, a class is its path.
        if data.table().is_some_and(|table| table.qualify) {
            check_order(data.levels(), &label_names).with_context(|| data.path().display().to_string())?;
        }
        let place = |item: usize| images[item].path.display().to_string();
        let (taxonomy, labels) = Taxonomy::from_named_rows(data.levels(), &label_names, identity, &place)
            .with_context(|| data.path().display().to_string())?;
        let splits: Vec<Split> = match split.test_fraction {
            Some(share) => {
                let all: Vec<usize> = (0..images.len()).collect();
                let held_out = hold_out(&taxonomy, &labels, &all, share, *seed);
                held_out.into_iter().map(|out| if out { Split::Test } else { Split::Train }).collect()
            }
            None => images.iter().filter_map(|image| image.split).collect(),
        };
        let mut splits = group_by_split(&splits, selection)?;
        if let Some(share) = split.validation_fraction {
            let held_out = hold_out(&taxonomy, &labels, &splits.train, share, *seed);
            let (query, train) = splits.train.iter().copied().partition(|&item| held_out[item]);
            splits = Splits { train, query, gallery: Vec::new() };
        }
        if let Some(fold) = split.fold {
            let fold_of_item = draw_folds(&taxonomy, &labels, &splits.train, fold.of, *seed)
                .with_context(|| data.path().display().to_string())?;
            let (query, train) =
                splits.train.iter().copied().partition(|&item| fold_of_item[item] == Some(fold.number));
            splits = Splits { train, query, gallery: Vec::new() };
        }
        // Junk is for the evaluation splits, which are not evaluated on when classes are held out.
        let junk = if split.holds_out() { Vec::new() } else { junk(&images, &taxonomy, &splits, data)? };
        let (paths, parts) = images.into_iter().map(|image| (image.path, image.part)).unzip();
        let storage = Arc::new(Storage::new(parts, listing.containers));
        Ok(Self { taxonomy, paths, storage, labels, junk, splits })
    }

    /// As [`Dataset::digest`], with the contents of every image, each of which is read for it. An image that is missing or
    /// no file counts as an empty one.
    ///
    /// # Errors
    ///
    /// An image that the system cannot read.
    pub fn digest_with_pictures(&self, progress: Progress) -> Result<DataDigest> {
        let bar = progress.bar("Hashing", self.paths.len() as u64);
        let digest = |(item, path): (usize, &PathBuf)| -> Result<String> {
            let bytes = match self.storage.bytes(item, path) {
                Err(error) if files::is_fault_of_file(&error) => Vec::new(),
                bytes => bytes.map_err(|error| files::system_fault(path, &error))?,
            };
            bar.advance(1);
            Ok(sha256(&bytes))
        };
        let digests = self.paths.par_iter().enumerate().map(digest).collect::<Result<Vec<String>>>()?;
        Ok(DataDigest { pictures: Some(sha256(digests.concat().as_bytes())), ..self.digest() })
    }

    /// The digest of the data set by the names and the sizes of its images. Folders that all images are in do not count, so
    /// that a data set may be moved.
    pub fn digest(&self) -> DataDigest {
        let shared = self.paths.first().and_then(|path| path.parent()).map_or(0, |parent| {
            let depth =
                |path: &Path| path.components().zip(parent.components()).take_while(|(a, b)| a == b).count();
            self.paths.iter().map(|path| depth(path)).min().unwrap_or(0)
        });
        let (mut names, mut sizes, mut labels) = (String::new(), String::new(), String::new());
        for (item, path) in self.paths.iter().enumerate() {
            let name: PathBuf = path.components().skip(shared).collect();
            names += &format!("{}\n", name.display());
            sizes += &format!("{}\n", self.storage.length(item, path));
            labels += &format!("{:?}\n", self.labels.row(item));
        }
        labels += &format!("{:?}", self.taxonomy.level_names());
        let class_names = |level| {
            (0..self.taxonomy.class_count(level))
                .map(move |class| self.taxonomy.class_name(level, class as u32))
        };
        let classes: Vec<_> = (1..=self.taxonomy.depth()).flat_map(class_names).collect();
        let contents: Vec<u8> = self.storage.contents().flatten().collect();
        let contents = if contents.is_empty() { String::new() } else { sha256(&contents) };
        let sha256 = |text: &str| sha256(text.as_bytes());
        DataDigest {
            images: self.paths.len(),
            names: sha256(&names),
            sizes: sha256(&sizes),
            contents,
            pictures: None,
            labels: sha256(&labels),
            classes: sha256(&format!("{classes:?}")),
            splits: sha256(&format!("{:?}", self.splits)),
        }
    }

    /// Checks that no split is empty and that some query has a positive.
    fn check_splits(&self, data: &DataConfig, splits: &[(&str, &[usize])]) -> Result<()> {
        for (name, items) in splits {
            if items.is_empty() {
                return Err(problem(
                    format!("the split `{name}` of {} is empty", data.path().display()),
                    "add images to it; `akin data check CONFIG` counts the images of each split",
                ));
            }
        }
        if self.queries_with_positives(1) == 0 {
            return Err(problem(
                format!(
                    "no query of {} shares a label with a gallery image, at any level",
                    data.path().display()
                ),
                "check the labels: evaluation needs gallery images that are related to the queries",
            ));
        }
        Ok(())
    }

    /// Checks that every image is a file.
    fn check_files(&self, data: &DataConfig) -> Result<()> {
        let (mut missing, mut special) = (Vec::new(), Vec::new());
        for (item, path) in self.paths.iter().enumerate() {
            match fs::metadata(self.storage.file(item, path)) {
                Ok(metadata) if metadata.is_file() => {}
                Ok(_) => special.push(path.display()),
                Err(error) if files::is_fault_of_file(&error) => missing.push(path.display()),
                Err(error) => return Err(files::system_fault(path, &error)),
            }
        }
        if !special.is_empty() {
            let count = counted(special.len(), "image is not a regular file", "images are not regular files");
            return Err(problem(
                format!("{count}: {}", a_few(&special)),
                "replace them with files, or take them out of the data",
            ));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let hint = if data.table().is_some() {
            "check the paths; they are relative to `data.images`, by default the folder of the file"
        } else {
            "copy the missing files, and check for broken links"
        };
        let count = counted(missing.len(), "image does", "images do");
        Err(problem(format!("{count} not exist: {}", a_few(&missing)), hint))
    }

    /// A sentence for each setting that is not at its default and has no effect on these images.
    pub fn unused_settings(&self, selection: &Selection) -> Vec<String> {
        selection.unused_settings(self.splits.leave_one_out(), &self.paths)
    }

    /// The file that the image of an item is in.
    pub fn file(&self, item: usize) -> &Path {
        self.storage.file(item, &self.paths[item])
    }

    /// The classes of some items at a level, 1 … L.
    pub fn classes(&self, items: &[usize], level: usize) -> Vec<u32> {
        items.iter().map(|&item| self.labels.row(item)[level - 1]).collect()
    }

    /// The items that the queries rank.
    pub fn gallery(&self) -> &[usize] {
        if self.splits.leave_one_out() { &self.splits.query } else { &self.splits.gallery }
    }

    /// The number of queries that have a positive in the gallery at a level, 1 … L.
    pub fn queries_with_positives(&self, level: usize) -> usize {
        let mut sizes = HashMap::<u32, usize>::new();
        for class in self.classes(self.gallery(), level) {
            *sizes.entry(class).or_default() += 1;
        }
        // If the queries are the gallery, each counts itself once.
        let itself = usize::from(self.splits.leave_one_out());
        let queries = self.classes(&self.splits.query, level);
        queries.iter().filter(|class| sizes.get(class).is_some_and(|&size| size > itself)).count()
    }
}

/// Holds out a share of the finest classes of the items `among`. Returns for every item whether its
/// class is held out.
///
/// The classes are shuffled and then sorted by parent, and every n-th is taken, so that each parent
/// gives about the same share.
fn hold_out(taxonomy: &Taxonomy, labels: &Labels, among: &[usize], share: f64, seed: u64) -> Vec<bool> {
    let level = taxonomy.depth();
    let taken = |position: usize| (position as f64 * share).floor();
    let mut held_out = vec![false; taxonomy.class_count(level)];
    for (position, class) in shuffled_classes(taxonomy, labels, among, seed).into_iter().enumerate() {
        held_out[class as usize] = taken(position + 1) > taken(position);
    }
    labels.column(level).into_iter().map(|class| held_out[class as usize]).collect()
}

/// Divides the finest classes of the items `among` into folds. Returns for every item the fold of its class, from 1; none
/// for a class of other items. Each fold gets a like number of classes, and a like number of each parent.
///
/// # Errors
///
/// Fewer classes than folds.
fn draw_folds(
    taxonomy: &Taxonomy,
    labels: &Labels,
    among: &[usize],
    folds: usize,
    seed: u64,
) -> Result<Vec<Option<usize>>> {
    let level = taxonomy.depth();
    let classes = shuffled_classes(taxonomy, labels, among, seed);
    if classes.len() < folds {
        return Err(problem(
            format!(
                "the training split has {} of {}, which is too few for {} folds",
                counted(classes.len(), "class", "classes"),
                taxonomy.level_names()[level - 1],
                count(folds)
            ),
            "use fewer folds: each holds out classes of its own",
        ));
    }
    let mut fold = vec![None; taxonomy.class_count(level)];
    for (position, class) in classes.into_iter().enumerate() {
        fold[class as usize] = Some(position % folds + 1);
    }
    Ok(labels.column(level).into_iter().map(|class| fold[class as usize]).collect())
}

/// The finest classes of the items `among`, shuffled and then sorted by parent.
fn shuffled_classes(taxonomy: &Taxonomy, labels: &Labels, among: &[usize], seed: u64) -> Vec<u32> {
    let finest = labels.column(taxonomy.depth());
    let mut classes: Vec<u32> = among.iter().map(|&item| finest[item]).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.shuffle(&mut akin_core::random::stream(seed, "splits", &[]));
    classes.sort_by_key(|&class| ancestors(taxonomy, class));
    classes
}

/// The ancestors of a finest class, coarse → fine.
fn ancestors(taxonomy: &Taxonomy, class: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut child = class;
    for level in (1..=taxonomy.depth()).rev() {
        if let Some(parent) = taxonomy.parent(level, child) {
            path.insert(0, parent);
            child = parent;
        }
    }
    path
}

/// The classes whose queries leave each item out of their rankings.
fn junk(
    images: &[ListedImage],
    taxonomy: &Taxonomy,
    splits: &Splits,
    data: &DataConfig,
) -> Result<Vec<Vec<u32>>> {
    if images.iter().all(|image| image.junk.is_empty()) {
        return Ok(Vec::new());
    }
    if splits.leave_one_out() {
        return Err(problem(
            format!(
                "{} leaves images out of rankings, but its queries rank each other",
                data.path().display()
            ),
            "give it the splits `query` and `gallery`, or remove data.junk_column",
        ));
    }
    let level = taxonomy.depth();
    let mut classes: HashMap<&str, Vec<u32>> = HashMap::new();
    for class in 0..taxonomy.class_count(level) as u32 {
        classes.entry(taxonomy.class_name(level, class)).or_default().push(class);
    }
    let classes_of = |image: &ListedImage| -> Result<Vec<u32>> {
        let classes_named = |name: &String| {
            classes.get(name.as_str()).ok_or_else(|| {
                problem(
                    format!(
                        "{} is junk for `{name}`, which is no {}",
                        image.path.display(),
                        data.levels()[level - 1]
                    ),
                    "correct the class, or remove it",
                )
            })
        };
        Ok(image
            .junk
            .iter()
            .map(classes_named)
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .copied()
            .collect())
    };
    images.iter().map(classes_of).collect()
}

/// Lists the items of each split. The evaluation splits are either `test` alone, or `query` and
/// `gallery`.
fn group_by_split(splits: &[Split], selection: &Selection) -> Result<Splits> {
    let data = &selection.data;
    let SplitNames { train: train_name, test: test_name, query: query_name, gallery: gallery_name } =
        data.split_names().cloned().unwrap_or_default();
    let items_in =
        |wanted| -> Vec<usize> { (0..splits.len()).filter(|&item| splits[item] == wanted).collect() };
    let [train, test, query, gallery] =
        [Split::Train, Split::Test, Split::Query, Split::Gallery].map(items_in);
    let lacks = |missing: &str, present: &str| {
        problem(
            format!("{} has a split `{present}` but no `{missing}`", data.path().display()),
            format!(
                "add `{missing}`, or rename `{present}` to `{test_name}`: its images are then queries and \
                 gallery at once"
            ),
        )
    };
    if selection.split.train_is_gallery {
        return match (test.is_empty(), query.is_empty(), gallery.is_empty()) {
            (_, _, false) => Err(problem(
                format!(
                    "split.train_is_gallery is set, but {} has a split `{gallery_name}`",
                    data.path().display()
                ),
                "remove one of them: there is one gallery",
            )),
            _ if train.is_empty() => Err(problem(
                format!(
                    "split.train_is_gallery is set, but {} has no training images",
                    data.path().display()
                ),
                format!("add a split `{train_name}`, or remove split.train_is_gallery"),
            )),
            (false, true, _) => Ok(Splits { gallery: train.clone(), train, query: test }),
            (true, false, _) => Ok(Splits { gallery: train.clone(), train, query }),
            _ => Err(problem(
                format!(
                    "split.train_is_gallery is set, and {} needs one split of queries",
                    data.path().display()
                ),
                format!("give it a split `{test_name}` or a split `{query_name}`"),
            )),
        };
    }
    match (test.is_empty(), query.is_empty() && gallery.is_empty()) {
        (false, true) => Ok(Splits { train, query: test, gallery: Vec::new() }),
        (true, false) if query.is_empty() => Err(lacks(&query_name, &gallery_name)),
        (true, false) if gallery.is_empty() => Err(lacks(&gallery_name, &query_name)),
        (true, false) => Ok(Splits { train, query, gallery }),
        (true, true) => Err(problem(
            format!("{} has no evaluation split", data.path().display()),
            format!(
                "add `{test_name}`, or `{query_name}` and `{gallery_name}`, set data.splits.test to the name of the split \
                 that is evaluated, or set split.test_fraction = 0.5"
            ),
        )),
        (false, false) => Err(problem(
            format!(
                "{} has the split `{test_name}` and also `{query_name}` or `{gallery_name}`",
                data.path().display()
            ),
            format!(
                "use `{test_name}` alone (queries and gallery at once), or `{query_name}` and `{gallery_name}`"
            ),
        )),
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Small data sets on disk.

    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A directory with these files.
    pub(crate) fn files(files: &[(&str, &[u8])]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        directory
    }

    /// A directory with empty image files at these paths.
    pub(crate) fn tree(images: &[&str]) -> TempDir {
        files(&images.iter().map(|&image| (image, &b""[..])).collect::<Vec<_>>())
    }

    /// `[data]` from TOML, with `path` relative to this directory. `[split]` may follow.
    pub(crate) fn data(directory: &TempDir, toml: &str) -> Selection {
        let mut root: toml::Table = format!("[data]\n{toml}").parse().unwrap();
        let mut data: DataConfig = root.remove("data").unwrap().try_into().unwrap();
        data.set_path(directory.path().join(data.path()));
        let split = root.remove("split").map(|split| split.try_into().unwrap()).unwrap_or_default();
        Selection { data, split, seed: 0 }
    }

    pub(crate) fn folder(directory: &TempDir, more: &str) -> Selection {
        data(directory, &format!("kind = 'folder'\npath = ''\nlevels = ['kind', 'variety']\n{more}"))
    }

    pub(crate) fn csv(text: &str, more: &str) -> (TempDir, Selection) {
        let directory = files(&[("labels.csv", text.as_bytes())]);
        let data = data(
            &directory,
            &format!("kind = 'csv'\npath = 'labels.csv'\nlevels = ['kind', 'variety']\n{more}"),
        );
        (directory, data)
    }

    /// A data set that is a copy in this directory. `toml` is the section without `path`. `[split]` may follow.
    pub(crate) fn config(copy: &TempDir, toml: &str) -> Result<Selection> {
        let mut root: toml::Table = format!("[data]\n{toml}").parse().unwrap();
        root["data"].as_table_mut().unwrap().insert("path".into(), copy.path().to_str().unwrap().into());
        let file = copy.path().join("akin-test.toml");
        fs::write(&file, toml::to_string(&root).unwrap()).unwrap();
        Selection::load(&file, &[])
    }

    pub(crate) fn try_to_read(copy: &TempDir, toml: &str) -> Result<Dataset> {
        Dataset::read(&config(copy, toml)?)
    }

    pub(crate) fn read(copy: &TempDir, toml: &str) -> Dataset {
        try_to_read(copy, toml).unwrap()
    }

    /// The names and sizes of the splits.
    pub(crate) fn splits(dataset: &Dataset) -> Vec<(&'static str, usize)> {
        dataset.splits.named().into_iter().map(|(name, items)| (name, items.len())).collect()
    }

    /// The label names of an item, coarse → fine.
    pub(crate) fn labels(dataset: &Dataset, item: usize) -> Vec<String> {
        let row = dataset.labels.row(item).iter().enumerate();
        row.map(|(place, &class)| dataset.taxonomy.class_name(place + 1, class).to_owned()).collect()
    }

    /// The picture of an item.
    pub(crate) fn picture(dataset: &Dataset, item: usize) -> akin_core::image::Pixels {
        let bytes = dataset.storage.bytes(item, &dataset.paths[item]).unwrap();
        dataset.storage.decode(item, &bytes).unwrap()
    }

    /// The message and the hint of an error.
    pub(crate) fn refusal<T>(result: Result<T>) -> (String, String) {
        let error = result.err().expect("an error");
        let (message, hint) = akin_base::problem::parts(&error);
        (message, hint.expect("every error has a hint"))
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::*;
    use super::*;

    const GOOD: &str = "path,variety,kind,split
a.jpg,Gala,Apple,train
b.jpg,Gala,Apple,train
c.jpg,Conference,Pear,query
d.jpg,Conference,Pear,gallery
e.jpg,Fuji,Apple,gallery
";

    #[test]
    fn a_missing_split_is_named() {
        let (_directory, data) = csv(&GOOD.replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("`gallery` but no `query`"));
        let (_directory, data) = csv(&GOOD.replace("gallery", "train").replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("no evaluation split"));
        let (_directory, data) =
            csv(&GOOD.replace("c.jpg,Conference,Pear,query", "c.jpg,Conference,Pear,test"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("`test` and also `query` or `gallery`"));
        let (_directory, data) =
            csv(&GOOD.replace("train", "test").replace("query", "test").replace("gallery", "test"), "");
        assert!(refusal(Dataset::load(&data)).0.contains("split `train`"));
    }

    #[test]
    fn a_split_without_positives_is_refused() {
        let (_directory, data) = csv(&GOOD.replace("d.jpg,Conference,Pear,gallery\n", ""), "");
        let (message, hint) = refusal(Dataset::load(&data));
        assert!(message.contains("no query") && message.contains("at any level"), "{message}");
        assert!(hint.contains("related to the queries"));
    }

    #[test]
    fn missing_images_are_listed() {
        let (_directory, data) = csv(GOOD, "");
        let (message, hint) = refusal(Dataset::load(&data));
        assert!(message.starts_with("5 images do not exist: ") && message.contains("a.jpg"), "{message}");
        assert!(hint.contains("data.images"));
    }

    #[test]
    fn a_class_with_two_parents_is_refused_unless_it_is_qualified() {
        let text = GOOD.replace("e.jpg,Fuji,Apple", "e.jpg,Gala,Pear");
        let (_directory, data) = csv(&text, "");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(
            message.contains("Gala") && message.contains("Apple") && message.contains("Pear"),
            "{message}"
        );
        assert!(message.contains("e.jpg, \"Pear\"") && !hint.is_empty(), "{message}");
        let (_directory, data) = csv(&text, "qualify = true");
        assert_eq!(Dataset::read(&data).unwrap().taxonomy.class_count(2), 3);
    }

    #[test]
    fn levels_in_the_wrong_order_are_refused_although_they_are_qualified() {
        for more in ["", "qualify = true"] {
            let (_directory, mut data) = csv(GOOD, more);
            let DataConfig::Csv(table) = &mut data.data else { panic!("a CSV file") };
            table.levels.reverse();
            let (message, hint) = refusal(Dataset::read(&data));
            assert!(hint.ends_with("kind, variety"), "{message} {hint}");
        }
    }

    #[test]
    fn queries_rank_the_gallery_or_each_other() {
        let (_directory, data) = csv(GOOD, "");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!((dataset.splits.query.as_slice(), dataset.gallery()), (&[2][..], &[3, 4][..]));
        assert_eq!((dataset.queries_with_positives(1), dataset.queries_with_positives(2)), (1, 1));

        let (_directory, data) = csv(&GOOD.replace("query", "test").replace("gallery", "test"), "");
        let dataset = Dataset::read(&data).unwrap();
        assert!(dataset.splits.leave_one_out());
        assert_eq!(dataset.gallery(), [2, 3, 4]);
        assert_eq!(dataset.queries_with_positives(2), 2, "a query is not its own positive");
    }

    #[test]
    fn queries_can_rank_the_training_images() {
        let text = GOOD.replace("query", "test").replace("gallery", "train");
        let (_directory, data) = csv(&text, "[split]\ntrain_is_gallery = true");
        let dataset = Dataset::read(&data).unwrap();
        assert!(!dataset.splits.leave_one_out());
        let Splits { train, query, gallery } = &dataset.splits;
        assert_eq!((&train[..], &query[..], &gallery[..]), (&[0, 1, 3, 4][..], &[2][..], &[0, 1, 3, 4][..]));
        assert_eq!(dataset.paths.len(), 5, "no image is listed twice");
        assert_eq!(dataset.queries_with_positives(2), 1);
        assert_eq!(splits(&dataset), [("train", 4), ("test", 1)]);

        let (_directory, data) = csv(&text.replace("test", "query"), "[split]\ntrain_is_gallery = true");
        assert_eq!(Dataset::read(&data).unwrap().splits, dataset.splits);

        let (_directory, data) = csv(GOOD, "[split]\ntrain_is_gallery = true");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(message.contains("has a split `gallery`") && hint.contains("one gallery"), "{message}");
        let (_directory, data) = csv(&text.replace("test", "train"), "[split]\ntrain_is_gallery = true");
        assert!(refusal(Dataset::read(&data)).0.contains("needs one split of queries"));
        let (_directory, data) = csv(&text.replace("train", "test"), "[split]\ntrain_is_gallery = true");
        assert!(refusal(Dataset::read(&data)).0.contains("has no training images"));
    }

    #[test]
    fn held_out_classes_are_spread_evenly_over_parents_and_depend_on_the_seed() {
        let mut text = String::from("path,variety,kind\n");
        for kind in 0..3 {
            for variety in 0..4 {
                for image in 0..2 {
                    text += &format!("{kind}-{variety}-{image}.jpg,{kind}-{variety},{kind}\n");
                }
            }
        }
        let (_directory, data) = csv(&text, "[split]\ntest_fraction = 0.5");
        let dataset = Dataset::read(&data).unwrap();
        let Splits { train, query, .. } = &dataset.splits;
        assert_eq!((train.len(), query.len()), (12, 12));
        let classes = |items: &[usize]| {
            dataset.classes(items, 2).into_iter().collect::<std::collections::BTreeSet<_>>()
        };
        assert!(classes(train).is_disjoint(&classes(query)));
        for kind in 0..3 {
            assert_eq!(dataset.classes(query, 1).iter().filter(|&&class| class == kind).count(), 4);
        }
        assert_eq!(Dataset::read(&data).unwrap().splits, dataset.splits);
        assert!(
            (2..9)
                .any(|seed| Dataset::read(&Selection { seed, ..data.clone() }).unwrap().splits
                    != dataset.splits)
        );
    }

    #[test]
    fn validation_classes_are_taken_from_the_training_split_only() {
        let mut text = String::from("path,variety,kind,split\n");
        for variety in 0..8 {
            for image in 0..2 {
                let split = if variety < 4 { "train" } else { "test" };
                text += &format!("{variety}-{image}.jpg,{variety},{},{split}\n", variety % 2);
            }
        }
        let (_directory, data) = csv(&text, "");
        let whole = Dataset::read(&data).unwrap().splits;
        let (_directory, data) = csv(&text, "[split]\nvalidation_fraction = 0.5");
        let Splits { train, query, gallery } = Dataset::read(&data).unwrap().splits;
        assert_eq!((train.len(), query.len(), gallery.len()), (4, 4, 0));
        let mut both = [train, query].concat();
        both.sort_unstable();
        assert_eq!(both, whole.train);
    }

    #[test]
    fn folds_hold_out_every_training_class_once_and_spread_parents_evenly() {
        let mut text = String::from("path,variety,kind,split\n");
        for variety in 0..16 {
            for image in 0..2 {
                let split = if variety < 12 { "train" } else { "test" };
                text += &format!("{variety}-{image}.jpg,{variety},{},{split}\n", variety % 3);
            }
        }
        let (_directory, data) = csv(&text, "");
        let whole = Dataset::read(&data).unwrap().splits;
        let mut held_out: Vec<usize> = Vec::new();
        for number in 1..=4 {
            let (_directory, data) = csv(&text, &format!("[split]\nfold = {{ number = {number}, of = 4 }}"));
            let dataset = Dataset::read(&data).unwrap();
            let Splits { train, query, gallery } = &dataset.splits;
            assert_eq!((train.len(), query.len(), gallery.len()), (18, 6, 0));
            let mut kinds = dataset.classes(query, 1);
            kinds.sort_unstable();
            assert_eq!(kinds, [0, 0, 1, 1, 2, 2], "one class of each parent");
            held_out.extend(query);
        }
        held_out.sort_unstable();
        assert_eq!(held_out, whole.train);

        let (_directory, data) = csv(&text, "[split]\nfold = { number = 1, of = 13 }");
        let (message, hint) = refusal(Dataset::read(&data));
        assert!(message.contains("12 classes of variety") && hint.contains("fewer folds"), "{message}");
    }
}
