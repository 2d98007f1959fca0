//! Means of quotients of ranks, with the gradient in closed form: what the smooth stand-ins for AP have in common.
//!
//! Each is a sum over queries i and their items k of w_ik · a_ik / r_ik, where both a, the count of what belongs
//! above k, and r, the rank of k, add up smooth steps of t_kj = s_ij − s_ik over the items j:
//!
//! ```text
//! ∂(a_k / r_k) / ∂t_kj = (a′_kj − (a_k / r_k) · r′_kj) / r_k
//! ```
//!
//! Autodiff through these three-way comparisons would keep several B×B×B tensors. Here the gradient is computed
//! beside the value, a block of queries at a time, and both go to [`with_gradient`]: memory is O(B²).

use std::ops::Range;

use burn::tensor::Tensor;

use super::with_gradient;

/// Elements of the largest three-way tensor, [block, B, B].
const BLOCK_ELEMENTS: usize = 1 << 22;

/// The smooth counts of the items k of some queries Q.
pub(super) struct Counts {
    /// a_k, [Q, k, 1].
    pub above: Tensor<3>,
    /// a′_kj, [Q, k, j]; none: a is a constant for the gradient.
    pub above_slope: Option<Tensor<3>>,
    /// r_k ≥ ½, [Q, k, 1].
    pub rank: Tensor<3>,
    /// r′_kj, [Q, k, j].
    pub rank_slope: Tensor<3>,
}

/// Σ_ik w_ik · a_ik / r_ik of scores and constant weights [Q, N]; `count` is given t, [rows, k, j], of a range of
/// the queries.
pub(super) fn weighted_quotients(
    scores: Tensor<2>,
    weights: &Tensor<2>,
    count: impl Fn(Tensor<3>, &Range<usize>) -> Counts,
) -> Tensor<1> {
    let [queries, size] = scores.dims();
    let plain = scores.clone().without_autodiff();
    let block = (BLOCK_ELEMENTS / (size * size)).max(1);
    let (mut sums, mut gradients) = (Vec::new(), Vec::new());
    for start in (0..queries).step_by(block) {
        let rows = start..(start + block).min(queries);
        let t = along_j(&plain, &rows) - along_k(&plain, &rows);
        let Counts { above, above_slope, rank, rank_slope } = count(t, &rows);

        let quotient = above / rank.clone();
        let weight = along_k(weights, &rows);
        sums.push((quotient.clone() * weight.clone()).sum());

        let slope = match above_slope {
            Some(above_slope) => above_slope - quotient * rank_slope,
            None => -quotient * rank_slope,
        };
        let slope = slope * (weight / rank);
        gradients.push(slope.clone().sum_dim(1).squeeze_dim::<2>(1) - slope.sum_dim(2).squeeze_dim::<2>(2));
    }
    with_gradient(scores, Tensor::cat(sums, 0).sum(), Tensor::cat(gradients, 0))
}

/// Rows of a matrix [Q, N] over the items j, [rows, 1, N].
pub(super) fn along_j(matrix: &Tensor<2>, rows: &Range<usize>) -> Tensor<3> {
    matrix.clone().slice(rows.clone()).unsqueeze_dim(1)
}

/// Rows of a matrix [Q, N] over the items k, [rows, N, 1].
pub(super) fn along_k(matrix: &Tensor<2>, rows: &Range<usize>) -> Tensor<3> {
    matrix.clone().slice(rows.clone()).unsqueeze_dim(2)
}
