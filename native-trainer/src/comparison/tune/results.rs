//! The results of a tuning: its trials, and the scores of the models on the evaluation splits.

use akin_core::evaluate::Report;
use akin_core::metrics::{Metric, Unit};
use akin_core::statistics::{half_width, mean};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::comparison::compare::results::Column;
use crate::evaluation::report::{displayed, is_better, score};

/// A trial.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Its number, from 1.
    pub number: usize,
    /// Its settings.
    pub settings: Table,
    /// The value of each setting, in the order of the keys.
    #[serde(skip)]
    pub values: Vec<Value>,
    /// The score on each fold; none for a training that failed or was not needed any more.
    pub folds: Vec<Option<f64>>,
    /// The mean over the folds; none if a training failed.
    pub score: Option<f64>,
    /// Why the numbers of a training failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The best of some trials by a metric, the first of equally good ones; none if all failed.
pub fn best(trials: &[Trial], metric: Metric) -> Option<&Trial> {
    let mut best: Option<(f64, &Trial)> = None;
    for trial in trials {
        if let Some(score) = trial.score
            && best.is_none_or(|(highest, _)| is_better(metric, score, highest))
        {
            best = Some((score, trial));
        }
    }
    best.map(|(_, trial)| trial)
}

/// The evaluation of the models of one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeedReports {
    /// What the reports depend on, as a SHA-256.
    pub key: String,
    /// The report of the model of each fold.
    pub separated: Vec<Report>,
    /// The report of all models as one; none where embeddings cannot be put together.
    pub concatenated: Option<Report>,
}

/// The scores of the models of one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedScores {
    /// The seed.
    pub seed: u64,
    /// The score of the model of each fold; none where the report has none.
    pub folds: Vec<Option<f64>>,
    /// The score of all models as one; none where embeddings cannot be put together.
    pub concatenated: Option<f64>,
}

impl SeedScores {
    /// The scores in the reports of a seed.
    pub fn new(seed: u64, reports: &SeedReports, metric: Metric) -> Self {
        let at = |report: &Report| score(report, metric, None);
        Self {
            seed,
            folds: reports.separated.iter().map(at).collect(),
            concatenated: reports.concatenated.as_ref().and_then(at),
        }
    }

    /// The scores by a metric, on one line.
    pub fn describe(&self, metric: Metric) -> String {
        let shown = |score: f64| format!("{:.2}", displayed(metric, score));
        let folds: Option<Vec<f64>> = self.folds.iter().copied().collect();
        let separated = folds.and_then(|folds| mean(&folds)).map_or("–".into(), shown);
        let concatenated = self.concatenated.map(|score| format!(", {} concatenated", shown(score)));
        format!(
            "best settings, seed {}: {} on the evaluation splits {separated} separated{}",
            self.seed,
            metric.label(),
            concatenated.unwrap_or_default()
        )
    }
}

/// The fewest seeds that give an interval. Those of two are wider than most scales: t is 12.7 there.
pub const FEWEST_FOR_INTERVAL: usize = 3;

/// A mean over seeds with its 95 % interval of Student's t.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval; none with fewer than three seeds, or if the interval leaves the range of the metric,
    /// since Student's t does not know that range.
    pub half_width: Option<f64>,
    /// The score of each seed.
    pub values: Vec<f64>,
}

impl Interval {
    /// The interval of the scores of some seeds; none without a score.
    pub fn new(metric: Metric, values: Vec<f64>) -> Option<Self> {
        let mean = mean(&values)?;
        let room = match metric.entry().unit {
            Unit::Share => mean.min(1.0 - mean),
            Unit::Levels => mean,
        };
        let is_enough = values.len() >= FEWEST_FOR_INTERVAL;
        let half_width = half_width(&values).filter(|&half_width| is_enough && half_width <= room);
        Some(Self { mean, half_width, values })
    }
}

/// The scores of each column over the seeds: of the models apart, where each seed counts with the mean of its models, and
/// of all models as one.
pub fn intervals(seeds: &[SeedReports], columns: &[Column]) -> [Vec<Option<Interval>>; 2] {
    let at = |report: &Report, column: &Column| score(report, column.metric, column.level.as_deref());
    let separated = columns.iter().map(|column| {
        let mean_of_models = |reports: &SeedReports| {
            let scores: Vec<f64> = reports.separated.iter().filter_map(|report| at(report, column)).collect();
            mean(&scores)
        };
        Interval::new(column.metric, seeds.iter().filter_map(mean_of_models).collect())
    });
    let concatenated = columns.iter().map(|column| {
        let reports = seeds.iter().filter_map(|reports| reports.concatenated.as_ref());
        Interval::new(column.metric, reports.filter_map(|report| at(report, column)).collect())
    });
    [separated.collect(), concatenated.collect()]
}

/// A whole tuning, as it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The config.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// The day that it was made on.
    pub date: String,
    /// The machine that it was made on.
    pub machine: String,
    /// The metric that settings are chosen by.
    pub metric: Metric,
    /// The number of folds.
    pub folds: usize,
    /// The keys of the settings.
    pub keys: Vec<String>,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// The number of the best trial.
    pub best: usize,
    /// The seeds of the models that are evaluated.
    pub seeds: Vec<u64>,
    /// The scores of the models of each seed on the evaluation splits, by the metric that settings are chosen by.
    pub models: Vec<SeedScores>,
    /// The columns of the table of models.
    pub columns: Vec<Column>,
    /// The scores of the models apart.
    pub separated: Vec<Option<Interval>>,
    /// The scores of all models as one.
    pub concatenated: Vec<Option<Interval>>,
    /// The trainings of models that failed, with the reason.
    pub failed: Vec<String>,
}

impl Results {
    /// The best trial.
    pub fn best_trial(&self) -> &Trial {
        &self.trials[self.best - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_three_seeds_and_stays_in_the_range_of_the_metric() {
        let half_width = |metric: &str, values: &[f64]| {
            Interval::new(Metric::named(metric), values.to_vec()).unwrap().half_width
        };
        assert_eq!(half_width("recall@1", &[0.019, 0.157]), None, "two seeds");
        assert_eq!(half_width("recall@1", &[0.50, 0.51]), None, "two seeds");
        // t is 4.303 with 2 degrees of freedom, and the deviation is 0.01.
        let narrow = half_width("recall@1", &[0.50, 0.51, 0.52]).unwrap();
        assert!((narrow - 4.303 * 0.01 / 3.0_f64.sqrt()).abs() < 1e-5, "{narrow}");
        assert_eq!(half_width("recall@1", &[0.00, 0.01, 0.02]), None, "it would begin below 0");
        assert_eq!(half_width("recall@1", &[1.00, 0.99, 0.98]), None, "it would end above 1");
    }
}
