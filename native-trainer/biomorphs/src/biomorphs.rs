//! The data set: the pictures, and the rows of its table of labels.

use akin_core::Result;
use akin_core::random::{normal, stream};
use image::RgbImage;
use rand_chacha::ChaCha8Rng;

use crate::config::BiomorphConfig;
use crate::family::{FamilyTree, Species, Split, family_tree};
use crate::scene::{draw, draw_alone};

/// A data set of drawn creatures. A picture is drawn when it is asked for.
///
/// Pictures are numbered from 0, species by species in the order of the family tree.
#[derive(Clone, Debug)]
pub struct Biomorphs {
    config: BiomorphConfig,
    tree: FamilyTree,
}

/// Where a picture belongs and what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// A relative path with `/` between folders and no spaces: `images/<level 1>/…/<level L>/000.png`.
    pub path: String,
    /// The class names, coarse to fine.
    pub labels: &'a [String],
    /// The split of its finest class.
    pub split: Split,
}

impl Biomorphs {
    /// Grows the family tree.
    ///
    /// # Errors
    ///
    /// A setting outside its range.
    pub fn new(config: BiomorphConfig) -> Result<Self> {
        config.validate()?;
        Ok(Self { tree: family_tree(&config), config })
    }

    /// The names of the levels, coarse to fine.
    pub fn levels(&self) -> &[String] {
        &self.tree.levels
    }

    /// The number of classes at each level, coarse to fine.
    pub fn classes(&self) -> Vec<usize> {
        let product_so_far = |product: &mut usize, &children: &usize| {
            *product *= children;
            Some(*product)
        };
        self.config.branching.iter().scan(1, product_so_far).collect()
    }

    /// The number of finest classes in a split.
    pub fn species(&self, split: Split) -> usize {
        self.tree.species.iter().filter(|species| species.split == split).count()
    }

    /// The number of pictures.
    pub fn pictures(&self) -> usize {
        self.tree.species.len() * self.config.images_per_class
    }

