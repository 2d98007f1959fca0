//! The Poincaré ball on tensors: maps and distances with finite gradients.

use burn::tensor::{DType, Tensor, TensorData};

use super::Curvature;
use crate::host::{is_cpu, numbers, with_gradient_of};
use crate::panels::{Panels, Queries, SquaredDifference, WHOLE_TILES};
use crate::threads::each_in_order;

/// Shorter lengths count as this one, so that they can be divided by.
const SHORTEST: f64 = 1e-5;
/// Points are drawn back from the rim to this share of the radius.
const RIM: f64 = 1.0 - 1e-3;
/// Added to the denominator of ⊕.
const EPSILON: f64 = 1e-5;
/// Larger arguments of artanh count as this one.
const STEEPEST: f64 = 1.0 - 1e-5;
/// The most elements of a tensor [block, M, d].
const BLOCK_ELEMENTS: usize = 1 << 22;

/// The Poincaré ball of curvature −c. Points and tangent vectors are rows, [B, d].
///
/// # Values
///
/// The values are those of the public code of Hyp and HIER, which guards the formulas where they break down. It adds
/// 1e-5 to the denominator of ⊕, which makes d(x, y) too short by a share of at most 1e-5 / (1 − c‖x‖‖y‖)²: 3 in
/// 100,000 for the usual curvature and clip radius. It caps the argument of artanh at 1 − 1e-5, so that no distance
/// exceeds 12.2/√c. Rankings use [`distance`](super::distance), which is exact.
///
/// # Gradients
///
/// All gradients are finite. Where artanh is capped, it has the slope at the cap. d(x, x) has the gradient 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// c.
    pub curvature: Curvature,
}

/// Rows shortened to the length `radius` where they are longer.
pub fn clip(rows: Tensor<2>, radius: f64) -> Tensor<2> {
    let factor = (length(&rows) + SHORTEST).recip() * radius;
    rows * factor.clamp_max(1.0)
}

impl Ball {
    /// Features → points: clipped, mapped by [`Self::exponential_map`], drawn back from the rim by [`Self::project`]
    /// and, if `riemannian`, with the gradients of [`Self::riemannian`].
    pub fn embed(&self, features: Tensor<2>, clip_radius: f64, riemannian: bool) -> Tensor<2> {
        let points = self.project(self.exponential_map(clip(features, clip_radius)));
        if riemannian { self.riemannian(points) } else { points }
    }

    /// exp₀: v ↦ tanh(√c ‖v‖) v / (√c ‖v‖); d(0, exp₀(v)) = 2‖v‖.
    pub fn exponential_map(&self, vectors: Tensor<2>) -> Tensor<2> {
        let length = length(&vectors) * self.root();
        vectors * tanh_ratio(length)
    }

    /// log₀, the inverse of exp₀.
    pub fn logarithmic_map(&self, points: Tensor<2>) -> Tensor<2> {
        let length = length(&points) * self.root();
        points * (artanh(length.clone()) / length)
    }

    /// exp_x: from x along v, x ⊕ tanh(√c λ_x ‖v‖ / 2) v / (√c ‖v‖).
    pub fn exponential_map_at(&self, points: Tensor<2>, vectors: Tensor<2>) -> Tensor<2> {
        let stretch = self.conformal_factor(points.clone()) * 0.5;
        let length = length(&vectors) * self.root();
        self.add(points, vectors * stretch.clone() * tanh_ratio(stretch * length))
    }

    /// log_x(y), the vector at x that points to y: (2/(√c λ_x)) artanh(√c ‖z‖) z/‖z‖ with z = (−x) ⊕ y; 0 for y = x.
    pub fn logarithmic_map_at(&self, points: Tensor<2>, to: Tensor<2>) -> Tensor<2> {
        let step = self.logarithmic_map(self.add(-points.clone(), to));
        step * self.conformal_factor(points).recip() * 2.0
    }

    /// Points at or beyond the rim, drawn back to 0.999 of the radius.
    pub fn project(&self, points: Tensor<2>) -> Tensor<2> {
        let length = length(&points);
        let largest = RIM / self.root();
        let within = length.clone().lower_equal_scalar(largest).expand(points.dims());
        (points.clone() * (length.recip() * largest)).mask_where(within, points)
    }

    /// x ⊕ y, row by row: ((1 + 2c x·y + c‖y‖²) x + (1 − c‖x‖²) y) / (1 + 2c x·y + c²‖x‖²‖y‖²).
    pub fn add(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let c = self.curvature.value();
        let (xx, yy) = (squared_length(&x), squared_length(&y));
        let cross = (x.clone() * y.clone()).sum_dim(1) * (2.0 * c) + 1.0;
        let denominator = cross.clone() + xx.clone() * yy.clone() * (c * c) + EPSILON;
        let sum = x * (cross + yy * c) + y * (-xx * c + 1.0);
        sum / denominator
    }

