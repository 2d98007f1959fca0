//! Margin loss: positives inside a boundary and negatives outside it, both by a margin (Wu et al., *Sampling Matters in
//! Deep Embedding Learning*, ICCV 2017, section 4.2).
//!
//! ```text
//! L = (1/A) (Σ⁺ [d_ij − β + m]₊ + Σ⁻ [β − d_ij + m]₊)      j ∈ P_i and j ∈ N_i
//! ```
//!
//! d is the Euclidean distance of embeddings scaled to unit length, β the boundary, m the margin (the paper's α), and A
//! the number of terms above 0. The default miner is the paper's
//! [distance-weighted](crate::miners::DistanceWeightedMiner) one: each drawn triplet gives a positive and a negative
//! pair, and a pair counts as often as it is drawn. With the miner `all` each pair counts once.
//!
//! With `learn_beta` each fine class has its own boundary β_(y_i), which starts at β and is learned. The paper also
//! has a boundary for each image, and a regulariser; both are left out here.
//!
//! # Gradient
//!
//! It is 0 where a term is exactly 0 and between items that coincide. It jumps where a pair becomes active and joins
//! the mean. The draws have no gradient. Without any pair the loss is 0.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, mask_above_zero, matrix,
    not_negative, one_hot,
};
use crate::geometry::Space;
use crate::miners::{DistanceWeightedMiner, Mined, Miner};
use crate::{Checked, Result};

/// Settings of [`Margin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MarginConfig {
    /// m ≥ 0, the margin. Default 0.2.
    pub margin: f64,
    /// β > 0, the boundary. Default 1.2.
    pub beta: f64,
    /// Whether each fine class learns its own β. Default false.
    pub learn_beta: bool,
    /// Which pairs count. Default those of distance-weighted triplets.
    pub miner: Miner,
}

impl Default for MarginConfig {
    fn default() -> Self {
        Self {
            margin: 0.2,
            beta: 1.2,
            learn_beta: false,
            miner: Miner::DistanceWeightedMiner(DistanceWeightedMiner::default()),
        }
    }
}

impl BuildLoss for MarginConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "margin",
        title: "Margin",
        family: Family::Pairs,
        summary: "positives inside a boundary, negatives drawn by distance outside it",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wu2017"],
        complete: true,
        preset: None,
    };
    type Loss = Margin;

    fn init(&self, context: &LossContext) -> Result<Margin> {
        not_negative("margin", "margin", self.margin, 0.2)?;
        above_zero("margin", "beta", self.beta, 1.2)?;
        let miner = self.miner.checked()?;
        let boundaries = || Tensor::full([context.fine_classes(), 1], self.beta, context.device);
        let boundaries = self.learn_beta.then(|| Param::from_tensor(boundaries()));
        Ok(Margin { boundaries, config: self.clone(), miner })
    }
}

/// The loss, with its boundaries.
#[derive(Module, Debug)]
pub struct Margin {
    /// β of each fine class, [C, 1], if they are learned.
    pub boundaries: Option<Param<Tensor<2>>>,
    #[module(skip)]
    config: MarginConfig,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for Margin {
    /// With learned boundaries, labels must be below C.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        self.forward_counts(batch, batch.mined_pairs(&self.miner))
    }
}

impl Margin {
    /// The loss on these pairs.
    pub fn forward_mined(&self, batch: &Batch, mined: &Mined) -> Tensor<1> {
        self.forward_counts(batch, batch.count_pairs(mined))
    }

    fn forward_counts(&self, batch: &Batch, [positives, negatives]: [Tensor<2>; 2]) -> Tensor<1> {
        let distances = batch.distances();
        let (mut positives, mut negatives) = (positives, negatives);
        let boundary = match &self.boundaries {
            None => matrix(vec![self.config.beta], [1, 1], &distances),
            Some(boundaries) => {
                let boundaries = boundaries.val();
                let [classes, _] = boundaries.dims();
                let own = one_hot(batch.labels, classes, &distances);
                // A query of unknown class has no boundary.
                let has_boundary = own.clone().sum_dim(1);
                (positives, negatives) = (positives * has_boundary.clone(), negatives * has_boundary);
                own.matmul(boundaries)
            }
        };
        let beyond = distances - boundary;
        let too_far = relu(beyond.clone() + self.config.margin);
        let too_near = relu(-beyond + self.config.margin);
        let number =
            mask_above_zero(&too_far) * positives.clone() + mask_above_zero(&too_near) * negatives.clone();
        (too_far * positives + too_near * negatives).sum() / number.sum().clamp_min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::taxonomy::Labels;
    use burn::tensor::Device;

    #[test]
    fn a_learned_boundary_starts_at_beta_and_follows_the_errors_of_its_class() {
        let (labels, device) = (Labels::new(1, vec![0, 0, 1, 1]).unwrap(), Device::flex().autodiff());
        let classes = labels.classes();
        let context = LossContext::new(&classes, 2, &Geometry::Cosine, 0, &device);
        let config = MarginConfig { miner: Miner::default(), ..Default::default() };
        let learned = MarginConfig { learn_beta: true, ..config.clone() }.init(&context).unwrap();
        // Class 0 spans a right angle, so its positives are too far apart. Class 1 lies between.
        let rows = [[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, 0.8]];
        let batch = Batch::new(Tensor::from_data(rows, &device), &labels);
        let value = learned.forward(&batch);
        let fixed = config.init(&context).unwrap().forward(&batch);
        assert_eq!(value.to_data(), fixed.to_data());
        // Class 0 has 2 positives and 4 negatives beyond the margin, class 1 only 4 negatives.
        let boundaries = learned.boundaries.as_ref().unwrap().val();
        let slopes = boundaries.grad(&value.backward()).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert!((slopes[0] - 0.2).abs() < 1e-6 && (slopes[1] - 0.4).abs() < 1e-6, "{slopes:?}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        assert!(MarginConfig { beta: 0.0, ..Default::default() }.init(&context).is_err());
        assert!(MarginConfig { margin: f64::NAN, ..Default::default() }.init(&context).is_err());
    }
}
