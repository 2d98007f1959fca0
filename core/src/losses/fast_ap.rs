//! FastAP: average precision of a ranking in bins of distance (Cakir et al., *Deep Metric Learning to Rank*, CVPR
//! 2019).
//!
//! Squared distances d² = 2 − 2 s of unit vectors lie in 0 … 4. `bins` intervals divide that range, and their ends are
//! the centres of the bins of a soft histogram of positives, h⁺, and of all items, h:
//!
//! ```text
//! L = mean over queries i of 1 − (1/|P_i|) Σ_b h⁺_b H⁺_b / H_b
//! ```
//!
//! A query does not rank itself. A query without a positive is left out of the mean; the loss is 0 if no query has one.
//! The gradient is that of the equation, as in pytorch-metric-learning. The published code writes its gradient by hand:
//! it is this one times half the number of queries, plus a part along each embedding.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::histogram::{histograms, precision};
use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, normalise_if, query_mean_weights, within,
};
use crate::Result;
use crate::geometry::Space;

/// Settings of [`FastAp`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FastApConfig {
    /// The number of intervals of squared distance, 1 … 1000. Default 10.
    pub bins: usize,
    /// Whether to scale embeddings to unit length first, as pytorch-metric-learning does. The heads of akin already do.
    /// Default false.
    pub normalise_embeddings: bool,
}

impl Default for FastApConfig {
    fn default() -> Self {
        Self { bins: 10, normalise_embeddings: false }
    }
}

impl BuildLoss for FastApConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "fast_ap",
        title: "FastAP",
        family: Family::AveragePrecision,
        summary: "1 − AP of a ranking in bins of distance",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["cakir2019"],
        complete: true,
        preset: None,
    };
    type Loss = FastAp;

    fn init(&self, _: &LossContext) -> Result<FastAp> {
        within("fast_ap", "number of bins", self.bins, 1..=1000, 10)?;
        Ok(FastAp { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct FastAp {
    #[module(skip)]
    config: FastApConfig,
}

impl Objective for FastAp {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let unit = |rows| normalise_if(self.config.normalise_embeddings, rows);
        let scores = unit(batch.embeddings.clone()).matmul(unit(batch.items().embeddings).transpose());
        let positions = (-scores + 1.0) * (self.config.bins as f64 / 2.0);

        let [positives, negatives] = batch.pairs();
        let weights = query_mean_weights(positives.clone());
        let sets = [&weights, &positives, &(positives.clone() + negatives)];
        let [weight, positive, all] = histograms(&positions, sets, self.config.bins + 1);
        weights.sum() - (weight * precision(positive, all)).sum()
    }
}
