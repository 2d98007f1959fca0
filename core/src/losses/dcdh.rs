//! DCDH: codes that gather around one learned centre for each class, while the centres move apart.
//!
//! Each class is a Gaussian around its centre, as in DCWH ([`dcwh`](super::dcwh)), but the centres are learned with the
//! network. With r_i the K outputs of item i, y_i its class, μ_c the centre of class c, and C classes (Zhang et al.,
//! *Deep Center-Based Dual-Constrained Hashing for Discriminative Face Image Retrieval*, Pattern Recognition 2021),
//!
//! ```text
//! L = (1/B) Σ_i [ −log p(y_i | r_i) + η ‖b_i − r_i‖² ] + λ/(C(C−1)) Σ_{c ≠ c'} log(1 + exp Θ_cc')
//! p(c | r) = exp(−‖r − μ_c‖² / 2σ²) / Σ_c' exp(−‖r − μ_c'‖² / 2σ²)
//! Θ_cc'    = (K/2) cos(μ_c, μ_c')
//! b_i      = sign(w_i + η r_i),   w_i the mean of sign r_j over the items j of the batch with y_j = y_i
//! ```
//!
//! The first term pulls an item to the centre of its class. The last one is the likelihood that two centres belong to
//! different classes by the model of [`dpsh`](super::dpsh), which is the higher the fewer bits they share. The items of a
//! class have the bits of its majority as their target, so that they get equal codes; η r_i decides a tie. Classes are
//! those of the finest level. With a single class no two centres can be compared, and the last term is 0.
//!
//! The equations are those of the authors' public code. It adds 1e-6 to the sum of the densities and inside the
//! logarithm, so that an item far from every centre has no gradient, and it counts the pairs of a centre with itself,
//! which adds the constant λ log 2/(C−1). Here the logarithm is exact, and these pairs are left out.
//!
//! # IDCWH
//!
//! HPDH's tables compare it with IDCWH (Zhang & Yan, *Improved Deep Classwise Hashing With Centers Similarity Learning
//! for Image Retrieval*, ICPR 2021), by the same first author. Its abstract describes the same two parts: class centres
//! that are learned together with the codes, and a loss of similarity that pushes them apart. Its equations were not at
//! hand, and no public code of it was found.
//!
//! # Gradient
//!
//! The targets b are constants; the sign of an exact 0 is 0, which pulls neither way.

