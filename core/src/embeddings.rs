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
    /// error names its row and column, counted from 0.
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
            return Err(Error::new(
                Kind::Embeddings,
                format!("the embedding in row {row} has {} in column {column}", values[place]),
                "leave out that item, or find out why its embedding diverged",
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
        assert!(Embeddings::new(2, vec![0.0, f32::INFINITY]).is_err());
        assert!(Embeddings::new(2, vec![0.0; 3]).is_err());
        assert!(Embeddings::new(0, vec![]).is_err());
    }
}
