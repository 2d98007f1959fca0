//! Sums over the numbers of two embeddings, for all pairs of two sets: the kernel of every score.
//!
//! A sum runs over the numbers 0 … d − 1 in this order, one fused multiply-add each: sum ← round(x·y + sum). So it does
//! not depend on the block in which it is computed, on the number of threads, or on the machine, and the sum of (a, b)
//! equals that of (b, a). The lanes of a vector belong to different *items*, and each lane has a sum of its own. For
//! this, embeddings stand in panels of 32 items: number k of all 32, then number k + 1.
//!
//! A multiply-add of one query and one lane costs a load of the item's number. A tile of several queries uses each
//! loaded number once for each of them, and its sums stay in registers. What [`tile`] writes as loops over arrays, the
//! compiler turns into vector instructions: once for each instruction set of the machine's family, of which the best
//! is chosen when the program runs. A machine without a fused multiply-add computes it in software, slowly.

use std::ops::Range;

use macerator::{Simd, with_simd};

/// The number of items in a panel: two of the widest vectors.
pub(crate) const PANEL: usize = 32;

/// A number of an item, as it is kept.
pub(crate) trait Number: Copy + Default {
    /// What it is in the sums.
    fn value(self) -> f32;
}

impl Number for f32 {
    #[inline(always)]
    fn value(self) -> f32 {
        self
    }
}

impl Number for i8 {
    #[inline(always)]
    fn value(self) -> f32 {
        f32::from(self)
    }
}

/// What each pair of numbers adds to the sum of a pair of embeddings.
pub(crate) trait Term: Copy {
    /// `sum` with the term of x and y added, rounded once.
    fn add(x: f32, y: f32, sum: f32) -> f32;
}

/// x·y.
#[derive(Clone, Copy)]
pub(crate) struct Product;

impl Term for Product {
    #[inline(always)]
    fn add(x: f32, y: f32, sum: f32) -> f32 {
        x.mul_add(y, sum)
    }
}

/// (x − y)².
#[derive(Clone, Copy)]
pub(crate) struct SquaredDifference;

impl Term for SquaredDifference {
    #[inline(always)]
    fn add(x: f32, y: f32, sum: f32) -> f32 {
        let difference = x - y;
        difference.mul_add(difference, sum)
    }
}

/// N embeddings of d numbers in panels of 32 items. The last panel is filled up with zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels<N = f32> {
    dimension: usize,
    count: usize,
    /// [panels, d, 32].
    numbers: Vec<[N; PANEL]>,
}

impl<N: Number> Panels<N> {
    /// Panels of embeddings [N, `dimension`], row-major.
    pub(crate) fn new(dimension: usize, rows: &[N]) -> Self {
        /// The numbers of each item that are copied at a time: they stay in the first-level cache, as read and as written.
        const RUN: usize = 16;
        let mut numbers = vec![[N::default(); PANEL]; (rows.len() / dimension).div_ceil(PANEL) * dimension];
        for (rows, panel) in rows.chunks(PANEL * dimension).zip(numbers.chunks_exact_mut(dimension)) {
            for (run, panel) in (0..).step_by(RUN).zip(panel.chunks_mut(RUN)) {
                for (i, row) in rows.chunks_exact(dimension).enumerate() {
                    for (numbers, &number) in panel.iter_mut().zip(&row[run..]) {
                        numbers[i] = number;
                    }
                }
            }
        }
        Self { dimension, count: rows.len() / dimension, numbers }
    }

    /// N, the number of embeddings.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The first items, a multiple of 32.
    pub(crate) fn first(&self, count: usize) -> Self {
        debug_assert!(count.is_multiple_of(PANEL) && count <= self.count);
        let numbers = self.numbers[..count / PANEL * self.dimension].to_vec();
        Self { dimension: self.dimension, count, numbers }
    }

    /// Adds the items of others behind these, whose last panel is full.
    pub(crate) fn extend(&mut self, others: Self) {
        debug_assert!(self.count.is_multiple_of(PANEL) && self.dimension == others.dimension);
        self.numbers.extend(others.numbers);
        self.count += others.count;
    }

