//! A rectifier, which makes zero of what is negative: behind a sum, and its gradient.

use crate::threads;

/// Numbers that a thread takes at a time.
const RUN: usize = 1 << 16;

/// x + y with what is negative made zero. Not a number stays so.
///
/// # Panics
///
/// If the lengths differ.
pub fn rectified_sum(x: &[f32], y: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), y.len(), "as many numbers of both");
    let mut result = threads::zeros(x.len());
    threads::each_chunk(&mut result, RUN, |i, result| {
        for ((result, x), y) in result.iter_mut().zip(&x[i * RUN..]).zip(&y[i * RUN..]) {
            let sum = x + y;
            *result = if sum < 0.0 { 0.0 } else { sum };
        }
    });
    result
}

/// Turns the gradient of a rectifier's output into that of its input: zero where the output is.
///
/// # Panics
///
/// If the lengths differ.
pub fn rectifier_gradient(gradient: &mut [f32], output: &[f32]) {
    assert_eq!(gradient.len(), output.len(), "a gradient for each number");
    threads::each_chunk(gradient, RUN, |i, gradient| {
        for (gradient, &output) in gradient.iter_mut().zip(&output[i * RUN..]) {
            *gradient = if output <= 0.0 { 0.0 } else { *gradient };
        }
    });
}
