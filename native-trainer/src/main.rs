//! `akin`: train, evaluate, export and serve hierarchical retrieval models.

// A binary exports nothing: `pub` here means "for the other modules".
#![allow(unreachable_pub)]

mod augment;
mod biomorphs;
mod checkpoint;
mod cli;
mod commands;
mod compare;
mod config;
mod data;
mod device;
mod embedding;
mod features;
mod files;
mod loader;
mod machine;
mod npy;
mod optimizer;
mod page;
mod problem;
mod progress;
mod recipes;
mod run;
mod sampler;
mod serve;
mod table;
mod training;

use std::io;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            problem::report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Whether stdout was closed by its reader, as `akin … | head` does: nothing is wrong then.
fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
