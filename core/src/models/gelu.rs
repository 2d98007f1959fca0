//! GELU: on the CPU that of `akin-layers`, forwards and backwards, and on other devices that of Burn.

use burn::tensor::{Tensor, activation};

/// x · Φ(x) of each number.
pub(super) fn gelu(x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if super::operator::fits(&x) {
        return super::operator::operate(cpu::Gelu, [x.into_dispatch()]);
    }
    activation::gelu(x)
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn_flex::FlexTensor;

    use super::super::operator::{Gradients, Inputs, Operator, numbers, shape, tensor, written};

    #[derive(Debug)]
    pub(super) struct Gelu;

    impl Operator for Gelu {
        fn forward(&self, [x, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            (tensor(layers::gelu(numbers(&x)), shape(&x)), vec![x])
        }

        fn evaluate(&self, [x, ..]: Inputs<FlexTensor>) -> FlexTensor {
            written(x, layers::gelu_in_place)
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, _: Inputs<bool>) -> Gradients {
            let by_x = written(gradient, |gradient| layers::gelu_gradient(numbers(&kept[0]), gradient));
            vec![Some(by_x)]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use super::super::operator::{assert_agree, assert_same_kinds, random};
    use super::*;

    #[test]
    fn output_and_gradient_agree_with_burn() {
        assert_agree([2, 30, 70], |x| gelu(x * 5.0), |x| activation::gelu(x * 5.0));
        assert_same_kinds([2, 3, 5], gelu, activation::gelu);
    }

    #[test]
    fn numbers_that_are_used_elsewhere_stay() {
        let x = random([2, 3, 5], 1).without_autodiff();
        let part = x.clone().narrow(0, 1, 1);
        let before = x.to_data();
        let outputs = [gelu(x.clone()).narrow(0, 1, 1), gelu(part)].map(Tensor::into_data);
        assert_eq!(outputs[0], outputs[1]);
        assert_eq!(x.into_data(), before);
    }
}
