//! What a training shows of itself while it runs: a dashboard where there is a terminal, else a line from time to time.

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use serde_json::Value;

use super::dashboard::{Constants, Dashboard, Stage, State};
use super::timetable::Timetable;
use crate::progress::{Bar, Progress};
use crate::run::Run;
use crate::run_log::Log;
use crate::{shell, terminal};

/// See the [module](self).
pub(super) enum View {
    Dashboard { dashboard: Dashboard, devices: Vec<Device> },
    Lines(Option<Bar>),
}

impl View {
    /// Shows a training from now on, after `first_step` steps of earlier sessions. `target` is the directory of the
    /// complete run, and `batch` the number of images of a batch.
    pub(super) fn begin(
        progress: Progress,
        run: &Run,
        target: &Path,
        timetable: Timetable,
        first_step: u64,
        batch: usize,
        devices: &[Device],
    ) -> Self {
        if progress != Progress::Auto || !terminal::stderr_can_redraw() {
            let bar = progress.bar("Training", timetable.steps);
            bar.start_at(first_step);
            return Self::Lines(Some(bar));
        }
        let config = &run.config.run;
        let dashboard = Dashboard::begin(Constants {
            name: config.name.clone(),
            directory: shell::path(&run.directory),
            target: shell::path(target),
            timetable,
            best_by: config.best_by,
            batch,
            first_step,
        });
        Self::Dashboard { dashboard, devices: devices.to_vec() }
    }

    /// Adds what earlier sessions of the run have logged.
    pub(super) fn add_log(&self, log: Log) {
        self.change(|state| {
            log.losses.into_iter().for_each(|(step, loss)| state.losses.add(step, loss));
            log.evaluations.into_iter().for_each(|(step, report)| state.add_evaluation(step, report));
        });
    }

    /// Shows the loss of a step that is not logged.
    pub(super) fn show_loss(&self, step: u64, loss: f64) {
        self.change(|state| state.losses.add(step, loss));
    }

    /// Shows an entry of the log.
    pub(super) fn show_entry(&self, entry: &Value) {
        let Self::Dashboard { dashboard, devices } = self else { return };
        // Asking the devices takes time, so the drawing does not have to wait for it.
        let held = devices.iter().filter_map(|device| Some(device.memory_pool_usage()?.bytes_reserved));
        let device_memory = held.reduce(|sum, bytes| sum + bytes);
        let mut state = dashboard.state();
        state.device_memory = device_memory;
        state.add_entry(entry);
    }

    /// Shows that the run is complete, with all of its files.
    pub(super) fn show_completion(&self) {
        self.change(|state| state.stage = Stage::Done);
    }

    /// Shows that a step has ended.
    pub(super) fn end_step(&self, step: u64) {
        match self {
            Self::Dashboard { dashboard, .. } => dashboard.state().end_step(step),
            Self::Lines(bar) => bar.iter().for_each(|bar| bar.advance(1)),
        }
    }

    /// Prints a line about a step, if there is no dashboard and `mark` is set.
    pub(super) fn note(&self, line: &str, mark: bool) {
        if let Self::Lines(Some(bar)) = self {
            bar.note(line, mark);
        }
    }

    /// Shows that the training is saved.
    pub(super) fn saved(&self, step: u64) {
        self.change(|state| state.saved = Some((step, Instant::now())));
    }

    /// Ends the lines of the steps.
    pub(super) fn end_steps(&mut self) {
        if let Self::Lines(bar) = self {
            *bar = None;
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Self::Dashboard { dashboard, .. } = self {
            change(&mut dashboard.state());
        }
    }
}
