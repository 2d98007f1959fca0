//! Chooses one positive and one negative for each query, each by its own strategy.
//!
//! | strategy | positives | negatives |
//! |---|---|---|
//! | hard | the farthest | the nearest |
//! | semihard | the farthest that is nearer than the chosen negative | the nearest that is farther than the chosen positive |
//! | easy | the nearest | the farthest |
//! | all | every one | every one |
//!
//! The defaults, the nearest positive with a semi-hard negative, are those of Xuan et al., *Improved Embeddings with
//! Easy Positive Triplet Mining*, WACV 2020. Semi-hard depends on the choice of the other side, so that only one side
//! can be semi-hard, and the other cannot be all. Of equally distant items the first is chosen. A query with no choice
//! on one side is left out, unless a side is all: then the pairs of the other side remain.

use std::cmp::Ordering;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Candidates, Mine, Mined, MinerEntry, Partners};
use crate::{Error, Kind, Result};

/// The miner and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BatchEasyHardMiner {
    /// The choice of positives. Default easy.
    pub positives: Strategy,
    /// The choice of negatives. Default semihard.
    pub negatives: Strategy,
}

/// The choice among the positives or the negatives of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The farthest positive, or the nearest negative.
    Hard,
    /// The hardest item that is still nearer (a positive) or farther (a negative) than the choice of the other side.
    Semihard,
    /// The nearest positive, or the farthest negative.
    Easy,
    /// All items.
    All,
}

impl Default for BatchEasyHardMiner {
    fn default() -> Self {
        Self { positives: Strategy::Easy, negatives: Strategy::Semihard }
    }
}

impl Mine for BatchEasyHardMiner {
    const ENTRY: MinerEntry = MinerEntry {
        name: "batch_easy_hard_miner",
        title: "Batch easy-hard",
        summary: "for each query one positive and one negative, each easy, semi-hard or hard",
        sources: &["xuan2020", "musgrave2020library"],
    };

    fn validate(&self) -> Result<()> {
        match (self.positives, self.negatives) {
            (Strategy::Semihard, Strategy::Semihard | Strategy::All)
            | (Strategy::All, Strategy::Semihard) => Err(Error::new(
                Kind::Config,
                format!(
                    "batch_easy_hard_miner has positives = {:?} and negatives = {:?}; a semi-hard choice needs a single \
                     item on the other side",
                    self.positives, self.negatives
                )
                .to_lowercase(),
                "set one of positives and negatives to easy or hard",
            )),
            _ => Ok(()),
        }
    }

    fn mine(&self, candidates: &Candidates, _draws: &mut ChaCha8Rng) -> Mined {
        let choose = |(query, all): (usize, &Partners)| {
            let distance = |item: usize| candidates.distance(query, item);
            let bound = |chosen: &[usize]| chosen.first().map(|&item| distance(item));
            let positives = |nearer_than: Option<f64>| match self.positives {
                Strategy::Hard => farthest(&all.positives, distance),
                Strategy::Easy => nearest(&all.positives, distance),
                Strategy::All => all.positives.clone(),
                Strategy::Semihard => {
                    let right = |&item: &usize| nearer_than.is_some_and(|bound| distance(item) < bound);
                    farthest(all.positives.iter().filter(|item| right(item)), distance)
                }
            };
            let negatives = |farther_than: Option<f64>| match self.negatives {
                Strategy::Hard => nearest(&all.negatives, distance),
                Strategy::Easy => farthest(&all.negatives, distance),
                Strategy::All => all.negatives.clone(),
                Strategy::Semihard => {
                    let right = |&item: &usize| farther_than.is_some_and(|bound| distance(item) > bound);
                    nearest(all.negatives.iter().filter(|item| right(item)), distance)
                }
            };
            let chosen = if self.positives == Strategy::Semihard {
                let negatives = negatives(None);
                Partners { positives: positives(bound(&negatives)), negatives }
            } else {
                let positives = positives(None);
                Partners { negatives: negatives(bound(&positives)), positives }
            };
            let one_each = self.positives != Strategy::All && self.negatives != Strategy::All;
            if one_each && (chosen.positives.is_empty() || chosen.negatives.is_empty()) {
                return Partners::default();
            }
            chosen
        };
        Mined::Pairs(candidates.partners().map(choose).collect())
    }
}

/// The nearest of these items, if there are any.
fn nearest<'a>(items: impl IntoIterator<Item = &'a usize>, distance: impl Fn(usize) -> f64) -> Vec<usize> {
    first(items, |a, b| distance(a).total_cmp(&distance(b)))
}

/// The farthest of these items, if there are any.
fn farthest<'a>(items: impl IntoIterator<Item = &'a usize>, distance: impl Fn(usize) -> f64) -> Vec<usize> {
    first(items, |a, b| distance(b).total_cmp(&distance(a)))
}

fn first<'a>(
    items: impl IntoIterator<Item = &'a usize>,
    order: impl Fn(usize, usize) -> Ordering,
) -> Vec<usize> {
    items.into_iter().copied().min_by(|&a, &b| order(a, b)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{circle, triplets};
    use super::*;

    #[test]
    fn each_side_is_chosen_by_its_own_strategy() {
        // Distances from item 0 rise with the angle: positives at 10° and 40°, negatives at 5°, 20° and 90°.
        let candidates = circle(&[(0.0, 0), (10.0, 0), (-40.0, 0), (5.0, 1), (20.0, 1), (-90.0, 1)]);
        let chosen_for_zero = |positives, negatives| -> Vec<[usize; 2]> {
            let miner = BatchEasyHardMiner { positives, negatives };
            miner.validate().unwrap();
            let chosen = triplets(&miner, &candidates);
            chosen.iter().filter(|triplet| triplet[0] == 0).map(|triplet| [triplet[1], triplet[2]]).collect()
        };
        use Strategy::{All, Easy, Hard, Semihard};
        assert_eq!(chosen_for_zero(Hard, Hard), [[2, 3]]);
        assert_eq!(chosen_for_zero(Easy, Easy), [[1, 5]]);
        assert_eq!(chosen_for_zero(Easy, Semihard), [[1, 4]]);
        assert_eq!(chosen_for_zero(Hard, Semihard), [[2, 5]]);
        assert_eq!(chosen_for_zero(Semihard, Easy), [[2, 5]]);
        assert!(chosen_for_zero(Semihard, Hard).is_empty());
        assert_eq!(chosen_for_zero(All, Hard), [[1, 3], [2, 3]]);
        assert_eq!(chosen_for_zero(Easy, All), [[1, 3], [1, 4], [1, 5]]);
    }

    #[test]
    fn semihard_needs_a_single_item_on_the_other_side() {
        use Strategy::{All, Semihard};
        for (positives, negatives) in [(Semihard, Semihard), (Semihard, All), (All, Semihard)] {
            assert!(BatchEasyHardMiner { positives, negatives }.validate().is_err());
        }
    }
}
