//! A cell: one training in a process of its own, so that its time and memory are its own and its
//! failure ends nothing else.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use toml::Table;

use super::plan::values;
use crate::config::Config;
use crate::files::write_atomic;
use crate::problem::{Advise, a_few, problem};
use crate::run::{MARK, Run};

/// A training to be done, or done.
pub struct Cell {
    /// Its whole config; the run directory is `run.out`.
    pub config: Config,
}

/// How far a cell is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is nothing to go on from.
    New,
    /// There is a checkpoint.
    Begun,
    /// There is a report.
    Done,
    /// There is a run with another config, which differs in these keys.
    Changed(Vec<String>),
}

/// How a process ended.
pub enum Ended {
    /// All steps are done.
    Done,
    /// Ctrl-C: there is a checkpoint.
    Stopped,
    /// With this error.
    Failed(String),
}

impl Cell {
    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.config.run.out
    }

    /// How far it is.
    pub fn state(&self) -> State {
        let directory = self.directory();
        let has = |name: &str| directory.join(name).is_file();
        if !has(MARK) {
            return State::New;
        }
        match Run::open(directory) {
            Err(_) => State::Changed(vec![MARK.into()]),
            Ok(run) => match differences(&run.config, &self.config) {
                keys if !keys.is_empty() => State::Changed(keys),
                _ if has("report.json") && has("run.json") => State::Done,
                _ if has("checkpoint.akin") => State::Begun,
                _ => State::New,
            },
        }
    }

    /// Refuses a cell that was trained with another config, unless it may be replaced.
    ///
    /// # Errors
    ///
    /// The config has changed.
    pub fn keep(&self, overwrite: bool) -> Result<()> {
        match self.state() {
            State::Changed(keys) if !overwrite => Err(problem(
                format!(
                    "{} is there with another config, which differs in {}",
                    self.directory().display(),
                    a_few(&keys)
                ),
                "pass `--overwrite` to train what has changed anew, or choose another `--out`",
            )),
            _ => Ok(()),
        }
    }

    /// Trains what is left of it in another process.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub fn train(&self) -> Result<Ended> {
        let directory = self.directory();
        let mut command = Command::new(env::current_exe().context("this program cannot be found again")?);
        if self.state() == State::Begun {
            command.arg("resume").arg(directory);
        } else {
            let file = directory.with_extension("toml");
            let folder = directory.parent().unwrap_or(directory);
            fs::create_dir_all(folder)
                .advise(|| format!("{} cannot be made", folder.display()), "check `--out`")?;
            write_atomic(&file, |out| out.write_all(self.config.to_toml().as_bytes()))?;
            command.arg("train").arg(file).arg("--overwrite");
        }
        let output = command
            .args(["--progress", "none"])
            .stdin(Stdio::null())
            .output()
            .advise(|| "a training cannot be started".into(), "check that `akin` is still where it was")?;
        Ok(match output.status.code() {
            Some(0) => Ended::Done,
            Some(130) => Ended::Stopped,
            code => {
                let said = String::from_utf8_lossy(&output.stderr);
                let error = said.rsplit_once("error: ").map(|(_, error)| error.trim().to_owned());
                Ended::Failed(error.unwrap_or_else(|| match code {
                    Some(code) => format!("it ended with {code}: {}", said.trim()),
                    None => "it was killed, perhaps for want of memory".into(),
                }))
            }
        })
    }

    /// A JSON file that it left.
    ///
    /// # Errors
    ///
    /// A file that is not there or not JSON.
    pub fn read(&self, name: &str) -> Result<Value> {
        let path = self.directory().join(name);
        let bytes = fs::read(&path)
            .advise(|| format!("{} cannot be read", path.display()), "remove its folder to train it anew")?;
        serde_json::from_slice(&bytes)
            .advise(|| format!("{} is damaged", path.display()), "remove its folder to train it anew")
    }
}

/// The keys in which two configs differ, of those that a result depends on.
pub fn differences(one: &Config, other: &Config) -> Vec<String> {
    let flat = |config: &Config| {
        let mut config = config.clone();
        config.run.name.clear();
        config.run.out.clear();
        config.model.feature_cache = None;
        values(&Table::try_from(&config).unwrap_or_default())
    };
    let (one, other) = (flat(one), flat(other));
    let only = |here: &[(String, String)], there: &[(String, String)]| -> Vec<String> {
        here.iter().filter(|entry| !there.contains(entry)).map(|(key, _)| key.clone()).collect()
    };
    let mut keys = [only(&one, &other), only(&other, &one)].concat();
    keys.sort();
    keys.dedup();
    keys
}
