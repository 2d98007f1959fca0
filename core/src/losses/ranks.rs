//! Sums of functions of ranks, with the gradient in closed form: the common part of the smooth versions of AP, H-AP, NDCG
//! and recall.
//!
//! Each loss is a sum over queries i and items k of w_ik · f(a_ik, r_ik); for AP f is the quotient a / r. Both a, the
//! number of items rightly above k, and r, the rank of k, add up smooth steps of t_kj = s_ij − s_ik over the items j:
//!
//! ```text
//! ∂f_k / ∂t_kj = ∂f/∂a · a′_kj + ∂f/∂r · r′_kj
//! ```
//!
//! Autodiff through these three-way comparisons would store several B×B×B tensors. Here the gradient is computed
//! beside the value, and both go to [`with_gradient`]: memory is O(B²).
//!
//! On the CPU, [`smooth_rank_loss`] gets both from sorted scores, in O(B² log B). On other devices [`weighted_values`]
//! compares one block of queries at a time in tensor operations. Only items k with a weight are compared with the
//! others: time is O(B² · K) if no query has more than K of them.

use std::ops::Range;

use burn::tensor::{DType, Element, IndexingUpdateOp, Int, Tensor, TensorData};

use super::{Batch, matrix, with_gradient};
use crate::host::is_cpu;
use crate::smooth_ranks::{Places, Score, SmoothRanks};
use crate::taxonomy::{Labels, SharedInterval};
use crate::threads::each_in_order;

/// The embeddings of the reference set of a batch, if it has one.
pub(super) fn reference_items(batch: &Batch) -> Option<Tensor<2>> {
    batch.reference.as_ref().map(|reference| reference.embeddings.clone())
}

/// The mean over queries of 1 − the value of the ranking by the scores of `queries`, [Q, d], and `items`, [N, d], computed
/// on the CPU. Without items the queries are compared with each other. `places` is as for [`SmoothRanks::batch`]. It is 0 if no query has a relevant item.
///
/// The gradient G of the scores Q·Iᵀ goes to the queries as G·I and to the items as Gᵀ·Q. Where the items are the
/// queries, this is one product, (G + Gᵀ)·Q. Only embeddings take part in autodiff: it stores no matrix [Q, N].
pub(super) fn smooth_rank_loss(
    queries: Tensor<2>,
    items: Option<Tensor<2>>,
    ranks: &SmoothRanks,
    places: impl Fn(usize, &mut Places) + Sync,
) -> Tensor<1> {
    let plain = queries.clone().without_autodiff();
    let plain_items = match &items {
        None => plain.clone(),
        Some(items) => items.clone().without_autodiff(),
    };
    let scores = plain.clone().matmul(plain_items.clone().transpose());
    let (device, dtype, shape) = (scores.device(), scores.dtype(), scores.dims());
    let symmetric = items.is_none();
    let data = scores.into_data();
    let (value, gradient) = if dtype == DType::F64 {
        let scores: Vec<f64> = data.try_into_vec().expect("these are f64");
        mean_by_ranks(scores, shape, symmetric, ranks, places)
    } else {
        let scores: Vec<f32> = data.convert::<f32>().try_into_vec().expect("they were just converted");
        mean_by_ranks(scores, shape, symmetric, ranks, places)
    };
    let gradient = Tensor::<2>::from_data(gradient, (&device, dtype));
    let value = Tensor::from_data(TensorData::new(vec![value], [1]), (&device, dtype));
    let value = with_gradient(queries, value, gradient.clone().matmul(plain_items));
    match items {
        Some(items) if items.is_autodiff() => with_gradient(items, value, gradient.transpose().matmul(plain)),
        _ => value,
    }
}

/// [`smooth_rank_loss`] of a batch where the items of the query's fine class are relevant.
pub(super) fn fine_class_loss(batch: &Batch, ranks: &SmoothRanks) -> Tensor<1> {
    let places = by_fine_class(batch.labels, batch.items().labels);
    smooth_rank_loss(batch.embeddings.clone(), reference_items(batch), ranks, places)
}

/// The mean of the loss over queries, and its gradient G; if `symmetric`, G + Gᵀ.
fn mean_by_ranks<S: Score + Element>(
    mut scores: Vec<S>,
    [queries, items]: [usize; 2],
    symmetric: bool,
    ranks: &SmoothRanks,
    places: impl Fn(usize, &mut Places) + Sync,
) -> (f64, TensorData) {
    let mut gradient = vec![S::from_f64(0.0); scores.len()];
    let loss = ranks.batch(&scores, items, &mut gradient, places);
    let mean = 1.0 / loss.queries().max(1) as f64;
    if symmetric {
        // The memory of the scores is used again.
        plus_transposed(&gradient, items, mean, &mut scores);
        gradient = scores;
    } else {
        gradient.iter_mut().for_each(|slope| *slope = S::from_f64(slope.to_f64() * mean));
    }
    (loss.sum() * mean, TensorData::new(gradient, [queries, items]))
}

