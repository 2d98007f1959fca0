//! One training of a comparison. Each has a process of its own, so that its time and memory are its own and a
//! failure does not end the others.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use akin_base::directory::{self, Kind, Lock};
use akin_base::files::{create, create_folder, read_regular_file, remove_file, write_atomic};
use akin_base::interrupt;
use akin_base::problem::{Advise, Interrupted, a_few, parts, problem};
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{Config, NO_RESULT_DEPENDS_ON, differences};
use crate::data::DataDigest;
use crate::runs::outcome::{Failure, ProcessOutcome};
use crate::runs::run::{CONFIG_FILE, Run};

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

/// What a run was made with, apart from its config: a part of `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of akin.
    akin: String,
    /// The data set.
    data: DataDigest,
}

impl Provenance {
    /// Made now, with this data set.
    pub fn now(data: DataDigest) -> Self {
        Self { akin: env!("CARGO_PKG_VERSION").into(), data }
    }

    /// What differs from `other`, in words.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.akin != other.akin {
            return Some(format!("akin {} made it, and this is akin {}", self.akin, other.akin));
        }
        let changes = other.data.changes(&self.data);
        (!changes.is_empty()).then(|| format!("since then the data have changed: {}", a_few(&changes)))
    }
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
        let different = differences(&run.config, &self.config, &NO_RESULT_DEPENDS_ON);
        if !different.is_empty() {
            State::Changed(format!("it differs in {}", a_few(&different)))
        } else if directory::is_complete(Kind::Run, directory).unwrap_or(false) {
            State::Done
        } else if has("checkpoint.akin") {
            State::Begun
        } else {
            State::New
        }
    }

    /// Whether the run is done. A run with another config, another version of akin or other data may have to be replaced.
    ///
    /// # Errors
    ///
    /// Such a run, unless `overwrite` is set; a `run.json` that cannot be read.
    pub fn is_done(&self, now: &Provenance, overwrite: bool) -> Result<bool> {
        let directory = self.directory().display();
        let reason = match self.state() {
            State::New | State::Begun => return Ok(false),
            State::Changed(reason) => format!("{directory} was trained with another config: {reason}"),
            State::Done => match self.read::<Provenance>("run.json")?.difference(now) {
                None => return Ok(true),
                Some(reason) => format!("{directory} cannot be used: {reason}"),
            },
        };
        if overwrite {
            return Ok(false);
        }
        Err(problem(
            reason,
            "pass `--overwrite` to retrain runs whose config, data or akin have changed, or choose another `--out`",
        ))
    }

    /// Why the last training of this run failed, if its numbers did: the same settings would fail again.
    /// A training with another config says nothing about this run, and neither does a fault of the system.
    ///
    /// # Errors
    ///
    /// The file of its outcome cannot be read.
    pub fn failure(&self) -> Result<Option<String>> {
        let file = self.outcome_file();
        if !file.is_file() {
            return Ok(None);
        }
        let trained = Config::load(&self.config_file(), &[]);
        if !trained.is_ok_and(|trained| differences(&trained, &self.config, &NO_RESULT_DEPENDS_ON).is_empty())
        {
            return Ok(None);
        }
        Ok(match read_json(&file)? {
            ProcessOutcome::Failed(failure) if failure.of_numbers => Some(failure.message),
            _ => None,
        })
    }

    /// Whether a process trains the run now.
    pub fn is_running(&self) -> bool {
        Lock::is_held_beside(self.directory())
    }

    fn outcome_file(&self) -> PathBuf {
        self.directory().with_extension("outcome.json")
    }

    /// The config that the process reads, beside the run directory.
    fn config_file(&self) -> PathBuf {
        self.directory().with_extension("toml")
    }

    /// Trains the run in another process, from its checkpoint if it has one.
    ///
    /// # Errors
    ///
    /// Another process trains it; the process cannot be started, or its files cannot be written.
    pub fn train(&self) -> Result<ProcessOutcome> {
        let directory = self.directory();
        create_folder(directory.parent().unwrap_or(directory))?;
        // The lock of the run comes later: without this one, two processes would write the files beside the run.
        let lock = Lock::beside(directory)?;
        let outcome = self.train_locked();
        lock.release();
        outcome
    }

    fn train_locked(&self) -> Result<ProcessOutcome> {
        let directory = self.directory();
        let outcome_file = self.outcome_file();
        let stderr_file = directory.with_extension("stderr");
        let mut command = Command::new(env::current_exe().context("the path of `akin` is not known")?);
        if self.state() == State::Begun {
            command.arg("resume").arg(directory);
        } else {
            let file = self.config_file();
            write_atomic(&file, |out| out.write_all(self.config.to_toml().as_bytes()))?;
            command.arg("train").arg(file).arg("--overwrite");
        }
        remove_file(&outcome_file).advise(
            || format!("cannot remove {}", outcome_file.display()),
            "check the permissions of its folder",
        )?;
        let stderr = create(&stderr_file)
            .advise(|| format!("cannot write {}", stderr_file.display()), "check `--out`")?;
        command.args(["--progress", "none", "--outcome"]).arg(&outcome_file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let status = interrupt::status_of(&mut command)
            .advise(|| "cannot start a training".into(), "check that `akin` has not been moved")?;
        if outcome_file.is_file() {
            let mut outcome = read_json(&outcome_file)?;
            if matches!(outcome, ProcessOutcome::Failed(_)) && self.state() == State::Done {
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
        let hint = Some(format!("read {}", stderr_file.display()));
        let outcome = ProcessOutcome::Failed(Failure { message, hint, of_numbers: false });
        outcome.write(&outcome_file)?;
        Ok(outcome)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_another_akin_or_of_other_data_is_told_apart() {
        let now = Provenance::now(DataDigest::default());
        assert_eq!(now.difference(&now), None);
        let other = Provenance { akin: "0.0.1".into(), ..now.clone() };
        assert!(other.difference(&now).unwrap().starts_with("akin 0.0.1 made it"));
        let mut data = DataDigest::default();
        data.images = 3;
        let difference = Provenance::now(data).difference(&now).unwrap();
        assert!(difference.ends_with("there are 0 images instead of 3"), "{difference}");
    }
}