    /// As [`Panels::add_up`], with the items of some of the panels.
    pub(crate) fn add_up_some(
        &self,
        panels: Range<usize>,
        queries: &[f32],
        sums: &mut [f32],
        stride: usize,
        term: impl Term,
    ) {
        let count = self.count.min(panels.end * PANEL) - panels.start * PANEL;
        let numbers = &self.numbers[panels.start * self.dimension..panels.end * self.dimension];
        add_up(queries, self.dimension, numbers, count, sums, stride, term);
    }

    /// Σ term(x, y) of queries [Q, d], row-major, with all these items. The sums of a query are `stride` places behind
    /// those of the query before: [Q, `stride`], of which the first N columns are written.
    pub(crate) fn add_up(&self, queries: &[f32], sums: &mut [f32], stride: usize, term: impl Term) {
        if self.count > 0 && !queries.is_empty() {
            add_up(queries, self.dimension, &self.numbers, self.count, sums, stride, term);
        }
    }
}

/// The sums of all `queries` with all items of `panels`.
#[with_simd]
fn add_up<S: Simd, T: Term, N: Number>(
    queries: &[f32],
    dimension: usize,
    panels: &[[N; PANEL]],
    count: usize,
    sums: &mut [f32],
    stride: usize,
    term: T,
) {
    /// Some panels stay in the second-level cache, beside queries and sums, while all queries meet them: 256 KiB.
    const CACHED: usize = 256 << 10;
    let _ = term;
    let wide = S::lanes32() == 16;
    let cached = (CACHED / size_of::<[N; PANEL]>() / dimension).max(1) * dimension;
    for (part, panels) in panels.chunks(cached).enumerate() {
        let first = part * cached / dimension * PANEL;
        let mut done = 0;
        let mut groups = queries.chunks_exact(8 * dimension);
        for rows in &mut groups {
            for (panel, items) in panels.chunks_exact(dimension).zip((first..count).step_by(PANEL)) {
                let row = |q: usize| &rows[q * dimension..][..dimension];
                // The registers hold this number of sums.
                if wide {
                    let tile = tile::<T, N, 8, PANEL>(std::array::from_fn(row), panel, 0);
                    write(&tile, sums, [count, stride], done, items);
                } else {
                    for first in [0, 4] {
                        for lane in [0, PANEL / 2] {
                            let rows = std::array::from_fn(|q| row(first + q));
                            let tile = tile::<T, N, 4, { PANEL / 2 }>(rows, panel, lane);
                            write(&tile, sums, [count, stride], done + first, items + lane);
                        }
                    }
                }
            }
            done += 8;
        }
        for row in groups.remainder().chunks_exact(dimension) {
            for (panel, items) in panels.chunks_exact(dimension).zip((first..count).step_by(PANEL)) {
                write(&tile::<T, N, 1, PANEL>([row], panel, 0), sums, [count, stride], done, items);
            }
            done += 1;
        }
    }
}

/// The sums of Q queries with `LANES` items of a panel, from item `lane`.
#[inline(always)]
fn tile<T: Term, N: Number, const Q: usize, const LANES: usize>(
    queries: [&[f32]; Q],
    panel: &[[N; PANEL]],
    lane: usize,
) -> [[f32; LANES]; Q] {
    // Equal lengths, so that no access needs a check.
    let queries = queries.map(|query| &query[..panel.len()]);
    let mut sums = [[0.0; LANES]; Q];
    for (k, numbers) in panel.iter().enumerate() {
        // A loop, which the compiler vectorises, as it does not `from_fn`.
        let mut items = [0.0; LANES];
        for (item, number) in items.iter_mut().zip(&numbers[lane..lane + LANES]) {
            *item = number.value();
        }
        for (sums, query) in sums.iter_mut().zip(&queries) {
            let x = query[k];
            for (sum, y) in sums.iter_mut().zip(items) {
                *sum = T::add(x, y, *sum);
            }
        }
    }
    sums
}

