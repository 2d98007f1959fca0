//! GELU, x · Φ(x) with the distribution function Φ of the standard normal distribution (Hendrycks and Gimpel, *Gaussian
//! Error Linear Units*, 2016), and its gradient Φ(x) + x · φ(x).
//!
//! Φ is by Abramowitz and Stegun's formula 7.1.26 (*Handbook of Mathematical Functions*, 1964), whose error is below
//! 10⁻⁷, about the rounding error of 32-bit floats. The density φ uses the same exponential.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use macerator::{Simd, with_simd};

use crate::exponential::exponential;
use crate::threads;

/// Numbers that a thread takes at a time.
const RUN: usize = 1 << 14;

/// Φ(x) and φ(x).
#[inline(always)]
fn normal(x: f32) -> [f32; 2] {
    const COEFFICIENTS: [f32; 5] = [1.061_405_4, -1.453_152_1, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
    let mut sum = 0.0;
    for coefficient in COEFFICIENTS {
        sum = (sum + coefficient) * t;
    }
    let density = exponential(-0.5 * x * x);
    let tail = 0.5 * sum * density;
    // 1 / √(2π)
    [if x < 0.0 { tail } else { 1.0 - tail }, density * 0.398_942_3]
}

/// x · Φ(x) of each number. For −∞ the result is not a number, because the product is −∞ · 0.
pub fn gelu(x: &[f32]) -> Vec<f32> {
    let mut result = threads::zeros(x.len());
    threads::each_chunk(&mut result, RUN, |i, result| forward(&x[i * RUN..], result));
    result
}

/// The same, written over the numbers.
pub fn gelu_in_place(x: &mut [f32]) {
    threads::each_chunk(x, RUN, |_, x| forward_in_place(x));
}

/// Turns the gradient of GELU's output into the gradient of its input.
///
/// # Panics
///
/// If the lengths differ.
pub fn gelu_gradient(x: &[f32], gradient: &mut [f32]) {
    assert_eq!(x.len(), gradient.len(), "a gradient for each number");
    threads::each_chunk(gradient, RUN, |i, gradient| backward(&x[i * RUN..], gradient));
}

#[with_simd]
fn forward<'a, S: Simd>(x: &'a [f32], result: &'a mut [f32]) {
    for (result, &x) in result.iter_mut().zip(x) {
        *result = x * normal(x)[0];
    }
}

#[with_simd]
fn forward_in_place<S: Simd>(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x *= normal(*x)[0]);
}

#[with_simd]
fn backward<'a, S: Simd>(x: &'a [f32], gradient: &'a mut [f32]) {
    for (gradient, &x) in gradient.iter_mut().zip(x) {
        let [distribution, density] = normal(x);
        *gradient *= distribution + x * density;
    }
}
