//! The results of a comparison: means and deviations over seeds, and which of them are best.

use std::path::Path;

use akin_base::directory::{Kind, is_complete, read_checked};
use akin_base::files::read_regular_file;
use akin_base::problem::Advise;
use akin_core::evaluate::Report;
use akin_core::metrics::Metric;
use akin_core::statistics::{PairedTTest, deviation, mean};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::evaluation::report::{displayed, is_better, score};

/// The file of a comparison with all of its results.
const TABLE: &str = "table.json";

/// A metric that has a column in the table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Column {
    /// The metric.
    pub metric: Metric,
    /// The level that it is measured at; none for a metric over all levels.
    pub level: Option<String>,
}

/// The columns of metrics over levels, coarse → fine. A metric per level gets a column for each level, finest
/// first; R@k only for the finest.
pub fn columns(metrics: &[Metric], levels: &[String]) -> Vec<Column> {
    let mut columns = Vec::new();
    for &metric in metrics {
        let at: Vec<Option<&String>> = match metric.entry() {
            entry if entry.name == "recall" => vec![levels.last()],
            entry if entry.per_level => levels.iter().rev().map(Some).collect(),
            _ => vec![None],
        };
        columns.extend(at.into_iter().map(|level| Column { metric, level: level.cloned() }));
    }
    columns
}

/// A number for each of several seeds, summarised.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Statistic {
    /// The mean.
    pub mean: f64,
    /// The sample deviation; none for a single number.
    pub deviation: Option<f64>,
    /// The numbers, in the order of the seeds.
    pub values: Vec<f64>,
}

impl Statistic {
    /// The statistic of some numbers; none without numbers.
    pub fn new(values: Vec<f64>) -> Option<Self> {
        Some(Self { mean: mean(&values)?, deviation: deviation(&values), values })
    }

    /// The statistic of a score over reports.
    pub fn over(reports: &[Report], metric: Metric, level: Option<&str>) -> Option<Self> {
        Self::new(reports.iter().filter_map(|report| score(report, metric, level)).collect())
    }
}

/// The statistic of each column over reports.
pub fn scores(reports: &[Report], columns: &[Column]) -> Vec<Option<Statistic>> {
    let statistic = |column: &Column| Statistic::over(reports, column.metric, column.level.as_deref());
    columns.iter().map(statistic).collect()
}

/// A training for tuning.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    /// The settings that it tried.
    pub settings: Table,
    /// The score on the validation classes, by the metric that the row is tuned by; none if the training failed.
    pub score: Option<f64>,
}

/// A row of results.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ResultRow {
    /// The row's name.
    pub name: String,
    /// The row's name in tables.
    pub label: String,
    /// The group that the row stands in.
    pub group: String,
    /// Whether the row is ranked only within its group, because the others differ in more than the loss.
    pub apart: bool,
    /// A score for each column.
    pub scores: Vec<Option<Statistic>>,
    /// The seeds whose trainings did not fail, in the order of the scores' values.
    pub seeds: Vec<u64>,
    /// The metric that the row is judged by.
    pub optimises: Metric,
    /// That metric after training.
    pub optimised: Option<Statistic>,
    /// That metric before training.
    pub untrained: Option<Statistic>,
    /// Seconds per step.
    pub seconds_per_step: Option<Statistic>,
    /// Peak memory of the training process, measured before the first evaluation.
    pub peak_memory_bytes: Option<Statistic>,
    /// The trainings that tuning took, in their order.
    pub trials: Vec<Trial>,
    /// The settings that tuning chose.
    pub chosen: Table,
    /// The keys of the settings whose chosen value is the smallest or the largest of those that were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_edge: Vec<String>,
    /// What the row changes in the recipe.
    pub config: Table,
    /// The part of these settings that the recipe varies.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub varied: Table,
    /// The trainings that failed, with the reason.
    pub failed: Vec<String>,
}

impl ResultRow {
    /// Whether training improved the metric that the row is judged by; none where a score is missing.
    pub fn improved(&self) -> Option<bool> {
        Some(is_better(self.optimises, self.optimised.as_ref()?.mean, self.untrained.as_ref()?.mean))
    }
}

/// The scores of an encoder before training.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Untrained {
    /// Its name in tables.
    pub label: String,
    /// A score for each column.
    pub scores: Vec<Option<Statistic>>,
}

/// The paired tests of all rows against one.
#[derive(Clone, Debug, Serialize)]
pub struct PairedTests {
    /// The name of the row that the others are compared with.
    pub against: String,
    /// Its name in tables.
    pub label: String,
    /// The tests, row by row.
    pub tests: Vec<RowTest>,
}

