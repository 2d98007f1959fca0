//! Draws negatives so that all distances are equally frequent (Wu et al., *Sampling Matters in Deep Embedding
//! Learning*, ICCV 2017, section 4.1).
//!
//! The distance d of two uniform points of the unit sphere in n dimensions has the density
//!
//! ```text
//! q(d) ∝ d^(n−2) (1 − d²/4)^((n−3)/2)
//! ```
//!
//! which is concentrated at √2. Negatives drawn uniformly are therefore far, and a loss learns nothing from them. For
//! each positive pair of a query this miner draws one negative with weight 1/q(d). Distances below `cutoff` count as
//! `cutoff`, which bounds the weights. From `nonzero_loss_cutoff` on, where a margin loss is 0, the weight is 0.
//!
//! A query without a negative nearer than `nonzero_loss_cutoff` has no triplets. pytorch-metric-learning also draws the
//! positives at random, and one more than the query has.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Candidates, Mine, Mined, MinerEntry, Triplet};
use crate::range::above_zero;
use crate::{Error, Kind, Result};

/// The miner and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DistanceWeightedMiner {
    /// Shorter distances count as this one; above 0. Default 0.5.
    pub cutoff: f64,
    /// Items at this distance or farther are not drawn; above `cutoff`. Default 1.4.
    pub nonzero_loss_cutoff: f64,
}

impl Default for DistanceWeightedMiner {
    fn default() -> Self {
        Self { cutoff: 0.5, nonzero_loss_cutoff: 1.4 }
    }
}

impl DistanceWeightedMiner {
    /// The probability that each item is drawn as a negative of each query: [Q, M], row-major. A query without a
    /// negative to draw has zeros.
    pub fn sampling_weights(&self, candidates: &Candidates) -> Vec<f64> {
        let mut weights = vec![0.0; candidates.cosines.len()];
        for ((query, partners), row) in candidates.partners().zip(weights.chunks_mut(candidates.items.max(1)))
        {
            let weighed: Vec<(usize, f64)> = partners
                .negatives
                .iter()
                .map(|&item| (item, candidates.distance(query, item).max(self.cutoff)))
                .filter(|&(_, distance)| distance < self.nonzero_loss_cutoff)
                .map(|(item, distance)| (item, log_weight(distance, candidates.dimension)))
                .filter(|(_, log_weight)| log_weight.is_finite())
                .collect();
            // Only the ratios matter. The largest weight becomes 1, so that exp does not overflow.
            let largest = weighed.iter().map(|weighed| weighed.1).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = weighed.iter().map(|weighed| (weighed.1 - largest).exp()).sum();
            for (item, log_weight) in weighed {
                row[item] = (log_weight - largest).exp() / sum;
            }
        }
        weights
    }
}

/// log 1/q(d).
fn log_weight(distance: f64, dimension: usize) -> f64 {
    let dimension = dimension as f64;
    (2.0 - dimension) * distance.ln() - (dimension - 3.0) / 2.0 * (1.0 - 0.25 * distance * distance).ln()
}

impl Mine for DistanceWeightedMiner {
    const ENTRY: MinerEntry = MinerEntry {
        name: "distance_weighted_miner",
        title: "Distance-weighted",
        summary: "a negative for each positive pair, drawn so that all distances are equally frequent",
        sources: &["wu2017"],
    };

    fn validate(&self) -> Result<()> {
        above_zero("distance_weighted_miner", "cutoff", self.cutoff, 0.5)?;
        above_zero("distance_weighted_miner", "nonzero_loss_cutoff", self.nonzero_loss_cutoff, 1.4)?;
        if self.cutoff < self.nonzero_loss_cutoff {
            return Ok(());
        }
        Err(Error::new(
            Kind::Config,
            format!(
                "the cutoff of distance_weighted_miner, {}, is not below its nonzero_loss_cutoff, {}: no negative could be \
                 drawn",
                self.cutoff, self.nonzero_loss_cutoff
            ),
            "give a smaller cutoff; 0.5 and 1.4 are usual",
        ))
    }

