//! The Poincaré ball: hyperbolic space of curvature −c as the points y of norm below 1/√c.

use burn::tensor::Tensor;

/// Rows of features → points of the ball: each row is shortened to `clip_radius` and mapped by the exponential map at
/// the origin, v ↦ tanh(√c ‖v‖) v / (√c ‖v‖).
pub fn exponential_map(rows: Tensor<2>, curvature: f64, clip_radius: f64) -> Tensor<2> {
    let norm = |rows: &Tensor<2>| (rows.clone().square().sum_dim(1) + 1e-24).sqrt();
    let clipped = rows.clone() * (norm(&rows).recip() * clip_radius).clamp_max(1.0);
    let length = norm(&clipped) * curvature.sqrt();
    clipped * (length.clone().tanh() / length)
}
