//! What a training records about itself: its log, and the time and memory that it takes.

use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::files::Lines;
use crate::machine;
use crate::problem::Advise;
use crate::run::Run;

/// See the [module](self).
pub(super) struct Journal {
    log: Lines,
    started: Instant,
    first_step: u64,
    peak_memory: Option<u64>,
}

impl Journal {
    /// Opens `log.jsonl` of a run to add to it, and starts the clock. `first_step` is the number of
    /// steps that earlier sessions have done.
    pub(super) fn open(run: &Run, first_step: u64) -> Result<Self> {
        let path = run.file("log.jsonl");
        let log = Lines::open(&path).advise(
            || format!("the log {} cannot be written", path.display()),
            "check the permissions of the run directory",
        )?;
        let mut journal = Self { log, started: Instant::now(), first_step, peak_memory: None };
        if first_step > 0 {
            journal.log(json!({ "event": "resumed", "step": first_step }))?;
        }
        Ok(journal)
    }

    /// Adds a line to the log.
    pub(super) fn log(&mut self, entry: Value) -> Result<()> {
        self.log.add(&entry.to_string()).advise(
            || "the log cannot be written".into(),
            "free some space; `akin resume RUN` continues from the last checkpoint",
        )
    }

    /// Seconds since the clock was started.
    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
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
