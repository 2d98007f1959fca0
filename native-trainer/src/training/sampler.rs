//! Batches: which images of the training split each has.
//!
//! A batch is a pure function of (seed, epoch, step), so that a resumed run continues the very same
//! sequence and any thread can make any batch.
//!
//! **`classes`**: P classes × K images.
//!
//! - An epoch has ⌊N / (P·K)⌋ steps, at least one: about as many images as the training split has.
//! - The steps of an epoch go through the classes in rounds. A round shuffles all classes and cuts them
//!   into ⌊C / P⌋ batches; the C mod P classes that are left over are skipped in this round. No class is
//!   twice in a batch, and in the long run all classes are drawn equally often, whatever their size.
//! - The K images of a class are drawn without replacement. A class with fewer than K images is drawn
//!   repeatedly, so that each of its images is in the batch ⌊K / size⌋ times or once more.
//! - Above the finest level, the K images of a class are spread over its children: two children differ by at most one
//!   image, unless one of them has no more. The images of a child are spread over its children in the same way.
//! - The images of one genus whose species is unknown are drawn together, as if they were one class. Losses leave out what
//!   is not decided between them, and use the rest. A round draws only so many of such groups, larger ones more often, that
//!   an image of unknown species is drawn about as often as another: unknown is not a class. For the same reason such a group
//!   gives as large a share of the images of a genus as it has.
//!
//! **`class_pairs`**: HAPPIER's sampler of hard pairs (the published code for Stanford Online Products).
//!
//! - An epoch has `batches_per_pair` steps for each pair of classes of a coarse level, in random order.
//! - Each of the two classes gives P / 2 of its finest classes, or all that it has if they are fewer, with K images each.
//!   Groups of images whose finest class is unknown are drawn as rarely as above.
//!
//! Both need one label path for each image. Images with several, or with a matrix of relevance, need one of the next two.
//!
//! **`random`**: B images.
//!
//! - An epoch shuffles all images and cuts them into ⌊N / B⌋ batches; the N mod B images that are left over are skipped.
//!
//! **`whole_set`**: all N images, the step of SupRank's code (`run_large_batch` of its `engine/large_batch_update.py`, commit
//! d3d0e3c; Revaud et al., *Learning with Average Precision*, ICCV 2019).
//!
//! - An epoch is one step, whose batch is a random batch of N images.
//! - All images are embedded, in chunks and without gradient; the loss of all embeddings gives the gradient of each; and
//!   the images pass in chunks again, each with its gradient. `gradients.rs` says why that is the gradient of the loss.
//! - SupRank's code crops the images anew for the second pass, so that gradients reach other crops than those that they
//!   were computed for. Here both passes have the same crops. Its training loop hands this step batches instead of the
//!   whole set, does not run as published, and belongs to none of its configs.

mod class;

use std::sync::{Arc, Mutex, PoisonError};

use akin_base::problem::problem;
use akin_base::quantities::{count, counted};
use akin_core::random::stream;
use akin_core::taxonomy::Labels;
use anyhow::Result;
use rand::Rng;
use rand::seq::SliceRandom;

use self::class::{Class, ClassPool};
use crate::config::SamplerConfig;

/// The most batches of an epoch of pairs, whose order is in memory: 16 million.
const LONGEST_EPOCH: usize = 1 << 24;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Sampler {
    batches: Batches,
    images: usize,
    seed: u64,
    order: EpochOrder,
}

/// The order of the epoch that was asked for last: it is the same for all batches of the epoch, and long.
#[derive(Clone, Debug, Default)]
struct EpochOrder(Arc<Mutex<Shuffled>>);

#[derive(Debug, Default)]
struct Shuffled {
    epoch: Option<u64>,
    order: Arc<[usize]>,
}

impl EpochOrder {
    /// The numbers below `length` in the order of an epoch, which `rng` shuffles.
    fn get(&self, epoch: u64, length: usize, rng: &mut impl Rng) -> Arc<[usize]> {
        // A thread that panicked left the earlier order.
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.epoch != Some(epoch) {
            let mut order: Vec<usize> = (0..length).collect();
            order.shuffle(rng);
            *stored = Shuffled { epoch: Some(epoch), order: order.into() };
        }
        Arc::clone(&stored.order)
    }
}

