//! Batch normalisation: each channel shifted and scaled to mean 0 and variance 1 over the batch, then by weights.
//!
//! y = γ · (x − μ) / √(σ² + ε) + β, with μ and σ² the mean and the (biased) variance of a channel over the pictures and
//! positions of the batch (Ioffe and Szegedy, 2015). With N numbers in a channel, x̂ = (x − μ) / √(σ² + ε) and g the
//! gradient of y,
//!
//! ∂β = Σ g,  ∂γ = Σ g·x̂,  ∂x = γ / √(σ² + ε) · (g − ∂β / N − x̂ · ∂γ / N).
//!
//! A thread takes a whole channel, so that its numbers are still in a near cache when they are read again.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use macerator::{Simd, with_simd};

use crate::threads;

/// Sums side by side.
const LANES: usize = 32;

/// Batch normalisation of pictures [B, C, H, W], with a rectifier behind it or none.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// γ, [C].
    pub gamma: &'a [f32],
    /// β, [C].
    pub beta: &'a [f32],
    /// ε, above zero.
    pub epsilon: f32,
    /// H · W; not zero.
    pub positions: usize,
    /// Whether what is negative is made zero. Not a number stays so.
    pub rectified: bool,
    /// A mean and a variance of each channel, [C] each, that are used instead of the batch's.
    pub given: Option<[&'a [f32]; 2]>,
}

/// What batch normalisation gives.
#[derive(Clone, Debug)]
pub struct Normalised {
    /// [B, C, H, W].
    pub output: Vec<f32>,
    /// The mean and the biased variance of each channel, [C] each, or those that were given.
    pub moments: [Vec<f32>; 2],
}

/// A channel: its number, and its maps in every picture.
type Channel<'a> = (usize, Vec<&'a mut [f32]>);

