//! Hyperbolic pairwise cross-entropy: find the other view of a class among the views of all classes.
//!
//! The v-th images of all classes in the batch are *view* v. Take an ordered pair of views (a, b) and a class with an
//! image in each, i in a and j in b. Its loss is the cross-entropy of choosing j among view b and the rest of view a
//! (Ermolov et al., *Hyperbolic Vision Transformers*, CVPR 2022, the pairwise cross-entropy loss):
//!
//! ```text
//! l_ij = −log( e^{s_ij/τ} / (Σ_{k∈b} e^{s_ik/τ} + Σ_{k∈a, k≠i} e^{s_ik/τ}) )
//! L    = Σ_{a≠b} mean of l_ij over the classes that have both views
//! ```
//!
//! with s_ik = −d(x_i, x_k) in the ball and x_i·x_k on the sphere. If every class has the same number of images, as
//! with the paper's sampler, this is the published loss. In other batches a class with fewer images is missing from the
//! later views, and a class with a single image is a candidate but never i or j.
//!
//! With a reference set, b runs over its views, and an item that is the query itself is not a candidate. Only fine
//! labels are used. A batch without two images of the same class has loss 0. Memory is O(B²).

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, log_sum_exp, mask_exponents,
    matrix,
};
use crate::Result;
use crate::geometry::{Geometry, Space};
use crate::taxonomy::Labels;

/// Settings of [`HyperbolicCrossEntropy`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HyperbolicCrossEntropyConfig {
    /// τ > 0. Default 0.2 in the ball and 0.1 on the sphere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct HyperbolicCrossEntropy {
    #[module(skip)]
    temperature: f64,
    #[module(skip)]
    geometry: Geometry,
}

impl BuildLoss for HyperbolicCrossEntropyConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hyperbolic_cross_entropy",
        title: "Hyp",
        family: Family::Hyperbolic,
        summary: "cross-entropy over hyperbolic distances from an image to another of its class",
        optimises: "ap",
        spaces: &[Space::Poincare, Space::Cosine],
        sources: &["ermolov2022"],
        complete: true,
        preset: None,
    };
    type Loss = HyperbolicCrossEntropy;

    fn init(&self, context: &LossContext) -> Result<HyperbolicCrossEntropy> {
        let usual = if context.geometry.space() == Space::Poincare { 0.2 } else { 0.1 };
        let temperature = self.temperature.unwrap_or(usual);
        above_zero(Self::ENTRY.name, "temperature", temperature, usual)?;
        Ok(HyperbolicCrossEntropy { temperature, geometry: context.geometry.clone() })
    }
}

impl Objective for HyperbolicCrossEntropy {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let items = batch.items();
            let own_item = |query: usize| items.own.map(|own| own + query);
            let (query_views, item_views) = (views(batch.labels), views(items.labels));
            let logits =
                |to: Tensor<2>| self.geometry.scores(batch.embeddings.clone(), to) * (1.0 / self.temperature);
            let scores = logits(items.embeddings);

            // For each query i and view b, the logarithm of the sum over its candidates: view b and the rest of view a.
            let others = mask_exponents(scores.clone(), indicator(|i, j| own_item(i) != Some(j), &scores));
            let view_count = item_views.iter().max().map_or(0, |last| last + 1);
            let view_sum = |view: usize| log_sum_exp(columns(&others, &item_views, view));
            let view_b = Tensor::cat((0..view_count).map(view_sum).collect(), 1);
            let in_batch =
                if batch.reference.is_none() { scores.clone() } else { logits(batch.embeddings.clone()) };
            let rest = indicator(|i, k| i != k && query_views[i] == query_views[k], &in_batch);
            let view_a = log_sum_exp(mask_exponents(in_batch, rest)).expand(view_b.dims());
            let larger = view_a.clone().max_pair(view_b.clone()).detach();
            let candidates =
                ((view_a - larger.clone()).exp() + (view_b - larger.clone()).exp()).log() + larger;

            // The weight of a pair (i, j) is one over the number of classes that have both views.
            let classes = |labels: &Labels| labels.column(labels.levels());
            let (query_classes, item_classes) = (classes(batch.labels), classes(items.labels));
            let pairs: Vec<(usize, usize)> = (0..query_classes.len())
                .flat_map(|i| (0..item_classes.len()).map(move |j| (i, j)))
                .filter(|&(i, j)| query_classes[i] == item_classes[j] && own_item(i) != Some(j))
                .collect();
            let mut class_counts = BTreeMap::new();
            for &(i, j) in &pairs {
                *class_counts.entry((query_views[i], item_views[j])).or_insert(0.0) += 1.0;
            }
            let [mut pair_weights, mut view_weights] =
                [scores.dims(), candidates.dims()].map(|[rows, columns]| vec![0.0; rows * columns]);
            for &(i, j) in &pairs {
                let weight = 1.0 / class_counts[&(query_views[i], item_views[j])];
                pair_weights[i * item_classes.len() + j] = weight;
                view_weights[i * view_count + item_views[j]] = weight;
            }
            let pair_weights = matrix(pair_weights, scores.dims(), &scores);
            let view_weights = matrix(view_weights, candidates.dims(), &scores);
            (candidates * view_weights).sum() - (scores * pair_weights).sum()
        })
    }
}

/// The view of each row: the number of earlier rows of its class.
fn views(labels: &Labels) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let next = |class: u32| {
        let count = seen.entry(class).or_insert(0);
        *count += 1;
        *count - 1
    };
    labels.column(labels.levels()).into_iter().map(next).collect()
}

/// The columns of the items of one view.
fn columns(logits: &Tensor<2>, views: &[usize], view: usize) -> Tensor<2> {
    let items: Vec<i64> = (0..views.len()).filter(|&j| views[j] == view).map(|j| j as i64).collect();
    let count = items.len();
    let items = Tensor::<1, Int>::from_data(TensorData::new(items, [count]), &logits.device());
    logits.clone().select(1, items)
}

/// 1 for each row and column for which `test` holds, else 0, in the shape of `logits`.
fn indicator(test: impl Fn(usize, usize) -> bool, logits: &Tensor<2>) -> Tensor<2> {
    let [rows, columns] = logits.dims();
    let value = |place: usize| f64::from(u8::from(test(place / columns, place % columns)));
    matrix((0..rows * columns).map(value).collect(), [rows, columns], logits)
}
