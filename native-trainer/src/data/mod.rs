//! Data sets: images with label paths, in splits.
//!
//! [`folder`] and [`table`] read rows from a folder tree or a CSV file; this module makes one
//! taxonomy of them and sorts them into splits, and [`check`] looks for what is wrong with them.
//! Nothing is decoded here.

pub mod check;
pub mod folder;
pub mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use anyhow::{Context, Result};

use crate::columns::counted;
use crate::config::{DataConfig, DataKind};
use crate::problem::{a_few, problem};

/// Images with their labels, in splits.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Of all images of all splits, so that ids are comparable between them.
    pub taxonomy: Taxonomy,
    /// All images.
    pub items: Vec<Item>,
    /// Which of them are for what.
    pub splits: Splits,
}

/// One image.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Where it is; absolute if the config is.
    pub path: PathBuf,
    /// Its class ids, coarse → fine.
    pub labels: Vec<u32>,
}

/// Indices of items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Splits {
    /// What is trained on.
    pub train: Vec<usize>,
    /// What is asked with.
    pub query: Vec<usize>,
    /// What is ranked. Empty where queries rank each other, each leaving itself out.
    pub gallery: Vec<usize>,
}

impl Splits {
    /// Whether queries rank each other.
    pub fn leave_one_out(&self) -> bool {
        self.gallery.is_empty()
    }

    /// The splits by name, in a fixed order: `train` and then `test`, or `query` and `gallery`.
    pub fn named(&self) -> Vec<(&'static str, &[usize])> {
        let train = ("train", self.train.as_slice());
        if self.leave_one_out() {
            vec![train, ("test", &self.query)]
        } else {
            vec![train, ("query", &self.query), ("gallery", &self.gallery)]
        }
    }
}

/// Which split a row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Trained on.
    Train,
    /// Query and gallery at once.
    Test,
    /// Asked with.
    Query,
    /// Ranked.
    Gallery,
}

impl Split {
    /// All of them with their names in this config.
    fn names(data: &DataConfig) -> [(Self, &str); 4] {
        [
            (Self::Train, &data.train),
            (Self::Test, &data.test),
            (Self::Query, &data.query),
            (Self::Gallery, &data.gallery),
        ]
    }
}

/// An image as its source describes it.
#[derive(Debug)]
struct Row {
    path: PathBuf,
    labels: Vec<String>,
    /// None where the data are split by `test_fraction`.
    split: Option<Split>,
}

impl Dataset {
    /// Reads a data set and checks that it can be trained on and evaluated: no split is empty, some
    /// query has something to find, and every image is there.
    ///
    /// # Errors
    ///
    /// As [`Dataset::read`], or one of these does not hold.
    pub fn load(data: &DataConfig, seed: u64) -> Result<Self> {
        let dataset = Self::read(data, seed)?;
        for (name, items) in dataset.splits.named() {
            if items.is_empty() {
                return Err(problem(
                    format!("the split `{name}` of {} is empty", data.path.display()),
                    "put images into it; `akin data check CONFIG` counts what there is",
                ));
            }
        }
        if dataset.queries_with_positives(1) == 0 {
            return Err(problem(
                format!(
                    "no query of {} shares a label with any gallery image, at any level",
                    data.path.display()
                ),
                "check the labels: evaluation needs gallery images that are related to the queries",
            ));
        }
        let missing: Vec<_> = dataset.items.iter().filter(|item| !item.path.is_file()).collect();
        if !missing.is_empty() {
            let named: Vec<_> = missing.iter().map(|item| item.path.display()).collect();
            let hint = match data.kind {
                DataKind::Csv => {
                    "check the paths; they count from `data.images`, by default the folder of the CSV file"
                }
                DataKind::Folder => "check for links that lead nowhere",
            };
            let count = counted(missing.len(), "image is", "images are");
            return Err(problem(format!("{count} not there: {}", a_few(&named)), hint));
        }
        Ok(dataset)
    }

