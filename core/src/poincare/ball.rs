//! The ball on tensors: maps, distances, and gradients that stay finite.

use burn::tensor::Tensor;

/// The shortest length that is told from 0.
const SHORTEST: f64 = 1e-5;
/// The length, as a share of the radius, to which points are drawn back from the rim.
const RIM: f64 = 1.0 - 1e-3;
/// Added to the denominator of ⊕.
const MARGIN: f64 = 1e-5;
/// The largest argument of artanh.
const STEEPEST: f64 = 1.0 - 1e-5;
/// Elements of the largest three-way tensor, [block, M, d].
const BLOCK_ELEMENTS: usize = 1 << 22;

/// The Poincaré ball of curvature −c. Points and tangent vectors are rows, [B, d].
///
/// # Numbers
///
/// They are those of the public code of Hyp and HIER, which has guards where the formulas break down: 1e-5 is added to
/// the denominator of ⊕, which makes d(x, y) too short by the share 1e-5 / (1 − c‖x‖‖y‖)² at most (3 in 100,000 for
/// the usual curvature and clip radius), and the argument of artanh ends at 1 − 1e-5, so that no distance is beyond
/// 12.2/√c. Rankings go by [`distance`](super::distance), which is exact.
///
/// # Gradients
///
/// All are finite. Where artanh is cut its slope is that of the cut; d(x, x) passes none, although every direction
/// leads away from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// c > 0.
    pub curvature: f64,
}

/// Rows brought to this length if they are longer.
pub fn clip(rows: Tensor<2>, radius: f64) -> Tensor<2> {
    let factor = (length(&rows) + SHORTEST).recip() * radius;
    rows * factor.clamp_max(1.0)
}

impl Ball {
    /// Features → points: clipped, mapped by [`Self::exponential_map`], drawn back from the rim, and, if
    /// `riemannian`, with gradients that are [`Self::riemannian`].
    pub fn embed(&self, features: Tensor<2>, clip_radius: f64, riemannian: bool) -> Tensor<2> {
        let points = self.project(self.exponential_map(clip(features, clip_radius)));
        if riemannian { self.riemannian(points) } else { points }
    }

    /// exp₀: v ↦ tanh(√c ‖v‖) v / (√c ‖v‖); d(0, exp₀(v)) = 2‖v‖.
    pub fn exponential_map(&self, vectors: Tensor<2>) -> Tensor<2> {
        let length = length(&vectors) * self.root();
        vectors * (length.clone().tanh() / length)
    }

    /// log₀, which takes exp₀ back.
    pub fn logarithmic_map(&self, points: Tensor<2>) -> Tensor<2> {
        let length = length(&points) * self.root();
        points * (artanh(length.clone()) / length)
    }

    /// exp_x: from x along v, x ⊕ tanh(√c λ_x ‖v‖ / 2) v / (√c ‖v‖).
    pub fn exponential_map_at(&self, points: Tensor<2>, vectors: Tensor<2>) -> Tensor<2> {
        let length = length(&vectors) * self.root();
        let far = (self.conformal_factor(points.clone()) * length.clone() * 0.5).tanh();
        self.add(points, vectors * (far / length))
    }

    /// log_x(y): the vector at x that leads to y, (2/(√c λ_x)) artanh(√c ‖z‖) z/‖z‖ with z = (−x) ⊕ y; 0 for y = x.
    pub fn logarithmic_map_at(&self, points: Tensor<2>, to: Tensor<2>) -> Tensor<2> {
        let step = self.logarithmic_map(self.add(-points.clone(), to));
        step * self.conformal_factor(points).recip() * 2.0
    }

    /// Points at or beyond the rim drawn back to 0.999 of the radius.
    pub fn project(&self, points: Tensor<2>) -> Tensor<2> {
        let length = length(&points);
        let largest = RIM / self.root();
        let within = length.clone().lower_equal_scalar(largest).expand(points.dims());
        (points.clone() * (length.recip() * largest)).mask_where(within, points)
    }

    /// x ⊕ y, row by row: ((1 + 2c x·y + c‖y‖²) x + (1 − c‖x‖²) y) / (1 + 2c x·y + c²‖x‖²‖y‖²).
    pub fn add(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let c = self.curvature;
        let (xx, yy) = (squared_length(&x), squared_length(&y));
        let cross = (x.clone() * y.clone()).sum_dim(1) * (2.0 * c) + 1.0;
        let denominator = cross.clone() + xx.clone() * yy.clone() * (c * c) + MARGIN;
        let sum = x * (cross + yy * c) + y * (-xx * c + 1.0);
        sum / denominator
    }

