//! Trains planned runs one after another, and says how long the rest will take.

use std::cell::Cell;
use std::time::{Duration, Instant};

use akin_core::metrics::Metric;
use anyhow::Result;

use super::data_sets::DataSets;
use super::planned_run::{Cost, PlannedRun};
use crate::counts::{counted, duration};
use crate::interrupt::{CatchCtrlC, stop_requested};
use crate::outcome::{Failure, ProcessOutcome};
use crate::problem::Interrupted;
use crate::progress::Progress;
use crate::report::displayed;

/// Trains runs, each in a process of its own, and keeps those that are done.
pub struct Trainer {
    overwrite: bool,
    /// How to show progress.
    pub progress: Progress,
    /// What is left.
    pub pace: Pace,
    /// The data sets of the runs.
    pub data: DataSets,
}

impl Trainer {
    /// Replaces runs with another config, version or data only with `overwrite`.
    pub fn new(overwrite: bool, progress: Progress) -> Self {
        Self { overwrite, progress, pace: Pace::default(), data: DataSets::default() }
    }

    /// Whether a run is done.
    ///
    /// # Errors
    ///
    /// A run with another config, version or data, unless it may be replaced.
    pub fn is_done(&self, run: &PlannedRun) -> Result<bool> {
        run.is_done(&self.data.provenance(run)?, self.overwrite)
    }

    /// Trains a run unless it is done, and shows its score, which `score` reads. The answer is the failure of a
    /// training that failed.
    ///
    /// # Errors
    ///
    /// As [`Trainer::is_done`]; a process that trains the run; [`Interrupted`] after Ctrl-C.
    pub fn train(
        &self,
        planned: &PlannedRun,
        name: &str,
        metric: Metric,
        score: impl Fn(&PlannedRun) -> Result<Option<f64>>,
    ) -> Result<Option<Failure>> {
        if self.is_done(planned)? {
            self.pace.skip();
            return Ok(None);
        }
        self.progress.say("Training", name);
        let started = Instant::now();
        // Ctrl-C also reaches the process that trains. This one waits until that one has saved.
        let ctrl_c = CatchCtrlC::start();
        let outcome = planned.train()?;
        drop(ctrl_c);
        if outcome == ProcessOutcome::Stopped || stop_requested() {
            return Err(Interrupted(format!("in {name}; the same command continues")).into());
        }
        let left = self.pace.count(started.elapsed());
        if let ProcessOutcome::Failed(failure) = outcome {
            let hint = failure.hint.as_ref().map_or_else(String::new, |hint| format!(" (hint: {hint})"));
            self.progress.say("Failed", &format!("{name}: {}{hint}", failure.message));
            return Ok(Some(failure));
        }
        let skipped = planned.read::<Cost>("run.json")?.skipped_images;
        if !skipped.is_empty() {
            let images = counted(skipped.len(), "image", "images");
            crate::terminal::warn(format_args!("{name}: skipped {images} that cannot be read; see run.json"));
        }
        let score = score(planned)?.map_or("–".into(), |score| format!("{:.2}", displayed(metric, score)));
        let seconds = started.elapsed().as_secs_f64();
        let result = format!("{name}: {} {score} in {seconds:.0} s{left}", metric.label());
        self.progress.say("Trained", &result);
        Ok(None)
    }
}

/// How many trainings are left, and how long the others took.
#[derive(Default)]
pub struct Pace {
    left: Cell<usize>,
    trained: Cell<u32>,
    time: Cell<Duration>,
}

impl Pace {
    /// This many trainings are to come.
    pub fn expect(&self, trainings: usize) {
        self.left.set(trainings);
    }

    /// Counts a training that is done already, or is not needed.
    pub fn skip(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    /// Counts a training that took this long, and says what is left, if anything is.
    fn count(&self, took: Duration) -> String {
        self.skip();
        self.trained.set(self.trained.get() + 1);
        self.time.set(self.time.get() + took);
        let left = self.left.get();
        if left == 0 {
            return String::new();
        }
        let time = self.time.get() / self.trained.get() * left as u32;
        let time = duration(time.max(Duration::from_secs(1)));
        format!("; {} left, about {time}", counted(left, "training", "trainings"))
    }
}
