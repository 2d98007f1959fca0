//! Carries out a plan: checks the settings, searches, trains the best settings again and evaluates. Or carries out a single
//! training of it.

use akin_base::directory::{Draft, Kind};
use akin_base::problem::{a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{machine, terminal};
use akin_core::evaluate::Report;
use anyhow::{Context, Result};
use toml::Table;

use super::concatenation::evaluate_models;
use super::plan::Plan;
use super::results::{Results, SeedScores, Trial, best, intervals};
use super::search::Tried;
use crate::comparison::compare::cells::{self, Cell, CellState};
use crate::comparison::compare::pace::Pace;
use crate::comparison::compare::planned_run::PlannedRun;
use crate::comparison::compare::results::columns;
use crate::comparison::compare::settings::describe;
use crate::comparison::compare::trainer::Trainer;
use crate::config::device;
use crate::config::{Config, ModelConfig};
use crate::evaluation::report::score;
use crate::pictures::loader::Pictures;
use crate::runs::outcome::Failure;
use crate::runs::run::Run;
use crate::training::{check_encoder, check_loss};

/// Trains every run that is not done, and collects the results of all. Also returns their directory, into which the
/// results have to be written, and how the trainings ended.
///
/// # Errors
///
/// Settings that cannot be trained, which is found before any training begins; a run with another config, unless
/// `overwrite` is set; a training of a trial that fails, unless its numbers failed: such a trial has no
/// score, and the results name it; trials that all have no score; [`Interrupted`](akin_base::problem::Interrupted) after
/// Ctrl-C. A training of the best settings that fails does not stop the others: the results name it.
pub fn run(
    plan: &Plan,
    overwrite: bool,
    progress: Progress,
    command: String,
) -> Result<(Results, Draft, Pace)> {
    let execution = Execution::new(plan, overwrite, progress);
    execution.check()?;
    let draft = Draft::resume_or_create(Kind::Tuning, &plan.out)?;
    Ok((execution.train_all(command)?, draft, execution.trainer.pace))
}

/// The cells of a plan, and how far each is. Writes nothing.
///
/// # Errors
///
/// As [`run`] before its first training.
pub fn list_cells(plan: &Plan, overwrite: bool, progress: Progress) -> Result<Vec<Cell>> {
    let execution = Execution::new(plan, overwrite, progress);
    execution.check()?;
    execution.cells()
}

/// Trains one cell of a plan, see [`cells::train_cell`].
///
/// # Errors
///
/// As [`list_cells`] and [`cells::train_cell`].
pub fn train_cell(plan: &Plan, number: usize, overwrite: bool, progress: Progress) -> Result<()> {
    let execution = Execution::new(plan, overwrite, progress);
    execution.check()?;
    let cells = execution.cells()?;
    cells::train_cell(cells, number, Kind::Tuning, &plan.out, &execution.trainer, |cell, run| {
        execution.train(run, &cell.title())
    })
}

/// A tuning in progress.
struct Execution<'a> {
    plan: &'a Plan,
    trainer: Trainer,
}

/// What is known of a trial.
enum TrialState {
    /// A training has not ended.
    Pending,
    /// All that are needed have ended; without a score if one failed.
    Ended(Option<f64>),
}

impl<'a> Execution<'a> {
    fn new(plan: &'a Plan, overwrite: bool, progress: Progress) -> Self {
        Self { plan, trainer: Trainer::new("Tuning", overwrite, progress) }
    }

    /// Checks that trainings could begin: at the ends of all ranges and on all folds.
    fn check(&self) -> Result<()> {
        let plan = self.plan;
        let shared = plan.shared()?;
        shared.eval.checked(shared.data.levels().len())?;
        let dataset = self.trainer.data.load(&shared)?;
        dataset.unused_settings(&shared.selection()).iter().for_each(terminal::warn);
        let device = device::open(shared.run.device)?;
        let space = &plan.search.space;
        if let Some(count) = space.count().filter(|&count| count < plan.trials as u64) {
            terminal::warn(format_args!(
                "tune.trials is {}, but the ranges have only {}, and equal settings are trained once",
                plan.trials,
                counted(count as usize, "setting", "settings")
            ));
        }
        let mut models: Vec<ModelConfig> = Vec::new();
        let extremes = space.extremes();
        let bar = self.trainer.progress.bar("Checking", extremes.len() as u64);
        for point in extremes {
            let settings = space.settings(&point)?;
            let mut check = || -> Result<()> {
                let Config { run, model, .. } = plan.trial(&settings, 1)?.config;
                if !models.contains(&model) {
                    check_encoder(&plan.trial(&settings, 1)?.config, &device)?;
                    models.push(model);
                }
                // Folds differ in their numbers of classes by one at most, but not in their losses.
                let folds = if point.iter().all(|&place| place == 0.0) { plan.folds } else { 1 };
                for fold in 1..=folds {
                    let config = plan.trial(&settings, fold)?.config;
                    let dataset = self.trainer.data.load(&config)?;
                    let run = Run { directory: run.out.clone(), config };
                    check_loss(&run, &dataset, &Pictures::of(&dataset), &device)?;
                }
                Ok(())
            };
            check().with_context(|| format!("with {}", describe(&settings)))?;
            bar.advance(1);
        }
        drop(bar);
        // A run with another config is noticed before others are trained.
        let mut tried = Vec::new();
        for _ in 0..plan.trials {
            if plan.search.uses_scores(tried.len()) {
                break;
            }
            let point = plan.search.next(&tried)?;
            for fold in 1..=plan.folds {
                self.trainer.is_done(&plan.trial(&space.settings(&point)?, fold)?)?;
            }
            tried.push(Tried { point, score: None });
        }
        Ok(())
    }

