//! Products of rows with panels of 32 columns: the kernel of linear maps and convolutions, and of their gradients.
//!
//! A column of the product stands in one lane of a vector. The terms of a sum are added in their order, with one fused
//! multiply-add each where the machine has it. So a number depends neither on the rows and columns beside it nor on the
//! length of the machine's vectors.
//!
//! The sums of some rows and two vectors stay in registers while the rows and the panel are read. This code is compiled
//! once for each instruction set of the machine's family, of which the best is chosen when the program runs.

use std::array;
use std::cell::Cell;
use std::ops::Range;

use macerator::{Scalar, Simd, Vector, with_simd};

/// The columns of a panel: two of the widest vectors.
pub(crate) const LANES: usize = 32;

/// The terms that are added up at a time. A panel of this depth stays in the nearest cache.
pub(crate) const DEPTH: usize = 256;

/// The panels of a block, which stays in the second-level cache.
pub(crate) const PANELS: usize = 8;

/// Rows that are divided among threads are divided at a multiple of this number: every machine multiplies 6 or 8 rows at a
/// time.
pub(crate) const ROWS: usize = 24;

/// One number of each column of a panel.
pub(crate) type Lanes = [f32; LANES];

/// Memory of a thread that is kept from one product to the next.
#[derive(Default)]
struct Scratch {
    panels: Vec<Lanes>,
    sums: Vec<Lanes>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// A product of rows [R, K] with columns [K, C].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// R.
    pub rows: usize,
    /// K.
    pub terms: usize,
    /// C.
    pub columns: usize,
}

impl Product {
    /// Computes the product, a block of panels at a time.
    ///
    /// `row` gives some terms of a row. `fill` gets the number of a panel and some terms, and writes these of that panel
    /// and of those behind it, [panels, `DEPTH`, 32], as far as the product has columns. `write` gets the number of a panel
    /// and the sums of all rows with it. Behind the last column they have no meaning.
    pub(crate) fn compute<'a>(
        self,
        row: impl Fn(usize, Range<usize>) -> &'a [f32],
        fill: impl Fn(usize, Range<usize>, &mut [Lanes]),
        mut write: impl FnMut(usize, &mut [Lanes]),
    ) {
        // While a thread waits it may begin other work, which then finds nothing here and makes its own.
        let mut scratch = SCRATCH.take();
        let Scratch { panels, sums } = &mut scratch;
        let mut rows = Vec::with_capacity(self.rows);
        for first in (0..self.columns).step_by(PANELS * LANES) {
            let columns = (self.columns - first).min(PANELS * LANES);
            let count = columns.div_ceil(LANES);
            panels.resize(count * DEPTH, [0.0; LANES]);
            sums.clear();
            sums.resize(count * self.rows, [0.0; LANES]);
            for start in (0..self.terms).step_by(DEPTH) {
                let terms = start..(start + DEPTH).min(self.terms);
                fill(first / LANES, terms.clone(), panels);
                rows.clear();
                rows.extend((0..self.rows).map(|r| row(r, terms.clone())));
                // A panel stays in the nearest cache while all rows pass it.
                for (i, (panel, sums)) in
                    panels.chunks_exact(DEPTH).zip(sums.chunks_exact_mut(self.rows)).enumerate()
                {
                    add_products(&rows, &panel[..terms.len()], columns - i * LANES, sums);
                }
            }
            for (panel, sums) in (first / LANES..).zip(sums.chunks_exact_mut(self.rows)) {
                write(panel, sums);
            }
        }
        SCRATCH.set(scratch);
    }
}

/// Adds Σₖ rows\[r\]\[k\] · panel\[k\]\[c\] to sums\[r\]\[c\]. Only the first `columns` columns have to be right, which may be
/// more than the panel has.
#[with_simd]
pub(crate) fn add_products<'a, S: Simd>(
    rows: &'a [&'a [f32]],
    panel: &'a [Lanes],
    columns: usize,
    sums: &'a mut [Lanes],
) {
    add_with::<S>(rows, panel, columns, sums);
}

