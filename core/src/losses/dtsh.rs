//! DTSH: the likelihood that a query is nearer to each item of its class than to each other item, by a margin.
//!
//! Let Θ_ij = ½ r_i·r_j. The likelihood of a triplet of a query q, a positive p and a negative n is
//! σ(Θ_qp − Θ_qn − α) (Wang et al., *Deep Supervised Hashing with Triplet Labels*, ACCV 2016). Over all triplets T of
//! the batch, with b_i = sign r_i,
//!
//! ```text
//! L = (1/|T|) ( −Σ_{qpn ∈ T} [ Θ_qp − Θ_qn − α − log(1 + exp(Θ_qp − Θ_qn − α)) ] + λ Σ_i ‖b_i − r_i‖² )
//! ```
//!
//! This is the paper's sum divided by the number of triplets, so that one learning rate suits every batch. The second
//! sum runs over queries. A batch without a triplet has loss 0. The defaults are α = K/2 for K bits and λ = 100.
//!
//! # Text and code
//!
//! The authors' code (`Minione/DTSH`) needs MATLAB, so that its numbers are not recorded. Read, it has α = K/2 and the same
//! likelihood over drawn triplets, 22,500 for each image of CIFAR-10, with these differences: only the query has a
//! gradient, the positives and negatives are the latest outputs of the training set; and it steps along 4 λ (b − r) for
//! the second sum with λ = 100, which is the slope of 2 λ ‖b − r‖².
//!
//! A common re-implementation (`swuxyj/DeepHash-pytorch`) has α = 5, Θ without the ½, the query among its own positives,
//! the mean over the triplets of each query and then over queries, and the mean of the second sum over items and bits with
//! λ = 1. With Θ doubled and the query among the items, the loss here has its values and gradients where every class has
//! equally many items: the recorded cases hold it to them.
//!
//! # Gradient
//!
//! b is a constant; the sign of an exact 0 is 0, which pulls neither way. The derivative with respect to Θ has a closed
//! form, computed beside the value, a block of queries at a time: memory is O(B²), time O(B³).

use burn::module::Module;
use burn::tensor::{Tensor, activation::log_sigmoid, activation::sigmoid};
use serde::{Deserialize, Serialize};

use super::ranks::BLOCK_ELEMENTS;
use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, check_two_bits, not_negative,
    quantisation_error, reciprocal_or_zero, with_gradient,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`Dtsh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DtshConfig {
    /// α ≥ 0. Default: half the number of bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// λ ≥ 0. Default 100.
    pub quantisation_weight: f64,
}

impl Default for DtshConfig {
    fn default() -> Self {
        Self { margin: None, quantisation_weight: 100.0 }
    }
}

impl BuildLoss for DtshConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "dtsh",
        title: "DTSH",
        family: Family::Hashing,
        summary: "the likelihood that items of the same class are nearer than others, by a margin of half the bits; takes B³ time",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["wang2016"],
        complete: true,
        preset: None,
    };
    type Loss = Dtsh;

    fn init(&self, context: &LossContext) -> Result<Dtsh> {
        check_two_bits("dtsh", context)?;
        let half = context.dimension as f64 / 2.0;
        let margin = self.margin.unwrap_or(half);
        not_negative("dtsh", "margin", margin, half)?;
        not_negative("dtsh", "quantisation_weight", self.quantisation_weight, 100.0)?;
        Ok(Dtsh { margin, quantisation_weight: self.quantisation_weight })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Dtsh {
    #[module(skip)]
    margin: f64,
    #[module(skip)]
    quantisation_weight: f64,
}

impl Objective for Dtsh {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let [positives, negatives] = batch.pairs();
        let share = reciprocal_or_zero((positives.clone().sum_dim(1) * negatives.clone().sum_dim(1)).sum());
        let theta = batch.scores() * 0.5;

        let [queries, size] = theta.dims();
        let plain = theta.clone().without_autodiff();
        let block = (BLOCK_ELEMENTS / (size * size)).max(1);
        let (mut values, mut gradients) = (Vec::new(), Vec::new());
        for start in (0..queries).step_by(block) {
            let rows = start..(start + block).min(queries);
            let slice_rows = |tensor: &Tensor<2>| tensor.clone().slice([rows.clone(), 0..size]);
            let (value, gradient) =
                self.value_and_gradient(slice_rows(&plain), slice_rows(&positives), slice_rows(&negatives));
            values.push(value);
            gradients.push(gradient);
        }
        let negative_log_likelihood =
            with_gradient(theta, Tensor::cat(values, 0).sum(), Tensor::cat(gradients, 0));
        (negative_log_likelihood + quantisation_error(&batch.embeddings) * self.quantisation_weight) * share
    }
}

impl Dtsh {
    /// −Σ log σ(Θ_qp − Θ_qn − α) of each query, [Q], and its gradient with respect to Θ, [Q, N]. All arguments are
    /// [Q, N]; the three-way tensors below are [Q, p, n].
    fn value_and_gradient(
        &self,
        theta: Tensor<2>,
        positives: Tensor<2>,
        negatives: Tensor<2>,
    ) -> (Tensor<1>, Tensor<2>) {
        let along_p = |tensor: &Tensor<2>| tensor.clone().unsqueeze_dim::<3>(2);
        let along_n = |tensor: &Tensor<2>| tensor.clone().unsqueeze_dim::<3>(1);
        let triplets = along_p(&positives) * along_n(&negatives);
        let lead = along_p(&theta) - along_n(&theta) - self.margin;
        let value = -(log_sigmoid(lead.clone()) * triplets.clone()).sum_dim(2).sum_dim(1);
        let slope = sigmoid(-lead) * triplets;
        let gradient = slope.clone().sum_dim(1).squeeze_dim::<2>(1) - slope.sum_dim(2).squeeze_dim::<2>(2);
        (value.flatten(0, 2), gradient)
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
        let init = |margin, quantisation_weight, bits| {
            let context = LossContext::new(&classes, bits, &Geometry::Binary, 0, &device);
            DtshConfig { margin, quantisation_weight }.init(&context)
        };
        assert_eq!(init(None, 0.0, 6).unwrap().margin, 3.0);
        assert!(init(Some(f64::NAN), 1.0, 6).is_err() && init(Some(-1.0), 1.0, 6).is_err());
        assert!(init(None, -1.0, 6).is_err() && init(None, 1.0, 1).is_err());
    }
}