    /// The row of the picture `index` in a table of labels.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`Self::pictures`].
    pub fn row(&self, index: usize) -> Row<'_> {
        let (species, number) = self.species_and_number(index);
        let species = &self.tree.species[species];
        let folder = species.names.join("/").replace(' ', "_");
        let path = format!("images/{folder}/{number:03}.png");
        Row { path, labels: &species.names, split: species.split }
    }

    /// Draws the picture `index`.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`Self::pictures`].
    pub fn picture(&self, index: usize) -> RgbImage {
        let (species, number) = self.species_and_number(index);
        let species = &self.tree.species[species];
        draw(&species.genome, self.config.side, &mut self.stream("biomorph picture", species, number))
    }

    /// What can be measured of the individual in the picture `index`: its 24 genes, and the red, green and blue of its
    /// four colours (body, belly, marks, limbs). 36 numbers in 0 … 1, each with normal noise of this deviation.
    ///
    /// The body plan and the pattern are left out, so that the order can be known only from the families in it.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`Self::pictures`].
    pub fn measurements(&self, index: usize, deviation: f32) -> Vec<f32> {
        let (species, number) = self.species_and_number(index);
        let species = &self.tree.species[species];
        let colours = species.genome.species_palette().colours().concat();
        let exact = species.genome.genes().iter().chain(&colours);
        let noise = normal(&mut self.stream("biomorph measurements", species, number), 36, deviation);
        exact.zip(noise).map(|(value, noise)| (value + noise).clamp(0.0, 1.0)).collect()
    }

    /// The individual in the picture `index` alone, on paper of this colour (red, green, blue).
    ///
    /// # Panics
    ///
    /// If `index` is not below [`Self::pictures`].
    pub fn portrait(&self, index: usize, side: u32, paper: [u8; 3]) -> RgbImage {
        let (species, number) = self.species_and_number(index);
        let species = &self.tree.species[species];
        let mut rng = self.stream("biomorph picture", species, number);
        draw_alone(&species.genome, side, paper.map(|c| f32::from(c) / 255.0), &mut rng)
    }

    /// The named stream of random numbers of one individual.
    fn stream(&self, name: &str, species: &Species, number: usize) -> ChaCha8Rng {
        let position: Vec<u64> = species.place.iter().copied().chain([number as u64]).collect();
        stream(self.config.seed, name, &position)
    }

    fn species_and_number(&self, index: usize) -> (usize, usize) {
        (index / self.config.images_per_class, index % self.config.images_per_class)
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

    fn grow(config: BiomorphConfig) -> Biomorphs {
        Biomorphs::new(config).expect("the settings are in range")
    }

    fn mean(values: impl Iterator<Item = f32>) -> f32 {
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / count as f32
    }

    #[test]
    fn the_seed_decides_the_picture() {
        let config = small(&[3, 2]);
        let (first, second) = (grow(config.clone()), grow(config.clone()));
        assert_eq!(first.picture(7), second.picture(7));
        assert_ne!(first.picture(7), first.picture(6));
        assert_ne!(first.picture(7), grow(BiomorphConfig { seed: 8, ..config }).picture(7));
    }

    #[test]
    fn a_row_has_the_path_labels_and_split_of_its_picture() {
        let creatures = grow(small(&[2, 2]));
        assert_eq!(creatures.pictures(), 8);
        let (row, names) = (creatures.row(3), &creatures.tree.species[1].names);
        assert_eq!((row.labels, row.split), (&names[..], creatures.tree.species[1].split));
        assert_eq!(row.path, format!("images/{}/{}/001.png", names[0], names[1].replace(' ', "_")));
    }

    #[test]
    fn every_parent_has_species_in_both_splits() {
        let creatures = grow(BiomorphConfig { held_out: 0.01, ..small(&[3, 4, 5]) });
        for siblings in creatures.tree.species.chunks(5) {
            let count = |split| siblings.iter().filter(|species| species.split == split).count();
            assert_eq!((count(Split::Train), count(Split::Test)), (4, 1));
        }
        assert_eq!((creatures.species(Split::Train), creatures.species(Split::Test)), (48, 12));
        assert_eq!(grow(small(&[3, 1])).species(Split::Test), 0, "an only child is not held out");
    }

    #[test]
    fn siblings_are_closer_than_cousins_and_cousins_closer_than_strangers() {
        let species = grow(small(&[6, 5, 5])).tree.species;
        let distance_of_pairs_that_share = |levels: usize| {
            mean(species.iter().enumerate().flat_map(|(i, a)| {
                species[..i].iter().filter_map(move |b| {
                    let shared = a.names.iter().zip(&b.names).take_while(|(a, b)| a == b).count();
                    (shared == levels).then(|| a.genome.distance(&b.genome))
                })
            }))
        };
        let [strangers, cousins, siblings] = [0, 1, 2].map(distance_of_pairs_that_share);
        assert!(siblings < 0.8 * cousins && cousins < 0.8 * strangers, "{siblings} {cousins} {strangers}");
    }

    #[test]
    fn every_species_can_be_drawn_tiny_and_large() {
        for side in [16, 512] {
            let creatures = grow(BiomorphConfig { side, images_per_class: 1, ..small(&[10, 2, 2]) });
            for index in 0..creatures.pictures() {
                let picture = creatures.picture(index);
                assert_eq!(picture.dimensions(), (side, side));
                // A creature in front of a soft background: not a single tone.
                let (low, high) =
                    picture.pixels().fold((255, 0), |(low, high), p| (p[1].min(low), p[1].max(high)));
                let plan = creatures.tree.species[index].genome.plan;
                assert!(high - low > 60, "{plan:?} at {side}: {low} to {high}");
            }
        }
    }

    #[test]
    fn names_are_unique_at_each_level() {
        for branching in [&[90][..], &[12, 40], &[11, 6, 9], &[3, 3, 3, 5], &[2, 2, 2, 2, 2, 2, 2]] {
            let creatures = grow(small(branching));
            assert_eq!(creatures.levels().len(), branching.len());
            for (level, count) in creatures.classes().into_iter().enumerate() {
                let species = &creatures.tree.species;
                let names: HashSet<&str> = species.iter().map(|s| s.names[level].as_str()).collect();
                assert_eq!(names.len(), count, "level {} of {branching:?}", level + 1);
                assert!(names.iter().all(|name| name.is_ascii() && !name.contains(',')));
            }
        }
        assert_eq!(grow(small(&[2, 2, 2])).levels(), ["order", "family", "species"]);
    }
}
