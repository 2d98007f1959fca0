//! The family tree: names and genomes of all classes.

use akin_core::random::stream;
use rand::seq::SliceRandom;

use super::{
    BiomorphConfig,
    genome::Genome,
    names::{self, Genus, Names},
};

/// Which split a fine class belongs to: all of its images go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Learnt from.
    Train,
    /// Kept for the evaluation: never seen in training, though its kin were.
    Test,
}

impl Split {
    /// As the label table writes it.
    pub(crate) fn name(self) -> &'static str {
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
    /// Its place in the tree: the child's number at each level.
    pub(crate) place: Vec<u64>,
    /// What it inherited.
    pub(crate) genome: Genome,
    /// The split that all of its images belong to.
    pub(crate) split: Split,
}

/// The whole tree, as its leaves.
#[derive(Clone, Debug)]
pub(crate) struct FamilyTree {
    /// Names of the levels, coarse to fine.
    pub(crate) levels: Vec<String>,
    /// The finest classes, in order of the tree.
    pub(crate) species: Vec<Species>,
}

/// The tree that the configuration describes.
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
                    child.names.push(names::of_rank(&stem, depth - level));
                    child_stems.push(stem);
                }
                children.push(child);
            }
            if level == depth {
                let held_out = held_out(count, config.held_out);
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

/// How many of `count` siblings are held out: the fraction, rounded, but one on either side when possible.
fn held_out(count: usize, fraction: f64) -> usize {
    if fraction == 0.0 || count < 2 {
        return 0;
    }
    ((count as f64 * fraction).round() as usize).clamp(1, count - 1)
}