    /// Trains what is not done and collects the results.
    fn train_all(&self, command: String) -> Result<Results> {
        let plan = self.plan;
        self.trainer.pace.expect((plan.trials + plan.reproductions) * plan.folds);
        let trials = self.train_trials()?;
        let Some(best) = best(&trials, plan.metric) else {
            let reasons: Vec<&String> = trials.iter().filter_map(|trial| trial.failed.as_ref()).collect();
            return Err(problem(
                format!("no trial has a score: {}", a_few(&reasons)),
                "change the ranges in the section [tune]",
            ));
        };
        let (mut seeds, mut reports, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for reproduction in 1..=plan.reproductions {
            let seed = plan.seed(reproduction);
            let mut runs = Vec::new();
            for fold in 1..=plan.folds {
                let run = plan.model(&best.settings, reproduction, fold)?;
                let name = format!("best settings, seed {seed}, fold {fold}");
                match self.train(&run, &name)? {
                    None => runs.push(run),
                    Some(failure) => failed.push(format!("{name}: {}", failure.message)),
                }
            }
            if runs.len() == plan.folds {
                let evaluated = evaluate_models(&runs, self.trainer.progress)?;
                let scores = SeedScores::new(seed, &evaluated, plan.metric);
                self.trainer.progress.say("Evaluated", &scores.describe(plan.metric));
                reports.push(evaluated);
                seeds.push(seed);
            }
        }
        let shared = plan.shared()?;
        let columns = columns(&shared.eval.metrics, shared.data.levels());
        let models = seeds.iter().zip(&reports);
        let models = models.map(|(&seed, reports)| SeedScores::new(seed, reports, plan.metric)).collect();
        let [separated, concatenated] = intervals(&reports, &columns);
        Ok(Results {
            name: plan.name.clone(),
            command,
            date: machine::today(),
            machine: machine::describe(),
            metric: plan.metric,
            folds: plan.folds,
            keys: plan.search.space.keys().map(str::to_owned).collect(),
            best: best.number,
            trials,
            seeds,
            models,
            columns,
            separated,
            concatenated,
            failed,
        })
    }

    fn train_trials(&self) -> Result<Vec<Trial>> {
        let plan = self.plan;
        let (mut tried, mut trials) = (Vec::new(), Vec::new());
        for number in 1..=plan.trials {
            let point = plan.search.next(&tried)?;
            let settings = plan.search.space.settings(&point)?;
            let mut folds: Vec<Option<f64>> = Vec::new();
            let mut failed = None;
            for fold in 1..=plan.folds {
                let run = plan.trial(&settings, fold)?;
                let name = format!("trial {number} of {}, fold {fold}", plan.trials);
                if failed.is_none() {
                    failed = match self.failure(&run)? {
                        None => match self.train(&run, &name)? {
                            Some(failure) if !failure.of_numbers => return Err(failure.ends_search(&name)),
                            failure => failure.map(|failure| failure.message),
                        },
                        before => {
                            self.trainer.pace.remember(true);
                            before
                        }
                    };
                } else {
                    self.trainer.pace.leave_out();
                }
                folds.push(if failed.is_none() { self.score(&run)? } else { None });
            }
            let score = mean_of_all(&folds);
            if score.is_none() && failed.is_none() {
                failed = Some(format!("its report has no {}", plan.metric.label()));
            }
            tried.push(Tried { score: score.map(|score| self.ascending(score)), point: point.clone() });
            let values = plan.search.space.values(&point);
            trials.push(Trial { number, settings, values, folds, score, failed });
        }
        Ok(trials)
    }

    /// Why a training failed before, if its numbers did. It is not tried again, because the same settings would fail again.
    fn failure(&self, run: &PlannedRun) -> Result<Option<String>> {
        Ok(if self.trainer.is_done(run)? { None } else { run.failure()? })
    }

    /// Trains a run unless it is done. The answer is the failure of a training that failed.
    fn train(&self, run: &PlannedRun, name: &str) -> Result<Option<Failure>> {
        self.trainer.train(run, name, self.plan.metric, " on the held-out fold", |run| self.score(run))
    }

    /// The score of a run that is done.
    fn score(&self, run: &PlannedRun) -> Result<Option<f64>> {
        let metric = self.plan.metric;
        if run.config.run.evaluate_every_epochs > 0
            && let Some((best, _)) = Run::open(run.directory())?.best()?
            && best.metric == metric
        {
            return Ok(Some(best.score));
        }
        Ok(score(&run.read::<Report>("report.json")?, metric, None))
    }

    /// A score, so that a greater one is better.
    fn ascending(&self, score: f64) -> f64 {
        if self.plan.metric.entry().greater_is_better { score } else { -score }
    }

    fn cells(&self) -> Result<Vec<Cell>> {
        let plan = self.plan;
        let (mut tried, mut trials) = (Vec::<Tried>::new(), Vec::<Trial>::new());
        let mut cells: Vec<Cell> = Vec::new();
        let mut all_ended = true;
        for number in 1..=plan.trials {
            let settings = match all_ended || !plan.search.uses_scores(number - 1) {
                true => Some(plan.search.next(&tried)?),
                false => None,
            };
            let Some(point) = settings else {
                self.add_waiting(&mut cells, format!("trial {number}"));
                continue;
            };
            let settings = plan.search.space.settings(&point)?;
            let state =
                self.add_cells(&mut cells, format!("trial {number}"), |fold| plan.trial(&settings, fold))?;
            let score = match state {
                TrialState::Ended(score) => score,
                TrialState::Pending => {
                    all_ended = false;
                    None
                }
            };
            tried.push(Tried { score: score.map(|score| self.ascending(score)), point });
            let (values, folds, failed) = (Vec::new(), Vec::new(), None);
            trials.push(Trial { number, settings, values, folds, score, failed });
        }
        let best: Option<Table> =
            if all_ended { best(&trials, plan.metric).map(|trial| trial.settings.clone()) } else { None };
        for reproduction in 1..=plan.reproductions {
            let row = format!("best settings, seed {}", plan.seed(reproduction));
            match &best {
                Some(settings) => {
                    self.add_cells(&mut cells, row, |fold| plan.model(settings, reproduction, fold))?;
                }
                None => self.add_waiting(&mut cells, row),
            }
        }
        Ok(cells)
    }

    /// Adds a cell for each fold, whose run `planned` gives.
    fn add_cells(
        &self,
        cells: &mut Vec<Cell>,
        row: String,
        planned: impl Fn(usize) -> Result<PlannedRun>,
    ) -> Result<TrialState> {
        let runs = (1..=self.plan.folds).map(planned).collect::<Result<Vec<_>>>()?;
        let states = runs
            .iter()
            .map(|run| CellState::of(run, self.trainer.is_done(run)?))
            .collect::<Result<Vec<_>>>()?;
        let failed = states.contains(&CellState::Failed);
        let mut scores = Vec::new();
        for (run, state) in runs.iter().zip(&states) {
            scores.push(if *state == CellState::Done { self.score(run)? } else { None });
        }
        for ((fold, run), state) in (1..).zip(runs).zip(&states) {
            let known = cells
                .iter()
                .any(|cell| cell.run.as_ref().is_some_and(|other| other.directory() == run.directory()));
            // A trial with a training that failed needs no others, and equal settings are trained once.
            let is_needed = !known && (!failed || *state == CellState::Failed);
            cells.push(Cell {
                number: cells.len() + 1,
                row: row.clone(),
                name: format!("fold {fold}"),
                state: if is_needed || *state == CellState::Done { *state } else { CellState::NotNeeded },
                waits_for: Vec::new(),
                run: Some(run),
            });
        }
        let ended = failed || states.iter().all(|state| *state == CellState::Done);
        Ok(if ended { TrialState::Ended(mean_of_all(&scores)) } else { TrialState::Pending })
    }

    /// Adds a cell for each fold, whose settings are not known yet.
    fn add_waiting(&self, cells: &mut Vec<Cell>, row: String) {
        let waits_for: Vec<usize> =
            cells.iter().filter(|cell| !cell.state.has_ended()).map(|cell| cell.number).collect();
        for fold in 1..=self.plan.folds {
            cells.push(Cell {
                number: cells.len() + 1,
                row: row.clone(),
                name: format!("fold {fold}"),
                state: CellState::Waiting,
                waits_for: waits_for.clone(),
                run: None,
            });
        }
    }
}

/// The mean of the scores of all folds; none if one has no score.
fn mean_of_all(scores: &[Option<f64>]) -> Option<f64> {
    let scores: Option<Vec<f64>> = scores.iter().copied().collect();
    akin_core::statistics::mean(&scores?)
}
