//! Tensors that losses are made of: constants from labels, sums of powers that do not overflow, means that leave out
//! what is empty, gradients given in closed form, and parameters that are kept without being learned.

use burn::module::Param;
use burn::tensor::{Bool, Tensor, TensorData};

use crate::geometry::normalise;
use crate::taxonomy::Labels;

/// Plain numbers as a constant matrix, on the device and of the type of `like`.
pub(super) fn matrix(values: Vec<f64>, shape: [usize; 2], like: &Tensor<2>) -> Tensor<2> {
    let device = like.device().without_autodiff();
    Tensor::from_data(TensorData::new(values, shape), (&device, like.dtype()))
}

/// The finest classes of a batch as a 0/1 matrix [B, classes], of the type of `like`.
pub(super) fn one_hot(labels: &Labels, classes: usize, like: &Tensor<2>) -> Tensor<2> {
    membership(&labels.column(labels.levels()), classes, like)
}

/// 1 at the group of each row, [rows, groups], of the type of `like`.
pub(super) fn membership(of_rows: &[u32], groups: usize, like: &Tensor<2>) -> Tensor<2> {
    let mut values = vec![0.0; of_rows.len() * groups];
    for (row, &group) in of_rows.iter().enumerate() {
        values[row * groups + group as usize] = 1.0;
    }
    matrix(values, [of_rows.len(), groups], like)
}

/// The numbers of a matrix, row after row, read from the device.
pub(super) fn read_values(values: Tensor<2>) -> Vec<f64> {
    values.into_data().convert::<f64>().try_into_vec().expect("they were just converted")
}

/// 1 where the mask is set, else 0, of the type of `like`.
pub(super) fn float_mask(mask: Tensor<2, Bool>, like: &Tensor<2>) -> Tensor<2> {
    like.zeros_like().mask_fill(mask, 1.0)
}

/// Which numbers are above 0, as 0/1, without gradient.
pub(super) fn mask_above_zero(values: &Tensor<2>) -> Tensor<2> {
    let values = values.clone().without_autodiff();
    float_mask(values.clone().greater_scalar(0.0), &values)
}

/// Rows of unit length, if that is wanted of rows that may have it already.
pub(super) fn normalise_if(wanted: bool, rows: Tensor<2>) -> Tensor<2> {
    if wanted { normalise(rows) } else { rows }
}

/// A parameter that a loss keeps without learning it: the checkpoint sees it, the optimiser does not.
pub(super) fn buffer(value: Tensor<2>) -> Param<Tensor<2>> {
    Param::from_tensor(value.detach()).set_require_grad(false)
}

/// The same kept parameter with another value.
pub(super) fn replace_buffer(param: &Param<Tensor<2>>, value: Tensor<2>) -> Param<Tensor<2>> {
    param.clone().map(|old| {
        let value = if old.is_autodiff() && !value.is_autodiff() { value.autodiff() } else { value };
        value.detach().set_require_grad(false)
    })
}

/// log Σ_j e^{z_j} of each row, [B, 1], for exponents [B, n] of any size.
pub(super) fn log_sum_exp(exponents: Tensor<2>) -> Tensor<2> {
    let largest = exponents.clone().max_dim(1).detach();
    (exponents - largest.clone()).exp().sum_dim(1).log() + largest
}

/// log(1 + Σ_j e^{z_j}) of each row, [B, 1], over the entries that the 0/1 matrix `counted` has; 0 for a row without.
pub(super) fn log_one_plus_sum_exp(exponents: Tensor<2>, counted: Tensor<2>) -> Tensor<2> {
    let one = exponents.zeros_like().sum_dim(1);
    log_sum_exp(Tensor::cat(vec![one, mask_exponents(exponents, counted)], 1))
}

/// Exponents in which the entries that the 0/1 matrix `counted` lacks add nothing to a sum of powers.
pub(super) fn mask_exponents(exponents: Tensor<2>, counted: Tensor<2>) -> Tensor<2> {
    exponents.mask_fill(counted.equal_scalar(0.0), -1e30)
}

/// The weights of a mean over queries of a mean over their pairs, both [Q, N] with `pairs` of 0 and 1. A query
/// without a pair is left out; the weights sum to 1, or to 0 where there is no pair at all.
pub(super) fn query_mean_weights(pairs: Tensor<2>) -> Tensor<2> {
    let counts = pairs.clone().sum_dim(1);
    let queries = counts.clone().clamp_max(1.0).sum_dim(0).clamp_min(1.0);
    pairs / (counts.clamp_min(1.0) * queries)
}

/// A scalar `value` whose gradient with respect to `inputs` is `gradient`, whatever computed the two. It is value +
/// (Σ gradient · inputs − the same, detached): the bracket is exactly 0 and linear in the inputs.
pub(super) fn with_gradient(inputs: Tensor<2>, value: Tensor<1>, gradient: Tensor<2>) -> Tensor<1> {
    let linear = (inputs * gradient).sum();
    value + (linear.clone() - linear.detach())
}

/// Σ (sign r − r)² over all numbers r: how far they are from the bits that they stand for. The signs are constants
/// for the gradient; that of an exact 0 is 0, so that it is pulled neither way.
pub(super) fn quantisation_error(numbers: &Tensor<2>) -> Tensor<1> {
    (numbers.clone().detach().sign() - numbers.clone()).square().sum()
}

/// 1/count, and 0 for none.
pub(super) fn reciprocal_or_zero(count: Tensor<1>) -> Tensor<1> {
    count.clone().clamp_max(1.0) / count.clamp_min(1.0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn a_gradient_that_is_given_does_not_round_the_value() {
        let device = Device::flex().autodiff();
        let inputs = Tensor::from_floats([[1e8, 3.0]], &device).require_grad();
        let gradient = Tensor::from_floats([[1.0, 2.0]], &Device::flex());
        let value = with_gradient(inputs.clone(), Tensor::from_floats([0.3], &Device::flex()), gradient);
        let got = inputs.grad(&value.backward()).unwrap().into_data().try_into_vec::<f32>().unwrap();
        assert_eq!(got, [1.0, 2.0]);
        assert_eq!(value.into_scalar::<f32>(), 0.3);
    }
}
