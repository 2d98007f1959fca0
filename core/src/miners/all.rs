//! Chooses every pair, and so every triplet.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Candidates, Mine, Mined, MinerEntry};
use crate::Result;

/// The miner; it has no settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct All {}

impl Mine for All {
    const ENTRY: MinerEntry = MinerEntry {
        name: "all",
        title: "All",
        summary: "every pair, every triplet",
        sources: &["musgrave2020library"],
    };

    fn validate(&self) -> Result<()> {
        Ok(())
    }

    fn mine(&self, candidates: &Candidates, _draws: &mut ChaCha8Rng) -> Mined {
        Mined::Pairs(candidates.partners.clone())
    }
}
