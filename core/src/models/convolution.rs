//! Convolutions with a rectifier behind them or none: on the CPU those of `akin-layers`, forwards and backwards, and on
//! other devices those of Burn.

use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation::relu};

/// The output of a convolution.
pub(super) fn convolve(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, false)
}

/// The output of a convolution, with what is negative made zero.
pub(super) fn convolve_rectified(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    apply(layer, x, true)
}

/// The outputs of two convolutions of the same tensor, the channels of the second behind those of the first, with what is
/// negative made zero.
pub(super) fn convolve_both_rectified(layers: [&Conv2d; 2], x: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply_both(layers, &x) {
        return output;
    }
    Tensor::cat(layers.map(|layer| convolve_rectified(layer, x.clone())).to_vec(), 1)
}

fn apply(layer: &Conv2d, x: Tensor<4>, rectified: bool) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(layer, &x, rectified) {
        return output;
    }
    let output = layer.forward(x);
    if rectified { relu(output) } else { output }
}

#[cfg(feature = "cpu")]
pub(super) mod cpu {
    use akin_layers::{Convolution, Epilogue, rectifier_gradient};
    use burn::nn::PaddingConfig2d;
    use burn::nn::conv::Conv2d;
    use burn::tensor::Tensor;
    use burn_flex::FlexTensor;

    use super::super::operator::{
        Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor, written,
    };

    /// The output of the layer, if it is one of 32-bit floats in the memory of the CPU.
    pub(super) fn apply(layer: &Conv2d, x: &Tensor<4>, rectified: bool) -> Option<Tensor<4>> {
        let operator = Convolve { form: form(layer, x)?, rectified, biased: layer.bias.is_some() };
        let bias = layer.bias.as_ref().map(|bias| bias.val().into_dispatch());
        let inputs = [x.clone().into_dispatch(), layer.weight.val().into_dispatch()];
        Some(operate(operator, inputs.into_iter().chain(bias)))
    }

    /// The output of the layer, scaled and shifted, and added to pictures or not. Pictures that nothing else uses are
    /// written over. It has no way back, and the layer's own bias is left out.
    pub(in super::super) fn apply_scaled(
        operator: ConvolveScaled,
        layer: &Conv2d,
        x: Tensor<4>,
        added: Option<Tensor<4>>,
    ) -> Tensor<4> {
        let inputs = [x.into_dispatch(), layer.weight.val().into_dispatch()];
        operate(operator, inputs.into_iter().chain(added.map(Tensor::into_dispatch)))
    }

    /// The shape of a layer for some pictures. What Burn refuses has none, so that Burn explains it.
    pub(in super::super) fn form(layer: &Conv2d, x: &Tensor<4>) -> Option<Convolution> {
        let padding = match layer.padding {
            PaddingConfig2d::Valid => [0, 0],
            PaddingConfig2d::Explicit(top, left, bottom, right) if top == bottom && left == right => {
                [top, left]
            }
            _ => return None,
        };
        let weight = layer.weight.val();
        let [_, channels, height, width] = x.dims();
        let [outputs, inputs, rows, columns] = weight.dims();
        let form = Convolution {
            input: [channels, height, width],
            outputs,
            size: [rows, columns],
            stride: layer.stride,
            padding,
            dilation: layer.dilation,
            groups: layer.groups,
            beside: [0, 0],
        };
        let is_possible = channels == inputs * layer.groups && form.output().iter().all(|&side| side > 0);
        (fits(x) && fits(&weight) && is_possible).then_some(form)
    }

    /// The output of a convolution of pictures with weights.
    fn forward(form: &Convolution, x: &FlexTensor, weight: &FlexTensor, epilogue: Epilogue) -> FlexTensor {
        let [height, width] = form.output();
        let output = form.forward(numbers(x), numbers(weight), epilogue);
        tensor(output, &[shape(x)[0], form.outputs, height, width])
    }

    /// A convolution of pictures with weights and a bias or none.
    #[derive(Clone, Debug)]
    struct Convolve {
        form: Convolution,
        rectified: bool,
        biased: bool,
    }

