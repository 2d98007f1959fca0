//! One training of a comparison. Each has a process of its own, so that its time and memory are its own and a
//! failure does not end the others.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::config::{Config, NO_RESULT_DEPENDS_ON, differences};
use crate::directory::{self, Kind};
use crate::files::{create, create_folder, read_regular_file, remove_file, write_atomic};
use crate::outcome::ProcessOutcome;
use crate::problem::{Advise, Interrupted, a_few, parts, problem};
use crate::run::{CONFIG_FILE, Run};

/// A run that a comparison asks for.
pub struct PlannedRun {
    /// The whole config. Its `run.out` is the run directory.
    pub config: Config,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing can be continued.
    New,
    /// There is a checkpoint.
    Begun,
    /// There is a report.
    Done,
    /// The run directory has another config; the text says what differs.
    Changed(String),
}

/// What a training cost: a part of `run.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Cost {
    /// Seconds per step; none if the last session had no step left to do.
    pub seconds_per_step: Option<f64>,
    /// Peak memory of the process before its first evaluation, where the system tells it.
    pub peak_memory_bytes: Option<u64>,
    /// The images that could not be read, with the reason.
    pub skipped_images: BTreeMap<String, String>,
}

impl PlannedRun {
    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.config.run.out
    }

    /// How far the run is.
    pub fn state(&self) -> State {
        let directory = self.directory();
        let has = |name: &str| directory.join(name).is_file();
        if !has(CONFIG_FILE) {
            return State::New;
        }
        let run = match Run::open(directory) {
            Ok(run) => run,
            Err(error) => return State::Changed(format!("it cannot be read: {}", parts(&error).0)),
        };
        let (missing, different) =
            (run.missing_keys(), differences(&run.config, &self.config, &NO_RESULT_DEPENDS_ON));
        if !missing.is_empty() {
            State::Changed(format!("it has no {}, because an older akin wrote it", a_few(&missing)))
        } else if !different.is_empty() {
            State::Changed(format!("it differs in {}", a_few(&different)))
        } else if directory::is_complete(Kind::Run, directory).unwrap_or(false) {
            State::Done
        } else if has("checkpoint.akin") {
            State::Begun
        } else {
            State::New
        }
    }

    /// Refuses a run directory with another config, unless it may be replaced.
    ///
    /// # Errors
    ///
    /// The config has changed and `overwrite` is not set.
    pub fn refuse_changed(&self, overwrite: bool) -> Result<()> {
        match self.state() {
            State::Changed(reason) if !overwrite => Err(problem(
                format!("{} was trained with another config: {reason}", self.directory().display()),
                "pass `--overwrite` to retrain runs whose config has changed, or choose another `--out`",
            )),
            _ => Ok(()),
        }
    }

    /// Trains the run in another process, from its checkpoint if it has one.
    ///
    /// # Errors
    ///
    /// The process cannot be started, or its files cannot be written.
    pub fn train(&self) -> Result<ProcessOutcome> {
        let directory = self.directory();
        let folder = directory.parent().unwrap_or(directory);
        create_folder(folder)?;
        let outcome_file = directory.with_extension("outcome.json");
        let stderr_file = directory.with_extension("stderr");
        let mut command = Command::new(env::current_exe().context("the path of `akin` is not known")?);
        if self.state() == State::Begun {
            command.arg("resume").arg(directory);
        } else {
            let file = directory.with_extension("toml");
            write_atomic(&file, |out| out.write_all(self.config.to_toml().as_bytes()))?;
            command.arg("train").arg(file).arg("--overwrite");
        }
        remove_file(&outcome_file).advise(
            || format!("cannot remove {}", outcome_file.display()),
            "check the permissions of its folder",
        )?;
        let stderr = create(&stderr_file)
            .advise(|| format!("cannot write {}", stderr_file.display()), "check `--out`")?;
        let status = command
            .args(["--progress", "none", "--outcome"])
            .arg(&outcome_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .status()
            .advise(|| "cannot start a training".into(), "check that `akin` has not been moved")?;
        if outcome_file.is_file() {
            let mut outcome = read_json(&outcome_file)?;
            if matches!(outcome, ProcessOutcome::Failed { .. }) && self.state() == State::Done {
                // The training of a comparison that was killed went on, and ended meanwhile.
                outcome = ProcessOutcome::Done;
            }
            if outcome == ProcessOutcome::Done {
                // They say nothing more. Left behind, they do no harm.
                let _ = remove_file(&outcome_file).and(remove_file(&stderr_file));
            }
            return Ok(outcome);
        }
        if status.code() == Some(Interrupted::EXIT_CODE.into()) {
            return Ok(ProcessOutcome::Stopped);
        }
        let message = match status.code() {
            Some(code) => format!("the process ended with exit code {code}"),
            None => "the process was killed, perhaps because memory ran out".into(),
        };
        Ok(ProcessOutcome::Failed { message, hint: Some(format!("read {}", stderr_file.display())) })
    }

    /// Reads a JSON file of the run, which must be complete.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not as it was written.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let bytes = directory::read_checked(self.directory(), name)?;
        parse(&self.directory().join(name), &bytes)
    }
}

const RETRAIN: &str = "remove its folder to retrain the run";

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = read_regular_file(path).advise(|| format!("cannot read {}", path.display()), RETRAIN)?;
    parse(path, &bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).advise(|| format!("{} is damaged", path.display()), RETRAIN)
}
