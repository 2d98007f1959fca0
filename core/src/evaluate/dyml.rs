//! The protocol of Dynamic Metric Learning (Sun et al., CVPR 2021): label sets of one level each are evaluated
//! separately, and the scores averaged over them.
//!
//! ```text
//! DyML(m) = 1/S · Σ_{s = 1 … S} m(s)        m(s): the mean of metric m over the queries of label set s
//! ```
//!
//! DyML-Vehicle and DyML-Animal have separate queries and a separate gallery for each level, and the queries are items
//! of their gallery ([`evaluate_among`](super::evaluate_among)). DyML-Product has one set of items, evaluated once with
//! each [column](crate::taxonomy::Labels::column) of its labels. A label set is not a level of a tree: a class of one
//! set may overlap several classes of another.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Report, Scores};
use crate::metrics::Metric;
use crate::statistics::{bootstrap_statistic, mean};
use crate::{Error, Kind, Result};

/// The metrics of DyML's tables. Over one level, ASI is DyML's binary ASI, and H-AP would be AP.
pub const DYML_METRICS: [Metric; 5] = [
    Metric::named("asi"),
    Metric::named("ap"),
    Metric::named("recall@1"),
    Metric::named("recall@10"),
    Metric::named("recall@20"),
];

/// Whether the label sets share their queries. The averages do not depend on it; their intervals do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelSets {
    /// Each label set has its own queries, as in DyML-Vehicle and DyML-Animal.
    Apart,
    /// The same queries with several labels, as in DyML-Product.
    Columns,
}

/// A row of DyML's tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DymlRow {
    /// Each metric, averaged over the label sets; `None` when a set has no value.
    #[serde(flatten)]
    pub scores: Scores,
    /// The 95 % bootstrap intervals of the averages, if the reports have a bootstrap.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interval: BTreeMap<Metric, [f64; 2]>,
}

impl DymlRow {
    /// The average of a metric; `None` also when it was not measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.scores.get(metric)
    }
}

/// Averages reports, one for each label set, each from [`evaluate`](super::evaluate) over one level.
///
/// Intervals resample the queries: of separate sets, those of each set by themselves; of columns, the same queries for
/// all columns, because the scores of one query under its several labels are not independent. Queries without a score
/// are left out, so that the interval of a single set equals that of its report.
///
/// # Errors
///
/// [`Kind::Config`] when there is no report, a report does not have exactly one level, the settings differ, the reports
/// of columns have different queries, or a bootstrap needs the scores of single queries and a report has none.
pub fn dyml(reports: &[Report], sets: LabelSets) -> Result<DymlRow> {
    let refuse = |what: &str, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let Some(first) = reports.first() else {
        return refuse("DyML's average needs at least one label set", "give one report per label set");
    };
    if reports.iter().any(|report| report.levels.len() != 1) {
        return refuse(
            "DyML's average needs reports of one level each, and one has another number of levels",
            "evaluate every label set separately, with its own label column",
        );
    }
    if reports.iter().any(|report| report.config != first.config) {
        return refuse(
            "the label sets were evaluated with different settings",
            "evaluate all of them with the same settings",
        );
    }
    if sets == LabelSets::Columns && reports.iter().any(|report| report.queries != first.queries) {
        return refuse(
            "the reports of the label columns have different queries",
            "evaluate the same queries with each column, or average the sets as separate sets",
        );
    }
    if first.config.bootstrap.is_some() && reports.iter().any(|report| report.per_query.is_empty()) {
        return refuse(
            "a report has no scores of single queries, which a bootstrap interval needs",
            "evaluate the label sets again",
        );
    }
    let mut interval = BTreeMap::new();
    let average = |&metric: &Metric| {
        let level = usize::from(metric.entry().per_level);
        let means: Option<Vec<f64>> = reports.iter().map(|report| report.at(level).get(metric)).collect();
        interval.extend(Some(metric).zip(average_interval(reports, sets, metric)));
        (metric, means.and_then(|means| mean(&means)))
    };
    let scores = first.config.metrics.iter().map(average).collect();
    Ok(DymlRow { scores, interval })
}

/// The bootstrap interval of the average of one metric, if the reports have a bootstrap.
fn average_interval(reports: &[Report], sets: LabelSets, metric: Metric) -> Option<[f64; 2]> {
    let bootstrap = reports[0].config.bootstrap?;
    let level = usize::from(metric.entry().per_level);
    let values = reports.iter().map(|report| -> Vec<Option<f64>> {
        report.per_query.iter().map(|row| row.at(level).get(metric)).collect()
    });
    let values: Vec<_> = values.collect();
    // A sample for each set of queries: the rows of those that have a score.
    let scored_queries = |values: &[Vec<Option<f64>>]| -> Vec<usize> {
        let scored = |&query: &usize| values.iter().any(|values| values[query].is_some());
        (0..values[0].len()).filter(scored).collect()
    };
    let samples: Vec<Vec<usize>> = match sets {
        LabelSets::Apart => values.chunks(1).map(scored_queries).collect(),
        LabelSets::Columns => vec![scored_queries(&values)],
    };
    let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
    bootstrap_statistic(&sizes, bootstrap, |drawn| {
        let mean_of = |(report, values): (usize, &Vec<Option<f64>>)| {
            let set = if sets == LabelSets::Apart { report } else { 0 };
            let drawn = drawn[set].iter().filter_map(|&place| values[samples[set][place]]);
            mean(&drawn.collect::<Vec<_>>())
        };
        mean(&values.iter().enumerate().map(mean_of).collect::<Option<Vec<_>>>()?)
    })
}
