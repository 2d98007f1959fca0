//! What a training records about itself: its log, and the time and memory that it takes.

use std::path::Path;
use std::time::{Duration, Instant};

use akin_base::files::{Lines, read_regular_file, write_atomic};
use akin_base::machine;
use akin_base::problem::Advise;
use akin_formats::tensorboard::EventFile;
use anyhow::Result;
use serde_json::{Value, json};

use super::view::View;
use crate::config::LogFormat;
use crate::runs::run::Run;
use crate::runs::run_log::Log;

/// See the [module](self).
pub(super) struct Journal {
    log: Lines,
    events: Option<EventFile>,
    started: Instant,
    waited: Duration,
    first_step: u64,
    peak_memory: Option<u64>,
    view: View,
}

impl Journal {
    /// Opens `log.jsonl` of a run to add to it, and starts the clock. `first_step` is the number of
    /// steps that earlier sessions have done, up to the checkpoint. What they logged after it is removed, because this
    /// session does it again. `evaluates_again` says whether that includes the evaluation after these steps.
    pub(super) fn open(run: &Run, first_step: u64, evaluates_again: bool, view: View) -> Result<Self> {
        let path = run.file("log.jsonl");
        if first_step > 0 {
            remove_entries_after(&path, first_step, evaluates_again)?;
            if path.exists() {
                view.add_log(Log::read(run)?);
            }
        }
        let log = Lines::open(&path).advise(
            || format!("the log {} cannot be written", path.display()),
            "check the permissions of the run directory",
        )?;
        let events = match run.config.run.log {
            Some(LogFormat::Tensorboard) => Some(EventFile::begin(&run.directory, first_step)?),
            None => None,
        };
        let mut journal = Self {
            log,
            events,
            started: Instant::now(),
            waited: Duration::ZERO,
            first_step,
            peak_memory: None,
            view,
        };
        if first_step > 0 {
            journal.log(json!({ "event": "resumed", "step": first_step }))?;
        }
        Ok(journal)
    }

    /// Adds a line to the log.
    pub(super) fn log(&mut self, entry: Value) -> Result<()> {
        if let Some(events) = &mut self.events {
            events.log(&entry)?;
        }
        self.log.add(&entry.to_string()).advise(
            || "the log cannot be written".into(),
            "free some space; `akin resume RUN` continues from the last checkpoint",
        )?;
        self.view.show_entry(&entry);
        Ok(())
    }

    /// What the user sees of the training.
    pub(super) fn view(&mut self) -> &mut View {
        &mut self.view
    }

    /// Seconds since the clock was started.
    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The next batch, which the training has to wait for while its images are read.
    pub(super) fn wait_for<T>(&mut self, batch: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let batch = batch();
        self.waited += start.elapsed();
        batch
    }

    /// The seconds of this session in which the training had no batch to work on.
    pub(super) fn waiting_seconds(&self) -> f64 {
        self.waited.as_secs_f64()
    }

    /// The steps of this session, of `step` steps of the run.
    pub(super) fn steps_done(&self, step: u64) -> u64 {
        step - self.first_step
    }

    /// Measures the memory of the training, once: before the first evaluation, which may need more.
    pub(super) fn measure_memory(&mut self) {
        self.peak_memory = self.peak_memory.or_else(machine::peak_memory);
    }

    /// The memory of the training in bytes; none on systems that do not report it.
    pub(super) fn peak_memory(&self) -> Option<u64> {
        self.peak_memory
    }
}

/// Removes the entries of a log that were made after the checkpoint of a step and that a resumed training makes again.
fn remove_entries_after(path: &Path, step: u64, evaluates_again: bool) -> Result<()> {
    let Ok(bytes) = read_regular_file(path) else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    let is_kept = |line: &&str| is_kept(line, step, evaluates_again);
    let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
    if kept == text {
        return Ok(());
    }
    write_atomic(path, |file| file.write_all(kept.as_bytes()))
}

/// Whether a training that is resumed at the checkpoint of a step does not make this entry again. The evaluation of that
/// step comes after the checkpoint.
fn is_kept(line: &str, step: u64, evaluates_again: bool) -> bool {
    let Ok(entry) = serde_json::from_str::<Value>(line) else { return false };
    let at = entry["step"].as_u64().unwrap_or(0);
    match entry["event"].as_str() {
        Some("done") => false,
        Some("evaluation") => at < step || (at == step && !evaluates_again),
        _ => at <= step,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_resumed_training_removes_what_was_logged_after_its_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let line = |event: &str, step: u64| format!("{}\n", json!({ "event": event, "step": step }));
        let before = [line("step", 2), line("evaluation", 2), line("resumed", 2), line("step", 4)].concat();
        let after = [line("evaluation", 4), line("step", 6), line("stopped", 6), line("done", 8)].concat();
        fs::write(&path, format!("{before}{after}{{\"event\":\"st")).unwrap();
        for _ in 0..2 {
            remove_entries_after(&path, 4, true).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
        }
        remove_entries_after(&folder.path().join("nothing"), 4, true).unwrap();
    }

    #[test]
    fn an_evaluation_that_is_not_done_again_stays_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let line = |event: &str, step: u64| format!("{}\n", json!({ "event": event, "step": step }));
        let before = [line("step", 4), line("evaluation", 4)].concat();
        fs::write(&path, [before.clone(), line("step", 6), line("evaluation", 6)].concat()).unwrap();
        remove_entries_after(&path, 4, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}
