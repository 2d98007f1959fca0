//! Tensor helpers of the losses: constants from labels, sums of powers without overflow, means over the pairs that
//! exist, gradients in closed form, and buffers, which are parameters that the loss sets and no optimiser learns.

use burn::module::Param;
use burn::tensor::{Bool, Tensor, TensorData};

use crate::geometry::normalise;
use crate::host::with_gradient_of;
use crate::taxonomy::{Labels, UNKNOWN, shared_interval};

/// A constant matrix of these values, row by row, with the device and type of `like`.
pub(super) fn matrix(values: Vec<f64>, shape: [usize; 2], like: &Tensor<2>) -> Tensor<2> {
    let device = like.device().without_autodiff();
    Tensor::from_data(TensorData::new(values, shape), (&device, like.dtype()))
}

/// The fine classes of a batch, one-hot: [B, classes], with the type of `like`. A row of unknown class is 0.
pub(super) fn one_hot(labels: &Labels, classes: usize, like: &Tensor<2>) -> Tensor<2> {
    membership(&labels.column(labels.levels()), classes, like)
}

/// The group of each row, one-hot: [rows, groups], with the type of `like`. A row of unknown group is 0.
pub(super) fn membership(row_groups: &[u32], groups: usize, like: &Tensor<2>) -> Tensor<2> {
    let mut values = vec![0.0; row_groups.len() * groups];
    for (row, &group) in row_groups.iter().enumerate().filter(|(_, group)| **group != UNKNOWN) {
        values[row * groups + group as usize] = 1.0;
    }
    matrix(values, [row_groups.len(), groups], like)
}

/// 1 where an item is decided not to be of a fine class, else 0: [B, C], for the label paths [C, L] of the classes.
pub(super) fn apart(labels: &Labels, classes: &Labels, like: &Tensor<2>) -> Tensor<2> {
    let finest = classes.levels();
    let is_apart = |item: usize, class: usize| {
        shared_interval(labels.row(item), classes.row(class)).share(finest) == Some(false)
    };
    let row = |item| (0..classes.len()).map(move |class| f64::from(u8::from(is_apart(item, class))));
    matrix((0..labels.len()).flat_map(row).collect(), [labels.len(), classes.len()], like)
}

/// The values of a matrix, row by row, read from the device.
pub(super) fn read_values(values: Tensor<2>) -> Vec<f64> {
    values.into_data().convert::<f64>().try_into_vec().expect("they were just converted")
}

/// 1 where the mask is set, else 0, with the type of `like`.
pub(super) fn float_mask(mask: Tensor<2, Bool>, like: &Tensor<2>) -> Tensor<2> {
    like.zeros_like().mask_fill(mask, 1.0)
}

/// 1 where a value is above 0, else 0, without gradient.
pub(super) fn mask_above_zero(values: &Tensor<2>) -> Tensor<2> {
    let values = values.clone().without_autodiff();
    float_mask(values.clone().greater_scalar(0.0), &values)
}

/// Some rows of a matrix, in this order.
pub(super) fn select_rows(matrix: &Tensor<2>, rows: &[usize]) -> Tensor<2> {
    let places: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
    matrix.clone().select(0, Tensor::from_data(TensorData::new(places, [rows.len()]), &matrix.device()))
}

/// The rows, scaled to unit length if `wanted`.
pub(super) fn normalise_if(wanted: bool, rows: Tensor<2>) -> Tensor<2> {
    if wanted { normalise(rows) } else { rows }
}

/// A buffer: a parameter that the checkpoint saves and the optimiser does not move.
pub(super) fn buffer(value: Tensor<2>) -> Param<Tensor<2>> {
    Param::from_tensor(value.detach()).set_require_grad(false)
}

/// The same buffer with another value.
pub(super) fn replace_buffer(param: &Param<Tensor<2>>, value: Tensor<2>) -> Param<Tensor<2>> {
    param.clone().map(|old| {
        let value = if old.is_autodiff() && !value.is_autodiff() { value.autodiff() } else { value };
        value.detach().set_require_grad(false)
    })
}

/// log Σ_j e^{z_j} of each row, [B, 1], of exponents [B, n]. It does not overflow.
pub(super) fn log_sum_exp(exponents: Tensor<2>) -> Tensor<2> {
    let largest = exponents.clone().max_dim(1).detach();
    (exponents - largest.clone()).exp().sum_dim(1).log() + largest
}

/// log(1 + Σ_j e^{z_j}) of each row, [B, 1], over the entries where the 0/1 matrix `counted` is 1; 0 if there are none.
pub(super) fn log_one_plus_sum_exp(exponents: Tensor<2>, counted: Tensor<2>) -> Tensor<2> {
    let one = exponents.zeros_like().sum_dim(1);
    log_sum_exp(Tensor::cat(vec![one, mask_exponents(exponents, counted)], 1))
}

/// The exponents, with those masked where the 0/1 matrix `counted` is 0: they add nothing to a sum of powers.
pub(super) fn mask_exponents(exponents: Tensor<2>, counted: Tensor<2>) -> Tensor<2> {
    exponents.mask_fill(counted.equal_scalar(0.0), -1e30)
}

/// The weights of a mean over each query's pairs, then over the queries, [Q, N]. `pairs` is a 0/1 matrix. A query
/// without pairs is left out. The weights sum to 1, or to 0 without any pair.
pub(super) fn query_mean_weights(pairs: Tensor<2>) -> Tensor<2> {
    let counts = pairs.clone().sum_dim(1);
    let queries = counts.clone().clamp_max(1.0).sum_dim(0).clamp_min(1.0);
    pairs / (counts.clamp_min(1.0) * queries)
}

/// The scalar `value`, which has this `gradient` with respect to `inputs`, as Σ gradient · inputs has.
pub(super) fn with_gradient(inputs: Tensor<2>, value: Tensor<1>, gradient: Tensor<2>) -> Tensor<1> {
    with_gradient_of(value, (inputs * gradient).sum())
}

/// Σ (sign r − r)² over all values r: their distance from the bits that they stand for. The signs are constants for the
/// gradient. The sign of 0 is 0.
pub(super) fn quantisation_error(numbers: &Tensor<2>) -> Tensor<1> {
    (numbers.clone().detach().sign() - numbers.clone()).square().sum()
}

/// 1/count, or 0 if the count is 0.
pub(super) fn reciprocal_or_zero(count: Tensor<1>) -> Tensor<1> {
    count.clone().clamp_max(1.0) / count.clamp_min(1.0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn a_given_gradient_does_not_round_the_value() {
        let device = Device::flex().autodiff();
        let inputs = Tensor::from_floats([[1e8, 3.0]], &device).require_grad();
        let gradient = Tensor::from_floats([[1.0, 2.0]], &Device::flex());
        let value = with_gradient(inputs.clone(), Tensor::from_floats([0.3], &Device::flex()), gradient);
        let got = inputs.grad(&value.backward()).unwrap().into_data().try_into_vec::<f32>().unwrap();
        assert_eq!(got, [1.0, 2.0]);
        assert_eq!(value.into_scalar::<f32>(), 0.3);
    }
}
