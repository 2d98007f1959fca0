//! Linear maps of tokens: on the CPU those of `akin-layers`, forwards and backwards, and on other devices those of Burn.

use burn::nn::Linear;
use burn::tensor::Tensor;

/// The output of a linear layer, [B, T, I] → [B, T, O].
pub(super) fn linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, &x) {
        return output;
    }
    layer.forward(x)
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn::nn::Linear;
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::operator::{Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor};

    /// The output of the layer, if it is one of 32-bit floats in the memory of the CPU.
    pub(super) fn apply(layer: &Linear, x: &Tensor<3>) -> Option<Tensor<3>> {
        let weight = layer.weight.val();
        let [inputs, outputs] = weight.dims();
        // What Burn refuses, it explains.
        if !fits(x) || !fits(&weight) || x.dims()[2] != inputs {
            return None;
        }
        let bias = layer.bias.as_ref().map(|bias| bias.val().into_dispatch());
        let operator = Map { form: layers::Linear { inputs, outputs }, biased: bias.is_some() };
        Some(operate(operator, [x.clone().into_dispatch(), weight.into_dispatch()].into_iter().chain(bias)))
    }

    /// A linear map of rows with weights and a bias or none.
    #[derive(Debug)]
    struct Map {
        form: layers::Linear,
        biased: bool,
    }

    impl Operator for Map {
        fn forward(&self, [x, weight, bias, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let bias = self.biased.then(|| numbers(&bias));
            let output = self.form.forward(numbers(&x), numbers(&weight), bias);
            let output = tensor(output, &[shape(&x)[0], shape(&x)[1], self.form.outputs]);
            (output, vec![x, weight])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, wanted: Inputs<bool>) -> Gradients {
            let ([x, weight], gradient) = ([&kept[0], &kept[1]], numbers(&gradient));
            let by_x = || tensor(self.form.input_gradient(gradient, numbers(weight)), shape(x));
            let by_weight = || tensor(self.form.weight_gradient(numbers(x), gradient), shape(weight));
            let by_bias = || tensor(self.form.bias_gradient(gradient), &[self.form.outputs]);
            vec![wanted[0].then(by_x), wanted[1].then(by_weight), wanted[2].then(by_bias)]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::nn::LinearConfig;
    use burn::tensor::{Device, Tolerance};

    use super::super::operator::{assert_agree, assert_same_kinds, random};
    use super::*;

    #[test]
    fn every_direction_agrees_with_burn() {
        for (shape, outputs, bias) in [([2, 3, 5], 7, true), ([1, 1, 1], 1, false), ([3, 40, 33], 70, true)] {
            let mut layer =
                LinearConfig::new(shape[2], outputs).with_bias(bias).init(&Device::flex().autodiff());
            layer.weight = layer.weight.map(|_| random([shape[2], outputs], 1));
            assert!(cpu::apply(&layer, &random(shape, 4)).is_some(), "our own layer");
            assert_agree(shape, |x| linear(&layer, x), |x| layer.forward(x));
            assert_same_kinds(shape, |x| linear(&layer, x), |x| layer.forward(x));
            let x = random(shape, 2);
            let gradients = |output: Tensor<3>| {
                let gradients = (output.clone() * random(output.dims(), 3)).sum().backward();
                let bias = layer.bias.as_ref().map(|bias| bias.val().grad(&gradients).unwrap().into_data());
                [layer.weight.val().grad(&gradients).map(Tensor::into_data), bias]
            };
            let (own, burn) = (gradients(linear(&layer, x.clone())), gradients(layer.forward(x)));
            for (own, burn) in own.iter().flatten().zip(burn.iter().flatten()) {
                own.assert_approx_eq::<f32>(burn, Tolerance::absolute(2e-5));
            }
        }
    }
}
