//! What a training wrote into its log: losses, learning rates and evaluations, by step.

use std::collections::BTreeMap;

use akin_base::files::read_regular_file;
use akin_base::problem::Advise;
use akin_core::evaluate::Report;
use anyhow::Result;
use serde_json::Value;

use crate::runs::run::Run;

/// The log of a run.
#[derive(Default)]
pub struct Log {
    /// The loss of each step.
    pub losses: BTreeMap<u64, f64>,
    /// The learning rates of each step, by their names.
    pub rates: BTreeMap<String, BTreeMap<u64, f64>>,
    /// The evaluations, by the steps before them. The last is the one at the end.
    pub evaluations: BTreeMap<u64, Report>,
}

impl Log {
    /// Reads the log of a run. A line that cannot be read is passed over, since a killed process may leave a part of one.
    ///
    /// # Errors
    ///
    /// A log that cannot be read.
    pub fn read(run: &Run) -> Result<Self> {
        let path = run.file("log.jsonl");
        let bytes = read_regular_file(&path).advise(
            || format!("the log {} cannot be read", path.display()),
            "restore the run from a copy, or train it again",
        )?;
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Steps that a resumed training repeated count as they were last.
    fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            let Ok(mut entry) = serde_json::from_str::<Value>(line) else { continue };
            let Some(step) = entry["step"].as_u64() else { continue };
            if let Some(loss) = entry["loss"].as_f64() {
                log.losses.insert(step, loss);
            }
            for (name, rate) in rates(&entry) {
                log.rates.entry(name).or_default().insert(step, rate);
            }
            if let Ok(report) = serde_json::from_value(entry["report"].take()) {
                log.evaluations.insert(step, report);
            }
        }
        log
    }
}

/// The learning rates of an entry of a log, by their names.
pub fn rates(entry: &Value) -> Vec<(String, f64)> {
    let mut rates = Vec::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        let Some(name) = key.strip_prefix("lr_") else { continue };
        let mut add = |name: String, rate: &Value| rates.extend(rate.as_f64().map(|rate| (name, rate)));
        match value.as_array() {
            // The terms of a sum have a rate each.
            Some(terms) => {
                (1..).zip(terms).for_each(|(number, rate)| add(format!("{name}_{number}"), rate));
            }
            None => add(name.to_owned(), value),
        }
    }
    rates
}

/// At most `most` points of a line: the means of equal parts.
pub fn thinned(points: &BTreeMap<u64, f64>, most: usize) -> Vec<[f64; 2]> {
    mean_points(&points.iter().map(|(&step, &value)| [step as f64, value]).collect::<Vec<_>>(), most)
}

/// At most `most` points: the means of equal parts.
pub fn mean_points(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    let size = points.len().div_ceil(most).max(1);
    let mean = |part: &[[f64; 2]]| {
        let sum = part.iter().fold([0.0; 2], |sum, point| [sum[0] + point[0], sum[1] + point[1]]);
        sum.map(|sum| sum / part.len() as f64)
    };
    points.chunks(size).map(mean).collect()
}

/// A line without its noise: the mean of each point and those around it, a twentieth of the line in all.
pub fn smoothed(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let around = points.len() / 40;
    let mean = |place: usize| {
        let part = &points[place.saturating_sub(around)..(place + around + 1).min(points.len())];
        part.iter().map(|point| point[1]).sum::<f64>() / part.len() as f64
    };
    points.iter().enumerate().map(|(place, point)| [point[0], mean(place)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_losses_rates_and_no_broken_lines() {
        let text = "{\"event\":\"step\",\"step\":1,\"loss\":2.0,\"lr_head\":0.1}\n{\"event\":\"step\",\"step\":2,\"loss\":1.5}\n\
                    {\"event\":\"step\",\"step\":2,\"loss\":1.0}\n{\"event\":\"resumed\",\"step\":1}\n{\"event\":\"st";
        let log = Log::parse(text);
        assert_eq!(log.losses, BTreeMap::from([(1, 2.0), (2, 1.0)]));
        assert_eq!(log.rates["head"], BTreeMap::from([(1, 0.1)]));
        assert!(log.evaluations.is_empty());
    }

    #[test]
    fn each_term_of_a_loss_has_its_rate() {
        let log = Log::parse("{\"step\":1,\"lr_proxies\":null,\"lr_terms\":[0.0,0.5]}");
        let rates = [("terms_1", 0.0), ("terms_2", 0.5)];
        let rates = rates.map(|(name, rate)| (name.to_owned(), BTreeMap::from([(1, rate)])));
        assert_eq!(log.rates, BTreeMap::from(rates));
    }

    #[test]
    fn a_thinned_line_has_the_means_of_its_parts() {
        let line: BTreeMap<u64, f64> = (1..=6).map(|step| (step, step as f64 * 2.0)).collect();
        assert_eq!(thinned(&line, 3), [[1.5, 3.0], [3.5, 7.0], [5.5, 11.0]]);
        assert_eq!(thinned(&line, 10).len(), 6);
        assert!(thinned(&BTreeMap::new(), 10).is_empty());
    }

    #[test]
    fn a_smoothed_line_keeps_a_constant() {
        let line = vec![[1.0, 3.0]; 200];
        assert_eq!(smoothed(&line), line);
    }
}
