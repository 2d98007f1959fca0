//! Pictures from disk, decoded once while memory allows, and training batches made ahead of time.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, Scope};

use akin_base::files::{is_fault_of_file, system_fault};
use akin_base::problem::{Advise, problem};
use akin_base::progress::Bar;
use akin_base::terminal;
use akin_base::threads::RAISE_LIMIT;
use akin_core::image::{Pixels, Preprocessing};
use akin_core::random::stream;
use anyhow::Result;
use rayon::prelude::*;

use crate::config::AugmentConfig;
use crate::data::{Dataset, Storage};
use crate::pictures::augmentation;

/// Bytes of decoded pictures that stay in memory. Pictures beyond them are decoded at each use.
pub const CACHE_BYTES: u64 = 3 << 30;

/// Batches that are made before the training asks for them.
const BATCHES_AHEAD: usize = 2;

/// The pictures of a list of files, by item: the number of the file in the list.
///
/// A file that is missing, damaged or no image is skipped with a warning, and listed in [`Self::unreadable`], unless all
/// pictures are required. If the system cannot read a file, for example because too many are open or because this user may
/// not, the picture may be sound: [`Self::check`] then fails, so that no result is computed without it.
pub struct Pictures {
    paths: Vec<PathBuf>,
    storage: Arc<Storage>,
    /// What to do about a file that cannot be read, if all are required.
    required: Option<&'static str>,
    /// See [`CACHE_BYTES`].
    cache_bytes: u64,
    cache: Vec<OnceLock<Arc<Pixels>>>,
    cached_bytes: AtomicU64,
    unreadable: Mutex<BTreeMap<PathBuf, String>>,
    fault: OnceLock<(PathBuf, Failure)>,
}

/// Why a picture could not be read.
enum Failure {
    /// The fault of the file.
    File(String),
    /// The fault of the system.
    System(io::Error),
}

impl Pictures {
    /// The pictures of a data set. None is read yet.
    pub fn of(dataset: &Dataset) -> Self {
        Self::new(dataset.paths.clone()).in_storage(dataset.storage.clone())
    }

