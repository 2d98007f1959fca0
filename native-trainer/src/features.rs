//! The features of a frozen backbone: computed once, kept in a file if asked for.
//!
//! The file is a line of JSON, then the features as little-endian f32, row after row. Its line has a
//! key, which follows from weights and preprocessing, and the path, size and time of every picture, so
//! that features are never those of others. A file that has more pictures than are asked for serves as
//! well: a training on some of the classes does not drive out what another has computed on all.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use akin_core::digest::sha256;
use akin_core::encoder::Encoder;
use anyhow::Result;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::columns::counted;
use crate::config::Config;
use crate::data::Dataset;
use crate::embedding::{rows, view};
use crate::files::write_atomic;
use crate::loader::Pictures;
use crate::problem::{Advise, problem};
use crate::progress::Progress;

const FORMAT: &str = "akin-features";
const VERSION: u32 = 2;

/// Features of the items of a data set.
pub struct Features {
    dimension: usize,
    /// The row of each item; none for a picture that cannot be read.
    places: Vec<Option<usize>>,
    values: Vec<f32>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// What all features depend on, see [`key`].
    key: String,
    /// Every picture that was asked for.
    pictures: Vec<Entry>,
    sha256: String,
}

/// A picture of the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    picture: Picture,
    /// Which row has its features; none if it could not be read.
    row: Option<usize>,
}

/// What a picture is known by.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Picture {
    path: String,
    bytes: u64,
    changed: SystemTime,
}

impl Picture {
    /// The picture of a path; none where that is not to be known again.
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self { path: path.to_str()?.to_owned(), bytes: file.len(), changed: file.modified().ok()? })
    }
}

impl Features {
    /// The features of all splits, from the cache of the config or computed now.
    ///
    /// # Errors
    ///
    /// A cache that cannot be read or written, or that is another file.
    pub fn load(
        config: &Config,
        encoder: &Encoder,
        dataset: &Dataset,
        pictures: &Pictures,
        device: &Device,
        progress: Progress,
    ) -> Result<Self> {
        let items = used(dataset);
        let cache = match &config.model.feature_cache {
            None => None,
            Some(path) => Some((path, key(config)?)),
        };
        let dimension = config.model.backbone.features();
        if let Some((path, key)) = &cache
            && let Some(features) = read(path, key, dimension, dataset, &items, progress)?
        {
            // All that could not be read are asked for again, so that those are told of which still cannot.
            let missing = items.iter().filter(|&&item| !features.has(item));
            if missing.filter_map(|&item| view(encoder, pictures, item)).count() == 0 {
                return Ok(features);
            }
        }
        let bar = progress.bar("Features", items.len() as u64);
        let encoder = encoder.valid();
        let forward = |images| encoder.backbone.forward(images);
        let (readable, values) = rows(&encoder, pictures, &items, device, &bar, forward)?;
        drop(bar);
        let mut places = vec![None; dataset.items.len()];
        for (row, &item) in readable.iter().enumerate() {
            places[item] = Some(row);
        }
        let features = Self { dimension, places, values };
        if let Some((path, key)) = cache {
            write(path, key, &features, dataset, &items)?;
        }
        let computed = counted(readable.len(), "image", "images");
        progress.say("Computed", &format!("the features of {computed}"));
        Ok(features)
    }

    /// Whether the picture of an item could be read.
    pub fn has(&self, item: usize) -> bool {
        self.places[item].is_some()
    }

    /// The features of items that [are there](Self::has), [B, F].
    pub fn batch(&self, items: &[usize], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(items.len() * self.dimension);
        let rows: Vec<usize> = items.iter().filter_map(|&item| self.places[item]).collect();
        for row in &rows {
            values.extend_from_slice(&self.values[row * self.dimension..][..self.dimension]);
        }
        Tensor::from_data(TensorData::new(values, [rows.len(), self.dimension]), device)
    }
}

/// The items of all splits.
fn used(dataset: &Dataset) -> Vec<usize> {
    let mut items: Vec<usize> =
        dataset.splits.named().into_iter().flat_map(|(_, items)| items).copied().collect();
    items.sort_unstable();
    items
}

/// A digest of what the features of every picture depend on: the backbone with its weights (the file, or
/// the seed of random ones) and the preprocessing.
fn key(config: &Config) -> Result<String> {
    let weights = match &config.model.weights {
        Some(path) => {
            let bytes = fs::read(path)
                .advise(|| format!("the weights {} cannot be read", path.display()), "check model.weights")?;
            sha256(&bytes)
        }
        None => format!("seed {}", config.run.seed),
    };
    let said = serde_json::to_string(&(&config.model.backbone, &config.model.preprocessing, weights))?;
    Ok(sha256(said.as_bytes()))
}

/// The features of these items from a cache with this key, if there is one and it has them all.
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
    let shown = path.display();
    let bytes = fs::read(path)
        .advise(|| format!("the features {shown} cannot be read"), "check model.feature_cache")?;
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let first: Option<Value> = serde_json::from_slice(&bytes[..end]).ok();
    let Some(first) = first.filter(|first| first["format"] == FORMAT) else {
        return Err(problem(
            format!("{shown} is no cache of features"),
            "give model.feature_cache a path of its own",
        ));
    };
    let anew = |what: &str| progress.say(what, &format!("features in {shown}: they are computed anew"));
    let header =
        Header::deserialize(first).ok().filter(|header| (header.version, &*header.key) == (VERSION, key));
    let Some(header) = header else {
        anew("Outdated");
        return Ok(None);
    };
    let body = &bytes[end + 1..];
    let rows = body.len() / (4 * dimension);
    let whole = header.sha256 == sha256(body) && body.len() == 4 * dimension * rows;
    if !whole || header.pictures.iter().any(|entry| entry.row.is_some_and(|row| row >= rows)) {
        anew("Damaged");
        return Ok(None);
    }
    let known: HashMap<&Picture, Option<usize>> =
        header.pictures.iter().map(|entry| (&entry.picture, entry.row)).collect();
    let mut places = vec![None; dataset.items.len()];
    for &item in items {
        let picture = Picture::of(&dataset.items[item].path);
        let Some(&row) = picture.and_then(|picture| known.get(&picture)) else {
            anew("Outdated");
            return Ok(None);
        };
        places[item] = row;
    }
    let values = body.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect();
    Ok(Some(Features { dimension, places, values }))
}

fn write(path: &Path, key: String, features: &Features, dataset: &Dataset, items: &[usize]) -> Result<()> {
    let body: Vec<u8> = features.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let entry = |&item: &usize| {
        let picture = Picture::of(&dataset.items[item].path)?;
        Some(Entry { picture, row: features.places[item] })
    };
    let header = Header {
        format: FORMAT.into(),
        version: VERSION,
        key,
        pictures: items.iter().filter_map(entry).collect(),
        sha256: sha256(&body),
    };
    write_atomic(path, |file| {
        serde_json::to_writer(&mut *file, &header)?;
        file.write_all(b"\n")?;
        file.write_all(&body)
    })
}
