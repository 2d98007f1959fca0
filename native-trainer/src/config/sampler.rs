//! `[sampler]`: what a batch consists of.

use akin_base::problem::{did_you_mean, problem};
use akin_base::quantities::counted;
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[sampler]`: how the images of a batch are drawn.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SamplerConfig {
    /// P classes with K images each. All classes are drawn equally often, whatever their size.
    Classes {
        /// P: the number of classes in a batch, at least 1. Default: 16, or as many as the training split has if those
        /// are fewer.
        classes_per_batch: Option<usize>,
        /// K: the number of images of each class in a batch, at least 1. A class with fewer images repeats them. P × K is
        /// at most 65,536. Default 4.
        #[serde(default = "four")]
        images_per_class: usize,
        /// The level whose classes are drawn. Above the finest level, the K images of a class are spread evenly over its
        /// children, and so on down. Default: the finest level.
        level: Option<String>,
    },
    /// Two classes of a coarse level, and P / 2 finest classes of each with K images: negatives of a batch are hard, since
    /// half of them share the coarse class. An epoch goes through all pairs. HAPPIER and ROADMAP on Stanford Online
    /// Products.
    ClassPairs {
        /// P: the number of classes in a batch, at least 2. It must be even, since each class of the pair gives half of
        /// them. Default: 16, or as many as the largest pair has if those are fewer.
        classes_per_batch: Option<usize>,
        /// K: the number of images of each class in a batch, at least 1. A class with fewer images repeats them. P × K is
        /// at most 65,536. Default 4.
        #[serde(default = "four")]
        images_per_class: usize,
        /// The level whose classes are paired, above the finest. Default: the coarsest level.
        level: Option<String>,
        /// The number of batches of each pair in an epoch, 1 … 65,536. Default 5, as HAPPIER on Stanford Online Products.
        #[serde(default = "five")]
        batches_per_pair: usize,
    },
    /// Images in random order, whatever their labels. An epoch draws every image once, except for those that do not fill
    /// a batch.
    Random {
        /// The number of images in a batch, 1 … 65,536. Default: 64, or all images of the training split if those are
        /// fewer.
        batch_size: Option<usize>,
    },
    /// The whole training split in every batch, so that an epoch is one step with the loss of the whole set. Images
    /// pass the network in chunks, see `optimizer.chunk`, and are decoded and cropped when their chunk passes, with the same
    /// crops both times. The training split has at most 65,536 images.
    WholeSet {},
}

fn four() -> usize {
    SamplerConfig::DEFAULT_IMAGES
}

fn five() -> usize {
    5
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self::Classes { classes_per_batch: None, images_per_class: four(), level: None }
    }
}

impl SamplerConfig {
    /// P if the config does not set it and there are enough classes.
    pub const DEFAULT_CLASSES: usize = 16;

    /// K if the config does not set it.
    const DEFAULT_IMAGES: usize = 4;

    /// The number of images of a random batch if the config does not set it and there are enough.
    pub const DEFAULT_BATCH: usize = 64;

    /// The largest batch. The losses compare all pairs of a batch.
    pub const LARGEST_BATCH: usize = 65_536;

    /// The most batches of a pair in an epoch.
    const MOST_BATCHES_PER_PAIR: usize = 65_536;

    /// The number of images in a batch, if the training split has enough. A whole set is read as batches of the usual size.
    pub fn images(&self) -> usize {
        match self {
            Self::WholeSet {} => Self::DEFAULT_BATCH,
            Self::Random { batch_size } => batch_size.unwrap_or(Self::DEFAULT_BATCH),
            Self::Classes { classes_per_batch, images_per_class, .. }
            | Self::ClassPairs { classes_per_batch, images_per_class, .. } => {
                classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES) * images_per_class
            }
        }
    }

    /// A batch in words: `16 classes × 4 images`.
    pub fn describe(&self) -> String {
        let batch = |classes: Option<usize>, images: usize| {
            let up_to = if classes.is_some() { "" } else { "up to " };
            let classes = counted(classes.unwrap_or(Self::DEFAULT_CLASSES), "class", "classes");
            (format!("{up_to}{classes}"), counted(images, "image", "images"))
        };
        match self {
            Self::WholeSet {} => "the whole training split".to_owned(),
            Self::Random { batch_size } => {
                counted(batch_size.unwrap_or(Self::DEFAULT_BATCH), "random image", "random images")
            }
            Self::Classes { classes_per_batch, images_per_class, level } => {
                let (classes, images) = batch(*classes_per_batch, *images_per_class);
                match level {
                    Some(level) => format!("{classes} of the level {level} × {images}"),
                    None => format!("{classes} × {images}"),
                }
            }
            Self::ClassPairs { classes_per_batch, images_per_class, level, .. } => {
                let (classes, images) = batch(*classes_per_batch, *images_per_class);
                match level {
                    Some(level) => format!("{classes} × {images} of two classes of the level {level}"),
                    None => format!("{classes} × {images} of two coarsest classes"),
                }
            }
        }
    }

    /// `levels` are the names of the data set's levels, coarse to fine.
    pub(super) fn validate(&self, levels: &[String]) -> Result<()> {
        let at_least_one = |name: &str, number: usize| {
            ensure(number > 0, || (format!("sampler.{name} is {number}"), "give a number of at least 1"))
        };
        match self {
            Self::WholeSet {} => Ok(()),
            Self::Random { batch_size } => {
                let size = batch_size.unwrap_or(Self::DEFAULT_BATCH);
                at_least_one("batch_size", size)?;
                ensure(size <= Self::LARGEST_BATCH, || {
                    (format!("sampler.batch_size is {size}"), "give at most 65,536 images a batch")
                })
            }
            Self::Classes { classes_per_batch, images_per_class, level }
            | Self::ClassPairs { classes_per_batch, images_per_class, level, .. } => {
                let (classes, images) =
                    (classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES), *images_per_class);
                at_least_one("classes_per_batch", classes)?;
                at_least_one("images_per_class", images)?;
                ensure(
                    classes.checked_mul(images).is_some_and(|batch| batch <= Self::LARGEST_BATCH),
                    || {
                        let batch = format!("a batch of {classes} classes × {images} images is too large");
                        (
                            batch,
                            "give at most 65,536 images a batch in `classes_per_batch` and `images_per_class`",
                        )
                    },
                )?;
                if let Some(level) = level
                    && !levels.contains(level)
                {
                    let near = did_you_mean(level, levels.iter().map(String::as_str));
                    return Err(problem(
                        format!("sampler.level is {level:?}, but the levels are {}", levels.join(", ")),
                        format!("{near}name one of the levels of [data]"),
                    ));
                }
                let Self::ClassPairs { batches_per_pair, .. } = self else { return Ok(()) };
                at_least_one("batches_per_pair", *batches_per_pair)?;
                ensure(*batches_per_pair <= Self::MOST_BATCHES_PER_PAIR, || {
                    (format!("sampler.batches_per_pair is {batches_per_pair}"), "give at most 65,536")
                })?;
                ensure(classes.is_multiple_of(2), || {
                    (
                        format!("sampler.classes_per_batch is {classes}, which is odd"),
                        "give an even number: each class of a pair gives half of the classes",
                    )
                })?;
                ensure(levels.len() > 1 && level.as_ref() != levels.last(), || {
                    (
                        "sampler.kind is `class_pairs`, but no level is above the one that it pairs".into(),
                        "it pairs classes of a coarse level: set sampler.level to one above the finest, or use \
                         another kind",
                    )
                })
            }
        }
    }
}
