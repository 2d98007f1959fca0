//! Linear maps of tokens: on the CPU those of `akin-layers`, forwards and backwards, and on other devices those of Burn.

use burn::nn::Linear;
use burn::tensor::Tensor;

/// The output of a linear layer, [B, T, I] → [B, T, O].
pub(super) fn linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if let Some(form) = cpu::form(layer, &x, None) {
        return cpu::apply(form, layer, x, None);
    }
    layer.forward(x)
}

/// The output of a linear layer, added to tokens.
pub(super) fn add_linear(tokens: Tensor<3>, layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if let Some(form) = cpu::form(layer, &x, Some(&tokens)) {
        return cpu::apply(form, layer, x, Some(tokens));
    }
    tokens + layer.forward(x)
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn::nn::Linear;
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::operator::{
        Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor, written,
    };

    /// The shape of a layer whose input is in the memory of the CPU, as are the tokens to which its output is added. All are
    /// 32-bit floats. What Burn refuses has none, so that Burn explains it.
    pub(super) fn form(layer: &Linear, x: &Tensor<3>, tokens: Option<&Tensor<3>>) -> Option<layers::Linear> {
        let weight = layer.weight.val();
        let ([inputs, outputs], [batch, count, features]) = (weight.dims(), x.dims());
        let is_possible = features == inputs
            && tokens.is_none_or(|tokens| fits(tokens) && tokens.dims() == [batch, count, outputs]);
        (fits(x) && fits(&weight) && is_possible).then_some(layers::Linear { inputs, outputs })
    }

    /// The output of the layer, added to tokens or not. Tokens that nothing else uses are written over.
    pub(super) fn apply(
        form: layers::Linear,
        layer: &Linear,
        x: Tensor<3>,
        tokens: Option<Tensor<3>>,
    ) -> Tensor<3> {
        let operator = Map { form, biased: layer.bias.is_some(), added: tokens.is_some() };
        let mut inputs = vec![x.into_dispatch(), layer.weight.val().into_dispatch()];
        inputs.extend(tokens.map(Tensor::into_dispatch));
        inputs.extend(layer.bias.as_ref().map(|bias| bias.val().into_dispatch()));
        operate(operator, inputs)
    }

    /// A linear map of rows with weights and a bias or none, added to tokens or not.
    #[derive(Debug)]
    struct Map {
        form: layers::Linear,
        biased: bool,
        added: bool,
    }

    impl Operator for Map {
        fn forward(&self, [x, weight, a, b, _]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let (tokens, bias) = if self.added { (Some(a), b) } else { (None, a) };
            let bias = self.biased.then(|| numbers(&bias));
            let output = match tokens {
                Some(tokens) => written(tokens, |tokens| {
                    self.form.add_to(numbers(&x), numbers(&weight), bias, tokens);
                }),
                None => {
                    let output = self.form.forward(numbers(&x), numbers(&weight), bias);
                    tensor(output, &[shape(&x)[0], shape(&x)[1], self.form.outputs])
                }
            };
            (output, vec![x, weight])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, wanted: Inputs<bool>) -> Gradients {
            let ([x, weight], by_output) = ([&kept[0], &kept[1]], numbers(&gradient));
            let by_x = || tensor(self.form.input_gradient(by_output, numbers(weight)), shape(x));
            let by_weight = || tensor(self.form.weight_gradient(numbers(x), by_output), shape(weight));
            let by_bias = || tensor(self.form.bias_gradient(by_output), &[self.form.outputs]);
            let mut gradients = vec![wanted[0].then(by_x), wanted[1].then(by_weight)];
            if self.added {
                gradients.push(wanted[2].then(|| gradient.clone()));
            }
            gradients.push(wanted[gradients.len()].then(by_bias));
            gradients
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
        for (shape, outputs, bias) in
            [([2, 3, 5], 7, true), ([1, 1, 1], 1, false), ([3, 40, 33], 70, true), ([2, 9, 40], 40, true)]
        {
            let mut layer =
                LinearConfig::new(shape[2], outputs).with_bias(bias).init(&Device::flex().autodiff());
            layer.weight = layer.weight.map(|_| random([shape[2], outputs], 1));
            assert!(cpu::form(&layer, &random(shape, 4), None).is_some(), "our own layer");
            assert_agree(shape, |x| linear(&layer, x), |x| layer.forward(x));
            assert_same_kinds(shape, |x| linear(&layer, x), |x| layer.forward(x));
            // The tokens are the input, too, as far as they have as many features, and then have both gradients.
            let tokens = |x: &Tensor<3>| {
                if outputs == shape[2] { x.clone() } else { random([shape[0], shape[1], outputs], 5) }
            };
            assert_agree(shape, |x| add_linear(tokens(&x), &layer, x), |x| tokens(&x) + layer.forward(x));
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
