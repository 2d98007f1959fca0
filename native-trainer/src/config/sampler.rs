//! `[sampler]`: what a batch consists of.

use akin_base::counts::counted;
use akin_base::problem::{did_you_mean, problem};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[sampler]`: see the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplerConfig {
    /// How the images of a batch are drawn. Default `classes`.
    #[serde(skip_serializing_if = "is_classes")]
    pub kind: SamplerKind,
    /// `classes`, `class_pairs`: P: the number of classes in a batch, at least 1. For `class_pairs` it must be even, since
    /// each class of the pair gives half of them. Default: 16, or as many as the training split has if those are fewer.
    pub classes_per_batch: Option<usize>,
    /// `classes`, `class_pairs`: K: the number of images of each class in a batch, at least 1. A class with fewer images
    /// repeats them. P × K is at most 65,536. Default 4.
    pub images_per_class: Option<usize>,
    /// `classes`, `class_pairs`: the level whose classes are drawn or paired. With `classes`, above the finest level, the K
    /// images of a class are spread evenly over its children, and so on down. `class_pairs` needs a level above the finest.
    /// Default: the finest level for `classes`, the coarsest for `class_pairs`.
    pub level: Option<String>,
    /// `class_pairs`: the number of batches of each pair in an epoch, 1 … 65,536. Default 5, as HAPPIER on Stanford
    /// Online Products.
    pub batches_per_pair: Option<usize>,
    /// `random`: the number of images in a batch, 1 … 65,536. Default 64.
    pub batch_size: Option<usize>,
}

/// How the images of a batch are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplerKind {
    /// P classes with K images each. All classes are drawn equally often, whatever their size.
    #[default]
    Classes,
    /// Two classes of a coarse level, and P / 2 finest classes of each with K images: negatives of a batch are hard, since
    /// half of them share the coarse class. An epoch goes through all pairs. HAPPIER and ROADMAP on Stanford Online
    /// Products.
    ClassPairs,
    /// Images in random order, whatever their labels. An epoch draws every image once, except for those that do not fill
    /// a batch.
    Random,
}

// A config that an older akin wrote has no kind.
fn is_classes(kind: &SamplerKind) -> bool {
    *kind == SamplerKind::Classes
}

impl SamplerConfig {
    /// P if the config does not set it and there are enough classes.
    pub const DEFAULT_CLASSES: usize = 16;

    /// The largest batch. The losses compare all pairs of a batch.
    const LARGEST_BATCH: usize = 65_536;

    /// The most batches of a pair in an epoch.
    const MOST_BATCHES_PER_PAIR: usize = 65_536;

    /// K.
    pub fn images_per_class(&self) -> usize {
        self.images_per_class.unwrap_or(4)
    }

    /// `class_pairs`: the number of batches of each pair in an epoch.
    pub fn batches_per_pair(&self) -> usize {
        self.batches_per_pair.unwrap_or(5)
    }

    /// `random`: the number of images in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size.unwrap_or(64)
    }

    /// A batch in words: `16 classes × 4 images`.
    pub fn describe(&self) -> String {
        if self.kind == SamplerKind::Random {
            return counted(self.batch_size(), "random image", "random images");
        }
        let classes = counted(self.classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES), "class", "classes");
        let classes = if self.classes_per_batch.is_some() { classes } else { format!("up to {classes}") };
        let images = counted(self.images_per_class(), "image", "images");
        match (self.kind, &self.level) {
            (SamplerKind::ClassPairs, None) => format!("{classes} × {images} of two coarsest classes"),
            (SamplerKind::ClassPairs, Some(level)) => {
                format!("{classes} × {images} of two classes of the level {level}")
            }
            (_, Some(level)) => format!("{classes} of the level {level} × {images}"),
            (_, None) => format!("{classes} × {images}"),
        }
    }

    /// Writes K into a config that does not set it, so that a saved config shows it.
    pub(super) fn write_defaults(&mut self) {
        if self.kind != SamplerKind::Random {
            self.images_per_class = Some(self.images_per_class());
        }
    }

    /// `levels` are the names of the data set's levels, coarse to fine.
    pub(super) fn validate(&self, levels: &[String]) -> Result<()> {
        let classes = self.classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES);
        let images = self.images_per_class();
        let numbers = [
            ("classes_per_batch", classes),
            ("images_per_class", images),
            ("batches_per_pair", self.batches_per_pair()),
            ("batch_size", self.batch_size()),
        ];
        for (name, number) in numbers {
            ensure(number > 0, || (format!("sampler.{name} is {number}"), "give a number of at least 1"))?;
        }
        ensure(classes.checked_mul(images).is_some_and(|batch| batch <= Self::LARGEST_BATCH), || {
            let batch = format!("a batch of {classes} classes × {images} images is too large");
            (batch, "give at most 65,536 images a batch in `classes_per_batch` and `images_per_class`")
        })?;
        ensure(self.batch_size() <= Self::LARGEST_BATCH, || {
            (format!("sampler.batch_size is {}", self.batch_size()), "give at most 65,536 images a batch")
        })?;
        ensure(self.batches_per_pair() <= Self::MOST_BATCHES_PER_PAIR, || {
            (format!("sampler.batches_per_pair is {}", self.batches_per_pair()), "give at most 65,536")
        })?;
        if let Some(level) = &self.level
            && !levels.contains(level)
        {
            return Err(problem(
                format!("sampler.level is {level:?}, but the levels are {}", levels.join(", ")),
                format!(
                    "{}name one of the levels of [data]",
                    did_you_mean(level, levels.iter().map(String::as_str))
                ),
            ));
        }
        if self.kind == SamplerKind::ClassPairs {
            ensure(classes.is_multiple_of(2), || {
                (
                    format!("sampler.classes_per_batch is {classes}, which is odd"),
                    "give an even number: each class of a pair gives half of the classes",
                )
            })?;
            ensure(levels.len() > 1 && self.level.as_ref() != levels.last(), || {
                (
                    "sampler.kind is `class_pairs`, but no level is above the one that it pairs".into(),
                    "it pairs classes of a coarse level: set sampler.level to one above the finest, or use another kind",
                )
            })?;
        }
        Ok(())
    }
}
