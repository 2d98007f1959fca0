//! The family tree: names and genomes of all classes.

use akin_core::random::stream;
use rand::seq::SliceRandom;

use crate::{
    config::BiomorphConfig,
    genome::Genome,
    names::{self, Genus, Names},
};

/// The split of a finest class. All of its pictures belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Used for training.
    Train,
    /// Kept for evaluation. Training never sees it, only its relatives.
    Test,
}

impl Split {
    /// The name in the table of labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// A finest class.
#[derive(Clone, Debug)]
pub(crate) struct Species {
    /// Its class names, coarse to fine.
    pub(crate) names: Vec<String>,
    /// Its path in the tree: the number of the child at each level.
    pub(crate) place: Vec<u64>,
    /// Its genes.
    pub(crate) genome: Genome,
    /// Its split.
    pub(crate) split: Split,
}

/// The whole tree, given by its leaves.
#[derive(Clone, Debug)]
pub(crate) struct FamilyTree {
    /// Names of the levels, coarse to fine.
    pub(crate) levels: Vec<String>,
    /// The finest classes, in the order of the tree.
    pub(crate) species: Vec<Species>,
}

/// Grows the tree that the config describes.
pub(crate) fn family_tree(config: &BiomorphConfig) -> FamilyTree {
    let depth = config.branching.len();
    let mut names = Names::default();
    let mut nodes =
        vec![Species { names: vec![], place: vec![], genome: Genome::ancestor(), split: Split::Train }];
    let mut stems = vec!["Biomorph".to_owned()];
    for (level, &count) in (1..).zip(&config.branching) {
        let (mut children, mut child_stems) = (vec![], vec![]);
        for (node, stem) in nodes.iter().zip(&stems) {
            let mut rng = stream(config.seed, "biomorph family", &node.place);
            let genomes = node.genome.children(count, level, depth, &mut rng);
            let genus = Genus::new(stem.clone(), &mut rng);
            for (i, genome) in genomes.into_iter().enumerate() {
                let mut child = Species { genome, ..node.clone() };
                child.place.push(i as u64);
                if level == depth {
                    child.names.push(names.species(&genus, &child.genome, &mut rng));
                } else {
                    let stem = match level {
                        1 => names.plan_stem(child.genome.plan, &mut rng),
                        _ => names.stem(&mut rng),
                    };
                    child.names.push(names::class_name(&stem, depth - level));
                    child_stems.push(stem);
                }
                children.push(child);
            }
            if level == depth {
                let held_out = held_out_count(count, config.held_out);
                let mut tests: Vec<usize> = (0..count).collect();
                tests.shuffle(&mut rng);
                let first = children.len() - count;
                for &i in &tests[..held_out] {
                    children[first + i].split = Split::Test;
                }
            }
        }
        (nodes, stems) = (children, child_stems);
    }
    FamilyTree { levels: names::levels(depth), species: nodes }
}

/// How many of `count` siblings go to the test split: the rounded share, with at least one sibling in either
/// split where there are two.
fn held_out_count(count: usize, fraction: f64) -> usize {
    if fraction == 0.0 || count < 2 {
        return 0;
    }
    ((count as f64 * fraction).round() as usize).clamp(1, count - 1)
}
