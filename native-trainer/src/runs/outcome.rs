//! How a training process ended, in a file: `akin compare` trains in other processes and reads it.

use std::path::Path;

use akin_base::files::write_atomic;
use akin_base::problem::{Interrupted, is_of_numbers, parts, problem};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// How a training process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ProcessOutcome {
    /// All steps are done, and the report is written.
    Done,
    /// Ctrl-C was pressed; there is a checkpoint.
    Stopped,
    /// An error ended it.
    Failed(Failure),
}

/// Why a training failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether its numbers failed: a loss that is NaN, embeddings that cannot be ranked. That says something about the
    /// settings. Any other failure may be a fault of the system: a full disk, too little memory, a kill.
    pub of_numbers: bool,
}

impl Failure {
    /// The error of a search that ends because a training that it needs failed without saying anything about its settings.
    pub fn ends_search(self, name: &str) -> anyhow::Error {
        let first = self.hint.map_or_else(String::new, |hint| format!("{hint}; then "));
        problem(
            format!(
                "{name} failed: {}; its settings have no score yet, so no best ones can be chosen",
                self.message
            ),
            format!(
                "{first}run the same command again, which tries this training again and keeps the others"
            ),
        )
    }
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
                let message = message.replace('\n', "; ");
                Self::Failed(Failure { message, hint, of_numbers: is_of_numbers(error) })
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
    use akin_base::problem::numbers_problem;

    use super::*;

    #[test]
    fn an_outcome_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outcome.json");
        let failed = |of_numbers| {
            ProcessOutcome::Failed(Failure {
                message: "no data; in a.csv".into(),
                hint: Some("add it".into()),
                of_numbers,
            })
        };
        for (result, expected) in [
            (Ok(()), ProcessOutcome::Done),
            (Err(Interrupted("after step 3".into()).into()), ProcessOutcome::Stopped),
            (Err(problem("no data\nin a.csv", "add it")), failed(false)),
            (Err(numbers_problem("no data\nin a.csv", "add it")), failed(true)),
        ] {
            let outcome = ProcessOutcome::new(&result);
            assert_eq!(outcome, expected);
            outcome.write(&file).unwrap();
            let read: ProcessOutcome = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            assert_eq!(read, expected);
        }
    }
}
