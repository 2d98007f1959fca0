//! HPDH: codes that gather around one centre for each class of every level.
//!
//! At each level the numbers r_i of an item are taken as drawn from one density per class, all of one width
//! (Zhang et al., *Semantic Hierarchy Preserving Deep Hashing for Large-Scale Image Retrieval*, arXiv:1901.11259).
//! With K bits, μ_c^l the centre of class c of level l and y_i^l the label of item i there,
//!
//! ```text
//! L = Σ_l −(1/B) Σ_i log p_l(y_i^l | r_i) + (1/BK) Σ_i Σ_k [ λ_r max(|r_ik| − ρ, 0) + λ_q (sign r_ik − r_ik)² ]
//! p_l(c | r) = exp(−‖r − μ_c^l‖ / 2σ_l²) / Σ_c' exp(−‖r − μ_c'^l‖ / 2σ_l²)
//! ```
//!
//! The second sum keeps the numbers in a cube a little larger than that of the codes, and draws them to its corners.
//! The published code has −‖r − μ‖² / 2σ_l in the exponents (`squared`), and log(e / (Σ e + 1e-8) + 1e-8) in place
//! of the logarithm of a softmax (`floor`): where an item is far from every centre, this loses its gradient.
//!
//! # Centres
//!
//! They are not learned but recomputed. At the start they come from N(0, 1); after each epoch the centre of a fine
//! class becomes the mean of its items, and that of a coarser class the mean of the centres of its children, each
//! counted once however many items it has. A class of which the epoch saw no item keeps its centre, and does not
//! count in that of its parent.
//!
//! # Gradient
//!
//! Centres and signs are constants. At an exact 0 the sign is 0 and pulls neither way; on a centre the distance has
//! the gradient 0.
//!
//! # One level
//!
//! On the fine level alone, with squared distances, it is the class-wise loss of DCWH (Zhe et al., TNNLS 2020), the
//! preset `dcwh`; the two steps of DCWH's training, of which the second adds the term of the corners, are not kept
//! apart.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_softmax, activation::relu};
use serde::{Deserialize, Serialize};

