//! Means and deviations over seeds, and which of them are best.

use akin_core::metrics::Metric;
use akin_core::statistics::{deviation, mean};
use serde::Serialize;
use toml::Table;

use super::report::{Column, better, shown};

/// Numbers of several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// Their mean.
    pub mean: f64,
    /// Their sample deviation, from two numbers on.
    pub deviation: Option<f64>,
    /// The numbers in the order of the seeds.
    pub values: Vec<f64>,
}

impl Statistic {
    /// None of nothing.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        Some(Self { mean: mean(&values)?, deviation: deviation(&values), values })
    }
}

/// A row of results.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The row's name.
    pub name: String,
    /// What tables call it.
    pub label: String,
    /// Which rows it stands with.
    pub group: String,
    /// Whether only the rows of its group are its rivals.
    pub apart: bool,
    /// A score for each column.
    pub scores: Vec<Option<Statistic>>,
    /// The metric that it is judged by.
    pub optimises: Metric,
    /// That metric.
    pub optimised: Option<Statistic>,
    /// The same of the untrained encoder.
    pub untrained: Option<Statistic>,
    /// Time per step.
    pub seconds_per_step: Option<Statistic>,
    /// Memory of the process at its peak, before it is first evaluated.
    pub peak_memory_bytes: Option<Statistic>,
    /// The settings that were chosen from the grid.
    pub chosen: Table,
    /// What it changes of the recipe.
    pub config: Table,
    /// The trainings that failed, with the reason.
    pub failed: Vec<String>,
}

impl Line {
    /// Whether it is better by its metric than the untrained encoder; none where either has no score.
    pub fn beats(&self) -> Option<bool> {
        Some(better(self.optimises, self.optimised.as_ref()?.mean, self.untrained.as_ref()?.mean))
    }
}

/// An encoder before its training.
#[derive(Clone, Debug, Serialize)]
pub struct Untrained {
    /// What tables call it.
    pub label: String,
    /// A score for each column.
    pub scores: Vec<Option<Statistic>>,
}

/// Everything that is published.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The recipe.
    pub name: String,
    /// What made it.
    pub command: String,
    /// When.
    pub date: String,
    /// Where.
    pub machine: String,
    /// What each row was given.
    pub budget: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The columns.
    pub columns: Vec<Column>,
    /// What the trainings began with.
    pub untrained: Vec<Untrained>,
    /// The losses, those of a group together.
    pub lines: Vec<Line>,
}

/// The groups that losses have by themselves, in their order.
pub const GROUPS: [&str; 4] = ["fine-grained", "hierarchical", "hyperbolic", "hashing"];

/// How a number stands in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The best of the losses.
    Best,
    /// The next.
    Second,
    /// Any other.
    Other,
}

impl Comparison {
    /// Brings the losses of a group together. Groups that a recipe names come in the order of their
    /// first, after those of [`GROUPS`].
    pub fn group(&mut self) {
        let mut groups = GROUPS.map(str::to_owned).to_vec();
        for line in &self.lines {
            if !groups.contains(&line.group) {
                groups.push(line.group.clone());
            }
        }
        self.lines.sort_by_key(|line| groups.iter().position(|group| *group == line.group));
    }

    /// The place of every score, a row for each line. Scores that look the same share a place.
    pub fn places(&self) -> Vec<Vec<Place>> {
        let rounded = |line: &Line, column: usize| {
            let metric = self.columns[column].metric;
            let rounded = (10.0 * shown(metric, line.scores[column].as_ref()?.mean)).round() as i64;
            Some(if metric.entry().greater_is_better { rounded } else { -rounded })
        };
        let place = |line: &Line, column: usize| {
            let rivals =
                self.lines.iter().filter(|other| other.group == line.group || !(line.apart || other.apart));
            place(rounded(line, column), rivals.filter_map(|rival| rounded(rival, column)).collect())
        };
        let row = |line| (0..self.columns.len()).map(|column| place(line, column)).collect();
        self.lines.iter().map(row).collect()
    }
}

/// The place of a score among all, itself with them; the greatest is best.
fn place(score: Option<i64>, mut all: Vec<i64>) -> Place {
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    match all.iter().position(|&other| Some(other) == score) {
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
        let statistic = Statistic::of(vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(statistic.mean, 2.5);
        assert!((statistic.deviation.unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Statistic::of(vec![0.5]).unwrap().deviation, None);
        assert_eq!(Statistic::of(vec![]), None);
    }

    #[test]
    fn equal_scores_share_a_place() {
        use Place::{Best, Other, Second};
        let scores = [Some(3), Some(5), None, Some(5), Some(4), Some(3)];
        let places = scores.map(|score| place(score, scores.into_iter().flatten().collect()));
        assert_eq!(places, [Other, Best, Other, Best, Second, Other]);
    }
}
