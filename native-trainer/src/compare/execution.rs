//! Carries out a plan: checks every row, evaluates the untrained encoders, tunes, trains and collects the results.

use std::cell::Cell;
use std::time::{Duration, Instant};

use akin_core::evaluate::Report;
use anyhow::{Context, Result};
use toml::Table;

use super::plan::{Plan, Row};
use super::planned_run::{Cost, Ended, PlannedRun, State};
use super::results::{Comparison, Line, Statistic, columns, displayed, is_better, score, scores};
use super::untrained::UntrainedEncoders;
use crate::columns::counted;
use crate::config::Config;
use crate::data::Dataset;
use crate::loader::Pictures;
use crate::problem::{Interrupted, problem};
use crate::progress::Progress;
use crate::run::Run;
use crate::training::{check, interrupted};
use crate::{device, machine};

/// Trains every run that is not done, and collects the results of all.
///
/// # Errors
///
/// A row that could not begin, which is found before any training begins; a run with another config, unless
/// `overwrite` is set; [`Interrupted`] after Ctrl-C. A training that fails does not stop the others: the results name it.
pub fn run(plan: &Plan, overwrite: bool, progress: Progress, command: String) -> Result<Comparison> {
    let execution = Execution { plan, overwrite, progress, pace: Pace::default() };
    execution.check()?;
    execution.train_all(command)
}

/// A comparison in progress.
struct Execution<'a> {
    plan: &'a Plan,
    overwrite: bool,
    progress: Progress,
    pace: Pace,
}

