//! The protocol of Dynamic Metric Learning (Sun et al., CVPR 2021): label sets of one level each, every one evaluated by
//! itself, and the scores averaged over them.
//!
//! ```text
//! DyML(m) = 1/S · Σ_{s = 1 … S} m(s)        m(s): the mean of metric m over the queries of label set s
//! ```
//!
//! DyML-Vehicle and DyML-Animal have queries and a gallery of their own for each level, and the queries stand among
//! the items that they rank ([`evaluate_among`](super::evaluate_among)). DyML-Product has one set of items, evaluated
//! once with each [column](crate::taxonomy::Labels::column) of its labels. A label set is no level of a tree: a class
//! of one may lie across classes of another.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Report, Scores};
use crate::metrics::Metric;
use crate::statistics::{bootstrap_interval_of, mean};
use crate::{Error, Kind, Result};

/// What DyML's tables show. Over one level, ASI is DyML's binary one, and H-AP would be AP.
pub const DYML_METRICS: [Metric; 5] = [
    Metric::named("asi"),
    Metric::named("ap"),
    Metric::named("recall@1"),
    Metric::named("recall@10"),
    Metric::named("recall@20"),
];

/// Whether the label sets have queries in common. The averages do not depend on it, but their intervals do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelSets {
    /// Queries of their own for each, as in DyML-Vehicle and DyML-Animal.
    Apart,
    /// The same queries with several labels, as in DyML-Product.
    Columns,
}

/// The row that DyML's tables print.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DymlRow {
    /// Each metric, averaged over the label sets; `None` where a set has no value of it.
    #[serde(flatten)]
    pub scores: Scores,
    /// The 95 % bootstrap intervals of the averages, where the reports have them of their means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interval: BTreeMap<Metric, [f64; 2]>,
}

impl DymlRow {
    /// The average of a metric; `None`, too, where it was not asked for.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.scores.get(metric)
    }
}

/// Averages reports, one for each label set, each [`evaluate`](super::evaluate)'s over one level.
///
/// For an interval, the queries are drawn anew: of sets apart, those of each set by themselves; of columns, the same
/// queries for all columns, as the scores of one query under its several labels go together. Queries without any score
/// stay out, so that the interval of a single set is the one of its report.
///
/// # Errors
///
/// [`Kind::Config`] when there is no report, one has more than one level, they were measured with different settings,
/// those of columns are over different queries, or a bootstrap lacks the scores of single queries.
pub fn dyml(reports: &[Report], sets: LabelSets) -> Result<DymlRow> {
    let refuse = |what: &str, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let Some(first) = reports.first() else {
        return refuse("DyML's average is over no label set", "give one report per label set");
    };
    if reports.iter().any(|report| report.levels.len() != 1) {
        return refuse(
            "DyML's average is over reports of one level each, and one has another number of levels",
            "evaluate every label set by itself, with its own label column",
        );
    }
    if reports.iter().any(|report| report.config != first.config) {
        return refuse(
            "the label sets were measured with different settings",
            "evaluate all with the same settings",
        );
    }
    if sets == LabelSets::Columns && reports.iter().any(|report| report.queries != first.queries) {
        return refuse(
            "the reports of the label columns are over different queries",
            "evaluate the same queries with each column, or the sets as sets apart",
        );
    }
    if first.config.bootstrap.is_some() && reports.iter().any(|report| report.per_query.is_empty()) {
        return refuse(
            "a report without the scores of its queries has nothing to draw an interval from",
            "evaluate the label sets anew",
        );
    }
    let mut interval = BTreeMap::new();
    let average = |&metric: &Metric| {
        let level = usize::from(metric.entry().per_level);
        let means: Option<Vec<f64>> = reports.iter().map(|report| report.at(level).get(metric)).collect();
        interval.extend(Some(metric).zip(interval_of(reports, sets, metric)));
        (metric, means.and_then(|means| mean(&means)))
    };
    let scores = first.config.metrics.iter().map(average).collect();
    Ok(DymlRow { scores, interval })
}

/// The bootstrap interval of the average of one metric, if the reports have a bootstrap.
fn interval_of(reports: &[Report], sets: LabelSets, metric: Metric) -> Option<[f64; 2]> {
    let bootstrap = reports[0].config.bootstrap?;
    let level = usize::from(metric.entry().per_level);
    let values = reports.iter().map(|report| -> Vec<Option<f64>> {
        report.per_query.iter().map(|row| row.at(level).get(metric)).collect()
    });
    let values: Vec<_> = values.collect();
    // A sample for each set of queries: the places of those that have a score.
    let of_set = |values: &[Vec<Option<f64>>]| -> Vec<usize> {
        let scored = |&query: &usize| values.iter().any(|values| values[query].is_some());
        (0..values[0].len()).filter(scored).collect()
    };
    let samples: Vec<Vec<usize>> = match sets {
        LabelSets::Apart => values.chunks(1).map(of_set).collect(),
        LabelSets::Columns => vec![of_set(&values)],
    };
    let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
    bootstrap_interval_of(&sizes, bootstrap, |drawn| {
        let mean_of = |(report, values): (usize, &Vec<Option<f64>>)| {
            let set = if sets == LabelSets::Apart { report } else { 0 };
            let drawn = drawn[set].iter().filter_map(|&place| values[samples[set][place]]);
            mean(&drawn.collect::<Vec<_>>())
        };
        mean(&values.iter().enumerate().map(mean_of).collect::<Option<Vec<_>>>()?)
    })
}
