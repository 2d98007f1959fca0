//! Pictures from disk, decoded once where memory allows, and batches made ahead of training.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Scope;

use akin_core::image::{Pixels, Preprocessing, decode};
use akin_core::random::stream;
use rayon::prelude::*;

use crate::augment;
use crate::config::AugmentConfig;
use crate::data::Item;

/// Decoded pictures are kept up to this many bytes; further ones are decoded anew each time.
const CACHE_BYTES: u64 = 3 << 30;

/// Batches that wait for the trainer.
const AHEAD: usize = 2;

/// The pictures of a data set, by item.
///
/// A file that cannot be read is left out wherever it is asked for, and listed in
/// [`Self::unreadable`].
pub struct Pictures {
    paths: Vec<PathBuf>,
    kept: Vec<OnceLock<Arc<Pixels>>>,
    kept_bytes: AtomicU64,
    unreadable: Mutex<BTreeMap<PathBuf, String>>,
}

impl Pictures {
    /// The pictures of these items; nothing is read yet.
    pub fn new(items: &[Item]) -> Self {
        Self {
            paths: items.iter().map(|item| item.path.clone()).collect(),
            kept: items.iter().map(|_| OnceLock::new()).collect(),
            kept_bytes: AtomicU64::new(0),
            unreadable: Mutex::default(),
        }
    }

    /// The picture of an item, or nothing if it cannot be read.
    pub fn get(&self, item: usize) -> Option<Arc<Pixels>> {
        if let Some(pixels) = self.kept[item].get() {
            return Some(pixels.clone());
        }
        match read(&self.paths[item]) {
            Ok(pixels) => {
                let pixels = Arc::new(pixels);
                let bytes = 3 * u64::from(pixels.width()) * u64::from(pixels.height());
                let fits = self.kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= CACHE_BYTES;
                // Another thread may have been first; both decoded the same file.
                if !fits || self.kept[item].set(pixels.clone()).is_err() {
                    self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                Some(pixels)
            }
            Err(reason) => {
                let mut unreadable = self.unreadable.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if unreadable.insert(self.paths[item].clone(), reason.clone()).is_none() {
                    eprintln!("warning: skipped {}: {reason}", self.paths[item].display());
                }
                None
            }
        }
    }

    /// The files that could not be read so far, with the reason.
    pub fn unreadable(&self) -> BTreeMap<PathBuf, String> {
        self.unreadable.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

fn read(path: &Path) -> Result<Pixels, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    decode(&bytes).map_err(|error| error.to_string())
}

/// What the training loop takes in one step.
pub struct TrainingBatch {
    /// Augmented views, all of one size.
    pub views: Vec<Pixels>,
    /// The items that they show.
    pub items: Vec<usize>,
}

/// Where a batch stands in a run.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// From 0.
    pub epoch: u64,
    /// From 0, inside the epoch.
    pub step: usize,
}

/// How views are made.
#[derive(Clone)]
pub struct Views {
    /// Random crops and mirrors.
    pub augment: AugmentConfig,
    /// The size and filter of the encoder.
    pub preprocessing: Preprocessing,
    /// The run's seed.
    pub seed: u64,
}

impl Views {
    /// The augmented views of a batch: a function of the seed, the position and the items, whatever
    /// the number of threads.
    pub fn batch(&self, pictures: &Pictures, items: &[usize], position: Position) -> TrainingBatch {
        let (views, items) = items
            .par_iter()
            .enumerate()
            .filter_map(|(i, &item)| {
                let place = [position.epoch, position.step as u64, i as u64];
                let mut rng = stream(self.seed, "augmentation", &place);
                let side = self.preprocessing.side();
                let picture = pictures.get(item)?;
                let view = augment::view(
                    &picture,
                    &self.augment,
                    side,
                    self.preprocessing.numbers().filter,
                    &mut rng,
                )
                .ok()?;
                Some((view, item))
            })
            .unzip();
        TrainingBatch { views, items }
    }

    /// Makes the batches at `positions` on a thread of its own, in order and a few ahead. It ends
    /// when the receiver is dropped.
    pub fn ahead<'scope>(
        self,
        pictures: &'scope Pictures,
        positions: impl Iterator<Item = (Position, Vec<usize>)> + Send + 'scope,
        scope: &'scope Scope<'scope, '_>,
    ) -> Receiver<TrainingBatch> {
        let (sender, receiver) = sync_channel(AHEAD);
        scope.spawn(move || {
            for (position, items) in positions {
                if sender.send(self.batch(pictures, &items, position)).is_err() {
                    break;
                }
            }
        });
        receiver
    }
}
