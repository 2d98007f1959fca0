//! CSQ: each class has a fixed code, far from the codes of all others, and its items learn that code bit by bit.
//!
//! Let c_i ∈ {−1, 1}ᴷ be the code of item i's class, h_ik = (1 + tanh r_ik) / 2 = σ(2 r_ik) the probability that bit k
//! of the item is 1, and t_ik = (1 + c_ik) / 2 the bit that it should be. Then (Yuan et al., *Central Similarity
//! Quantization for Efficient Image and Video Retrieval*, CVPR 2020)
//!
//! ```text
//! L = (1/BK) Σ_i Σ_k [ −t_ik log h_ik − (1 − t_ik) log(1 − h_ik) + λ log cosh(|2 h_ik − 1| − 1) ]
//! ```
//!
//! The first part is the paper's central similarity, computed as −log σ(2 c_ik r_ik), which is finite for every r. The
//! second part is its quantisation loss. Both are means over items and bits, as in the authors' code. Classes are those
//! of the finest level.
//!
//! # Text and code
//!
//! `csq` is the text with the weight λ of the code. The authors' code, `csq_published`, differs in two settings:
//!
//! | setting | text | code |
//! |---|---|---|
//! | `quantisation` | log cosh(\|y\| − 1), with y = tanh r = 2h − 1 | (\|y\| − 1)² |
//! | `pair_weight` | no pairs | 0.2 times the mean of log(1 + exp Θ_ij) − s_ij Θ_ij over items i of the first half of the batch and j of the second, with Θ_ij = 10 y_i·y_j / K, and s_ij = 1 if they share a class, else 0 |
//!
//! They train equally well: on frozen features (recipe `grocery-head`, five seeds, tuned) AP of varieties is 45.7 ± 0.5
//! with the text and 45.3 ± 0.6 with the code. A common re-implementation (`swuxyj/DeepHash-pytorch`)
//! has the squared form, no pairs and λ = 10⁻⁴.
//!
//! # Centres
//!
//! If K is a power of two and there are at most 2K classes, the centres are the rows of the Hadamard matrix and then
//! their negatives: any two are K/2 bits apart, a row and its negative K bits. Otherwise every bit is drawn from
//! Bernoulli(½), and a code is drawn again until it is at least d bits from all earlier codes. d is the largest number
//! with C · |{codes within d − 1 bits of a code}| ≤ 2ᴷ⁻¹, and at least 1; by the Gilbert–Varshamov bound each draw
//! then succeeds with probability ½ or more. For 100 classes and 65 bits d is 22; the authors' code asks for 20 at 64
//! bits.
//!
//! # Gradient
//!
//! Centres are constants. At r = 0 the gradient of the quantisation loss is 0.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation::log_sigmoid, activation::softplus};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, check_two_bits, matrix, not_negative,
    one_hot,
};
use crate::geometry::Space;
use crate::hamming::distance;
use crate::{Error, Kind, Result};

/// Settings of [`Csq`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CsqConfig {
    /// λ ≥ 0. Default 0.05, the weight in the authors' code.
    pub quantisation_weight: f64,
    /// The quantisation loss of a bit. Default: the paper's.
    pub quantisation: Quantisation,
    /// The weight ≥ 0 of the pairs of the two halves of the batch. Default 0.
    pub pair_weight: f64,
}

/// The quantisation loss of a bit with the output y = tanh r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantisation {
    /// log cosh(|y| − 1), as in the paper.
    #[default]
    LogCosh,
    /// (|y| − 1)², as in the authors' code.
    Squared,
}

impl Default for CsqConfig {
    fn default() -> Self {
        Self { quantisation_weight: 0.05, quantisation: Quantisation::LogCosh, pair_weight: 0.0 }
    }
}

