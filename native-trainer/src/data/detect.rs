//! Finds out how a folder of images is laid out: a published data set, a CSV or Parquet file with labels, or a folder
//! tree.

mod folders;
mod splits;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use akin_base::problem::{Advise, a_few, parts, problem};
use akin_base::quantities::{count, counted};
use anyhow::Result;
use toml::{Table, Value};

pub use self::folders::level_names;
use self::folders::{Images, folder_layout, folders_in};
use self::tables::{csv_layout, parquet_layout};
use super::{Dataset, entry, parquet};
use crate::config::{DataConfig, DataKind, Selection};

/// The layout of a folder.
#[derive(Debug)]
pub struct Layout {
    /// The section `[data]`, with the path as it was given.
    pub data: Table,
    /// The section `[split]`.
    pub split: Table,
    /// What it is, for people.
    pub found: String,
    /// Whether the names of the levels are made up, because the layout has none.
    pub names_levels: bool,
    /// Which data are left out or filled in, in words.
    pub notes: Vec<String>,
}

impl Layout {
    /// The names of the levels, coarse → fine.
    pub fn levels(&self) -> Vec<String> {
        let levels = self.data.get("levels").and_then(Value::as_array);
        levels.into_iter().flatten().filter_map(|level| level.as_str().map(str::to_owned)).collect()
    }

    /// Replaces the names of the levels.
    ///
    /// # Errors
    ///
    /// Another number of names than there are folder levels; columns that the file does not have are found later.
    pub fn name_levels(&mut self, levels: &[String]) -> Result<()> {
        let known = self.levels();
        if self.names_levels && levels.len() != known.len() {
            return Err(problem(
                format!(
                    "{} given, but the images are {} deep",
                    counted(levels.len(), "level is", "levels are"),
                    counted(known.len(), "folder", "folders")
                ),
                format!("give {}, coarse to fine", counted(known.len(), "name", "names")),
            ));
        }
        self.data.insert("levels".into(), levels.to_vec().into());
        Ok(())
    }
}

/// Finds the layout of a folder, or of a CSV or Parquet file.
///
/// # Errors
///
/// A path that does not exist; a folder without images, with images outside of the folders of classes, or with too few
/// classes; a CSV or Parquet file without a column of images or of labels.
pub fn detect(path: &Path) -> Result<Layout> {
    if path.is_file() {
        return if has_extension(path, "parquet") { parquet_layout(path) } else { csv_layout(path) };
    }
    fs::read_dir(path).advise(
        || format!("the folder {} cannot be read", path.display()),
        "give the folder that holds the images, or a CSV or Parquet file that lists them",
    )?;
    if let Some(layout) = published_layout(path) {
        return Ok(layout);
    }
    let mut unusable = None;
    let parquet = parquet::files(path).is_ok().then(|| parquet_layout(path));
    for layout in csv_files(path)?.iter().map(|file| csv_layout(file)).chain(parquet) {
        match layout {
            Ok(layout) => return Ok(layout),
            Err(error) => unusable = unusable.or(Some(error)),
        }
    }
    folder_layout(path).map_err(|tree| match unusable {
        // Images in folders of classes are what the user means, whatever tables lie beside them.
        Some(table) if !has_classes(path) => with_both_hints(&table, &tree),
        _ => tables_inside(path).unwrap_or(tree),
    })
}

/// The error for a folder whose images are in Parquet files of folders inside it: on the hub of Hugging Face these are
/// several data sets, or several forms of one. None if there are no such folders, or images beside them.
fn tables_inside(path: &Path) -> Option<anyhow::Error> {
    if has_classes(path) {
        return None;
    }
    let folders = folders_in(path).ok()?.into_iter().map(|name| path.join(name));
    let folders: Vec<String> = folders
        .filter(|folder| parquet::files(folder).is_ok())
        .map(|folder| folder.display().to_string())
        .collect();
    (!folders.is_empty()).then(|| {
        problem(
            format!("{} has no images, but there are Parquet files in {}", path.display(), a_few(&folders)),
            "give one of these folders",
        )
    })
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// The error of a table, with what to do about it or about the folders.
fn with_both_hints(table: &anyhow::Error, tree: &anyhow::Error) -> anyhow::Error {
    let ((message, table_hint), (_, tree_hint)) = (parts(table), parts(tree));
    let hints: Vec<String> = [table_hint, tree_hint].into_iter().flatten().collect();
    problem(message, hints.join(", or "))
}

/// Whether images stand in folders below this one.
fn has_classes(path: &Path) -> bool {
    let mut images = Images::default();
    images.add(path).is_ok() && !images.classes.is_empty()
}

/// A data set of the papers, if the folder holds one.
fn published_layout(path: &Path) -> Option<Layout> {
    let kinds = DataKind::ALL.iter().copied().filter(|kind| !kind.levels(false).is_empty());
    let kind = kinds.into_iter().find(|kind| {
        let data = DataConfig::for_copy(&kind.name(), path);
        data.and_then(|data| Dataset::load(&Selection::of(data))).is_ok()
    })?;
    let data = toml::toml! { kind = "" };
    let found = format!("a copy of {}", entry(kind).title);
    let mut layout = Layout { data, split: Table::new(), found, names_levels: false, notes: Vec::new() };
    layout.data.insert("kind".into(), kind.name().into());
    layout.data.insert("path".into(), path.to_string_lossy().as_ref().into());
    layout.data.insert("levels".into(), kind.levels(false).to_vec().into());
    Some(layout)
}

/// The CSV files in a folder, sorted; `labels.csv` comes first.
fn csv_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = entries
        .collect::<io::Result<_>>()
        .advise(|| format!("{} cannot be listed", folder.display()), "check the disk")?;
    files.retain(|path| path.is_file() && has_extension(path, "csv"));
    files.sort_by_key(|path| (path.file_stem().is_none_or(|name| name != "labels"), path.clone()));
    Ok(files)
}

/// The counts of a data set in words: `12 images for training, 12 for evaluation`.
pub fn sizes(dataset: &Dataset) -> String {
    let level = dataset.taxonomy.depth();
    let part = |(name, items): (&str, &[usize])| {
        let classes: BTreeSet<u32> = dataset.classes(items, level).into_iter().collect();
        format!(
            "{name} {} of {}",
            counted(items.len(), "image", "images"),
            counted(classes.len(), "class", "classes")
        )
    };
    let parts: Vec<String> = dataset.splits.named().into_iter().map(part).collect();
    let levels: Vec<String> = (1..=level).map(|level| count(dataset.taxonomy.class_count(level))).collect();
    format!("{}; {} classes by level", parts.join(", "), levels.join(" → "))
}
