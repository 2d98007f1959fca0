//! Miners choose the pairs and triplets that a loss uses: one miner a file, and one [`CATALOGUE`] that names them all.
//!
//! A miner reads [`Candidates`]: the queries of a batch, the items that they are compared with, and the cosines between
//! them. It chooses pairs (query, item) or triplets (query, positive, negative): [`Mined`]. Positives are the items of
//! the query's fine class without the query itself, negatives the items of the other classes. The result is a multiset,
//! and every loss of pairs or triplets accepts either form:
//!
//! - a triplet is the two pairs of its query with its positive and with its negative;
//! - pairs are the triplets of each positive with each negative of the same query.
//!
//! Distances are Euclidean, between embeddings of unit length: d² = 2 − 2 cos. The choice has no gradient: a loss is
//! differentiated with its pairs or triplets fixed, and jumps where the choice changes.
//!
//! Miners are plain Rust on the CPU, because comparing and drawing gains nothing from an accelerator.
//!
//! # How to add a miner
//!
//! 1. Write its file: a page, a serde struct with `deny_unknown_fields` and `default`, and its `Mine`.
//! 2. Name it in this file: `mod`, `pub use`, and its line in the list of miners.

mod all;
mod batch_easy_hard_miner;
mod batch_hard_miner;
mod distance_weighted_miner;
mod multi_similarity_miner;
mod triplet_margin_miner;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::taxonomy::Labels;
use crate::{Checked, Result};

pub use all::All;
pub use batch_easy_hard_miner::{BatchEasyHardMiner, Strategy};
pub use batch_hard_miner::BatchHardMiner;
pub use distance_weighted_miner::DistanceWeightedMiner;
pub use multi_similarity_miner::MultiSimilarityMiner;
pub use triplet_margin_miner::{TripletMarginMiner, TypeOfTriplets};

/// The queries and items that a miner chooses from.
#[derive(Clone, Debug)]
pub struct Candidates {
    partners: Vec<Partners>,
    /// [Q, M], row-major.
    cosines: Vec<f64>,
    items: usize,
    dimension: usize,
}

/// The items that one query is paired with, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partners {
    /// Items of the query's fine class, without the query itself.
    pub positives: Vec<usize>,
    /// Items of the other fine classes.
    pub negatives: Vec<usize>,
}

/// A query and two items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Triplet {
    /// The index of the query.
    pub query: usize,
    /// An item of its class.
    pub positive: usize,
    /// An item of another class.
    pub negative: usize,
}

/// The choice of a miner: a multiset of pairs or of triplets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mined {
    /// The partners of each query.
    Pairs(Vec<Partners>),
    /// Triplets, in any order.
    Triplets(Vec<Triplet>),
}

impl Candidates {
    /// Queries and items with these fine classes, embedded in `dimension` numbers, and their cosines [Q, M], row-major.
    /// If the queries are among the items, item `own` + i is query i itself.
    ///
    /// # Panics
    ///
    /// If there is not one cosine for each query and item.
    pub fn new(
        queries: &[u32],
        items: &[u32],
        own: Option<usize>,
        cosines: Vec<f64>,
        dimension: usize,
    ) -> Self {
        assert_eq!(cosines.len(), queries.len() * items.len(), "one cosine for each query and item");
        let partners = |(query, class): (usize, &u32)| {
            let others = (0..items.len()).filter(|&item| own.is_none_or(|own| own + query != item));
            let (positives, negatives) = others.partition(|&item| items[item] == *class);
            Partners { positives, negatives }
        };
        let partners = queries.iter().enumerate().map(partners).collect();
        Self { partners, cosines, items: items.len(), dimension }
    }

    /// As [`new`](Self::new), from the labels of queries and items. A pair that is not decided at the finest level is
    /// neither positive nor negative.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn from_labels(
        queries: &Labels,
        items: &Labels,
        own: Option<usize>,
        cosines: Vec<f64>,
        dimension: usize,
    ) -> Self {
        let finest = items.levels();
        let all = Self::new(&queries.column(finest), &items.column(finest), own, cosines, dimension);
        if queries.are_classes() && items.are_classes() {
            return all;
        }
        let partners = |query: usize| {
            let others = (0..items.len()).filter(|&item| own.is_none_or(|own| own + query != item));
            let share = |item: usize| queries.shared(query, items, item).share(finest);
            let decided = others.filter_map(|item| Some((item, share(item)?)));
            let (positives, negatives): (Vec<_>, Vec<_>) = decided.partition(|(_, same)| *same);
            let [positives, negatives] =
                [positives, negatives].map(|side| side.into_iter().map(|(item, _)| item).collect());
            Partners { positives, negatives }
        };
        Self { partners: (0..queries.len()).map(partners).collect(), ..all }
    }

    /// Each query with all its positives and negatives.
    pub fn partners(&self) -> impl Iterator<Item = (usize, &Partners)> {
        self.partners.iter().enumerate()
    }

    /// The cosine of a query and an item.
    pub fn cosine(&self, query: usize, item: usize) -> f64 {
        self.cosines[query * self.items + item]
    }

    /// Their Euclidean distance on the unit sphere.
    pub fn distance(&self, query: usize, item: usize) -> f64 {
        (2.0 - 2.0 * self.cosine(query, item)).max(0.0).sqrt()
    }
}

