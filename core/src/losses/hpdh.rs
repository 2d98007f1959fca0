//! HPDH: codes that gather around one centre for each class of every level.
//!
//! At every level each class is a Gaussian-like density around its centre, and the loss is the negative log
//! likelihood of the item's class (Zhang et al., *Semantic Hierarchy Preserving Deep Hashing for Large-Scale Image
//! Retrieval*, arXiv:1901.11259, eq. 2 and 5, in the form of its public code). With r_i the K outputs of item i, μ_c^l the
//! centre of class c of level l and y_i^l the label of item i at level l,
//!
//! ```text
//! L = (1/B) Σ_i [ −Σ_l log(p_l(y_i^l | r_i) + ε) + (η₁/K) Σ_k max(|r_ik| − ρ, 0) + (η₂/K) ‖sign r_i − r_i‖² ]
//! p_l(c | r) = exp(−‖r − μ_c^l‖² / 2σ_l) / (Σ_c' exp(−‖r − μ_c'^l‖² / 2σ_l) + ε)
//! ```
//!
//! The term of η₁ keeps the outputs in a cube a little larger than that of the codes; the term of η₂ pulls them to its
//! corners. The paper sums over all items, so its loss is this one times the number of items.
//!
//! # Centres
//!
//! Centres are recomputed, not learned. At the start of each epoch the centre of a fine class becomes the mean of its
//! items (eq. 3), and the centre of a coarser class the mean of its children's centres (eq. 4); every child counts
//! once, however many items it has. A class without an item in the training set keeps its centre and does not count
//! in its parent's mean. In the first epoch centres are draws from N(0, 1).
//!
//! # Text and code
//!
//! The defaults are the public code; the preset `hpdh_text` is the paper's text:
//!
//! | setting | code | text |
//! |---|---|---|
//! | `squared` | exponents −‖r − μ‖² / 2σ | −‖r − μ‖ / 2σ² |
//! | `floor` | ε = 1e-8 in the sum and in the logarithm, so that an item far from every centre has no gradient | the logarithm of the quotient e / Σ e |
//! | `mean_over_bits` | both regularisers divided by K | summed over the K bits, so 32 to 64 times stronger |
//! | `drawn_centres` | draws from N(0, 1) for the whole first epoch | class means from the first step on (Algorithm 1) |
//!
//! Eq. 2 writes the term of η₁ without a sum, for one vector r_n. In the text's form it is summed over bits and items, as
//! the term of η₂ is.
//!
//! With the text's settings the regularisers outweigh the likelihood. From random weights (recipe `omniglot-hash`) all codes
//! then become nearly equal: AP of characters 0.6 with 32 bits, where the code's settings have 5.4 and are the best of all
//! losses for codes. On a pretrained network (`grocery-head`, with the learning rate tuned) H-AP is 39.6 with the text, 47.3
//! with the text and `mean_over_bits`, and 47.7 with the code.
//!
//! # Gradient
//!
//! Centres and signs are constants. The sign of an exact 0 is 0, which pulls neither way. Where an output lies on a
//! centre, the gradient of that distance is 0.
//!
//! # Baselines of its tables that are not here
//!
//! SHDH (Wang et al., *Supervised Deep Hashing for Hierarchical Labeled Data*, AAAI 2018, arXiv:1704.02088) weighs levels
//! in a similarity of labels and in a Hamming distance between segments of the codes. IDCWH (Zhang & Yan, *Improved Deep
//! Classwise Hashing With Centers Similarity Learning*, ICPR 2021, arXiv:2103.09442) learns the centres of
//! [DCWH](super::dcwh) together with the codes, and pushes centres apart. Only their abstracts were at hand, no equations, and no public code of
//! either was found, so that a loss of these names would be an invention. [`dcdh`](super::dcdh), by the authors of
//! IDCWH, has the parts that its abstract describes.

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

/// Settings of [`Hpdh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HpdhConfig {
    /// σ_1 … σ_L, coarse → fine, each above 0. Default: the published values for two levels (2, 1) and four levels
    /// (4, 2, 1.5, 1; the code rounds 1/1.5 to 0.67), and L, …, 2, 1 for any other number of levels, which no paper
    /// gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<Vec<f64>>,
    /// Use exponents −‖r − μ‖² / 2σ instead of −‖r − μ‖ / 2σ². Default true.
    pub squared: bool,
    /// ε ≥ 0, added to the sum of the densities and inside the logarithm; 0 takes the exact logarithm. Default 1e-8.
    pub floor: f64,
    /// η₁ ≥ 0. Default 10.
    pub range_weight: f64,
    /// ρ > 0, half the width of the cube. Default 1.1.
    pub range: f64,
    /// η₂ ≥ 0. Default 0.1.
    pub quantisation_weight: f64,
    /// Divide both regularisers by the number of bits. Default true.
    pub mean_over_bits: bool,
    /// Keep the centres drawn from N(0, 1) for the first epoch, instead of computing them before it. Default true.
    pub drawn_centres: bool,
}

