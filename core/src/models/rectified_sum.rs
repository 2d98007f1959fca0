//! The sum of two tensors with a rectifier behind it, as at the end of a residual block: on the CPU that of `akin-layers`,
//! forwards and backwards, and on other devices that of Burn.

use burn::tensor::{Tensor, activation::relu};

/// x + y, with what is negative made zero.
pub(super) fn rectified_sum(x: Tensor<4>, y: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if super::operator::fits(&x) && super::operator::fits(&y) && x.dims() == y.dims() {
        return super::operator::operate(cpu::RectifiedSum, [x.into_dispatch(), y.into_dispatch()]);
    }
    relu(x + y)
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn_flex::FlexTensor;

    use super::super::operator::{Gradients, Inputs, Operator, numbers, shape, tensor, written};

    #[derive(Debug)]
    pub(super) struct RectifiedSum;

    impl Operator for RectifiedSum {
        fn forward(&self, [x, y, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let output = tensor(layers::rectified_sum(numbers(&x), numbers(&y)), shape(&x));
            (output.clone(), vec![output])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, wanted: Inputs<bool>) -> Gradients {
            let gradient =
                written(gradient, |gradient| layers::rectifier_gradient(gradient, numbers(&kept[0])));
            vec![wanted[0].then(|| gradient.clone()), wanted[1].then(|| gradient.clone())]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use super::super::operator::{assert_agree, assert_same_kinds};
    use super::*;

    #[test]
    fn output_and_gradients_agree_with_burn() {
        let shape = [2, 3, 5, 7];
        assert_agree(
            shape,
            |x| rectified_sum(x.clone() * 2.0, x - 0.3),
            |x| relu(x.clone() * 2.0 + (x - 0.3)),
        );
        assert_same_kinds(shape, |x| rectified_sum(x.clone(), x), |x| relu(x.clone() + x));
    }
}
