//! Layer normalisation of tokens: on the CPU that of `akin-layers`, forwards and backwards, and on other devices that of
//! Burn.

use burn::nn::LayerNorm;
use burn::tensor::Tensor;

/// The normalised tokens, [B, T, F]. `epsilon` is that of the layer, because Burn's layers do not tell theirs.
pub(super) fn layer_norm(layer: &LayerNorm, epsilon: f64, x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, epsilon, &x) {
        return output;
    }
    #[cfg(not(feature = "cpu"))]
    let _ = epsilon;
    layer.forward(x)
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn::nn::LayerNorm;
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::operator::{
        Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor, written,
    };

    /// The output of the layer, if it is one of 32-bit floats in the memory of the CPU.
    pub(super) fn apply(layer: &LayerNorm, epsilon: f64, x: &Tensor<3>) -> Option<Tensor<3>> {
        let (gamma, beta) = (layer.gamma.val(), layer.beta.as_ref()?.val());
        // What Burn refuses, it explains.
        if !fits(x) || !fits(&gamma) || !fits(&beta) || x.dims()[2] != gamma.dims()[0] {
            return None;
        }
        let operator = Normalise { epsilon: epsilon as f32 };
        Some(operate(operator, [x.clone().into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()]))
    }

    /// Layer normalisation of rows by γ and β.
    #[derive(Debug)]
    struct Normalise {
        epsilon: f32,
    }

    impl Normalise {
        fn form<'a>(&self, gamma: &'a FlexTensor, beta: &'a FlexTensor) -> layers::LayerNorm<'a> {
            layers::LayerNorm { gamma: numbers(gamma), beta: numbers(beta), epsilon: self.epsilon }
        }
    }

    impl Operator for Normalise {
        fn forward(&self, [x, gamma, beta, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let output = self.form(&gamma, &beta).forward(numbers(&x));
            (tensor(output, shape(&x)), vec![x, gamma, beta])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, _: Inputs<bool>) -> Gradients {
            let mut weights = [vec![], vec![]];
            let by_x = written(gradient, |gradient| {
                weights = self.form(&kept[1], &kept[2]).gradient(numbers(&kept[0]), gradient);
            });
            let [by_gamma, by_beta] = weights.map(|numbers| Some(tensor(numbers, shape(&kept[1]))));
            vec![Some(by_x), by_gamma, by_beta]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::nn::LayerNormConfig;
    use burn::tensor::{Device, Tolerance};

    use super::super::operator::{assert_agree, assert_same_kinds, random};
    use super::*;

    const EPSILON: f64 = 1e-5;

    #[test]
    fn output_and_gradients_agree_with_burn() {
        for shape in [[2, 3, 5], [1, 1, 4], [3, 50, 70]] {
            let mut layer =
                LayerNormConfig::new(shape[2]).with_epsilon(EPSILON).init(&Device::flex().autodiff());
            layer.gamma = layer.gamma.map(|_| random([shape[2]], 1));
            layer.beta = layer.beta.map(|beta| beta.map(|_| random([shape[2]], 2)));
            assert!(cpu::apply(&layer, EPSILON, &random(shape, 4)).is_some(), "our own layer");
            assert_agree(shape, |x| layer_norm(&layer, EPSILON, x), |x| layer.forward(x));
            assert_same_kinds(shape, |x| layer_norm(&layer, EPSILON, x), |x| layer.forward(x));
            let gradients = |output: Tensor<3>| {
                let gradients = (output.clone() * random(output.dims(), 3)).sum().backward();
                let beta = layer.beta.as_ref().map(|beta| beta.val().grad(&gradients).unwrap());
                [layer.gamma.val().grad(&gradients), beta].map(|weight| weight.map(Tensor::into_data))
            };
            let x = random(shape, 4);
            let (own, burn) =
                (gradients(layer_norm(&layer, EPSILON, x.clone())), gradients(layer.forward(x)));
            for (own, burn) in own.iter().flatten().zip(burn.iter().flatten()) {
                own.assert_approx_eq::<f32>(burn, Tolerance::absolute(1e-4));
            }
        }
    }
}