    impl Operator for Convolve {
        fn forward(&self, [x, weight, bias, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let shift = self.biased.then(|| numbers(&bias));
            let epilogue = Epilogue { scale: None, shift, rectified: self.rectified };
            let output = forward(&self.form, &x, &weight, epilogue);
            let kept = if self.rectified { vec![x, weight, output.clone()] } else { vec![x, weight] };
            (output, kept)
        }

        fn backward(
            &self,
            kept: Vec<FlexTensor>,
            mut gradient: FlexTensor,
            wanted: Inputs<bool>,
        ) -> Gradients {
            if let Some(output) = kept.get(2) {
                gradient = written(gradient, |gradient| rectifier_gradient(gradient, numbers(output)));
            }
            let ([x, weight], gradient) = ([&kept[0], &kept[1]], numbers(&gradient));
            let by_x = || tensor(self.form.input_gradient(gradient, numbers(weight)), shape(x));
            let by_weight = || tensor(self.form.weight_gradient(numbers(x), gradient), shape(weight));
            let by_bias = || tensor(self.form.bias_gradient(gradient), &[self.form.outputs]);
            vec![wanted[0].then(by_x), wanted[1].then(by_weight), wanted[2].then(by_bias)]
        }
    }

    /// The outputs of two layers with biases, if they are of 32-bit floats in the memory of the CPU and of one size.
    pub(super) fn apply_both(layers: [&Conv2d; 2], x: &Tensor<4>) -> Option<Tensor<4>> {
        let [mut first, mut second] = [form(layers[0], x)?, form(layers[1], x)?];
        if first.output() != second.output() {
            return None;
        }
        (first.beside, second.beside) = ([0, second.outputs], [first.outputs, 0]);
        let mut inputs = vec![x.clone().into_dispatch()];
        for layer in layers {
            inputs.push(layer.weight.val().into_dispatch());
            inputs.push(layer.bias.as_ref()?.val().into_dispatch());
        }
        Some(operate(ConvolveBoth { forms: [first, second] }, inputs))
    }

    /// Two convolutions of the same pictures, each with weights and a bias, rectified.
    #[derive(Clone, Debug)]
    struct ConvolveBoth {
        forms: [Convolution; 2],
    }

    impl Operator for ConvolveBoth {
        fn forward(&self, inputs: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let [x, first, first_bias, second, second_bias] = inputs;
            let [height, width] = self.forms[0].output();
            let channels = self.forms[0].outputs + self.forms[1].outputs;
            let dims = [shape(&x)[0], channels, height, width];
            let mut output = vec![0.0; dims.iter().product()];
            for (form, (weight, bias)) in
                self.forms.iter().zip([(&first, &first_bias), (&second, &second_bias)])
            {
                let epilogue = Epilogue { scale: None, shift: Some(numbers(bias)), rectified: true };
                form.forward_into(numbers(&x), numbers(weight), epilogue, &mut output);
            }
            let output = tensor(output, &dims);
            (output.clone(), vec![output, x, first, second])
        }

        fn backward(&self, kept: Vec<FlexTensor>, gradient: FlexTensor, wanted: Inputs<bool>) -> Gradients {
            let [output, x, weights @ ..] = &kept[..] else { unreachable!("the way forwards keeps these") };
            let gradient = written(gradient, |gradient| rectifier_gradient(gradient, numbers(output)));
            let gradient = numbers(&gradient);
            let by_x = || {
                let part = |i: usize| self.forms[i].input_gradient(gradient, numbers(&weights[i]));
                let mut sum = part(0);
                sum.iter_mut().zip(part(1)).for_each(|(sum, other)| *sum += other);
                tensor(sum, shape(x))
            };
            let by_weight =
                |i: usize| tensor(self.forms[i].weight_gradient(numbers(x), gradient), shape(&weights[i]));
            let by_bias = |i: usize| tensor(self.forms[i].bias_gradient(gradient), &[self.forms[i].outputs]);
            vec![
                wanted[0].then(by_x),
                wanted[1].then(|| by_weight(0)),
                wanted[2].then(|| by_bias(0)),
                wanted[3].then(|| by_weight(1)),
                wanted[4].then(|| by_bias(1)),
            ]
        }
    }

