//! `akin`: train, evaluate, export and serve hierarchical retrieval models.

// A binary exports nothing: `pub` here means "for the other modules".
#![allow(unreachable_pub)]

mod arguments;
mod augment;
mod checkpoint;
mod cli;
mod columns;
mod commands;
mod compare;
mod config;
#[cfg(test)]
mod config_md;
mod data;
mod device;
mod embedding;
mod features;
mod files;
mod loader;
mod machine;
mod npy;
mod optimizer;
mod outcome;
mod page;
mod problem;
mod progress;
mod recipes;
mod report;
mod run;
mod sampler;
mod serve;
mod training;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::problem::Interrupted;

/// What shells report for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let Err(error) = cli::Cli::parse().run() else { return ExitCode::SUCCESS };
    if reader_left(&error) {
        return ExitCode::SUCCESS;
    }
    if let Some(stopped) = error.downcast_ref::<Interrupted>() {
        eprintln!("     Stopped {stopped}");
        return ExitCode::from(INTERRUPTED);
    }
    problem::report(&error);
    ExitCode::FAILURE
}

/// Whether stdout was closed by its reader, as `akin … | head` does: nothing is wrong then.
fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
