use std::collections::{BTreeMap, BTreeSet};

use akin_base::problem::parts;
use akin_core::taxonomy::UNKNOWN;
use proptest::prelude::*;

use super::*;

/// 10 classes; class c has 3 + c images.
fn classes() -> Vec<u32> {
    (0..10).flat_map(|class| vec![class; 3 + class as usize]).collect()
}

fn config(classes_per_batch: Option<usize>, images_per_class: usize) -> SamplerConfig {
    SamplerConfig::Classes { classes_per_batch, images_per_class, level: None }
}

/// Pairs of classes of a level, or of the coarsest.
fn pairs(
    classes_per_batch: Option<usize>,
    images_per_class: usize,
    batches_per_pair: usize,
    level: Option<&str>,
) -> SamplerConfig {
    let level = level.map(str::to_owned);
    SamplerConfig::ClassPairs { classes_per_batch, images_per_class, level, batches_per_pair }
}

fn random(batch_size: usize) -> SamplerConfig {
    SamplerConfig::Random { batch_size: Some(batch_size) }
}

fn classes_of(level: &str, classes_per_batch: usize, images_per_class: usize) -> SamplerConfig {
    let level = Some(level.to_owned());
    SamplerConfig::Classes { classes_per_batch: Some(classes_per_batch), images_per_class, level }
}

/// A sampler over items 0 … N − 1 with these classes.
fn try_sampler(classes: &[u32], config: &SamplerConfig, seed: u64) -> Result<Sampler> {
    let items: Vec<usize> = (0..classes.len()).collect();
    Sampler::new(&items, &Labels::new(1, classes.to_vec()).unwrap(), &["class".into()], config, seed)
}

fn sampler(classes_per_batch: usize, images_per_class: usize, seed: u64) -> Sampler {
    try_sampler(&classes(), &config(Some(classes_per_batch), images_per_class), seed).unwrap()
}

/// Images of a random tree of three levels: the ids of each image, coarse → fine.
fn trees() -> impl Strategy<Value = Vec<[u32; 3]>> {
    let families = prop::collection::vec(prop::collection::vec(1..6_usize, 1..4), 1..4);
    prop::collection::vec(families, 2..5).prop_map(|orders| {
        let (mut rows, mut family, mut species) = (Vec::new(), 0, 0);
        for (order, families) in (0..).zip(orders) {
            for sizes in families {
                for size in sizes {
                    rows.extend(vec![[order, family, species]; size]);
                    species += 1;
                }
                family += 1;
            }
        }
        rows
    })
}

const LEVELS: [&str; 3] = ["order", "family", "species"];

fn tree_sampler(rows: &[[u32; 3]], config: &SamplerConfig, seed: u64) -> Result<Sampler> {
    let labels = Labels::new(3, rows.concat()).unwrap();
    let items: Vec<usize> = (0..rows.len()).collect();
    Sampler::new(&items, &labels, &LEVELS.map(str::to_owned), config, seed)
}

fn count_by<K: Ord>(items: &[usize], key: impl Fn(usize) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for &item in items {
        *counts.entry(key(item)).or_default() += 1;
    }
    counts
}

