//! Products of matrices whose rows lie one after another.

use crate::product::{DEPTH, LANES, Lanes, Product};
use crate::threads;

/// The rows and columns that are transposed at a time: they stay in the nearest cache, as read and as written.
const RUN: usize = 16;

/// A matrix: each row is a slice of the numbers.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub numbers: &'a [f32],
    /// From the beginning of a row to that of the next.
    pub pitch: usize,
    pub rows: usize,
    pub columns: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix without gaps between its rows.
    pub(crate) fn new(numbers: &'a [f32], columns: usize) -> Self {
        Self { numbers, pitch: columns, rows: numbers.len() / columns, columns }
    }

    /// Some rows, from `first`.
    pub(crate) fn band(self, first: usize, rows: usize) -> Self {
        Self { numbers: &self.numbers[first * self.pitch..], rows, ..self }
    }

    pub(crate) fn row(self, row: usize) -> &'a [f32] {
        &self.numbers[row * self.pitch..][..self.columns]
    }

    /// The transposed matrix, [columns, rows], without gaps.
    pub(crate) fn transposed(self) -> Vec<f32> {
        let mut result = vec![0.0; self.rows * self.columns];
        threads::each_chunk(&mut result, RUN * self.rows, |i, result| self.transpose(i * RUN, result));
        result
    }

    /// Writes some columns, from `first`, as rows without gaps.
    pub(crate) fn transpose(self, first: usize, result: &mut [f32]) {
        for (i, result) in result.chunks_mut(RUN * self.rows).enumerate() {
            for start in (0..self.rows).step_by(RUN) {
                let end = (start + RUN).min(self.rows);
                for (column, result) in (first + i * RUN..).zip(result.chunks_exact_mut(self.rows)) {
                    for (row, number) in (start..end).zip(&mut result[start..end]) {
                        *number = self.numbers[row * self.pitch + column];
                    }
                }
            }
        }
    }

    /// Calls `write(row, column, sums)` with the sums of each row of the product with another matrix, 32 columns at a time.
    /// Behind the last column stand numbers without meaning.
    pub(crate) fn multiply(self, other: Matrix, mut write: impl FnMut(usize, usize, &mut Lanes)) {
        let product = Product { rows: self.rows, terms: self.columns, columns: other.columns };
        product.compute(
            |row, terms| &self.row(row)[terms],
            |panel, terms, panels| {
                let count = panels.len() / DEPTH * LANES;
                for (k, term) in terms.enumerate() {
                    let numbers = &other.row(term)[panel * LANES..];
                    let (whole, rest) = numbers[..count.min(numbers.len())].as_chunks();
                    for (panel, numbers) in panels.chunks_exact_mut(DEPTH).zip(whole) {
                        panel[k] = *numbers;
                    }
                    if !rest.is_empty() {
                        panels[whole.len() * DEPTH + k][..rest.len()].copy_from_slice(rest);
                    }
                }
            },
            |panel, sums| {
                sums.iter_mut().enumerate().for_each(|(row, sums)| write(row, panel * LANES, sums));
            },
        );
    }

    /// Writes the product with another matrix into rows with a pitch.
    pub(crate) fn product(self, other: Matrix, result: &mut [f32], pitch: usize) {
        self.multiply(other, |row, column, sums| {
            let length = (other.columns - column).min(LANES);
            result[row * pitch + column..][..length].copy_from_slice(&sums[..length]);
        });
    }

    /// Adds the product with another matrix to a matrix without gaps.
    pub(crate) fn add_product(self, other: Matrix, result: &mut [f32]) {
        self.multiply(other, |row, column, sums| {
            let length = (other.columns - column).min(LANES);
            let result = &mut result[row * other.columns + column..][..length];
            result.iter_mut().zip(sums).for_each(|(result, sum)| *result += *sum);
        });
    }
}
