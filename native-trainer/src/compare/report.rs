//! Scores out of a `report.json`, and the columns that they make.

use serde::Serialize;
use serde_json::Value;

use super::table::Statistic;

/// A metric in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Its name, as `akin list metrics` has it.
    pub metric: String,
    /// What tables call it.
    pub title: String,
    /// The level that it is measured at; none: over all levels.
    pub level: Option<String>,
    /// Whether more is better.
    pub greater_is_better: bool,
}

/// The columns of metrics over levels, coarse → fine. What is measured at every level has a column
/// for each, finest first, but R@k only for the finest.
pub fn columns(metrics: &[String], levels: &[String]) -> Vec<Column> {
    let mut columns = Vec::new();
    for metric in metrics {
        let at: Vec<Option<&String>> = match scope(metric) {
            Scope::All => vec![None],
            Scope::Finest => vec![levels.last()],
            Scope::Each => levels.iter().rev().map(Some).collect(),
        };
        columns.extend(at.into_iter().map(|level| Column {
            metric: metric.clone(),
            title: title(metric),
            level: level.cloned(),
            greater_is_better: true,
        }));
    }
    columns
}

enum Scope {
    All,
    Finest,
    Each,
}

fn scope(metric: &str) -> Scope {
    match metric {
        "ap" | "map_at_r" => Scope::Each,
        _ if metric.starts_with("recall@") => Scope::Finest,
        _ => Scope::All,
    }
}

/// Whether a metric is of the whole taxonomy, and not of one level.
pub fn over_all_levels(metric: &str) -> bool {
    matches!(scope(metric), Scope::All)
}

/// What tables call a metric.
pub fn title(metric: &str) -> String {
    match metric {
        "h_ap" => "H-AP".into(),
        "ndcg" => "NDCG".into(),
        "asi" => "ASI".into(),
        "ap" => "AP".into(),
        "map_at_r" => "mAP@R".into(),
        _ => metric.replace("recall@", "R@"),
    }
}

/// A score of a report; `level` counts from 1, and none stands for all levels, or the finest where a
/// metric is of one level.
pub fn score(report: &Value, metric: &str, level: Option<&str>) -> Option<f64> {
    let levels = report["levels"].as_array()?;
    let at = match level {
        Some(name) => levels.iter().find(|level| level["name"] == name)?,
        None if over_all_levels(metric) => &report["overall"],
        None => levels.last()?,
    };
    match metric.strip_prefix("recall@") {
        Some(k) => at["recall"][k].as_f64().or(at[metric].as_f64()),
        None => at[metric].as_f64(),
    }
}

/// A score over reports.
pub fn over(reports: &[Value], metric: &str, level: Option<&str>) -> Option<Statistic> {
    Statistic::of(reports.iter().filter_map(|report| score(report, metric, level)).collect())
}

/// A score over reports for each column.
pub fn scores(reports: &[Value], columns: &[Column]) -> Vec<Option<Statistic>> {
    columns.iter().map(|column| over(reports, &column.metric, column.level.as_deref())).collect()
}
