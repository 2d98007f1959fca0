//! Class-balanced batches: P classes × K images.
//!
//! A batch is a pure function of (seed, epoch, step), so that a resumed run continues the very same
//! sequence and any thread can make any batch.
//!
//! - An epoch has ⌊N / (P·K)⌋ steps, at least one: about as many images as the training split has.
//! - The steps of an epoch go through the classes in rounds. A round shuffles all classes and cuts them
//!   into ⌊C / P⌋ batches; the C mod P classes that are left over are skipped in this round. No class is
//!   twice in a batch, and in the long run all classes are drawn equally often, whatever their size.
//! - The K images of a class are drawn without replacement. A class with fewer than K images is drawn
//!   repeatedly, so that each of its images is in the batch ⌊K / size⌋ times or once more.

use std::collections::BTreeMap;

use akin_core::random::stream;
use akin_core::taxonomy::Labels;
use anyhow::Result;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::config::SamplerConfig;
use crate::counts::counted;
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
    /// A sampler over the finest classes of `items`. `labels` has a row for every item of the data set;
    /// P and K are at least 1, which the config checks.
    ///
    /// If the config does not set P, it is [`SamplerConfig::DEFAULT_CLASSES`] or the number of classes,
    /// whichever is smaller.
    ///
    /// # Errors
    ///
    /// The config sets P to more than the number of classes, or does not set it and there is only one
    /// class.
    pub fn new(items: &[usize], labels: &Labels, config: &SamplerConfig, seed: u64) -> Result<Self> {
        let mut items_of_class = BTreeMap::<u32, Vec<usize>>::new();
        for &item in items {
            items_of_class.entry(labels.row(item)[labels.levels() - 1]).or_default().push(item);
        }
        let classes: Vec<Vec<usize>> = items_of_class.into_values().collect();
        let classes_per_batch = classes_per_batch(classes.len(), config)?;
        Ok(Self {
            classes,
            items: items.len(),
            classes_per_batch,
            images_per_class: config.images_per_class,
            seed,
        })
    }

    /// P, the number of classes in every batch.
    pub fn classes_per_batch(&self) -> usize {
        self.classes_per_batch
    }

    /// K, the number of images of each class in a batch.
    pub fn images_per_class(&self) -> usize {
        self.images_per_class
    }

    /// P · K, the number of images in every batch.
    pub fn batch_size(&self) -> usize {
        self.classes_per_batch * self.images_per_class
    }

    /// The number of batches in an epoch.
    pub fn steps_per_epoch(&self) -> usize {
        (self.items / self.batch_size()).max(1)
    }

    /// How the batches differ from what a user may expect: fewer classes than the default, and images
    /// that a batch repeats. Each remark continues the word "Sampling".
    pub fn remarks(&self, config: &SamplerConfig) -> Vec<String> {
        let (classes, images) = (self.classes.len(), self.images_per_class);
        let mut remarks = Vec::new();
        if config.classes_per_batch.is_none() && self.classes_per_batch < SamplerConfig::DEFAULT_CLASSES {
            remarks.push(format!(
                "{classes} classes × {images} images a batch, not {} × {images}: the training split has {classes} \
                 finest classes",
                SamplerConfig::DEFAULT_CLASSES,
            ));
        }
        let small = self.classes.iter().filter(|items| items.len() < images).count();
        if small > 0 {
            remarks.push(format!(
                "with repeats: {small} of {} {} fewer than {images} images",
                counted(classes, "class", "classes"),
                if small == 1 { "has" } else { "have" },
            ));
        }
        remarks
    }

    /// The items of a batch: the K images of its first class, then those of its second, and so on.
    pub fn batch(&self, epoch: u64, step: usize) -> Vec<usize> {
        let batches_per_round = self.classes.len() / self.classes_per_batch;
        let round = (step / batches_per_round) as u64;
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.shuffle(&mut stream(self.seed, "sampler/classes", &[epoch, round]));

        let first = step % batches_per_round * self.classes_per_batch;
        let mut rng = stream(self.seed, "sampler/images", &[epoch, step as u64]);
        order[first..first + self.classes_per_batch]
            .iter()
            .flat_map(|&class| draw(&self.classes[class], self.images_per_class, &mut rng))
            .collect()
    }
}

/// P for a training split with this many classes.
fn classes_per_batch(classes: usize, config: &SamplerConfig) -> Result<usize> {
    match config.classes_per_batch {
        Some(asked) if asked > classes => Err(problem(
            format!(
                "sampler.classes_per_batch is {asked}, but the training split has {}",
                counted(classes, "finest class", "finest classes")
            ),
            format!(
                "set it to at most {classes}, or remove it: a batch then takes as many classes as there are"
            ),
        )),
        Some(asked) => Ok(asked),
        None if classes == 1 => Err(problem(
            "the training split has only one finest class, so there is nothing to tell apart",
            "add images of other classes to the training split",
        )),
        None => Ok(classes.min(SamplerConfig::DEFAULT_CLASSES)),
    }
}