/// The same with the vectors of one instruction set.
#[inline(always)]
fn add_with<S: Simd>(rows: &[&[f32]], panel: &[Lanes], columns: usize, sums: &mut [Lanes]) {
    // The sums, two vectors of the panel and a number of a row fill 32 or 16 registers.
    if S::lanes32() == 16 || cfg!(target_arch = "aarch64") {
        add_rows::<S, 8>(rows, panel, columns, sums);
    } else {
        add_rows::<S, 6>(rows, panel, columns, sums);
    }
}

/// The same, `R` rows at a time.
#[inline(always)]
fn add_rows<S: Simd, const R: usize>(rows: &[&[f32]], panel: &[Lanes], columns: usize, sums: &mut [Lanes]) {
    let lanes = S::lanes32();
    for (rows, sums) in rows.chunks(R).zip(sums.chunks_mut(R)) {
        // Where rows are missing, the last stands for them.
        let rows = array::from_fn(|r| &rows[r.min(rows.len() - 1)][..panel.len()]);
        for first in (0..columns.min(LANES)).step_by(2 * lanes) {
            if columns - first > lanes {
                add_vectors::<S, R, 2>(rows, panel, first, sums);
            } else {
                add_vectors::<S, R, 1>(rows, panel, first, sums);
            }
        }
    }
}

/// The same for `V` vectors of the panel, from column `first`.
#[inline(always)]
fn add_vectors<S: Simd, const R: usize, const V: usize>(
    rows: [&[f32]; R],
    panel: &[Lanes],
    first: usize,
    sums: &mut [Lanes],
) {
    let lanes = S::lanes32();
    let mut products = [[0.0_f32.splat::<S>(); V]; R];
    for (k, numbers) in panel.iter().enumerate() {
        let numbers = &numbers[first..first + V * lanes];
        let numbers: [Vector<S, f32>; V] = array::from_fn(|v| load(&numbers[v * lanes..][..lanes]));
        for r in 0..R {
            let x = rows[r][k].splat::<S>();
            for v in 0..V {
                products[r][v] = x.mul_add(numbers[v], products[r][v]);
            }
        }
    }
    for (sums, products) in sums.iter_mut().zip(products) {
        for (v, product) in products.into_iter().enumerate() {
            let sums = &mut sums[first + v * lanes..][..lanes];
            let sum = load::<S>(sums) + product;
            bytemuck::cast_slice_mut(sums).copy_from_slice(bytemuck::bytes_of(&sum));
        }
    }
}

/// A vector of numbers, of which there are as many as it has lanes.
#[inline(always)]
fn load<S: Simd>(numbers: &[f32]) -> Vector<S, f32> {
    bytemuck::pod_read_unaligned(bytemuck::cast_slice(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_every_length_give_the_same_sums() {
        let number = |i: usize| ((i * 7919 + 11) % 10007) as f32 / 5003.0 - 1.0;
        let panel: Vec<Lanes> = (0..70).map(|k| array::from_fn(|lane| number(k * LANES + lane))).collect();
        // More columns than a panel has are those of the panels behind it.
        for (rows, columns) in [(1, 1), (5, 15), (6, 16), (7, 17), (8, 32), (9, 33), (31, 500)] {
            let numbers: Vec<Vec<f32>> =
                (0..rows).map(|r| (0..70).map(|k| number(r * 70 + k)).collect()).collect();
            let rows: Vec<&[f32]> = numbers.iter().map(Vec::as_slice).collect();
            let mut sums = vec![[1.0; LANES]; rows.len()];
            add_products(&rows, &panel, columns, &mut sums);
            for (row, sums) in rows.iter().zip(sums) {
                for (column, sum) in sums.into_iter().enumerate().take(columns) {
                    let terms = || row.iter().zip(&panel).map(|(x, numbers)| (x, numbers[column]));
                    let fused = terms().fold(0.0, |sum, (x, y)| x.mul_add(y, sum)) + 1.0;
                    let rounded = terms().fold(0.0, |sum, (x, y)| x * y + sum) + 1.0;
                    assert!(sum == fused || sum == rounded, "row of {columns} columns: {sum}, not {fused}");
                }
            }
        }
    }
}