    /// The pictures of these files. None is read yet.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            cache: paths.iter().map(|_| OnceLock::new()).collect(),
            paths,
            storage: Arc::default(),
            required: None,
            cache_bytes: CACHE_BYTES,
            cached_bytes: AtomicU64::new(0),
            unreadable: Mutex::default(),
            fault: OnceLock::new(),
        }
    }

    /// The number of pictures.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// The file of an item.
    pub fn path(&self, item: usize) -> &Path {
        &self.paths[item]
    }

    /// The pictures of these files, none of which is skipped: [`Self::check`] fails if one cannot be read, and says what to
    /// do about it.
    pub fn all_required(paths: Vec<PathBuf>, hint: &'static str) -> Self {
        Self { required: Some(hint), ..Self::new(paths) }
    }

    /// The same pictures, which are parts of files or inside larger ones.
    pub fn in_storage(self, storage: Arc<Storage>) -> Self {
        Self { storage, ..self }
    }

    /// The same pictures, decoded at each use.
    pub fn without_cache(self) -> Self {
        Self { cache_bytes: 0, ..self }
    }

    /// The picture of an item; none if it cannot be read.
    pub fn get(&self, item: usize) -> Option<Arc<Pixels>> {
        match self.load(item) {
            Ok(pixels) => Some(pixels),
            Err(Failure::File(reason)) if self.required.is_none() => {
                let path = &self.paths[item];
                if self.lock_unreadable().insert(path.clone(), reason.clone()).is_none() {
                    terminal::warn(format_args!("skipped {}: {reason}", path.display()));
                }
                None
            }
            Err(failure) => {
                self.fail(item, failure);
                None
            }
        }
    }

    /// Reads the pictures of `items`, so that it is known which of them can be read: those that are returned.
    ///
    /// # Errors
    ///
    /// As [`Self::check`].
    pub fn readable(&self, items: &[usize], bar: &Bar) -> Result<Vec<usize>> {
        let readable = items.par_iter().copied().filter(|&item| {
            let is_readable = self.get(item).is_some();
            bar.advance(1);
            is_readable
        });
        let readable = readable.collect();
        self.check()?;
        Ok(readable)
    }

    /// Makes [`Self::check`] fail. The first fault is the one that it reports.
    fn fail(&self, item: usize, failure: Failure) {
        let _ = self.fault.set((self.paths[item].clone(), failure));
    }

    /// The picture of an item, from memory or from its file.
    fn load(&self, item: usize) -> Result<Arc<Pixels>, Failure> {
        if let Some(pixels) = self.cache[item].get() {
            return Ok(pixels.clone());
        }
        let pixels = Arc::new(self.read(item)?);
        self.store(item, &pixels);
        Ok(pixels)
    }

    fn read(&self, item: usize) -> Result<Pixels, Failure> {
        let bytes = self.storage.bytes(item, &self.paths[item]).map_err(|error| {
            if is_fault_of_file(&error) { Failure::File(error.to_string()) } else { Failure::System(error) }
        })?;
        self.storage.decode(item, &bytes).map_err(|error| Failure::File(error.to_string()))
    }

    /// Keeps a decoded picture if memory allows.
    fn store(&self, item: usize, pixels: &Arc<Pixels>) {
        let bytes = 3 * u64::from(pixels.width()) * u64::from(pixels.height());
        let fits = self.cached_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.cache_bytes;
        // Another thread may have decoded and stored the same file meanwhile.
        if !fits || self.cache[item].set(pixels.clone()).is_err() {
            self.cached_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The files that could not be read so far, with the reason.
    pub fn unreadable(&self) -> BTreeMap<PathBuf, String> {
        self.lock_unreadable().clone()
    }

    /// Fails if the system could not read a file, or a required one cannot be read. To be called before the pictures that
    /// were read are used.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn check(&self) -> Result<()> {
        let Some((path, failure)) = self.fault.get() else { return Ok(()) };
        Err(match failure {
            Failure::System(error) => system_fault(path, error),
            Failure::File(reason) => problem(
                format!("{} cannot be read: {reason}", path.display()),
                self.required.unwrap_or("check the file"),
            ),
        })
    }

    fn lock_unreadable(&self) -> MutexGuard<'_, BTreeMap<PathBuf, String>> {
        self.unreadable.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The input of one training step.
pub struct TrainingBatch {
    /// Augmented views, all of one size. Empty if the step trains on features, or makes the views of each chunk when it
    /// passes, see [`Views::part`].
    pub views: Vec<Pixels>,
    /// The items of the views.
    pub items: Vec<usize>,
    /// The place of the batch in the run.
    pub position: Position,
}

/// The place of a batch in a run.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The step within the epoch, from 0.
    pub step: usize,
}

/// How a picture becomes a training view.
#[derive(Clone)]
pub struct Views {
    /// Random crops and mirroring.
    pub augment: AugmentConfig,
    /// The encoder's preprocessing, for the size and the resize filter.
    pub preprocessing: Preprocessing,
    /// The run's seed.
    pub seed: u64,
}

impl Views {
    /// The augmented views of a batch, without the items whose picture cannot be read. A function of
    /// the seed, the position and the items, whatever the number of threads.
    pub fn batch(&self, pictures: &Pictures, items: &[usize], position: Position) -> TrainingBatch {
        let (views, items) = items
            .par_iter()
            .enumerate()
            .filter_map(|(place, &item)| {
                let view = self.view(&*pictures.get(item)?, position, place).ok()?;
                Some((view, item))
            })
            .unzip();
        TrainingBatch { views, items, position }
    }

    /// The augmented views of a range of a batch whose pictures can be read, the same ones whenever they are made. If a
    /// picture cannot be read any more, its view is black, and [`Pictures::check`] fails.
    pub fn part(&self, pictures: &Pictures, batch: &TrainingBatch, range: Range<usize>) -> Vec<Pixels> {
        let side = self.preprocessing.side();
        let black = Pixels::new(side, side, vec![0; 3 * (side * side) as usize]).expect("a side is above 0");
        let view = |place: usize| {
            let item = batch.items[place];
            let view = pictures.load(item).and_then(|picture| {
                let view = self.view(&picture, batch.position, place);
                view.map_err(|error| Failure::File(error.to_string()))
            });
            view.unwrap_or_else(|failure| {
                pictures.fail(item, failure);
                black.clone()
            })
        };
        range.into_par_iter().map(view).collect()
    }