impl Execution<'_> {
    /// Checks that every training could begin, before the first one does.
    fn check(&self) -> Result<()> {
        let plan = self.plan;
        let shared = plan.shared()?;
        let load = |config: &Config| Dataset::load(&config.data, config.run.seed);
        let dataset = load(&shared)?;
        let validation =
            if plan.grid.is_empty() { None } else { Some(load(&plan.tuning(&plan.rows[0], 0)?.config)?) };
        let device = device::open(shared.run.device)?;
        let check_run = |planned: PlannedRun, dataset: &Dataset| {
            let pictures = Pictures::new(&dataset.items);
            let run = Run { directory: planned.config.run.out.clone(), config: planned.config };
            check(&run, dataset, &pictures, &device)
        };
        for row in &plan.rows {
            let context = || format!("the row `{}`", row.name);
            for place in 0..plan.grid.len() {
                let planned = plan.tuning(row, place).with_context(context)?;
                planned.refuse_changed(self.overwrite)?;
                check_run(planned, validation.as_ref().unwrap_or(&dataset)).with_context(context)?;
            }
            check_run(plan.trained(row, &Table::new(), plan.seeds[0])?, &dataset).with_context(context)?;
            if plan.grid.is_empty() {
                for &seed in &plan.seeds {
                    plan.trained(row, &Table::new(), seed)?.refuse_changed(self.overwrite)?;
                }
            }
        }
        Ok(())
    }

    /// Trains what is not done and collects the results.
    fn train_all(&self, command: String) -> Result<Comparison> {
        let plan = self.plan;
        let columns = columns(&plan.columns, &plan.shared()?.data.levels);
        let untrained = UntrainedEncoders::evaluate(plan, self.progress)?;
        self.pace.expect(plan.rows.len() * (plan.grid.len() + plan.seeds.len()));
        // All settings are chosen before the first seed, so that a changed grid is noticed early.
        let chosen = plan.rows.iter().map(|row| self.tune(row)).collect::<Result<Vec<_>>>()?;
        let mut lines = Vec::new();
        for (row, chosen) in plan.rows.iter().zip(chosen) {
            let (mut reports, mut costs, mut failed) = (Vec::new(), Vec::new(), Vec::new());
            for &seed in &plan.seeds {
                let planned = plan.trained(row, &chosen, seed)?;
                match self.train(&planned, row, &format!("seed {seed}"))? {
                    None => {
                        reports.push(planned.read::<Report>("report.json")?);
                        costs.push(planned.read::<Cost>("run.json")?);
                    }
                    Some(reason) => failed.push(format!("{}, seed {seed}: {reason}", row.name)),
                }
            }
            let seconds = costs.iter().map(|cost| cost.seconds_per_step);
            let memory = costs.iter().filter_map(|cost| cost.peak_memory_bytes.map(|bytes| bytes as f64));
            lines.push(Line {
                name: row.name.clone(),
                label: row.label.clone(),
                group: row.group.clone(),
                apart: row.apart,
                scores: scores(&reports, &columns),
                optimises: row.optimises,
                optimised: Statistic::over(&reports, row.optimises, None),
                untrained: Statistic::over(untrained.reports(row), row.optimises, None),
                seconds_per_step: Statistic::new(seconds.collect()),
                peak_memory_bytes: Statistic::new(memory.collect()),
                chosen,
                config: row.config.clone(),
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
            lines,
        };
        comparison.sort_by_group();
        Ok(comparison)
    }

    /// The settings of the grid with which a row scores best on the validation classes; none without a grid.
    fn tune(&self, row: &Row) -> Result<Table> {
        let mut best: Option<(f64, &Table)> = None;
        for (place, settings) in self.plan.grid.iter().enumerate() {
            let planned = self.plan.tuning(row, place)?;
            let name = format!("setting {} of {}", place + 1, self.plan.grid.len());
            if self.train(&planned, row, &name)?.is_some() {
                continue;
            }
            let report: Report = planned.read("report.json")?;
            let Some(score) = score(&report, row.optimises, None) else { continue };
            if best.is_none_or(|(highest, _)| is_better(row.optimises, score, highest)) {
                best = Some((score, settings));
            }
        }
        if best.is_none() && !self.plan.grid.is_empty() {
            return Err(problem(
                format!("no setting of compare.tune gave the loss `{}` a score", row.name),
                "run `akin train` on one of the TOML files in its folder to see why, and change compare.tune",
            ));
        }
        Ok(best.map(|(_, settings)| settings.clone()).unwrap_or_default())
    }

    /// Trains a run unless it is done. The answer is the reason if the training failed.
    fn train(&self, planned: &PlannedRun, row: &Row, name: &str) -> Result<Option<String>> {
        let name = format!("{}, {name}", row.name);
        planned.refuse_changed(self.overwrite)?;
        if planned.state() == State::Done {
            self.pace.skip();
            return Ok(None);
        }
        self.progress.say("Training", &name);
        let started = Instant::now();
        let ended = planned.train()?;
        if matches!(ended, Ended::Stopped) || interrupted() {
            return Err(Interrupted(format!("in {name}; the same command continues")).into());
        }
        let left = self.pace.count(started.elapsed());
        match ended {
            Ended::Failed(reason) => {
                self.progress.say("Failed", &format!("{name}: {reason}"));
                Ok(Some(reason))
            }
            _ => {
                let report: Report = planned.read("report.json")?;
                let score = score(&report, row.optimises, None)
                    .map_or("–".into(), |score| format!("{:.2}", displayed(row.optimises, score)));
                let seconds = started.elapsed().as_secs_f64();
                let result = format!("{name}: {} {score} in {seconds:.0} s; {left}", row.optimises.label());
                self.progress.say("Trained", &result);
                Ok(None)
            }
        }
    }

    /// What every row was given, in words.
    fn budget(&self) -> Result<String> {
        let config = self.plan.shared()?;
        let length = match (config.run.steps, config.run.epochs) {
            (Some(steps), _) => counted(steps as usize, "step", "steps"),
            (None, epochs) => counted(epochs.unwrap_or(0) as usize, "epoch", "epochs"),
        };
        let sampler = &config.sampler;
        let batch = format!("{} classes × {} images", sampler.classes_per_batch, sampler.images_per_class);
        let tuning = match self.plan.grid.len() {
            0 => "no tuning, every loss with its defaults".to_owned(),
            settings => format!(
                "{} of {}, one seed each, chosen on {:.0} % of the training classes by what the loss optimises",
                counted(settings, "setting", "settings"),
                self.plan.tuned.join(" × "),
                100.0 * self.plan.validation_fraction
            ),
        };
        Ok(format!("{length} of {batch}; {tuning}"))
    }
}

/// How many trainings are left, and how long the others took.
#[derive(Default)]
struct Pace {
    left: Cell<usize>,
    trained: Cell<u32>,
    time: Cell<Duration>,
}

impl Pace {
    fn expect(&self, trainings: usize) {
        self.left.set(trainings);
    }

    /// Counts a training that is done already.
    fn skip(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    /// Counts a training that took this long, and says what is left.
    fn count(&self, took: Duration) -> String {
        self.skip();
        self.trained.set(self.trained.get() + 1);
        self.time.set(self.time.get() + took);
        let left = self.left.get();
        let minutes = (self.time.get() / self.trained.get() * left as u32).as_secs().div_ceil(60);
        format!("{left} left, about {minutes} min")
    }
}