/// The test of a row in one column.
#[derive(Clone, Debug, Serialize)]
pub struct RowTest {
    /// The row's name.
    pub name: String,
    /// The row's name in tables.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The level that it is measured at; none for a metric over all levels.
    pub level: Option<String>,
    /// Whether the row optimises this metric, which is that of the finest level if it has one for each.
    pub optimised: bool,
    /// The test; none if fewer seeds have both scores.
    pub test: Option<PairedTTest>,
}

/// A whole comparison, as it is printed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Comparison {
    /// The recipe.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// The day that it was made on.
    pub date: String,
    /// The machine that it was made on.
    pub machine: String,
    /// The length of each training and how settings were tuned, in words.
    pub budget: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The encoders that the trainings began with.
    pub untrained: Vec<Untrained>,
    /// The losses; those of a group stand together.
    #[serde(rename = "lines")]
    pub rows: Vec<ResultRow>,
    /// The files in the folder `figures` that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<String>,
    /// The paired tests against one row, if they were asked for.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub paired: Option<PairedTests>,
}

impl Comparison {
    /// The results in the directory of a comparison, without paired tests; none if it is not complete.
    ///
    /// # Errors
    ///
    /// A table that cannot be read or has changed, or that another version of akin wrote.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        if !is_complete(Kind::Comparison, directory)? {
            return Ok(None);
        }
        let bytes = read_checked(directory, TABLE)?;
        let comparison = serde_json::from_slice(&bytes).advise(
            || format!("{} cannot be read", directory.join(TABLE).display()),
            "run the same `akin compare` again, which writes it anew",
        )?;
        Ok(Some(comparison))
    }
}

/// The files in the folder `figures` that a comparison of earlier wrote: what its `table.json` lists. None without such a
/// file.
pub fn figures_of_earlier(table: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    struct Earlier {
        #[serde(default)]
        figures: Vec<String>,
    }
    let earlier = read_regular_file(table).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    earlier.map(|Earlier { figures }| figures).unwrap_or_default()
}

/// The groups that rows are put in by their loss, in the order of the table.
pub const GROUPS: [&str; 4] = ["fine-grained", "hierarchical", "hyperbolic", "hashing"];

/// The place of a score in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The best score.
    Best,
    /// The second-best score.
    Second,
    /// Any other, or no score.
    Other,
}

impl Comparison {
    /// Sorts the rows by group: first [`GROUPS`], then the groups that the recipe names, in the order in which
    /// they first appear.
    pub fn sort_by_group(&mut self) {
        let mut groups = GROUPS.map(str::to_owned).to_vec();
        for row in &self.rows {
            if !groups.contains(&row.group) {
                groups.push(row.group.clone());
            }
        }
        self.rows.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    }

    /// The place of every score: one list per row. Scores that print alike share a place.
    pub fn places(&self) -> Vec<Vec<Place>> {
        let rounded = |row: &ResultRow, column: usize| {
            let metric = self.columns[column].metric;
            let rounded = (10.0 * displayed(metric, row.scores[column].as_ref()?.mean)).round() as i64;
            Some(if metric.entry().greater_is_better { rounded } else { -rounded })
        };
        let place_in_column = |row: &ResultRow, column: usize| {
            let rivals =
                self.rows.iter().filter(|other| other.group == row.group || !(row.apart || other.apart));
            place(rounded(row, column), rivals.filter_map(|rival| rounded(rival, column)).collect())
        };
        let places = |row| (0..self.columns.len()).map(|column| place_in_column(row, column)).collect();
        self.rows.iter().map(places).collect()
    }
}

/// The place of a score among all scores, which include it. The greatest is best.
fn place(score: Option<i64>, mut scores: Vec<i64>) -> Place {
    scores.sort_unstable_by(|a, b| b.cmp(a));
    scores.dedup();
    match scores.iter().position(|&other| Some(other) == score) {
        Some(0) => Place::Best,
        Some(1) => Place::Second,
        _ => Place::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_that_of_a_sample() {
        let statistic = Statistic::new(vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(statistic.mean, 2.5);
        assert!((statistic.deviation.unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Statistic::new(vec![0.5]).unwrap().deviation, None);
        assert_eq!(Statistic::new(vec![]), None);
    }

    #[test]
    fn equal_scores_share_a_place() {
        use Place::{Best, Other, Second};
        let scores = [Some(3), Some(5), None, Some(5), Some(4), Some(3)];
        let places = scores.map(|score| place(score, scores.into_iter().flatten().collect()));
        assert_eq!(places, [Other, Best, Other, Best, Second, Other]);
    }
}
