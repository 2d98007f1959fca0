//! The gradient before a rectifier, which makes zero of what is negative.

use crate::threads;

/// Numbers that a thread takes at a time.
const RUN: usize = 1 << 16;

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
