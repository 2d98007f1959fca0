//! Exact search.

use akin_core::embeddings::Rows;
use akin_core::evaluate;
use akin_core::search::Hit;
use akin_core::similarity::Similarity;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::matrix::Matrix;
use crate::work::wait_for;

/// The rows and the scores of the nearest items of each query, both [Q, k]: best first.
type Nearest<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// The `k` nearest items of the gallery for each query; without a gallery, of the other queries.
#[pyfunction]
#[pyo3(signature = (queries, gallery, k, similarity, progress))]
pub(crate) fn nearest<'py>(
    py: Python<'py>,
    queries: PyReadonlyArray2<'py, f32>,
    gallery: Option<PyReadonlyArray2<'py, f32>>,
    k: usize,
    similarity: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Nearest<'py>> {
    let similarity: Similarity = similarity.parse().or_raise(py)?;
    let queries = Matrix::new(&queries, "query").or_raise(py)?;
    let gallery = gallery.as_ref().map(|gallery| Matrix::new(gallery, "gallery")).transpose().or_raise(py)?;
    let found = wait_for(py, progress.as_ref(), |execution| {
        let gallery = gallery.as_ref().map(|gallery| -> &dyn Rows { gallery });
        evaluate::nearest(&queries, gallery, k, similarity, execution)
    })?;
    // All queries find the same number of items.
    let shape = [found.len(), found.first().map_or(0, Vec::len)];
    let hits = || found.iter().flatten();
    let items = PyArray1::from_iter(py, hits().map(|&Hit { item, .. }| item as i64)).reshape(shape)?;
    let scores = PyArray1::from_iter(py, hits().map(|&Hit { score, .. }| score)).reshape(shape)?;
    Ok((items, scores))
}
