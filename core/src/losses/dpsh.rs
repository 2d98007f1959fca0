//! DPSH: the likelihood that each pair shares a class, or does not, given the dot product of its outputs.
//!
//! Let Θ_ij = ½ r_i·r_j, and s_ij = 1 if i and j share a class, else 0. The model is p(s_ij = 1) = σ(Θ_ij) (Li et al.,
//! *Feature Learning based Deep Supervised Hashing with Pairwise Labels*, IJCAI 2016). Over the pairs S of a query and
//! another item, with b_i = sign r_i,
//!
//! ```text
//! L = (1/|S|) ( −Σ_{ij ∈ S} [ s_ij Θ_ij − log(1 + exp Θ_ij) ] + η Σ_i ‖b_i − r_i‖² )
//! ```
//!
//! This is the paper's sum (eq. 4) divided by the number of pairs, so that one learning rate suits every batch size. The
//! second sum runs over queries. A batch without a pair has loss 0.
//!
//! # Text and code
//!
//! The authors' code needs MATLAB. Its translation to PyTorch (`jiangqy/DPSH-pytorch`) compares a batch with the latest
//! outputs of the whole training set, which have no gradient, and a query also with itself; η is 10.
//! With these outputs as the reference set, `own` unset, the loss here has the same values and gradients: the recorded
//! cases hold it to them. In training the items are those of the batch, where both sides have a gradient;
//! [`cross_batch_memory`](super::cross_batch_memory) adds earlier outputs. A common re-implementation
//! (`swuxyj/DeepHash-pytorch`) takes the mean of the second sum over items and bits instead, times 0.1. For K bits and a
//! training set of N items that is η = 0.1 N/K: 10 at N = 4,800 and 48 bits.
//!
//! # Gradient
//!
//! b is a constant; the sign of an exact 0 is 0, which pulls neither way. The gradient reaches the items of a reference
//! set as well as the queries.

use burn::module::Module;
use burn::tensor::{Tensor, activation::log_sigmoid};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, check_two_bits, not_negative,
    quantisation_error, reciprocal_or_zero,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`Dpsh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DpshConfig {
    /// η ≥ 0. Default 10, as in the public code.
    pub quantisation_weight: f64,
}

impl Default for DpshConfig {
    fn default() -> Self {
        Self { quantisation_weight: 10.0 }
    }
}

impl BuildLoss for DpshConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "dpsh",
        title: "DPSH",
        family: Family::Hashing,
        summary: "the likelihood that each pair shares a class, or does not, by the dot product of its codes",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["li2016"],
        complete: true,
        preset: None,
    };
    type Loss = Dpsh;

    fn init(&self, context: &LossContext) -> Result<Dpsh> {
        check_two_bits("dpsh", context)?;
        not_negative("dpsh", "quantisation_weight", self.quantisation_weight, 10.0)?;
        Ok(Dpsh { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Dpsh {
    #[module(skip)]
    config: DpshConfig,
}

impl Objective for Dpsh {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let [alike, unlike] = batch.pairs();
        let count = alike.clone().sum() + unlike.clone().sum();
        let theta = batch.scores() * 0.5;
        // −s Θ + log(1 + e^Θ) is −log σ(Θ) for s = 1 and −log σ(−Θ) for s = 0.
        let negative_log_likelihood =
            -(log_sigmoid(theta.clone()) * alike + log_sigmoid(-theta) * unlike).sum();
        let sum =
            negative_log_likelihood + quantisation_error(&batch.embeddings) * self.config.quantisation_weight;
        sum * reciprocal_or_zero(count)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;
    use crate::taxonomy::Labels;

    #[test]
    fn settings_out_of_range_are_refused() {
        let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
        let init = |quantisation_weight, bits| {
            let context = LossContext::new(&classes, bits, &Geometry::Binary, 0, &device);
            DpshConfig { quantisation_weight }.init(&context)
        };
        assert!(init(0.0, 2).is_ok());
        assert!(init(-1.0, 2).is_err() && init(f64::INFINITY, 2).is_err() && init(10.0, 1).is_err());
    }
}
