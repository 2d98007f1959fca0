//! The result of an evaluation.

use std::collections::HashMap;

use akin_core::evaluate::{self, ByClass, QueryScores, paired_tests};
use akin_core::metrics::Metric;
use akin_core::statistics::Permutations;
use akin_core::taxonomy::UNKNOWN;
use akin_core::{Error, Kind, Result};
use numpy::PyArray1;
use pyo3::prelude::*;
use serde_json::to_string;

use crate::errors::{OrRaise, exception};

/// The report of an evaluation. Its means are read as JSON, the scores of queries as arrays.
#[pyclass(frozen, module = "akin._akin")]
pub(crate) struct Report {
    report: evaluate::Report,
}

impl From<evaluate::Report> for Report {
    fn from(report: evaluate::Report) -> Self {
        Self { report }
    }
}

#[pymethods]
impl Report {
    /// The report as JSON, with or without the scores of each query.
    fn json(&self, py: Python<'_>, per_query: bool) -> PyResult<String> {
        py.detach(|| match per_query {
            true => to_string(&self.report),
            false => to_string(&evaluate::Report { per_query: Vec::new(), ..self.report.clone() }),
        })
        .map_err(|error| failed(py, &error))
    }

    /// The report that `json` wrote.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let report = py.detach(|| serde_json::from_str::<evaluate::Report>(text));
        Ok(report.map_err(|error| failed(py, &error))?.into())
    }

    /// The report of all queries, from the reports of one part after the other, digit for digit.
    #[staticmethod]
    fn merge(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let reports: Vec<&evaluate::Report> = parts.iter().map(|part| &part.report).collect();
        merged(&reports).or_raise(py).map(Self::from)
    }

    /// The rows of the queries that have scores.
    fn queries<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.report.per_query.iter().map(|row| row.query as i64))
    }

    /// The finest level at which each query has a positive.
    fn closest<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.report.per_query.iter().map(|row| row.closest as i64))
    }

    /// The scores of a metric at a level, 1 … L, or over all levels for level 0; NaN where a query has none.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        metric: &str,
        level: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let metric: Metric = metric.parse().or_raise(py)?;
        self.check_level(py, level)?;
        let scores = self.report.per_query.iter().map(|row| row.at(level).get(metric).unwrap_or(f64::NAN));
        Ok(PyArray1::from_iter(py, scores))
    }

    /// The scores by class, as JSON. `classes` are those of all queries at the level, with the name of each.
    fn by_class(
        &self,
        py: Python<'_>,
        level: usize,
        classes: Vec<u32>,
        names: HashMap<u32, String>,
    ) -> PyResult<String> {
        self.check_level(py, level.max(1))?;
        let fits = level > 0 && self.report.per_query.iter().all(|row| row.query < classes.len());
        let named = classes.iter().all(|class| *class == UNKNOWN || names.contains_key(class));
        if !fits || !named {
            let error = Error::new(Kind::Config, "there is not a class for each query", "give all of them");
            return Err(exception(py, &error));
        }
        let by_class = ByClass::new(&self.report, level, &classes, |class| names[&class].clone());
        to_string(&by_class).map_err(|error| failed(py, &error))
    }

    /// The paired tests of two reports, as JSON.
    fn compare(&self, py: Python<'_>, other: &Self) -> PyResult<String> {
        let tests = py.detach(|| paired_tests(&self.report, &other.report, Permutations::default()));
        to_string(&tests.or_raise(py)?).map_err(|error| failed(py, &error))
    }
}

impl Report {
    fn check_level(&self, py: Python<'_>, level: usize) -> PyResult<()> {
        if level <= self.report.levels.len() {
            return Ok(());
        }
        let text = format!("there is no level {level}");
        let hint = format!("the levels are 1 to {}, and 0 is over all levels", self.report.levels.len());
        Err(exception(py, &Error::new(Kind::Config, text, hint)))
    }
}

/// The report of the queries of these, in this order.
fn merged(parts: &[&evaluate::Report]) -> Result<evaluate::Report> {
    let refused = |what: &str, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let Some(first) = parts.first() else { return refused("there is no report", "give at least one") };
    let names = |report: &evaluate::Report| -> Vec<String> {
        report.levels.iter().map(|level| level.name.clone()).collect()
    };
    if !parts
        .iter()
        .all(|part| part.config == first.config && part.ranked == first.ranked && names(part) == names(first))
    {
        return refused(
            "the reports are of different evaluations",
            "measure the same metrics in the same gallery, with the same settings",
        );
    }
    if first.decomposability_gap.is_some() || first.hyperbolicity.is_some() {
        return refused(
            "the decomposability gap and the hyperbolicity of parts are not those of the whole",
            "leave them out",
        );
    }
    let mut rows = Vec::new();
    let mut before = 0;
    for part in parts {
        rows.extend(
            part.per_query.iter().cloned().map(|row| QueryScores { query: before + row.query, ..row }),
        );
        before += part.queries;
    }
    let checked = first.config.checked(first.levels.len())?;
    Ok(evaluate::Report::new(&names(first), &checked, first.ranked, rows))
}

/// Text that is not a report.
fn failed(py: Python<'_>, error: &serde_json::Error) -> PyErr {
    exception(
        py,
        &Error::new(Kind::Config, format!("this is not a stored report: {error}"), "evaluate again"),
    )
}
