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

use crate::matrix::Matrix;
use crate::threads;
use crate::vectors::{load, store};

/// The columns of a panel: two of the widest vectors.
pub(crate) const LANES: usize = 32;

/// The terms that are added up at a time. A panel of this depth stays in the nearest cache.
pub(crate) const DEPTH: usize = 256;

/// The panels that some terms of all rows meet while these are in the second-level cache.
pub(crate) const PANELS: usize = 8;

/// Rows that are divided among threads are divided at a multiple of this number: a machine multiplies 4, 6 or 8 rows at a
/// time.
pub(crate) const ROWS: usize = 24;

/// One number of each column of a panel.
pub(crate) type Lanes = [f32; LANES];

/// The rows of a product [R, K].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows<'a> {
    /// The rows of a matrix [R, K].
    Of(Matrix<'a>),
    /// The columns of a matrix [K, R].
    Across(Matrix<'a>),
}

impl<'a> Rows<'a> {
    /// R.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Of(matrix) => matrix.rows,
            Self::Across(matrix) => matrix.columns,
        }
    }

    /// K.
    fn terms(self) -> usize {
        match self {
            Self::Of(matrix) => matrix.columns,
            Self::Across(matrix) => matrix.rows,
        }
    }

    /// Some of the rows, from `first`.
    pub(crate) fn band(self, first: usize, count: usize) -> Self {
        match self {
            Self::Of(matrix) => Self::Of(matrix.band(first, count)),
            Self::Across(matrix) => {
                Self::Across(Matrix { numbers: &matrix.numbers[first..], columns: count, ..matrix })
            }
        }
    }
}

/// The columns of a product [K, C].
pub(crate) trait Columns {
    /// C.
    fn count(&self) -> usize;

    /// Some terms of a panel, from where they are or written to `room`, which has room for `DEPTH` of them. What stands
    /// behind the last column has no meaning.
    fn panel<'s>(&'s self, panel: usize, terms: Range<usize>, room: &'s mut [Lanes]) -> &'s [Lanes];
}

/// Columns [K, C] in panels: [panels, K, 32].
#[derive(Debug)]
pub(crate) struct Packed {
    panels: Vec<Lanes>,
    terms: usize,
    count: usize,
}

impl Packed {
    /// The columns of a matrix [K, C].
    pub(crate) fn new(matrix: Matrix) -> Self {
        let Matrix { rows: terms, columns: count, .. } = matrix;
        let panels = threads::collect(count.div_ceil(LANES) * terms, |i| {
            let numbers = &matrix.row(i % terms)[i / terms * LANES..];
            match numbers.first_chunk() {
                Some(numbers) => *numbers,
                None => array::from_fn(|lane| numbers.get(lane).copied().unwrap_or(0.0)),
            }
        });
        Self { panels, terms, count }
    }

    /// The rows of a matrix [C, K].
    pub(crate) fn transposed(matrix: Matrix) -> Self {
        let Matrix { rows: count, columns: terms, .. } = matrix;
        let mut panels = vec![[0.0; LANES]; count.div_ceil(LANES) * terms];
        threads::each_chunk(&mut panels, terms, |i, panel| {
            for (lane, row) in (i * LANES..count).take(LANES).enumerate() {
                for (lanes, number) in panel.iter_mut().zip(matrix.row(row)) {
                    lanes[lane] = *number;
                }
            }
        });
        Self { panels, terms, count }
    }
}

impl Columns for Packed {
    fn count(&self) -> usize {
        self.count
    }

    fn panel<'s>(&'s self, panel: usize, terms: Range<usize>, _: &'s mut [Lanes]) -> &'s [Lanes] {
        &self.panels[panel * self.terms..][terms]
    }
}

/// Memory of a thread that is kept from one product to the next.
#[derive(Default)]
struct Scratch {
    room: Vec<Lanes>,
    sums: Vec<Lanes>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// The sums of all rows with some panels, [panels, R, 32]. Behind the last column they have no meaning.
pub(crate) struct Block<'a> {
    sums: &'a mut [Lanes],
    rows: usize,
}

