//! Every query ranks the gallery.

use akin_core::Result;
use akin_core::embeddings::Rows;
use akin_core::evaluate::{
    Decomposability, Evaluation, EvaluationConfig, Labelled, Sets, TreeLikeness, evaluate_without_groups,
    evaluate_without_junk,
};
use akin_core::metrics::Metric;
use akin_core::statistics::Bootstrap;
use akin_core::{Error, Kind};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::matrix::{Matrix, labels};
use crate::report::Report;
use crate::taxonomy::Taxonomy;
use crate::work::wait_for;

/// What is measured, and how: the options of `akin eval`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    metrics: Vec<String>,
    similarity: String,
    relevance: String,
    ties: String,
    count_query: bool,
    bootstrap: Option<usize>,
    decomposability_gap: Option<usize>,
    hyperbolicity: Option<usize>,
}

impl Settings {
    fn config(&self) -> Result<EvaluationConfig> {
        let mut config = EvaluationConfig::default();
        if !self.metrics.is_empty() {
            config.metrics = self.metrics.iter().map(|name| name.parse::<Metric>()).collect::<Result<_>>()?;
        }
        let bootstrap = |resamples| Bootstrap { resamples, ..Bootstrap::default() };
        Ok(EvaluationConfig {
            similarity: self.similarity.parse()?,
            relevance: self.relevance.parse()?,
            ties: self.ties.parse()?,
            count_query: self.count_query,
            bootstrap: self.bootstrap.map(bootstrap),
            decomposability_gap: self.decomposability_gap.map(|batch| Decomposability { batch, seed: 0 }),
            hyperbolicity: self.hyperbolicity.map(|points| TreeLikeness { points, draws: 10, seed: 0 }),
            ..config
        })
    }
}

/// What queries leave out of their rankings.
#[derive(FromPyObject)]
pub(crate) enum LeftOut {
    /// The groups of the queries and of the gallery.
    Groups(Vec<u32>, Vec<u32>),
    /// For each item of the gallery, the finest classes whose queries leave it out.
    Junk(Vec<Vec<u32>>),
}

/// A set of embeddings [N, d] with class ids [N, L].
type Set<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray2<'py, u32>);

/// Ranks the gallery for every query. Without a gallery each query ranks the others. `places` are the rows of the queries
/// in the gallery.
#[pyfunction]
#[pyo3(signature = (taxonomy, queries, gallery, places, left_out, settings, progress))]
#[expect(clippy::too_many_arguments, reason = "they are the arguments of the function in Python")]
pub(crate) fn evaluate(
    py: Python<'_>,
    taxonomy: &Taxonomy,
    queries: Set<'_>,
    gallery: Option<Set<'_>>,
    places: Option<Vec<usize>>,
    left_out: Option<LeftOut>,
    settings: Settings,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let config = settings.config().or_raise(py)?;
    let levels = taxonomy.taxonomy.level_names();
    let query_labels = labels(&queries.1).or_raise(py)?;
    let queries = Matrix::new(&queries.0, "query").or_raise(py)?;
    let gallery_labels = gallery.as_ref().map(|(_, ids)| labels(ids)).transpose().or_raise(py)?;
    let gallery =
        gallery.as_ref().map(|(array, _)| Matrix::new(array, "gallery")).transpose().or_raise(py)?;
    let gallery = gallery.as_ref().zip(gallery_labels.as_ref());
    let queried: Labelled<'_, dyn Rows> = Labelled { embeddings: &queries, labels: &query_labels };
    let ranked = gallery
        .map(|(gallery, labels)| -> Labelled<'_, dyn Rows> { Labelled { embeddings: gallery, labels } });
    let (items, item_labels) = gallery.unwrap_or((&queries, &query_labels));
    let junk: Vec<&[u32]> = match &left_out {
        Some(LeftOut::Junk(junk)) => junk.iter().map(Vec::as_slice).collect(),
        _ => Vec::new(),
    };
    let sets = Sets {
        queries: &queries,
        query_labels: &query_labels,
        gallery: items,
        gallery_labels: item_labels,
        junk: &junk,
    };
    let given = match &left_out {
        Some(LeftOut::Groups(of_queries, of_gallery)) => {
            of_queries.len() == queries.len() && of_gallery.len() == items.len()
        }
        Some(LeftOut::Junk(junk)) => junk.len() == items.len(),
        None => true,
    };
    if !given {
        let error = Error::new(
            Kind::Config,
            "there is not a group or a list of junk for each embedding",
            "give one for each, in the same order",
        );
        return Err(error).or_raise(py);
    }
    let report = wait_for(py, progress.as_ref(), |execution| match &left_out {
        Some(LeftOut::Groups(of_queries, of_gallery)) => {
            evaluate_without_groups(levels, &sets, [of_queries, of_gallery], &config, execution)
        }
        Some(LeftOut::Junk(_)) => evaluate_without_junk(levels, &sets, &config, execution),
        None => Evaluation {
            levels,
            queries: queried,
            gallery: ranked,
            places: places.as_deref(),
            config: &config,
            execution: *execution,
        }
        .report(),
    })?;
    Ok(report.into())
}
