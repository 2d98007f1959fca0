//! Small data sets on disk, for tests.

use std::fs;

use anyhow::Result;
use tempfile::TempDir;

use super::Dataset;
use crate::config::{DataConfig, Selection};

/// Two kinds in three varieties, in all splits but `test`.
pub(crate) const QUERY_AND_GALLERY: &str = "path,variety,kind,split
a.jpg,Gala,Apple,train
b.jpg,Gala,Apple,train
c.jpg,Conference,Pear,query
d.jpg,Conference,Pear,gallery
e.jpg,Fuji,Apple,gallery
";

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
    let data =
        data(&directory, &format!("kind = 'csv'\npath = 'labels.csv'\nlevels = ['kind', 'variety']\n{more}"));
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
