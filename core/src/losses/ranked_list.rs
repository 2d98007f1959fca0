//! Ranked list loss: positives inside a ball around the query, negatives outside a larger one (Wang et al., *Ranked List Loss
//! for Deep Metric Learning*, CVPR 2019).
//!
//! ```text
//! L = mean over queries i of (1 − λ) Σ_p w_ip (d_ip − (α − m)) / Σ_p w_ip + λ Σ_n w_in (α − d_in) / Σ_n w_in
//! w_ip = e^(T⁺ (d_ip − (α − m)))        w_in = e^(T⁻ (α − d_in))
//! ```
//!
//! over the positives with d > α − m and the negatives with d < α. d is the Euclidean distance of embeddings scaled to unit
//! length; α is the boundary of the negatives and m the margin between the two. The harder a pair, the larger its weight. The
//! defaults are those that the paper calls simple: m = 0.4, α = 1 + m/2, T⁺ = 0, T⁻ = 10 and λ = ½.
//!
//! # Gradient
//!
//! It goes through the weights, too, as in pytorch-metric-learning, which adds 10⁻⁵ per item to each sum of weights. It jumps
//! where a pair enters its sum. A query without such pairs adds 0 and counts in the mean.

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, mask_above_zero, not_negative,
    within,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`RankedList`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RankedListConfig {
    /// m ≥ 0. Default 0.4.
    pub margin: f64,
    /// α > 0. Default: 1 + m/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<f64>,
    /// T⁺, from 0 to 50: how much more a hard positive counts. Default 0.
    pub positive_temperature: f64,
    /// T⁻, from 0 to 50: how much more a hard negative counts. Default 10.
    pub negative_temperature: f64,
    /// λ in 0 … 1, the share of the negatives. Default 0.5.
    pub balance: f64,
}

impl Default for RankedListConfig {
    fn default() -> Self {
        Self {
            margin: 0.4,
            boundary: None,
            positive_temperature: 0.0,
            negative_temperature: 10.0,
            balance: 0.5,
        }
    }
}

impl BuildLoss for RankedListConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "ranked_list",
        title: "Ranked list",
        family: Family::Pairs,
        summary: "positives inside one ball around the query, negatives outside a larger one, the hard ones most",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2019ranked", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = RankedList;

    fn init(&self, _: &LossContext) -> Result<RankedList> {
        not_negative("ranked_list", "margin", self.margin, 0.4)?;
        let boundary = self.boundary.unwrap_or(1.0 + self.margin / 2.0);
        above_zero("ranked_list", "boundary", boundary, 1.2)?;
        within("ranked_list", "positive_temperature", self.positive_temperature, 0.0..=50.0, 0.0)?;
        within("ranked_list", "negative_temperature", self.negative_temperature, 0.0..=50.0, 10.0)?;
        within("ranked_list", "balance", self.balance, 0.0..=1.0, 0.5)?;
        Ok(RankedList { boundary, config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct RankedList {
    #[module(skip)]
    boundary: f64,
    #[module(skip)]
    config: RankedListConfig,
}

impl Objective for RankedList {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let RankedListConfig { margin, positive_temperature, negative_temperature, balance, .. } =
            self.config;
        let distances = batch.distances();
        let [positives, negatives] = batch.pairs();
        let own = if batch.items().own.is_some() { 1.0 } else { 0.0 };
        let items = (positives.clone() + negatives.clone()).sum_dim(1) + own;
        let far = relu(distances.clone() - (self.boundary - margin));
        let near = relu(-distances + self.boundary);
        let positive_terms =
            weighted_mean(far, positives, positive_temperature, items.clone()) * (1.0 - balance);
        let negative_terms = weighted_mean(near, negatives, negative_temperature, items) * balance;
        (positive_terms + negative_terms).sum() * (1.0 / batch.labels.len() as f64)
    }
}

/// The mean of the excess of the counted pairs of each query, with weights that grow with it, [B, 1]. `items` is the number of
/// items of each query, [B, 1].
fn weighted_mean(excess: Tensor<2>, counted: Tensor<2>, temperature: f64, items: Tensor<2>) -> Tensor<2> {
    let counted = counted * mask_above_zero(&excess);
    let weights = (excess.clone() * temperature).exp() * counted;
    (weights.clone() * excess).sum_dim(1) / (weights.sum_dim(1) + items * 1e-5)
}
