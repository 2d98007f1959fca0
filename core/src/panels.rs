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
const PANEL: usize = 32;

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
pub(crate) struct Panels {
    dimension: usize,
    count: usize,
    /// [panels, d, 32].
    numbers: Vec<[f32; PANEL]>,
}

impl Panels {
    /// Panels for `count` embeddings of `dimension` numbers, above 0; all are 0.
    pub(crate) fn new(count: usize, dimension: usize) -> Self {
        Self { dimension, count, numbers: vec![[0.0; PANEL]; count.div_ceil(PANEL) * dimension] }
    }

    /// Sets embedding `i`.
    pub(crate) fn set(&mut self, i: usize, embedding: impl Iterator<Item = f32>) {
        let panel = &mut self.numbers[i / PANEL * self.dimension..][..self.dimension];
        for (numbers, number) in panel.iter_mut().zip(embedding) {
            numbers[i % PANEL] = number;
        }
    }

    /// Writes embedding `i` to `row`.
    fn copy(&self, i: usize, row: &mut [f32]) {
        let panel = &self.numbers[i / PANEL * self.dimension..][..self.dimension];
        for (number, numbers) in row.iter_mut().zip(panel) {
            *number = numbers[i % PANEL];
        }
    }

    /// Σ term(x, y) of a range of queries with all these items: [queries, N], row-major.
    pub(crate) fn sums(&self, queries: &Panels, range: Range<usize>, term: impl Term) -> Vec<f32> {
        let mut rows = vec![0.0; range.len() * self.dimension];
        for (query, row) in range.clone().zip(rows.chunks_exact_mut(self.dimension.max(1))) {
            queries.copy(query, row);
        }
        let mut sums = vec![0.0; range.len() * self.count];
        if !sums.is_empty() {
            add_up(&rows, self.dimension, &self.numbers, self.count, &mut sums, term);
        }
        sums
    }
}

/// The sums of all `queries` with all items of `panels`.
#[with_simd]
fn add_up<S: Simd, T: Term>(
    queries: &[f32],
    dimension: usize,
    panels: &[[f32; PANEL]],
    count: usize,
    sums: &mut [f32],
    term: T,
) {
    /// Some panels stay in the second-level cache while all queries meet them: 512 KiB.
    const CACHED: usize = (512 << 10) / size_of::<[f32; PANEL]>();
    let _ = term;
    let wide = S::lanes32() == 16;
    let cached = (CACHED / dimension).max(1) * dimension;
    for (part, panels) in panels.chunks(cached).enumerate() {
        let first = part * cached / dimension * PANEL;
        let mut done = 0;
        let mut groups = queries.chunks_exact(8 * dimension);
        for rows in &mut groups {
            for (panel, items) in panels.chunks_exact(dimension).zip((first..count).step_by(PANEL)) {
                let row = |q: usize| &rows[q * dimension..][..dimension];
                // As many sums as registers hold.
                if wide {
                    let tile = tile::<T, 8, PANEL>(std::array::from_fn(row), panel, 0);
                    write(&tile, sums, count, done, items);
                } else {
                    for first in [0, 4] {
                        for lane in [0, PANEL / 2] {
                            let rows = std::array::from_fn(|q| row(first + q));
                            let tile = tile::<T, 4, { PANEL / 2 }>(rows, panel, lane);
                            write(&tile, sums, count, done + first, items + lane);
                        }
                    }
                }
            }
            done += 8;
        }
        for row in groups.remainder().chunks_exact(dimension) {
            for (panel, items) in panels.chunks_exact(dimension).zip((first..count).step_by(PANEL)) {
                write(&tile::<T, 1, PANEL>([row], panel, 0), sums, count, done, items);
            }
            done += 1;
        }
    }
}

/// The sums of Q queries with `LANES` items of a panel, from item `lane`.
#[inline(always)]
fn tile<T: Term, const Q: usize, const LANES: usize>(
    queries: [&[f32]; Q],
    panel: &[[f32; PANEL]],
    lane: usize,
) -> [[f32; LANES]; Q] {
    // Equal lengths, so that no access needs a check.
    let queries = queries.map(|query| &query[..panel.len()]);
    let mut sums = [[0.0; LANES]; Q];
    for (k, numbers) in panel.iter().enumerate() {
        let items = &numbers[lane..lane + LANES];
        for (sums, query) in sums.iter_mut().zip(queries) {
            let x = query[k];
            for (sum, &y) in sums.iter_mut().zip(items) {
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
    count: usize,
    query: usize,
    item: usize,
) {
    // Half a panel may lie behind the last item.
    let items = LANES.min(count.saturating_sub(item));
    for (q, tile) in tile.iter().enumerate() {
        sums[(query + q) * count + item.min(count)..][..items].copy_from_slice(&tile[..items]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(i: usize) -> f32 {
        ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0
    }

    fn panels(count: usize, dimension: usize, seed: usize) -> Panels {
        let mut panels = Panels::new(count, dimension);
        for i in 0..count {
            panels.set(i, (0..dimension).map(|k| number(seed + i * dimension + k)));
        }
        panels
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
            let (a, b) = (panels(queries, dimension, 0), panels(items, dimension, 5));
            let expected = one_by_one([queries, 0], [items, 5], dimension, Product);
            assert!(b.sums(&a, 0..queries, Product) == expected, "{queries} {items} {dimension}");
            let expected = one_by_one([queries, 0], [items, 5], dimension, SquaredDifference);
            assert!(b.sums(&a, 0..queries, SquaredDifference) == expected, "{queries} {items} {dimension}");
        }
    }

    #[test]
    fn nothing_has_no_sums() {
        assert!(panels(0, 3, 0).sums(&panels(2, 3, 0), 0..2, Product).is_empty());
        assert!(panels(4, 3, 0).sums(&panels(2, 3, 0), 1..1, Product).is_empty());
    }
}