/// Writes (G + Gᵀ) · c for a square matrix of this size, in blocks that stay in the first-level cache.
fn plus_transposed<S: Score>(matrix: &[S], size: usize, factor: f64, sums: &mut [S]) {
    const BLOCK: usize = 32;
    let bands: Vec<_> = sums.chunks_mut(BLOCK * size).enumerate().collect();
    each_in_order(bands, |(band, sums)| {
        for first in (0..size).step_by(BLOCK) {
            for (row, sums) in (band * BLOCK..).zip(sums.chunks_exact_mut(size)) {
                for (column, sum) in sums.iter_mut().enumerate().skip(first).take(BLOCK) {
                    let [one, other] = [row * size + column, column * size + row];
                    *sum = S::from_f64((matrix[one].to_f64() + matrix[other].to_f64()) * factor);
                }
            }
        }
    });
}

/// Whether the ranks of a batch are computed on the CPU: they are if it is there, if labels are unknown, because a query
/// then leaves some items out, or if items have several label paths. The tensor operations do neither.
pub(super) fn are_sorted(batch: &Batch) -> bool {
    is_cpu(&batch.embeddings.device()) || !batch.labels.are_classes() || !batch.items().labels.are_classes()
}

/// The places of a loss on one level: 1 for the items of the query's fine class, 0 for the others. A pair that is not
/// decided at that level is left out.
fn by_fine_class<'a>(queries: &'a Labels, items: &'a Labels) -> impl Fn(usize, &mut Places) + Sync + 'a {
    let finest = items.levels();
    let (query_classes, item_classes) = (queries.column(finest), items.column(finest));
    let are_classes = queries.are_classes() && items.are_classes();
    move |query, places| {
        places.relevances.extend([0.0, 1.0]);
        if are_classes {
            let class = query_classes[query];
            places.of_items.extend(item_classes.iter().map(|&other| u32::from(other == class)));
            return;
        }
        let place = |item| match queries.shared(query, items, item).share(finest) {
            Some(same) => u32::from(same),
            None => Places::LEFT_OUT,
        };
        places.of_items.extend((0..items.len()).map(place));
    }
}

/// Fills in the places of a query's items: their shared levels with it. An item is left out if its level is not
/// decided. A query whose label is known down to level d ranks by the levels 1 … d, at which an item of its own class has
/// the place d.
pub(super) fn shared_places<'a>(
    queries: &'a Labels,
    items: &'a Labels,
) -> impl Fn(usize, &mut Vec<u32>) + Sync + 'a {
    let are_classes = queries.are_classes() && items.are_classes();
    let columns: Vec<Vec<u32>> = match are_classes {
        true => (1..=items.levels()).map(|level| items.column(level)).collect(),
        false => Vec::new(),
    };
    let place = |query, item| {
        let SharedInterval { least, most } = queries.shared(query, items, item);
        if least >= most.min(queries.known(query)) { least as u32 } else { Places::LEFT_OUT }
    };
    move |query, places| {
        if !are_classes {
            places.extend((0..items.len()).map(|item| place(query, item)));
            return;
        }
        // Level by level, so that the comparisons run in vectors.
        places.resize(items.len(), 0);
        for ((level, class), column) in (0..).zip(queries.row(query)).zip(&columns) {
            for (place, other) in places.iter_mut().zip(column) {
                *place += u32::from((*place == level) & (other == class));
            }
        }
    }
}

/// The places of a loss on all levels, see [`shared_places`]. `relevances` gets the number of items of each level and gives
/// the relevance of each level.
pub(super) fn by_shared_level<'a>(
    queries: &'a Labels,
    items: &'a Labels,
    relevances: impl Fn(&[usize]) -> Vec<f64> + Sync + 'a,
) -> impl Fn(usize, &mut Places) + Sync + 'a {
    let places_of_items = shared_places(queries, items);
    move |query, places| {
        places_of_items(query, &mut places.of_items);
        places.relevances.extend(relevances(&counts(&places.of_items, items.levels())));
    }
}

