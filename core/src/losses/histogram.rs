//! Soft histograms: a ranking in bins, which has a gradient where the ranking itself has none.
//!
//! An item at position u counts 1 − |u − b| in each of the two bins b around it. Bin 0 is the best. With h⁺_b positives
//! and h_b items in bin b, and H⁺, H their sums over the bins up to b, the precision down to bin b is H⁺_b / H_b and
//!
//! ```text
//! AP = Σ_b (h⁺_b / |P|) · H⁺_b / H_b
//! ```
//!
//! Memory is O(B² · bins). An item exactly at the centre of a bin has no gradient.

use burn::tensor::{Tensor, activation::relu};

use super::matrix;

/// The weight in each bin, [Q, bins], of several sets of items at positions [Q, N] in 0 … bins − 1. A set is given by
/// the weight of every item in it, [Q, N].
pub(super) fn histograms<const SETS: usize>(
    positions: &Tensor<2>,
    sets: [&Tensor<2>; SETS],
    bins: usize,
) -> [Tensor<2>; SETS] {
    let mut columns = [const { Vec::new() }; SETS];
    for bin in 0..bins {
        let share = relu(-(positions.clone() - bin as f64).abs() + 1.0);
        for (column, set) in columns.iter_mut().zip(sets) {
            column.push((share.clone() * set.clone()).sum_dim(1));
        }
    }
    columns.map(|columns| Tensor::cat(columns, 1))
}

/// H of h: the sum of the bins up to each bin.
pub(super) fn cumulative(histogram: Tensor<2>) -> Tensor<2> {
    let [_, bins] = histogram.dims();
    let counts = |i: usize| f64::from(u8::from(i / bins <= i % bins));
    let triangle = matrix((0..bins * bins).map(counts).collect(), [bins, bins], &histogram);
    histogram.matmul(triangle)
}

/// The precision down to each bin, [Q, bins], from the histograms of the positives and of all items; 0 above the first
/// item.
pub(super) fn precision(positives: Tensor<2>, all: Tensor<2>) -> Tensor<2> {
    cumulative(positives) / cumulative(all).clamp_min(1e-12)
}
