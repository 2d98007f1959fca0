//! Chooses triplets by their gap, relative to the margin m of a triplet loss.
//!
//! The gap is g = d(q, n) − d(q, p), where d is the distance of a query to an item:
//!
//! - all: g ≤ m, every triplet that violates the margin;
//! - hard: g ≤ 0, the negative is not farther than the positive;
//! - semihard: 0 < g ≤ m, the negative is farther, but by no more than the margin (Schroff et al., *FaceNet*, CVPR 2015,
//!   eq. 4, there with squared distances);
//! - easy: g > m, every triplet that does not violate the margin.
//!
//! Takes O(Q·P·N) time, for P positives and N negatives per query, and memory for the chosen triplets.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Candidates, Mine, Mined, MinerEntry};
use crate::Result;
use crate::range::not_negative;

/// The miner and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TripletMarginMiner {
    /// The triplets to choose. Default all.
    pub type_of_triplets: TypeOfTriplets,
    /// m ≥ 0. Default 0.2.
    pub margin: f64,
}

/// The triplets that a [`TripletMarginMiner`] chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TypeOfTriplets {
    /// g ≤ m.
    All,
    /// g ≤ 0.
    Hard,
    /// 0 < g ≤ m.
    Semihard,
    /// g > m.
    Easy,
}

impl Default for TripletMarginMiner {
    fn default() -> Self {
        Self { type_of_triplets: TypeOfTriplets::All, margin: 0.2 }
    }
}

impl Mine for TripletMarginMiner {
    const ENTRY: MinerEntry = MinerEntry {
        name: "triplet_margin_miner",
        title: "Triplet margin",
        summary: "triplets that violate a margin, all of them or only the hard or semi-hard ones; or those that do not",
        sources: &["schroff2015", "musgrave2020library"],
    };

    fn validate(&self) -> Result<()> {
        not_negative("triplet_margin_miner", "margin", self.margin, 0.2)
    }

    fn mine(&self, candidates: &Candidates, _draws: &mut ChaCha8Rng) -> Mined {
        let mut chosen = Vec::new();
        for (query, partners) in candidates.partners() {
            chosen.extend(partners.triplets(query).filter(|triplet| {
                let gap = candidates.distance(query, triplet.negative)
                    - candidates.distance(query, triplet.positive);
                match self.type_of_triplets {
                    TypeOfTriplets::All => gap <= self.margin,
                    TypeOfTriplets::Hard => gap <= 0.0,
                    TypeOfTriplets::Semihard => gap > 0.0 && gap <= self.margin,
                    TypeOfTriplets::Easy => gap > self.margin,
                }
            }));
        }
        Mined::Triplets(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{circle, triplets};
    use super::*;

    #[test]
    fn the_gap_decides_the_type() {
        // From item 0 the positive is at 0.35; the negatives at 0.17 (hard), 0.52 (semi-hard), 1.73 (easy).
        let candidates = circle(&[(0.0, 0), (20.0, 0), (-10.0, 1), (-30.0, 2), (-120.0, 3)]);
        let chosen_for_zero = |type_of_triplets| -> Vec<usize> {
            let miner = TripletMarginMiner { type_of_triplets, margin: 0.2 };
            let chosen = triplets(&miner, &candidates);
            chosen.iter().filter(|triplet| triplet[0] == 0).map(|triplet| triplet[2]).collect()
        };
        assert_eq!(chosen_for_zero(TypeOfTriplets::All), [2, 3]);
        assert_eq!(chosen_for_zero(TypeOfTriplets::Hard), [2]);
        assert_eq!(chosen_for_zero(TypeOfTriplets::Semihard), [3]);
        assert_eq!(chosen_for_zero(TypeOfTriplets::Easy), [4]);
    }

    #[test]
    fn a_margin_out_of_range_is_refused() {
        for margin in [f64::NAN, f64::INFINITY, -0.1] {
            assert!(TripletMarginMiner { margin, ..Default::default() }.validate().is_err());
        }
    }
}
