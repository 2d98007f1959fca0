//! Scores out of a `report.json`, and the columns that they make.

use akin_core::metrics::{Metric, Unit};
use serde::Serialize;
use serde_json::Value;

use super::table::Statistic;

/// A metric in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The metric.
    pub metric: Metric,
    /// The level that it is measured at; none: over all levels.
    pub level: Option<String>,
}

/// The columns of metrics over levels, coarse → fine. What is measured at every level has a column
/// for each, finest first, but R@k only for the finest.
pub fn columns(metrics: &[Metric], levels: &[String]) -> Vec<Column> {
    let mut columns = Vec::new();
    for &metric in metrics {
        let at: Vec<Option<&String>> = match metric {
            Metric::Recall(_) => vec![levels.last()],
            _ if metric.entry().per_level => levels.iter().rev().map(Some).collect(),
            _ => vec![None],
        };
        columns.extend(at.into_iter().map(|level| Column { metric, level: level.cloned() }));
    }
    columns
}

/// A score of a report. Without a level it is that over all levels, or at the finest where the metric
/// is of one.
pub fn score(report: &Value, metric: Metric, level: Option<&str>) -> Option<f64> {
    let levels = report["levels"].as_array()?;
    let at = match level {
        Some(name) => levels.iter().find(|level| level["name"] == name)?,
        None if metric.entry().per_level => levels.last()?,
        None => &report["overall"],
    };
    at[metric.to_string()].as_f64()
}

/// A score over reports.
pub fn over(reports: &[Value], metric: Metric, level: Option<&str>) -> Option<Statistic> {
    Statistic::of(reports.iter().filter_map(|report| score(report, metric, level)).collect())
}

/// A score over reports for each column.
pub fn scores(reports: &[Value], columns: &[Column]) -> Vec<Option<Statistic>> {
    columns.iter().map(|column| over(reports, column.metric, column.level.as_deref())).collect()
}

/// Whether a score is better than another.
pub fn better(metric: Metric, score: f64, other: f64) -> bool {
    if metric.entry().greater_is_better { score > other } else { score < other }
}

/// A score as people read it: shares in percent.
pub fn shown(metric: Metric, score: f64) -> f64 {
    match metric.entry().unit {
        Unit::Share => 100.0 * score,
        Unit::Levels => score,
    }
}
