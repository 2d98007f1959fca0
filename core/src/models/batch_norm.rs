//! Batch normalisation with a rectifier behind it or none: on the CPU that of `akin-layers`, forwards and backwards, and
//! on other devices that of Burn. Behind a convolution that does not learn it costs nothing.

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation::relu};

use super::convolution::convolve;
#[cfg(feature = "cpu")]
use super::convolution::cpu::apply_scaled;
use super::rectified_sum::rectified_sum;

/// A convolution with batch normalisation behind it.
pub(super) fn convolve_normalised(layer: &Conv2d, norm: &BatchNorm, x: Tensor<4>) -> Tensor<4> {
    apply_behind(layer, norm, x, false)
}

/// The same, with what is negative made zero.
pub(super) fn convolve_normalised_rectified(layer: &Conv2d, norm: &BatchNorm, x: Tensor<4>) -> Tensor<4> {
    apply_behind(layer, norm, x, true)
}

/// A convolution with batch normalisation behind it, added to pictures, with what is negative made zero: the end of a
/// residual block.
pub(super) fn add_convolved_rectified(
    pictures: Tensor<4>,
    layer: &Conv2d,
    norm: &BatchNorm,
    x: Tensor<4>,
) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(operator) = cpu::behind(layer, norm, &x, Some(&pictures), true) {
        return apply_scaled(operator, layer, x, Some(pictures));
    }
    rectified_sum(convolve_normalised(layer, norm, x), pictures)
}

fn apply_behind(layer: &Conv2d, norm: &BatchNorm, x: Tensor<4>, rectified: bool) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(operator) = cpu::behind(layer, norm, &x, None, rectified) {
        return apply_scaled(operator, layer, x, None);
    }
    apply(norm, convolve(layer, x), rectified)
}

/// Batch normalisation in the precision of its weights. The output has the precision of the input.
fn apply(layer: &BatchNorm, x: Tensor<4>, rectified: bool) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, &x, rectified) {
        return output;
    }
    let (own, outer) = (layer.gamma.val().dtype(), x.dtype());
    let output = layer.forward(x.cast(own)).cast(outer);
    if rectified { relu(output) } else { output }
}

#[cfg(feature = "cpu")]
mod cpu {
    use std::sync::{Arc, OnceLock};

    use akin_layers as layers;
    use burn::nn::BatchNorm;
    use burn::nn::conv::Conv2d;
    use burn::tensor::{Tensor, TensorData};
    use burn_flex::FlexTensor;

    use super::super::convolution::cpu::{ConvolveScaled, form};
    use super::super::operator::{
        Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor, written,
    };

    /// The running mean and variance.
    fn running(layer: &BatchNorm, x: &Tensor<4>) -> [Tensor<1>; 2] {
        [&layer.running_mean, &layer.running_var].map(|state| state.value_sync().to_device(&x.device()))
    }

    /// A convolution and a layer behind it that keeps its statistics, whose output is added to pictures or not, if nothing
    /// has gradients.
    pub(super) fn behind(
        convolution: &Conv2d,
        layer: &BatchNorm,
        x: &Tensor<4>,
        pictures: Option<&Tensor<4>>,
        rectified: bool,
    ) -> Option<ConvolveScaled> {
        if x.device().is_autodiff() || !fits(x) || !fits(&layer.gamma.val()) {
            return None;
        }
        let form = form(convolution, x)?;
        let [height, width] = form.output();
        let dims = [x.dims()[0], form.outputs, height, width];
        if pictures.is_some_and(|pictures| !fits(pictures) || pictures.dims() != dims) {
            return None;
        }
        let [mean, variance] = running(layer, x);
        let scale = layer.gamma.val() / (variance + layer.epsilon).sqrt();
        let mean = match &convolution.bias {
            Some(bias) => mean - bias.val(),
            None => mean,
        };
        let shift = layer.beta.val() - mean * scale.clone();
        let line = |line: Tensor<1>| line.try_into_data().ok()?.try_to_vec().ok();
        let added = pictures.is_some();
        Some(ConvolveScaled { form, scale: line(scale)?, shift: line(shift)?, added, rectified })
    }

