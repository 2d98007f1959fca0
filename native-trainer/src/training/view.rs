//! What a training shows of itself while it runs: a dashboard where there is a terminal, else a line from time to time.

use std::path::Path;
use std::time::Instant;

use akin_core::evaluate::Report;
use burn::tensor::Device;
use serde_json::Value;

use super::dashboard::{Dashboard, Fixed, Shown, Stage};
use super::timetable::Timetable;
use crate::progress::{Bar, Progress};
use crate::run::Run;
use crate::run_log::{Log, rates};
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
        let dashboard = Dashboard::begin(Fixed {
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
        self.change(|shown| {
            shown.losses = log.losses;
            log.evaluations.into_iter().for_each(|(step, report)| shown.add_evaluation(step, report));
        });
    }

    /// Shows the loss of a step that is not logged.
    pub(super) fn show_loss(&self, step: u64, loss: f64) {
        self.change(|shown| _ = shown.losses.insert(step, loss));
    }

    /// Shows an entry of the log.
    pub(super) fn show_entry(&self, entry: &Value) {
        let Self::Dashboard { dashboard, devices } = self else { return };
        let mut shown = dashboard.shown();
        let Some(step) = entry["step"].as_u64() else { return };
        match entry["event"].as_str() {
            Some("step") => {
                entry["loss"].as_f64().map(|loss| shown.losses.insert(step, loss));
                shown.rates = rates(entry);
                let held =
                    devices.iter().filter_map(|device| Some(device.memory_pool_usage()?.bytes_reserved));
                shown.device_memory = held.reduce(|sum, bytes| sum + bytes);
            }
            Some("stopped") => shown.stage = Stage::Stopped,
            Some("done") => shown.stage = Stage::Done,
            _ => {}
        }
        if let Ok(report) = serde_json::from_value::<Report>(entry["report"].clone()) {
            shown.add_evaluation(step, report);
        }
    }

    /// Shows that a step has ended.
    pub(super) fn end_step(&self, step: u64) {
        match self {
            Self::Dashboard { dashboard, .. } => dashboard.shown().end_step(step),
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
        self.change(|shown| shown.saved = Some((step, Instant::now())));
    }

    /// Ends the lines of the steps.
    pub(super) fn end_steps(&mut self) {
        if let Self::Lines(bar) = self {
            *bar = None;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        if let Self::Dashboard { dashboard, .. } = self {
            change(&mut dashboard.shown());
        }
    }
}