    /// d(x, y), row by row: [B, 1].
    pub fn distance(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let slacks = self.slack(&x) * self.slack(&y);
        self.distance_from(squared_length(&(x - y)), slacks)
    }

    /// d(x, y) of every row of x, [B, d], and y, [M, d]: [B, M], in O(B·M) memory. It is accurate for close points,
    /// because ‖x − y‖² is summed over differences and not computed from inner products.
    pub fn distances(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let slacks = [self.slack(&x), self.slack(&y).transpose()];
        if x.dtype() == DType::F32 && is_cpu(&x.device()) {
            return self.distances_on_cpu(x, y, slacks);
        }
        let [of_x, of_y] = slacks;
        let squared = with_gradient_of(squared_distances(&x, &y), squared_for_gradient(x, y));
        self.distance_from(squared, of_x.matmul(of_y))
    }

    /// λ_x = 2 / (1 − c‖x‖²), by which the ball stretches lengths at x: [B, 1].
    pub fn conformal_factor(&self, points: Tensor<2>) -> Tensor<2> {
        self.slack(&points).recip() * 2.0
    }

    /// The same points with Riemannian gradients: gradients are scaled by 1/λ² = (1 − c‖y‖²)²/4, the inverse of the
    /// metric.
    pub fn riemannian(&self, points: Tensor<2>) -> Tensor<2> {
        let scale = (self.slack(&points).square() * 0.25).detach();
        let fixed = points.clone().detach();
        (points - fixed.clone()) * scale + fixed
    }

    /// The Einstein midpoint of all points, [1, d]: their mean in the Klein model, weighted by the Lorentz factor.
    pub fn midpoint(&self, points: Tensor<2>) -> Tensor<2> {
        let c = self.curvature.value();
        let klein = points.clone() * (squared_length(&points) * c + 1.0).recip() * 2.0;
        let weight = (-squared_length(&klein) * c + 1.0).sqrt().recip();
        let mean = (klein * weight.clone()).sum_dim(0) / weight.sum_dim(0);
        let height = (-squared_length(&mean) * c + 1.0).sqrt();
        mean / (height + 1.0)
    }

    fn root(&self) -> f64 {
        self.curvature.value().sqrt()
    }

    /// 1 − c‖x‖², [B, 1].
    fn slack(&self, points: &Tensor<2>) -> Tensor<2> {
        -squared_length(points) * self.curvature.value() + 1.0
    }

    /// [`Self::distances`] in f32: values and derivatives in one pass over the pairs.
    fn distances_on_cpu(&self, x: Tensor<2>, y: Tensor<2>, slacks: [Tensor<2>; 2]) -> Tensor<2> {
        let ([rows, dimension], [columns, _]) = (x.dims(), y.dims());
        let (x_numbers, panels) = (numbers(&x), Panels::new(dimension, &numbers(&y)));
        let [x_slacks, y_slacks] = slacks.each_ref().map(numbers);

        let mut results = [(); 3].map(|()| vec![0.0; rows * columns]);
        let [values, by_squared, by_slacks] = &mut results;
        // A thread takes whole tiles of rows of x at a time.
        let block = WHOLE_TILES * columns.max(1);
        let blocks = values
            .chunks_mut(block)
            .zip(by_squared.chunks_mut(block))
            .zip(by_slacks.chunks_mut(block))
            .zip(x_numbers.chunks(WHOLE_TILES * dimension))
            .zip(x_slacks.chunks(WHOLE_TILES));
        each_in_order(blocks.collect(), |((((values, by_squared), by_slacks), x), x_slacks)| {
            panels.add_up(&Queries::new(dimension, x), values, columns, SquaredDifference);
            let slacks = x_slacks.iter().flat_map(|x| y_slacks.iter().map(move |y| x * y));
            for (((value, squared), slack), slacks) in
                values.iter_mut().zip(by_squared).zip(by_slacks).zip(slacks)
            {
                [*value, *squared, *slack] = self.distance_and_slopes(*value, slacks);
            }
        });

        let device = x.device().without_autodiff();
        let [values, by_squared, by_slacks] =
            results.map(|numbers| Tensor::from_data(TensorData::new(numbers, [rows, columns]), &device));
        if !x.device().is_autodiff() && !y.device().is_autodiff() {
            return values;
        }
        let [x_slacks, y_slacks] = slacks;
        with_gradient_of(
            values,
            squared_for_gradient(x, y) * by_squared + x_slacks.matmul(y_slacks) * by_slacks,
        )
    }

