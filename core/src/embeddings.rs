//! The embeddings of a set of items, which similarity, search and evaluation read.

use std::fmt::Debug;

use crate::{Error, Kind, Result};

/// N embeddings of d numbers each, read by position: [`Embeddings`] in memory, or a file that is larger than memory.
#[expect(clippy::len_without_is_empty, reason = "embeddings are a column of a data set, not a container")]
pub trait Rows: Debug + Sync {
    /// N, the number of embeddings.
    fn len(&self) -> usize;

    /// d, the length of an embedding; at least 1.
    fn dimension(&self) -> usize;

    /// Fills `rows`, [n, d], row-major, with the embeddings of the items from `first` on. Several threads call it at
    /// once, several times for the same items; each time it gives the same numbers.
    ///
    /// # Errors
    ///
    /// The numbers cannot be read.
    ///
    /// # Panics
    ///
    /// There are no such items.
    fn read(&self, first: usize, rows: &mut [f32]) -> Result<()>;
}

/// Whether there are at least two embeddings and all are the same numbers. Their scores are then equal, and a ranking is
/// decided by the policy of ties alone. Reads little more than up to the first one that differs.
///
/// # Errors
///
/// The numbers cannot be read.
pub fn are_all_equal(rows: &dyn Rows) -> Result<bool> {
    const BLOCK: usize = 1024;
    let dimension = rows.dimension();
    if rows.len() < 2 {
        return Ok(false);
    }
    let mut first = vec![0.0; dimension];
    rows.read(0, &mut first)?;
    // Mostly the second one differs.
    let (mut start, mut end) = (1, 2);
    while start < rows.len() {
        let mut block = vec![0.0; (end - start) * dimension];
        rows.read(start, &mut block)?;
        if block.chunks(dimension).any(|row| row != first) {
            return Ok(false);
        }
        (start, end) = (end, rows.len().min(end + BLOCK));
    }
    Ok(true)
}

/// N embeddings of d finite numbers each: [N, d], row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    dimension: usize,
    values: Vec<f32>,
}

impl Embeddings {
    /// Embeddings from row-major values.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`] when d is 0, when the values do not fill whole rows, or when one is NaN or infinite. The
    /// error names the rows, counted from 0, and the column of the first.
    pub fn new(dimension: usize, values: Vec<f32>) -> Result<Self> {
        if dimension == 0 || !values.len().is_multiple_of(dimension) {
            return Err(Error::new(
                Kind::Embeddings,
                format!("{} numbers do not fill rows of {dimension}", values.len()),
                "give a matrix with one embedding per row",
            ));
        }
        let mut flaws = Flaws::default();
        flaws.find(dimension, 0, &values);
        flaws.refuse("")?;
        Ok(Self { dimension, values })
    }

    /// N, the number of embeddings.
    #[expect(clippy::len_without_is_empty, reason = "embeddings are a column of a data set, not a container")]
    pub fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    /// d, the length of an embedding.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The embedding of item `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.dimension..][..self.dimension]
    }

    /// All numbers, [N, d], row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

impl Rows for Embeddings {
    fn len(&self) -> usize {
        self.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> Result<()> {
        rows.copy_from_slice(&self.values[first * self.dimension..][..rows.len()]);
        Ok(())
    }
}

/// The embeddings that are not finite.
#[derive(Debug, Default)]
pub(crate) struct Flaws {
    /// The row, the column and the first number that is not finite.
    first: Option<(usize, usize, f32)>,
    /// The later rows that the message names.
    others: Vec<usize>,
    /// The number of rows after that of `first`.
    more: usize,
}

impl Flaws {
    const NAMED: usize = 10;

    /// Looks for more in the rows from `first` on, which stand behind those that were looked at before.
    pub(crate) fn find(&mut self, dimension: usize, first: usize, values: &[f32]) {
        if values.iter().all(|value| value.is_finite()) {
            return;
        }
        for (row, values) in (first..).zip(values.chunks(dimension)) {
            let Some(column) = values.iter().position(|value| !value.is_finite()) else { continue };
            self.add(Flaws { first: Some((row, column, values[column])), ..Flaws::default() });
        }
    }

    /// Adds those of later rows.
    pub(crate) fn add(&mut self, later: Flaws) {
        let Some(first) = later.first else { return };
        if self.first.is_none() {
            *self = later;
            return;
        }
        self.more += 1 + later.more;
        self.others.extend([first.0].into_iter().chain(later.others));
        self.others.truncate(Self::NAMED);
    }

    /// The error that names them; `Ok` if there are none. `set` says whose they are: "query ", "gallery ", or nothing.
    pub(crate) fn refuse(self, set: &str) -> Result<()> {
        let Some((row, column, value)) = self.first else { return Ok(()) };
        let more = match &self.others[..] {
            [] => String::new(),
            [row] => format!("; row {row} is not finite either"),
            rows => {
                let listed: Vec<String> = rows.iter().map(usize::to_string).collect();
                let dots = if self.more > listed.len() { ", …" } else { "" };
                format!("; {} more rows are not finite: {}{dots}", self.more, listed.join(", "))
            }
        };
        Err(Error::new(
            Kind::Embeddings,
            format!("the {set}embedding in row {row} has {value} in column {column}{more}"),
            "leave out these items, or find out why their embeddings diverged",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_are_all_equal_up_to_the_last_one() {
        for count in [2, 3, 1024, 1026, 3000] {
            let mut values = [0.5, -0.25].repeat(count);
            assert!(are_all_equal(&Embeddings::new(2, values.clone()).unwrap()).unwrap(), "{count}");
            *values.last_mut().unwrap() = 0.25;
            assert!(!are_all_equal(&Embeddings::new(2, values).unwrap()).unwrap(), "{count}");
        }
        assert!(
            !are_all_equal(&Embeddings::new(2, vec![1.0, 2.0]).unwrap()).unwrap(),
            "one has nothing to be equal to"
        );
    }

    #[test]
    fn embeddings_that_are_not_finite_rows_are_refused() {
        let error = Embeddings::new(2, vec![0.0, 1.0, f32::NAN, 0.0]).unwrap_err();
        assert!(error.message().contains("row 1 has NaN in column 0"), "{error}");
        let error = Embeddings::new(1, vec![f32::NAN, 0.0, f32::INFINITY, f32::NAN]).unwrap_err();
        assert!(error.message().ends_with("column 0; 2 more rows are not finite: 2, 3"), "{error}");
        let error = Embeddings::new(1, vec![f32::NAN; 13]).unwrap_err();
        assert!(
            error.message().ends_with("12 more rows are not finite: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"),
            "{error}"
        );
        assert!(Embeddings::new(2, vec![0.0, f32::INFINITY]).is_err());
        assert!(Embeddings::new(2, vec![0.0; 3]).is_err());
        assert!(Embeddings::new(0, vec![]).is_err());
    }
}