/// What the batches are drawn from.
#[derive(Clone, Debug)]
enum Batches {
    /// `nouns`: what a class of the level is called, and several of them.
    Classes {
        pool: ClassPool,
        nouns: [String; 2],
        per_batch: usize,
        images_per_class: usize,
    },
    ClassPairs {
        pairs: Pairs,
        per_half: usize,
        images_per_class: usize,
        batches_per_pair: usize,
    },
    Random {
        items: Vec<usize>,
        batch_size: usize,
    },
}

/// The finest classes of each class of a coarse level.
#[derive(Clone, Debug)]
struct Pairs {
    level: String,
    parents: Vec<ClassPool>,
}

impl Sampler {
    /// A sampler over `items`. `labels` has a row for every item of the data set, `levels` the names of the levels. The
    /// config is checked against these levels.
    ///
    /// If the config does not set P, it is [`SamplerConfig::DEFAULT_CLASSES`] or the number of classes,
    /// whichever is smaller.
    ///
    /// # Errors
    ///
    /// The config asks for more classes or images than there are, or there is only one class.
    pub fn new(
        items: &[usize],
        labels: &Labels,
        levels: &[String],
        config: &SamplerConfig,
        seed: u64,
    ) -> Result<Self> {
        let place = |level: &Option<String>, default: usize| {
            let named = level.as_ref().and_then(|name| levels.iter().position(|level| level == name));
            named.map_or(default, |place| place + 1)
        };
        let name = |level: usize| levels.get(level - 1).cloned().unwrap_or_default();
        let draws_classes =
            matches!(config, SamplerConfig::Classes { .. } | SamplerConfig::ClassPairs { .. });
        if draws_classes && labels.kinship().is_some() {
            return Err(problem(
                "the sampler draws images by class, and these images have several label paths, or a matrix of relevance",
                "set sampler.kind = \"random\"",
            ));
        }
        let batches = match *config {
            SamplerConfig::Classes { classes_per_batch: asked, images_per_class, ref level } => {
                let level = place(level, labels.levels());
                let pool = ClassPool::new(Class::at_level(items, labels, level));
                let nouns = match level == labels.levels() {
                    true => ["class", "classes"].map(|noun| format!("finest {noun}")),
                    false => ["class", "classes"].map(|noun| format!("{noun} of the level {}", name(level))),
                };
                let per_batch = classes_per_batch(pool.len(), &nouns, asked)?;
                Batches::Classes { pool, nouns, per_batch, images_per_class }
            }
            SamplerConfig::ClassPairs {
                classes_per_batch,
                images_per_class,
                ref level,
                batches_per_pair,
            } => {
                let level = place(level, 1);
                let parents = Class::at_level(items, labels, level);
                let pools = parents.into_iter().map(|parent| ClassPool::new(parent.finest()));
                let pairs = Pairs { level: name(level), parents: pools.collect() };
                if pairs.parents.len() < 2 {
                    return Err(problem(
                        format!(
                            "the training split has only one class of the level {}, so there are no pairs",
                            pairs.level
                        ),
                        "set sampler.level to a finer level, or use another sampler.kind",
                    ));
                }
                let largest = pairs.parents.iter().map(ClassPool::len).max().unwrap_or(1);
                let per_half = match classes_per_batch {
                    Some(classes) => classes / 2,
                    None => largest.min(SamplerConfig::DEFAULT_CLASSES / 2),
                };
                let steps = pairs.steps(batches_per_pair);
                if steps > LONGEST_EPOCH {
                    return Err(problem(
                        format!(
                            "sampler.batches_per_pair is {batches_per_pair}, and the level {} has {}: an epoch is too long",
                            pairs.level,
                            counted(pairs.count(), "pair", "pairs"),
                        ),
                        "give fewer batches per pair, or set sampler.level to a coarser level",
                    ));
                }
                Batches::ClassPairs { pairs, per_half, images_per_class, batches_per_pair }
            }
            SamplerConfig::Random { batch_size } => {
                let batch_size = match batch_size {
                    Some(asked) if asked > items.len() => {
                        return Err(problem(
                            format!(
                                "sampler.batch_size is {asked}, but the training split has {}",
                                counted(items.len(), "image", "images")
                            ),
                            format!("set it to at most {}", items.len()),
                        ));
                    }
                    Some(asked) => asked,
                    None => SamplerConfig::DEFAULT_BATCH.min(items.len()),
                };
                Batches::Random { items: items.to_vec(), batch_size }
            }
            SamplerConfig::WholeSet {} => {
                if items.len() > SamplerConfig::LARGEST_BATCH {
                    return Err(problem(
                        format!(
                            "sampler.kind is `whole_set`, but the training split has {}, and a batch has at most {}",
                            counted(items.len(), "image", "images"),
                            count(SamplerConfig::LARGEST_BATCH)
                        ),
                        "use `random` with a large sampler.batch_size and optimizer.chunk instead",
                    ));
                }
                Batches::Random { items: items.to_vec(), batch_size: items.len() }
            }
        };
        Ok(Self { batches, images: items.len(), seed, order: EpochOrder::default() })
    }