impl BuildLoss for CsqConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "csq",
        title: "CSQ",
        family: Family::Hashing,
        summary: "cross-entropy of each bit to the fixed code of the item's class; the codes are far apart",
        optimises: "ap",
        spaces: &[Space::Binary],
        sources: &["yuan2020"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "csq_published",
        title: "CSQ (code)",
        summary: "CSQ as in its code: squared quantisation, and the likelihood of pairs beside it",
        preset: Some(r#"{ "kind": "csq", "quantisation": "squared", "pair_weight": 0.2 }"#),
        ..Self::ENTRY
    }];
    type Loss = Csq;

    fn init(&self, context: &LossContext) -> Result<Csq> {
        check_two_bits("csq", context)?;
        not_negative("csq", "quantisation_weight", self.quantisation_weight, 0.05)?;
        not_negative("csq", "pair_weight", self.pair_weight, 0.2)?;
        let (bits, classes) = (context.dimension, context.fine_classes());
        if bits < usize::BITS as usize && classes > 1 << bits {
            return Err(Error::new(
                Kind::Config,
                format!("{bits} bits have {} codes, too few for {classes} classes", 1u64 << bits),
                "give the head more bits: at least twice the base-2 logarithm of the number of classes",
            ));
        }
        let centres = if bits.is_power_of_two() && classes <= 2 * bits {
            hadamard(classes, bits)
        } else {
            bernoulli(classes, bits, &mut context.stream("centres"))
        };
        Ok(Csq { centres: context.buffer(centres, classes), config: self.clone() })
    }
}

/// The code of each class and the cross-entropy to it.
#[derive(Module, Debug)]
pub struct Csq {
    /// [C, K], each −1 or 1; not learned.
    pub centres: Param<Tensor<2>>,
    #[module(skip)]
    config: CsqConfig,
}

impl Objective for Csq {
    /// Labels must be below C or unknown.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let outputs = batch.embeddings.clone();
            let [rows, bits] = outputs.dims();
            let centres = self.centres.val();
            let item_centres = one_hot(batch.labels, centres.dims()[0], &outputs).matmul(centres);
            let central = -log_sigmoid(outputs.clone() * item_centres * 2.0);
            let squashed = outputs.tanh();
            let short = squashed.clone().abs() - 1.0;
            let quantised = match self.config.quantisation {
                Quantisation::LogCosh => short.cosh().log(),
                Quantisation::Squared => short.square(),
            };
            let of_items =
                (central + quantised * self.config.quantisation_weight).sum() * (1.0 / (rows * bits) as f64);
            if self.config.pair_weight == 0.0 || rows < 2 {
                return of_items;
            }
            of_items
                + pair_loss(squashed, &batch.labels.column(batch.labels.levels())) * self.config.pair_weight
        })
    }
}

/// The mean of log(1 + exp Θ_ij) − s_ij Θ_ij over the items i of the first half of the batch and j of the second. A last
/// item without a partner is left out. `squashed` is [B, K] with B ≥ 2.
fn pair_loss(squashed: Tensor<2>, classes: &[u32]) -> Tensor<1> {
    let [rows, bits] = squashed.dims();
    let half = rows / 2;
    let halves = [0..half, half..2 * half].map(|rows| squashed.clone().slice([rows, 0..bits]));
    let [first, second] = halves;
    let theta = first.matmul(second.transpose()) * (10.0 / bits as f64);
    let same =
        |i: usize| classes[half..2 * half].iter().map(move |other| f64::from(u8::from(classes[i] == *other)));
    let same = matrix((0..half).flat_map(same).collect(), [half, half], &theta);
    (softplus(theta.clone(), 1.0) - theta * same).sum() * (1.0 / (half * half) as f64)
}

/// The first rows of the Hadamard matrix and then of its negative. Bit k of row i is 1 if the binary numbers i and k
/// share an even number of ones.
fn hadamard(count: usize, bits: usize) -> Vec<f32> {
    let entry = |row: usize, bit: usize| {
        let odd = (row & bit & (bits - 1)).count_ones() + u32::from(row >= bits);
        if odd.is_multiple_of(2) { 1.0 } else { -1.0 }
    };
    (0..count).flat_map(|row| (0..bits).map(move |bit| entry(row, bit))).collect()
}

