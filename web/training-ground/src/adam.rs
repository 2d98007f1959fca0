//! Adam (Kingma and Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015, algorithm 1), with β₁ = 0.9,
//! β₂ = 0.999 and ε = 1e-8.
//!
//! It is written on plain numbers: Burn's optimisers would make the module a tenth larger, and the parameters are few.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Gradients, Tensor, TensorData};

const BETAS: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;

/// The optimiser of one module. It must always be given the same one.
#[derive(Default)]
pub(crate) struct Adam {
    steps: i32,
    /// m and v of each parameter, in the order of a visit.
    moments: Vec<[Vec<f32>; 2]>,
}

impl Adam {
    /// Moves the parameters that have a gradient: θ ← θ − rate · m̂ / (√v̂ + ε).
    pub(crate) fn step<M: Module>(&mut self, module: M, gradients: &Gradients, rate: f64) -> M {
        self.steps += 1;
        module.map(&mut Update { adam: self, gradients, rate: rate as f32, next: 0 })
    }
}

struct Update<'a> {
    adam: &'a mut Adam,
    gradients: &'a Gradients,
    rate: f32,
    /// The place of the next parameter.
    next: usize,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let place = self.next;
        self.next += 1;
        if self.adam.moments.len() == place {
            self.adam.moments.push([Vec::new(), Vec::new()]);
        }
        let Some(gradient) = param.val().grad(self.gradients) else { return param };
        let gradient = numbers(gradient);
        let [first, second] = &mut self.adam.moments[place];
        first.resize(gradient.len(), 0.0);
        second.resize(gradient.len(), 0.0);
        // The corrections of both means for their start at 0.
        let [first_share, second_share] = BETAS.map(|beta| 1.0 - beta.powi(self.adam.steps));
        let rate = self.rate;
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let mut values = numbers(tensor);
            for (i, slope) in gradient.into_iter().enumerate() {
                first[i] += (1.0 - BETAS[0]) * (slope - first[i]);
                second[i] += (1.0 - BETAS[1]) * (slope * slope - second[i]);
                let length = (second[i] / second_share).sqrt();
                values[i] -= rate * (first[i] / first_share) / (length + EPSILON);
            }
            Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
        })
    }
}

/// The values of a tensor, row after row.
pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("all tensors are f32")
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[derive(Module, Debug)]
    struct Place {
        x: Param<Tensor<1>>,
        fixed: Param<Tensor<1>>,
    }

    #[test]
    fn steps_follow_the_algorithm_and_leave_the_rest_alone() {
        let device = Device::flex().autodiff();
        let at = |values: [f32; 2]| Param::from_tensor(Tensor::<1>::from_data(values, &device));
        let mut place = Place { x: at([3.0, -2.0]), fixed: at([1.0, 1.0]) };
        let (mut adam, rate) = (Adam::default(), 0.1);
        let (mut x, mut m, mut v) = ([3.0f64, -2.0], [0.0; 2], [0.0; 2]);
        for step in 1..=20 {
            // The slope of Σ x² is 2x.
            let gradients = place.x.val().square().sum().backward();
            place = adam.step(place, &gradients, rate);
            for i in 0..2 {
                let slope = 2.0 * x[i];
                m[i] = 0.9 * m[i] + 0.1 * slope;
                v[i] = 0.999 * v[i] + 0.001 * slope * slope;
                let [m, v] = [m[i] / (1.0 - 0.9f64.powi(step)), v[i] / (1.0 - 0.999f64.powi(step))];
                x[i] -= rate * m / (v.sqrt() + 1e-8);
            }
        }
        for (got, expected) in numbers(place.x.val()).into_iter().zip(x) {
            assert!((f64::from(got) - expected).abs() < 1e-4, "{got} is not {expected}");
        }
        assert_eq!(numbers(place.fixed.val()), [1.0, 1.0]);
    }
}
