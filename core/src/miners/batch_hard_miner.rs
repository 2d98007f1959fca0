//! Chooses the farthest positive and the nearest negative of each query (Hermans et al., *In Defense of the Triplet
//! Loss for Person Re-Identification*, 2017, eq. 5): at most one triplet per query.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{BatchEasyHardMiner, Candidates, Mine, Mined, MinerEntry, Strategy};
use crate::Result;

/// The miner. It has no settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BatchHardMiner {}

impl Mine for BatchHardMiner {
    const ENTRY: MinerEntry = MinerEntry {
        name: "batch_hard_miner",
        title: "Batch hard",
        summary: "for each query the farthest positive with the nearest negative",
        sources: &["hermans2017"],
    };

    fn validate(&self) -> Result<()> {
        Ok(())
    }

    fn mine(&self, candidates: &Candidates, draws: &mut ChaCha8Rng) -> Mined {
        BatchEasyHardMiner { positives: Strategy::Hard, negatives: Strategy::Hard }.mine(candidates, draws)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{circle, triplets};
    use super::*;

    #[test]
    fn the_farthest_positive_is_chosen_with_the_nearest_negative() {
        let candidates = circle(&[(0.0, 0), (10.0, 0), (40.0, 0), (60.0, 1), (100.0, 1)]);
        let chosen = triplets(&BatchHardMiner {}, &candidates);
        assert_eq!(chosen, [[0, 2, 3], [1, 2, 3], [2, 0, 3], [3, 4, 2], [4, 3, 2]]);
    }
}
