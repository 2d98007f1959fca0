//! A data set that has been read: its taxonomy, its labels and its splits.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_base::files;
use akin_base::problem::{a_few, problem};
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_core::taxonomy::{Labels, Taxonomy, UNKNOWN, check_order};
use anyhow::{Context, Result};

use super::listing::ListedImage;
use super::splits::{Splits, junk};
use super::storage::Part;
use super::{Storage, list};
use crate::config::{DataConfig, MissingFiles, Protocol, Selection, SplitConfig, TableConfig};

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
    /// The files that do not exist, if the config leaves their rows out.
    pub missing_files: Vec<PathBuf>,
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
        dataset.warn_of_missing_files();
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
        dataset.warn_of_missing_files();
        dataset.check_splits(&selection.data, &dataset.splits.named()[1..])?;
        dataset.check_files(&selection.data)?;
        Ok(dataset)
    }

    /// Every image of these data, whatever its split: each is a query, and the others are its gallery.
    ///
    /// # Errors
    ///
    /// As [`Dataset::load`].
    pub fn load_all(data: DataConfig) -> Result<Self> {
        // A split that is drawn needs no column.
        let split = SplitConfig { test_fraction: Some(0.5), ..SplitConfig::default() };
        let selection = Selection { data: data.clone(), split, seed: 0 };
        let dataset = Self::read_and_split(&selection, |images, _, _| {
            Ok(Splits { query: (0..images.len()).collect(), ..Splits::default() })
        })?;
        dataset.check_splits(&data, &dataset.splits.named()[1..])?;
        dataset.check_files(&data)?;
        Ok(dataset)
    }

    /// A data set of these pictures, each of which is a query that ranks all others.
    pub fn leave_one_out(
        taxonomy: Taxonomy,
        labels: Labels,
        paths: Vec<PathBuf>,
        storage: Arc<Storage>,
    ) -> Self {
        let splits = Splits { query: (0..paths.len()).collect(), ..Splits::default() };
        Self { taxonomy, paths, storage, labels, junk: Vec::new(), splits, missing_files: Vec::new() }
    }

    /// Reads a data set without checking whether it can be trained on.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, labels that do not form a tree, or splits that contradict each
    /// other.
    pub fn read(selection: &Selection) -> Result<Self> {
        Self::read_and_split(selection, |images, taxonomy, labels| {
            Splits::new(images, taxonomy, labels, selection)
        })
    }

    fn read_and_split(
        selection: &Selection,
        splits: impl FnOnce(&[ListedImage], &Taxonomy, &Labels) -> Result<Splits>,
    ) -> Result<Self> {
        let Selection { data, split, .. } = selection;
        let listing = list(selection)?;
        let (mut images, identity) = (listing.images, listing.identity);
        // Only the levels that the config names are used.
        let all_levels = data.kind().levels(data.hierarchy().is_some());
        let mut missing_files = Vec::new();
        if data.table().is_some_and(|table| table.missing_files == MissingFiles::Skip) {
            missing_files = remove_missing_files(&mut images)?;
        }
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
                "check data.path; images are JPEG, PNG, WebP, GIF, BMP or TIFF files",
            ));
        }
        let label_names: Vec<Vec<&str>> =
            images.iter().map(|image| image.labels.iter().map(String::as_str).collect()).collect();
        // With an option, and not by the layout, a class is its path.
        if data.table().is_some_and(|table| table.qualify) {
            check_order(data.levels(), &label_names).with_context(|| data.path().display().to_string())?;
        }
        let place = |item: usize| images[item].path.display().to_string();
        let read = match data.table().and_then(TableConfig::kinship) {
            Some(kinship) => kinship.labels(Some(data.levels()), &label_names, &place),
            None => Ok(Taxonomy::from_named_rows(data.levels(), &label_names, identity, &place)?),
        };
        let (taxonomy, labels) = read.with_context(|| data.path().display().to_string())?;
        let splits = splits(&images, &taxonomy, &labels)?;
        // Junk is for the evaluation splits, which are not evaluated on when classes are held out.
        let junk = if split.holds_out() { Vec::new() } else { junk(&images, &taxonomy, &splits, data)? };
        let (paths, parts) = images.into_iter().map(|image| (image.path, image.part)).unzip();
        let storage = Arc::new(Storage::new(parts, listing.containers));
        Ok(Self { taxonomy, paths, storage, labels, junk, splits, missing_files })
    }

    fn warn_of_missing_files(&self) {
        if let Some(warning) = self.missing_files_in_words() {
            terminal::warn(warning);
        }
    }

    /// Which rows were left out because their files do not exist, in words; none if there are none.
    pub fn missing_files_in_words(&self) -> Option<String> {
        let names: Vec<_> = self.missing_files.iter().map(|path| path.display()).collect();
        let all = self.paths.len() + names.len();
        (!names.is_empty()).then(|| {
            format!(
                "{} of {} do not exist and are left out: {}",
                count(names.len()),
                counted(all, "image", "images"),
                a_few(&names)
            )
        })
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
            "check the paths, which are relative to `data.images`, by default the folder of the file; or set \
             data.missing_files = \"skip\" to leave the rows out"
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

    /// The classes of some items at a level, 1 … L. An item whose label is not known there has none, and one with several
    /// label paths the class of each.
    pub fn classes(&self, items: &[usize], level: usize) -> Vec<u32> {
        let of_item = |&item: &usize| {
            let mut classes: Vec<u32> = self
                .labels
                .paths(item)
                .iter()
                .map(|path| path[level - 1])
                .filter(|&class| class != UNKNOWN)
                .collect();
            classes.sort_unstable();
            classes.dedup();
            classes
        };
        items.iter().flat_map(of_item).collect()
    }

    /// The items that the queries rank.
    pub fn gallery(&self) -> &[usize] {
        if self.splits.leave_one_out() { &self.splits.query } else { &self.splits.gallery }
    }

    /// The number of queries that have a positive in the gallery at a level, 1 … L.
    pub fn queries_with_positives(&self, level: usize) -> usize {
        if let Some((_, kinds)) = self.labels.kinship() {
            return self.queries_with_kin(level, kinds);
        }
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

impl Dataset {
    /// The number of queries that have kin in the gallery at a level, by the kind of each item.
    fn queries_with_kin(&self, level: usize, kinds: &[u32]) -> usize {
        // The first two items of each kind in the gallery: a query may be one of them.
        let mut gallery: HashMap<u32, Vec<usize>> = HashMap::new();
        for &item in self.gallery() {
            let items = gallery.entry(kinds[item]).or_default();
            if items.len() < 2 {
                items.push(item);
            }
        }
        let has_kin = |&&query: &&usize| {
            gallery.values().flatten().any(|&item| {
                item != query && self.labels.shared(query, &self.labels, item).share(level) == Some(true)
            })
        };
        self.splits.query.iter().filter(has_kin).count()
    }
}

/// Removes the images whose file does not exist, and returns these files.
fn remove_missing_files(images: &mut Vec<ListedImage>) -> Result<Vec<PathBuf>> {
    let (mut missing, mut fault) = (Vec::new(), None);
    images.retain(|image| {
        let exists = match image.part {
            Part::Encoded { .. } => Ok(true),
            _ => image.path.try_exists(),
        };
        exists.unwrap_or_else(|error| {
            fault = Some(files::system_fault(&image.path, &error));
            true
        }) || {
            missing.push(image.path.clone());
            false
        }
    });
    fault.map_or(Ok(missing), Err)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::*;

    #[test]
    fn a_split_without_positives_is_refused() {
        let (_directory, data) = csv(&QUERY_AND_GALLERY.replace("d.jpg,Conference,Pear,gallery\n", ""), "");
        let (message, hint) = refusal(Dataset::load(&data));
        assert!(message.contains("no query") && message.contains("at any level"), "{message}");
        assert!(hint.contains("related to the queries"));
    }

    #[test]
    fn missing_images_are_listed() {
        let (_directory, data) = csv(QUERY_AND_GALLERY, "");
        let (message, hint) = refusal(Dataset::load(&data));
        assert!(message.starts_with("5 images do not exist: ") && message.contains("a.jpg"), "{message}");
        assert!(hint.contains("data.images"));
    }

    #[test]
    fn a_class_with_two_parents_is_refused_unless_it_is_qualified() {
        let text = QUERY_AND_GALLERY.replace("e.jpg,Fuji,Apple", "e.jpg,Gala,Pear");
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
            let (_directory, mut data) = csv(QUERY_AND_GALLERY, more);
            let DataConfig::Csv(table) = &mut data.data else { panic!("a CSV file") };
            table.levels.reverse();
            let (message, hint) = refusal(Dataset::read(&data));
            assert!(hint.ends_with("kind, variety"), "{message} {hint}");
        }
    }

    #[test]
    fn queries_rank_the_gallery_or_each_other() {
        let (_directory, data) = csv(QUERY_AND_GALLERY, "");
        let dataset = Dataset::read(&data).unwrap();
        assert_eq!((dataset.splits.query.as_slice(), dataset.gallery()), (&[2][..], &[3, 4][..]));
        assert_eq!((dataset.queries_with_positives(1), dataset.queries_with_positives(2)), (1, 1));

        let (_directory, data) =
            csv(&QUERY_AND_GALLERY.replace("query", "test").replace("gallery", "test"), "");
        let dataset = Dataset::read(&data).unwrap();
        assert!(dataset.splits.leave_one_out());
        assert_eq!(dataset.gallery(), [2, 3, 4]);
        assert_eq!(dataset.queries_with_positives(2), 2, "a query is not its own positive");
    }
}