    /// [`Self::distance_from`] for one pair, and its derivatives with respect to `squared` and `slacks`.
    fn distance_and_slopes(&self, squared: f32, slacks: f32) -> [f32; 3] {
        let (c, root) = (self.curvature.value() as f32, self.root() as f32);
        let denominator = slacks + squared * c;
        let (apart, length) = (squared.sqrt(), denominator.sqrt());
        let shifted = denominator + EPSILON as f32;
        let argument = apart * length / shifted * root;
        // NaN stays NaN, which f32::min would not keep.
        let argument = if argument > STEEPEST as f32 { STEEPEST as f32 } else { argument };
        let steepness = 1.0 / ((1.0 - argument) * (1.0 + argument) * shifted);

        let by_slacks = apart * (EPSILON as f32 - denominator) / (length * shifted) * steepness;
        let by_apart = if squared == 0.0 { 0.0 } else { length / apart * steepness };
        // artanh z = ln(1 + 2z / (1 − z)) / 2
        [(2.0 * argument / (1.0 - argument)).ln_1p() / root, by_apart + by_slacks * c, by_slacks]
    }

    /// With D = (1 − c‖x‖²)(1 − c‖y‖²) + c‖x − y‖², the denominator of (−x) ⊕ y, ‖(−x) ⊕ y‖ = ‖x − y‖ / √D.
    fn distance_from(&self, squared: Tensor<2>, slacks: Tensor<2>) -> Tensor<2> {
        let denominator = slacks + squared.clone() * self.curvature.value();
        // The root has no derivative at 0. There the root of 1 is taken, and its value replaced by 0.
        let same = squared.clone().equal_scalar(0.0);
        let apart = squared.mask_fill(same.clone(), 1.0).sqrt().mask_fill(same, 0.0);
        let length = apart * denominator.clone().sqrt() / (denominator + EPSILON);
        artanh(length * self.root()) * (2.0 / self.root())
    }
}

fn squared_length(rows: &Tensor<2>) -> Tensor<2> {
    rows.clone().square().sum_dim(1)
}

/// The length of each row, [B, 1], at least [`SHORTEST`], so that it can be divided by.
fn length(rows: &Tensor<2>) -> Tensor<2> {
    squared_length(rows).clamp_min(SHORTEST * SHORTEST).sqrt()
}

/// tanh(x) / x for x > 0.
///
/// Small x have the first terms of the series 1 − x²/3 + 2x⁴/15 − 17x⁶/315 + … A GPU may compute tanh from the difference
/// of two exponentials, of which two digits are correct for x = 1e-5.
fn tanh_ratio(x: Tensor<2>) -> Tensor<2> {
    const SMALL: f64 = 0.1;
    // The clamp keeps the powers of large x finite: their gradient is multiplied by 0.
    let square = x.clone().clamp_max(SMALL).square();
    let series =
        ((square.clone() * (-17.0 / 315.0) + 2.0 / 15.0) * square.clone() - 1.0 / 3.0) * square + 1.0;
    let is_small = x.clone().lower_equal_scalar(SMALL);
    (x.clone().tanh() / x).mask_where(is_small, series)
}

/// artanh of an argument of at least 0. Where the argument is capped, the gradient is that at the cap.
fn artanh(x: Tensor<2>) -> Tensor<2> {
    let cut = x.clone().clamp_max(STEEPEST) - x.clone();
    let x = x + cut.detach();
    (x.clone().log1p() - (-x).log1p()) * 0.5
}

/// ‖x‖² + ‖y‖² − 2 x·y of every row of x and y, [B, M]. No terms of its gradient cancel, but those of its value do.
fn squared_for_gradient(x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
    let lengths = squared_length(&x) + squared_length(&y).transpose();
    lengths - x.matmul(y.transpose()) * 2.0
}

/// ‖x − y‖² of every row of x and y, [B, M], summed over differences, some rows at a time. It has no gradient.
fn squared_distances(x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
    let ([rows, dimension], [columns, _]) = (x.dims(), y.dims());
    let block = (BLOCK_ELEMENTS / (columns * dimension).max(1)).max(1);
    let plain = |rows: &Tensor<2>| rows.clone().without_autodiff();
    let (x, y) = (plain(x), plain(y).unsqueeze_dim::<3>(0));
    let value = (0..rows).step_by(block).map(|start| {
        let some = x.clone().slice([start..(start + block).min(rows), 0..dimension]).unsqueeze_dim::<3>(1);
        (some - y.clone()).square().sum_dim(2).squeeze_dim::<2>(2)
    });
    Tensor::cat(value.collect(), 0)
}