    fn mine(&self, candidates: &Candidates, draws: &mut ChaCha8Rng) -> Mined {
        let weights = self.sampling_weights(candidates);
        let mut chosen = Vec::new();
        for (query, partners) in candidates.partners() {
            let weight = |item: &usize| weights[query * candidates.items + item];
            let drawable: Vec<usize> =
                partners.negatives.iter().copied().filter(|item| weight(item) > 0.0).collect();
            let Some(&last) = drawable.last() else { continue };
            for &positive in &partners.positives {
                let mut left: f64 = draws.random();
                let drawn = drawable.iter().copied().find(|item| {
                    left -= weight(item);
                    left < 0.0
                });
                // The probabilities may sum to slightly less than 1.
                chosen.push(Triplet { query, positive, negative: drawn.unwrap_or(last) });
            }
        }
        Mined::Triplets(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{circle, triplets};
    use super::*;
    use crate::random::stream;

    /// One query with one positive, and negatives at these distances, in 16 dimensions.
    fn at(distances: &[f64]) -> Candidates {
        let mut classes = vec![0];
        classes.resize(1 + distances.len(), 1);
        let cosines = [0.9].into_iter().chain(distances.iter().map(|d| 1.0 - d * d / 2.0)).collect();
        Candidates::new(&[0], &classes, None, cosines, 16)
    }

    #[test]
    fn negatives_come_as_often_as_their_weight_says() {
        let candidates = at(&[0.3, 0.8, 0.82, 1.5]);
        let miner = DistanceWeightedMiner::default();
        let weights = miner.sampling_weights(&candidates);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let inverse_density = |d: f64| d.powi(-14) * (1.0 - d * d / 4.0).powf(-6.5);
        for (item, distance) in [(1, 0.5), (2, 0.8), (3, 0.82)] {
            let expected = weights[2] * inverse_density(distance) / inverse_density(0.8);
            assert!((weights[item] - expected).abs() < 1e-12, "{item}");
        }
        assert_eq!([weights[0], weights[4]], [0.0, 0.0]);

        let near = at(&[0.8, 0.82, 0.84]);
        let weights = miner.sampling_weights(&near);
        let mut draws = stream(1, "test", &[]);
        let mut counts = [0; 4];
        for _ in 0..4000 {
            miner.mine(&near, &mut draws).triplets().for_each(|triplet| counts[triplet.negative] += 1);
        }
        for (count, weight) in counts.into_iter().zip(weights) {
            assert!((f64::from(count) / 4000.0 - weight).abs() < 0.03, "{count} {weight}");
        }
    }

    #[test]
    fn a_query_whose_negatives_are_all_too_far_has_no_triplets() {
        let candidates = circle(&[(0.0, 0), (10.0, 0), (170.0, 1)]);
        let miner = DistanceWeightedMiner::default();
        assert!(miner.sampling_weights(&candidates).iter().all(|&weight| weight == 0.0));
        assert!(triplets(&miner, &candidates).is_empty());
    }

    #[test]
    fn cutoffs_that_leave_nothing_to_draw_are_refused() {
        for (cutoff, nonzero_loss_cutoff) in [(1.4, 1.4), (0.0, 1.4), (f64::NAN, 1.4), (0.5, f64::INFINITY)] {
            assert!(DistanceWeightedMiner { cutoff, nonzero_loss_cutoff }.validate().is_err());
        }
    }

    #[test]
    fn opposite_points_do_not_break_the_weights() {
        let candidates = at(&[1.0, 2.0]);
        let miner = DistanceWeightedMiner { nonzero_loss_cutoff: 3.0, ..Default::default() };
        assert_eq!(miner.sampling_weights(&candidates), [0.0, 1.0, 0.0]);
    }
}
