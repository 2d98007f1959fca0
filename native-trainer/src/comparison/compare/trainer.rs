//! Trains planned runs one after another.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use akin_base::interrupt::{CatchCtrlC, stop_requested};
use akin_base::problem::Interrupted;
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_core::metrics::Metric;
use anyhow::Result;

use super::data_sets::DataSets;
use super::pace::Pace;
use super::planned_run::{Cost, PlannedRun};
use crate::evaluation::report::displayed;
use crate::runs::outcome::{Failure, ProcessOutcome};

/// Trains runs, each in a process of its own, and keeps those that are done.
pub struct Trainer {
    overwrite: bool,
    /// How to show progress.
    pub progress: Progress,
    /// How far the trainings are.
    pub pace: Pace,
    /// The directories of the runs that were asked for.
    asked: RefCell<HashSet<PathBuf>>,
    /// The data sets of the runs.
    pub data: DataSets,
}

impl Trainer {
    /// Replaces runs with another config, version or data only with `overwrite`. `what` says what the trainings are for,
    /// such as `Comparing`.
    pub fn new(what: &'static str, overwrite: bool, progress: Progress) -> Self {
        let (pace, asked) = (Pace::new(what, progress), RefCell::default());
        Self { overwrite, progress, pace, asked, data: DataSets::default() }
    }

    /// Whether a run is done.
    ///
    /// # Errors
    ///
    /// A run with another config, version or data, unless it may be replaced.
    pub fn is_done(&self, run: &PlannedRun) -> Result<bool> {
        run.is_done(&self.data.provenance(run)?, self.overwrite)
    }

    /// Trains a run unless it is done, and shows its score, which `score` reads; `scored_on` says on which images. The
    /// answer is the failure of a training that failed.
    ///
    /// # Errors
    ///
    /// As [`Trainer::is_done`]; a process that trains the run; [`Interrupted`] after Ctrl-C.
    pub fn train(
        &self,
        planned: &PlannedRun,
        name: &str,
        metric: Metric,
        scored_on: &str,
        score: impl Fn(&PlannedRun) -> Result<Option<f64>>,
    ) -> Result<Option<Failure>> {
        let is_new = self.asked.borrow_mut().insert(planned.directory().to_owned());
        if self.is_done(planned)? {
            match is_new {
                true => self.pace.remember(false),
                false => self.pace.leave_out(),
            }
            return Ok(None);
        }
        self.progress.say("Training", name);
        let started = Instant::now();
        // Ctrl-C is passed on to the process that trains. This one waits until that one has saved.
        let ctrl_c = CatchCtrlC::start();
        let outcome = planned.train()?;
        drop(ctrl_c);
        if outcome == ProcessOutcome::Stopped || stop_requested() {
            self.pace.stopped(name, planned.directory());
            return Err(Interrupted(format!("in {name}; the same command continues")).into());
        }
        let failed = matches!(outcome, ProcessOutcome::Failed(_));
        let left = self.pace.end(name, planned.directory(), started.elapsed(), failed);
        if let ProcessOutcome::Failed(failure) = outcome {
            let hint = failure.hint.as_ref().map_or_else(String::new, |hint| format!(" (hint: {hint})"));
            self.progress.say("Failed", &format!("{name}: {}{hint}", failure.message));
            return Ok(Some(failure));
        }
        let skipped = planned.read::<Cost>("run.json")?.skipped_images;
        if !skipped.is_empty() {
            let images = counted(skipped.len(), "image", "images");
            akin_base::terminal::warn(format_args!(
                "{name}: skipped {images} that cannot be read; see run.json"
            ));
        }
        let score = score(planned)?.map_or("–".into(), |score| format!("{:.2}", displayed(metric, score)));
        let seconds = started.elapsed().as_secs_f64();
        let result = format!("{name}: {}{scored_on} {score} in {seconds:.0} s{left}", metric.label());
        self.progress.say("Trained", &result);
        Ok(None)
    }
}
