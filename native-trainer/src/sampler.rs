//! Class-balanced batches: P classes × K images.
//!
//! A batch is a pure function of (seed, epoch, step), so that a resumed run continues the very same
//! sequence and a batch can be made on any thread.
//!
//! - An epoch has ⌊N / (P·K)⌋ steps (at least one): about as many images as the training set has.
//! - Its steps go through the classes in rounds. A round shuffles all classes and cuts them into
//!   ⌊C / P⌋ batches; the C mod P classes left over sit this round out, others the next. No class
//!   comes twice in a batch, and all come equally often in the long run, however many images they have.
//! - Of each class K images are drawn without replacement, or with it where the class has fewer than K.

use akin_core::random::stream;
use anyhow::Result;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::columns::counted;
use crate::problem::problem;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Sampler {
    /// The items of each class.
    classes: Vec<Vec<usize>>,
    items: usize,
    classes_per_batch: usize,
    images_per_class: usize,
    seed: u64,
}

impl Sampler {
    /// A sampler over items 0 … N − 1 of the finest classes `labels`. Class ids need not be dense.
    ///
    /// # Errors
    ///
    /// P or K is 0, or there are fewer than P classes.
    pub fn new(labels: &[u32], classes_per_batch: usize, images_per_class: usize, seed: u64) -> Result<Self> {
        let mut by_class = std::collections::BTreeMap::<u32, Vec<usize>>::new();
        for (item, &class) in labels.iter().enumerate() {
            by_class.entry(class).or_default().push(item);
        }
        let classes: Vec<Vec<usize>> = by_class.into_values().collect();
        if classes_per_batch == 0 || images_per_class == 0 {
            return Err(problem(
                "a batch needs at least one class and one image of each",
                "set sampler.classes_per_batch and sampler.images_per_class to 1 or more; 16 and 4 are usual",
            ));
        }
        if classes.len() < classes_per_batch {
            return Err(problem(
                format!(
                    "a batch takes {classes_per_batch} classes, but the training images have {}",
                    counted(classes.len(), "finest class", "finest classes")
                ),
                format!("set sampler.classes_per_batch to at most {}", classes.len()),
            ));
        }
        Ok(Self { classes, items: labels.len(), classes_per_batch, images_per_class, seed })
    }

    /// P · K, the number of images in every batch.
    pub fn batch_size(&self) -> usize {
        self.classes_per_batch * self.images_per_class
    }

    /// The number of batches in an epoch.
    pub fn steps_per_epoch(&self) -> usize {
        (self.items / self.batch_size()).max(1)
    }

    /// The items of a batch: the K images of its first class, then those of its second, and so on.
    pub fn batch(&self, epoch: u64, step: usize) -> Vec<usize> {
        let batches_per_round = self.classes.len() / self.classes_per_batch;
        let round = (step / batches_per_round) as u64;
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.shuffle(&mut stream(self.seed, "sampler/classes", &[epoch, round]));

        let first = step % batches_per_round * self.classes_per_batch;
        let mut images = stream(self.seed, "sampler/images", &[epoch, step as u64]);
        let mut batch = Vec::with_capacity(self.batch_size());
        for &class in &order[first..first + self.classes_per_batch] {
            let items = &self.classes[class];
            if items.len() < self.images_per_class {
                batch.extend((0..self.images_per_class).map(|_| items[images.random_range(0..items.len())]));
            } else {
                let mut items = items.clone();
                let (drawn, _) = items.partial_shuffle(&mut images, self.images_per_class);
                batch.extend_from_slice(drawn);
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// 10 classes; class c has 3 + c images.
    fn labels() -> Vec<u32> {
        (0..10).flat_map(|class| vec![class; 3 + class as usize]).collect()
    }

    #[test]
    fn a_batch_is_a_function_of_seed_epoch_and_step() {
        let sampler = |seed| Sampler::new(&labels(), 4, 4, seed).unwrap();
        let later: Vec<_> = (0..5).map(|step| sampler(1).batch(2, step)).collect();
        let whole = sampler(1);
        whole.batch(0, 0);
        assert_eq!(later, (0..5).map(|step| whole.batch(2, step)).collect::<Vec<_>>());
        assert_ne!(whole.batch(2, 0), whole.batch(3, 0));
        assert_ne!(whole.batch(2, 0), sampler(2).batch(2, 0));
    }

    #[test]
    fn a_batch_has_p_classes_of_k_images() {
        let labels = labels();
        let sampler = Sampler::new(&labels, 4, 4, 7).unwrap();
        for step in 0..50 {
            let batch = sampler.batch(0, step);
            assert_eq!(batch.len(), 16);
            let mut classes = BTreeSet::new();
            for group in batch.chunks(4) {
                let class = labels[group[0]];
                assert!(group.iter().all(|&item| labels[item] == class), "images of a class stand together");
                assert!(classes.insert(class), "no class comes twice");
                let distinct = group.iter().collect::<BTreeSet<_>>().len();
                assert!(distinct == 4 || class == 0, "repeated only where a class has fewer than K images");
            }
        }
    }

    #[test]
    fn classes_come_equally_often_whatever_their_size() {
        let labels = labels();
        let sampler = Sampler::new(&labels, 3, 2, 0).unwrap();
        let mut seen = BTreeMap::<u32, usize>::new();
        for epoch in 0..300 {
            for step in 0..sampler.steps_per_epoch() {
                sampler
                    .batch(epoch, step)
                    .chunks(2)
                    .for_each(|pair| *seen.entry(labels[pair[0]]).or_default() += 1);
            }
        }
        let visits = 300 * sampler.steps_per_epoch() * 3 / 10;
        assert!(seen.values().all(|&times| times.abs_diff(visits) < visits / 10), "{seen:?} around {visits}");
    }

    #[test]
    fn a_round_meets_no_class_twice() {
        let labels = labels();
        let sampler = Sampler::new(&labels, 5, 1, 3).unwrap();
        let round: BTreeSet<u32> =
            (0..2).flat_map(|step| sampler.batch(0, step)).map(|item| labels[item]).collect();
        assert_eq!(round.len(), 10);
    }

    #[test]
    fn an_epoch_is_about_as_long_as_the_training_set() {
        assert_eq!(Sampler::new(&labels(), 4, 4, 0).unwrap().steps_per_epoch(), 75 / 16);
        assert_eq!(Sampler::new(&[0, 1], 2, 4, 0).unwrap().steps_per_epoch(), 1);
    }

    #[test]
    fn too_few_classes_are_refused_with_the_number_that_would_do() {
        let error = Sampler::new(&[0, 0, 1, 1], 16, 4, 0).unwrap_err();
        let (message, hint) = crate::problem::parts(&error);
        assert!(
            message.contains("takes 16 classes, but the training images have 2 finest classes"),
            "{message}"
        );
        assert!(hint.unwrap().contains("at most 2"));
        assert!(Sampler::new(&[0], 0, 4, 0).is_err());
    }
}