    /// Reads a data set as it is.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, labels that do not make a taxonomy, or splits that do not go
    /// together.
    pub fn read(data: &DataConfig, seed: u64) -> Result<Self> {
        let (rows, identity) = match data.kind {
            DataKind::Folder => (folder::read(data)?, ClassIdentity::Path),
            DataKind::Csv if data.qualify => (table::read(data)?, ClassIdentity::Path),
            DataKind::Csv => (table::read(data)?, ClassIdentity::Name),
        };
        if rows.is_empty() {
            return Err(problem(
                format!("there are no images in {}", data.path.display()),
                "check data.path; images are JPEG, PNG or WebP files",
            ));
        }
        let (paths, labels, split): (Vec<_>, Vec<_>, Vec<_>) = columns(rows);
        let (taxonomy, labels) = Taxonomy::from_rows(&data.levels, &labels, identity)
            .with_context(|| data.path.display().to_string())?;
        let items: Vec<Item> = paths
            .into_iter()
            .enumerate()
            .map(|(number, path)| Item { path, labels: labels.row(number).to_vec() })
            .collect();
        let split: Vec<Split> = match data.test_fraction {
            Some(share) => {
                let all: Vec<usize> = (0..items.len()).collect();
                let held_out = hold_out(&taxonomy, &items, &all, share, seed);
                held_out.into_iter().map(|out| if out { Split::Test } else { Split::Train }).collect()
            }
            None => split.into_iter().flatten().collect(),
        };
        let mut splits = assemble(&split, data)?;
        if let Some(share) = data.validation_fraction {
            let held_out = hold_out(&taxonomy, &items, &splits.train, share, seed);
            let (query, train) = splits.train.iter().copied().partition(|&item| held_out[item]);
            splits = Splits { train, query, gallery: Vec::new() };
        }
        Ok(Self { taxonomy, items, splits })
    }

    /// The label rows of some items.
    pub fn labels(&self, items: &[usize]) -> Labels {
        let ids = items.iter().flat_map(|&item| self.items[item].labels.iter().copied()).collect();
        Labels::new(self.taxonomy.depth(), ids).expect("every item has one id per level")
    }

    /// The classes of some items at a level, 1 … L.
    pub fn classes(&self, items: &[usize], level: usize) -> Vec<u32> {
        items.iter().map(|&item| self.items[item].labels[level - 1]).collect()
    }

    /// What the queries rank.
    pub fn gallery(&self) -> &[usize] {
        if self.splits.leave_one_out() { &self.splits.query } else { &self.splits.gallery }
    }

    /// How many queries have something to find at a level, 1 … L.
    pub fn queries_with_positives(&self, level: usize) -> usize {
        let mut sizes = HashMap::<u32, usize>::new();
        for class in self.classes(self.gallery(), level) {
            *sizes.entry(class).or_default() += 1;
        }
        // A query does not find itself.
        let itself = usize::from(self.splits.leave_one_out());
        let queries = self.classes(&self.splits.query, level);
        queries.iter().filter(|class| sizes.get(class).is_some_and(|&size| size > itself)).count()
    }
}

/// Which items belong to the share of finest classes that is held out. Of the classes of the items
/// `among`, shuffled so that the children of a class still stand together, every n-th is taken, so
/// that each parent gives about its share.
fn hold_out(taxonomy: &Taxonomy, items: &[Item], among: &[usize], share: f64, seed: u64) -> Vec<bool> {
    use rand::seq::SliceRandom;
    let level = taxonomy.depth();
    let mut classes: Vec<u32> = among.iter().map(|&item| items[item].labels[level - 1]).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.shuffle(&mut akin_core::random::stream(seed, "splits", &[]));
    classes.sort_by_key(|&class| ancestors(taxonomy, class));
    let taken = |position: usize| (position as f64 * share).floor();
    let mut held_out = vec![false; taxonomy.class_count(level)];
    for (position, &class) in classes.iter().enumerate() {
        held_out[class as usize] = taken(position + 1) > taken(position);
    }
    items.iter().map(|item| held_out[item.labels[level - 1] as usize]).collect()
}

/// The classes above a finest one, coarse → fine.
fn ancestors(taxonomy: &Taxonomy, class: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut here = class;
    for level in (1..=taxonomy.depth()).rev() {
        if let Some(parent) = taxonomy.parent(level, here) {
            path.insert(0, parent);
            here = parent;
        }
    }
    path
}

