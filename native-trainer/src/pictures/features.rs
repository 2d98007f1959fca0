//! The features of a frozen backbone: computed once, and stored in a file if the config names one.
//!
//! The file is [sealed](akin_base::sealed). Its part is the features as little-endian f32, row after row. Its header has a
//! key, derived from weights and preprocessing, and the path, size and modification time of every
//! picture: a file whose key or pictures differ is computed again. A file with more pictures than the
//! data set is used as it is, so that a training on some of the classes does not replace the features
//! that a training on all classes has stored.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::sealed::{self, Flaw, Format};
use akin_core::digest::sha256;
use akin_core::encoder::Encoder;
use anyhow::Result;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::data::Dataset;
use crate::pictures::forward::{forward_pictures, view};
use crate::pictures::loader::Pictures;

const FORMAT: Format = Format { name: "akin-features", version: 4 };
const PART: &str = "features";

/// The features of the items of a data set.
pub struct Features {
    dimension: usize,
    /// The row of each item in `values`; none if its picture cannot be read or is in no split.
    row_of_item: Vec<Option<usize>>,
    /// [rows, F], row after row.
    values: Vec<f32>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    /// See [`key`].
    key: String,
    /// Every picture of the file, readable or not.
    pictures: Vec<CachedPicture>,
}

#[derive(Serialize, Deserialize)]
struct CachedPicture {
    file: PictureFile,
    /// The row of its features; none if the picture could not be read.
    row: Option<usize>,
}

/// What identifies a version of a picture file.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
struct PictureFile {
    path: String,
    bytes: u64,
    modified: SystemTime,
}

impl PictureFile {
    /// The file of an item; none if it cannot be identified.
    fn read(dataset: &Dataset, item: usize) -> Option<Self> {
        let (path, file) = (&dataset.paths[item], fs::metadata(dataset.file(item)).ok()?);
        Some(Self { path: path.to_str()?.to_owned(), bytes: file.len(), modified: file.modified().ok()? })
    }
}

impl Features {
    /// The features of all splits, from the file `model.feature_cache` or computed now.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or written, or that holds something else.
    pub fn load(
        config: &Config,
        encoder: &Encoder,
        dataset: &Dataset,
        pictures: &Pictures,
        device: &Device,
        progress: Progress,
    ) -> Result<Self> {
        let items = items_of_splits(dataset);
        let cache = match &config.model.feature_cache {
            None => None,
            Some(path) => Some((path, key(config)?)),
        };
        let dimension = config.model.backbone.features();
        if let Some((path, key)) = &cache
            && let Some(features) = read(path, key, dimension, dataset, &items, progress)?
        {
            // Retry unreadable pictures, so that those still failing are reported.
            let unreadable = items.iter().filter(|&&item| !features.contains(item));
            if unreadable.filter_map(|&item| view(encoder, pictures, item)).count() == 0 {
                return Ok(features);
            }
        }
        let bar = progress.bar("Features", items.len() as u64);
        let encoder = encoder.valid();
        let forward = |images| encoder.features(images);
        let (readable, values) = forward_pictures(&encoder, pictures, &items, device, &bar, forward)?;
        drop(bar);
        let mut row_of_item = vec![None; dataset.paths.len()];
        for (row, &item) in readable.iter().enumerate() {
            row_of_item[item] = Some(row);
        }
        let features = Self { dimension, row_of_item, values };
        if let Some((path, key)) = cache {
            write(path, key, &features, dataset, &items)?;
        }
        let computed = counted(readable.len(), "image", "images");
        progress.say("Computed", &format!("the features of {computed}"));
        Ok(features)
    }

    /// Whether there are features of an item. There are none if its picture cannot be read.
    pub fn contains(&self, item: usize) -> bool {
        self.row_of_item[item].is_some()
    }