    /// d(x, y), row by row: [B, 1].
    pub fn distance(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let rooms = self.room(&x) * self.room(&y);
        self.distance_of(squared_length(&(x - y)), rooms)
    }

    /// d(x, y) of every row of x, [B, d], and y, [M, d]: [B, M], in O(B·M) memory. Close points keep their digits:
    /// ‖x − y‖² is summed over differences, not taken from inner products.
    pub fn distances(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let rooms = self.room(&x).matmul(self.room(&y).transpose());
        self.distance_of(squared_distances(&x, &y), rooms)
    }

    /// λ_x = 2 / (1 − c‖x‖²), by which the ball stretches lengths at x: [B, 1].
    pub fn conformal_factor(&self, points: Tensor<2>) -> Tensor<2> {
        self.room(&points).recip() * 2.0
    }

    /// The same points with Riemannian gradients: those that come back are scaled by 1/λ² = (1 − c‖y‖²)²/4, the
    /// inverse of the metric.
    pub fn riemannian(&self, points: Tensor<2>) -> Tensor<2> {
        let scale = (self.room(&points).square() * 0.25).detach();
        let fixed = points.clone().detach();
        (points - fixed.clone()) * scale + fixed
    }

    /// The Einstein midpoint of all points, [1, d]: their mean in the Klein model, weighted by the Lorentz factor.
    pub fn midpoint(&self, points: Tensor<2>) -> Tensor<2> {
        let c = self.curvature;
        let klein = points.clone() * (squared_length(&points) * c + 1.0).recip() * 2.0;
        let weight = (-squared_length(&klein) * c + 1.0).sqrt().recip();
        let mean = (klein * weight.clone()).sum_dim(0) / weight.sum_dim(0);
        let height = (-squared_length(&mean) * c + 1.0).sqrt();
        mean / (height + 1.0)
    }

    fn root(&self) -> f64 {
        self.curvature.sqrt()
    }

    /// 1 − c‖x‖², [B, 1].
    fn room(&self, points: &Tensor<2>) -> Tensor<2> {
        -squared_length(points) * self.curvature + 1.0
    }

    /// With D = (1 − c‖x‖²)(1 − c‖y‖²) + c‖x − y‖², the denominator of (−x) ⊕ y, ‖(−x) ⊕ y‖ = ‖x − y‖ / √D.
    fn distance_of(&self, squared: Tensor<2>, rooms: Tensor<2>) -> Tensor<2> {
        let denominator = rooms + squared.clone() * self.curvature;
        // The root has no slope at 0: there it is taken of 1, and its value put to 0.
        let same = squared.clone().equal_scalar(0.0);
        let apart = squared.mask_fill(same.clone(), 1.0).sqrt().mask_fill(same, 0.0);
        let length = apart * denominator.clone().sqrt() / (denominator + MARGIN);
        artanh(length * self.root()) * (2.0 / self.root())
    }
}

fn squared_length(rows: &Tensor<2>) -> Tensor<2> {
    rows.clone().square().sum_dim(1)
}

/// The length of each row, [B, 1], and of a row that has none the shortest, so that it can be divided by.
fn length(rows: &Tensor<2>) -> Tensor<2> {
    squared_length(rows).clamp_min(SHORTEST * SHORTEST).sqrt()
}

/// artanh of an argument of at least 0. Where it is cut the gradient goes on with the slope of the cut.
fn artanh(x: Tensor<2>) -> Tensor<2> {
    let cut = x.clone().clamp_max(STEEPEST) - x.clone();
    let x = x + cut.detach();
    (x.clone().log1p() - (-x).log1p()) * 0.5
}

/// ‖x − y‖² of every row of x and y, [B, M]. The value is a sum over differences, block by block; the gradient, which
/// nothing cancels in, goes through ‖x‖² + ‖y‖² − 2 x·y.
fn squared_distances(x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
    let products = x.clone().matmul(y.clone().transpose());
    let linear = squared_length(x) + squared_length(y).transpose() - products * 2.0;

    let ([rows, dimension], [columns, _]) = (x.dims(), y.dims());
    let block = (BLOCK_ELEMENTS / (columns * dimension).max(1)).max(1);
    let plain = |rows: &Tensor<2>| rows.clone().without_autodiff();
    let (x, y) = (plain(x), plain(y).unsqueeze_dim::<3>(0));
    let value = (0..rows).step_by(block).map(|start| {
        let some = x.clone().slice([start..(start + block).min(rows), 0..dimension]).unsqueeze_dim::<3>(1);
        (some - y.clone()).square().sum_dim(2).squeeze_dim::<2>(2)
    });
    let value = Tensor::cat(value.collect(), 0);
    value + (linear.clone() - linear.detach())
}
