//! Sums of absolute values, on the device: such a sum is not finite if one of its numbers is not.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Which weights of a module are summed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// All, with the statistics of normalisation.
    All,
    /// Those that learn.
    Learning,
}

/// The sum over the weights of a module, of shape \[1\]; none without weights.
pub fn weight_magnitude(module: &impl Module, weights: Weights) -> Option<Tensor<1>> {
    struct Visitor {
        weights: Weights,
        sum: Option<Tensor<1>>,
    }

    impl ModuleVisitor for Visitor {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.weights == Weights::All || param.is_require_grad() {
                add(&mut self.sum, param.val().without_autodiff());
            }
        }
    }

    let mut visitor = Visitor { weights, sum: None };
    module.visit(&mut visitor);
    visitor.sum
}

/// The sum over the gradients of a module, of shape \[1\]; none without gradients.
pub fn gradient_magnitude(module: &impl Module, gradients: &GradientsParams) -> Option<Tensor<1>> {
    struct Visitor<'a> {
        gradients: &'a GradientsParams,
        sum: Option<Tensor<1>>,
    }

    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.get::<D>(param.id) {
                add(&mut self.sum, gradient);
            }
        }
    }

    let mut visitor = Visitor { gradients, sum: None };
    module.visit(&mut visitor);
    visitor.sum
}

fn add<const D: usize>(sum: &mut Option<Tensor<1>>, tensor: Tensor<D>) {
    let magnitude = tensor.abs().sum();
    *sum = Some(match sum.take() {
        Some(sum) => sum + magnitude,
        None => magnitude,
    });
}

/// Whether all weights of a module are finite. Waits for the device.
pub fn is_finite(module: &impl Module) -> bool {
    let sum =
        weight_magnitude(module, Weights::All).map(|sum| sum.into_data().iter::<f32>().all(f32::is_finite));
    sum.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[derive(Module, Debug)]
    struct Pair {
        learning: Param<Tensor<2>>,
        fixed: Param<Tensor<1>>,
    }

    fn pair(learning: f32, fixed: f32) -> Pair {
        let device = Device::flex().autodiff();
        let fixed = Tensor::<1>::from_data([fixed], &device);
        Pair {
            learning: Param::from_data([[1.0, learning]], &device),
            fixed: Param::from_tensor(fixed).set_require_grad(false),
        }
    }

    #[test]
    fn one_number_that_is_not_finite_is_noticed_and_large_ones_are_not() {
        assert!(is_finite(&pair(-1e30, 1e30)));
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!is_finite(&pair(number, 0.0)) && !is_finite(&pair(0.0, number)), "{number}");
            let learning = weight_magnitude(&pair(0.0, number), Weights::Learning).unwrap();
            assert!(learning.into_data().iter::<f32>().all(f32::is_finite));
        }
    }
}
