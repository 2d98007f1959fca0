//! Tuning: settings are chosen one after another.

use akin_core::metrics::Metric;
use anyhow::Result;
use toml::Table;

use super::config::TunedSetting;
use super::grid::is_at_edge;
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
    /// The best settings, and the keys of those whose value is [at the edge](is_at_edge) of its grid.
    Chosen { settings: Table, at_edge: Vec<String> },
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
    let mut at_edge = Vec::new();
    for setting in tuned {
        let earlier = best.as_ref().map(|(_, settings)| settings.clone()).unwrap_or_default();
        let mut best_value: Option<(f64, usize, Table)> = None;
        let mut scores = Vec::new();
        let mut pending = false;
        for (place, choice) in setting.choices()?.iter().enumerate() {
            let mut settings = earlier.clone();
            lay_over(&mut settings, choice);
            let answer = score(&settings)?;
            match answer {
                Answer::Score(score) => scores.push(score),
                Answer::Pending => pending = true,
            }
            if let Answer::Score(Some(score)) = answer
                && best_value.as_ref().is_none_or(|&(highest, ..)| is_better(metric, score, highest))
            {
                best_value = Some((score, place, settings));
            }
        }
        if pending {
            return Ok(Tuning::Pending);
        }
        // A value that equals the config's own scores what it did before; it is chosen, so that it is named.
        if let Some((score, place, settings)) = best_value
            && best.as_ref().is_none_or(|&(highest, _)| !is_better(metric, highest, score))
        {
            best = Some((score, settings));
            if is_at_edge(&setting.values, &scores, place) {
                at_edge.push(setting.key.clone());
            }
        }
    }
    Ok(best.map_or(Tuning::NoScore, |(_, settings)| Tuning::Chosen { settings, at_edge }))
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
            Tuning::Chosen { settings, .. } => describe(&settings),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chosen_value_is_at_the_edge_if_no_value_beyond_it_was_tried() {
        let tuned = [
            setting("optimizer.lr_head", &[1.0, 2.0, 3.0]),
            setting("optimizer.lr_proxies", &[1.0, 2.0, 3.0]),
            setting("loss.lambda", &[0.5, 0.25]),
        ];
        // The best rate of the head is 2, of the proxies 3 or more; λ makes it worse, and stays at its default.
        let score = |settings: &Table| {
            let number = |section: &str, key: &str, default: f64| {
                settings.get(section).and_then(|section| section.get(key)?.as_float()).unwrap_or(default)
            };
            let head = number("optimizer", "lr_head", 0.0);
            let proxies = number("optimizer", "lr_proxies", 0.0);
            let lambda = number("loss", "lambda", 1.0);
            Ok(Answer::Score(Some(proxies + lambda - (head - 2.0).abs())))
        };
        let Tuning::Chosen { at_edge, .. } = tune(&tuned, Metric::named("h_ap"), score).unwrap() else {
            panic!("every training has a score");
        };
        assert_eq!(at_edge, ["optimizer.lr_proxies"]);
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