impl Default for HpdhConfig {
    fn default() -> Self {
        Self {
            deviations: None,
            squared: true,
            floor: 1e-8,
            range_weight: 10.0,
            range: 1.1,
            quantisation_weight: 0.1,
            mean_over_bits: true,
            drawn_centres: true,
        }
    }
}

impl BuildLoss for HpdhConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hpdh",
        title: "HPDH",
        family: Family::Hashing,
        summary: "codes around one centre for each class of every level, the centres recomputed in each epoch",
        optimises: "ndcg",
        spaces: &[Space::Binary],
        sources: &["zhang2019"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "hpdh_text",
        title: "HPDH (text)",
        summary: "HPDH as in the paper's text: distances over σ², regularisers summed over the bits",
        preset: Some(
            r#"{ "kind": "hpdh", "squared": false, "floor": 0.0, "mean_over_bits": false, "drawn_centres": false }"#,
        ),
        ..Self::ENTRY
    }];
    type Loss = Hpdh;

    fn init(&self, context: &LossContext) -> Result<Hpdh> {
        check_two_bits("hpdh", context)?;
        not_negative("hpdh", "floor", self.floor, 1e-8)?;
        not_negative("hpdh", "range_weight", self.range_weight, 10.0)?;
        above_zero("hpdh", "range", self.range, 1.1)?;
        not_negative("hpdh", "quantisation_weight", self.quantisation_weight, 0.1)?;
        let depth = context.levels();
        let deviations = match &self.deviations {
            Some(deviations) => deviations.clone(),
            None if depth == 4 => vec![4.0, 2.0, 1.5, 1.0],
            None => (1..=depth).rev().map(|deviation| deviation as f64).collect(),
        };
        if deviations.len() != depth {
            return Err(Error::new(
                Kind::Config,
                format!("hpdh has {} deviations, but the taxonomy has {depth} levels", deviations.len()),
                "give one deviation per level, coarse to fine, or leave them out",
            ));
        }
        for &deviation in &deviations {
            above_zero("hpdh", "deviation", deviation, 1.0)?;
        }
        let mut draws = context.stream("centres");
        let centres = (1..=depth).map(|level| {
            let count = context.class_count(level);
            context.buffer(normal(&mut draws, count * context.dimension, 1.0), count)
        });
        let centres = centres.collect();
        Ok(Hpdh { centres, deviations, classes: context.classes.clone(), config: self.clone() })
    }
}

/// The centres and the loss around them.
#[derive(Module, Debug)]
pub struct Hpdh {
    /// [C_l, K] for each level, coarse → fine; not learned.
    pub centres: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    deviations: Vec<f64>,
    /// The label path of each fine class.
    #[module(skip)]
    classes: Labels,
    #[module(skip)]
    config: HpdhConfig,
}

impl Objective for Hpdh {
    /// Labels must be below the number of classes of their level.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let outputs = &batch.embeddings;
        let [rows, bits] = outputs.dims();
        let outside = relu(outputs.clone().abs() - self.config.range).sum();
        let regularisers = outside * self.config.range_weight
            + quantisation_error(outputs) * self.config.quantisation_weight;
        let count = if self.config.mean_over_bits { rows * bits } else { rows };
        let levels = self.level_losses(batch).into_iter();
        levels.fold(regularisers * (1.0 / count as f64), |sum, level| sum + level)
    }

    fn needs_training_set(&self, epoch: u64) -> bool {
        epoch > 0 || !self.config.drawn_centres
    }

    fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        let [_, bits] = embeddings.dims();
        let outputs = read_values(embeddings);
        let depth = self.classes.levels();
        // The means of the items whose class is known at a level.
        let counts: Vec<usize> = (1..=depth).map(|level| self.class_count(level)).collect();
        let item_means = |level: usize| {
            let items = labels.column(level).into_iter().zip(outputs.chunks(bits));
            class_means(counts[level - 1], items.filter(|(class, _)| *class != UNKNOWN))
        };
        let mut means = item_means(depth);
        for level in (1..=depth).rev() {
            if level < depth {
                let paths = self.classes.up_to(level + 1).classes();
                let children = (0..paths.len()).filter_map(|row| match *paths.row(row) {
                    [.., _, UNKNOWN] => None,
                    [.., parent, child] => means[child as usize].as_deref().map(|mean| (parent, mean)),
                    _ => None,
                });
                let of_children = class_means(self.class_count(level), children);
                // No finer class of these is known.
                means = of_children
                    .into_iter()
                    .zip(item_means(level))
                    .map(|(mean, items)| mean.or(items))
                    .collect();
            }
            replace_centres(&mut self.centres[level - 1], &means);
        }
    }
}

