//! Triplet loss: a positive closer than a negative by a margin.
//!
//! ```text
//! L = mean [d_ip − d_in + m]₊      p ∈ P_i, n ∈ N_i
//! ```
//!
//! d is the Euclidean distance of embeddings scaled to unit length, m the margin. The mean is over the triplets with a
//! term above 0, as in pytorch-metric-learning; Schroff et al., *FaceNet*, CVPR 2015, eq. 3, use squared distances
//! and a sum. With `smooth` a term is log(1 + exp(d_ip − d_in + m)), which is always above 0 (Hermans et al., *In
//! Defense of the Triplet Loss*, 2017). With `swap` the positive takes the query's place where it is closer to the
//! negative: d_in becomes min(d_in, d_pn) (Balntas et al., BMVC 2016).
//!
//! A miner chooses the triplets; the default miner chooses all of them, up to B³. The host visits each triplet once and
//! stores only the value and its derivative by each distance: memory is O(B²) and what the miner needs.
//!
//! # Gradient
//!
//! It is 0 where a term is exactly 0 and between items that coincide. It jumps where a triplet becomes active and joins
//! the mean. A miner's choice has no gradient. Without any triplet the loss is 0.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, matrix, not_negative, read_values,
    with_gradient,
};
use crate::geometry::{Space, distances, normalise};
use crate::miners::{Mined, Miner, Triplet};
use crate::{Checked, Result};

/// Settings of [`TripletMargin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TripletMarginConfig {
    /// m ≥ 0. Default 0.2; a miner has a margin of its own.
    pub margin: f64,
    /// Whether the positive takes the query's place where it is closer to the negative. Default false.
    pub swap: bool,
    /// Whether a term is a softplus instead of a hinge. Default false.
    pub smooth: bool,
    /// Which triplets count. Default all.
    pub miner: Miner,
}

impl Default for TripletMarginConfig {
    fn default() -> Self {
        Self { margin: 0.2, swap: false, smooth: false, miner: Miner::default() }
    }
}

impl BuildLoss for TripletMarginConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "triplet_margin",
        title: "Triplet",
        family: Family::Pairs,
        summary: "a positive closer than a negative by a margin; over all triplets it takes B³ time",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["schroff2015", "hermans2017", "balntas2016", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "triplet_distance_weighted",
            title: "Triplet, distance-weighted",
            summary: "the triplet loss with negatives drawn so that all distances are equally likely",
            sources: &["wu2017"],
            preset: Some(r#"{ "kind": "triplet_margin", "miner": { "kind": "distance_weighted_miner" } }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "triplet_semihard",
            title: "Triplet, semi-hard",
            summary: "the triplet loss with negatives farther than the positive, but not by the margin",
            sources: &["schroff2015"],
            preset: Some(
                r#"{
                    "kind": "triplet_margin",
                    "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "semihard" }
                }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = TripletMargin;

    fn init(&self, _: &LossContext) -> Result<TripletMargin> {
        not_negative("triplet_margin", "margin", self.margin, 0.2)?;
        Ok(TripletMargin { config: self.clone(), miner: self.miner.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct TripletMargin {
    #[module(skip)]
    config: TripletMarginConfig,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for TripletMargin {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        self.forward_mined(batch, &batch.mine(&self.miner))
    }
}

impl TripletMargin {
    /// The loss on these triplets.
    pub fn forward_mined(&self, batch: &Batch, mined: &Mined) -> Tensor<1> {
        let queries = normalise(batch.embeddings.clone());
        let items = normalise(batch.items().embeddings);
        let first_item = batch.labels.len();
        // With `swap` the items are rows too, after the queries.
        let rows = if self.config.swap { Tensor::cat(vec![queries, items.clone()], 0) } else { queries };
        let distances = distances(rows, items);
        let shape @ [_, columns] = distances.dims();
        let values = read_values(distances.clone().without_autodiff());

        let mut slopes = vec![0.0; values.len()];
        let (mut sum, mut count) = (0.0, 0.0);
        for Triplet { query, positive, negative } in mined.triplets() {
            let near = query * columns + positive;
            let mut far = query * columns + negative;
            let from_positive = (first_item + positive) * columns + negative;
            if self.config.swap && values[from_positive] < values[far] {
                far = from_positive;
            }
            let (term, slope) = self.term(values[near] - values[far] + self.config.margin);
            if term != 0.0 {
                sum += term;
                count += 1.0;
                slopes[near] += slope;
                slopes[far] -= slope;
            }
        }
        let share = 1.0 / f64::max(count, 1.0);
        slopes.iter_mut().for_each(|slope| *slope *= share);

        let device = distances.device().without_autodiff();
        let value = Tensor::from_data(TensorData::from([sum * share]), (&device, distances.dtype()));
        let slopes = matrix(slopes, shape, &distances);
        with_gradient(distances, value, slopes)
    }

    /// The term of a triplet that violates the margin by `violation`, and its derivative.
    fn term(&self, violation: f64) -> (f64, f64) {
        if self.config.smooth {
            let term = violation.max(0.0) + (-violation.abs()).exp().ln_1p();
            (term, 1.0 / (1.0 + (-violation).exp()))
        } else if violation <= 0.0 {
            (0.0, 0.0)
        } else {
            (violation, 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::miners::TripletMarginMiner;
    use crate::taxonomy::Labels;
    use burn::tensor::Device;

    #[test]
    fn margins_out_of_range_are_refused_in_the_loss_and_in_its_miner() {
        let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        let message = |config: TripletMarginConfig| config.init(&context).unwrap_err().to_string();
        let text = message(TripletMarginConfig { margin: f64::NAN, ..Default::default() });
        assert!(text.contains("the margin of triplet_margin is NaN"), "{text}");
        let miner =
            Miner::TripletMarginMiner(TripletMarginMiner { margin: f64::INFINITY, ..Default::default() });
        let text = message(TripletMarginConfig { miner, ..Default::default() });
        assert!(text.contains("the margin of triplet_margin_miner is inf"), "{text}");
    }
}
