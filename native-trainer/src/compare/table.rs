//! Means and deviations over seeds, and which of them are best.

use serde::Serialize;
use toml::Table;

use super::report::{Column, title};

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
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        (!values.is_empty()).then_some(Self { mean, deviation, values })
    }
}

/// A row of results.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The row's name.
    pub name: String,
    /// What tables call it.
    pub label: String,
    /// Which losses it stands with.
    pub family: String,
    /// A score for each column.
    pub scores: Vec<Option<Statistic>>,
    /// The metric that it is judged by.
    pub optimises: String,
    /// That metric.
    pub optimised: Option<Statistic>,
    /// The same of the untrained encoder.
    pub untrained: Option<Statistic>,
    /// Time per step.
    pub seconds_per_step: Option<Statistic>,
    /// Memory of the process at its peak.
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
        Some(self.optimised.as_ref()?.mean > self.untrained.as_ref()?.mean)
    }

    /// What the metric that it is judged by is called.
    pub fn metric(&self) -> String {
        title(&self.optimises)
    }
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
    /// What every training began with: a score for each column.
    pub untrained: Vec<Option<Statistic>>,
    /// The losses, those of a family together.
    pub lines: Vec<Line>,
}

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
    /// Brings the losses of a family together; families come in the order of their first.
    pub fn group(&mut self) {
        let mut families: Vec<String> = Vec::new();
        for line in &self.lines {
            if !families.contains(&line.family) {
                families.push(line.family.clone());
            }
        }
        self.lines.sort_by_key(|line| families.iter().position(|family| *family == line.family));
    }

    /// The place of every score, a row for each line. Scores that look the same share a place.
    pub fn places(&self) -> Vec<Vec<Place>> {
        let by_column: Vec<Vec<Place>> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let scores = self.lines.iter().map(|line| {
                    let shown = (line.scores[place].as_ref()?.mean * 1000.0).round() as i64;
                    Some(if column.greater_is_better { shown } else { -shown })
                });
                places(&scores.collect::<Vec<_>>())
            })
            .collect();
        (0..self.lines.len()).map(|line| by_column.iter().map(|column| column[line]).collect()).collect()
    }
}

/// The greatest is best.
fn places(scores: &[Option<i64>]) -> Vec<Place> {
    let mut ranked: Vec<i64> = scores.iter().flatten().copied().collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.dedup();
    let place = |score: &Option<i64>| match score.and_then(|score| ranked.iter().position(|&r| r == score)) {
        Some(0) => Place::Best,
        Some(1) => Place::Second,
        _ => Place::Other,
    };
    scores.iter().map(place).collect()
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
        assert_eq!(places(&scores), [Other, Best, Other, Best, Second, Other]);
    }
}
