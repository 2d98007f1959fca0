//! Arrays of numpy as embeddings and labels.

use akin_core::embeddings::{Embeddings, Rows};
use akin_core::taxonomy::Labels;
use akin_core::{Error, Kind, Result};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};

/// Embeddings [N, d] in the memory of numpy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    dimension: usize,
    values: &'a [f32],
}

impl<'a> Matrix<'a> {
    /// A view of an array, which is not copied. `set` names it in errors.
    pub(crate) fn new(array: &'a PyReadonlyArray2<'_, f32>, set: &str) -> Result<Self> {
        let [count, dimension] = [0, 1].map(|axis| array.shape()[axis]);
        if dimension == 0 || count == 0 {
            return Err(Error::new(
                Kind::Embeddings,
                format!("the {set} embeddings have the shape [{count}, {dimension}]"),
                "give a matrix with one embedding per row",
            ));
        }
        let values = array.as_slice().map_err(|_| {
            Error::new(
                Kind::Embeddings,
                format!("the rows of the {set} embeddings are not one behind the other in memory"),
                "call numpy.ascontiguousarray first",
            )
        })?;
        Ok(Self { dimension, values })
    }

    /// A copy, for work that keeps them.
    pub(crate) fn to_embeddings(self) -> Result<Embeddings> {
        Embeddings::new(self.dimension, self.values.to_vec())
    }
}

impl Rows for Matrix<'_> {
    fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> Result<()> {
        rows.copy_from_slice(&self.values[first * self.dimension..][..rows.len()]);
        Ok(())
    }
}

/// Class ids [N, L] as labels.
pub(crate) fn labels(ids: &PyReadonlyArray2<'_, u32>) -> Result<Labels> {
    Labels::new(ids.shape()[1], ids.as_array().iter().copied().collect())
}
