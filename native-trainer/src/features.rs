//! The features of a frozen backbone: computed once, kept in a file if asked for.
//!
//! The file is a line of JSON, then the features as little-endian f32, row after row. Its line has a
//! key, which follows from all that the features depend on, so that they are never those of other
//! weights, images or preprocessing.

use std::fs;
use std::path::Path;

use akin_core::bundle::sha256;
use akin_core::encoder::Encoder;
use anyhow::Result;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::data::Dataset;
use crate::embedding::rows;
use crate::files::write_atomic;
use crate::loader::Pictures;
use crate::problem::{Advise, problem};
use crate::progress::Progress;
use crate::table::counted;

const FORMAT: &str = "akin-features";
const VERSION: u32 = 1;

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
    /// What the features depend on, see [`key`].
    key: String,
    dimension: usize,
    /// The items, a row each.
    items: Vec<usize>,
    sha256: String,
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
        let key = match &config.model.feature_cache {
            None => None,
            Some(path) => Some((path, key(config, dataset)?)),
        };
        if let Some((path, key)) = &key
            && let Some(features) = read(path, key, dataset.items.len(), progress)?
        {
            // Those that could not be read are asked for again, so that they are told of.
            used(dataset).into_iter().filter(|&item| !features.has(item)).for_each(|item| {
                pictures.get(item);
            });
            return Ok(features);
        }
        let items = used(dataset);
        let bar = progress.bar("Features", items.len() as u64);
        let encoder = encoder.valid();
        let forward = |images| encoder.backbone.forward(images);
        let (items, values) = rows(&encoder, pictures, &items, device, &bar, forward)?;
        drop(bar);
        let dimension = config.model.backbone.features();
        if let Some((path, key)) = key {
            write(path, key, &items, dimension, &values)?;
        }
        progress.say("Computed", &format!("the features of {}", counted(items.len(), "image", "images")));
        Ok(Self::new(dataset.items.len(), &items, dimension, values))
    }

    fn new(count: usize, items: &[usize], dimension: usize, values: Vec<f32>) -> Self {
        let mut places = vec![None; count];
        for (row, &item) in items.iter().enumerate() {
            places[item] = Some(row);
        }
        Self { dimension, places, values }
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

/// A digest of all that features depend on: the backbone with its weights (the file, or the seed of
/// random ones), the preprocessing, and the images by path and size.
fn key(config: &Config, dataset: &Dataset) -> Result<String> {
    let weights = match &config.model.weights {
        Some(path) => {
            let bytes = fs::read(path)
                .advise(|| format!("the weights {} cannot be read", path.display()), "check model.weights")?;
            sha256(&bytes)
        }
        None => format!("seed {}", config.run.seed),
    };
    let mut said =
        serde_json::to_string(&(&config.model.backbone, &config.model.preprocessing, weights, VERSION))?;
    for item in used(dataset) {
        let path = &dataset.items[item].path;
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        said += &format!("\n{item} {bytes} {}", path.display());
    }
    Ok(sha256(said.as_bytes()))
}

/// A cache with this key, if there is one, of `count` items.
fn read(path: &Path, key: &str, count: usize, progress: Progress) -> Result<Option<Features>> {
    if !path.exists() {
        return Ok(None);
    }
    let shown = path.display();
    let bytes = fs::read(path)
        .advise(|| format!("the features {shown} cannot be read"), "check model.feature_cache")?;
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let header = serde_json::from_slice::<Header>(&bytes[..end]).ok();
    let Some(header) = header.filter(|header| header.format == FORMAT) else {
        return Err(problem(
            format!("{shown} is no cache of features"),
            "give model.feature_cache a path of its own",
        ));
    };
    let body = &bytes[end + 1..];
    if header.key != key {
        progress.say("Outdated", &format!("features in {shown}: they are computed anew"));
        return Ok(None);
    }
    if header.sha256 != sha256(body) || body.len() != 4 * header.items.len() * header.dimension {
        progress.say("Damaged", &format!("features in {shown}: they are computed anew"));
        return Ok(None);
    }
    let values = body.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect();
    Ok(Some(Features::new(count, &header.items, header.dimension, values)))
}

fn write(path: &Path, key: String, items: &[usize], dimension: usize, values: &[f32]) -> Result<()> {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let header = Header {
        format: FORMAT.into(),
        version: VERSION,
        key,
        dimension,
        items: items.to_vec(),
        sha256: sha256(&body),
    };
    write_atomic(path, |file| {
        serde_json::to_writer(&mut *file, &header)?;
        file.write_all(b"\n")?;
        file.write_all(&body)
    })
}
