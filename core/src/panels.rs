//! Sums over the numbers of two embeddings, for all pairs of two sets: the kernel of every score.
//!
//! A sum runs over the numbers 0 … d − 1 in this order, one fused multiply-add each: sum ← round(x·y + sum). So it does
//! not depend on the block in which it is computed, on the number of threads, or on the machine, and the sum of (a, b)
//! equals that of (b, a). The lanes of a vector belong to different *items*, and each lane has a sum of its own. For
//! this, embeddings stand in panels of 32 items: number k of all 32, then number k + 1.
//!
//! A multiply-add of one query and one lane costs a load of the item's number. A tile of several queries uses each
//! loaded number once for each of them, and its sums stay in registers. Its queries are stored like the items of a panel,
//! number after number, so that it reads memory in two places only. What [`tile`] writes as loops over arrays, the compiler
//! turns into vector instructions: once for each instruction set of the machine's family, of which the best is chosen when
//! the program runs. A machine without a fused multiply-add computes it in software, slowly.

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
        queries: &Queries,
        sums: &mut [f32],
        stride: usize,
        term: impl Term,
    ) {
        let count = self.count.min(panels.end * PANEL) - panels.start * PANEL;
        let numbers = &self.numbers[panels.start * self.dimension..panels.end * self.dimension];
        add_up(queries, numbers, count, sums, stride, term);
    }

    /// Σ term(x, y) of the queries with all these items. The sums of a query are `stride` places behind those of the
    /// query before: [Q, `stride`], of which the first N columns are written.
    pub(crate) fn add_up(&self, queries: &Queries, sums: &mut [f32], stride: usize, term: impl Term) {
        if self.count > 0 && queries.count > 0 {
            add_up(queries, &self.numbers, self.count, sums, stride, term);
        }
    }
}

/// Q queries of d numbers, in the order in which tiles read them.
///
/// They are stored in groups, each for one tile: number k of all queries of a group, then number k + 1. The last group is
/// filled up with zeros. A single query is a group of one.
#[derive(Clone, Debug)]
pub(crate) struct Queries {
    dimension: usize,
    count: usize,
    /// [groups, d, group].
    numbers: Vec<f32>,
}

impl Queries {
    /// Groups of queries [Q, `dimension`], row-major.
    pub(crate) fn new(dimension: usize, rows: &[f32]) -> Self {
        Self::in_groups(if rows.len() == dimension { 1 } else { group_size() }, dimension, rows)
    }

    fn in_groups(size: usize, dimension: usize, rows: &[f32]) -> Self {
        let count = rows.len() / dimension;
        let mut numbers = vec![0.0; count.next_multiple_of(size) * dimension];
        for (rows, group) in rows.chunks(size * dimension).zip(numbers.chunks_exact_mut(size * dimension)) {
            for (query, row) in rows.chunks_exact(dimension).enumerate() {
                for (place, &number) in group[query..].iter_mut().step_by(size).zip(row) {
                    *place = number;
                }
            }
        }
        Self { dimension, count, numbers }
    }
}

/// The queries of a tile where vectors have 16 lanes.
const WIDE_GROUP: usize = 8;
/// The queries of a tile elsewhere.
const GROUP: usize = 6;
/// A number of queries that fills tiles of either size.
pub(crate) const WHOLE_TILES: usize = 24;

/// Whether vectors have 16 lanes.
#[inline(always)]
fn is_wide<S: Simd>() -> bool {
    S::lanes32() == 16
}

/// The number of queries of a group.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn group_size<S: Simd>() -> usize {
    if is_wide::<S>() { WIDE_GROUP } else { GROUP }
}

/// The sums of all `queries` with all items of `panels`.
#[with_simd]
fn add_up<S: Simd, T: Term, N: Number>(
    queries: &Queries,
    panels: &[[N; PANEL]],
    count: usize,
    sums: &mut [f32],
    stride: usize,
    term: T,
) {
    let _ = term;
    // The registers hold the sums of a tile.
    if queries.count == 1 {
        add_up_tiles::<T, N, 1, PANEL>(queries, panels, count, sums, stride);
    } else if is_wide::<S>() {
        add_up_tiles::<T, N, WIDE_GROUP, PANEL>(queries, panels, count, sums, stride);
    } else {
        add_up_tiles::<T, N, GROUP, { PANEL / 2 }>(queries, panels, count, sums, stride);
    }
}