/// Random codes at least [`separation`] bits apart. 2ᴷ must be at least `count`.
fn bernoulli(count: usize, bits: usize, draws: &mut ChaCha8Rng) -> Vec<f32> {
    let apart = separation(count, bits);
    let mut codes: Vec<Vec<u64>> = Vec::with_capacity(count);
    while codes.len() < count {
        let word = |at: usize| draws.random::<u64>() & (u64::MAX >> (64 - (bits - at).min(64)));
        let code: Vec<u64> = (0..bits).step_by(64).map(word).collect();
        if codes.iter().all(|other| distance(other, &code) >= apart) {
            codes.push(code);
        }
    }
    let sign = |code: &[u64], bit: usize| if code[bit / 64] >> (bit % 64) & 1 == 1 { 1.0 } else { -1.0 };
    codes.iter().flat_map(|code| (0..bits).map(move |bit| sign(code, bit))).collect()
}

/// d, see the [module](self): how many bits apart `count` random codes are drawn; at least 1.
fn separation(count: usize, bits: usize) -> u32 {
    // The share of all codes that are nearer than `apart` to one of twice `count` codes. The share at an exact distance
    // is kept as a base-2 logarithm, because for long codes it is too small for an f64.
    let mut sphere = (2.0 * count as f64).log2() - bits as f64;
    let mut near = sphere.exp2();
    let mut apart = 0;
    while near <= 1.0 && apart < bits {
        apart += 1;
        sphere += ((bits + 1 - apart) as f64 / apart as f64).log2();
        near += sphere.exp2();
    }
    apart.max(1) as u32
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;
    use crate::hamming::Codes;
    use crate::random::stream;
    use crate::taxonomy::Labels;

    fn init(classes: u32, bits: usize, weight: f64) -> Result<Csq> {
        let classes = Labels::new(1, (0..classes).collect()).unwrap();
        let config = CsqConfig { quantisation_weight: weight, ..CsqConfig::default() };
        config.init(&LossContext::new(&classes, bits, &Geometry::Binary, 0, &Device::flex()))
    }

    fn nearest(centres: &[f32], bits: usize) -> u32 {
        let codes = Codes::from_signs(bits, centres);
        let pairs = (0..codes.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.map(|(i, j)| codes.distance(i, j)).min().unwrap()
    }

    #[test]
    fn hadamard_codes_are_half_their_bits_apart() {
        assert_eq!(hadamard(4, 2), [1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0]);
        for bits in [4, 16, 64] {
            assert_eq!(nearest(&hadamard(2 * bits, bits), bits), bits as u32 / 2);
        }
    }

    #[test]
    fn random_codes_keep_their_distance() {
        assert_eq!(separation(100, 65), 22);
        for (count, bits) in [(100, 48), (100, 65), (300, 64), (8, 3), (7, 3), (500, 130), (3, 3000)] {
            let centres = bernoulli(count, bits, &mut stream(1, "centres", &[]));
            assert_eq!(centres.len(), count * bits);
            assert!(nearest(&centres, bits) >= separation(count, bits), "{count} codes of {bits} bits");
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = init(9, 3, 0.05).unwrap_err();
        assert!(error.message().contains("3 bits have 8 codes, too few for 9 classes"), "{error}");
        assert!(init(8, 3, 0.05).is_ok());
        assert!(init(2, 1, 0.05).unwrap_err().message().contains("1 bit"));
        assert!(init(2, 2, -1.0).is_err() && init(2, 2, f64::NAN).is_err());
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        let pairs = CsqConfig { pair_weight: -0.1, ..CsqConfig::default() };
        let device = Device::flex();
        let error = pairs.init(&LossContext::new(&classes, 4, &Geometry::Binary, 0, &device)).unwrap_err();
        assert!(error.message().contains("the pair_weight of csq is -0.1"), "{error}");
    }
}
