//! A linear map of rows, and both its gradients, as products of matrices.

use crate::matrix::Matrix;
use crate::product::{Columns, LANES, Lanes, Packed, ROWS, Rows, add, multiply, write};
use crate::threads;

/// The most rows of a result that a thread takes at a time. Their sums stay in the second-level cache.
const BAND: usize = 512;

/// The shape of a linear map y = x · W + b, with rows x [N, I], weights W [I, O] and a bias b [O].
///
/// Its functions panic for slices of other lengths, and if I or O is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// I.
    pub inputs: usize,
    /// O.
    pub outputs: usize,
}

impl Linear {
    fn check(&self, weight: &[f32]) {
        assert!(
            weight.len() == self.inputs * self.outputs && !weight.is_empty(),
            "weights of the stated shape"
        );
    }

    /// The output, [N, O].
    pub fn forward(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        self.check(weight);
        let weight = Packed::new(Matrix::new(weight, self.outputs));
        product(Rows::Of(Matrix::new(x, self.inputs)), &weight, bias)
    }

    /// Adds the output to numbers [N, O].
    pub fn add_to(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>, numbers: &mut [f32]) {
        self.check(weight);
        let weight = Packed::new(Matrix::new(weight, self.outputs));
        product_into(Rows::Of(Matrix::new(x, self.inputs)), &weight, bias, numbers, add);
    }

    /// The gradient of the input, [N, I], from that of the output, [N, O].
    pub fn input_gradient(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        self.check(weight);
        let weight = Packed::transposed(Matrix::new(weight, self.outputs));
        product(Rows::Of(Matrix::new(gradient, self.outputs)), &weight, None)
    }

    /// The gradient of the weights, [I, O], from the input [N, I] and the gradient of the output, [N, O].
    pub fn weight_gradient(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        assert_eq!(x.len() * self.outputs, gradient.len() * self.inputs, "a gradient for each row");
        let gradient = Packed::new(Matrix::new(gradient, self.outputs));
        product(Rows::Across(Matrix::new(x, self.inputs)), &gradient, None)
    }

    /// The gradient of the bias, [O], from that of the output, [N, O].
    pub fn bias_gradient(&self, gradient: &[f32]) -> Vec<f32> {
        sum_of_rows(gradient, self.outputs)
    }
}

/// A product, with a bias added to each row or none.
fn product(rows: Rows, columns: &Packed, bias: Option<&[f32]>) -> Vec<f32> {
    let mut result = threads::zeros(rows.count() * columns.count());
    product_into(rows, columns, bias, &mut result, write);
    result
}

/// The same for a result into whose rows `put` puts the sums with a panel.
fn product_into(
    rows: Rows,
    columns: &Packed,
    bias: Option<&[f32]>,
    result: &mut [f32],
    put: impl Fn(&Lanes, &mut [f32]) + Sync + Send,
) {
    let width = columns.count();
    assert_eq!(result.len(), rows.count() * width, "a result of the stated shape");
    let band = rows.count().div_ceil(2 * threads::count()).next_multiple_of(ROWS).min(BAND);
    threads::each_chunk(result, band * width, |i, result| {
        multiply(rows.band(i * band, result.len() / width), columns, |panel, mut block| {
            for (row, result) in result.chunks_exact_mut(width).enumerate() {
                for (first, sums) in (panel * LANES..).step_by(LANES).zip(block.row(row)) {
                    if let Some(bias) = bias {
                        sums.iter_mut().zip(&bias[first..]).for_each(|(sum, bias)| *sum += bias);
                    }
                    put(sums, &mut result[first..]);
                }
            }
        });
    });
}

/// The sum of the rows of a matrix [N, C]. It depends on the shape alone, and not on threads.
fn sum_of_rows(numbers: &[f32], columns: usize) -> Vec<f32> {
    /// The rows that a thread adds up at a time.
    const RUN: usize = 256;
    let mut parts = vec![0.0; (numbers.len() / columns).div_ceil(RUN) * columns];
    threads::each_chunk(&mut parts, columns, |i, sums| {
        let rows = numbers[i * RUN * columns..].chunks_exact(columns).take(RUN);
        rows.for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
    });
    let mut result = vec![0.0; columns];
    for part in parts.chunks_exact(columns) {
        result.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
    }
    result
}
