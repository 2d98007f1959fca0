//! Runs: the directories that trainings write, and what is read from them later.

pub mod code_lengths;
pub mod magnitude;
pub mod outcome;
pub mod run;
pub mod run_log;
