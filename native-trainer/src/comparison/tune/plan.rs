//! The config of every training of a tuning.

use std::path::{Path, PathBuf, absolute};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_core::digest::sha256;
use akin_core::metrics::Metric;
use anyhow::Result;
use toml::Table;

use super::config::{Search, TuneConfig};
use super::search::SettingsSearch;
use super::space::Space;
use crate::comparison::compare::planned_run::PlannedRun;
use crate::comparison::compare::settings::describe;
use crate::config::{Config, DeviceName, Fold, Protocol, Source};
use crate::training::checks::why_unused;

/// The most trials of the search `bayesian`, whose time grows with the cube of their number.
const MOST_BAYESIAN_TRIALS: usize = 500;

/// A tuning without its results.
pub struct Plan {
    /// The name of the tuning: that of the config.
    pub name: String,
    /// Where runs and results go.
    pub out: PathBuf,
    /// The number of folds.
    pub folds: usize,
    /// The number of trials.
    pub trials: usize,
    /// How often the best settings are trained again.
    pub reproductions: usize,
    /// The metric that settings are chosen by.
    pub metric: Metric,
    /// How settings are chosen.
    pub search: SettingsSearch,
    /// `run.seed` of the config, which the trials have.
    seed: u64,
    source: Source,
    device: Option<DeviceName>,
}

/// What the command line gives in place of the config.
#[derive(Default)]
pub struct Overrides {
    /// The number of trials.
    pub trials: Option<usize>,
    /// Where runs and results go. Default: `tune/NAME`.
    pub out: Option<PathBuf>,
    /// Where tensors are computed.
    pub device: Option<DeviceName>,
}

impl Plan {
    /// The plan of a config.
    ///
    /// # Errors
    ///
    /// A section `[tune]` that cannot be read or has a value out of its range, ranges with values that the config cannot
    /// have, a config that holds classes out itself.
    pub fn new(source: Source, overrides: Overrides) -> Result<Self> {
        let tune: TuneConfig = source.command("tune")?;
        let trials = overrides.trials.unwrap_or(tune.trials);
        let counts = [
            ("tune.folds", tune.folds, 2, 100),
            ("tune.trials", trials, 1, 10_000),
            ("tune.reproductions", tune.reproductions, 0, 1_000),
        ];
        for (key, count, least, most) in counts {
            if !(least..=most).contains(&count) {
                return Err(problem(
                    format!("{key} is {count}"),
                    format!("give a whole number from {least} to {most}"),
                ));
            }
        }
        if tune.search == Search::Bayesian && trials > MOST_BAYESIAN_TRIALS {
            return Err(problem(
                format!("tune.trials is {trials}, which is too many for the search `bayesian`"),
                format!("give at most {MOST_BAYESIAN_TRIALS}, or tune.search = \"sobol\""),
            ));
        }
        let search = SettingsSearch {
            space: Space::new(&tune.ranges)?,
            search: tune.search,
            first_trials: tune.first_trials,
            seed: tune.seed,
        };
        let base = source.config(&Table::new())?;
        // TOML has no greater whole numbers.
        if base.run.seed > i64::MAX as u64 - tune.reproductions as u64 {
            return Err(problem(
                format!(
                    "run.seed is {}, which leaves no seeds for {}",
                    base.run.seed,
                    counted(tune.reproductions, "reproduction", "reproductions")
                ),
                "give a smaller seed",
            ));
        }
        if base.split.holds_out() {
            return Err(problem(
                "the config sets split.validation_fraction or split.fold, but `akin tune` holds out the folds itself",
                "remove it",
            ));
        }
        if base.split.protocol == Protocol::Dyml {
            return Err(problem(
                "split.protocol is `dyml`, whose benchmarks are no folds of the training classes",
                "tune with split.protocol = \"whole\", and train the best settings with `dyml`",
            ));
        }
        let extremes = extremes(&source, &search.space)?;
        for key in search.space.keys() {
            // A setting may have an effect with one value of another, such as a kind.
            let reasons: Option<Vec<String>> =
                extremes.iter().map(|(_, config)| why_unused(config, key)).collect();
            if let Some(reason) = reasons.as_ref().and_then(|reasons| reasons.first()) {
                return Err(problem(
                    format!("tune.ranges has {key}, which has no effect: {reason}"),
                    "remove this range, or correct the other setting",
                ));
            }
        }
        let metric = match tune.metric {
            Some(metric) => metric,
            None => base.loss.entry().optimises.parse()?,
        };
        let name = source.name();
        let out = overrides.out.unwrap_or_else(|| Path::new("tune").join(&name));
        Ok(Self {
            name,
            out: absolute(out)?,
            folds: tune.folds,
            trials,
            reproductions: tune.reproductions,
            metric,
            search,
            seed: base.run.seed,
            source,
            device: overrides.device,
        })
    }

    /// The config of each extreme of the ranges, with the place that says what is in it.
    ///
    /// # Errors
    ///
    /// A config that is wrong.
    pub fn extremes(&self) -> Result<Vec<(String, Config)>> {
        extremes(&self.source, &self.search.space)
    }

