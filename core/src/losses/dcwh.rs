//! DCWH: codes that gather around one centre for each class.
//!
//! Each class is a Gaussian around its centre, and the loss is the negative log likelihood of the item's class (Zhe et
//! al., *Deep Class-Wise Hashing: Semantics-Preserving Hashing via Class-Wise Loss*, TNNLS 2020). With r_i the K outputs
//! of item i, y_i its class and μ_c the centre of class c,
//!
//! ```text
//! L = (1/B) Σ_i [ −log(p(y_i | r_i) + ε) + η₁ Σ_k ( [−ρ − r_ik]₊ + [r_ik − ρ]₊ / B ) + (η₂/B) ‖sign r_i − r_i‖² ]
//! p(c | r) = exp(−‖r − μ_c‖² / 2σ²) / (Σ_c' exp(−‖r − μ_c'‖² / 2σ²) + ε)
//! ```
//!
//! Classes are those of the finest level. HPDH ([`hpdh`](super::hpdh)) has the same likelihood on every level.
//!
//! # Centres
//!
//! Centres are recomputed, not learned: before every second epoch, from the third epoch on, the centre of a class becomes
//! the mean of its items. Until then it is a draw from N(0, 1). A class without an item in the training set keeps its
//! centre.
//!
//! # Text and code
//!
//! `dcwh` is the public code, which is by the first author of HPDH. Of the paper only the abstract was at hand. Two
//! peculiarities of the code are kept:
//!
//! - Its option for 1/σ², 0.5 by default, does not reach the loss, which has σ = 1. `deviation` sets σ; 1/σ² = 0.5 is a
//!   deviation of 1.414.
//! - The upper side of the cube and the vertex term are divided by B twice, the lower side of the cube once. Outputs below
//!   −ρ are thus pushed B times as hard as those above ρ.
//!
//! The abstract tells of two steps, the cube in the first and the vertices in the second; the code has both terms from the
//! start.
//!
//! # Gradient
//!
//! Centres and signs are constants. The sign of an exact 0 is 0, which pulls neither way. An item far from every centre
//! has no gradient from the likelihood, unless the floor ε is 0.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::class_centres::{class_means, log_likelihood, replace_centres};
use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, check_two_bits, not_negative,
    one_hot, quantisation_error, read_values,
};
use crate::geometry::{Space, distances};
use crate::random::normal;
use crate::taxonomy::{Labels, UNKNOWN};
use crate::{Error, Kind, Result};

/// Settings of [`Dcwh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DcwhConfig {
    /// σ > 0, the standard deviation of each class. Default 1.
    pub deviation: f64,
    /// ε ≥ 0, added to the sum of the densities and inside the logarithm; 0 takes the exact logarithm. Default 1e-6.
    pub floor: f64,
    /// η₁ ≥ 0. Default 10.
    pub range_weight: f64,
    /// ρ > 0, half the width of the cube. Default 1.1.
    pub range: f64,
    /// η₂ ≥ 0. Default 0.01.
    pub quantisation_weight: f64,
    /// T ≥ 1: the centres are recomputed before every T-th epoch but the first. Default 2.
    pub every_epochs: u64,
}

impl Default for DcwhConfig {
    fn default() -> Self {
        Self {
            deviation: 1.0,
            floor: 1e-6,
            range_weight: 10.0,
            range: 1.1,
            quantisation_weight: 0.01,
            every_epochs: 2,
        }
    }
}

impl BuildLoss for DcwhConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "dcwh",
        title: "DCWH",
        family: Family::Hashing,
        summary: "codes around one centre for each class, the centres recomputed in every second epoch",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["zhe2020"],
        complete: true,
        preset: None,
    };
    type Loss = Dcwh;

    fn init(&self, context: &LossContext) -> Result<Dcwh> {
        check_two_bits("dcwh", context)?;
        above_zero("dcwh", "deviation", self.deviation, 1.0)?;
        not_negative("dcwh", "floor", self.floor, 1e-6)?;
        not_negative("dcwh", "range_weight", self.range_weight, 10.0)?;
        above_zero("dcwh", "range", self.range, 1.1)?;
        not_negative("dcwh", "quantisation_weight", self.quantisation_weight, 0.01)?;
        if self.every_epochs == 0 {
            return Err(Error::new(
                Kind::Config,
                "`every_epochs` of dcwh is 0",
                "give a whole number of epochs of at least 1; 2 is usual",
            ));
        }
        let classes = context.fine_classes();
        let centres = normal(&mut context.stream("centres"), classes * context.dimension, 1.0);
        Ok(Dcwh { centres: context.buffer(centres, classes), config: self.clone() })
    }
}