fn assemble(split: &[Split], data: &DataConfig) -> Result<Splits> {
    let of = |wanted| -> Vec<usize> { (0..split.len()).filter(|&item| split[item] == wanted).collect() };
    let [train, test, query, gallery] = [Split::Train, Split::Test, Split::Query, Split::Gallery].map(of);
    let DataConfig { test: test_name, query: query_name, gallery: gallery_name, .. } = data;
    match (test.is_empty(), query.is_empty() && gallery.is_empty()) {
        (false, true) => Ok(Splits { train, query: test, gallery: Vec::new() }),
        (true, false) if query.is_empty() => Err(problem(
            format!("there is a split `{gallery_name}` but no `{query_name}`"),
            format!(
                "add one, or call the evaluation split `{test_name}`: it is then query and gallery at once"
            ),
        )),
        (true, false) if gallery.is_empty() => Err(problem(
            format!("there is a split `{query_name}` but no `{gallery_name}`"),
            format!(
                "add one, or call the evaluation split `{test_name}`: it is then query and gallery at once"
            ),
        )),
        (true, false) => Ok(Splits { train, query, gallery }),
        (true, true) => Err(problem(
            format!("{} has no evaluation split", data.path.display()),
            format!(
                "add `{test_name}`, or `{query_name}` and `{gallery_name}`, or set data.test_fraction = 0.5"
            ),
        )),
        (false, false) => Err(problem(
            format!("the data have `{test_name}` and also `{query_name}` or `{gallery_name}`"),
            format!(
                "use `{test_name}` alone (query and gallery at once), or `{query_name}` and `{gallery_name}`"
            ),
        )),
    }
}

fn columns(rows: Vec<Row>) -> (Vec<PathBuf>, Vec<Vec<String>>, Vec<Option<Split>>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        columns.0.push(row.path);
        columns.1.push(row.labels);
        columns.2.push(row.split);
    }
    columns
}