impl Block<'_> {
    /// The sums of a row, panel by panel. A result that is written row by row is written in long runs.
    #[inline(always)]
    pub(crate) fn row(&mut self, row: usize) -> impl Iterator<Item = &mut Lanes> {
        self.sums.iter_mut().skip(row).step_by(self.rows)
    }
}

/// Calls `write` with the number of the first panel and the sums of each block.
pub(crate) fn multiply(rows: Rows, columns: &impl Columns, mut write: impl FnMut(usize, Block)) {
    // While a thread waits it may begin other work, which then finds nothing here and makes its own.
    let mut scratch = SCRATCH.take();
    let Scratch { room, sums } = &mut scratch;
    room.resize(DEPTH, [0.0; LANES]);
    let panels = columns.count().div_ceil(LANES);
    let mut slices = Vec::with_capacity(rows.count());
    for first in (0..panels).step_by(PANELS) {
        sums.resize((panels - first).min(PANELS) * rows.count(), [0.0; LANES]);
        if rows.terms() == 0 {
            sums.fill([0.0; LANES]);
        }
        for start in (0..rows.terms()).step_by(DEPTH) {
            let terms = start..(start + DEPTH).min(rows.terms());
            slices.clear();
            if let Rows::Of(matrix) = rows {
                slices.extend((0..matrix.rows).map(|row| &matrix.row(row)[terms.clone()]));
            }
            // A panel stays in the nearest cache while all rows pass it, and the rows in the second for all panels.
            for (panel, sums) in (first..).zip(sums.chunks_exact_mut(rows.count())) {
                let numbers = columns.panel(panel, terms.clone(), room);
                let width = columns.count() - panel * LANES;
                match rows {
                    Rows::Of(_) => add_products(&slices, numbers, width, sums, start > 0),
                    Rows::Across(matrix) => {
                        add_products_across(
                            &matrix.numbers[start * matrix.pitch..],
                            matrix.pitch,
                            numbers,
                            width,
                            sums,
                            start > 0,
                        );
                    }
                }
            }
        }
        write(first, Block { sums, rows: rows.count() });
    }
    SCRATCH.set(scratch);
}

/// Writes the sums of a row with a panel, of which the last may lie behind the last column.
#[inline(always)]
pub(crate) fn write(sums: &Lanes, row: &mut [f32]) {
    match row.first_chunk_mut() {
        Some(row) => *row = *sums,
        // A loop is quicker than a call that copies some numbers.
        None => row.iter_mut().zip(sums).for_each(|(number, sum)| *number = *sum),
    }
}

/// Adds the sums of a row with a panel.
#[inline(always)]
pub(crate) fn add(sums: &Lanes, row: &mut [f32]) {
    match row.first_chunk_mut::<LANES>() {
        Some(row) => row.iter_mut().zip(sums).for_each(|(number, sum)| *number += *sum),
        None => row.iter_mut().zip(sums).for_each(|(number, sum)| *number += *sum),
    }
}

/// Computes Σₖ rows\[r\]\[k\] · panel\[k\]\[c\], and adds it to sums\[r\]\[c\] if it is to be `added`, else writes it there. Only
/// the first `columns` columns have to be right, which may be more than the panel has.
#[with_simd]
pub(crate) fn add_products<'a, S: Simd>(
    rows: &'a [&'a [f32]],
    panel: &'a [Lanes],
    columns: usize,
    sums: &'a mut [Lanes],
    added: bool,
) {
    match rows_at_once::<S>() {
        8 => add_slices::<S, 8>(rows, panel, columns, sums, added),
        6 => add_slices::<S, 6>(rows, panel, columns, sums, added),
        _ => add_slices::<S, 4>(rows, panel, columns, sums, added),
    }
}

/// The same for rows of which number k of row r is `numbers[k · pitch + r]`.
#[with_simd]
fn add_products_across<'a, S: Simd>(
    numbers: &'a [f32],
    pitch: usize,
    panel: &'a [Lanes],
    columns: usize,
    sums: &'a mut [Lanes],
    added: bool,
) {
    match rows_at_once::<S>() {
        8 => add_across::<S, 8>(numbers, pitch, panel, columns, sums, added),
        6 => add_across::<S, 6>(numbers, pitch, panel, columns, sums, added),
        _ => add_across::<S, 4>(numbers, pitch, panel, columns, sums, added),
    }
}