impl BatchNorm<'_> {
    /// Normalises a batch.
    ///
    /// # Panics
    ///
    /// If the lengths of `x`, γ and β do not belong together, or `x` is empty.
    pub fn forward(&self, x: &[f32]) -> Normalised {
        let mut output = threads::zeros(x.len());
        let moments = self.each_channel(&mut output, |channel, maps| {
            let x = || self.maps(x, channel);
            let count = (maps.len() * self.positions) as f64;
            let [mean, variance] = match self.given {
                Some(given) => given.map(|moments| moments[channel]),
                None => {
                    let mean = (x().map(sum).sum::<f64>() / count) as f32;
                    [mean, (x().map(|map| sum_of_squares(map, mean)).sum::<f64>() / count) as f32]
                }
            };
            let line = self.line(channel, mean, variance);
            maps.iter_mut().zip(x()).for_each(|(map, x)| normalise(x, map, line));
            [mean, variance]
        });
        let moments = [0, 1].map(|i| moments.iter().map(|moments| moments[i]).collect());
        Normalised { output, moments }
    }

    /// Turns the gradient of the output, [B, C, H, W], into that of the input, and gives those of γ and β. Mean and variance
    /// are the moments that [`Self::forward`] gave.
    ///
    /// # Panics
    ///
    /// If the lengths do not belong together.
    pub fn gradient(&self, x: &[f32], [mean, variance]: [&[f32]; 2], gradient: &mut [f32]) -> [Vec<f32>; 2] {
        assert_eq!(x.len(), gradient.len(), "a gradient for each number");
        let weights = self.each_channel(gradient, |channel, maps| {
            let line = self.line(channel, mean[channel], variance[channel]);
            let deviation = f64::from((variance[channel] + self.epsilon).sqrt());
            let [mut beta, mut gamma] = [0.0, 0.0];
            for (map, x) in maps.iter().zip(self.maps(x, channel)) {
                let sums = gradient_sums(x, map, line);
                beta += sums[0];
                gamma += sums[1];
            }
            let count = (maps.len() * self.positions) as f64;
            let gamma = gamma / deviation;
            // A mean and variance that were given do not depend on the input.
            let [shift, slope] = match self.given {
                Some(_) => [0.0; 2],
                None => [(beta / count) as f32, (gamma / count / deviation) as f32],
            };
            for (map, x) in maps.iter_mut().zip(self.maps(x, channel)) {
                input_gradient(x, map, line, [shift, slope]);
            }
            [gamma as f32, beta as f32]
        });
        [0, 1].map(|i| weights.iter().map(|weights| weights[i]).collect())
    }

    fn line(&self, channel: usize, mean: f32, variance: f32) -> Line {
        let scale = self.gamma[channel] / (variance + self.epsilon).sqrt();
        Line { mean, scale, shift: self.beta[channel], rectified: self.rectified }
    }

    /// The maps of a channel in all pictures.
    fn maps<'x>(&self, x: &'x [f32], channel: usize) -> impl Iterator<Item = &'x [f32]> {
        x.chunks_exact(self.positions).skip(channel).step_by(self.gamma.len())
    }

    /// Calls `work` for each channel with its maps of a result.
    fn each_channel(
        &self,
        result: &mut [f32],
        work: impl Fn(usize, &mut [&mut [f32]]) -> [f32; 2] + Sync + Send,
    ) -> Vec<[f32; 2]> {
        let channels = self.gamma.len();
        assert_eq!(self.beta.len(), channels, "weights of the same channels");
        assert!(
            !result.is_empty() && result.len().is_multiple_of(channels * self.positions),
            "pictures of the stated shape"
        );
        let mut maps: Vec<Channel> = (0..channels).map(|channel| (channel, Vec::new())).collect();
        for (i, map) in result.chunks_exact_mut(self.positions).enumerate() {
            maps[i % channels].1.push(map);
        }
        let mut results: Vec<_> = maps.into_iter().map(|channel| (channel, [0.0; 2])).collect();
        let run = channels.div_ceil(4 * threads::count());
        threads::each_chunk(&mut results, run, |_, channels| {
            for ((channel, maps), result) in channels {
                *result = work(*channel, maps);
            }
        });
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// y = (x − mean) · scale + shift, and zero for what is negative if `rectified`.
#[derive(Clone, Copy)]
struct Line {
    mean: f32,
    scale: f32,
    shift: f32,
    rectified: bool,
}

impl Line {
    #[inline(always)]
    fn at(self, x: f32) -> f32 {
        (x - self.mean) * self.scale + self.shift
    }

    /// The gradient before the rectifier.
    #[inline(always)]
    fn gradient(self, x: f32, gradient: f32) -> f32 {
        if self.rectified && self.at(x) <= 0.0 { 0.0 } else { gradient }
    }
}

#[with_simd]
fn normalise<'a, S: Simd>(x: &'a [f32], output: &'a mut [f32], line: Line) {
    for (output, &x) in output.iter_mut().zip(x) {
        let y = line.at(x);
        *output = if line.rectified && y < 0.0 { 0.0 } else { y };
    }
}

#[with_simd]
fn sum<S: Simd>(x: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    for x in x.chunks(LANES) {
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
    }
    sums.iter().map(|&sum| f64::from(sum)).sum()
}

#[with_simd]
fn sum_of_squares<S: Simd>(x: &[f32], mean: f32) -> f64 {
    let mut sums = [0.0; LANES];
    for x in x.chunks(LANES) {
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += (x - mean) * (x - mean));
    }
    sums.iter().map(|&sum: &f32| f64::from(sum)).sum()
}

/// Σ g and Σ g · (x − mean), with the gradient g before the rectifier.
#[with_simd]
fn gradient_sums<'a, S: Simd>(x: &'a [f32], gradient: &'a [f32], line: Line) -> [f64; 2] {
    let (mut sums, mut products) = ([0.0; LANES], [0.0; LANES]);
    for (x, gradient) in x.chunks(LANES).zip(gradient.chunks(LANES)) {
        for (((sum, product), &x), &gradient) in sums.iter_mut().zip(&mut products).zip(x).zip(gradient) {
            let gradient = line.gradient(x, gradient);
            *sum += gradient;
            *product += gradient * (x - line.mean);
        }
    }
    [sums, products].map(|sums| sums.iter().map(|&sum: &f32| f64::from(sum)).sum())
}

/// scale · (g − shift − (x − mean) · slope), in the place of g.
#[with_simd]
fn input_gradient<'a, S: Simd>(x: &'a [f32], gradient: &'a mut [f32], line: Line, means: [f32; 2]) {
    let [shift, slope] = means;
    for (gradient, &x) in gradient.iter_mut().zip(x) {
        *gradient = line.scale * (line.gradient(x, *gradient) - shift - (x - line.mean) * slope);
    }
}
