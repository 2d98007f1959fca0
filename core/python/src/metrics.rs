//! The metrics: what they are, and their values for one ranking.

use akin_core::metrics::{CATALOGUE, Metric, precision_recall_curve};
use akin_core::ranking;
use akin_core::relevance::{CheckedRelevance, Relevance};
use akin_core::{Error, Kind, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrRaise;

/// What the catalogue says about each metric.
#[pyfunction]
pub(crate) fn catalogue(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    CATALOGUE
        .iter()
        .map(|entry| {
            let row = PyDict::new(py);
            row.set_item("name", entry.name)?;
            row.set_item("spelling", entry.spelling())?;
            row.set_item("title", entry.title)?;
            row.set_item("formula", entry.formula)?;
            row.set_item("definition", entry.definition())?;
            row.set_item("unit", format!("{:?}", entry.unit).to_lowercase())?;
            row.set_item("greater_is_better", entry.greater_is_better)?;
            row.set_item("per_level", entry.per_level)?;
            row.set_item("source", entry.source)?;
            Ok(row)
        })
        .collect()
}

/// One ranked list: the shared level of each item.
#[pyclass(frozen, module = "akin._akin")]
pub(crate) struct Ranking {
    ranking: ranking::Ranking,
}

#[pymethods]
impl Ranking {
    /// The ranking of items with these shared levels, 0 … `depth`: best first or, with scores, in gallery order.
    #[new]
    fn new(
        py: Python<'_>,
        levels: Vec<usize>,
        depth: usize,
        scores: Option<Vec<f32>>,
        ties: &str,
        count_query: bool,
    ) -> PyResult<Self> {
        let ranking = ranking_of(&levels, depth, scores.as_deref(), ties).or_raise(py)?;
        Ok(Self { ranking: ranking.count_query(count_query) })
    }

    /// The value of a metric; `None` where there is no positive to measure. `level` is 1 … L.
    fn value(&self, py: Python<'_>, metric: &str, relevance: &str, level: usize) -> PyResult<Option<f64>> {
        let value = || {
            let metric: Metric = metric.parse()?;
            let depth = self.ranking.depth();
            if !(1..=depth).contains(&level) {
                return refuse(format!("there is no level {level}"), &format!("the levels are 1 to {depth}"));
            }
            Ok(metric.value(&self.ranking, &self.relevance(relevance)?, level))
        };
        value().or_raise(py)
    }

    /// The ranks, H-recalls and H-precisions of the curve whose area is H-AP.
    fn curve(&self, py: Python<'_>, relevance: &str) -> PyResult<(Vec<usize>, Vec<f64>, Vec<f64>)> {
        let curve = precision_recall_curve(&self.ranking, &self.relevance(relevance).or_raise(py)?);
        let ranks = curve.iter().map(|point| point.rank).collect();
        let recalls = curve.iter().map(|point| point.recall).collect();
        Ok((ranks, recalls, curve.iter().map(|point| point.precision).collect()))
    }
}

impl Ranking {
    fn relevance(&self, text: &str) -> Result<CheckedRelevance> {
        text.parse::<Relevance>()?.checked(self.ranking.depth())
    }
}

fn ranking_of(
    levels: &[usize],
    depth: usize,
    scores: Option<&[f32]>,
    ties: &str,
) -> Result<ranking::Ranking> {
    let ties = ties.parse()?;
    if depth == 0 || depth > 1000 {
        return refuse(format!("the ranking has {depth} levels"), "choose a depth from 1 to 1000");
    }
    if let Some(level) = levels.iter().find(|&&level| level > depth) {
        return refuse(format!("an item shares level {level} of {depth}"), "give levels from 0 to the depth");
    }
    let Some(scores) = scores else { return Ok(ranking::Ranking::from_levels(depth, levels)) };
    if scores.len() != levels.len() || !scores.iter().all(|score| score.is_finite()) {
        return refuse(
            format!("{} items do not have a finite score each", levels.len()),
            "give one finite number per item",
        );
    }
    let items = scores.iter().copied().zip(levels.iter().copied());
    Ok(ranking::Ranking::from_scores(depth, ties, items))
}

fn refuse<T>(what: String, hint: &str) -> Result<T> {
    Err(Error::new(Kind::Config, what, hint))
}
