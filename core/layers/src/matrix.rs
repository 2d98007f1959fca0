//! Matrices whose rows lie one after another.

/// A matrix: each row is a slice of the numbers.
#[derive(Clone, Copy, Debug)]
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
}