    /// The features of `items`, [B, F]. Every item must be [contained](Self::contains).
    pub fn batch(&self, items: &[usize], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(items.len() * self.dimension);
        let rows: Vec<usize> = items.iter().filter_map(|&item| self.row_of_item[item]).collect();
        for row in &rows {
            values.extend_from_slice(&self.values[row * self.dimension..][..self.dimension]);
        }
        Tensor::from_data(TensorData::new(values, [rows.len(), self.dimension]), device)
    }
}

/// The items of all splits, in increasing order.
fn items_of_splits(dataset: &Dataset) -> Vec<usize> {
    let mut items: Vec<usize> =
        dataset.splits.named().into_iter().flat_map(|(_, items)| items).copied().collect();
    items.sort_unstable();
    items
}

/// A digest of what the features of every picture depend on: the backbone, its weights (the file, or
/// the seed of random ones), the pooling and the preprocessing.
fn key(config: &Config) -> Result<String> {
    let model = &config.model;
    let backbone = model.backbone.computed();
    let weights = match (model.onnx(), &model.weights) {
        (Some(onnx), _) => onnx.sha256.clone().unwrap_or_default(),
        (None, Some(path)) => {
            let bytes = read_regular_file(path)
                .advise(|| format!("the weights {} cannot be read", path.display()), "check model.weights")?;
            sha256(&bytes)
        }
        (None, None) => format!("seed {}", config.run.seed),
    };
    let text = match model.pooling {
        None => serde_json::to_string(&(&backbone, &model.preprocessing, weights))?,
        Some(pooling) => serde_json::to_string(&(&backbone, pooling, &model.preprocessing, weights))?,
    };
    Ok(sha256(text.as_bytes()))
}

/// The features of `items` from a file with this key; none if there is no such file, or if it is
/// outdated or damaged.
fn read(
    path: &Path,
    key: &str,
    dimension: usize,
    dataset: &Dataset,
    items: &[usize],
    progress: Progress,
) -> Result<Option<Features>> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = read_regular_file(path).advise(
        || format!("the features {} cannot be read", path.display()),
        "check model.feature_cache and the permissions of the file",
    )?;
    let reject = |state: &str| {
        progress.say(state, &format!("features in {}: computing them again", path.display()));
        Ok(None)
    };
    let (header, [body]) = match sealed::read::<Header, 1>(&bytes, FORMAT, [PART]) {
        Ok(read) => read,
        Err(Flaw::OtherVersion(_)) => return reject("Outdated"),
        Err(Flaw::Damaged(_)) => return reject("Damaged"),
        Err(Flaw::Foreign) => {
            return Err(problem(
                format!("{} is not a feature cache of akin", path.display()),
                "give model.feature_cache a path that nothing else uses",
            ));
        }
    };
    if header.key != key {
        return reject("Outdated");
    }
    let rows = body.len() / (4 * dimension);
    let whole = body.len() == 4 * dimension * rows;
    if !whole || header.pictures.iter().any(|picture| picture.row.is_some_and(|row| row >= rows)) {
        return reject("Damaged");
    }
    let row_of_file: HashMap<&PictureFile, Option<usize>> =
        header.pictures.iter().map(|picture| (&picture.file, picture.row)).collect();
    let mut row_of_item = vec![None; dataset.paths.len()];
    for &item in items {
        let file = PictureFile::read(dataset, item);
        let Some(&row) = file.and_then(|file| row_of_file.get(&file)) else { return reject("Outdated") };
        row_of_item[item] = row;
    }
    let values = body.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect();
    Ok(Some(Features { dimension, row_of_item, values }))
}

fn write(path: &Path, key: String, features: &Features, dataset: &Dataset, items: &[usize]) -> Result<()> {
    let body: Vec<u8> = features.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let cached = |&item: &usize| {
        let file = PictureFile::read(dataset, item)?;
        Some(CachedPicture { file, row: features.row_of_item[item] })
    };
    let header = Header { key, pictures: items.iter().filter_map(cached).collect() };
    write_atomic(path, |file| sealed::write(file, FORMAT, &header, &[(PART, &body)]))
}
