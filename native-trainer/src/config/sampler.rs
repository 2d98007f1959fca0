//! `[sampler]`: what a batch consists of.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[sampler]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplerConfig {
    /// P: the number of finest classes in a batch, at least 1. Default: 16, or as many as the training split has if
    /// those are fewer.
    pub classes_per_batch: Option<usize>,
    /// K: the number of images of each class in a batch, at least 1. A class with fewer images repeats them. P × K is at
    /// most 65,536. Default 4.
    pub images_per_class: usize,
}

impl SamplerConfig {
    /// P if the config does not set it and there are enough classes.
    pub const DEFAULT_CLASSES: usize = 16;

    /// The largest batch, P × K images. The losses compare all pairs of a batch.
    const LARGEST_BATCH: usize = 65_536;

    /// A batch in words: `16 classes × 4 images`.
    pub fn describe(&self) -> String {
        let classes = match self.classes_per_batch {
            Some(classes) => classes.to_string(),
            None => format!("up to {}", Self::DEFAULT_CLASSES),
        };
        format!("{classes} classes × {} images", self.images_per_class)
    }

    pub(super) fn validate(&self) -> Result<()> {
        let numbers = [
            ("classes_per_batch", self.classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES)),
            ("images_per_class", self.images_per_class),
        ];
        for (name, number) in numbers {
            ensure(number > 0, || (format!("sampler.{name} is {number}"), "give a number of at least 1"))?;
        }
        let [(_, classes), (_, images)] = numbers;
        ensure(classes.checked_mul(images).is_some_and(|batch| batch <= Self::LARGEST_BATCH), || {
            let batch = format!("a batch of {classes} classes × {images} images is too large");
            (batch, "give at most 65,536 images a batch in `classes_per_batch` and `images_per_class`")
        })?;
        Ok(())
    }
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { classes_per_batch: None, images_per_class: 4 }
    }
}
