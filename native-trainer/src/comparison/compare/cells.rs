//! The trainings of a comparison, numbered, so that several machines can share them. Those of a tuning are
//! [in its execution](crate::comparison::tune::execution).
//!
//! A cell is one training. First come the trainings for tuning, row by row, then those of the table, row by row and seed
//! by seed. The numbers depend on the recipe and the data, not on results. But settings are tuned one after another: what
//! a later cell of a row trains is known only when its earlier ones have ended. Until then it waits for them.

use std::path::Path;

use akin_base::directory::{Kind, Share};
use akin_base::problem::{a_few, problem};
use akin_base::quantities::counted;
use anyhow::Result;
use serde::Serialize;
use toml::Table;

use super::config::TunedSetting;
use super::plan::{Plan, Row};
use super::planned_run::{PlannedRun, State};
use super::settings::describe;
use super::trainer::Trainer;
use super::tuning::{Answer, Tuning, tune};
use crate::config::{NO_RESULT_DEPENDS_ON, differences};
use crate::runs::outcome::Failure;

/// One training of a comparison or a tuning.
pub struct Cell {
    /// Its number, from 1.
    pub number: usize,
    /// The name of its row in a comparison; the trial or the seed of a tuning.
    pub row: String,
    /// Its settings or seed in a comparison; its fold in a tuning.
    pub name: String,
    /// How far it is.
    pub state: CellState,
    /// The cells that have to end before it can begin.
    pub waits_for: Vec<usize>,
    /// What it trains, once that is known.
    pub run: Option<PlannedRun>,
}

impl Cell {
    /// The row and the name, as messages show them.
    pub fn title(&self) -> String {
        format!("{}, {}", self.row, self.name)
    }
}

/// Trains one of the cells of `out` unless it is done. Other processes may train other cells in the same directory.
/// `train` answers with the failure of a training that failed.
///
/// # Errors
///
/// A number that no cell has; a cell that waits for others; a process that trains the cell, or that collects the results;
/// a training that fails.
pub fn train_cell(
    cells: Vec<Cell>,
    number: usize,
    kind: Kind,
    out: &Path,
    trainer: &Trainer,
    train: impl FnOnce(&Cell, &PlannedRun) -> Result<Option<Failure>>,
) -> Result<()> {
    let cell = pick_cell(cells, number, kind)?;
    let name = cell.title();
    let run = match (cell.state, &cell.run) {
        (CellState::NotNeeded, _) => {
            trainer.progress.say("Skipped", &format!("cell {number} ({name}), which is not needed"));
            return Ok(());
        }
        (CellState::Done, _) | (_, None) => {
            trainer.progress.say("Done", &format!("cell {number} ({name}) before"));
            return Ok(());
        }
        (_, Some(run)) => run,
    };
    let _share = Share::take(kind, out)?;
    trainer.pace.expect(1);
    match train(&cell, run)? {
        None => Ok(()),
        Some(failure) => Err(problem(
            format!("cell {number} ({name}) failed: {}", failure.message),
            "the same command tries it again",
        )),
    }
}

/// The cell with this number, unless it waits for others.
fn pick_cell(cells: Vec<Cell>, number: usize, kind: Kind) -> Result<Cell> {
    let count = cells.len();
    let Some(cell) = cells.into_iter().find(|cell| cell.number == number) else {
        return Err(problem(
            format!(
                "there is no cell {number}: this {} has {}",
                kind.name(),
                counted(count, "cell", "cells")
            ),
            "`--cells` lists the cells that can begin now, as commands",
        ));
    };
    if cell.state == CellState::Waiting {
        let others = match &cell.waits_for[..] {
            [other] => format!("cell {other}"),
            others => format!("the cells {}", a_few(others)),
        };
        return Err(problem(
            format!(
                "cell {number} ({}) waits for {others}, by whose scores its settings are chosen",
                cell.title()
            ),
            "run these first; `--cells` lists the cells that can begin now, as commands",
        ));
    }
    Ok(cell)
}

/// How far a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// It can begin.
    Ready,
    /// It was stopped, and continues from its checkpoint.
    Stopped,
    /// Its numbers failed, such as a loss that is NaN. It can be tried again, and in a tuning it has no score. A cell that
    /// failed for another reason is [`Self::Ready`] or [`Self::Stopped`].
    Failed,
    /// A process trains it now.
    Running,
    /// It waits for other cells.
    Waiting,
    /// It is not trained, because an earlier cell has the same settings, or because another training of its trial failed.
    NotNeeded,
    /// It is done.
    Done,
}