impl Hpdh {
    /// The loss of each level, coarse → fine, without the two regularisers.
    pub fn level_losses(&self, batch: &Batch) -> Vec<Tensor<1>> {
        let outputs = &batch.embeddings;
        let level_loss = |(level, centres): (usize, &Param<Tensor<2>>)| {
            let distances = distances(outputs.clone(), centres.val());
            let deviation = self.deviations[level - 1];
            let exponents = if self.config.squared {
                distances.square() * (-0.5 / deviation)
            } else {
                distances * (-0.5 / deviation.powi(2))
            };
            let own_class = one_hot(&batch.labels.up_to(level), centres.dims()[0], outputs);
            let known = batch.labels.known_counts()[level - 1].max(1);
            log_likelihood(exponents, own_class, self.config.floor) * (-1.0 / known as f64)
        };
        (1..).zip(&self.centres).map(level_loss).collect()
    }

    fn class_count(&self, level: usize) -> usize {
        self.centres[level - 1].dims()[0]
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;

    fn init(config: HpdhConfig, bits: usize) -> Result<Hpdh> {
        let classes = Labels::new(2, vec![0, 0, 0, 1, 1, 2]).unwrap();
        config.init(&LossContext::new(&classes, bits, &Geometry::Binary, 0, &Device::flex()))
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let default = HpdhConfig::default();
        for config in [
            HpdhConfig { deviations: Some(vec![1.0]), ..default.clone() },
            HpdhConfig { deviations: Some(vec![1.0, 0.0]), ..default.clone() },
            HpdhConfig { floor: f64::NAN, ..default.clone() },
            HpdhConfig { quantisation_weight: -0.1, ..default.clone() },
            HpdhConfig { range_weight: -1.0, ..default.clone() },
            HpdhConfig { range: 0.0, ..default.clone() },
        ] {
            assert_eq!(init(config, 4).unwrap_err().kind(), Kind::Config);
        }
        assert!(init(default, 1).unwrap_err().message().contains("1 bit"));
    }

    #[test]
    fn deviations_default_to_the_published_values() {
        for (depth, expected) in
            [(1, &[1.0][..]), (2, &[2.0, 1.0]), (3, &[3.0, 2.0, 1.0]), (4, &[4.0, 2.0, 1.5, 1.0])]
        {
            let classes = Labels::new(depth, vec![0; depth]).unwrap();
            let device = Device::flex();
            let context = LossContext::new(&classes, 4, &Geometry::Binary, 0, &device);
            assert_eq!(HpdhConfig::default().init(&context).unwrap().deviations, expected);
        }
    }

    #[test]
    fn a_class_without_items_keeps_its_centre() {
        let mut loss = init(HpdhConfig::default(), 2).unwrap();
        let ids = |loss: &Hpdh| loss.centres.iter().map(|centres| centres.id).collect::<Vec<_>>();
        let before = ids(&loss);
        let rows = |centres: &Param<Tensor<2>>| centres.val().into_data().try_into_vec::<f32>().unwrap();
        let [coarse, fine] = [0, 1].map(|level: usize| rows(&loss.centres[level]));
        let embeddings = Tensor::from_floats([[1.0, 2.0], [3.0, 4.0]], &Device::flex());
        loss.before_epoch(embeddings, &Labels::new(2, vec![0, 1, 0, 1]).unwrap());
        assert_eq!(rows(&loss.centres[0]), [2.0, 3.0, coarse[2], coarse[3]]);
        assert_eq!(ids(&loss), before);
        assert!(loss.centres.iter().all(|centres| !centres.is_require_grad()));
        assert_eq!(rows(&loss.centres[1]), [fine[0], fine[1], 2.0, 3.0, fine[4], fine[5]]);
    }

    #[test]
    fn far_items_have_a_gradient_without_the_floor_and_none_with_it() {
        let device = Device::flex().autodiff();
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        let slope = |floor: f64| {
            let config = HpdhConfig { squared: true, floor, ..HpdhConfig::default() };
            let loss = config.init(&LossContext::new(&classes, 2, &Geometry::Binary, 0, &device)).unwrap();
            // One of the two items is on the wrong side.
            let far = Tensor::from_floats([[30.0, 0.0], [30.0, 0.0]], &device).require_grad();
            let value = loss.level_losses(&Batch::new(far.clone(), &classes)).remove(0);
            far.grad(&value.backward()).unwrap().abs().sum().into_scalar::<f32>()
        };
        assert_eq!(slope(1e-8), 0.0);
        assert!(slope(0.0) > 0.1);
    }

    #[test]
    fn the_training_set_is_needed_before_the_first_epoch_unless_its_centres_are_drawn() {
        let needs = |drawn_centres| {
            let loss = init(HpdhConfig { drawn_centres, ..HpdhConfig::default() }, 4).unwrap();
            [0, 1].map(|epoch| loss.needs_training_set(epoch))
        };
        assert_eq!((needs(false), needs(true)), ([true, true], [false, true]));
    }
}