    /// The augmented view of the picture at a place of a batch.
    fn view(&self, picture: &Pixels, position: Position, place: usize) -> akin_core::Result<Pixels> {
        let key = [position.epoch, position.step as u64, place as u64];
        let mut rng = stream(self.seed, "augmentation", &key);
        let filter = self.preprocessing.numbers().filter;
        augmentation::random_view(picture, &self.augment, self.preprocessing.side(), filter, &mut rng)
    }

    /// Makes the batches at `positions` in a thread of its own, in order and a few steps ahead. The
    /// thread ends when the receiver is dropped.
    ///
    /// # Errors
    ///
    /// A system that starts no more threads.
    pub fn make_batches_ahead<'scope>(
        self,
        pictures: &'scope Pictures,
        positions: impl Iterator<Item = (Position, Vec<usize>)> + Send + 'scope,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Receiver<TrainingBatch>> {
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        let make_batches = move || {
            for (position, items) in positions {
                if sender.send(self.batch(pictures, &items, position)).is_err() {
                    break;
                }
            }
        };
        Builder::new()
            .spawn_scoped(scope, make_batches)
            .advise(|| "the thread that reads images cannot be started".into(), RAISE_LIMIT)?;
        Ok(receiver)
    }
}

#[cfg(test)]
mod tests {
    use akin_base::problem::parts;
    use akin_base::progress::Progress;
    use akin_core::image::Normalisation;

    use super::*;
    use crate::data::fixtures::files;

    /// Pictures of noise, as PNG.
    fn picture(seed: u32) -> Vec<u8> {
        let mut bytes = io::Cursor::new(Vec::new());
        let noise = |x: u32, y: u32| (x * 31 + y * 17 + seed * 101).wrapping_mul(2_654_435_761).to_be_bytes();
        let pixels = image::RgbImage::from_fn(40, 30, |x, y| {
            let [red, green, blue, _] = noise(x, y);
            image::Rgb([red, green, blue])
        });
        pixels.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn the_views_of_a_part_are_those_of_the_batch_and_no_picture_may_be_lost_on_the_way() {
        let names = ["a.png", "b.png", "text.png", "c.png", "d.png"];
        let images: Vec<Vec<u8>> = (0..5).map(picture).collect();
        let mut contents: Vec<(&str, &[u8])> =
            names.into_iter().zip(images.iter().map(Vec::as_slice)).collect();
        contents[2].1 = b"no picture";
        let folder = files(&contents);
        let pictures = Pictures::new(names.map(|name| folder.path().join(name)).to_vec()).without_cache();
        let bar = Progress::None.bar("Reading", 5);
        let items = pictures.readable(&[4, 2, 0, 3, 1], &bar).unwrap();
        assert_eq!(items, [4, 0, 3, 1]);

        let views = Views {
            augment: AugmentConfig::default(),
            preprocessing: Preprocessing::new(Normalisation::Inception, 16).unwrap(),
            seed: 5,
        };
        let position = Position { epoch: 2, step: 0 };
        let batch = views.batch(&pictures, &items, position);
        let whole = TrainingBatch { views: Vec::new(), items, position };
        for range in [0..4, 0..3, 3..4] {
            assert_eq!(views.part(&pictures, &whole, range.clone()), batch.views[range]);
        }
        pictures.check().unwrap();

        std::fs::write(folder.path().join("d.png"), "no picture").unwrap();
        assert_eq!(views.part(&pictures, &whole, 1..4), batch.views[1..]);
        pictures.check().unwrap();
        assert_ne!(views.part(&pictures, &whole, 0..1), batch.views[..1]);
        let (message, _) = parts(&pictures.check().unwrap_err());
        assert!(message.contains("d.png cannot be read"), "{message}");
    }
}
