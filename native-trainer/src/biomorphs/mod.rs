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
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;

pub use self::{
    family::{FamilyTree, Species, Split, family_tree},
    genome::{Gene, Genome, Pattern, Plan},
    scene::draw,
};

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct BiomorphConfig {
    /// All else being equal, the same seed gives the same files.
    pub seed: u64,
    /// Children of each node, level by level, coarse to fine.
    pub branching: Vec<usize>,
    /// Pictures of each finest class.
    pub images_per_class: usize,
    /// Width and height of a picture, in pixels.
    pub side: u32,
    /// The part of the finest classes of each parent that is kept for the test, at least one on either side
    /// where there are two; 0 keeps none.
    pub held_out: f64,
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
    pub fn validate(&self) -> Result<()> {
        ensure!(
            (1..=12).contains(&self.branching.len()) && self.branching.iter().all(|&n| n >= 1),
            "the branching {:?} describes no tree: give 1 to 12 numbers, each at least 1, such as 4,4,6",
            self.branching
        );
        ensure!(self.images_per_class >= 1, "no pictures per class: give at least 1");
        ensure!(
            (16..=2048).contains(&self.side),
            "pictures of {} pixels a side cannot be drawn well: give 16 to 2048",
            self.side
        );
        ensure!(
            (0.0..1.0).contains(&self.held_out),
            "the held-out part is {}: give a number from 0 up to, but not including, 1",
            self.held_out
        );
        let images =
            self.branching.iter().try_fold(self.images_per_class, |product, &n| product.checked_mul(n));
        ensure!(
            images.is_some_and(|count| count <= MOST_IMAGES),
            "that is more than {MOST_IMAGES} pictures: lower the branching or the pictures per class"
        );
        Ok(())
    }

    /// How many pictures it asks for.
    pub fn images(&self) -> usize {
        self.branching.iter().product::<usize>() * self.images_per_class
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Names of the levels, coarse to fine.
    pub levels: Vec<String>,
    /// Classes of each level.
    pub classes: Vec<usize>,
    /// Finest classes in the training split, and in the test split.
    pub species: [usize; 2],
    /// Pictures in the training split, and in the test split.
    pub images: [usize; 2],
}

/// The picture number `index` of a class.
pub fn picture(config: &BiomorphConfig, species: &Species, index: usize) -> image::RgbImage {
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
pub fn write(config: &BiomorphConfig, out: &Path, progress: impl Fn(usize) + Sync) -> Result<Summary> {
    config.validate()?;
    for name in ["labels.csv", "images"] {
        let path = out.join(name);
        if path.exists() {
            bail!("{} is there already, and is not overwritten: choose another directory", path.display());
        }
    }
    let tree = family_tree(config);
    let folders: Vec<String> = tree.species.iter().map(|species| folder(&species.names)).collect();
    for folder in &folders {
        let path = out.join(folder);
        fs::create_dir_all(&path).with_context(|| {
            format!("cannot make the directory {}: check where --out points", path.display())
        })?;
    }
    let done = AtomicUsize::new(0);
    let count = config.images_per_class;
    (0..tree.species.len() * count).into_par_iter().try_for_each(|i| {
        let path = out.join(picture_path(&folders[i / count], i % count));
        picture(config, &tree.species[i / count], i % count)
            .save(&path)
            .with_context(|| format!("cannot write {}: check the free space", path.display()))?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        anyhow::Ok(())
    })?;
    write_labels(&tree, &folders, count, &out.join("labels.csv"))?;
    Ok(summary(config, &tree))
}

fn write_labels(tree: &FamilyTree, folders: &[String], count: usize, path: &Path) -> Result<()> {
    let problem = || format!("cannot write {}: check the free space", path.display());
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
    fs::write(path, table.into_inner()?).with_context(problem)
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