impl Mined {
    /// The pairs of a query with a positive: (query, item).
    pub fn positives(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        match self {
            Self::Pairs(partners) => Box::new(flatten_side(partners, |partners| &partners.positives)),
            Self::Triplets(triplets) => {
                Box::new(triplets.iter().map(|triplet| (triplet.query, triplet.positive)))
            }
        }
    }

    /// The pairs of a query with a negative: (query, item).
    pub fn negatives(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        match self {
            Self::Pairs(partners) => Box::new(flatten_side(partners, |partners| &partners.negatives)),
            Self::Triplets(triplets) => {
                Box::new(triplets.iter().map(|triplet| (triplet.query, triplet.negative)))
            }
        }
    }

    /// The triplets. Those of pairs are computed lazily and need no memory.
    pub fn triplets(&self) -> Box<dyn Iterator<Item = Triplet> + '_> {
        match self {
            Self::Pairs(partners) => {
                Box::new(partners.iter().enumerate().flat_map(|(query, partners)| partners.triplets(query)))
            }
            Self::Triplets(triplets) => Box::new(triplets.iter().copied()),
        }
    }
}

impl Partners {
    /// Each positive with each negative.
    fn triplets(&self, query: usize) -> impl Iterator<Item = Triplet> {
        self.positives.iter().flat_map(move |&positive| {
            self.negatives.iter().map(move |&negative| Triplet { query, positive, negative })
        })
    }
}

fn flatten_side<'a>(
    partners: &'a [Partners],
    side: impl Fn(&'a Partners) -> &'a [usize] + 'a,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let pairs = move |(query, partners)| side(partners).iter().map(move |&item| (query, item));
    partners.iter().enumerate().flat_map(pairs)
}

/// A way to choose pairs or triplets.
trait Mine {
    /// What the catalogue says about the miner.
    const ENTRY: MinerEntry;

    /// Checks the settings.
    fn validate(&self) -> Result<()>;

    /// Chooses pairs or triplets with settings that are within their range. Only a random miner uses `draws`.
    fn mine(&self, candidates: &Candidates, draws: &mut ChaCha8Rng) -> Mined;
}

/// What the catalogue says about a miner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MinerEntry {
    /// Its name in a config: `miner = { kind = "…" }`.
    pub name: &'static str,
    /// Its name in a table.
    pub title: &'static str,
    /// What it chooses, in one sentence.
    pub summary: &'static str,
    /// Keys of [`crate::sources`].
    pub sources: &'static [&'static str],
}

/// Each line is a miner; its name in snake case is its name in a config.
macro_rules! miners {
    ($($miner:ident,)+) => {
        /// A miner by name with its settings: the `miner` of a loss.
        ///
        /// ```
        /// use akin_core::miners::Miner;
        ///
        /// let miner: Miner = serde_json::from_str(r#"{ "kind": "multi_similarity_miner", "epsilon": 0.2 }"#).unwrap();
        /// assert_eq!(miner.entry().name, "multi_similarity_miner");
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Miner {
            $(#[doc = concat!("See [`", stringify!($miner), "`].")] $miner($miner),)+
        }

        impl Miner {
            /// What the catalogue says about the miner.
            pub fn entry(&self) -> &'static MinerEntry {
                match self { $(Self::$miner(_) => const { &$miner::ENTRY },)+ }
            }

            /// Checks the settings.
            ///
            /// # Errors
            ///
            /// [`Kind::Config`](crate::Kind::Config) for a setting out of range.
            pub fn checked(&self) -> Result<Checked<Self>> {
                match self { $(Self::$miner(miner) => miner.validate(),)+ }?;
                Ok(Checked::new(self.clone()))
            }
        }

        impl Checked<Miner> {
            /// Chooses pairs or triplets. Only a random miner uses `draws`.
            pub fn mine(&self, candidates: &Candidates, draws: &mut ChaCha8Rng) -> Mined {
                match &**self { $(Miner::$miner(miner) => miner.mine(candidates, draws),)+ }
            }
        }

        /// Every miner.
        pub const CATALOGUE: &[MinerEntry] = &[$($miner::ENTRY),+];
    };
}