use super::{
    Batch, Entry, Family, LossSettings, Objective, Setting, above_zero, matrix, not_negative, numbers,
    one_hot, quantisation, replaced, two_bits,
};
use crate::geometry::Space;
use crate::geometry::distances;
use crate::random::normal;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of [`Hpdh`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HpdhConfig {
    /// σ_1 … σ_L, coarse → fine, each above 0. Default: on two and four levels those that were published, 2, 1 and
    /// 4, 2, 1.5, 1 (the code rounds 1/1.5 to 0.67); on any other number of levels, which is our reading, L, …, 2, 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<Vec<f64>>,
    /// Whether the exponents are −‖r − μ‖² / 2σ in place of −‖r − μ‖ / 2σ². Default false.
    pub squared: bool,
    /// What is added to the sum of the densities and inside the logarithm; 0: the exact logarithm. Default 0.
    pub floor: f64,
    /// Whether only the finest level counts. Default false.
    pub fine_only: bool,
    /// λ_r ≥ 0. Default 10.
    pub range_weight: f64,
    /// ρ > 0, the half width of the cube. Default 1.1.
    pub range: f64,
    /// λ_q ≥ 0. Default 0.1.
    pub quantisation_weight: f64,
}

impl Default for HpdhConfig {
    fn default() -> Self {
        Self {
            deviations: None,
            squared: false,
            floor: 0.0,
            fine_only: false,
            range_weight: 10.0,
            range: 1.1,
            quantisation_weight: 0.1,
        }
    }
}

impl LossSettings for HpdhConfig {
    const ENTRY: Entry = Entry {
        name: "hpdh",
        title: "HPDH",
        family: Family::Hashing,
        summary: "codes around one centre for each class of every level, the centres recomputed after each epoch",
        optimises: "ndcg",
        spaces: &[Space::Binary],
        sources: &["zhang2019"],
        complete: true,
        preset: None,
    };
    type Loss = Hpdh;

    fn init(&self, setting: &Setting) -> Result<Hpdh> {
        two_bits("hpdh", setting)?;
        not_negative("hpdh", "floor", self.floor, 0.0)?;
        not_negative("hpdh", "range_weight", self.range_weight, 10.0)?;
        above_zero("hpdh", "range", self.range, 1.1)?;
        not_negative("hpdh", "quantisation_weight", self.quantisation_weight, 0.1)?;
        let depth = setting.levels();
        let deviations = match &self.deviations {
            Some(deviations) => deviations.clone(),
            None if depth == 4 => vec![4.0, 2.0, 1.5, 1.0],
            None => (1..=depth).rev().map(|deviation| deviation as f64).collect(),
        };
        if deviations.len() != depth {
            return Err(Error::new(
                Kind::Config,
                format!("hpdh is given {} deviations for {depth} levels", deviations.len()),
                "give one for each level, coarse to fine, or leave them out",
            ));
        }
        for &deviation in &deviations {
            above_zero("hpdh", "deviation", deviation, 1.0)?;
        }
        let mut draws = setting.stream("centres");
        let coarsest = if self.fine_only { depth } else { 1 };
        let centres = (coarsest..=depth).map(|level| {
            let count = setting.class_count(level);
            setting.kept(normal(&mut draws, count * setting.dimension, 1.0), count)
        });
        let centres = centres.collect();
        Ok(Hpdh { centres, coarsest, deviations, classes: setting.classes.clone(), config: self.clone() })
    }
}

/// The centres and the loss around them.
#[derive(Module, Debug)]
pub struct Hpdh {
    /// [C_l, K] for each level that counts, coarse → fine; not learned.
    pub centres: Vec<Param<Tensor<2>>>,
    /// The first level that counts.
    #[module(skip)]
    coarsest: usize,
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
        let numbers = &batch.embeddings;
        let [rows, bits] = numbers.dims();
        let outside = relu(numbers.clone().abs() - self.config.range).sum();
        let pull =
            outside * self.config.range_weight + quantisation(numbers) * self.config.quantisation_weight;
        let levels = self.level_losses(batch).into_iter();
        levels.fold(pull * (1.0 / (rows * bits) as f64), |sum, level| sum + level)
    }

    fn needs_epoch(&self) -> bool {
        true
    }

    fn after_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        let [_, bits] = embeddings.dims();
        let numbers = numbers(embeddings);
        let depth = self.classes.levels();
        let fine = labels.column(depth);
        let mut means = class_means(self.classes_of(depth), fine.iter().copied().zip(numbers.chunks(bits)));
        for level in (self.coarsest..=depth).rev() {
            if level < depth {
                let families = self.classes.up_to(level + 1).classes();
                let children = (0..families.len()).filter_map(|row| match *families.row(row) {
                    [.., parent, child] => means[child as usize].as_deref().map(|mean| (parent, mean)),
                    _ => None,
                });
                means = class_means(self.classes_of(level), children);
            }
            self.move_centres(level, &means);
        }
    }
}

impl Hpdh {
    /// The loss of each level that counts, coarse → fine, without the terms of the cube.
    pub fn level_losses(&self, batch: &Batch) -> Vec<Tensor<1>> {
        let numbers = &batch.embeddings;
        let of_level = |(level, centres): (usize, &Param<Tensor<2>>)| {
            let distances = distances(numbers.clone(), centres.val());
            let deviation = self.deviations[level - 1];
            let exponents = if self.config.squared {
                distances.square() * (-0.5 / deviation)
            } else {
                distances * (-0.5 / deviation.powi(2))
            };
            let of_class = one_hot(&batch.labels.up_to(level), centres.dims()[0], numbers);
            let logarithms = if self.config.floor == 0.0 {
                log_softmax(exponents, 1)
            } else {
                let densities = exponents.exp();
                let sums = densities.clone().sum_dim(1) + self.config.floor;
                (densities / sums + self.config.floor).log()
            };
            (logarithms * of_class).sum() * (-1.0 / batch.labels.len() as f64)
        };
        (self.coarsest..).zip(&self.centres).map(of_level).collect()
    }

    fn classes_of(&self, level: usize) -> usize {
        self.centres[level - self.coarsest].dims()[0]
    }

