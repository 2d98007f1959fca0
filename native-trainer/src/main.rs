//! `akin`: train, evaluate, export and serve hierarchical retrieval models.
//!
//! # The order of the files
//!
//! A file imports only files of later lines. The files therefore form no circle, and to understand one you need only
//! those below it. There is one exception: a file in a folder may use what the file of that folder defines (`data/csv`
//! uses `data`), although that file is listed above it. The test in `tests/order.rs` checks this list.
//!
//! ```text
//! main
//! cli
//! commands
//! recipe_facts
//! commands/demo commands/compare commands/tune commands/resume commands/serve commands/report
//! commands/cells
//! commands/report/figures_of_run commands/report/html
//! commands/train commands/eval commands/export commands/embed commands/list
//! commands/init commands/config commands/search commands/doctor commands/completions commands/recipes
//! commands/data commands/biomorphs commands/page commands/verify commands/bench
//! commands/bench/loss commands/bench/eval commands/bench/loader
//! commands/data/verify commands/data/fetch commands/data/stats
//! commands/bench/measure commands/data/arguments
//! commands/verify/run_checks commands/verify/bundle_checks
//! commands/verify/check
//! commands/eval/dyml
//! commands/eval/embedding_files commands/eval/opened_run
//! commands/eval/arguments
//! commands/eval/shard
//! tune
//! tune/execution
//! tune/concatenation tune/print
//! tune/results tune/plan
//! tune/search
//! tune/space tune/gaussian_process
//! compare
//! compare/execution
//! compare/sensitivity
//! compare/untrained compare/print compare/cells
//! compare/trainer
//! compare/data_sets
//! compare/plan
//! compare/planned_run compare/tuning compare/paired compare/idle compare/pace
//! compare/settings
//! dry_run
//! training
//! training/journal
//! training/view
//! training/dashboard
//! training/timetable training/numbers training/gradients training/loss_curve
//! training/workers
//! dyml
//! embedding projection class_scores families
//! projection/tsne projection/umap
//! projection/neighbours projection/pca
//! features
//! forward
//! checkpoint loader run_log
//! sampler augment optimizer average trend run loss_scale
//! magnitude clipping class_tree
//! data
//! data/published data/statistics data/idle
//! data/check data/detect
//! data/aircraft data/cars196 data/cifar100 data/csv data/cub200 data/dyml data/grocery data/h_gldv2
//! data/inaturalist data/inshop data/nabirds data/omniglot data/parquet data/revisited data/sop
//! data/table
//! data/folder data/hierarchy
//! data/listing
//! data/storage
//! config_md
//! compare/results compare/config tune/config
//! device outcome published
//! model_card
//! report
//! config
//! config/explained config/idle
//! config/tests config/reference config/difference
//! config/run config/data config/augment config/published config/model config/sampler config/optimizer config/schedule
//! config/source
//! config/range
//! config/fault config/overlay recipes
//! config/schema
//! site arguments download
//! contact_sheet rank_curves npy mat pickle junk csv_file parquet_file serve
//! serve/answer parquet_file/footer
//! parquet_file/page
//! parquet_file/thrift parquet_file/runs
//! serve/hosts serve/connections
//! page bundles
//! page/build page/embedded
//! directory sealed terminal_picture
//! directory/mark
//! directory/inventory directory/kind directory/lock
//! figures
//! figures/lines figures/points figures/heat_map figures/bars figures/sheet figures/raster
//! figures/point_names
//! figures/drawing
//! tensorboard
//! files columns charts machine interrupt shell progress html
//! counts
//! problem faults
//! terminal
//! ```

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A binary exports nothing: `pub` here means "for the other modules".
#![allow(unreachable_pub)]
// Only `terminal` prints, because it escapes control characters in names and labels.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod augment;
mod average;
mod bundles;
mod charts;
mod checkpoint;
mod class_scores;
mod class_tree;
mod cli;
mod clipping;
mod columns;
mod commands;
mod compare;
mod config;
#[cfg(test)]
mod config_md;
mod contact_sheet;
mod counts;
mod csv_file;
mod data;
mod device;
mod directory;
mod download;
mod dry_run;
mod dyml;
mod embedding;
mod families;
mod faults;
mod features;
mod figures;
mod files;
mod forward;
mod html;
mod interrupt;
mod junk;
mod loader;
mod loss_scale;
mod machine;
mod magnitude;
mod mat;
mod model_card;
mod npy;
mod optimizer;
mod outcome;
mod page;
mod parquet_file;
mod pickle;
mod problem;
mod progress;
mod projection;
mod published;
mod rank_curves;
#[cfg(test)]
mod recipe_facts;
mod recipes;
mod report;
mod run;
mod run_log;
mod sampler;
mod sealed;
mod serve;
mod shell;
mod site;
mod tensorboard;
mod terminal;
mod terminal_picture;
mod training;
mod trend;
mod tune;