/// Writes the sums of a tile, whose first query is `query` and whose first item is `item`, to the rows of all sums. The
/// last panel may have fewer items than the tile.
#[inline(always)]
fn write<const Q: usize, const LANES: usize>(
    tile: &[[f32; LANES]; Q],
    sums: &mut [f32],
    [count, stride]: [usize; 2],
    query: usize,
    item: usize,
) {
    // Half a panel may lie behind the last item.
    let items = LANES.min(count.saturating_sub(item));
    for (q, tile) in tile.iter().enumerate() {
        sums[(query + q) * stride + item.min(count)..][..items].copy_from_slice(&tile[..items]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(i: usize) -> f32 {
        ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0
    }

    fn rows(count: usize, dimension: usize, seed: usize) -> Vec<f32> {
        (seed..seed + count * dimension).map(number).collect()
    }

    /// The sums in the stated order, one pair after another.
    fn one_by_one<T: Term>(queries: [usize; 2], items: [usize; 2], dimension: usize, _: T) -> Vec<f32> {
        let [(count, seed), (item_count, item_seed)] = [(queries[0], queries[1]), (items[0], items[1])];
        let sum = |q: usize, i: usize| {
            (0..dimension).fold(0.0, |sum, k| {
                T::add(number(seed + q * dimension + k), number(item_seed + i * dimension + k), sum)
            })
        };
        (0..count).flat_map(|q| (0..item_count).map(move |i| sum(q, i))).collect()
    }

    #[test]
    fn every_sum_is_that_of_its_pair_alone_to_the_last_bit() {
        for (queries, items, dimension) in
            [(1, 1, 1), (8, 32, 7), (9, 33, 64), (13, 70, 21), (16, 5, 3), (7, 300, 2), (17, 8300, 9)]
        {
            let (a, b) = (rows(queries, dimension, 0), Panels::new(dimension, &rows(items, dimension, 5)));
            assert_eq!(b.len(), items);
            let sums = |term| {
                let mut sums = vec![f32::NAN; queries * (items + 3)];
                match term {
                    0 => b.add_up(&a, &mut sums, items + 3, Product),
                    _ => b.add_up(&a, &mut sums, items + 3, SquaredDifference),
                }
                let rows = sums.chunks_exact(items + 3);
                assert!(rows.clone().all(|row| row[items..].iter().all(|unwritten| unwritten.is_nan())));
                rows.flat_map(|row| &row[..items]).copied().collect::<Vec<_>>()
            };
            let expected = one_by_one([queries, 0], [items, 5], dimension, Product);
            assert!(sums(0) == expected, "{queries} {items} {dimension}");
            let expected = one_by_one([queries, 0], [items, 5], dimension, SquaredDifference);
            assert!(sums(1) == expected, "{queries} {items} {dimension}");
        }
    }

    #[test]
    fn whole_numbers_have_the_sums_of_their_values_and_panels_are_joined() {
        let codes: Vec<i8> = (0..75 * 9).map(|i| (i * 37 % 255) as u8 as i8).collect();
        let values: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
        let (queries, mut expected) = (rows(3, 9, 0), vec![0.0; 3 * 75]);
        Panels::new(9, &values).add_up(&queries, &mut expected, 75, Product);
        let mut panels = Panels::new(9, &codes[..64 * 9]);
        panels.extend(Panels::new(9, &codes[64 * 9..]));
        let mut sums = vec![0.0; 3 * 75];
        panels.add_up(&queries, &mut sums, 75, Product);
        assert_eq!(sums, expected);
        let mut some = vec![0.0; 3 * 43];
        panels.add_up_some(1..3, &queries, &mut some, 43, Product);
        for (some, all) in some.chunks(43).zip(expected.chunks(75)) {
            assert_eq!(some, &all[32..]);
        }
    }

    #[test]
    fn nothing_has_no_sums() {
        Panels::<f32>::new(3, &[]).add_up(&rows(2, 3, 0), &mut [], 0, Product);
        Panels::new(3, &rows(4, 3, 0)).add_up(&[], &mut [], 4, Product);
    }
}