miners! {
    All,
    BatchEasyHardMiner,
    BatchHardMiner,
    DistanceWeightedMiner,
    MultiSimilarityMiner,
    TripletMarginMiner,
}

impl Default for Miner {
    fn default() -> Self {
        Self::All(All {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::sources::source;

    /// Unit vectors at these angles, in degrees, with their classes, compared with one another.
    pub(super) fn circle(points: &[(f64, u32)]) -> Candidates {
        let classes: Vec<u32> = points.iter().map(|point| point.1).collect();
        let cosine = |a: &(f64, u32), b: &(f64, u32)| (a.0 - b.0).to_radians().cos();
        let cosines = points.iter().flat_map(|a| points.iter().map(move |b| cosine(a, b))).collect();
        Candidates::new(&classes, &classes, Some(0), cosines, 2)
    }

    /// The triplets that a miner chooses, in order.
    pub(super) fn triplets(miner: &impl Mine, candidates: &Candidates) -> Vec<[usize; 3]> {
        let mined = miner.mine(candidates, &mut stream(1, "test", &[]));
        let mut triplets: Vec<[usize; 3]> = mined
            .triplets()
            .map(|Triplet { query, positive, negative }| [query, positive, negative])
            .collect();
        triplets.sort_unstable();
        triplets
    }

    fn every_miner() -> impl Iterator<Item = Miner> {
        CATALOGUE.iter().map(|entry| {
            serde_json::from_str(&format!(r#"{{ "kind": "{}" }}"#, entry.name)).expect("its name is its kind")
        })
    }

    #[test]
    fn every_miner_is_read_by_its_name_and_survives_json() {
        for (miner, entry) in every_miner().zip(CATALOGUE) {
            assert_eq!(miner.entry(), entry);
            miner.checked().unwrap();
            let json = serde_json::to_string(&miner).unwrap();
            assert_eq!(serde_json::from_str::<Miner>(&json).unwrap(), miner);
            assert!(entry.sources.iter().all(|key| source(key).is_some()), "{}", entry.name);
            let unknown = format!(r#"{{ "kind": "{}", "epsilom": 0.1 }}"#, entry.name);
            assert!(serde_json::from_str::<Miner>(&unknown).is_err(), "{unknown}");
        }
        assert!(serde_json::from_str::<Miner>(r#"{ "kind": "gold_miner" }"#).is_err());
    }

    #[test]
    fn pairs_and_triplets_convert_to_each_other() {
        let triplets = vec![
            Triplet { query: 0, positive: 1, negative: 2 },
            Triplet { query: 0, positive: 1, negative: 3 },
            Triplet { query: 2, positive: 3, negative: 0 },
        ];
        let mined = Mined::Triplets(triplets.clone());
        assert_eq!(mined.positives().collect::<Vec<_>>(), [(0, 1), (0, 1), (2, 3)]);
        assert_eq!(mined.negatives().collect::<Vec<_>>(), [(0, 2), (0, 3), (2, 0)]);

        let partners = |positives: &[usize], negatives: &[usize]| Partners {
            positives: positives.to_vec(),
            negatives: negatives.to_vec(),
        };
        let mined = Mined::Pairs(vec![partners(&[1], &[2, 3]), partners(&[0], &[]), partners(&[3], &[0])]);
        assert_eq!(mined.triplets().collect::<Vec<_>>(), triplets);
        assert_eq!(mined.positives().collect::<Vec<_>>(), [(0, 1), (1, 0), (2, 3)]);
    }

    #[test]
    fn without_positives_or_negatives_no_triplet_is_chosen() {
        let no_positives = circle(&[(0.0, 0), (10.0, 1), (20.0, 2)]);
        let no_negatives = circle(&[(0.0, 0), (10.0, 0), (20.0, 0)]);
        let one_item = circle(&[(0.0, 0)]);
        for miner in every_miner() {
            for candidates in [&no_positives, &no_negatives, &one_item] {
                let mined = miner.checked().unwrap().mine(candidates, &mut stream(1, "test", &[]));
                assert_eq!(mined.triplets().count(), 0, "{miner:?}");
            }
        }
    }

    #[test]
    fn a_query_is_never_paired_with_itself() {
        let candidates = Candidates::new(&[0, 1], &[1, 0, 1, 0], Some(1), vec![0.5; 8], 2);
        let partners: Vec<&Partners> = candidates.partners().map(|(_, partners)| partners).collect();
        assert_eq!(partners[0], &Partners { positives: vec![3], negatives: vec![0, 2] });
        assert_eq!(partners[1], &Partners { positives: vec![0], negatives: vec![1, 3] });
        let separate = Candidates::new(&[0], &[0, 1], None, vec![0.5; 2], 2);
        assert_eq!(separate.partners[0], Partners { positives: vec![0], negatives: vec![1] });
    }
}