/// The number of items at each level 0 … `depth`.
pub(super) fn counts(places: &[u32], depth: usize) -> Vec<usize> {
    let mut counts = vec![0; depth + 1];
    for &place in places.iter().filter(|&&place| place != Places::LEFT_OUT) {
        counts[place as usize] += 1;
    }
    counts
}

/// The shared level of each query with each item, row by row.
pub(super) fn shared_levels(queries: &Labels, items: &Labels) -> Vec<usize> {
    let row = |query| (0..items.len()).map(move |item| queries.shared(query, items, item).least);
    (0..queries.len()).flat_map(row).collect()
}

/// Elements of the largest three-way tensor, [block, K, B].
pub(super) const BLOCK_ELEMENTS: usize = 1 << 22;

/// The smooth counts at the items k of a block of queries.
pub(super) struct Counts {
    /// a_k, [Q, K, 1].
    pub above: Tensor<3>,
    /// a′_kj, [Q, K, N]. None: a is a constant for the gradient.
    pub above_slope: Option<Tensor<3>>,
    /// r_k, above 0, [Q, K, 1].
    pub rank: Tensor<3>,
    /// r′_kj, [Q, K, N].
    pub rank_slope: Tensor<3>,
}

/// A range of queries, with K items k for each.
pub(super) struct Block {
    queries: Range<usize>,
    /// [Q, K].
    items: Tensor<2, Int>,
}

impl Block {
    /// The block's rows of a matrix over all queries and items, along the items j: [Q, 1, N].
    pub(super) fn along_j(&self, matrix: &Tensor<2>) -> Tensor<3> {
        matrix.clone().slice(self.queries.clone()).unsqueeze_dim(1)
    }

    /// The block's rows of a column over all queries [Q, 1], as [Q, 1, 1].
    pub(super) fn along_queries(&self, column: &Tensor<2>) -> Tensor<3> {
        column.clone().slice(self.queries.clone()).unsqueeze_dim(2)
    }

    /// The same at the items k, [Q, K, 1].
    pub(super) fn along_k(&self, matrix: &Tensor<2>) -> Tensor<3> {
        matrix.clone().slice(self.queries.clone()).gather(1, self.items.clone()).unsqueeze_dim(2)
    }
}

/// The value of each item and its slopes along both ranks, [Q, K, 1].
pub(super) struct Values {
    pub value: Tensor<3>,
    pub above_slope: Tensor<3>,
    pub rank_slope: Tensor<3>,
}

/// Σ_ik w_ik · a_ik / r_ik for scores [Q, N] and weights [Q, N], the weights row by row. `count` computes the counts of
/// a block of queries from t, [Q, K, N].
pub(super) fn weighted_quotients(
    scores: Tensor<2>,
    weights: Vec<f64>,
    count: impl Fn(Tensor<3>, &Block) -> Counts,
) -> Tensor<1> {
    weighted_values(scores, weights, count, |above, rank, _| {
        let value = above / rank.clone();
        let above_slope = rank.recip();
        Values { rank_slope: -value.clone() * above_slope.clone(), above_slope, value }
    })
}

/// Σ_ik w_ik · f(a_ik, r_ik), as [`weighted_quotients`]; `value` computes f from a and r, both [Q, K, 1].
pub(super) fn weighted_values(
    scores: Tensor<2>,
    weights: Vec<f64>,
    count: impl Fn(Tensor<3>, &Block) -> Counts,
    value: impl Fn(Tensor<3>, Tensor<3>, &Block) -> Values,
) -> Tensor<1> {
    let [queries, size] = scores.dims();
    let plain = scores.clone().without_autodiff();
    let nonzero = |row: &[f64]| row.iter().filter(|&&weight| weight != 0.0).count();
    let chosen = weights.chunks(size).map(nonzero).max().unwrap_or(0).max(1);
    let items = weights.chunks(size).flat_map(|row| {
        let mut items: Vec<usize> = (0..size).collect();
        items.sort_by_key(|&item| row[item] == 0.0);
        items.into_iter().take(chosen).map(|item| item as i64)
    });
    let items = TensorData::new(items.collect(), [queries, chosen]);
    let items = Tensor::<2, Int>::from_data(items, &plain.device());
    let weights = matrix(weights, [queries, size], &plain);

    let block_size = (BLOCK_ELEMENTS / (chosen * size)).max(1);
    let (mut sums, mut gradients) = (Vec::new(), Vec::new());
    for start in (0..queries).step_by(block_size) {
        let rows = start..(start + block_size).min(queries);
        let block = Block { items: items.clone().slice(rows.clone()), queries: rows };
        let t = block.along_j(&plain) - block.along_k(&plain);
        let Counts { above, above_slope, rank, rank_slope } = count(t, &block);

        let values = value(above, rank, &block);
        let weight = block.along_k(&weights);
        sums.push((values.value * weight.clone()).sum());

        let slope = rank_slope * (values.rank_slope * weight.clone());
        let slope = match above_slope {
            Some(above_slope) => above_slope * (values.above_slope * weight) + slope,
            None => slope,
        };
        let slope_k = slope.clone().sum_dim(2).squeeze_dim::<2>(2);
        let slope_j = slope.sum_dim(1).squeeze_dim::<2>(1);
        gradients.push(slope_j.scatter(1, block.items, -slope_k, IndexingUpdateOp::Add));
    }
    with_gradient(scores, Tensor::cat(sums, 0).sum(), Tensor::cat(gradients, 0))
}

