//! How the evaluations on the way of a training go: what makes the learning rates fall, and ends the training early.

use akin_core::metrics::Metric;
use serde::{Deserialize, Serialize};

use crate::evaluation::report::is_better;

/// See the [module](self). It is part of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The metric and its best score; none before the first evaluation.
    best: Option<(Metric, f64)>,
    /// The evaluations since the best one.
    since_best: u64,
    /// The evaluations since the best one or, if that was later, since the learning rates fell.
    since_fall: u64,
    /// How often the learning rates have fallen.
    falls: u64,
}

impl Trend {
    /// Adds an evaluation. `patience` is the number of evaluations in a row that may be no better than the best one
    /// without a fall of the learning rates, as torch's `ReduceLROnPlateau` counts; without it they never fall. After a
    /// change of the metric an evaluation counts as the first.
    pub fn add(&mut self, metric: Metric, score: f64, patience: Option<u64>) {
        match self.best {
            Some((known, best)) if known == metric && !is_better(metric, score, best) => {
                self.since_best += 1;
                self.since_fall += 1;
            }
            _ => {
                self.best = Some((metric, score));
                (self.since_best, self.since_fall) = (0, 0);
            }
        }
        if patience.is_some_and(|patience| self.since_fall > patience) {
            self.falls += 1;
            self.since_fall = 0;
        }
    }

    /// The number of evaluations since the best one.
    pub fn since_best(&self) -> u64 {
        self.since_best
    }

    /// How often the learning rates have fallen.
    pub fn falls(&self) -> u64 {
        self.falls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The falls and the evaluations since the best one, after each of these scores.
    fn follow(metric: &str, patience: u64, scores: &[f64]) -> Vec<(u64, u64)> {
        let mut trend = Trend::default();
        let add = |&score: &f64| {
            trend.add(Metric::named(metric), score, Some(patience));
            (trend.falls(), trend.since_best())
        };
        scores.iter().map(add).collect()
    }

    /// What torch's `ReduceLROnPlateau(mode="max", patience=1, threshold=0)` does with these scores.
    #[test]
    fn the_rates_fall_after_more_evaluations_without_a_better_one_than_the_patience() {
        let scores = [0.5, 0.5, 0.4, 0.4, 0.4, 0.6, 0.5, 0.6];
        let falls: Vec<u64> = follow("h_ap", 1, &scores).into_iter().map(|(falls, _)| falls).collect();
        assert_eq!(falls, [0, 0, 1, 1, 2, 2, 2, 3]);
        assert_eq!(follow("h_ap", 0, &[0.5, 0.6, 0.6, 0.7]), [(0, 0), (0, 0), (1, 1), (1, 0)]);
    }

    #[test]
    fn an_equal_score_is_no_better_one() {
        let since: Vec<u64> =
            follow("h_ap", 9, &[0.5, 0.5, 0.4, 0.6]).into_iter().map(|(_, since)| since).collect();
        assert_eq!(since, [0, 1, 2, 0]);
    }

    #[test]
    fn scores_of_another_metric_are_not_compared() {
        let mut trend = Trend::default();
        for (metric, score) in [("h_ap", 0.5), ("h_ap", 0.4), ("ndcg", 0.3)] {
            trend.add(Metric::named(metric), score, Some(9));
        }
        assert_eq!((trend.best, trend.since_best()), (Some((Metric::named("ndcg"), 0.3)), 0));
    }
}
