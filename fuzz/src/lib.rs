//! The files of the trainer that read what others wrote. The trainer is a program, not a library, so they are taken by
//! their paths.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "only the readers are used")]

#[path = "../../native-trainer/src/counts.rs"]
mod counts;
#[path = "../../native-trainer/src/csv_file.rs"]
pub mod csv_file;
#[path = "../../native-trainer/src/faults.rs"]
mod faults;
#[path = "../../native-trainer/src/files.rs"]
mod files;
#[path = "../../native-trainer/src/npy.rs"]
pub mod npy;
#[path = "../../native-trainer/src/problem.rs"]
mod problem;
#[path = "../../native-trainer/src/terminal.rs"]
mod terminal;