    /// The output of a layer for 32-bit floats in the memory of the CPU. If it learns, its running mean and variance follow
    /// those of the batch.
    pub(super) fn apply(layer: &BatchNorm, x: &Tensor<4>, rectified: bool) -> Option<Tensor<4>> {
        let (gamma, beta) = (layer.gamma.val(), layer.beta.val());
        if !fits(x) || !fits(&gamma) || !fits(&beta) {
            return None;
        }
        let is_live = x.device().is_autodiff() && layer.training.is_enabled();
        let given = match is_live {
            true => None,
            false => {
                let [mean, variance] = running(layer, x).map(|moment| moment.try_into_data().ok());
                Some([mean?.try_to_vec().ok()?, variance?.try_to_vec().ok()?])
            }
        };
        let moments: Arc<OnceLock<[Vec<f32>; 2]>> = Arc::default();
        let operator =
            Normalise { epsilon: layer.epsilon as f32, rectified, given, moments: Arc::clone(&moments) };
        let output =
            operate(operator, [x.clone().into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()]);
        if let (true, Some(moments)) = (is_live, moments.get()) {
            let device = x.device();
            for ((state, running), batch) in
                [&layer.running_mean, &layer.running_var].into_iter().zip(running(layer, x)).zip(moments)
            {
                let batch = Tensor::<1>::from_data(TensorData::new(batch.clone(), [batch.len()]), &device);
                let kept = running.mul_scalar(1.0 - layer.momentum);
                state.update(kept.add(batch.mul_scalar(layer.momentum)).detach());
            }
        }
        Some(output)
    }

    /// Batch normalisation of pictures by γ and β.
    #[derive(Debug)]
    struct Normalise {
        epsilon: f32,
        rectified: bool,
        /// The mean and variance to normalise by, instead of those of the batch.
        given: Option<[Vec<f32>; 2]>,
        /// The mean and variance of the batch, once they are known.
        moments: Arc<OnceLock<[Vec<f32>; 2]>>,
    }