/// Whether a file's name says that it is an image. Formats that cannot be read are among them, so
/// that they are refused by name instead of overlooked.
fn looks_like_an_image(path: &Path) -> bool {
    const ENDINGS: [&str; 11] =
        ["jpg", "jpeg", "png", "webp", "heic", "heif", "avif", "gif", "bmp", "tif", "tiff"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    ENDINGS.contains(&ending.as_str())
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Small data sets on disk.

    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A directory with these files in it.
    pub(crate) fn files(files: &[(&str, &[u8])]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        directory
    }

    /// A directory with empty images at these places.
    pub(crate) fn tree(images: &[&str]) -> TempDir {
        files(&images.iter().map(|&image| (image, &b""[..])).collect::<Vec<_>>())
    }

    /// `[data]` from TOML, its path in this directory.
    pub(crate) fn data(directory: &TempDir, toml: &str) -> DataConfig {
        let mut data: DataConfig = toml::from_str(toml).unwrap();
        data.path = directory.path().join(data.path);
        data
    }

    pub(crate) fn folder(directory: &TempDir, more: &str) -> DataConfig {
        data(directory, &format!("kind = 'folder'\npath = ''\nlevels = ['kind', 'variety']\n{more}"))
    }

    pub(crate) fn csv(text: &str, more: &str) -> (TempDir, DataConfig) {
        let directory = files(&[("labels.csv", text.as_bytes())]);
        let data = data(
            &directory,
            &format!("kind = 'csv'\npath = 'labels.csv'\nlevels = ['kind', 'variety']\n{more}"),
        );
        (directory, data)
    }

    /// What a refusal says and advises.
    pub(crate) fn refusal<T>(result: Result<T>) -> (String, String) {
        let error = result.err().expect("it is refused");
        let (message, hint) = crate::problem::parts(&error);
        (message, hint.expect("every refusal says what to do"))
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
    fn a_split_that_is_missing_is_named() {
        let (_directory, data) = csv(&GOOD.replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data, 0)).0.contains("`gallery` but no `query`"));
        let (_directory, data) = csv(&GOOD.replace("gallery", "train").replace("query", "train"), "");
        assert!(refusal(Dataset::load(&data, 0)).0.contains("no evaluation split"));
        let (_directory, data) =
            csv(&GOOD.replace("c.jpg,Conference,Pear,query", "c.jpg,Conference,Pear,test"), "");
        assert!(refusal(Dataset::load(&data, 0)).0.contains("`test` and also `query` or `gallery`"));
        let (_directory, data) =
            csv(&GOOD.replace("train", "test").replace("query", "test").replace("gallery", "test"), "");
        assert!(refusal(Dataset::load(&data, 0)).0.contains("split `train`"));
    }

    #[test]
    fn a_split_without_positives_is_refused() {
        let (_directory, data) = csv(&GOOD.replace("d.jpg,Conference,Pear,gallery\n", ""), "");
        let (message, hint) = refusal(Dataset::load(&data, 0));
        assert!(message.contains("no query") && message.contains("at any level"), "{message}");
        assert!(hint.contains("related to the queries"));
    }

    #[test]
    fn images_that_are_not_there_are_listed() {
        let (_directory, data) = csv(GOOD, "");
        let (message, hint) = refusal(Dataset::load(&data, 0));
        assert!(message.starts_with("5 images are not there") && message.contains("a.jpg"), "{message}");
        assert!(hint.contains("data.images"));
    }

    #[test]
    fn a_class_with_two_parents_is_refused_unless_it_is_qualified() {
        let text = GOOD.replace("e.jpg,Fuji,Apple", "e.jpg,Gala,Pear");
        let (_directory, data) = csv(&text, "");
        let (message, hint) = refusal(Dataset::read(&data, 0));
        assert!(
            message.contains("Gala") && message.contains("Apple") && message.contains("Pear"),
            "{message}"
        );
        assert!(!hint.is_empty());
        let (_directory, data) = csv(&text, "qualify = true");
        assert_eq!(Dataset::read(&data, 0).unwrap().taxonomy.class_count(2), 3);
    }

    #[test]
    fn queries_rank_the_gallery_or_each_other() {
        let (_directory, data) = csv(GOOD, "");
        let dataset = Dataset::read(&data, 0).unwrap();
        assert_eq!((dataset.splits.query.as_slice(), dataset.gallery()), (&[2][..], &[3, 4][..]));
        assert_eq!((dataset.queries_with_positives(1), dataset.queries_with_positives(2)), (1, 1));

        let (_directory, data) = csv(&GOOD.replace("query", "test").replace("gallery", "test"), "");
        let dataset = Dataset::read(&data, 0).unwrap();
        assert!(dataset.splits.leave_one_out());
        assert_eq!(dataset.gallery(), [2, 3, 4]);
        assert_eq!(dataset.queries_with_positives(2), 2, "a query does not find itself");
    }

    #[test]
    fn held_out_classes_are_spread_over_their_parents_and_follow_the_seed() {
        let mut text = String::from("path,variety,kind\n");
        for kind in 0..3 {
            for variety in 0..4 {
                for image in 0..2 {
                    text += &format!("{kind}-{variety}-{image}.jpg,{kind}-{variety},{kind}\n");
                }
            }
        }
        let (_directory, data) = csv(&text, "test_fraction = 0.5");
        let dataset = Dataset::read(&data, 1).unwrap();
        let Splits { train, query, .. } = &dataset.splits;
        assert_eq!((train.len(), query.len()), (12, 12));
        let of = |items: &[usize]| {
            dataset.classes(items, 2).into_iter().collect::<std::collections::BTreeSet<_>>()
        };
        assert!(of(train).is_disjoint(&of(query)));
        for kind in 0..3 {
            assert_eq!(dataset.classes(query, 1).iter().filter(|&&class| class == kind).count(), 4);
        }
        assert_eq!(Dataset::read(&data, 1).unwrap().splits, dataset.splits);
        assert!((2..9).any(|seed| Dataset::read(&data, seed).unwrap().splits != dataset.splits));
    }

    #[test]
    fn validation_classes_come_out_of_the_training_split_alone() {
        let mut text = String::from("path,variety,kind,split\n");
        for variety in 0..8 {
            for image in 0..2 {
                let split = if variety < 4 { "train" } else { "test" };
                text += &format!("{variety}-{image}.jpg,{variety},{},{split}\n", variety % 2);
            }
        }
        let (_directory, data) = csv(&text, "");
        let whole = Dataset::read(&data, 1).unwrap().splits;
        let (_directory, data) = csv(&text, "validation_fraction = 0.5");
        let Splits { train, query, gallery } = Dataset::read(&data, 1).unwrap().splits;
        assert_eq!((train.len(), query.len(), gallery.len()), (4, 4, 0));
        let mut both = [train, query].concat();
        both.sort_unstable();
        assert_eq!(both, whole.train);
    }
}
