//! Angular: the angle at a negative between the two items of a positive pair is small (Wang et al., *Deep Metric Learning with
//! Angular Loss*, ICCV 2017, eq. 8).
//!
//! ```text
//! L = mean over pairs (i, j), j ∈ P_i, of log( 1 + Σ_{n ∈ N_i} e^(4 tan²α · (x_i + x_j)·x_n − 2 (1 + tan²α) · x_i·x_j) )
//! ```
//!
//! Embeddings are scaled to unit length. α bounds the angle at n of the triangle of n and the pair. The smaller it is, the
//! farther negatives have to be from a pair that is apart. Every pair is in the mean, in both orders.
//!
//! The loss is smooth. A pair without negatives adds 0. Without pairs the loss is 0.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, log_one_plus_sum_exp, read_values,
    select_rows, within,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`Angular`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AngularConfig {
    /// α, an angle from 0 to 1.5. Default 0.7, about 40°.
    pub angle: f64,
}

impl Default for AngularConfig {
    fn default() -> Self {
        Self { angle: 0.7 }
    }
}

impl BuildLoss for AngularConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "angular",
        title: "Angular",
        family: Family::Pairs,
        summary: "a small angle at each negative between the two items of a positive pair",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2017", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = Angular;

    fn init(&self, _: &LossContext) -> Result<Angular> {
        within("angular", "angle", self.angle, 0.0..=1.5, 0.7)?;
        Ok(Angular { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct Angular {
    #[module(skip)]
    config: AngularConfig,
}

impl Objective for Angular {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let items = batch.items();
        let [positives, negatives] = batch.pairs();
        let pairs: Vec<(usize, usize)> = read_values(positives)
            .into_iter()
            .enumerate()
            .filter(|(_, counts)| *counts > 0.0)
            .map(|(place, _)| (place / items.labels.len(), place % items.labels.len()))
            .collect();
        if pairs.is_empty() {
            return batch.embeddings.clone().sum() * 0.0;
        }
        let (queries, partners): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
        let all = normalise(items.embeddings);
        let own = select_rows(&normalise(batch.embeddings.clone()), &queries);
        let other = select_rows(&all, &partners);
        let steepness = self.config.angle.tan().powi(2);
        let near = (own.clone() * other.clone()).sum_dim(1) * (2.0 * (1.0 + steepness));
        let far = (own + other).matmul(all.transpose()) * (4.0 * steepness);
        log_one_plus_sum_exp(far - near, select_rows(&negatives, &queries)).mean()
    }
}