    impl Normalise {
        fn layer<'a>(
            &'a self,
            x: &FlexTensor,
            gamma: &'a FlexTensor,
            beta: &'a FlexTensor,
        ) -> layers::BatchNorm<'a> {
            layers::BatchNorm {
                gamma: numbers(gamma),
                beta: numbers(beta),
                epsilon: self.epsilon,
                positions: shape(x)[2..].iter().product(),
                rectified: self.rectified,
                given: self.given.as_ref().map(|given| given.each_ref().map(Vec::as_slice)),
            }
        }
    }

    impl Operator for Normalise {
        fn forward(&self, [x, gamma, beta, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let layers::Normalised { output, moments } = self.layer(&x, &gamma, &beta).forward(numbers(&x));
            self.moments.get_or_init(|| moments);
            (tensor(output, shape(&x)), vec![x, gamma, beta])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, _: Inputs<bool>) -> Gradients {
            let (layer, x) = (self.layer(&kept[0], &kept[1], &kept[2]), numbers(&kept[0]));
            let mut weights = [vec![], vec![]];
            let by_x = written(gradient, |gradient| {
                let moments = self.moments.get().map(|moments| moments.each_ref().map(Vec::as_slice));
                weights = layer.gradient(x, moments.unwrap_or_default(), gradient);
            });
            let [by_gamma, by_beta] = weights.map(|numbers| {
                let channels = numbers.len();
                Some(tensor(numbers, &[channels]))
            });
            vec![Some(by_x), by_gamma, by_beta]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::module::Module;
    use burn::nn::BatchNormConfig;
    use burn::nn::conv::Conv2dConfig;
    use burn::tensor::{Device, TensorData, Tolerance};

    use super::super::operator::{assert_agree, assert_same_kinds, random};
    use super::*;

    fn layer(channels: usize) -> BatchNorm {
        let mut layer = BatchNormConfig::new(channels).init(&Device::flex().autodiff());
        layer.gamma = layer.gamma.map(|_| random([channels], 1));
        layer.beta = layer.beta.map(|_| random([channels], 2));
        layer
    }

    /// The output, the running mean and variance after it, and the gradients of the input, γ and β.
    fn results(
        output: impl FnOnce(&BatchNorm, Tensor<4>) -> Tensor<4>,
        shape: [usize; 4],
    ) -> Vec<TensorData> {
        let layer = layer(shape[1]);
        let x = random(shape, 3);
        let output = output(&layer, x.clone() * 3.0 + 5.0);
        let gradients = (output.clone() * random(shape, 4)).sum().backward();
        let weight = |weight: Tensor<1>| weight.grad(&gradients).expect("a gradient").into_data();
        vec![
            output.into_data(),
            layer.running_mean.value_sync().into_data(),
            layer.running_var.value_sync().into_data(),
            x.grad(&gradients).expect("a gradient").into_data(),
            weight(layer.gamma.val()),
            weight(layer.beta.val()),
        ]
    }

    #[test]
    fn output_statistics_and_gradients_agree_with_burn() {
        for shape in [[4, 3, 5, 7], [2, 1, 1, 1], [1, 40, 6, 6], [9, 5, 33, 2], [3, 2, 1, 64]] {
            for rectified in [false, true] {
                assert!(
                    cpu::apply(&layer(shape[1]), &random(shape, 3), rectified).is_some(),
                    "our own layer"
                );
                let own = results(|layer, x| apply(layer, x, rectified), shape);
                let burn = results(
                    |layer, x| {
                        let output = layer.forward(x);
                        if rectified { relu(output) } else { output }
                    },
                    shape,
                );
                for (own, burn) in own.iter().zip(&burn) {
                    own.assert_approx_eq::<f32>(burn, Tolerance::absolute(5e-4));
                }
                assert_same_kinds(
                    shape,
                    |x| apply(&layer(shape[1]), x, false),
                    |x| layer(shape[1]).forward(x),
                );
            }
        }
    }

    #[test]
    fn a_layer_that_keeps_its_statistics_agrees_with_burn() {
        let kept = |shape: [usize; 4]| {
            let layer = layer(shape[1]);
            layer.running_mean.update(random([shape[1]], 5).detach());
            layer.running_var.update((random([shape[1]], 6).detach() + 1.1).detach());
            // Burn's layer reads what was there before the last update.
            let _ = (layer.running_mean.value_sync(), layer.running_var.value_sync());
            layer.freeze()
        };
        for shape in [[4, 3, 5, 7], [2, 1, 1, 1], [1, 40, 6, 6]] {
            assert!(cpu::apply(&kept(shape), &random(shape, 3), false).is_some(), "our own layer");
            assert_agree(shape, |x| apply(&kept(shape), x, true), |x| relu(kept(shape).forward(x)));
            assert_agree(shape, |x| apply(&kept(shape), x, false), |x| kept(shape).forward(x));
            let (layer, evaluated) = (kept(shape), random(shape, 3).without_autodiff());
            let [own, burn] =
                [apply(&layer.valid(), evaluated.clone(), false), layer.valid().forward(evaluated)]
                    .map(Tensor::into_data);
            own.assert_approx_eq::<f32>(&burn, Tolerance::absolute(2e-5));
        }
    }

    #[test]
    fn behind_a_convolution_that_does_not_learn_it_agrees_with_burn() {
        let norm = layer(7);
        norm.running_mean.update(random([7], 5).detach());
        norm.running_var.update((random([7], 6).detach() + 1.1).detach());
        for bias in [false, true] {
            let mut convolution =
                Conv2dConfig::new([3, 7], [3, 3]).with_bias(bias).init(&Device::flex().autodiff());
            convolution.bias = convolution.bias.map(|bias| bias.map(|_| random([7], 9)));
            let (convolution, norm) = (convolution.valid(), norm.valid());
            let x = random([2, 3, 6, 5], 3).without_autodiff();
            let pictures = random([2, 7, 4, 3], 4).without_autodiff();
            assert!(cpu::behind(&convolution, &norm, &x, Some(&pictures), true).is_some(), "in one pass");
            let own = [
                convolve_normalised_rectified(&convolution, &norm, x.clone()),
                add_convolved_rectified(pictures.clone(), &convolution, &norm, x.clone()),
            ];
            let burn = norm.forward(convolution.forward(x));
            let burn = [relu(burn.clone()), relu(burn + pictures)];
            for (own, burn) in own.into_iter().zip(burn) {
                own.into_data().assert_approx_eq::<f32>(&burn.into_data(), Tolerance::absolute(2e-5));
            }
        }
    }
}
