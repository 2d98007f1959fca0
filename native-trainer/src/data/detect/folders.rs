//! Trees of folders with images.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use akin_base::problem::{a_few, problem};
use akin_base::quantities::counted;
use anyhow::Result;
use toml::Table;

use super::Layout;
use super::splits::{
    FEWEST_CLASSES, TEST_FRACTION, name_splits, not_used, state_evaluation_split, used_splits,
};
use crate::data::folder::image_files;
use crate::data::listing::SPLIT_NAMES;
use crate::data::missing::{USUAL_WORDS, stands_for_unknown};

/// A tree of folders with images.
pub(super) fn folder_layout(root: &Path) -> Result<Layout> {
    let (mut data, mut split) = (toml::toml! { kind = "folder" }, Table::new());
    data.insert("path".into(), root.to_string_lossy().as_ref().into());
    let present = folders_in(root)?;
    let splits = used_splits(&present);
    let mut images = Images::default();
    if splits.is_empty() {
        images.add(root)?;
    } else {
        name_splits(&mut data, &splits);
        for name in &splits {
            images.add(&root.join(name))?;
        }
    }
    let depth = images.check(root)?;
    if splits.is_empty() {
        if images.classes.len() < FEWEST_CLASSES {
            return Err(problem(
                format!(
                    "{} has {}, and half of the classes are held out to evaluate on classes that were not trained on",
                    root.display(),
                    counted(images.classes.len(), "folder of images", "folders of images")
                ),
                format!("sort the images into at least {FEWEST_CLASSES} folders, one for each class"),
            ));
        }
        split.insert("test_fraction".into(), TEST_FRACTION.into());
    }
    if images.by_depth.len() > 1 {
        data.insert("missing".into(), "unknown".into());
    }
    let words = images.unknown_words();
    if !words.is_empty() {
        data.insert("unknown_words".into(), words.clone().into());
    }
    data.insert("levels".into(), level_names(depth).into());
    let named = SPLIT_NAMES.iter().flat_map(|(_, names)| *names);
    let unused: Vec<&str> = named
        .flat_map(|name| present.iter().filter(|other| other.eq_ignore_ascii_case(name)))
        .filter(|name| !splits.is_empty() && !splits.contains(name))
        .map(String::as_str)
        .collect();
    if !unused.is_empty() {
        state_evaluation_split(&mut data, &splits);
    }
    let not_used = not_used("the folder", "the folders", &unused);
    let found = format!(
        "a folder tree with {} in {}, {} deep{not_used}",
        counted(images.by_depth.values().sum(), "image", "images"),
        counted(images.classes.len(), "folder", "folders"),
        counted(depth, "level", "levels")
    );
    let deepest = images.by_depth.keys().max().copied().unwrap_or(0);
    let unknown = |(&depth, &count): (&usize, &usize)| {
        format!(
            "{} {} deep, and the classes below are unknown: data.missing",
            counted(count, "image is", "images are"),
            counted(depth, "folder", "folders")
        )
    };
    let mut notes: Vec<String> =
        images.by_depth.iter().filter(|(depth, _)| **depth < deepest).map(unknown).collect();
    if !words.is_empty() {
        notes.push(format!("folders called {} are of unknown class: data.unknown_words", a_few(&words)));
    }
    Ok(Layout { data, split, found, names_levels: true, notes })
}

/// The names of the folders in a folder, sorted. Those that are not UTF-8 are no splits.
pub(super) fn folders_in(root: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(root)?
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir())?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The images of a tree, without their contents.
#[derive(Default)]
pub(super) struct Images {
    /// How many images stand how many folders deep.
    by_depth: BTreeMap<usize, usize>,
    /// The folders with images.
    pub(super) classes: BTreeSet<PathBuf>,
    /// Images that are in no folder.
    loose: Vec<PathBuf>,
}

impl Images {
    pub(super) fn add(&mut self, folder: &Path) -> Result<()> {
        for entry in image_files(folder)? {
            match entry.depth() - 1 {
                0 => self.loose.push(entry.into_path()),
                depth => {
                    *self.by_depth.entry(depth).or_default() += 1;
                    let class = entry.path().strip_prefix(folder).ok().and_then(Path::parent);
                    self.classes.extend(class.map(Path::to_owned));
                }
            }
        }
        Ok(())
    }

    /// The usual words for an unknown class that folders are called.
    fn unknown_words(&self) -> Vec<String> {
        let names: BTreeSet<String> = self
            .classes
            .iter()
            .flat_map(|class| class.iter().map(|name| name.to_string_lossy().into_owned()))
            .collect();
        let words =
            USUAL_WORDS.into_iter().filter(|word| names.iter().any(|name| stands_for_unknown(name, word)));
        words.map(str::to_owned).collect()
    }

    /// The depth of the tree.
    fn check(&self, root: &Path) -> Result<usize> {
        let Some(&depth) = self.by_depth.keys().last() else {
            let (message, hint) = match self.loose.len() {
                0 => (
                    "has no images".to_owned(),
                    "give the folder that holds the images: JPEG, PNG, WebP, GIF, BMP or TIFF files",
                ),
                loose => (
                    format!("has {}, but no folders of classes", counted(loose, "image", "images")),
                    "sort the images into folders, one for each class: PHOTOS/Owls/1.jpg, PHOTOS/Hawks/2.jpg",
                ),
            };
            return Err(problem(format!("{} {message}", root.display()), hint));
        };
        if !self.loose.is_empty() {
            let names: Vec<_> = self.loose.iter().map(|path| path.display()).collect();
            return Err(problem(
                format!(
                    "{} in no folder of a class: {}",
                    counted(names.len(), "image is", "images are"),
                    a_few(&names)
                ),
                format!(
                    "move {} into the folders of their classes",
                    if names.len() == 1 { "it" } else { "them" }
                ),
            ));
        }
        Ok(depth)
    }
}

/// Names for the levels of a tree that has none.
pub fn level_names(depth: usize) -> Vec<String> {
    match depth {
        1 => vec!["class".into()],
        2 => vec!["group".into(), "class".into()],
        3 => vec!["group".into(), "subgroup".into(), "class".into()],
        depth => (1..depth).map(|level| format!("level {level}")).chain(["class".into()]).collect(),
    }
}
