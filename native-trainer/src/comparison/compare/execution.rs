//! Carries out a plan: checks every row, evaluates the untrained encoders, tunes, trains and collects the results. Or
//! carries out a single cell of it.

use akin_base::directory::{Draft, Kind};
use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{machine, terminal};
use akin_core::evaluate::Report;
use anyhow::{Context, Result};
use toml::Table;

use super::cells::{self, Cell};
use super::config::TunedSetting;
use super::pace::Pace;
use super::plan::{Plan, Row};
use super::planned_run::{Cost, PlannedRun};
use super::results::{Comparison, ResultRow, Statistic, Trial, columns, scores};
use super::settings::describe;
use super::trainer::Trainer;
use super::tuning::{Answer, Tuning, tune};
use super::untrained::UntrainedEncoders;
use crate::config::device;
use crate::config::{AVERAGE, Config, ModelConfig, NO_RESULT_DEPENDS_ON, Protocol, differences};
use crate::data::Dataset;
use crate::evaluation::report::score;
use crate::pictures::loader::Pictures;
use crate::runs::outcome::Failure;
use crate::runs::run::Run;
use crate::training::checks::PROXIES_RATE;
use crate::training::optimizer::has_proxies;
use crate::training::{check_encoder, check_loss};

/// Trains every run that is not done, and collects the results of all. Also returns their directory, into which the
/// tables have to be written, and how the trainings ended.
///
/// # Errors
///
/// A row that could not begin, which is found before any training begins; a run with another config, unless
/// `overwrite` is set; [`Interrupted`](akin_base::problem::Interrupted) after Ctrl-C. A training that fails does not stop the others: the results
/// name it.
pub fn run(
    plan: &Plan,
    overwrite: bool,
    progress: Progress,
    command: String,
) -> Result<(Comparison, Draft, Pace)> {
    let execution = Execution::new(plan, overwrite, progress);
    let tuned = execution.check()?;
    let draft = Draft::resume_or_create(Kind::Comparison, &plan.out)?;
    Ok((execution.train_all(&tuned, command)?, draft, execution.trainer.pace))
}

/// The cells of a plan, and how far each is. Writes nothing.
///
/// # Errors
///
/// A row that could not begin; a run with another config, version or data, unless `overwrite` is set.
pub fn list_cells(plan: &Plan, overwrite: bool, progress: Progress) -> Result<Vec<Cell>> {
    let execution = Execution::new(plan, overwrite, progress);
    execution.cells(&execution.check()?)
}

/// Trains one cell of a plan, see [`cells::train_cell`].
///
/// # Errors
///
/// As [`list_cells`] and [`cells::train_cell`].
pub fn train_cell(plan: &Plan, number: usize, overwrite: bool, progress: Progress) -> Result<()> {
    let execution = Execution::new(plan, overwrite, progress);
    let cells = execution.cells(&execution.check()?)?;
    cells::train_cell(cells, number, Kind::Comparison, &plan.out, &execution.trainer, |cell, run| {
        let row = plan.rows.iter().find(|row| row.name == cell.row);
        execution.train(run, row.expect("the cells belong to the rows of the plan"), &cell.name)
    })
}

/// What tuning chose for a row.
#[derive(Default)]
struct Choice {
    chosen: Table,
    /// The keys of the settings whose chosen value is at the edge of its grid.
    at_edge: Vec<String>,
    /// The trainings that it took.
    trials: Vec<Trial>,
}

/// A comparison in progress.
struct Execution<'a> {
    plan: &'a Plan,
    trainer: Trainer,
}

impl<'a> Execution<'a> {
    fn new(plan: &'a Plan, overwrite: bool, progress: Progress) -> Self {
        Self { plan, trainer: Trainer::new("Comparing", overwrite, progress) }
    }

