//! Data sets: images with label paths, in splits.
//!
//! Each data set is a file of this folder: [`sop`] is a short example. It states what is published about the data set
//! and lists the images of a copy of it. [`Dataset::read`] builds the taxonomy and the splits from that list, and [`check`]
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
mod dataset;
pub mod detect;
mod digest;
pub mod download;
mod dyml;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod folder;
mod grocery;
mod h_gldv2;
mod hierarchy;
mod inaturalist;
mod inshop;
mod kinship;
pub mod listing;
mod missing;
mod nabirds;
mod omniglot;
mod parquet;
pub mod published_counts;
mod revisited;
mod sfm120k;
mod sop;
mod splits;
pub mod statistics;
mod storage;
mod table;

use std::path::{Path, PathBuf};

use akin_base::{directory, files};
use anyhow::Result;
use walkdir::{DirEntry, WalkDir};

pub use self::dataset::Dataset;
pub use self::digest::DataDigest;
use self::listing::{Entry, Listing, LocalCopy};
pub use self::storage::Storage;
use crate::config::data_sets::data_sets;
use crate::config::{DataConfig, DataKind, Selection};

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