    /// Puts the means that there are in the place of the centres of a level.
    fn move_centres(&mut self, level: usize, means: &[Option<Vec<f64>>]) {
        let centres = &mut self.centres[level - self.coarsest];
        let old = centres.val();
        let shape @ [_, bits] = old.dims();
        let mut moved = numbers(old.clone());
        for (centre, mean) in moved.chunks_mut(bits).zip(means) {
            if let Some(mean) = mean {
                centre.copy_from_slice(mean);
            }
        }
        *centres = replaced(centres, matrix(moved, shape, &old));
    }
}

/// The mean of the members of each class; none where a class has none.
fn class_means<'a>(classes: usize, members: impl Iterator<Item = (u32, &'a [f64])>) -> Vec<Option<Vec<f64>>> {
    let mut sums: Vec<Option<(Vec<f64>, f64)>> = vec![None; classes];
    for (class, numbers) in members {
        let (sum, count) = sums[class as usize].get_or_insert_with(|| (vec![0.0; numbers.len()], 0.0));
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        *count += 1.0;
    }
    let mean = |(sum, count): (Vec<f64>, f64)| sum.into_iter().map(|sum| sum / count).collect();
    sums.into_iter().map(|sum| sum.map(mean)).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;

    fn init(config: HpdhConfig, bits: usize) -> Result<Hpdh> {
        let classes = Labels::new(2, vec![0, 0, 0, 1, 1, 2]).unwrap();
        config.init(&Setting::new(&classes, bits, &Geometry::Binary, 0, &Device::flex()))
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
    fn deviations_default_to_the_published_ones() {
        for (depth, expected) in
            [(1, &[1.0][..]), (2, &[2.0, 1.0]), (3, &[3.0, 2.0, 1.0]), (4, &[4.0, 2.0, 1.5, 1.0])]
        {
            let classes = Labels::new(depth, vec![0; depth]).unwrap();
            let device = Device::flex();
            let setting = Setting::new(&classes, 4, &Geometry::Binary, 0, &device);
            assert_eq!(HpdhConfig::default().init(&setting).unwrap().deviations, expected);
        }
    }

    #[test]
    fn a_class_that_the_epoch_did_not_see_keeps_its_centre() {
        let mut loss = init(HpdhConfig::default(), 2).unwrap();
        let ids = |loss: &Hpdh| loss.centres.iter().map(|centres| centres.id).collect::<Vec<_>>();
        let before = ids(&loss);
        let rows = |centres: &Param<Tensor<2>>| centres.val().into_data().try_into_vec::<f32>().unwrap();
        let [coarse, fine] = [0, 1].map(|level: usize| rows(&loss.centres[level]));
        let embeddings = Tensor::from_floats([[1.0, 2.0], [3.0, 4.0]], &Device::flex());
        loss.after_epoch(embeddings, &Labels::new(2, vec![0, 1, 0, 1]).unwrap());
        assert_eq!(rows(&loss.centres[0]), [2.0, 3.0, coarse[2], coarse[3]]);
        assert_eq!(ids(&loss), before);
        assert!(loss.centres.iter().all(|centres| !centres.is_require_grad()));
        assert_eq!(rows(&loss.centres[1]), [fine[0], fine[1], 2.0, 3.0, fine[4], fine[5]]);
    }

    #[test]
    fn the_floor_loses_the_gradient_of_far_items_and_the_exact_logarithm_does_not() {
        let device = Device::flex().autodiff();
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        let slope = |floor: f64| {
            let config = HpdhConfig { squared: true, floor, ..HpdhConfig::default() };
            let loss = config.init(&Setting::new(&classes, 2, &Geometry::Binary, 0, &device)).unwrap();
            // One of the two is on the wrong side.
            let far = Tensor::from_floats([[30.0, 0.0], [30.0, 0.0]], &device).require_grad();
            let value = loss.level_losses(&Batch::new(far.clone(), &classes)).remove(0);
            far.grad(&value.backward()).unwrap().abs().sum().into_scalar::<f32>()
        };
        assert_eq!(slope(1e-8), 0.0);
        assert!(slope(0.0) > 0.1);
    }
}