    /// Checks that every training could begin, before the first one does. Returns the settings that each row tunes.
    fn check(&self) -> Result<Vec<Vec<TunedSetting>>> {
        let plan = self.plan;
        let shared = plan.shared()?;
        let dataset = self.trainer.data.load(&shared)?;
        dataset.unused_settings(&shared.selection()).iter().for_each(terminal::warn);
        let validation = match plan.rows.iter().find(|row| !row.tune.is_empty()) {
            Some(row) => Some(self.trainer.data.load(&plan.trial(row, &Table::new())?.config)?),
            None => None,
        };
        let rows = plan.rows.iter().map(|row| Ok(plan.trained(row, &Table::new(), plan.seeds[0])?.config));
        let rows = rows.collect::<Result<Vec<Config>>>()?;
        Config::unused_in_all(&rows).iter().chain(&plan.unused).for_each(terminal::warn);
        let device = device::open(shared.run.device)?;
        let mut models: Vec<ModelConfig> = Vec::new();
        let mut check = |config: &Config, dataset: &Dataset| {
            if !models.contains(&config.model) {
                check_encoder(config, &device)?;
                models.push(config.model.clone());
            }
            let pictures = Pictures::of(dataset);
            let run = Run { directory: config.run.out.clone(), config: config.clone() };
            check_loss(&run, dataset, &pictures, &device)
        };
        let mut check_row = |row: &Row| -> Result<Vec<TunedSetting>> {
            let trained = plan.trained(row, &Table::new(), plan.seeds[0])?;
            let has_proxies = has_proxies(&check(&trained.config, &dataset)?);
            let tuned: Vec<TunedSetting> = row
                .tune
                .iter()
                .filter(|setting| has_proxies || setting.key != PROXIES_RATE)
                .cloned()
                .collect();
            for setting in &tuned {
                for settings in setting.choices()? {
                    let trial = plan.trial(row, &settings)?;
                    self.trainer.is_done(&trial)?;
                    check(&trial.config, validation.as_ref().unwrap_or(&dataset))?;
                }
            }
            if tuned.is_empty() {
                for &seed in &plan.seeds {
                    self.trainer.is_done(&plan.trained(row, &Table::new(), seed)?)?;
                }
            }
            Ok(tuned)
        };
        let bar = self.trainer.progress.bar("Checking", plan.rows.len() as u64);
        let tuned = plan.rows.iter().map(|row| {
            let tuned = check_row(row).with_context(|| format!("the row `{}`", row.name));
            bar.advance(1);
            tuned
        });
        tuned.collect()
    }

    fn cells(&self, tuned: &[Vec<TunedSetting>]) -> Result<Vec<Cell>> {
        cells::cells(self.plan, tuned, |run| self.trainer.is_done(run), end_score)
    }

    /// Trains what is not done and collects the results.
    fn train_all(&self, tuned: &[Vec<TunedSetting>], command: String) -> Result<Comparison> {
        let plan = self.plan;
        let shared = plan.shared()?;
        let columns = match shared.split.protocol {
            Protocol::Whole => columns(&plan.columns, shared.data.levels()),
            Protocol::Dyml => columns(&plan.columns, &[AVERAGE.to_owned()]),
        };
        let untrained = UntrainedEncoders::evaluate(plan, &self.trainer.data, self.trainer.progress)?;
        let trials = tuned.iter().flatten().map(|setting| setting.values.len()).sum::<usize>();
        self.trainer.pace.expect(trials + plan.rows.len() * plan.seeds.len());
        // All settings are chosen before the first seed, so that a changed value is noticed early.
        let to_tune = plan.rows.iter().zip(tuned);
        let choices = to_tune.map(|(row, tuned)| self.choose(row, tuned)).collect::<Result<Vec<_>>>()?;
        let mut rows = Vec::new();
        for (row, Choice { chosen, at_edge, trials }) in plan.rows.iter().zip(choices) {
            let (mut reports, mut costs, mut failed) = (Vec::new(), Vec::new(), Vec::new());
            let mut seeds = Vec::new();
            for &seed in &plan.seeds {
                let planned = plan.trained(row, &chosen, seed)?;
                match self.train(&planned, row, &format!("seed {seed}"))? {
                    None => {
                        reports.push(planned.read::<Report>("report.json")?);
                        costs.push(planned.read::<Cost>("run.json")?);
                        seeds.push(seed);
                    }
                    Some(failure) => failed.push(format!("{}, seed {seed}: {}", row.name, failure.message)),
                }
            }
            let seconds = costs.iter().filter_map(|cost| cost.seconds_per_step);
            let memory = costs.iter().filter_map(|cost| cost.peak_memory_bytes.map(|bytes| bytes as f64));
            rows.push(ResultRow {
                name: row.name.clone(),
                label: row.label.clone(),
                group: row.group.clone(),
                apart: row.apart,
                scores: scores(&reports, &columns),
                seeds,
                optimises: row.optimises,
                optimised: Statistic::over(&reports, row.optimises, None),
                untrained: Statistic::over(untrained.reports(row), row.optimises, None),
                seconds_per_step: Statistic::new(seconds.collect()),
                peak_memory_bytes: Statistic::new(memory.collect()),
                trials,
                chosen,
                at_edge,
                config: row.config.clone(),
                varied: row.varied.clone(),
                failed,
            });
        }
        let mut comparison = Comparison {
            name: plan.name.clone(),
            command,
            date: machine::today(),
            machine: machine::describe(),
            budget: self.budget()?,
            seeds: plan.seeds.clone(),
            untrained: untrained.table_rows(&columns),
            columns,
            rows,
            figures: Vec::new(),
            paired: None,
        };
        comparison.sort_by_group();
        Ok(comparison)
    }

