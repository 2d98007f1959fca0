//! What a training records about itself: its log, and the time and memory that it takes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::machine;
use crate::problem::Advise;
use crate::run::Run;

/// See the [module](self).
pub(super) struct Journal {
    log: File,
    started: Instant,
    first_step: u64,
    peak_memory: Option<u64>,
}

impl Journal {
    /// Opens `log.jsonl` of a run to add to it, and starts the clock. `first_step` is the number of
    /// steps that earlier sessions have done.
    pub(super) fn open(run: &Run, first_step: u64) -> Result<Self> {
        let path = run.file("log.jsonl");
        let log = open(&path).advise(
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
        writeln!(self.log, "{entry}").advise(
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

/// Opens a log to add to it. The last line is removed if a killed process left it incomplete.
fn open(path: &Path) -> io::Result<File> {
    let mut log = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    let mut text = Vec::new();
    log.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    log.set_len(whole as u64)?;
    log.seek(SeekFrom::End(0))?;
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{\"step\":10}\n{\"ste").unwrap();
        writeln!(open(&path).unwrap(), "{{}}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"step\":10}\n{}\n");
    }
}
