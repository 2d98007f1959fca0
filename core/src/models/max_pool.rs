//! Max-pooling: on the CPU that of `akin-layers`, forwards and backwards, and on other devices that of Burn.

use burn::tensor::Tensor;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;

/// The largest number of each window, [B, C, H, W] → [B, C, H′, W′].
pub(super) fn max_pool(x: Tensor<4>, options: MaxPoolOptions<2>) -> Tensor<4> {
    #[cfg(feature = "cpu")]
    if let Some(output) = cpu::apply(&x, &options) {
        return output;
    }
    max_pool2d(x, options)
}

#[cfg(feature = "cpu")]
mod cpu {
    use std::sync::OnceLock;

    use akin_layers::MaxPool;
    use burn::tensor::Tensor;
    use burn::tensor::ops::MaxPoolOptions;
    use burn_flex::FlexTensor;

    use super::super::operator::{Gradients, Inputs, Operator, fits, numbers, operate, shape, tensor};

    /// The output for 32-bit floats in the memory of the CPU, and windows without gaps and with equal padding.
    pub(super) fn apply(x: &Tensor<4>, options: &MaxPoolOptions<2>) -> Option<Tensor<4>> {
        let [_, _, height, width] = x.dims();
        let MaxPoolOptions { kernel_size: size, stride, dilation: [1, 1], ceil_mode: ceil, .. } = *options
        else {
            return None;
        };
        let padding = options.padding.map(|(before, behind)| (before == behind).then_some(before));
        let form =
            MaxPool { input: [height, width], size, stride, padding: [padding[0]?, padding[1]?], ceil };
        let is_possible =
            |i: usize| form.padding[i] < size[i] && size[i] <= form.input[i] + 2 * form.padding[i];
        let ours = is_possible(0) && is_possible(1) && fits(x);
        ours.then(|| operate(Pool { form, places: OnceLock::new() }, [x.clone().into_dispatch()]))
    }

    #[derive(Debug)]
    struct Pool {
        form: MaxPool,
        /// The places of the output's numbers in the maps of the input, once they are known, and the input's shape.
        places: OnceLock<(Vec<u32>, Vec<usize>)>,
    }

    impl Pool {
        /// Numbers as the output of an input.
        fn output(&self, numbers: Vec<f32>, x: &FlexTensor) -> FlexTensor {
            let [height, width] = self.form.output();
            tensor(numbers, &[shape(x)[0], shape(x)[1], height, width])
        }
    }

    impl Operator for Pool {
        fn forward(&self, [x, ..]: Inputs<FlexTensor>) -> (FlexTensor, Vec<FlexTensor>) {
            let (output, places) = self.form.forward(numbers(&x));
            self.places.get_or_init(|| (places, shape(&x).to_vec()));
            (self.output(output, &x), vec![])
        }

        fn evaluate(&self, [x, ..]: Inputs<FlexTensor>) -> FlexTensor {
            self.output(self.form.largest(numbers(&x)), &x)
        }

        fn backward(&self, _: Vec<FlexTensor>, gradient: FlexTensor, _: Inputs<bool>) -> Gradients {
            let by_x = self
                .places
                .get()
                .map(|(places, shape)| tensor(self.form.input_gradient(numbers(&gradient), places), shape));
            vec![by_x]
        }
    }
}

#[cfg(all(test, feature = "autodiff"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    use super::*;

    /// Numbers of which several are equal.
    fn numbers(shape: [usize; 4]) -> Tensor<4> {
        let numbers: Vec<_> =
            (0..shape.iter().product()).map(|i: usize| ((i * 37 + 11) % 13) as f32 - 20.0).collect();
        Tensor::from_data(TensorData::new(numbers, shape), &Device::flex().autodiff()).require_grad()
    }

    proptest! {
        #[test]
        fn output_and_gradient_are_those_of_burn(
            side in [1..12_usize, 1..40_usize],
            size in [1..4_usize, 1..4_usize],
            stride in [1..4_usize, 1..4_usize],
            padding in [0..2_usize, 0..2_usize],
            ceil in any::<bool>(),
        ) {
            prop_assume!((0..2).all(|i| padding[i] < size[i] && size[i] <= side[i] + 2 * padding[i]));
            let options =
                MaxPoolOptions::new(size).with_stride(stride).with_padding(padding).with_ceil_mode(ceil);
            let x = numbers([2, 3, side[0], side[1]]);
            let own = cpu::apply(&x, &options).expect("our own pooling");
            let burn = max_pool2d(x.clone(), options.clone());
            let gradient = |output: &Tensor<4>| {
                let gradients = (output.clone() * numbers(output.dims())).sum().backward();
                x.grad(&gradients).expect("a gradient").into_data()
            };
            prop_assert_eq!(gradient(&own), gradient(&burn));
            let burn = burn.into_data();
            prop_assert_eq!(own.into_data(), burn.clone());
            prop_assert_eq!(max_pool(x.without_autodiff(), options).into_data(), burn);
        }
    }

    #[test]
    fn what_is_not_finite_is_treated_as_burn_treats_it() {
        let numbers =
            [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, 2.0, f32::INFINITY, 3.0, f32::NEG_INFINITY];
        // Five times, so that whole vectors meet them.
        let x = Tensor::<4>::from_data(TensorData::new(numbers.repeat(5), [1, 1, 1, 40]), &Device::flex());
        let bits =
            |numbers: Vec<f32>| numbers.into_iter().map(|x| (x.is_nan(), x.max(-9.0))).collect::<Vec<_>>();
        for stride in 1..4 {
            let options = || MaxPoolOptions::new([1, 2]).with_stride([1, stride]);
            let [own, burn] = [max_pool(x.clone(), options()), max_pool2d(x.clone(), options())]
                .map(|output| output.into_data().try_to_vec::<f32>().unwrap());
            assert_eq!(format!("{:?}", bits(own)), format!("{:?}", bits(burn)), "stride {stride}");
        }
    }
}