use std::io;
use std::process::{ExitCode, exit};

use anyhow::{Context, Result};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::cli::Cli;
use crate::interrupt::Answer;
use crate::problem::Interrupted;
use crate::progress::Progress;
use crate::terminal::OutputFailed;

fn main() -> ExitCode {
    let matches = Cli::command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
    if progress_of(&matches) == Some(Progress::Json) {
        terminal::speak_json();
    }
    let Err(error) = run(cli) else { return ExitCode::SUCCESS };
    if let Some(failed) = error.downcast_ref::<OutputFailed>() {
        return output_failed(failed);
    }
    if let Some(stopped) = error.downcast_ref::<Interrupted>() {
        terminal::say(format_args!("     Stopped {stopped}"));
        return ExitCode::from(Interrupted::EXIT_CODE);
    }
    let (message, hint) = problem::parts(&error);
    terminal::report(&message, hint.as_deref(), problem::code(&error));
    ExitCode::FAILURE
}

/// How the command shows progress, if it does.
fn progress_of(matches: &ArgMatches) -> Option<Progress> {
    match matches.subcommand() {
        Some((_, inner)) => progress_of(inner),
        None => matches.try_get_one::<Progress>("progress").ok().flatten().copied(),
    }
}

/// Prints what clap says of the arguments, which may be help, and ends. Without style if an argument has control
/// characters.
fn refuse(error: &clap::Error) -> ! {
    if std::env::args_os().all(|argument| terminal::is_harmless(&argument.to_string_lossy())) {
        if let Err(failed) = error.print()
            && !error.use_stderr()
            && failed.kind() != io::ErrorKind::BrokenPipe
        {
            output_failed(&OutputFailed(failed));
            exit(1);
        }
    } else {
        terminal::say(error);
    }
    exit(error.exit_code())
}

fn run(cli: Cli) -> Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    outlive_file_size_limit();
    if cli.trains() {
        handle_ctrl_c()?;
    }
    cli.run()
}

/// Lets a training save before Ctrl-C ends the program. A second Ctrl-C ends it at once.
fn handle_ctrl_c() -> Result<()> {
    interrupt::handle(|answer| match answer {
        Answer::Wait => terminal::say("\n    Stopping after this step; press Ctrl-C again to abort at once"),
        Answer::Exit => exit(Interrupted::EXIT_CODE.into()),
        Answer::Ignore => {}
    })
    .context("the handler of Ctrl-C cannot be installed")
}

/// Reports that stdout cannot be written. If its reader has closed it, as `akin … | head` does, nothing is wrong.
fn output_failed(failed: &OutputFailed) -> ExitCode {
    if failed.0.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    let message = format!("{failed}: {}", failed.0);
    terminal::report(&message, Some("free some space, or send the output to another place"), problem::SYSTEM);
    ExitCode::FAILURE
}

/// Lets a file that exceeds `ulimit -f` be an error of its write, which names the file. Without a handler the signal ends
/// the program and says nothing.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn outlive_file_size_limit() {
    const SIGXFSZ: i32 = 25;
    // Where the handler cannot be installed, the program ends as it did.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}
