//! Means of quotients of ranks, with the gradient in closed form: what the smooth stand-ins for AP have in common.
//!
//! Each is a sum over queries i and items k of w_ik · a_ik / r_ik, where both a, the count of what belongs above k,
//! and r, the rank of k, add up smooth steps of t_kj = s_ij − s_ik over the items j:
//!
//! ```text
//! ∂(a_k / r_k) / ∂t_kj = (a′_kj − (a_k / r_k) · r′_kj) / r_k
//! ```
//!
//! Autodiff through these three-way comparisons would keep several B×B×B tensors. Here the gradient is computed
//! beside the value, a block of queries at a time, and both go to [`with_gradient`]: memory is O(B²). Only items k
//! that weigh something are compared with the others: time is O(B² · K) if no query has more than K of them.

use std::ops::Range;

use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};

use super::{Batch, matrix, with_gradient};

/// Elements of the largest three-way tensor, [block, K, B].
pub(super) const BLOCK_ELEMENTS: usize = 1 << 22;

/// The smooth counts of the items k of some queries Q.
pub(super) struct Counts {
    /// a_k, [Q, K, 1].
    pub above: Tensor<3>,
    /// a′_kj, [Q, K, N]; none: a is a constant for the gradient.
    pub above_slope: Option<Tensor<3>>,
    /// r_k, above 0, [Q, K, 1].
    pub rank: Tensor<3>,
    /// r′_kj, [Q, K, N].
    pub rank_slope: Tensor<3>,
}

/// Some queries, and K items k of each.
pub(super) struct Block {
    queries: Range<usize>,
    /// [Q, K].
    items: Tensor<2, Int>,
}

impl Block {
    /// What a matrix over all queries and items has for the items j, [Q, 1, N].
    pub(super) fn along_j(&self, matrix: &Tensor<2>) -> Tensor<3> {
        matrix.clone().slice(self.queries.clone()).unsqueeze_dim(1)
    }

    /// What it has for the items k, [Q, K, 1].
    pub(super) fn along_k(&self, matrix: &Tensor<2>) -> Tensor<3> {
        matrix.clone().slice(self.queries.clone()).gather(1, self.items.clone()).unsqueeze_dim(2)
    }
}

/// Σ_ik w_ik · a_ik / r_ik of scores and weights [Q, N], the weights row after row; `count` is given t, [Q, K, N], of
/// a block of the queries.
pub(super) fn weighted_quotients(
    scores: Tensor<2>,
    weights: Vec<f64>,
    count: impl Fn(Tensor<3>, &Block) -> Counts,
) -> Tensor<1> {
    let [queries, size] = scores.dims();
    let plain = scores.clone().without_autodiff();
    let weighty = |of_query: &[f64]| of_query.iter().filter(|&&weight| weight != 0.0).count();
    let chosen = weights.chunks(size).map(weighty).max().unwrap_or(0).max(1);
    let items = weights.chunks(size).flat_map(|of_query| {
        let mut items: Vec<usize> = (0..size).collect();
        items.sort_by_key(|&item| of_query[item] == 0.0);
        items.into_iter().take(chosen).map(|item| item as i64)
    });
    let items = TensorData::new(items.collect(), [queries, chosen]);
    let items = Tensor::<2, Int>::from_data(items, &plain.device());
    let weights = matrix(weights, [queries, size], &plain);

    let at_once = (BLOCK_ELEMENTS / (chosen * size)).max(1);
    let (mut sums, mut gradients) = (Vec::new(), Vec::new());
    for start in (0..queries).step_by(at_once) {
        let rows = start..(start + at_once).min(queries);
        let block = Block { items: items.clone().slice(rows.clone()), queries: rows };
        let t = block.along_j(&plain) - block.along_k(&plain);
        let Counts { above, above_slope, rank, rank_slope } = count(t, &block);

        let quotient = above / rank.clone();
        let weight = block.along_k(&weights);
        sums.push((quotient.clone() * weight.clone()).sum());

        let slope = match above_slope {
            Some(above_slope) => above_slope - quotient * rank_slope,
            None => -quotient * rank_slope,
        };
        let slope = slope * (weight / rank);
        let of_k = slope.clone().sum_dim(2).squeeze_dim::<2>(2);
        let of_j = slope.sum_dim(1).squeeze_dim::<2>(1);
        gradients.push(of_j.scatter(1, block.items, -of_k, IndexingUpdateOp::Add));
    }
    with_gradient(scores, Tensor::cat(sums, 0).sum(), Tensor::cat(gradients, 0))
}

/// The weights of a mean over queries of a mean over the items of their class, the query itself among them, [Q, N] row
/// after row. A query without one is left out; the weights sum to 1, or to 0 where no query has any.
pub(super) fn positive_weights(batch: &Batch) -> Vec<f64> {
    let items = batch.items().labels;
    let classes = items.column(items.levels());
    let count = |class: &u32| classes.iter().filter(|&other| other == class).count() as f64;
    let of_queries = batch.labels.column(batch.labels.levels());
    let counts: Vec<f64> = of_queries.iter().map(count).collect();
    let queries = counts.iter().filter(|&&count| count > 0.0).count() as f64;
    let weight = |same: bool, count: f64| if same { 1.0 / (count * queries) } else { 0.0 };
    let row = |(class, count)| classes.iter().map(move |other| weight(*other == class, count));
    of_queries.into_iter().zip(counts).flat_map(row).collect()
}
