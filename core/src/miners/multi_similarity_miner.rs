//! Chooses the positives that are less similar than some negative, and the negatives that are more similar than some
//! positive (Wang et al., *Multi-Similarity Loss*, CVPR 2019, eq. 10–11).
//!
//! With the cosines s of a query to its positives P and negatives N,
//!
//! ```text
//! a positive p is chosen if  s_p < max_{n ∈ N} s_n + ε
//! a negative n is chosen if  s_n > min_{p ∈ P} s_p − ε
//! ```
//!
//! For a query without positives no negatives are chosen, and vice versa.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Candidates, Mine, Mined, MinerEntry, Partners};
use crate::Result;
use crate::range::not_negative;

/// The miner and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MultiSimilarityMiner {
    /// ε ≥ 0, the slack of both comparisons. Default 0.1.
    pub epsilon: f64,
}

impl Default for MultiSimilarityMiner {
    fn default() -> Self {
        Self { epsilon: 0.1 }
    }
}

impl Mine for MultiSimilarityMiner {
    const ENTRY: MinerEntry = MinerEntry {
        name: "multi_similarity_miner",
        title: "Multi-Similarity",
        summary: "positives less similar than some negative, and negatives more similar than some positive, to within ε",
        sources: &["wang2019"],
    };

    fn validate(&self) -> Result<()> {
        not_negative("multi_similarity_miner", "epsilon", self.epsilon, 0.1)
    }

    fn mine(&self, candidates: &Candidates, _draws: &mut ChaCha8Rng) -> Mined {
        let choose = |(query, all): (usize, &Partners)| {
            let cosine = |item: &usize| candidates.cosine(query, *item);
            let hardest_negative = all.negatives.iter().map(cosine).fold(f64::NEG_INFINITY, f64::max);
            let hardest_positive = all.positives.iter().map(cosine).fold(f64::INFINITY, f64::min);
            let positive = |item: &usize| cosine(item) - self.epsilon < hardest_negative;
            let negative = |item: &usize| cosine(item) + self.epsilon > hardest_positive;
            Partners {
                positives: all.positives.iter().copied().filter(positive).collect(),
                negatives: all.negatives.iter().copied().filter(negative).collect(),
            }
        };
        Mined::Pairs(candidates.partners().map(choose).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::circle;
    use super::*;
    use crate::random::stream;

    #[test]
    fn only_pairs_in_the_wrong_order_to_within_epsilon_are_chosen() {
        // From item 0: positives at cosines 0.98 and 0.64, negatives at 0.71 and −0.5.
        let candidates = circle(&[(0.0, 0), (10.0, 0), (50.0, 0), (-45.0, 1), (-120.0, 1)]);
        let miner = MultiSimilarityMiner::default();
        let Mined::Pairs(partners) = miner.mine(&candidates, &mut stream(1, "test", &[])) else {
            panic!("it chooses pairs");
        };
        assert_eq!(partners[0], Partners { positives: vec![2], negatives: vec![3] });
    }

    #[test]
    fn a_negative_epsilon_is_refused() {
        assert!(MultiSimilarityMiner { epsilon: -0.1 }.validate().is_err());
        assert!(MultiSimilarityMiner { epsilon: f64::NAN }.validate().is_err());
    }
}
