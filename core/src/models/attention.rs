//! Attention of tokens to each other: on the CPU that of `akin-layers`, forwards and backwards, and on other devices by
//! Burn's products.

use burn::tensor::{Tensor, activation::softmax};

/// Attention with some heads, from the queries, keys and values of all heads: [B, T, 3 · F] → [B, T, F].
pub(super) fn attention(projections: Tensor<3>, heads: usize) -> Tensor<3> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(&projections, heads) {
        return output;
    }
    products(projections, heads)
}

fn products(projections: Tensor<3>, heads: usize) -> Tensor<3> {
    let [batch, tokens, features] = projections.dims();
    let features = features / 3;
    let width = features / heads;
    // [3, B, heads, tokens, width]
    let all = projections.reshape([batch, tokens, 3, heads, width]).permute([2, 0, 3, 1, 4]);
    let part = |i: usize| all.clone().narrow(0, i, 1).squeeze_dim::<4>(0);
    let scale = 1.0 / (width as f64).sqrt();
    let weights = softmax((part(0) * scale).matmul(part(1).swap_dims(2, 3)), 3);
    weights.matmul(part(2)).swap_dims(1, 2).reshape([batch, tokens, features])
}

#[cfg(feature = "cpu")]
mod cpu {
    use akin_layers as layers;
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::operator::{Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor};

    /// The output for 32-bit floats in the memory of the CPU.
    pub(super) fn apply(projections: &Tensor<3>, heads: usize) -> Option<Tensor<3>> {
        let [_, tokens, features] = projections.dims();
        let operator = Attend { form: layers::Attention { tokens, heads, width: features / 3 / heads } };
        fits(projections).then(|| operate(operator, [projections.clone().into_dispatch()]))
    }

    #[derive(Debug)]
    struct Attend {
        form: layers::Attention,
    }

    impl Operator for Attend {
        fn forward(&self, [projections, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let output = self.form.forward(numbers(&projections));
            let [batch, tokens, features] = [0, 1, 2].map(|i| shape(&projections)[i]);
            (tensor(output, &[batch, tokens, features / 3]), vec![projections])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, _: Inputs<bool>) -> Gradients {
            let by_projections = self.form.gradient(numbers(&kept[0]), numbers(&gradient));
            vec![Some(tensor(by_projections, shape(&kept[0])))]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use super::super::operator::{assert_agree, assert_same_kinds};
    use super::*;

    #[test]
    fn output_and_gradient_agree_with_burn() {
        for (shape, heads) in [([1, 1, 3], 1), ([2, 9, 36], 3), ([1, 150, 192], 4)] {
            assert_agree(shape, |x| attention(x * 3.0, heads), |x| products(x * 3.0, heads));
            assert_same_kinds(shape, |x| attention(x, heads), |x| products(x, heads));
        }
    }
}
