//! Tuning: settings are chosen one after another.

use akin_core::metrics::Metric;
use anyhow::Result;
use toml::Table;

use super::config::TunedSetting;
use crate::config::lay_over;
use crate::report::is_better;

/// The best settings by a metric; none if no training had a score.
///
/// Settings are tuned in their order. Each value is tried together with the best values of the settings before it,
/// so that the number of trainings is the sum of the numbers of values, not their product. `score` trains with
/// settings; it answers none for a training that failed. Of equal values the first is chosen.
///
/// # Errors
///
/// The errors of `score`, and of [`TunedSetting::choices`].
pub fn tune(
    tuned: &[TunedSetting],
    metric: Metric,
    mut score: impl FnMut(&Table) -> Result<Option<f64>>,
) -> Result<Option<Table>> {
    let mut best: Option<(f64, Table)> = None;
    for setting in tuned {
        let earlier = best.as_ref().map(|(_, settings)| settings.clone()).unwrap_or_default();
        let mut best_value: Option<(f64, Table)> = None;
        for choice in setting.choices()? {
            let mut settings = earlier.clone();
            lay_over(&mut settings, &choice);
            if let Some(score) = score(&settings)?
                && best_value.as_ref().is_none_or(|&(highest, _)| is_better(metric, score, highest))
            {
                best_value = Some((score, settings));
            }
        }
        // A value that equals the config's own scores what it did before; it is chosen, so that it is named.
        if let Some((score, settings)) = best_value
            && best.as_ref().is_none_or(|&(highest, _)| !is_better(metric, highest, score))
        {
            best = Some((score, settings));
        }
    }
    Ok(best.map(|(_, settings)| settings))
}

#[cfg(test)]
mod tests {
    use super::super::settings::describe;
    use super::*;

    fn setting(key: &str, values: &[f64]) -> TunedSetting {
        TunedSetting { key: key.into(), values: values.iter().map(|&value| value.into()).collect() }
    }

    #[test]
    fn each_setting_is_tried_with_the_best_of_those_before_it() {
        let tuned = [setting("optimizer.lr_head", &[1.0, 2.0, 3.0]), setting("loss.lambda", &[0.5, 0.25])];
        let mut tried = Vec::new();
        let best = tune(&tuned, Metric::named("h_ap"), |settings| {
            tried.push(describe(settings));
            let rate = settings["optimizer"]["lr_head"].as_float().unwrap();
            let lambda = settings.get("loss").map_or(1.0, |loss| loss["lambda"].as_float().unwrap());
            Ok(Some(-(rate - 2.0).abs() - lambda))
        });
        assert_eq!(describe(&best.unwrap().unwrap()), "loss.lambda = 0.25, optimizer.lr_head = 2.0");
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
        let score = |settings: &Table| Ok(Some(if settings.contains_key("loss") { 0.1 } else { 0.2 }));
        let best = tune(&tuned, Metric::named("h_ap"), score).unwrap().unwrap();
        assert_eq!(describe(&best), "optimizer.lr_head = 1.0");
    }

    #[test]
    fn trainings_that_fail_are_passed_over() {
        let tuned = [setting("optimizer.lr_head", &[1.0, 2.0])];
        let score =
            |settings: &Table| Ok((settings["optimizer"]["lr_head"].as_float() == Some(2.0)).then_some(0.5));
        let best = tune(&tuned, Metric::named("h_ap"), score).unwrap().unwrap();
        assert_eq!(describe(&best), "optimizer.lr_head = 2.0");
        assert_eq!(tune(&tuned, Metric::named("h_ap"), |_| Ok(None)).unwrap(), None);
    }
}
