//! Paired tests of two reports over the same queries: which run is better, and could the difference be chance?

use serde::Serialize;

use super::Report;
use crate::metrics::Metric;
use crate::statistics::{Permutations, mean, paired_permutation_test};
use crate::{Error, Kind, Result};

/// The paired permutation test of one metric of two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedTest {
    /// The name of the level; `None` for a metric over all levels.
    pub level: Option<String>,
    /// The metric.
    pub metric: Metric,
    /// The number of queries that have a value in both reports.
    pub queries: usize,
    /// The mean of the first report over these queries.
    pub first: f64,
    /// The mean of the second report over these queries.
    pub second: f64,
    /// The first minus the second.
    pub difference: f64,
    /// The two-sided p-value of the [paired permutation test](paired_permutation_test) over these queries.
    pub p: f64,
}

/// Tests two reports query by query, metric by metric: over all levels, then level by level, in the order of the
/// config. A metric without a query that has a value in both is left out. The p-values are not corrected for the number
/// of tests.
///
/// A report knows its queries only by their places. The caller must make sure that they are the same items.
///
/// # Errors
///
/// [`Kind::Config`] when the reports have different queries, levels, settings or numbers of ranked items, or no scores
/// of single queries.
pub fn paired_tests(first: &Report, second: &Report, permutations: Permutations) -> Result<Vec<PairedTest>> {
    let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let queries = |report: &Report| report.per_query.iter().map(|row| row.query).collect::<Vec<_>>();
    let names = |report: &Report| report.levels.iter().map(|level| level.name.clone()).collect::<Vec<_>>();
    if [first, second].iter().any(|report| report.per_query.is_empty()) {
        return refuse(
            "one of the reports has no scores of single queries".into(),
            "evaluate both runs again",
        );
    }
    if queries(first) != queries(second) || first.ranked != second.ranked || names(first) != names(second) {
        return refuse(
            format!(
                "{} queries that rank {} items at the levels {} cannot be paired with {} queries that rank {} items at the levels {}",
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
            "the two reports differ in metrics, relevance, ties or count_query".into(),
            "evaluate both with the same settings",
        );
    }
    let test = |level: usize, metric: Metric| -> Option<PairedTest> {
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
        tests.extend(metrics.filter_map(|&metric| test(level, metric)));
    }
    Ok(tests)
}