    /// A convolution of pictures with weights, each channel of its output scaled and shifted.
    #[derive(Clone, Debug)]
    pub(in super::super) struct ConvolveScaled {
        pub form: Convolution,
        pub scale: Vec<f32>,
        pub shift: Vec<f32>,
        /// Whether it is added to pictures of its output's shape.
        pub added: bool,
        pub rectified: bool,
    }

    impl Operator for ConvolveScaled {
        fn forward(&self, [x, weight, pictures, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let epilogue =
                Epilogue { scale: Some(&self.scale), shift: Some(&self.shift), rectified: self.rectified };
            let output = if self.added {
                written(pictures, |pictures| {
                    self.form.forward_onto(numbers(&x), numbers(&weight), epilogue, pictures);
                })
            } else {
                forward(&self.form, &x, &weight, epilogue)
            };
            (output, vec![])
        }

        fn backward(&self, _: Vec<FlexTensor>, _: FlexTensor, _: Inputs<bool>) -> Gradients {
            unreachable!("it is used where nothing has gradients")
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::module::Module;
    use burn::nn::PaddingConfig2d;
    use burn::nn::conv::Conv2dConfig;
    use burn::tensor::{Device, TensorData, Tolerance};
    use proptest::prelude::*;

    use super::super::operator::random;
    use super::*;
    use crate::random::{stream, uniform};

    /// A layer with weights from −1 to 1, with a bias or none.
    fn layer(
        channels: [usize; 2],
        size: [usize; 2],
        window: [[usize; 2]; 3],
        groups: usize,
        bias: bool,
    ) -> Conv2d {
        let [stride, padding, dilation] = window;
        let device = Device::flex().autodiff();
        let mut layer = Conv2dConfig::new(channels, size)
            .with_stride(stride)
            .with_padding(PaddingConfig2d::Explicit(padding[0], padding[1], padding[0], padding[1]))
            .with_dilation(dilation)
            .with_groups(groups)
            .with_bias(bias)
            .init(&device);
        let shape = layer.weight.val().dims();
        layer.weight = layer.weight.map(|_| random(shape, 1));
        layer.bias = layer.bias.map(|bias| bias.map(|_| random([channels[1]], 2)));
        layer
    }

    /// The output, and the gradients of the input, the weights and the bias.
    fn directions(layer: &Conv2d, x: &Tensor<4>, output: Tensor<4>) -> Vec<TensorData> {
        let value = (output.clone() * random(output.dims(), 3)).sum();
        let gradients = value.backward();
        let weight = layer.weight.val().grad(&gradients).expect("a gradient of the weights").into_data();
        let bias =
            layer.bias.as_ref().map(|bias| bias.val().grad(&gradients).expect("of the bias").into_data());
        let x = x.grad(&gradients).expect("a gradient of the input").into_data();
        [output.into_data(), x, weight].into_iter().chain(bias).collect()
    }

    fn agree(layer: &Conv2d, x: [usize; 4]) {
        let x = random(x, 4);
        for rectified in [false, true] {
            assert!(cpu::apply(layer, &x, rectified).is_some(), "our own convolution");
            let burn = layer.forward(x.clone());
            let burn = directions(layer, &x, if rectified { relu(burn) } else { burn });
            let own = directions(layer, &x, apply(layer, x.clone(), rectified));
            for (own, burn) in own.iter().zip(&burn) {
                own.assert_approx_eq::<f32>(burn, Tolerance::absolute(2e-4));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_direction_agrees_with_burn(
            (groups, inputs, outputs) in (1..4_usize, 1..5_usize, 1..12_usize),
            size in [1..4_usize, 1..4_usize],
            (stride, padding, dilation) in ([1..4_usize, 1..4_usize], [0..3_usize, 0..3_usize], [1..3_usize, 1..3_usize]),
            side in [1..10_usize, 1..10_usize],
            batch in 1..4_usize,
            bias in any::<bool>(),
        ) {
            prop_assume!((0..2).all(|i| side[i] + 2 * padding[i] > dilation[i] * (size[i] - 1)));
            let layer = layer([groups * inputs, groups * outputs], size, [stride, padding, dilation], groups, bias);
            agree(&layer, [batch, groups * inputs, side[0], side[1]]);
        }
    }

    #[test]
    fn two_convolutions_of_a_tensor_agree_with_each_of_them() {
        let layers = [
            layer([3, 4], [1, 1], [[1, 1], [0, 0], [1, 1]], 1, true),
            layer([3, 5], [3, 3], [[1, 1], [1, 1], [1, 1]], 1, true),
        ];
        let both = [&layers[0], &layers[1]];
        let x = random([2, 3, 6, 5], 4);
        assert!(cpu::apply_both(both, &x).is_some(), "in one pass");
        let results = |output: Tensor<4>| {
            let gradients = (output.clone() * random(output.dims(), 3)).sum().backward();
            let mut results = vec![output.into_data(), x.grad(&gradients).expect("of x").into_data()];
            for layer in &layers {
                results.push(layer.weight.val().grad(&gradients).expect("of the weights").into_data());
                let bias = layer.bias.as_ref().and_then(|bias| bias.val().grad(&gradients));
                results.push(bias.expect("of the bias").into_data());
            }
            results
        };
        let own = results(convolve_both_rectified(both, x.clone()));
        let burn = results(relu(Tensor::cat(both.map(|layer| layer.forward(x.clone())).to_vec(), 1)));
        for (own, burn) in own.iter().zip(&burn) {
            own.assert_approx_eq::<f32>(burn, Tolerance::absolute(2e-4));
        }
    }

    #[test]
    fn what_is_not_finite_stays_where_burn_has_it() {
        let layer = layer([2, 9], [3, 3], [[1, 1], [1, 1], [1, 1]], 1, true).valid();
        let mut numbers = uniform(&mut stream(0, "test", &[]), 2 * 36, -1.0, 1.0);
        (numbers[7], numbers[50], numbers[71]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let x = Tensor::from_data(TensorData::new(numbers, [1, 2, 6, 6]), &Device::flex());
        let [own, burn] = [convolve(&layer, x.clone()), layer.forward(x)]
            .map(|output| output.into_data().try_to_vec::<f32>().unwrap());
        let kind = |numbers: Vec<f32>| -> Vec<_> {
            numbers.into_iter().map(|number| (number.is_nan(), number.is_infinite())).collect()
        };
        assert_eq!(kind(own), kind(burn));
    }

    #[test]
    fn a_gradient_that_is_part_of_a_larger_tensor_is_read_where_it_lies() {
        let layer = layer([3, 4], [3, 3], [[1, 1], [1, 1], [1, 1]], 1, true);
        let x = random([2, 3, 5, 5], 4);
        let twice =
            |output: Tensor<4>| Tensor::cat(vec![output.clone().swap_dims(2, 3), output], 1).narrow(1, 2, 4);
        let gradients = |output: Tensor<4>| {
            let output = twice(output);
            (output.clone() * random(output.dims(), 3)).sum().backward()
        };
        let own = gradients(convolve_rectified(&layer, x.clone()));
        let burn = gradients(relu(layer.forward(x.clone())));
        let [own, burn] = [own, burn].map(|gradients| x.grad(&gradients).unwrap().into_data());
        own.assert_approx_eq::<f32>(&burn, Tolerance::absolute(2e-4));
    }

    #[test]
    fn numbers_of_64_bits_are_left_to_burn() {
        let layer = layer([2, 3], [3, 3], [[1, 1], [0, 0], [1, 1]], 1, false);
        let x = random([1, 2, 5, 5], 4).cast(burn::tensor::DType::F64);
        assert!(cpu::apply(&layer, &x, false).is_none());
    }
}
