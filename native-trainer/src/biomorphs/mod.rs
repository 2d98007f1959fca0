//! Biomorphs: drawn creatures that descend from one another, so that nothing needs a download.
//!
//! Their genes drift down a random family tree ([`family_tree`]), so that siblings look alike and cousins less
//! so. Coarse levels settle the body plan and the proportions, the finest one the colours, which all branches
//! draw from one pool: a model that goes by colour alone tells species apart, yet takes strangers for kin.
//! Each picture ([`draw`]) shows another pose, view, light and place. Everything follows from the seed.

mod body;
mod canvas;
mod family;
mod genome;
mod names;
mod palette;
mod plans;
mod scene;
mod shape;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use akin_core::random::stream;
use anyhow::Result;
use rayon::prelude::*;

use crate::files::write_atomic;
use crate::problem::{Advise, problem};

pub(crate) use self::{
    family::{FamilyTree, Species, Split, family_tree},
    scene::draw,
};

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BiomorphConfig {
    /// All else being equal, the same seed gives the same files.
    pub(crate) seed: u64,
    /// Children of each node, level by level, coarse to fine.
    pub(crate) branching: Vec<usize>,
    /// Pictures of each finest class.
    pub(crate) images_per_class: usize,
    /// Width and height of a picture, in pixels.
    pub(crate) side: u32,
    /// The part of the finest classes of each parent that is kept for the test, at least one on either side
    /// where there are two; 0 keeps none.
    pub(crate) held_out: f64,
}

impl Default for BiomorphConfig {
    fn default() -> Self {
        Self { seed: 0, branching: vec![4, 4, 6], images_per_class: 24, side: 64, held_out: 1.0 / 3.0 }
    }
}

/// More pictures than this are a slip of the keyboard.
const MOST_IMAGES: usize = 10_000_000;

impl BiomorphConfig {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Says which number is out of its range, and what the range is.
    pub(crate) fn validate(&self) -> Result<()> {
        let images =
            self.branching.iter().try_fold(self.images_per_class, |product, &n| product.checked_mul(n));
        if !(1..=12).contains(&self.branching.len()) || self.branching.contains(&0) {
            return Err(problem(
                format!("the branching {:?} describes no tree", self.branching),
                "give 1 to 12 numbers, each at least 1, such as 4,4,6",
            ));
        }
        if self.images_per_class == 0 {
            return Err(problem("there are no pictures per class", "give at least 1"));
        }
        if !(16..=2048).contains(&self.side) {
            return Err(problem(
                format!("pictures of {} pixels a side cannot be drawn well", self.side),
                "give a side of 16 to 2048",
            ));
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return Err(problem(
                format!("the held-out part is {}", self.held_out),
                "give a number from 0 up to, but not including, 1",
            ));
        }
        if images.is_none_or(|count| count > MOST_IMAGES) {
            return Err(problem(
                format!("that is more than {MOST_IMAGES} pictures"),
                "lower the branching or the pictures per class",
            ));
        }
        Ok(())
    }

