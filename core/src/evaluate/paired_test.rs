//! Two runs on the same queries: which is better, and could that be chance?

use serde::Serialize;

use super::Report;
use crate::metrics::Metric;
use crate::statistics::{Permutations, mean, paired_permutation_test};
use crate::{Error, Kind, Result};

/// One metric of two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedTest {
    /// The name of its level; `None` for a metric over all levels.
    pub level: Option<String>,
    /// The metric.
    pub metric: Metric,
    /// The queries that have a value in both.
    pub queries: usize,
    /// The first report's mean over these.
    pub first: f64,
    /// The second's.
    pub second: f64,
    /// The first minus the second.
    pub difference: f64,
    /// The two-sided p-value of the [paired permutation test](paired_permutation_test) over these queries.
    pub p: f64,
}

/// Compares two reports query by query, in the order of the first one's metrics: over all levels, then level by level.
/// A metric that no query has a value of in both is left out. Each p is of one metric, not corrected for their number.
///
/// Reports know their queries by their places only: that they are the same items is for the caller to see to.
///
/// # Errors
///
/// [`Kind::Config`] when the reports are over different queries, numbers of ranked items, or levels, were measured in
/// different ways, or hold no scores of single queries.
pub fn paired_tests(first: &Report, second: &Report, permutations: Permutations) -> Result<Vec<PairedTest>> {
    let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let queries = |report: &Report| report.per_query.iter().map(|row| row.query).collect::<Vec<_>>();
    let names = |report: &Report| report.levels.iter().map(|level| level.name.clone()).collect::<Vec<_>>();
    if [first, second].iter().any(|report| report.per_query.is_empty()) {
        return refuse(
            "a report without the scores of its queries cannot be compared query by query".into(),
            "evaluate both runs anew",
        );
    }
    if queries(first) != queries(second) || first.ranked != second.ranked || names(first) != names(second) {
        return refuse(
            format!(
                "{} queries that rank {} items at the levels {} cannot be paired with {} that rank {} at {}",
                first.queries,
                first.ranked,
                names(first).join(", "),
                second.queries,
                second.ranked,
                names(second).join(", ")
            ),
            "compare two runs over the same queries and the same gallery",
        );
    }
    if first.config.metrics != second.config.metrics
        || first.config.relevance != second.config.relevance
        || first.config.ties != second.config.ties
        || first.config.count_query != second.config.count_query
    {
        return refuse(
            "the two reports measure different things: metrics, relevance, ties or count_query differ".into(),
            "evaluate both with the same settings",
        );
    }
    let one = |level: usize, metric: Metric| -> Option<PairedTest> {
        let rows = first.per_query.iter().zip(&second.per_query);
        let pairs = rows.filter_map(|(a, b)| Some((a.at(level).get(metric)?, b.at(level).get(metric)?)));
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let (first_mean, second_mean) = (mean(&a)?, mean(&b)?);
        Some(PairedTest {
            level: (level > 0).then(|| first.levels[level - 1].name.clone()),
            metric,
            queries: a.len(),
            first: first_mean,
            second: second_mean,
            difference: first_mean - second_mean,
            p: paired_permutation_test(&differences, permutations),
        })
    };
    let mut tests = Vec::new();
    for level in 0..=first.levels.len() {
        let metrics = first.config.metrics.iter().filter(|metric| metric.entry().per_level == (level > 0));
        tests.extend(metrics.filter_map(|&metric| one(level, metric)));
    }
    Ok(tests)
}