/// The weights of a mean over the items of each query's class, including the query itself, then over the queries:
/// [Q, N], row by row. A query without such items is left out. The weights sum to 1, or to 0 if no query has any.
pub(super) fn positive_weights(batch: &Batch) -> Vec<f64> {
    let items = batch.items().labels;
    let classes = items.column(items.levels());
    let count = |class: &u32| classes.iter().filter(|&other| other == class).count() as f64;
    let query_classes = batch.labels.column(batch.labels.levels());
    let counts: Vec<f64> = query_classes.iter().map(count).collect();
    let queries = counts.iter().filter(|&&count| count > 0.0).count() as f64;
    let weight = |same: bool, count: f64| if same { 1.0 / (count * queries) } else { 0.0 };
    let row = |(class, count)| classes.iter().map(move |other| weight(*other == class, count));
    query_classes.into_iter().zip(counts).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::super::{BuildLoss, LossContext, Objective, SupApConfig};
    use super::*;
    use crate::geometry::{Geometry, normalise};
    use crate::random::{stream, uniform};
    use crate::smooth_ranks::RankSteps;

    #[test]
    fn on_the_cpu_losses_come_from_sorted_scores() {
        let device = Device::flex().autodiff();
        let labels = Labels::new(1, (0..60).map(|item| item / 10).collect()).unwrap();
        let rows = uniform(&mut stream(0, "test", &[]), 60 * 8, -1.0, 1.0);
        let rows =
            normalise(Tensor::from_data(TensorData::new(rows, [60, 8]), &device)).detach().require_grad();
        let classes = labels.classes();
        let context = LossContext::new(&classes, 8, &Geometry::Cosine, 0, &device);
        let config = SupApConfig::default();
        let loss = config.init(&context).unwrap();
        let gradient = |value: Tensor<1>| -> Vec<f32> {
            rows.grad(&value.backward()).unwrap().into_data().try_into_vec().unwrap()
        };
        let batch = Batch::new(rows.clone(), &labels);
        let steps = RankSteps::Bounds { upper: config.step.checked().unwrap(), lower: None };
        let places = by_fine_class(&labels, &labels);
        let sorted = smooth_rank_loss(rows.clone(), None, &SmoothRanks::new(steps), places);
        let (sorted, forward) = (gradient(sorted), gradient(loss.forward(&batch)));
        assert_eq!(forward, sorted);
        // The last digits tell the two ways apart.
        let on_tensors = gradient(loss.on_tensors(&batch).unwrap());
        assert_ne!(forward, on_tensors);
        for (a, b) in forward.iter().zip(on_tensors) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn places_of_known_classes_are_the_shared_levels() {
        let row = |item: u32| [item % 2, item % 6, item % 30];
        let labels = |items: Range<u32>| Labels::new(3, items.flat_map(row).collect()).unwrap();
        let (queries, items) = (labels(3..45), labels(0..100));
        let places_of_items = shared_places(&queries, &items);
        for query in 0..queries.len() {
            let mut places = Vec::new();
            places_of_items(query, &mut places);
            let expected = (0..items.len()).map(|item| queries.shared(query, &items, item).least as u32);
            assert!(expected.eq(places), "{query}");
        }
    }

    #[test]
    fn a_matrix_is_added_to_its_transpose() {
        for size in [1, 2, 31, 32, 33, 70] {
            let matrix: Vec<f32> = (0..size * size).map(|place| (place * place % 101) as f32).collect();
            let mut sum = vec![f32::NAN; size * size];
            plus_transposed(&matrix, size, 2.0, &mut sum);
            let entry = |place: usize| 2.0 * (matrix[place] + matrix[place % size * size + place / size]);
            assert!((0..size * size).all(|place| sum[place] == entry(place)), "{size}");
        }
    }
}
