//! From a row of a user's table to an image: what CSV and Parquet files have in common.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use akin_base::problem::{did_you_mean, problem};
use anyhow::Result;

use super::listing::{ListedImage, Split, is_evaluation_name, is_named};
use super::missing::MissingLabels;
use super::storage::Part;
use crate::config::{Missing, TableConfig};

/// A row of a table, for messages. Rows are counted from 1; the header of a CSV file is its row 1.
pub fn row_name(file: &Path, row: u64) -> String {
    format!("{}, row {row}", file.display())
}

/// The file in a folder that a cell names. A table of a Windows machine has backslashes between the folders; elsewhere
/// they may also be part of a name.
pub fn named_file(folder: &Path, cell: &str) -> PathBuf {
    let path = folder.join(cell);
    if !cell.contains('\\') || path.exists() { path } else { folder.join(cell.replace('\\', "/")) }
}

/// How the rows of a table become images.
pub struct Rows<'a> {
    data: &'a TableConfig,
    /// The folder that paths are relative to.
    folder: PathBuf,
    splits: HashMap<&'a str, Split>,
}

impl<'a> Rows<'a> {
    /// The rows of a table that `data` describes, in a file of this folder.
    pub fn new(data: &'a TableConfig, folder: &Path) -> Self {
        Self {
            data,
            folder: data.images.as_deref().unwrap_or(folder).to_owned(),
            splits: Split::named(&data.splits).map(|(split, name)| (name, split)).into(),
        }
    }

    /// The split with a name; none if the image is not used, because the name is empty, or because another evaluation
    /// split is used, such as `test` instead of `validation`. `place` names the row.
    ///
    /// # Errors
    ///
    /// A name that is no split.
    pub fn split(&self, name: &str, place: impl FnOnce() -> String) -> Result<Option<Split>> {
        if let Some(split) = self.splits.get(name) {
            return Ok(Some(*split));
        }
        let known = Split::named(&self.data.splits).map(|(_, name)| name);
        let is_other = is_evaluation_name(name) && !is_named(name, &known);
        if name.is_empty() || is_other {
            return Ok(None);
        }
        let suggestion = did_you_mean(name, known);
        Err(problem(
            format!("{}: `{name}` is not a split", place()),
            format!("{suggestion}write {}, or leave the cell empty to skip the image", known.join(", ")),
        ))
    }

    /// The classes in a cell of the column of junk.
    pub fn junk(cell: &str) -> Vec<String> {
        let classes = cell.split(';').map(str::trim);
        classes.filter(|class| !class.is_empty()).map(str::to_owned).collect()
    }

    /// The file that a cell of the column of paths names.
    pub fn path(&self, cell: &str) -> PathBuf {
        named_file(&self.folder, cell)
    }

    /// An image that is a file, with the labels of its row.
    ///
    /// # Errors
    ///
    /// An empty path or label.
    pub fn file(
        &self,
        path: &str,
        labels: Vec<String>,
        split: Option<Split>,
        place: impl Fn() -> String,
    ) -> Result<ListedImage> {
        if path.is_empty() {
            return Err(problem(
                format!("{}: the path is empty", place()),
                "write the path of the image, or remove the row",
            ));
        }
        let labels = self.labels(labels, place)?;
        let junk = Vec::new();
        Ok(ListedImage { path: self.path(path), part: Part::Whole, labels, junk, split })
    }

    /// The labels of a row. A missing one is what the config says.
    ///
    /// # Errors
    ///
    /// A missing label that is refused, and a row without any label.
    pub fn labels(&self, mut labels: Vec<String>, place: impl Fn() -> String) -> Result<Vec<String>> {
        let data = self.data;
        let missing = MissingLabels { policy: data.missing, words: &data.unknown_words };
        match missing.apply(&mut labels, data.label_columns().len()) {
            Ok(()) => Ok(labels),
            Err(level) => Err(problem(
                format!("{}: the label `{}` is missing", place(), data.label_columns()[level]),
                match data.missing {
                    Missing::Refuse => {
                        "write the label, or set data.missing = \"unknown\": then a row needs no label below its known ones"
                    }
                    Missing::Unknown => {
                        "write a label, or empty the cell of the split to leave the image out"
                    }
                    Missing::Parent => "write the label: there is none above it",
                },
            )),
        }
    }
}
