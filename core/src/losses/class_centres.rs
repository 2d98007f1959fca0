//! Centres of classes that a loss computes from the training set, and the likelihood of a class around them.

use burn::module::Param;
use burn::tensor::{Tensor, activation::log_softmax};

use super::{matrix, read_values, replace_buffer};

/// The mean of the members of each class; `None` for a class without members.
pub(super) fn class_means<'a>(
    classes: usize,
    members: impl Iterator<Item = (u32, &'a [f64])>,
) -> Vec<Option<Vec<f64>>> {
    let mut sums: Vec<Option<(Vec<f64>, f64)>> = vec![None; classes];
    for (class, member) in members {
        let (sum, count) = sums[class as usize].get_or_insert_with(|| (vec![0.0; member.len()], 0.0));
        sum.iter_mut().zip(member).for_each(|(sum, value)| *sum += value);
        *count += 1.0;
    }
    let mean = |(sum, count): (Vec<f64>, f64)| sum.into_iter().map(|sum| sum / count).collect();
    sums.into_iter().map(|sum| sum.map(mean)).collect()
}

/// Replaces centres, [C, K], by the means; a class without a mean keeps its centre.
pub(super) fn replace_centres(centres: &mut Param<Tensor<2>>, means: &[Option<Vec<f64>>]) {
    let old = centres.val();
    let shape @ [_, bits] = old.dims();
    let mut values = read_values(old.clone());
    for (centre, mean) in values.chunks_mut(bits).zip(means) {
        if let Some(mean) = mean {
            centre.copy_from_slice(mean);
        }
    }
    *centres = replace_buffer(centres, matrix(values, shape, &old));
}

/// Σ_i log(p_i + ε) with p_i = e_iy / (Σ_c e_ic + ε), where e are the exponentials of `exponents`, [B, C], `own` is 1 at
/// the class of each item, and ε is the floor. With ε = 0 it is exact, however small e is.
pub(super) fn log_likelihood(exponents: Tensor<2>, own: Tensor<2>, floor: f64) -> Tensor<1> {
    let logarithms = if floor == 0.0 {
        log_softmax(exponents, 1)
    } else {
        let densities = exponents.exp();
        let sums = densities.clone().sum_dim(1) + floor;
        (densities / sums + floor).log()
    };
    (logarithms * own).sum()
}
