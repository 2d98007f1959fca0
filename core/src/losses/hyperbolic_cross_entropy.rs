//! Hyperbolic pairwise cross-entropy: find the other view of a class among the views of all classes.
//!
//! The v-th image of each class in the batch makes up *view* v. For an ordered pair of views (a, b) with an image of
//! a class in each, i from a and j from b, the loss is the cross-entropy of choosing j among view b and the rest of
//! view a (Ermolov et al., *Hyperbolic Vision Transformers*, CVPR 2022, the pairwise cross-entropy loss):
//!
//! ```text
//! l_ij = −log( e^{s_ij/τ} / (Σ_{k∈b} e^{s_ik/τ} + Σ_{k∈a, k≠i} e^{s_ik/τ}) )
//! L    = Σ_{a≠b} mean of l_ij over the classes that have both views
//! ```
//!
//! with s = −d(x_i, x_k) in the ball and x_i·x_k on the sphere. With the same number of images of every class, as the
//! paper's sampler gives, this is the published loss. Any other batch is taken as it is: a class with fewer images is
//! missing from the later views, and one with a single image only stands among the candidates.
//!
//! With a reference set, b runs over its views, and an item that is the query itself is no candidate. Only fine labels
//! count; a batch without two images of one class has the loss 0. Memory is O(B²).

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

/// See the [module](self); it learns nothing itself.
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
        summary: "cross-entropy over hyperbolic distances from one image of a class to another",
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
        let items = batch.items();
        let own = |i: usize| items.own.map(|own| own + i);
        let (of_queries, of_items) = (views(batch.labels), views(items.labels));
        let logits =
            |to: Tensor<2>| self.geometry.scores(batch.embeddings.clone(), to) * (1.0 / self.temperature);
        let all = logits(items.embeddings);

        // Of each query: the views of the items, and the rest of its own.
        let others = mask_exponents(all.clone(), wanted(|i, j| own(i) != Some(j), &all));
        let count = of_items.iter().max().map_or(0, |last| last + 1);
        let of_view = |view: usize| log_sum_exp(columns(&others, &of_items, view));
        let theirs = Tensor::cat((0..count).map(of_view).collect(), 1);
        let within = if batch.reference.is_none() { all.clone() } else { logits(batch.embeddings.clone()) };
        let rest = wanted(|i, k| i != k && of_queries[i] == of_queries[k], &within);
        let ours = log_sum_exp(mask_exponents(within, rest)).expand(theirs.dims());
        let larger = theirs.clone().max_pair(ours.clone()).detach();
        let candidates = ((theirs - larger.clone()).exp() + (ours - larger.clone()).exp()).log() + larger;

        // Each pair of items weighs 1 / the classes that its pair of views has.
        let classes = |labels: &Labels| labels.column(labels.levels());
        let (of_query, of_item) = (classes(batch.labels), classes(items.labels));
        let pairs: Vec<(usize, usize)> = (0..of_query.len())
            .flat_map(|i| (0..of_item.len()).map(move |j| (i, j)))
            .filter(|&(i, j)| of_query[i] == of_item[j] && own(i) != Some(j))
            .collect();
        let mut shared = BTreeMap::new();
        for &(i, j) in &pairs {
            *shared.entry((of_queries[i], of_items[j])).or_insert(0.0) += 1.0;
        }
        let mut weights = [all.dims(), candidates.dims()].map(|[rows, columns]| vec![0.0; rows * columns]);
        for &(i, j) in &pairs {
            let weight = 1.0 / shared[&(of_queries[i], of_items[j])];
            weights[0][i * of_item.len() + j] = weight;
            weights[1][i * count + of_items[j]] = weight;
        }
        let [of_pairs, of_views] = weights;
        let of_pairs = matrix(of_pairs, all.dims(), &all);
        let of_views = matrix(of_views, candidates.dims(), &all);
        (candidates * of_views).sum() - (all * of_pairs).sum()
    }
}

/// The view of each row: how many rows of its class come before it.
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

/// 1 for each pair of rows and columns that is wanted, else 0.
fn wanted(want: impl Fn(usize, usize) -> bool, logits: &Tensor<2>) -> Tensor<2> {
    let [rows, columns] = logits.dims();
    let value = |place: usize| f64::from(u8::from(want(place / columns, place % columns)));
    matrix((0..rows * columns).map(value).collect(), [rows, columns], logits)
}