/// The rows whose sums stay in registers: with two vectors of the panel and a number of a row they fill 32 or 16. The
/// compilers of browsers keep one register of 16 for themselves, and a product without a fused multiply-add takes one, so
/// that six rows do not fit: they are half as fast as four.
#[inline(always)]
fn rows_at_once<S: Simd>() -> usize {
    if S::lanes32() == 16 || cfg!(target_arch = "aarch64") {
        8
    } else if cfg!(target_arch = "wasm32") {
        4
    } else {
        6
    }
}

/// [`add_products`], `R` rows at a time.
#[inline(always)]
fn add_slices<S: Simd, const R: usize>(
    rows: &[&[f32]],
    panel: &[Lanes],
    columns: usize,
    sums: &mut [Lanes],
    added: bool,
) {
    let terms = panel.len();
    for (rows, sums) in rows.chunks(R).zip(sums.chunks_mut(R)) {
        // Where rows are missing, the last stands for them.
        let rows: [&[f32]; R] = array::from_fn(|r| &rows[r.min(rows.len() - 1)][..terms]);
        add_rows::<S, R>(|k, r| rows[r][k], panel, columns, sums, added);
    }
}

/// [`add_products_across`], `R` rows at a time.
#[inline(always)]
fn add_across<S: Simd, const R: usize>(
    numbers: &[f32],
    pitch: usize,
    panel: &[Lanes],
    columns: usize,
    sums: &mut [Lanes],
    added: bool,
) {
    for (group, sums) in sums.chunks_mut(R).enumerate() {
        let numbers = &numbers[group * R..];
        if sums.len() == R {
            let row =
                |k: usize| -> &[f32; R] { numbers[k * pitch..].first_chunk().expect("numbers of all rows") };
            add_rows::<S, R>(|k, r| row(k)[r], panel, columns, sums, added);
        } else {
            let last = sums.len() - 1;
            add_rows::<S, R>(|k, r| numbers[k * pitch + r.min(last)], panel, columns, sums, added);
        }
    }
}

/// Computes or adds the products of at most `R` rows. Number k of row r is `row(k, r)`.
#[inline(always)]
fn add_rows<S: Simd, const R: usize>(
    row: impl Fn(usize, usize) -> f32,
    panel: &[Lanes],
    columns: usize,
    sums: &mut [Lanes],
    added: bool,
) {
    let lanes = S::lanes32();
    for first in (0..columns.min(LANES)).step_by(2 * lanes) {
        if columns - first > lanes {
            add_vectors::<S, R, 2>(&row, panel, first, sums, added);
        } else {
            add_vectors::<S, R, 1>(&row, panel, first, sums, added);
        }
    }
}

/// The same for `V` vectors of the panel, from column `first`.
#[inline(always)]
fn add_vectors<S: Simd, const R: usize, const V: usize>(
    row: &impl Fn(usize, usize) -> f32,
    panel: &[Lanes],
    first: usize,
    sums: &mut [Lanes],
    added: bool,
) {
    let lanes = S::lanes32();
    let mut products = [[0.0_f32.splat::<S>(); V]; R];
    for (k, numbers) in panel.iter().enumerate() {
        let numbers = &numbers[first..first + V * lanes];
        let numbers: [Vector<S, f32>; V] = array::from_fn(|v| load(&numbers[v * lanes..][..lanes]));
        for (r, products) in products.iter_mut().enumerate() {
            let x = row(k, r).splat::<S>();
            for (product, numbers) in products.iter_mut().zip(numbers) {
                *product = x.mul_add(numbers, *product);
            }
        }
    }
    for (sums, products) in sums.iter_mut().zip(products) {
        for (v, product) in products.into_iter().enumerate() {
            let sums = &mut sums[first + v * lanes..][..lanes];
            let sum = if added { load::<S>(sums) + product } else { product };
            store(sum, sums);
        }
    }
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
            add_products(&rows, &panel, columns, &mut sums, true);
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