    /// How many pictures it asks for.
    pub(crate) fn images(&self) -> usize {
        self.branching.iter().product::<usize>() * self.images_per_class
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Names of the levels, coarse to fine.
    pub(crate) levels: Vec<String>,
    /// Classes of each level.
    pub(crate) classes: Vec<usize>,
    /// Finest classes in the training split, and in the test split.
    pub(crate) species: [usize; 2],
    /// Pictures in the training split, and in the test split.
    pub(crate) images: [usize; 2],
}

/// The picture number `index` of a class.
pub(crate) fn picture(config: &BiomorphConfig, species: &Species, index: usize) -> image::RgbImage {
    let position: Vec<u64> = species.place.iter().copied().chain([index as u64]).collect();
    draw(&species.genome, config.side, &mut stream(config.seed, "biomorph picture", &position))
}

/// Writes `out/images/<level 1>/…/<level L>/000.png` and, when all pictures are there, `out/labels.csv` with
/// the columns path, one per level, split. `progress` hears how many pictures are done, from several threads.
/// The files do not depend on the number of threads.
///
/// # Errors
/// When the configuration is not valid, when `out` already holds `labels.csv` or `images`, or when a file
/// cannot be written.
pub(crate) fn write(config: &BiomorphConfig, out: &Path, progress: impl Fn(usize) + Sync) -> Result<Summary> {
    config.validate()?;
    for name in ["labels.csv", "images"] {
        let path = out.join(name);
        if path.exists() {
            return Err(problem(
                format!("{} is there already, and is not overwritten", path.display()),
                "choose another directory",
            ));
        }
    }
    let tree = family_tree(config);
    let folders: Vec<String> = tree.species.iter().map(|species| folder(&species.names)).collect();
    for folder in &folders {
        let path = out.join(folder);
        fs::create_dir_all(&path)
            .advise(|| format!("{} cannot be made", path.display()), "check the path and its permissions")?;
    }
    let done = AtomicUsize::new(0);
    let count = config.images_per_class;
    (0..tree.species.len() * count).into_par_iter().try_for_each(|i| {
        let path = out.join(picture_path(&folders[i / count], i % count));
        picture(config, &tree.species[i / count], i % count).save(&path).advise(
            || format!("{} was not written", path.display()),
            "free some space or check the permissions",
        )?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        anyhow::Ok(())
    })?;
    write_labels(&tree, &folders, count, &out.join("labels.csv"))?;
    Ok(summary(config, &tree))
}

fn write_labels(tree: &FamilyTree, folders: &[String], count: usize, path: &Path) -> Result<()> {
    let mut table = csv::Writer::from_writer(vec![]);
    table
        .write_record(["path"].into_iter().chain(tree.levels.iter().map(String::as_str)).chain(["split"]))?;
    for (species, folder) in tree.species.iter().zip(folders) {
        for i in 0..count {
            let file = picture_path(folder, i);
            let names = species.names.iter().map(String::as_str);
            table.write_record([file.as_str()].into_iter().chain(names).chain([species.split.name()]))?;
        }
    }
    let bytes = table.into_inner()?;
    write_atomic(path, |file| file.write_all(&bytes))
}

/// Class names as folders, without the spaces that trouble shells.
fn folder(names: &[String]) -> String {
    format!("images/{}", names.join("/").replace(' ', "_"))
}

fn picture_path(folder: &str, index: usize) -> String {
    format!("{folder}/{index:03}.png")
}

fn summary(config: &BiomorphConfig, tree: &FamilyTree) -> Summary {
    let classes = config
        .branching
        .iter()
        .scan(1, |product, &n| {
            *product *= n;
            Some(*product)
        })
        .collect();
    let test = tree.species.iter().filter(|species| species.split == Split::Test).count();
    let species = [tree.species.len() - test, test];
    Summary {
        levels: tree.levels.clone(),
        classes,
        species,
        images: species.map(|count| count * config.images_per_class),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn small(branching: &[usize]) -> BiomorphConfig {
        BiomorphConfig {
            seed: 7,
            branching: branching.to_vec(),
            images_per_class: 2,
            side: 24,
            held_out: 0.33,
        }
    }

    fn mean(values: impl Iterator<Item = f32>) -> f32 {
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / count as f32
    }

    #[test]
    fn the_same_seed_draws_the_same_picture_and_another_seed_another() {
        let config = small(&[3, 2]);
        let (a, b) = (family_tree(&config), family_tree(&config));
        assert_eq!(picture(&config, &a.species[3], 1), picture(&config, &b.species[3], 1));
        assert_ne!(picture(&config, &a.species[3], 1), picture(&config, &a.species[3], 0));
        let other = BiomorphConfig { seed: 8, ..config.clone() };
        assert_ne!(picture(&config, &a.species[3], 1), picture(&other, &family_tree(&other).species[3], 1));
    }

    #[test]
    fn files_do_not_depend_on_the_number_of_threads() {
        let config = small(&[2, 2]);
        let written = [1, 4].map(|threads| {
            let out = tempfile::tempdir().expect("a temporary directory");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads");
            pool.install(|| write(&config, out.path(), |_| ())).expect("the data set is written");
            let table = fs::read_to_string(out.path().join("labels.csv")).expect("the table is there");
            let pictures: Vec<Vec<u8>> = table
                .lines()
                .skip(1)
                .map(|line| line.split(',').next().expect("the path comes first"))
                .map(|path| fs::read(out.path().join(path)).expect("the picture is there"))
                .collect();
            assert_eq!(pictures.len(), config.images());
            (table, pictures)
        });
        assert!(written[0] == written[1]);
    }

    #[test]
    fn a_directory_that_is_in_use_is_left_alone() {
        let out = tempfile::tempdir().expect("a temporary directory");
        fs::write(out.path().join("labels.csv"), "mine").expect("a file is written");
        let error = write(&small(&[2]), out.path(), |_| ()).expect_err("it is refused");
        assert!(error.to_string().contains("not overwritten"));
        assert_eq!(fs::read_to_string(out.path().join("labels.csv")).expect("still there"), "mine");
    }

    #[test]
    fn every_parent_has_species_in_both_splits_and_no_species_is_in_both() {
        let tree = family_tree(&BiomorphConfig { held_out: 0.01, ..small(&[3, 4, 5]) });
        for siblings in tree.species.chunks(5) {
            let count = |split| siblings.iter().filter(|species| species.split == split).count();
            assert_eq!((count(Split::Train), count(Split::Test)), (4, 1));
        }
        // The split belongs to the class, and class names are unique (tested below), so no class is in both.
        let only_children = family_tree(&small(&[3, 1]));
        assert!(only_children.species.iter().all(|species| species.split == Split::Train));
    }

    #[test]
    fn siblings_are_closer_than_cousins_and_cousins_closer_than_strangers() {
        let tree = family_tree(&small(&[6, 5, 5]));
        let pairs = |shared: usize| {
            let species = &tree.species;
            mean(species.iter().enumerate().flat_map(|(i, a)| {
                species[..i].iter().filter_map(move |b| {
                    let same = a.names.iter().zip(&b.names).take_while(|(a, b)| a == b).count();
                    (same == shared).then(|| a.genome.distance(&b.genome))
                })
            }))
        };
        let (siblings, cousins, strangers) = (pairs(2), pairs(1), pairs(0));
        assert!(siblings < 0.8 * cousins && cousins < 0.8 * strangers, "{siblings} {cousins} {strangers}");
    }

    #[test]
    fn every_class_can_be_drawn_tiny_and_large() {
        let config = small(&[10, 2, 2]);
        for species in &family_tree(&config).species {
            for side in [16, 512] {
                let picture = picture(&BiomorphConfig { side, ..config.clone() }, species, 0);
                assert_eq!(picture.dimensions(), (side, side));
                // A creature in front of a soft background: not a single tone.
                let (low, high) =
                    picture.pixels().fold((255, 0), |(low, high), p| (p[1].min(low), p[1].max(high)));
                assert!(high - low > 60, "{:?} at {side}: {low} to {high}", species.genome.plan);
            }
        }
    }

    #[test]
    fn names_are_unique_at_each_level_and_tell_the_rank() {
        for branching in [&[90][..], &[12, 40], &[11, 6, 9], &[3, 3, 3, 5], &[2, 2, 2, 2, 2, 2, 2]] {
            let tree = family_tree(&small(branching));
            assert_eq!(tree.levels.len(), branching.len());
            let mut expected = 1;
            for (level, &count) in branching.iter().enumerate() {
                expected *= count;
                let names: HashSet<&str> = tree.species.iter().map(|s| s.names[level].as_str()).collect();
                assert_eq!(names.len(), expected, "level {} of {branching:?}", level + 1);
                assert!(names.iter().all(|name| name.is_ascii() && !name.contains(',')));
            }
        }
        assert_eq!(family_tree(&small(&[2, 2, 2])).levels, ["order", "family", "species"]);
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_their_range() {
        let good = small(&[2, 2]);
        for (bad, word) in [
            (BiomorphConfig { branching: vec![], ..good.clone() }, "branching"),
            (BiomorphConfig { branching: vec![3, 0], ..good.clone() }, "branching"),
            (BiomorphConfig { branching: vec![usize::MAX, 2], ..good.clone() }, "more than"),
            (BiomorphConfig { images_per_class: 0, ..good.clone() }, "at least 1"),
            (BiomorphConfig { side: 8, ..good.clone() }, "16 to 2048"),
            (BiomorphConfig { held_out: 1.0, ..good.clone() }, "held-out"),
            (BiomorphConfig { held_out: f64::NAN, ..good.clone() }, "held-out"),
        ] {
            let (message, hint) = crate::problem::parts(&bad.validate().expect_err("it is refused"));
            assert!(format!("{message}; {hint:?}").contains(word), "{message}");
        }
    }
}
