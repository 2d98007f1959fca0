//! The classes that a query's neighbours vote for, and how far their answer holds.

use akin_core::certainty::{Answer, BestScores, Calibration, LeaveOneOut, Promise, VOTERS};
use akin_core::embeddings::Embeddings;
use akin_core::evaluate::nearest;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use akin_core::votes::votes;
use akin_core::{Error, Kind};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::matrix::{Matrix, labels};
use crate::work::wait_for;

/// A gallery that answers, with what its own items say about its answers.
#[pyclass(frozen, module = "akin._akin")]
pub(crate) struct Classifier {
    gallery: Embeddings,
    labels: Labels,
    similarity: Similarity,
    calibration: Calibration,
    best_scores: Option<BestScores>,
}

/// The answer to a query: the class ids and certainties, coarse to fine; how many of them may be said; whether nothing in
/// the gallery is like the query; and whether the gallery can keep the promise at all.
type Said = (Vec<(u32, f64)>, usize, bool, bool);

#[pymethods]
impl Classifier {
    /// Asks the gallery with each of its own items, which is left out meanwhile.
    #[new]
    fn new(
        py: Python<'_>,
        gallery: PyReadonlyArray2<'_, f32>,
        ids: PyReadonlyArray2<'_, u32>,
        similarity: &str,
    ) -> PyResult<Self> {
        let similarity: Similarity = similarity.parse().or_raise(py)?;
        let embeddings = Matrix::new(&gallery, "gallery").or_raise(py)?.to_embeddings().or_raise(py)?;
        let labels = labels(&ids).or_raise(py)?;
        if labels.len() != embeddings.len() {
            let text =
                format!("there are {} embeddings and {} rows of labels", embeddings.len(), labels.len());
            return Err(Error::new(Kind::Taxonomy, text, "give each embedding one row of labels"))
                .or_raise(py);
        }
        let own = wait_for(py, None, |execution| {
            LeaveOneOut::new_unless(&embeddings, &labels, similarity, execution.is_stopped)
        })?;
        let calibration = own.calibration().ok_or_else(|| {
            Error::new(Kind::Embeddings, "the gallery has fewer than two items", "give more of them")
        });
        let calibration = calibration.or_raise(py)?;
        Ok(Self { gallery: embeddings, labels, similarity, calibration, best_scores: own.best_scores() })
    }

    /// The answer to each query at a promise: the least share of right answers.
    fn answers(
        &self,
        py: Python<'_>,
        queries: PyReadonlyArray2<'_, f32>,
        promise: f64,
    ) -> PyResult<Vec<Said>> {
        let promise = Promise::new(promise).or_raise(py)?;
        let queries = Matrix::new(&queries, "query").or_raise(py)?;
        wait_for(py, None, |execution| {
            let found = nearest(&queries, Some(&self.gallery), VOTERS, self.similarity, execution)?;
            let answer = |hits: Vec<_>| {
                let best = hits.first().map(|hit: &akin_core::search::Hit| hit.score);
                let unlike = self
                    .best_scores
                    .as_ref()
                    .zip(best)
                    .is_some_and(|(own, best)| own.is_unlike(best, promise));
                let answer = self.calibration.answer(&votes(&self.labels, &hits), unlike, promise);
                let Answer { levels, reached, unlike, possible } = answer;
                let said = levels.into_iter().map(|level| (level.class, level.certainty)).collect();
                (said, reached, unlike, possible)
            };
            Ok(found.into_iter().map(answer).collect())
        })
    }
}
