//! How a training process ended, in a file: `akin compare` trains in other processes and reads it.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::files::write_atomic;
use crate::problem::{Interrupted, parts};

/// How a training process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ProcessOutcome {
    /// All steps are done, and the report is written.
    Done,
    /// Ctrl-C was pressed; there is a checkpoint.
    Stopped,
    /// An error ended it.
    Failed {
        /// What is wrong, in one line.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl ProcessOutcome {
    /// The outcome of a command that trains.
    pub fn new(result: &Result<()>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error) if error.is::<Interrupted>() => Self::Stopped,
            Err(error) => {
                let (message, hint) = parts(error);
                // It stands in a row of a table.
                Self::Failed { message: message.replace('\n', "; "), hint }
            }
        }
    }

    /// Writes the outcome as JSON.
    ///
    /// # Errors
    ///
    /// A full disk, or a folder that is not writable.
    pub fn write(&self, file: &Path) -> Result<()> {
        let json = serde_json::to_vec_pretty(self)?;
        write_atomic(file, |out| out.write_all(&json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::problem;

    #[test]
    fn an_outcome_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outcome.json");
        let failed =
            ProcessOutcome::Failed { message: "no data; in a.csv".into(), hint: Some("add it".into()) };
        for (result, expected) in [
            (Ok(()), ProcessOutcome::Done),
            (Err(Interrupted("after step 3".into()).into()), ProcessOutcome::Stopped),
            (Err(problem("no data\nin a.csv", "add it")), failed),
        ] {
            let outcome = ProcessOutcome::new(&result);
            assert_eq!(outcome, expected);
            outcome.write(&file).unwrap();
            let read: ProcessOutcome = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            assert_eq!(read, expected);
        }
    }
}
