//! Products of matrices whose rows lie one after another.

use std::cell::Cell;

use crate::product::{DEPTH, LANES, PANELS, ROWS, Tile, add_products};
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
    pub(crate) fn multiply(self, other: Matrix, mut write: impl FnMut(usize, usize, &mut [f32; LANES])) {
        // While a thread waits it may begin other work, which then finds nothing here and makes its own.
        let mut scratch = SCRATCH.take();
        let Scratch { panels, tiles } = &mut scratch;
        panels.resize(PANELS * DEPTH, [0.0; LANES]);
        let row_tiles = self.rows.div_ceil(ROWS);
        for first in (0..other.columns).step_by(PANELS * LANES) {
            let columns = (other.columns - first).min(PANELS * LANES);
            let panel_count = columns.div_ceil(LANES);
            tiles.clear();
            tiles.resize(row_tiles * panel_count, [[0.0; LANES]; ROWS]);
            for start in (0..self.columns).step_by(DEPTH) {
                let depth = (self.columns - start).min(DEPTH);
                for k in 0..depth {
                    let numbers = &other.row(start + k)[first..first + columns];
                    let (whole, rest) = numbers.as_chunks::<LANES>();
                    for (panel, numbers) in panels.chunks_exact_mut(DEPTH).zip(whole) {
                        panel[k] = *numbers;
                    }
                    if !rest.is_empty() {
                        panels[whole.len() * DEPTH + k][..rest.len()].copy_from_slice(rest);
                    }
                }
                // A panel stays in the nearest cache while all rows pass it.
                for (panel, tiles) in tiles.chunks_exact_mut(row_tiles).enumerate() {
                    let numbers = &panels[panel * DEPTH..][..depth];
                    for (t, tile) in tiles.iter_mut().enumerate() {
                        let rows = std::array::from_fn(|r| {
                            &self.row((t * ROWS + r).min(self.rows - 1))[start..start + depth]
                        });
                        add_products(&rows, numbers, columns - panel * LANES, tile);
                    }
                }
            }
            for (panel, tiles) in tiles.chunks_exact_mut(row_tiles).enumerate() {
                for (t, tile) in tiles.iter_mut().enumerate() {
                    for (row, sums) in (t * ROWS..self.rows).zip(tile) {
                        write(row, first + panel * LANES, sums);
                    }
                }
            }
        }
        SCRATCH.set(scratch);
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

/// Memory of a thread that is kept from one product to the next.
#[derive(Default)]
struct Scratch {
    panels: Vec<[f32; LANES]>,
    tiles: Vec<Tile>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}
