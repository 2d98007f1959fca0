//! Rows of numbers for all proxies, in whole vectors.

use super::Distances;

/// The proxies that one vector of a loop has: two of the widest.
pub(super) const LANES: usize = 32;

/// A number for each item and proxy. The last vector of a row is filled up.
pub(super) struct Rows {
    vectors: Vec<[f32; LANES]>,
    /// The vectors of a row.
    pub(super) per_row: usize,
}

impl Rows {
    /// The numbers of these distances. Rows are filled up with `outside`.
    pub(super) fn new(distances: Distances, outside: f32, number: impl Fn(f32) -> f32) -> Self {
        let per_row = distances.proxies.div_ceil(LANES);
        let items = distances.values.len() / distances.proxies;
        let mut vectors = vec![[outside; LANES]; items * per_row];
        let rows = vectors.chunks_exact_mut(per_row).zip(distances.values.chunks(distances.proxies));
        for (row, distances) in rows {
            row.as_flattened_mut().iter_mut().zip(distances).for_each(|(to, from)| *to = number(*from));
        }
        Self { vectors, per_row }
    }

    /// The numbers of an item.
    #[inline(always)]
    pub(super) fn row(&self, item: usize) -> &[[f32; LANES]] {
        &self.vectors[item * self.per_row..][..self.per_row]
    }
}

/// The smaller of two numbers that are not NaN. `f32::min` also cares for NaN, which costs three instructions.
#[inline(always)]
pub(super) fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger of two numbers that are not NaN.
#[inline(always)]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