use burn::module::{Module, Param};
use burn::tensor::{
    Tensor,
    activation::{log_sigmoid, log_softmax},
};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, check_two_bits, not_negative,
    one_hot,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`Dcdh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DcdhConfig {
    /// σ > 0, the standard deviation of each class. Default 2, as in the authors' code, which gives 1/σ² as 0.25.
    pub deviation: f64,
    /// λ ≥ 0, the weight of the similarity of the centres. Default 0.1, as in the authors' code.
    pub centre_weight: f64,
    /// η ≥ 0. Default 0.01, as in the authors' code.
    pub quantisation_weight: f64,
}

impl Default for DcdhConfig {
    fn default() -> Self {
        Self { deviation: 2.0, centre_weight: 0.1, quantisation_weight: 0.01 }
    }
}

impl BuildLoss for DcdhConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "dcdh",
        title: "DCDH",
        family: Family::Hashing,
        summary: "codes around one learned centre for each class; the centres push each other away",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["zhang2021"],
        complete: true,
        preset: None,
    };
    type Loss = Dcdh;

    fn init(&self, context: &LossContext) -> Result<Dcdh> {
        check_two_bits("dcdh", context)?;
        above_zero("dcdh", "deviation", self.deviation, 2.0)?;
        not_negative("dcdh", "centre_weight", self.centre_weight, 0.1)?;
        not_negative("dcdh", "quantisation_weight", self.quantisation_weight, 0.01)?;
        Ok(Dcdh { centres: context.normal_proxies(context.fine_classes(), 1.0), config: self.clone() })
    }
}

/// The centres and the loss around them.
#[derive(Module, Debug)]
pub struct Dcdh {
    /// [C, K], at first draws from N(0, 1).
    pub centres: Param<Tensor<2>>,
    #[module(skip)]
    config: DcdhConfig,
}

impl Objective for Dcdh {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let outputs = &batch.embeddings;
            let own = one_hot(batch.labels, self.centres.dims()[0], outputs);
            let targets = targets(outputs.clone().detach(), own.clone(), self.config.quantisation_weight);
            let quantised = (targets - outputs.clone()).square().sum() * self.config.quantisation_weight;
            let classified = self.negative_log_likelihood(outputs.clone(), own);
            (classified + quantised) * (1.0 / batch.labels.len() as f64)
                + self.similarity() * self.config.centre_weight
        })
    }
}

impl Dcdh {
    /// −Σ_i log p(y_i | r_i). `own` is 1 at the class of each item, [B, C].
    fn negative_log_likelihood(&self, outputs: Tensor<2>, own: Tensor<2>) -> Tensor<1> {
        // ‖r‖² is the same for all classes of an item, so that it cancels.
        let centres = self.centres.val();
        let half_squares = centres.clone().square().sum_dim(1).transpose() * 0.5;
        let exponents = (outputs.matmul(centres.transpose()) - half_squares) / self.config.deviation.powi(2);
        -(log_softmax(exponents, 1) * own).sum()
    }

    /// The mean of log(1 + exp Θ_cc') over all pairs of two centres; 0 if there is no pair.
    fn similarity(&self) -> Tensor<1> {
        let centres = normalise(self.centres.val());
        let [classes, bits] = centres.dims();
        let theta = centres.clone().matmul(centres.transpose()) * (bits as f64 / 2.0);
        let others = -Tensor::<2>::eye(classes, &theta.device()).cast(theta.dtype()) + 1.0;
        let pairs = (classes * (classes - 1)).max(1);
        -(log_sigmoid(-theta) * others).sum() * (1.0 / pairs as f64)
    }
}

/// b, [B, K], from the outputs [B, K] and the class of each item, [B, C].
fn targets(outputs: Tensor<2>, own: Tensor<2>, quantisation_weight: f64) -> Tensor<2> {
    let counts = own.clone().sum_dim(0).clamp_min(1.0).transpose();
    let means = own.clone().transpose().matmul(outputs.clone().sign()) / counts;
    (own.matmul(means) + outputs * quantisation_weight).sign()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;
    use crate::taxonomy::Labels;

    fn init(config: DcdhConfig, bits: usize) -> Result<Dcdh> {
        let (classes, device) = (Labels::new(1, vec![0, 1, 2]).unwrap(), Device::flex());
        config.init(&LossContext::new(&classes, bits, &Geometry::Binary, 0, &device))
    }

    fn numbers(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn the_items_of_a_class_have_the_bits_of_its_majority_as_target() {
        let device = Device::flex();
        let outputs = Tensor::from_data([[0.2, -0.1], [0.3, 0.4], [-5.0, -0.6], [-0.7, 0.8]], &device);
        let own = Tensor::from_data([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], &device);
        let expected = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0];
        assert_eq!(numbers(targets(outputs, own, 0.01)), expected);
    }

    #[test]
    fn its_own_output_decides_the_target_of_an_item_where_the_class_is_tied() {
        let device = Device::flex();
        let outputs = Tensor::from_data([[0.2, 0.1], [-0.3, 0.4]], &device);
        let own = Tensor::from_data([[1.0], [1.0]], &device);
        assert_eq!(numbers(targets(outputs, own, 0.01)), [1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let default = DcdhConfig::default();
        for config in [
            DcdhConfig { deviation: 0.0, ..default.clone() },
            DcdhConfig { centre_weight: -0.1, ..default.clone() },
            DcdhConfig { quantisation_weight: f64::NAN, ..default.clone() },
        ] {
            assert!(init(config, 4).is_err());
        }
        assert!(init(default.clone(), 1).unwrap_err().message().contains("1 bit"));
        assert!(init(default, 2).is_ok());
    }
}