/// The centres and the loss around them.
#[derive(Module, Debug)]
pub struct Dcwh {
    /// [C, K]; not learned.
    pub centres: Param<Tensor<2>>,
    #[module(skip)]
    config: DcwhConfig,
}

impl Objective for Dcwh {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let DcwhConfig { deviation, floor, range_weight, range, quantisation_weight, .. } = self.config;
            let outputs = &batch.embeddings;
            let share = 1.0 / batch.labels.len() as f64;
            let centres = self.centres.val();
            let own = one_hot(batch.labels, centres.dims()[0], outputs);
            let exponents = distances(outputs.clone(), centres).square() * (-0.5 / deviation.powi(2));
            let [below, above] = [-outputs.clone(), outputs.clone()].map(|side| relu(side - range).sum());
            let regularisers = (below + above * share) * range_weight
                + quantisation_error(outputs) * (quantisation_weight * share);
            (regularisers - log_likelihood(exponents, own, floor)) * share
        })
    }

    fn needs_training_set(&self, epoch: u64) -> bool {
        epoch > 0 && epoch.is_multiple_of(self.config.every_epochs)
    }

    fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        let [_, bits] = embeddings.dims();
        let outputs = read_values(embeddings);
        let [classes, _] = self.centres.dims();
        let items = labels.column(labels.levels()).into_iter().zip(outputs.chunks(bits));
        let items = items.filter(|(class, _)| *class != UNKNOWN);
        replace_centres(&mut self.centres, &class_means(classes, items));
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;

    fn init(config: DcwhConfig, bits: usize) -> Result<Dcwh> {
        let classes = Labels::new(1, vec![0, 1, 2]).unwrap();
        config.init(&LossContext::new(&classes, bits, &Geometry::Binary, 0, &Device::flex()))
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let default = DcwhConfig::default();
        for config in [
            DcwhConfig { deviation: 0.0, ..default.clone() },
            DcwhConfig { floor: f64::NAN, ..default.clone() },
            DcwhConfig { range_weight: -1.0, ..default.clone() },
            DcwhConfig { range: 0.0, ..default.clone() },
            DcwhConfig { quantisation_weight: -0.1, ..default.clone() },
            DcwhConfig { every_epochs: 0, ..default.clone() },
        ] {
            assert_eq!(init(config, 4).unwrap_err().kind(), Kind::Config);
        }
        assert!(init(default, 1).unwrap_err().message().contains("1 bit"));
    }

    #[test]
    fn centres_are_draws_for_two_epochs_and_then_means_of_every_second_one() {
        let mut loss = init(DcwhConfig::default(), 2).unwrap();
        let needed: Vec<u64> = (0..7).filter(|&epoch| loss.needs_training_set(epoch)).collect();
        assert_eq!(needed, [2, 4, 6]);
        let rows = |loss: &Dcwh| loss.centres.val().into_data().try_into_vec::<f32>().unwrap();
        let drawn = rows(&loss);
        let embeddings = Tensor::from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], &Device::flex());
        loss.before_epoch(embeddings, &Labels::new(1, vec![0, 2, 0]).unwrap());
        assert_eq!(rows(&loss), [3.0, 4.5, drawn[2], drawn[3], 3.0, 4.0]);
        assert!(!loss.centres.is_require_grad());
    }

    #[test]
    fn the_lower_side_of_the_cube_pushes_harder_by_the_size_of_the_batch() {
        let device = Device::flex().autodiff();
        let labels = Labels::new(1, vec![0, 1, 1, 0]).unwrap();
        let classes = labels.classes();
        let config = DcwhConfig { quantisation_weight: 0.0, deviation: 1e3, ..DcwhConfig::default() };
        let loss = config.init(&LossContext::new(&classes, 2, &Geometry::Binary, 0, &device)).unwrap();
        let rows = [[2.0, -2.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]];
        let outputs = Tensor::from_floats(rows, &device).require_grad();
        let value = loss.forward(&Batch::new(outputs.clone(), &labels));
        let slopes = outputs.grad(&value.backward()).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert!((slopes[1] / slopes[0] + 4.0).abs() < 1e-3, "{slopes:?}");
    }
}