proptest! {
    #[test]
    fn every_sampler_is_a_function_of_seed_epoch_and_step(rows in trees(), seed: u64, epoch in 0..9_u64) {
        for config in [config(Some(1), 4), classes_of("family", 1, 4), pairs(None, 4, 5, None), random(2)] {
            let one = tree_sampler(&rows, &config, seed).unwrap();
            let other = tree_sampler(&rows, &config, seed).unwrap();
            let steps = one.steps_per_epoch();
            let forward: Vec<_> = (0..steps).map(|step| one.batch(epoch, step)).collect();
            let mut backward: Vec<_> = (0..steps).rev().map(|step| other.batch(epoch, step)).collect();
            backward.reverse();
            prop_assert_eq!(forward, backward);
        }
    }

    #[test]
    fn images_of_a_coarse_class_are_spread_evenly_over_its_children(
        rows in trees(), images in 1..12_usize, seed: u64,
    ) {
        let batch = tree_sampler(&rows, &classes_of("order", 2, images), seed).unwrap().batch(0, 0);
        prop_assert_eq!(batch.len(), 2 * images);
        let all: Vec<usize> = (0..rows.len()).collect();
        let drawn = count_by(&batch, |item| item);
        for order in batch.chunks(images) {
            prop_assert!(order.iter().all(|&item| rows[item][0] == rows[order[0]][0]));
            let size = rows.iter().filter(|row| row[0] == rows[order[0]][0]).count();
            for item in all.iter().filter(|&&item| rows[item][0] == rows[order[0]][0]) {
                let times = drawn.get(item).copied().unwrap_or(0);
                prop_assert!((images / size..=images.div_ceil(size)).contains(&times), "{} of {}", times, size);
            }
            // Only without repeats can the shares of two children be compared.
            if images <= size {
                for level in [1, 2] {
                    let shares = count_by(order, |item| rows[item][level]);
                    let sizes = count_by(&all, |item| rows[item][level]);
                    let siblings = |a: u32, b: u32| {
                        let above = |id| rows.iter().find(|row| row[level] == id).map(|row| row[level - 1]);
                        above(a) == above(b)
                    };
                    for (&one, &size) in &sizes {
                        let share = shares.get(&one).copied().unwrap_or(0);
                        for (&other, &others) in shares.iter().filter(|&(&other, _)| siblings(one, other)) {
                            prop_assert!(share == size || others <= share + 1, "{one}: {share}, {other}: {others}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_epoch_of_pairs_has_every_pair_equally_often(rows in trees(), per_pair in 1..4_usize, seed: u64) {
        let sampler = tree_sampler(&rows, &pairs(Some(4), 3, per_pair, None), seed).unwrap();
        let orders = rows.iter().map(|row| row[0]).collect::<BTreeSet<_>>().len();
        prop_assert_eq!(sampler.steps_per_epoch(), per_pair * orders * (orders - 1) / 2);
        let mut pairs = BTreeMap::<Vec<u32>, usize>::new();
        for step in 0..sampler.steps_per_epoch() {
            let batch = sampler.batch(1, step);
            let species = count_by(&batch, |item| rows[item][2]);
            prop_assert!(species.values().all(|&images| images == 3), "K images of each finest class");
            let classes = count_by(&batch, |item| rows[item][0]);
            for (&order, &images) in &classes {
                let has = rows.iter().filter(|row| row[0] == order).map(|row| row[2]).collect::<BTreeSet<_>>().len();
                prop_assert_eq!(images, 3 * has.min(2), "half of the classes, or all that it has");
            }
            *pairs.entry(classes.into_keys().collect()).or_default() += 1;
        }
        prop_assert!(pairs.keys().all(|pair| pair.len() == 2));
        prop_assert_eq!(pairs.len(), orders * (orders - 1) / 2);
        prop_assert!(pairs.values().all(|&times| times == per_pair));
    }

    #[test]
    fn a_random_epoch_has_no_image_twice_and_leaves_out_less_than_a_batch(
        images in 1..60_usize, batch in 1..20_usize, seed: u64,
    ) {
        let batch = batch.min(images);
        let sampler = try_sampler(&vec![0; images], &random(batch), seed).unwrap();
        let batches: Vec<_> = (0..sampler.steps_per_epoch()).map(|step| sampler.batch(2, step)).collect();
        prop_assert!(batches.iter().all(|items| items.len() == batch));
        let different: BTreeSet<usize> = batches.concat().into_iter().collect();
        prop_assert_eq!(different.len(), batches.len() * batch);
        prop_assert!(images - different.len() < batch);
    }
}

#[test]
fn random_batches_draw_all_images_equally_often() {
    let sampler = try_sampler(&classes(), &random(4), 0).unwrap();
    let drawn: Vec<usize> = (0..300)
        .flat_map(|epoch| (0..sampler.steps_per_epoch()).flat_map(move |step| [(epoch, step)]))
        .flat_map(|(epoch, step)| sampler.batch(epoch, step))
        .collect();
    let times = count_by(&drawn, |item| item);
    assert_eq!(times.len(), 75);
    let expected = drawn.len() / 75;
    assert!(times.values().all(|times| times.abs_diff(expected) < expected / 10), "{times:?}");
}

#[test]
fn pairs_draw_all_classes_of_a_parent_equally_often() {
    // Two orders with 6 and 9 species of 4 images.
    let rows: Vec<[u32; 3]> =
        (0..60).map(|item| [u32::from(item >= 24), u32::from(item >= 24), item / 4]).collect();
    let sampler = tree_sampler(&rows, &pairs(Some(6), 2, 5, None), 0).unwrap();
    let drawn: Vec<usize> = (0..400)
        .flat_map(|epoch| (0..sampler.steps_per_epoch()).map(move |step| (epoch, step)))
        .flat_map(|(epoch, step)| sampler.batch(epoch, step))
        .collect();
    for (species, images) in count_by(&drawn, |item| rows[item][2]) {
        let expected = drawn.len() / 2 / if species < 6 { 6 } else { 9 };
        assert!(images.abs_diff(expected) < expected / 10, "{species}: {images} around {expected}");
    }
}

#[test]
fn a_whole_set_is_a_random_batch_of_all_images_in_every_step() {
    let whole = try_sampler(&classes(), &SamplerConfig::WholeSet {}, 3).unwrap();
    let images = classes().len();
    let random = try_sampler(&classes(), &random(images), 3).unwrap();
    assert_eq!((whole.batch_size(), whole.largest_batch(), whole.steps_per_epoch()), (images, images, 1));
    for epoch in 0..3 {
        let batch = whole.batch(epoch, 0);
        assert_eq!(batch, random.batch(epoch, 0));
        assert_eq!(batch.into_iter().collect::<BTreeSet<_>>().len(), images);
    }

    let large: Vec<u32> = (0..65_537).map(|item| item % 2).collect();
    assert!(try_sampler(&large[1..], &SamplerConfig::WholeSet {}, 0).is_ok());
    let (message, hint) = parts(&try_sampler(&large, &SamplerConfig::WholeSet {}, 0).unwrap_err());
    assert!(message.ends_with("the training split has 65,537 images, and a batch has at most 65,536"));
    assert!(hint.unwrap().starts_with("use `random`"));
}

#[test]
fn more_images_than_there_are_and_a_single_parent_are_refused() {
    assert_eq!(
        try_sampler(&[0, 1], &SamplerConfig::Random { batch_size: None }, 0).unwrap().batch_size(),
        2,
        "the default is at most all images"
    );
    let (message, hint) = parts(&try_sampler(&[0, 1], &random(3), 0).unwrap_err());
    assert_eq!(message, "sampler.batch_size is 3, but the training split has 2 images");
    assert_eq!(hint.unwrap(), "set it to at most 2");

    let error = tree_sampler(&[[0, 0, 0], [0, 1, 1]], &pairs(None, 4, 5, None), 0).unwrap_err();
    let (message, hint) = parts(&error);
    assert_eq!(message, "the training split has only one class of the level order, so there are no pairs");
    assert!(hint.unwrap().starts_with("set sampler.level to a finer level"));
}

#[test]
fn pairs_of_small_classes_give_smaller_batches_and_say_so() {
    let rows = [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 2, 2], [1, 2, 2]];
    let config = pairs(Some(4), 2, 5, None);
    let sampler = tree_sampler(&rows, &config, 0).unwrap();
    assert_eq!((sampler.batch_size(), sampler.batch(0, 0).len()), (8, 6));
    assert_eq!(
        sampler.remarks(&config),
        [
            "smaller batches: 1 of 2 classes of the level order has fewer than 2 finest classes",
            "with repeats: 1 of 3 classes has fewer than 2 images",
        ]
    );
    // The level `family` has three classes, so there are three pairs.
    let families = pairs(Some(4), 2, 5, Some("family"));
    assert_eq!(tree_sampler(&rows, &families, 0).unwrap().steps_per_epoch(), 3 * 5);
}

#[test]
fn an_epoch_of_too_many_batches_of_pairs_is_refused() {
    let rows: Vec<[u32; 3]> = (0..24).map(|class| [class; 3]).collect();
    let pairs = |batches_per_pair| pairs(None, 4, batches_per_pair, None);
    assert_eq!(tree_sampler(&rows, &pairs(60_000), 0).unwrap().steps_per_epoch(), 276 * 60_000);
    for batches_per_pair in [65_536, usize::MAX] {
        let error = tree_sampler(&rows, &pairs(batches_per_pair), 0).unwrap_err();
        let (message, hint) = parts(&error);
        assert_eq!(
            message,
            format!(
                "sampler.batches_per_pair is {batches_per_pair}, and the level order has 276 pairs: an epoch is too long"
            )
        );
        assert!(hint.unwrap().starts_with("give fewer batches per pair"));
    }
}

/// The orders of the published trainings.
#[test]
fn the_order_of_an_epoch_does_not_depend_on_the_epoch_before() {
    let items: Vec<usize> = (100..110).collect();
    let labels = Labels::new(1, (0..110).collect()).unwrap();
    let random = Sampler::new(&items, &labels, &["class".into()], &random(4), 11).unwrap();
    let rows: Vec<[u32; 3]> = (0..12).map(|item| [item / 3, item / 3, item]).collect();
    let pairs = tree_sampler(&rows, &pairs(Some(2), 1, 5, None), 11).unwrap();
    for (epoch, step) in [(0, 0), (3, 1), (0, 1), (3, 0)] {
        let mut expected = items.clone();
        expected.shuffle(&mut stream(11, "sampler/items", &[epoch]));
        assert_eq!(random.batch(epoch, step), expected[4 * step..][..4]);

        let mut order: Vec<usize> = (0..6 * 5).collect();
        order.shuffle(&mut stream(11, "sampler/pairs", &[epoch]));
        let parents = [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]][order[step] / 5];
        let batch = pairs.batch(epoch, step);
        assert_eq!([rows[batch[0]][0], rows[batch[1]][0]], parents);
    }
}

/// The algorithm of the published trainings.
#[test]
fn batches_of_finest_classes_are_drawn_class_by_class() {
    let (classes, sampler) = (classes(), sampler(4, 5, 11));
    let mut items_of = vec![Vec::new(); 10];
    for (item, &class) in classes.iter().enumerate() {
        items_of[class as usize].push(item);
    }
    for (epoch, step) in [(0, 0), (0, 1), (0, 2), (3, 5)] {
        let mut order: Vec<usize> = (0..10).collect();
        order.shuffle(&mut stream(11, "sampler/classes", &[epoch, step as u64 / 2]));
        let mut rng = stream(11, "sampler/images", &[epoch, step as u64]);
        let mut expected = Vec::new();
        for &class in &order[step % 2 * 4..][..4] {
            let mut drawn = Vec::new();
            while drawn.len() < 5 {
                let mut left: Vec<usize> = items_of[class].clone();
                let (some, _) = left.partial_shuffle(&mut rng, 5 - drawn.len());
                drawn.extend_from_slice(some);
            }
            expected.extend(drawn);
        }
        assert_eq!(sampler.batch(epoch, step), expected);
    }
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
        let labels = Labels::new(1, vec![0; 10 + size]).unwrap();
        let class = Class::at_level(&items, &labels, 1).remove(0);
        let drawn = class.draw(4, &mut rng);
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
fn images_of_unknown_class_are_drawn_about_as_often_as_others() {
    // 10 species with 10 images each, and 8 families with 1 to 8 images of unknown species.
    let known = (0..100).map(|item| [item / 10, item / 10]);
    let unknown = (0..8).flat_map(|family| vec![[family, UNKNOWN]; family as usize + 1]);
    let rows: Vec<[u32; 2]> = known.chain(unknown).collect();
    let labels = Labels::new(2, rows.concat()).unwrap();
    let items: Vec<usize> = (0..rows.len()).collect();
    let names = ["family", "species"].map(str::to_owned);
    let sampler = Sampler::new(&items, &labels, &names, &config(Some(7), 2), 0).unwrap();
    let mut drawn = vec![0.0; rows.len()];
    for epoch in 0..400 {
        for step in 0..sampler.steps_per_epoch() {
            let batch = sampler.batch(epoch, step);
            let groups: BTreeSet<_> = batch.chunks(2).map(|pair| rows[pair[0]]).collect();
            assert_eq!(groups.len(), 7, "no class is drawn twice");
            batch.into_iter().for_each(|item| drawn[item] += 1.0);
        }
    }
    let mean = |items: &[f64]| items.iter().sum::<f64>() / items.len() as f64;
    let often = mean(&drawn[..100]);
    assert!((mean(&drawn[100..]) / often - 1.0).abs() < 0.25, "{} {often}", mean(&drawn[100..]));
    assert!(drawn.iter().all(|&times| times > 0.3 * often), "every image is drawn");
}

#[test]
fn images_of_unknown_class_are_drawn_about_as_often_as_others_above_the_finest_level_and_in_pairs() {
    // 4 families of 4 species with 6 images each, and 3 images of unknown species.
    let family = |family: u32| {
        let known = (0..24).map(move |image| [family, 4 * family + image / 6]);
        known.chain([[family, UNKNOWN]; 3])
    };
    let rows: Vec<[u32; 2]> = (0..4).flat_map(family).collect();
    let labels = Labels::new(2, rows.concat()).unwrap();
    let items: Vec<usize> = (0..rows.len()).collect();
    let names = ["family", "species"].map(str::to_owned);
    let level = Some("family".to_owned());
    let families =
        SamplerConfig::Classes { classes_per_batch: Some(2), images_per_class: 6, level: level.clone() };
    let pairs = SamplerConfig::ClassPairs {
        classes_per_batch: Some(6),
        images_per_class: 2,
        level,
        batches_per_pair: 2,
    };
    for config in [families, pairs] {
        let sampler = Sampler::new(&items, &labels, &names, &config, 0).unwrap();
        let mut drawn = vec![0.0; rows.len()];
        for epoch in 0..400 {
            for step in 0..sampler.steps_per_epoch() {
                let batch = sampler.batch(epoch, step);
                assert_eq!(BTreeSet::from_iter(&batch).len(), 12, "no image is drawn twice");
                batch.into_iter().for_each(|item| drawn[item] += 1.0);
            }
        }
        let often = drawn.iter().sum::<f64>() / rows.len() as f64;
        let mean = |unknown: bool| {
            let of_kind = drawn.iter().zip(&rows).filter(|(_, row)| (row[1] == UNKNOWN) == unknown);
            let (times, count) = of_kind.fold((0.0, 0), |(sum, count), (times, _)| (sum + times, count + 1));
            times / f64::from(count) / often
        };
        assert!((mean(true) - mean(false)).abs() < 0.2, "{} {} {config:?}", mean(true), mean(false));
    }
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
    let sampler =
        Sampler::new(&[0, 1, 3], &labels, &["kind".into(), "variety".into()], &config(None, 2), 0).unwrap();
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
    assert_eq!((sampler.classes_and_images(), sampler.remarks(&default)), (Some((16, 4)), vec![]));

    let sampler = try_sampler(&classes(), &default, 0).unwrap();
    assert_eq!(sampler.classes_and_images(), Some((10, 4)));
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