/// Draws `count` of `items` without replacement, starting again whenever all are drawn.
fn draw(items: &[usize], count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let mut left = items.to_vec();
        let (some, _) = left.partial_shuffle(rng, count - drawn.len());
        drawn.extend_from_slice(some);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::problem::parts;

    /// 10 classes; class c has 3 + c images.
    fn classes() -> Vec<u32> {
        (0..10).flat_map(|class| vec![class; 3 + class as usize]).collect()
    }

    fn config(classes_per_batch: Option<usize>, images_per_class: usize) -> SamplerConfig {
        SamplerConfig { classes_per_batch, images_per_class }
    }

    /// A sampler over items 0 … N − 1 with these classes.
    fn try_sampler(classes: &[u32], config: &SamplerConfig, seed: u64) -> Result<Sampler> {
        let items: Vec<usize> = (0..classes.len()).collect();
        Sampler::new(&items, &Labels::new(1, classes.to_vec()).unwrap(), config, seed)
    }

    fn sampler(classes_per_batch: usize, images_per_class: usize, seed: u64) -> Sampler {
        try_sampler(&classes(), &config(Some(classes_per_batch), images_per_class), seed).unwrap()
    }

    #[test]
    fn a_batch_is_a_function_of_seed_epoch_and_step() {
        let later: Vec<_> = (0..5).map(|step| sampler(4, 4, 1).batch(2, step)).collect();
        let whole = sampler(4, 4, 1);
        whole.batch(0, 0);
        assert_eq!(later, (0..5).map(|step| whole.batch(2, step)).collect::<Vec<_>>());
        assert_ne!(whole.batch(2, 0), whole.batch(3, 0));
        assert_ne!(whole.batch(2, 0), sampler(4, 4, 2).batch(2, 0));
    }

    #[test]
    fn a_batch_has_p_classes_of_k_images() {
        let (classes, sampler) = (classes(), sampler(4, 4, 7));
        for step in 0..50 {
            let batch = sampler.batch(0, step);
            assert_eq!(batch.len(), 16);
            let mut seen = BTreeSet::new();
            for group in batch.chunks(4) {
                let class = classes[group[0]];
                assert!(group.iter().all(|&item| classes[item] == class), "images of a class are adjacent");
                assert!(seen.insert(class), "no class is drawn twice");
            }
        }
    }

    #[test]
    fn images_repeat_only_in_classes_smaller_than_k_and_evenly() {
        let mut rng = stream(0, "test", &[]);
        for size in 1..8 {
            let items: Vec<usize> = (10..10 + size).collect();
            let drawn = draw(&items, 4, &mut rng);
            for item in &items {
                let times = drawn.iter().filter(|&other| other == item).count();
                assert!((4 / size..=4_usize.div_ceil(size)).contains(&times), "{drawn:?} of {size} images");
            }
            assert!(drawn.iter().all(|item| items.contains(item)));
        }
    }

    #[test]
    fn classes_are_drawn_equally_often_whatever_their_size() {
        let (classes, sampler) = (classes(), sampler(3, 2, 0));
        let mut seen = BTreeMap::<u32, usize>::new();
        for epoch in 0..300 {
            for step in 0..sampler.steps_per_epoch() {
                for pair in sampler.batch(epoch, step).chunks(2) {
                    *seen.entry(classes[pair[0]]).or_default() += 1;
                }
            }
        }
        let expected = 300 * sampler.steps_per_epoch() * 3 / 10;
        assert!(
            seen.values().all(|&times| times.abs_diff(expected) < expected / 10),
            "{seen:?} around {expected}"
        );
    }

    #[test]
    fn a_round_draws_no_class_twice() {
        let (classes, sampler) = (classes(), sampler(5, 1, 3));
        let round: BTreeSet<u32> =
            (0..2).flat_map(|step| sampler.batch(0, step)).map(|item| classes[item]).collect();
        assert_eq!(round.len(), 10);
    }

    #[test]
    fn only_the_given_items_are_drawn() {
        let labels = Labels::new(2, vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 2]).unwrap();
        let sampler = Sampler::new(&[0, 1, 3], &labels, &config(None, 2), 0).unwrap();
        let drawn: BTreeSet<usize> = (0..20).flat_map(|epoch| sampler.batch(epoch, 0)).collect();
        assert_eq!(drawn, [0, 1, 3].into());
    }

    #[test]
    fn an_epoch_is_about_as_long_as_the_training_split() {
        assert_eq!(sampler(4, 4, 0).steps_per_epoch(), 75 / 16);
        assert_eq!(try_sampler(&[0, 1], &config(Some(2), 4), 0).unwrap().steps_per_epoch(), 1);
    }

    #[test]
    fn by_default_a_batch_takes_16_classes_or_as_many_as_there_are() {
        let default = SamplerConfig::default();
        let many: Vec<u32> = (0..100).map(|item| item % 20).collect();
        let sampler = try_sampler(&many, &default, 0).unwrap();
        assert_eq!((sampler.classes_per_batch(), sampler.remarks(&default)), (16, vec![]));

        let sampler = try_sampler(&classes(), &default, 0).unwrap();
        assert_eq!(sampler.classes_per_batch(), 10);
        assert_eq!(
            sampler.remarks(&default),
            [
                "10 classes × 4 images a batch, not 16 × 4: the training split has 10 finest classes",
                "with repeats: 1 of 10 classes has fewer than 4 images",
            ]
        );
        let (message, _) = parts(&try_sampler(&[0, 0], &default, 0).unwrap_err());
        assert!(message.contains("only one finest class"), "{message}");
    }

    #[test]
    fn more_classes_than_there_are_are_refused_with_both_numbers() {
        let error = try_sampler(&[0, 0, 1, 1], &config(Some(16), 4), 0).unwrap_err();
        let (message, hint) = parts(&error);
        assert_eq!(message, "sampler.classes_per_batch is 16, but the training split has 2 finest classes");
        assert!(hint.unwrap().starts_with("set it to at most 2"));
    }
}
