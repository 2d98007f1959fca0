//! Limits on gradients: on each number, and on the norm of all numbers together.

use akin_core::encoder::Encoder;
use akin_core::losses::Loss;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Cuts each number of a module's gradients to −limit … limit, as torch's `clip_grad_value_`.
pub fn clip_values(module: &impl Module, gradients: &mut GradientsParams, limit: f64) {
    struct Clip<'a> {
        gradients: &'a mut GradientsParams,
        limit: f64,
    }

    impl ModuleVisitor for Clip<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.remove::<D>(param.id) {
                self.gradients.register(param.id, gradient.clamp(-self.limit, self.limit));
            }
        }
    }

    module.visit(&mut Clip { gradients, limit });
}

/// Scales the gradients of backbone, head and loss down, so that the norm of all of them together is at most `limit`.
pub fn clip_norm(
    encoder: &Encoder,
    loss: &Loss,
    [backbone, head, proxies]: [&mut GradientsParams; 3],
    limit: f64,
) {
    let squares = [
        squared_norm(&encoder.backbone, backbone),
        squared_norm(&encoder.head, head),
        squared_norm(loss, proxies),
    ];
    if let Some(square) = squares.into_iter().flatten().reduce(|sum, square| sum + square) {
        // The scale of torch's clip_grad_norm_: min(1, limit / (norm + 1e-6)).
        let scale = ((square.sqrt() + 1e-6).recip() * limit).clamp_max(1.0);
        scale_gradients(&encoder.backbone, backbone, &scale);
        scale_gradients(&encoder.head, head, &scale);
        scale_gradients(loss, proxies, &scale);
    }
}

/// The sum of the squares of a module's gradients, on the device; none without gradients.
fn squared_norm(module: &impl Module, gradients: &GradientsParams) -> Option<Tensor<1>> {
    let mut visitor = SquaredNorm { gradients, sum: None };
    module.visit(&mut visitor);
    visitor.sum
}

struct SquaredNorm<'a> {
    gradients: &'a GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let square = gradient.square().sum();
            self.sum = Some(match self.sum.take() {
                Some(sum) => sum + square,
                None => square,
            });
        }
    }
}

/// Multiplies the gradients of a module by `scale`, of shape \[1\], on the device.
pub fn scale_gradients(module: &impl Module, gradients: &mut GradientsParams, scale: &Tensor<1>) {
    module.visit(&mut Scale { gradients, scale });
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    scale: &'a Tensor<1>,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let scale = self.scale.clone().reshape([1; D]);
            self.gradients.register(param.id, gradient * scale);
        }
    }
}
