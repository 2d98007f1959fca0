//! The embeddings of a set of items, which similarity, search and evaluation read.

use crate::{Error, Kind, Result};

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
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (place / dimension, place % dimension);
            let rows = values.chunks(dimension).enumerate().skip(row + 1);
            let others: Vec<usize> = rows
                .filter(|(_, row)| row.iter().any(|value| !value.is_finite()))
                .map(|(row, _)| row)
                .collect();
            let more = match &others[..] {
                [] => String::new(),
                [row] => format!("; row {row} is not finite either"),
                rows => {
                    let listed: Vec<String> = rows.iter().take(10).map(usize::to_string).collect();
                    let dots = if rows.len() > listed.len() { ", …" } else { "" };
                    format!("; {} more rows are not finite: {}{dots}", rows.len(), listed.join(", "))
                }
            };
            return Err(Error::new(
                Kind::Embeddings,
                format!("the embedding in row {row} has {} in column {column}{more}", values[place]),
                "leave out these items, or find out why their embeddings diverged",
            ));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_that_are_not_finite_rows_are_refused() {
        let error = Embeddings::new(2, vec![0.0, 1.0, f32::NAN, 0.0]).unwrap_err();
        assert!(error.message().contains("row 1 has NaN in column 0"), "{error}");
        let error = Embeddings::new(1, vec![f32::NAN, 0.0, f32::INFINITY, f32::NAN]).unwrap_err();
        assert!(error.message().ends_with("column 0; 2 more rows are not finite: 2, 3"), "{error}");
        assert!(Embeddings::new(2, vec![0.0, f32::INFINITY]).is_err());
        assert!(Embeddings::new(2, vec![0.0; 3]).is_err());
        assert!(Embeddings::new(0, vec![]).is_err());
    }
}
