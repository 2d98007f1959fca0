//! Layer normalisation: each row shifted and scaled to mean 0 and variance 1, then by weights.
//!
//! y = γ · x̂ + β with x̂ = (x − μ) / √(σ² + ε), where μ and σ² are the mean and the (biased) variance of a row of F numbers
//! (Ba, Kiros and Hinton, 2016). With g the gradient of y and h = γ · g,
//!
//! ∂β = Σ g,  ∂γ = Σ g·x̂,  ∂x = (h − mean(h) − x̂ · mean(h·x̂)) / √(σ² + ε).

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use macerator::{Simd, with_simd};

use crate::product::LANES;
use crate::threads;

/// The rows that a thread takes at a time, whose sums for γ and β are added up together.
const RUN: usize = 64;

/// Layer normalisation of rows [N, F].
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm<'a> {
    /// γ, [F].
    pub gamma: &'a [f32],
    /// β, [F].
    pub beta: &'a [f32],
    /// ε, above zero.
    pub epsilon: f32,
}

impl LayerNorm<'_> {
    fn check(&self, x: &[f32]) -> usize {
        let features = self.gamma.len();
        assert!(features > 0 && self.beta.len() == features, "weights of the same features");
        assert!(x.len().is_multiple_of(features), "rows of the stated length");
        features
    }

    /// The normalised rows.
    ///
    /// # Panics
    ///
    /// If the lengths do not belong together.
    pub fn forward(&self, x: &[f32]) -> Vec<f32> {
        let features = self.check(x);
        let mut output = threads::zeros(x.len());
        threads::each_chunk(&mut output, RUN * features, |i, output| {
            normalise_rows(self, &x[i * RUN * features..], output);
        });
        output
    }

    /// Turns the gradient of the output, [N, F], into the gradient of the input, and gives the gradients of γ and β.
    ///
    /// # Panics
    ///
    /// If the lengths do not belong together.
    pub fn gradient(&self, x: &[f32], gradient: &mut [f32]) -> [Vec<f32>; 2] {
        let features = self.check(x);
        assert_eq!(x.len(), gradient.len(), "a gradient for each number");
        let mut runs: Vec<_> =
            gradient.chunks_mut(RUN * features).map(|run| (run, vec![0.0; 2 * features])).collect();
        threads::each_chunk(&mut runs, 1, |i, run| {
            let (gradient, sums) = &mut run[0];
            gradients(self, &x[i * RUN * features..], gradient, sums);
        });
        let mut result = [vec![0.0; features], vec![0.0; features]];
        for (_, sums) in runs {
            for (result, sums) in result.iter_mut().zip(sums.chunks_exact(features)) {
                result.iter_mut().zip(sums).for_each(|(result, sum)| *result += sum);
            }
        }
        result
    }
}

/// Adds up a row in 32 sums side by side.
#[inline(always)]
fn sum(row: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    for row in row.chunks(LANES) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += term(x));
    }
    sums.iter().sum()
}

/// μ and 1 / √(σ² + ε) of a row.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> [f32; 2] {
    let count = row.len() as f32;
    let mean = sum(row, |x| x) / count;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
    [mean, 1.0 / (variance + epsilon).sqrt()]
}

#[with_simd]
fn normalise_rows<'a, S: Simd>(layer: &'a LayerNorm<'a>, x: &'a [f32], output: &'a mut [f32]) {
    let features = layer.gamma.len();
    for (x, output) in x.chunks_exact(features).zip(output.chunks_exact_mut(features)) {
        let [mean, scale] = moments(x, layer.epsilon);
        for (((y, x), gamma), beta) in output.iter_mut().zip(x).zip(layer.gamma).zip(layer.beta) {
            *y = (x - mean) * scale * gamma + beta;
        }
    }
}

/// Turns gradients of some rows into those of the input, and adds to those of γ and β, [2, F].
#[with_simd]
fn gradients<'a, S: Simd>(
    layer: &'a LayerNorm<'a>,
    x: &'a [f32],
    gradient: &'a mut [f32],
    weights: &'a mut [f32],
) {
    let features = layer.gamma.len();
    let (by_gamma, by_beta) = weights.split_at_mut(features);
    for (x, gradient) in x.chunks_exact(features).zip(gradient.chunks_exact_mut(features)) {
        let [mean, scale] = moments(x, layer.epsilon);
        let (mut sums, mut products) = ([0.0; LANES], [0.0; LANES]);
        let weights =
            by_gamma.chunks_mut(LANES).zip(by_beta.chunks_mut(LANES)).zip(layer.gamma.chunks(LANES));
        for ((x, gradient), ((by_gamma, by_beta), gamma)) in
            x.chunks(LANES).zip(gradient.chunks(LANES)).zip(weights)
        {
            for i in 0..x.len().min(gradient.len()).min(by_gamma.len()).min(by_beta.len()).min(gamma.len()) {
                let (normalised, inner) = ((x[i] - mean) * scale, gradient[i] * gamma[i]);
                by_gamma[i] += gradient[i] * normalised;
                by_beta[i] += gradient[i];
                sums[i] += inner;
                products[i] += inner * normalised;
            }
        }
        let [shift, slope] = [sums, products].map(|sums| sums.iter().sum::<f32>() / features as f32);
        for ((gradient, x), gamma) in gradient.iter_mut().zip(x).zip(layer.gamma) {
            *gradient = (*gradient * gamma - shift - (x - mean) * scale * slope) * scale;
        }
    }
}
