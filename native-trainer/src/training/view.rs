//! What a training shows of itself while it runs: a dashboard where there is a terminal, else a line from
//! time to time, or events in JSON.

use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, Instant};

use akin_base::progress::{Bar, Place, Progress, time_left};
use akin_base::{shell, terminal};
use burn::tensor::Device;
use serde_json::Value;

use super::dashboard::{Constants, Dashboard, Stage, State};
use super::timetable::Timetable;
use crate::runs::run::Run;
use crate::runs::run_log::Log;

/// See the [module](self).
pub(super) enum View {
    Dashboard { dashboard: Dashboard, devices: Vec<Device> },
    Lines(Option<Bar>),
    Json(Events),
}

/// The events of a training in JSON.
pub(super) struct Events {
    /// The first step of this session, and all steps.
    steps: [u64; 2],
    began: Instant,
    /// Where the run is written, and where it is once it is complete.
    directories: [PathBuf; 2],
    /// The event of the end, which is told when the run is complete.
    end: Option<Value>,
}

impl Events {
    fn show(&mut self, entry: &Value) {
        let mut event = event(entry, self.steps, self.began.elapsed());
        let [written, complete] = &self.directories;
        match entry["event"].as_str() {
            Some("done") => {
                event["directory"] = complete.to_string_lossy().into();
                self.end = Some(event);
                return;
            }
            Some("stopped" | "resumed") => event["directory"] = written.to_string_lossy().into(),
            _ => {}
        }
        terminal::emit(&event);
    }
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
        if progress == Progress::Json {
            let absolute = |path: &Path| absolute(path).unwrap_or_else(|_| path.to_owned());
            return Self::Json(Events {
                steps: [first_step, timetable.steps],
                began: Instant::now(),
                directories: [&run.directory, target].map(absolute),
                end: None,
            });
        }
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
    pub(super) fn show_entry(&mut self, entry: &Value) {
        let (dashboard, devices) = match self {
            Self::Dashboard { dashboard, devices } => (dashboard, devices),
            Self::Json(events) => return events.show(entry),
            Self::Lines(_) => return,
        };
        // Asking the devices takes time, so the drawing does not have to wait for it.
        let held = devices.iter().filter_map(|device| Some(device.memory_pool_usage()?.bytes_reserved));
        let device_memory = held.reduce(|sum, bytes| sum + bytes);
        let mut state = dashboard.state();
        state.device_memory = device_memory;
        state.add_entry(entry);
    }

    /// Shows that the run is complete, with all of its files.
    pub(super) fn show_completion(&mut self) {
        self.change(|state| state.stage = Stage::Done);
        if let Self::Json(events) = self {
            events.end.take().iter().for_each(terminal::emit);
        }
    }

    /// Shows that a step has ended.
    pub(super) fn end_step(&self, step: u64) {
        match self {
            Self::Dashboard { dashboard, .. } => dashboard.state().end_step(step),
            Self::Lines(bar) => bar.iter().for_each(|bar| bar.advance(1)),
            Self::Json(_) => {}
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

/// The event of `--progress json` for an entry of the log: the loss of a step, or the scores of an evaluation. The session
/// began after `first` of all steps, and has taken `elapsed`.
fn event(entry: &Value, [first, total]: [u64; 2], elapsed: Duration) -> Value {
    let done = entry["step"].as_u64().unwrap_or(first);
    let left = time_left(elapsed, done.saturating_sub(first), total.saturating_sub(done));
    let mut event = Place { done, total, left }.event("Training");
    if entry["event"] != "step" {
        event["kind"] = entry["event"].clone();
    }
    if let Some(loss) = entry.get("loss") {
        event["loss"] = loss.clone();
    }
    if let Some(report) = entry.get("report") {
        event["metrics"] = report["overall"].clone();
        event["levels"] = report["levels"].clone();
    }
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_has_the_place_and_the_numbers_of_its_entry() {
        let of = |entry: Value| event(&entry, [10, 40], Duration::from_secs(5));
        assert_eq!(
            of(json!({ "event": "step", "step": 20, "loss": 0.5, "lr_head": 0.1 })),
            json!({ "kind": "progress", "what": "Training", "done": 20, "total": 40, "seconds_left": 10.0, "loss": 0.5 })
        );
        let report = json!({ "overall": { "h_ap": 0.25 }, "levels": [{ "name": "kind", "ap": 0.5 }] });
        let event = of(json!({ "event": "evaluation", "step": 20, "report": report }));
        assert_eq!((&event["kind"], &event["metrics"]["h_ap"]), (&json!("evaluation"), &json!(0.25)));
        assert_eq!(event["levels"][0]["ap"], 0.5);
    }
}
