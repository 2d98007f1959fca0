//! The steps of tensors, element by element, for the losses on Burn.

use burn::tensor::{Bool, Tensor, activation::sigmoid};

use super::{LowerStep, Smooth, UpperStep};
use crate::Checked;

impl Checked<UpperStep> {
    /// h(t) and h′(t) of a tensor.
    pub fn apply<const D: usize>(&self, t: Tensor<D>) -> Smooth<Tensor<D>> {
        let sigma = sigmoid(t.clone() / self.temperature);
        let sigma_derivative = sigma.clone() * (-sigma.clone() + 1.0) / self.temperature;
        let Some(line) = self.line() else {
            return Smooth { value: sigma, derivative: sigma_derivative };
        };
        let above = above_zero_or_at(&t, self.start_at_zero);
        let beyond = t.clone().greater_scalar(line.threshold);
        let beyond_value = (t - line.threshold) * line.slope + line.offset;
        Smooth {
            value: sigma
                .clone()
                .mask_where(above, sigma + self.start)
                .mask_where(beyond.clone(), beyond_value),
            derivative: sigma_derivative.mask_fill(beyond, line.slope),
        }
    }
}

impl Checked<LowerStep> {
    /// h(t) and h′(t) of a tensor.
    pub fn apply<const D: usize>(&self, t: Tensor<D>) -> Smooth<Tensor<D>> {
        let line = t.clone() * self.slope + self.start;
        let above = above_zero_or_at(&t, self.start_at_zero);
        let full = line.clone().greater_scalar(1.0);
        let derivative = t.full_like(self.leak).mask_fill(above.clone(), self.slope).mask_fill(full, 0.0);
        Smooth { value: (t * self.leak).mask_where(above, line.clamp_max(1.0)), derivative }
    }
}

/// Where t > 0, or t ≥ 0 if `at` is set.
fn above_zero_or_at<const D: usize>(t: &Tensor<D>, at: bool) -> Tensor<D, Bool> {
    let t = t.clone();
    if at { t.greater_equal_scalar(0.0) } else { t.greater_scalar(0.0) }
}

/// H(t) with H(0) = 1: the step itself, without a gradient.
pub fn heaviside<const D: usize>(t: Tensor<D>) -> Tensor<D> {
    t.zeros_like().mask_fill(t.greater_equal_scalar(0.0), 1.0)
}
