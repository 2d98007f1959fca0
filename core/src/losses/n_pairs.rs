//! N-pairs: each class gives a query and a positive, and the query has to find its positive among those of all classes (Sohn,
//! *Improved Deep Metric Learning with Multi-class N-pair Loss Objective*, NeurIPS 2016, eq. 7).
//!
//! ```text
//! L = −(1/N) Σ_c log softmax_c'(s · x_c·x⁺_c') at c' = c
//! ```
//!
//! x_c is the first item of class c in the batch, and x⁺_c the next one. The loss does not see the other items of the class. N
//! is the number of classes with a pair. In the paper embeddings are of any length, and their squared lengths are added to the
//! loss. Here they are scaled to unit length, and s takes the place of the length. [`nt_xent`](super::nt_xent) has all pairs.
//!
//! The loss is smooth. With one class it is 0, and without pairs, too. With a reference set x⁺_c is its first item of the class.

use burn::module::Module;
use burn::tensor::{Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, read_values, select_rows,
};
use crate::Result;
use crate::geometry::{Space, normalise};

/// Settings of [`NPairs`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NPairsConfig {
    /// s > 0, the scale of the cosines. Default 16.
    pub scale: f64,
}

impl Default for NPairsConfig {
    fn default() -> Self {
        Self { scale: 16.0 }
    }
}

impl BuildLoss for NPairsConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "n_pairs",
        title: "N-pairs",
        family: Family::Pairs,
        summary: "cross-entropy of one positive per class against those of the other classes",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["sohn2016", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = NPairs;

    fn init(&self, _: &LossContext) -> Result<NPairs> {
        above_zero("n_pairs", "scale", self.scale, 16.0)?;
        Ok(NPairs { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct NPairs {
    #[module(skip)]
    config: NPairsConfig,
}

impl Objective for NPairs {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let (queries, partners) = first_pairs(batch);
        if queries.is_empty() {
            return batch.embeddings.clone().sum() * 0.0;
        }
        let own = select_rows(&normalise(batch.embeddings.clone()), &queries);
        let other = select_rows(&normalise(batch.items().embeddings), &partners);
        let logits = own.matmul(other.transpose()) * self.config.scale;
        let classes = queries.len();
        let diagonal: Vec<usize> = (0..classes).map(|class| class * (classes + 1)).collect();
        let found = log_softmax(logits, 1).reshape([classes * classes, 1]);
        -select_rows(&found, &diagonal).mean()
    }
}

/// The first pair of each class: a row of the batch, and its first positive.
fn first_pairs(batch: &Batch) -> (Vec<usize>, Vec<usize>) {
    let items = batch.items();
    let columns = items.labels.len();
    let [positives, _] = batch.pairs();
    let values = read_values(positives);
    let is_positive = |row: usize, item: usize| values[row * columns + item] > 0.0;
    let (mut queries, mut partners) = (Vec::new(), Vec::new());
    for row in 0..batch.labels.len() {
        let is_own = |item: usize| items.own.is_some_and(|own| own + row == item);
        // A row that belongs to the positive of an earlier pair is of the same class.
        if partners.iter().any(|&item| is_positive(row, item) || is_own(item)) {
            continue;
        }
        if let Some(item) = (0..columns).find(|&item| is_positive(row, item)) {
            queries.push(row);
            partners.push(item);
        }
    }
    (queries, partners)
}