impl CellState {
    /// The state of a run that does not wait for others.
    ///
    /// # Errors
    ///
    /// As [`PlannedRun::failure`].
    pub fn of(run: &PlannedRun, is_done: bool) -> Result<Self> {
        Ok(if is_done {
            Self::Done
        } else if run.is_running() {
            Self::Running
        } else if run.failure()?.is_some() {
            Self::Failed
        } else if run.state() == State::Begun {
            Self::Stopped
        } else {
            Self::Ready
        })
    }

    /// Whether a process may begin the cell.
    pub fn can_begin(self) -> bool {
        matches!(self, Self::Ready | Self::Stopped | Self::Failed)
    }

    /// Whether no later cell has to wait for this one.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::NotNeeded | Self::Failed)
    }
}

/// Every cell of a plan. `tuned` has the settings that each row tunes. `is_done` says whether a run is done, and `score`
/// reads the score of one that is, by the metric that its row optimises.
///
/// # Errors
///
/// The errors of `is_done` and `score`.
pub fn cells(
    plan: &Plan,
    tuned: &[Vec<TunedSetting>],
    is_done: impl Fn(&PlannedRun) -> Result<bool>,
    score: impl Fn(&PlannedRun, &Row) -> Result<Option<f64>>,
) -> Result<Vec<Cell>> {
    let state = |run: &PlannedRun| CellState::of(run, is_done(run)?);
    let mut cells: Vec<Cell> = Vec::new();
    let mut choices: Vec<(Tuning, Vec<usize>)> = Vec::new();
    for (row, tuned) in plan.rows.iter().zip(tuned) {
        let first = cells.len();
        let new = |number: usize, name: String| Cell {
            number,
            row: row.name.clone(),
            name,
            state: CellState::Waiting,
            waits_for: Vec::new(),
            run: None,
        };
        let mut answers: Vec<Answer> = Vec::new();
        let tuning = tune(tuned, row.optimises, |settings| {
            let run = plan.trial(row, settings)?;
            let mut cell = new(cells.len() + 1, describe(settings));
            // As in the comparison itself, a value that is the config's own was tried with the setting before.
            let same = cells[first..].iter().position(|cell| {
                let earlier = cell.run.as_ref();
                earlier.is_some_and(|earlier| {
                    differences(&earlier.config, &run.config, &NO_RESULT_DEPENDS_ON).is_empty()
                })
            });
            let answer = if let Some(same) = same {
                cell.state = match cells[first + same].state {
                    CellState::Done => CellState::Done,
                    _ => CellState::NotNeeded,
                };
                answers[same]
            } else {
                cell.state = state(&run)?;
                let answer = match cell.state {
                    CellState::Done => Answer::Score(score(&run, row)?),
                    CellState::Failed => Answer::Score(None),
                    _ => Answer::Pending,
                };
                cell.run = Some(run);
                answer
            };
            answers.push(answer);
            cells.push(cell);
            Ok(answer)
        })?;
        let pending = |cells: &[Cell]| -> Vec<usize> {
            cells[first..].iter().filter(|cell| !cell.state.has_ended()).map(|cell| cell.number).collect()
        };
        // The settings after one whose values have not all been tried.
        let tried = cells.len();
        let mut number = first;
        for setting in tuned {
            let waits_for = pending(&cells);
            for choice in setting.choices()? {
                number += 1;
                if number > tried {
                    cells.push(Cell { waits_for: waits_for.clone(), ..new(number, describe(&choice)) });
                }
            }
        }
        let before = match tuning {
            Tuning::NoScore => (first + 1..=cells.len()).collect(),
            _ => pending(&cells),
        };
        choices.push((tuning, before));
    }
    for (row, (tuning, before)) in plan.rows.iter().zip(choices) {
        let chosen = match tuning {
            Tuning::Chosen { settings, .. } => Some(settings),
            Tuning::NoScore if before.is_empty() => Some(Table::new()),
            Tuning::NoScore | Tuning::Pending => None,
        };
        for &seed in &plan.seeds {
            let run = chosen.as_ref().map(|settings| plan.trained(row, settings, seed)).transpose()?;
            cells.push(Cell {
                number: cells.len() + 1,
                row: row.name.clone(),
                name: format!("seed {seed}"),
                state: run.as_ref().map_or(Ok(CellState::Waiting), &state)?,
                waits_for: if run.is_some() { Vec::new() } else { before.clone() },
                run,
            });
        }
    }
    Ok(cells)
}