    /// The config without any setting of the ranges.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn shared(&self) -> Result<Config> {
        let mut config = self.source.config(&Table::new())?;
        config.run.device = self.device.unwrap_or(config.run.device);
        self.add_metric(&mut config);
        Ok(config)
    }

    /// The training of a trial with some settings, for one fold, from 1.
    ///
    /// # Errors
    ///
    /// Settings that the config cannot have.
    pub fn trial(&self, settings: &Table, fold: usize) -> Result<PlannedRun> {
        let folder = Path::new("trials").join(digest(settings));
        self.run(settings, &folder, fold, 0)
    }

    /// The training with the best settings and one of the seeds of the reproductions, from 1, for one fold.
    ///
    /// # Errors
    ///
    /// Settings that the config cannot have.
    pub fn model(&self, settings: &Table, reproduction: usize, fold: usize) -> Result<PlannedRun> {
        let seed = format!("seed-{}", self.seed(reproduction));
        let folder = Path::new("models").join(digest(settings)).join(seed);
        self.run(settings, &folder, fold, reproduction)
    }

    /// The seed of a reproduction, from 1. That of the trials is number 0.
    pub fn seed(&self, reproduction: usize) -> u64 {
        self.seed + reproduction as u64
    }

    /// The config with these settings, to train on all training classes.
    ///
    /// # Errors
    ///
    /// Settings that the config cannot have.
    pub fn best(&self, settings: &Table) -> Result<Config> {
        let mut config = self.source.config(settings)?;
        config.run.out = self.out.join("best");
        Ok(config)
    }

    fn run(&self, settings: &Table, folder: &Path, fold: usize, reproduction: usize) -> Result<PlannedRun> {
        let mut config = self.source.config(settings)?;
        config.run.name = format!("{}, {}, fold {fold}", self.name, describe(settings));
        config.run.out = self.out.join(folder).join(format!("fold-{fold}"));
        config.run.seed = self.seed(reproduction);
        config.run.device = self.device.unwrap_or(config.run.device);
        // The best evaluation is the one that counts.
        if config.run.evaluate_every_epochs > 0 {
            config.run.best_by = self.metric;
        }
        config.split.fold = Some(Fold { number: fold, of: self.folds });
        // All seeds share the folds and the evaluation splits.
        config.split.seed = config.split.seed.or(Some(self.seed));
        // A paper reports nothing about a fold.
        config.published = None;
        self.add_metric(&mut config);
        let model = &mut config.model;
        // The features of fixed weights are the same for all runs.
        if model.freeze_backbone && model.feature_cache.is_none() && model.weights.is_some() {
            model.feature_cache = Some(self.out.join("features.akin"));
        }
        Ok(PlannedRun { config })
    }

    fn add_metric(&self, config: &mut Config) {
        if !config.eval.metrics.contains(&self.metric) {
            config.eval.metrics.push(self.metric);
        }
    }
}

/// As [`Plan::extremes`].
fn extremes(source: &Source, space: &Space) -> Result<Vec<(String, Config)>> {
    let config_at = |point: Vec<f64>| {
        let settings = space.settings(&point)?;
        let keys: Vec<&str> = space.keys().collect();
        let place = || {
            let place = match keys[..] {
                [key] => source.place(&["tune", "ranges", key]),
                _ => source.place(&["tune", "ranges"]),
            };
            format!("{place}: `ranges` with {}", describe(&settings))
        };
        Ok((place(), source.config_with(&settings, place)?))
    };
    space.extremes().into_iter().map(config_at).collect()
}

/// The name of the folder of some settings.
fn digest(settings: &Table) -> String {
    sha256(settings.to_string().as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use crate::config::recipes::RECIPES;
    use crate::training::checks::check_loss_settings;

    #[test]
    fn other_best_settings_have_models_of_their_own() {
        let recipe = RECIPES.iter().find(|recipe| recipe.tunes()).unwrap();
        let text = recipe.text.replace("${AKIN_DATA}", "data");
        let source = Source::from_text(Path::new(recipe.name), text, None, &[]).unwrap();
        let plan = Plan::new(source, Overrides::default()).unwrap();
        let folder = |point: &[f64]| {
            let settings = plan.search.space.settings(point).unwrap();
            plan.model(&settings, 1, 1).unwrap().directory().to_owned()
        };
        let points = plan.search.space.extremes();
        assert_ne!(folder(&points[0]), folder(&points[1]));
        assert_eq!(folder(&points[0]), folder(&points[0]));
    }

    #[test]
    fn every_recipe_with_ranges_can_be_tuned_over_all_of_them() {
        let recipes: Vec<_> = RECIPES.iter().filter(|recipe| recipe.tunes()).collect();
        assert!(!recipes.is_empty());
        for recipe in recipes {
            let text = recipe.text.replace("${AKIN_DATA}", "data");
            let source = Source::from_text(Path::new(recipe.name), text, None, &[]).unwrap();
            let plan = Plan::new(source, Overrides::default()).unwrap();
            for (place, config) in plan.extremes().unwrap() {
                check_loss_settings(&config).context(place).unwrap();
            }
            for point in plan.search.space.extremes() {
                let settings = plan.search.space.settings(&point).unwrap();
                let config = plan.trial(&settings, plan.folds).unwrap().config;
                assert_eq!(config.split.fold, Some(Fold { number: plan.folds, of: plan.folds }));
                assert!(config.run.out.ends_with(format!("fold-{}", plan.folds)));
                assert_eq!(config.run.seed + 1, plan.model(&settings, 1, 1).unwrap().config.run.seed);
            }
        }
    }
}