    /// P, the number of classes in a batch, and K, the number of images of each; none if batches are drawn without classes.
    pub fn classes_and_images(&self) -> Option<(usize, usize)> {
        match self.batches {
            Batches::Classes { per_batch, images_per_class, .. } => Some((per_batch, images_per_class)),
            Batches::ClassPairs { per_half, images_per_class, .. } => Some((2 * per_half, images_per_class)),
            Batches::Random { .. } => None,
        }
    }

    /// The number of images in a batch. A batch of `class_pairs` has fewer if a class of the pair has too few classes.
    pub fn batch_size(&self) -> usize {
        match self.batches {
            Batches::Random { batch_size, .. } => batch_size,
            _ => self.classes_and_images().map_or(0, |(classes, images)| classes * images),
        }
    }

    /// The images of the largest batch of these classes: with `class_pairs`, that of the two coarse classes with the most
    /// finest ones.
    pub fn largest_batch(&self) -> usize {
        let Batches::ClassPairs { pairs, per_half, images_per_class, .. } = &self.batches else {
            return self.batch_size();
        };
        let mut halves: Vec<usize> = pairs.parents.iter().map(|parent| parent.len().min(*per_half)).collect();
        halves.sort_unstable_by(|a, b| b.cmp(a));
        halves.iter().take(2).sum::<usize>() * images_per_class
    }

    /// The number of batches in an epoch.
    pub fn steps_per_epoch(&self) -> usize {
        match &self.batches {
            Batches::ClassPairs { pairs, batches_per_pair, .. } => pairs.steps(*batches_per_pair),
            _ => (self.images / self.batch_size()).max(1),
        }
    }

    /// How the batches differ from what a user may expect: fewer classes than the default, images that a batch repeats,
    /// and smaller batches. Each remark continues the word "Sampling".
    pub fn remarks(&self, config: &SamplerConfig) -> Vec<String> {
        let mut remarks = Vec::new();
        let repeats = |small: usize, classes: usize, images: usize| {
            (small > 0).then(|| {
                format!(
                    "with repeats: {} of {} {} fewer than {}",
                    count(small),
                    counted(classes, "class", "classes"),
                    if small == 1 { "has" } else { "have" },
                    counted(images, "image", "images"),
                )
            })
        };
        match &self.batches {
            Batches::Classes { pool, nouns, per_batch, images_per_class: images } => {
                let is_default = matches!(config, SamplerConfig::Classes { classes_per_batch: None, .. });
                if is_default && *per_batch < SamplerConfig::DEFAULT_CLASSES {
                    remarks.push(format!(
                        "{} × {} a batch, not {} × {images}: the training split has {}",
                        counted(*per_batch, "class", "classes"),
                        counted(*images, "image", "images"),
                        SamplerConfig::DEFAULT_CLASSES,
                        counted(*per_batch, &nouns[0], &nouns[1]),
                    ));
                }
                let small = pool.classes.iter().filter(|class| class.images < *images).count();
                remarks.extend(repeats(small, pool.classes.len(), *images));
            }
            Batches::ClassPairs { pairs, per_half, images_per_class: images, .. } => {
                let few = pairs.parents.iter().filter(|parent| parent.len() < *per_half).count();
                if few > 0 {
                    remarks.push(format!(
                        "smaller batches: {few} of {} of the level {} {} fewer than {per_half} finest classes",
                        counted(pairs.parents.len(), "class", "classes"),
                        pairs.level,
                        if few == 1 { "has" } else { "have" },
                    ));
                }
                let finest = || pairs.parents.iter().flat_map(|pool| &pool.classes);
                let small = finest().filter(|class| class.images < *images).count();
                remarks.extend(repeats(small, finest().count(), *images));
            }
            Batches::Random { .. } => {}
        }
        remarks
    }

