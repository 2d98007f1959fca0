//! Tuning: settings are chosen one after another.

use akin_core::metrics::Metric;
use anyhow::Result;
use toml::Table;

use super::config::TunedSetting;
use crate::config::lay_over;
use crate::evaluation::report::is_better;

/// What a training for tuning says about its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Their score; none if the training failed.
    Score(Option<f64>),
    /// The training has not ended.
    Pending,
}

/// Where tuning stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Tuning {
    /// The best settings.
    Chosen(Table),
    /// No training had a score.
    NoScore,
    /// A training has not ended on which the choice depends.
    Pending,
}

/// The best settings by a metric.
///
/// Settings are tuned in their order. Each value is tried together with the best values of the settings before it,
/// so that the number of trainings is the sum of the numbers of values, not their product. `score` trains with
/// settings. Of equal values the first is chosen. After the values of a setting of which one is pending, no other
/// setting is tried.
///
/// # Errors
///
/// The errors of `score`, and of [`TunedSetting::choices`].
pub fn tune(
    tuned: &[TunedSetting],
    metric: Metric,
    mut score: impl FnMut(&Table) -> Result<Answer>,
) -> Result<Tuning> {
    let mut best: Option<(f64, Table)> = None;
    for setting in tuned {
        let earlier = best.as_ref().map(|(_, settings)| settings.clone()).unwrap_or_default();
        let mut best_value: Option<(f64, Table)> = None;
        let mut pending = false;
        for choice in setting.choices()? {
            let mut settings = earlier.clone();
            lay_over(&mut settings, &choice);
            match score(&settings)? {
                Answer::Score(Some(score))
                    if best_value.as_ref().is_none_or(|&(highest, _)| is_better(metric, score, highest)) =>
                {
                    best_value = Some((score, settings));
                }
                Answer::Score(_) => {}
                Answer::Pending => pending = true,
            }
        }
        if pending {
            return Ok(Tuning::Pending);
        }
        // A value that equals the config's own scores what it did before; it is chosen, so that it is named.
        if let Some((score, settings)) = best_value
            && best.as_ref().is_none_or(|&(highest, _)| !is_better(metric, highest, score))
        {
            best = Some((score, settings));
        }
    }
    Ok(best.map_or(Tuning::NoScore, |(_, settings)| Tuning::Chosen(settings)))
}

#[cfg(test)]
mod tests {
    use super::super::settings::describe;
    use super::*;

    fn setting(key: &str, values: &[f64]) -> TunedSetting {
        TunedSetting { key: key.into(), values: values.iter().map(|&value| value.into()).collect() }
    }

    fn chosen(tuning: Result<Tuning>) -> String {
        match tuning.unwrap() {
            Tuning::Chosen(settings) => describe(&settings),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_setting_is_tried_with_the_best_of_those_before_it() {
        let tuned = [setting("optimizer.lr_head", &[1.0, 2.0, 3.0]), setting("loss.lambda", &[0.5, 0.25])];
        let mut tried = Vec::new();
        let best = tune(&tuned, Metric::named("h_ap"), |settings| {
            tried.push(describe(settings));
            let rate = settings["optimizer"]["lr_head"].as_float().unwrap();
            let lambda = settings.get("loss").map_or(1.0, |loss| loss["lambda"].as_float().unwrap());
            Ok(Answer::Score(Some(-(rate - 2.0).abs() - lambda)))
        });
        assert_eq!(chosen(best), "loss.lambda = 0.25, optimizer.lr_head = 2.0");
        assert_eq!(
            tried,
            [
                "optimizer.lr_head = 1.0",
                "optimizer.lr_head = 2.0",
                "optimizer.lr_head = 3.0",
                "loss.lambda = 0.5, optimizer.lr_head = 2.0",
                "loss.lambda = 0.25, optimizer.lr_head = 2.0",
            ]
        );
    }

    #[test]
    fn a_setting_that_only_makes_it_worse_is_left_at_its_default() {
        let tuned = [setting("optimizer.lr_head", &[1.0]), setting("loss.lambda", &[0.5])];
        let score =
            |settings: &Table| Ok(Answer::Score(Some(if settings.contains_key("loss") { 0.1 } else { 0.2 })));
        let best = tune(&tuned, Metric::named("h_ap"), score);
        assert_eq!(chosen(best), "optimizer.lr_head = 1.0");
    }

    #[test]
    fn trainings_that_fail_are_passed_over() {
        let tuned = [setting("optimizer.lr_head", &[1.0, 2.0])];
        let score = |settings: &Table| {
            Ok(Answer::Score((settings["optimizer"]["lr_head"].as_float() == Some(2.0)).then_some(0.5)))
        };
        assert_eq!(chosen(tune(&tuned, Metric::named("h_ap"), score)), "optimizer.lr_head = 2.0");
        let failed = tune(&tuned, Metric::named("h_ap"), |_| Ok(Answer::Score(None)));
        assert_eq!(failed.unwrap(), Tuning::NoScore);
    }

    #[test]
    fn a_setting_waits_until_every_value_of_the_one_before_it_has_been_tried() {
        let tuned = [setting("optimizer.lr_head", &[1.0, 2.0]), setting("loss.lambda", &[0.5])];
        let mut tried = Vec::new();
        let tuning = tune(&tuned, Metric::named("h_ap"), |settings| {
            tried.push(describe(settings));
            Ok(if tried.len() == 1 { Answer::Pending } else { Answer::Score(Some(0.5)) })
        });
        assert_eq!(tuning.unwrap(), Tuning::Pending);
        assert_eq!(tried, ["optimizer.lr_head = 1.0", "optimizer.lr_head = 2.0"]);
    }
}