/// As [`add_up`], in tiles of Q queries and `LANES` items.
#[inline(always)]
fn add_up_tiles<T: Term, N: Number, const Q: usize, const LANES: usize>(
    queries: &Queries,
    panels: &[[N; PANEL]],
    count: usize,
    sums: &mut [f32],
    stride: usize,
) {
    /// Some panels stay in the second-level cache, beside queries and sums, while all queries meet them: 256 KiB.
    const CACHED: usize = 256 << 10;
    let dimension = queries.dimension;
    let cached = (CACHED / size_of::<[N; PANEL]>() / dimension).max(1);
    let groups = queries.numbers.as_chunks::<Q>().0;
    for (panels, first) in panels.chunks(cached * dimension).zip((0..count).step_by(cached * PANEL)) {
        for (group, sums) in groups.chunks_exact(dimension).zip(sums.chunks_mut(Q * stride)) {
            for (panel, item) in panels.chunks_exact(dimension).zip((first..count).step_by(PANEL)) {
                for lane in (0..PANEL).step_by(LANES) {
                    let columns = (item + lane).min(count)..count;
                    write(&tile::<T, N, Q, LANES>(group, panel, lane), sums, stride, columns);
                }
            }
        }
    }
}

/// The sums of Q queries with `LANES` items of a panel, from item `lane`.
#[inline(always)]
fn tile<T: Term, N: Number, const Q: usize, const LANES: usize>(
    queries: &[[f32; Q]],
    panel: &[[N; PANEL]],
    lane: usize,
) -> [[f32; LANES]; Q] {
    let mut sums = [[0.0; LANES]; Q];
    for (queries, numbers) in queries.iter().zip(panel) {
        // A loop, which the compiler vectorises, as it does not `from_fn`.
        let mut items = [0.0; LANES];
        for (item, number) in items.iter_mut().zip(&numbers[lane..lane + LANES]) {
            *item = number.value();
        }
        for (sums, &x) in sums.iter_mut().zip(queries) {
            for (sum, y) in sums.iter_mut().zip(items) {
                *sum = T::add(x, y, *sum);
            }
        }
    }
    sums
}

/// Writes the first sums of a tile into these columns of the rows of its queries. A tile may have more queries than there
/// are rows, and more items than columns.
#[inline(always)]
fn write<const Q: usize, const LANES: usize>(
    tile: &[[f32; LANES]; Q],
    sums: &mut [f32],
    stride: usize,
    columns: Range<usize>,
) {
    let items = LANES.min(columns.len());
    for (sums, tile) in sums.chunks_mut(stride).zip(tile) {
        sums[columns.start..][..items].copy_from_slice(&tile[..items]);
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
            let a = Queries::new(dimension, &rows(queries, dimension, 0));
            let b = Panels::new(dimension, &rows(items, dimension, 5));
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
        let (queries, mut expected) = (Queries::new(9, &rows(3, 9, 0)), vec![0.0; 3 * 75]);
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
    fn tiles_for_machines_of_every_width_find_the_same_sums() {
        let (queries, items) = (rows(13, 21, 0), Panels::new(21, &rows(70, 21, 5)));
        let wide = Queries::in_groups(WIDE_GROUP, 21, &queries);
        let narrow = Queries::in_groups(GROUP, 21, &queries);
        let [mut wide_sums, mut narrow_sums] = [(); 2].map(|()| vec![0.0; 13 * 70]);
        add_up_tiles::<Product, f32, WIDE_GROUP, PANEL>(&wide, &items.numbers, 70, &mut wide_sums, 70);
        add_up_tiles::<Product, f32, GROUP, { PANEL / 2 }>(&narrow, &items.numbers, 70, &mut narrow_sums, 70);
        let expected = one_by_one([13, 0], [70, 5], 21, Product);
        assert_eq!(wide_sums, expected);
        assert_eq!(narrow_sums, expected);
    }

    #[test]
    fn nothing_has_no_sums() {
        Panels::<f32>::new(3, &[]).add_up(&Queries::new(3, &rows(2, 3, 0)), &mut [], 0, Product);
        Panels::new(3, &rows(4, 3, 0)).add_up(&Queries::new(3, &[]), &mut [], 4, Product);
    }
}