    /// The items of a batch. With classes, the images of its first class come first, then those of its second, and so on.
    pub fn batch(&self, epoch: u64, step: usize) -> Vec<usize> {
        let stream = |name, key: &[u64]| stream(self.seed, name, key);
        let mut rng = stream("sampler/images", &[epoch, step as u64]);
        match &self.batches {
            &Batches::Classes { ref pool, per_batch, images_per_class, .. } => {
                let batches_per_round = pool.len() / per_batch;
                let round = (step / batches_per_round) as u64;
                let mut round_rng = stream("sampler/classes", &[epoch, round]);
                let mut order = pool.round(&mut round_rng);
                order.shuffle(&mut round_rng);
                let first = step % batches_per_round * per_batch;
                let chosen = &order[first..first + per_batch];
                chosen.iter().flat_map(|class| class.draw(images_per_class, &mut rng)).collect()
            }
            Batches::ClassPairs { pairs, per_half, images_per_class, batches_per_pair } => {
                let steps = self.steps_per_epoch();
                let order = self.order.get(epoch, steps, &mut stream("sampler/pairs", &[epoch]));
                let mut items = Vec::with_capacity(self.batch_size());
                for parent in pairs.get(order[step % steps] / batches_per_pair) {
                    let mut classes = parent.round(&mut rng);
                    for class in classes.partial_shuffle(&mut rng, *per_half).0 {
                        items.extend(class.draw(*images_per_class, &mut rng));
                    }
                }
                items
            }
            Batches::Random { items, batch_size } => {
                let order = self.order.get(epoch, items.len(), &mut stream("sampler/items", &[epoch]));
                let first = step % self.steps_per_epoch() * batch_size;
                order[first..first + batch_size].iter().map(|&place| items[place]).collect()
            }
        }
    }
}

impl Pairs {
    /// The number of pairs.
    fn count(&self) -> usize {
        self.parents.len() * (self.parents.len() - 1) / 2
    }

    /// The number of batches in an epoch.
    fn steps(&self, batches_per_pair: usize) -> usize {
        self.count().saturating_mul(batches_per_pair)
    }

    /// A pair by its number: (0, 1), (0, 2), (1, 2), (0, 3) and so on.
    fn get(&self, mut pair: usize) -> [&ClassPool; 2] {
        let mut second = 1;
        while pair >= second {
            pair -= second;
            second += 1;
        }
        [&self.parents[pair], &self.parents[second]]
    }
}

/// P for a training split with this many classes of a level.
fn classes_per_batch(classes: usize, [one, many]: &[String; 2], asked: Option<usize>) -> Result<usize> {
    match asked {
        Some(asked) if asked > classes => Err(problem(
            format!(
                "sampler.classes_per_batch is {asked}, but the training split has {}",
                counted(classes, one, many)
            ),
            format!(
                "set it to at most {classes}, or remove it: a batch then takes as many classes as there are"
            ),
        )),
        Some(asked) => Ok(asked),
        None if classes == 1 => Err(problem(
            format!("the training split has only one {one}, so there is nothing to tell apart"),
            "add images of other classes to the training split",
        )),
        None => Ok(classes.min(SamplerConfig::DEFAULT_CLASSES)),
    }
}

#[cfg(test)]
mod tests;
