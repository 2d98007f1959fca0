//! Does what a plan says: checks every row, measures what they begin with, tunes, trains, and gathers the
//! results.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use toml::Table;

use super::cell::{Cell, Ended, State};
use super::plan::{Plan, Row};
use super::report::{columns, over, score, scores, title};
use super::start::Starts;
use super::table::{Comparison, Line, Statistic};
use crate::config::Config;
use crate::data::Dataset;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::Progress;
use crate::run::Run;
use crate::table::counted;
use crate::training::{check, interrupted};
use crate::{device, machine};

/// Trains every cell that is not there yet, and gathers all of them. After Ctrl-C the process exits with
/// 130.
///
/// # Errors
///
/// A row that could not begin, which is found before any does; a cell of another config, unless
/// `overwrite` is set. A training that fails is an entry of the table.
pub fn compare(plan: &Plan, overwrite: bool, progress: Progress, command: String) -> Result<Comparison> {
    let execution = Execution { plan, overwrite, progress, pace: Pace::default() };
    execution.check()?;
    execution.go(command)
}

/// A comparison under way.
struct Execution<'a> {
    plan: &'a Plan,
    overwrite: bool,
    progress: Progress,
    pace: Pace,
}

impl Execution<'_> {
    /// Whether every training could begin, before the first does.
    fn check(&self) -> Result<()> {
        let plan = self.plan;
        let shared = plan.shared()?;
        let data = |config: &Config| Dataset::load(&config.data, config.run.seed);
        let dataset = data(&shared)?;
        let validation =
            if plan.grid.is_empty() { None } else { Some(data(&plan.tuning(&plan.rows[0], 0)?.config)?) };
        let device = device::open(shared.run.device)?;
        let able = |cell: Cell, dataset: &Dataset| {
            let pictures = Pictures::new(&dataset.items);
            check(
                &Run { directory: cell.config.run.out.clone(), config: cell.config },
                dataset,
                &pictures,
                &device,
            )
        };
        for row in &plan.rows {
            let of_row = || format!("the row `{}`", row.name);
            for place in 0..plan.grid.len() {
                let cell = plan.tuning(row, place).with_context(of_row)?;
                cell.keep(self.overwrite)?;
                able(cell, validation.as_ref().unwrap_or(&dataset)).with_context(of_row)?;
            }
            able(plan.trained(row, &Table::new(), plan.seeds[0])?, &dataset).with_context(of_row)?;
            if plan.grid.is_empty() {
                for &seed in &plan.seeds {
                    plan.trained(row, &Table::new(), seed)?.keep(self.overwrite)?;
                }
            }
        }
        Ok(())
    }

    /// Trains what is not there yet.
    fn go(&self, command: String) -> Result<Comparison> {
        let plan = self.plan;
        let columns = columns(&plan.columns, &plan.shared()?.data.levels);
        let starts = Starts::measure(plan, self.overwrite, self.progress)?;
        self.pace.expect(plan.rows.len() * (plan.grid.len() + plan.seeds.len()));
        // All settings are chosen before the first seed, so that a changed grid is noticed early.
        let chosen = plan.rows.iter().map(|row| self.tune(row)).collect::<Result<Vec<_>>>()?;
        let mut lines = Vec::new();
        for (row, chosen) in plan.rows.iter().zip(chosen) {
            let (mut reports, mut runs, mut failed) = (Vec::new(), Vec::new(), Vec::new());
            for &seed in &plan.seeds {
                let cell = plan.trained(row, &chosen, seed)?;
                match self.train(&cell, row, &format!("seed {seed}"))? {
                    None => {
                        reports.push(cell.read("report.json")?);
                        runs.push(cell.read("run.json")?);
                    }
                    Some(reason) => failed.push(format!("{}, seed {seed}: {reason}", row.name)),
                }
            }
            let cost =
                |key: &str| Statistic::of(runs.iter().filter_map(|run: &Value| run[key].as_f64()).collect());
            lines.push(Line {
                name: row.name.clone(),
                label: row.label.clone(),
                group: row.group.clone(),
                apart: row.apart,
                scores: scores(&reports, &columns),
                optimises: row.optimises.clone(),
                optimised: over(&reports, &row.optimises, None),
                untrained: over(starts.of_row(row), &row.optimises, None),
                seconds_per_step: cost("seconds_per_step"),
                peak_memory_bytes: cost("peak_memory_bytes"),
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
            untrained: starts.untrained(&columns),
            columns,
            lines,
        };
        comparison.group();
        Ok(comparison)
    }

    /// The settings of the grid that serve a row best by its metric on the validation classes; none
    /// without a grid.
    fn tune(&self, row: &Row) -> Result<Table> {
        let mut best: Option<(f64, &Table)> = None;
        for (place, settings) in self.plan.grid.iter().enumerate() {
            let cell = self.plan.tuning(row, place)?;
            let named = format!("setting {} of {}", place + 1, self.plan.grid.len());
            if self.train(&cell, row, &named)?.is_some() {
                continue;
            }
            let Some(score) = score(&cell.read("report.json")?, &row.optimises, None) else { continue };
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, settings));
            }
        }
        if best.is_none() && !self.plan.grid.is_empty() {
            return Err(problem(
                format!("no setting of compare.tune has a score with the loss `{}`", row.name),
                "see why with `akin train` on one of the TOML files in its folder, and change the grid",
            ));
        }
        Ok(best.map(|(_, settings)| settings.clone()).unwrap_or_default())
    }

    /// Trains a cell unless it is done; the reason if it failed.
    fn train(&self, cell: &Cell, row: &Row, named: &str) -> Result<Option<String>> {
        let named = format!("{}, {named}", row.name);
        cell.keep(self.overwrite)?;
        if cell.state() == State::Done {
            self.pace.skip();
            return Ok(None);
        }
        self.progress.say("Training", &named);
        let began = Instant::now();
        let ended = cell.train()?;
        if matches!(ended, Ended::Stopped) || interrupted() {
            eprintln!("     Stopped in {named}; the same command continues");
            std::process::exit(130);
        }
        let left = self.pace.trained(began.elapsed());
        match ended {
            Ended::Failed(reason) => {
                self.progress.say("Failed", &format!("{named}: {reason}"));
                Ok(Some(reason))
            }
            _ => {
                let report = cell.read("report.json")?;
                let score = score(&report, &row.optimises, None).map_or("–".into(), percent);
                let took = began.elapsed().as_secs_f64();
                let what = format!("{named}: {} {score} in {took:.0} s; {left}", title(&row.optimises));
                self.progress.say("Trained", &what);
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

/// How many cells are left, and how long they may take.
#[derive(Default)]
struct Pace {
    state: std::cell::Cell<(usize, usize, Duration)>,
}

impl Pace {
    fn expect(&self, cells: usize) {
        self.state.set((cells, 0, Duration::ZERO));
    }

    fn skip(&self) {
        let (left, trained, time) = self.state.get();
        self.state.set((left.saturating_sub(1), trained, time));
    }

    /// Counts a training and says what is left.
    fn trained(&self, took: Duration) -> String {
        let (left, trained, time) = self.state.get();
        let (left, trained, time) = (left.saturating_sub(1), trained + 1, time + took);
        self.state.set((left, trained, time));
        let minutes = (time / trained as u32 * left as u32).as_secs().div_ceil(60);
        format!("{left} left, about {minutes} min")
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}
