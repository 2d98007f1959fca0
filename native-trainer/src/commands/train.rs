//! `akin train`.

use std::io::{Write, stdout};

use anyhow::Result;

use crate::cli::TrainArgs;
use crate::commands::eval::describe;
use crate::config::Config;
use crate::data::Dataset;
use crate::device;
use crate::files::check_directory;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::Progress;
use crate::run::{MARK, Run};
use crate::training::{Beginning, Outcome, listen_to_ctrl_c, train};

/// Trains and prints the report.
pub fn run(args: TrainArgs) -> Result<()> {
    let mut config = Config::load(&args.config, &args.sets.set)?;
    if let Some(out) = args.out {
        config.run.out = std::path::absolute(out)?;
    }
    config.run.seed = args.seed.unwrap_or(config.run.seed);
    config.run.device = args.device.unwrap_or(config.run.device);
    let progress = Progress::from(args.progress);
    listen_to_ctrl_c()?;
    finish(begin(config, args.overwrite, progress)?)
}

/// Trains in a new run directory.
pub fn begin(config: Config, overwrite: bool, progress: Progress) -> Result<(Run, Outcome)> {
    let directory = config.run.out.clone();
    check_directory(&directory, "run", MARK, overwrite)?;
    go(Run { directory, config }, Beginning::New { overwrite }, progress)
}

/// Tells how a training ended; after Ctrl-C the process exits with 130, as shells do.
pub fn finish((run, outcome): (Run, Outcome)) -> Result<()> {
    match outcome {
        Outcome::Done(report) => {
            writeln!(stdout(), "{}", describe(&report))?;
            Ok(())
        }
        Outcome::Stopped { step } => {
            eprintln!(
                "     Stopped after step {step}; continue with `akin resume {}`",
                run.directory.display()
            );
            std::process::exit(130)
        }
    }
}

/// Continues a run from its last checkpoint.
pub fn continue_run(run: Run, progress: Progress) -> Result<(Run, Outcome)> {
    if run.file("encoder.bpk").is_file() && run.file("report.json").is_file() {
        return Err(problem(
            format!("the run {} has ended; there is nothing to resume", run.directory.display()),
            "measure it with `akin eval RUN`, or train anew with more steps",
        ));
    }
    go(run, Beginning::Checkpoint, progress)
}

/// Trains on the data and the device that the run names.
fn go(run: Run, beginning: Beginning, progress: Progress) -> Result<(Run, Outcome)> {
    let device = device::open(run.config.run.device)?;
    let dataset = Dataset::load(&run.config.data, run.config.run.seed)?;
    let pictures = Pictures::new(&dataset.items);
    let outcome = train(&run, &dataset, &pictures, &device, beginning, progress)?;
    Ok((run, outcome))
}