    /// Tunes a row on the validation classes.
    fn choose(&self, row: &Row, tuned: &[TunedSetting]) -> Result<Choice> {
        if tuned.is_empty() {
            return Ok(Choice::default());
        }
        let mut trials: Vec<(Config, Trial)> = Vec::new();
        let tuning = tune(tuned, row.optimises, |settings| {
            let planned = self.plan.trial(row, settings)?;
            // A value that is the config's own was tried with the setting before.
            if let Some((_, trial)) = trials
                .iter()
                .find(|(config, _)| differences(config, &planned.config, &NO_RESULT_DEPENDS_ON).is_empty())
            {
                self.trainer.pace.leave_out();
                return Ok(Answer::Score(trial.score));
            }
            let name = describe(settings);
            let score = match self.train(&planned, row, &name)? {
                None => end_score(&planned, row)?,
                Some(failure) if failure.of_numbers => None,
                Some(failure) => return Err(failure.ends_search(&format!("{}, {name}", row.name))),
            };
            trials.push((planned.config, Trial { settings: settings.clone(), score }));
            Ok(Answer::Score(score))
        })?;
        let Tuning::Chosen { settings: chosen, at_edge } = tuning else {
            return Err(problem(
                format!("tuning the row `{}` failed: none of its trainings has a score", row.name),
                "run `akin train` on one of the TOML files in its folder to see why, and change `tune`",
            ));
        };
        Ok(Choice { chosen, at_edge, trials: trials.into_iter().map(|(_, trial)| trial).collect() })
    }

    /// Trains a run of a row unless it is done. The answer is the failure of a training that failed.
    fn train(&self, planned: &PlannedRun, row: &Row, name: &str) -> Result<Option<Failure>> {
        let holds_out = planned.config.split.validation_fraction.is_some();
        let scored_on = if holds_out { " on the held-out classes" } else { "" };
        let name = format!("{}, {name}", row.name);
        self.trainer.train(planned, &name, row.optimises, scored_on, |run| end_score(run, row))
    }

    /// What every row was given, in words.
    fn budget(&self) -> Result<String> {
        let config = self.plan.shared()?;
        let length = match (config.run.steps, config.run.epochs) {
            (Some(steps), _) => counted(steps as usize, "step", "steps"),
            (None, epochs) => counted(epochs.unwrap_or(0) as usize, "epoch", "epochs"),
        };
        let batch = match self.plan.rows.iter().any(|row| row.varied.contains_key("sampler")) {
            true => "the batches of its group".to_owned(),
            false => config.sampler.describe(),
        };
        let mut tuned: Vec<String> = Vec::new();
        for setting in &self.plan.tune {
            let condition = if setting.key == PROXIES_RATE { ", if the loss has proxies" } else { "" };
            let values = counted(setting.values.len(), "value", "values");
            tuned.push(format!("{} ({values}{condition})", setting.key));
        }
        if self.plan.rows.iter().any(|row| row.tune.len() > self.plan.tune.len()) {
            tuned.push("settings of its own".into());
        }
        let tuning = match tuned.is_empty() {
            true => "no tuning".to_owned(),
            false => format!(
                "tuned one after another with one seed: {}; chosen on {:.0} % of the training classes by what the \
                 loss optimises",
                tuned.join(", "),
                100.0 * self.plan.validation_fraction
            ),
        };
        Ok(format!("{length} of {batch}; {tuning}"))
    }
}

/// The score of a training at its end, by the metric that its row optimises.
fn end_score(run: &PlannedRun, row: &Row) -> Result<Option<f64>> {
    Ok(score(&run.read::<Report>("report.json")?, row.optimises, None))
}
