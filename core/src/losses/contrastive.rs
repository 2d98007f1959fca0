//! Contrastive loss: positives closer than one margin, negatives farther than another.
//!
//! ```text
//! L = mean⁺ [d_ij − m⁺]₊ + mean⁻ [m⁻ − d_ij]₊      j ∈ P_i and j ∈ N_i
//! ```
//!
//! d is the Euclidean distance of embeddings scaled to unit length; m⁺ and m⁻ are the margins. Each mean is over the
//! pairs with a term above 0; it is 0 without such pairs. With `measure = "cosine"` the terms are [m⁺ − s_ij]₊ and
//! [s_ij − m⁻]₊.
//!
//! With `squared` each term is half its square, as in Hadsell et al., *Dimensionality Reduction by Learning an
//! Invariant Mapping*, CVPR 2006, eq. 4, which sums over pairs. The plain form, averaged over active pairs, is that of
//! pytorch-metric-learning and of Proxy-Anchor's tables, which use m⁻ = 0.5.
//!
//! # Gradient
//!
//! It is 0 exactly at the margin and between items that coincide. It jumps where a pair becomes active and joins the
//! mean. A miner's choice has no gradient.

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, finite, mask_above_zero, not_negative,
};
use crate::geometry::Space;
use crate::miners::Miner;
use crate::{Checked, Error, Kind, Result};

/// Settings of [`Contrastive`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ContrastiveConfig {
    /// m⁺. Default 0; 1 is usual for the cosine.
    pub positive_margin: f64,
    /// m⁻. Default 1; 0 to 0.5 is usual for the cosine.
    pub negative_margin: f64,
    /// The measure that the margins apply to. Default Euclidean distance.
    pub measure: Measure,
    /// Whether each term is half its square. Default false.
    pub squared: bool,
    /// Which pairs count. Default all.
    pub miner: Miner,
}

/// The measure that a margin applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The distance of unit vectors, 0 … 2.
    Euclidean,
    /// Their cosine, −1 … 1.
    Cosine,
}

impl Default for ContrastiveConfig {
    fn default() -> Self {
        Self {
            positive_margin: 0.0,
            negative_margin: 1.0,
            measure: Measure::Euclidean,
            squared: false,
            miner: Miner::default(),
        }
    }
}

impl BuildLoss for ContrastiveConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "contrastive",
        title: "Contrastive",
        family: Family::Pairs,
        summary: "positives closer than one margin, negatives farther than another",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["hadsell2006", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = Contrastive;

    fn init(&self, _: &LossContext) -> Result<Contrastive> {
        let miner = self.miner.checked()?;
        match self.measure {
            Measure::Euclidean => {
                not_negative("contrastive", "positive_margin", self.positive_margin, 0.0)?;
                not_negative("contrastive", "negative_margin", self.negative_margin, 1.0)?;
            }
            Measure::Cosine => {
                finite("contrastive", "positive_margin", self.positive_margin, 1.0)?;
                finite("contrastive", "negative_margin", self.negative_margin, 0.5)?;
                if self.positive_margin < self.negative_margin {
                    return Err(Error::new(
                        Kind::Config,
                        format!(
                            "contrastive has the positive_margin {} below the negative_margin {}: by cosine, positives \
                             have to score higher",
                            self.positive_margin, self.negative_margin
                        ),
                        "set positive_margin to at least negative_margin; 1 and 0.5 are usual for the cosine",
                    ));
                }
            }
        }
        Ok(Contrastive { config: self.clone(), miner })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Contrastive {
    #[module(skip)]
    config: ContrastiveConfig,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for Contrastive {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let ContrastiveConfig { positive_margin, negative_margin, .. } = self.config;
        let [too_far, too_near] = match self.config.measure {
            Measure::Euclidean => {
                let distances = batch.distances();
                [distances.clone() - positive_margin, -distances + negative_margin]
            }
            Measure::Cosine => {
                let cosines = batch.cosines();
                [-cosines.clone() + positive_margin, cosines - negative_margin]
            }
        };
        let [positives, negatives] = batch.mined_pairs(&self.miner);
        self.mean(too_far, positives) + self.mean(too_near, negatives)
    }
}

impl Contrastive {
    /// The mean of `excess` over its entries above 0, each counted as often as `counts` says.
    fn mean(&self, excess: Tensor<2>, counts: Tensor<2>) -> Tensor<1> {
        let excess = relu(excess);
        let number = (mask_above_zero(&excess) * counts.clone()).sum().clamp_min(1.0);
        let terms = if self.config.squared { excess.square() * 0.5 } else { excess };
        (terms * counts).sum() / number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::taxonomy::Labels;
    use burn::tensor::Device;

    #[test]
    fn margins_out_of_range_are_refused() {
        let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        let message = |config: ContrastiveConfig| config.init(&context).unwrap_err().to_string();
        let default = ContrastiveConfig::default;
        let text = message(ContrastiveConfig { positive_margin: f64::NAN, ..default() });
        assert!(text.contains("positive_margin of contrastive is NaN"), "{text}");
        message(ContrastiveConfig { negative_margin: -0.5, ..default() });
        let text = message(ContrastiveConfig { measure: Measure::Cosine, ..default() });
        assert!(text.contains("set positive_margin to at least negative_margin"), "{text}");
    }
}
