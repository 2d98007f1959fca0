//! `akin resume`: continues a training.

use std::path::PathBuf;

use akin_base::progress::Progress;
use anyhow::Result;
use clap::Args;

use crate::commands::train::{OutcomeArgs, continue_run, finish};
use crate::config::DeviceName;
use crate::runs::run::Run;

/// Continue a training that was stopped.
///
/// Starts at the last checkpoint and continues the same sequence of batches.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run directory.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
}

/// Continues the training and prints the report.
pub fn run(mut args: ResumeArgs) -> Result<()> {
    let outcome = std::mem::take(&mut args.outcome);
    outcome.write(resume_and_print(args))
}

fn resume_and_print(args: ResumeArgs) -> Result<()> {
    let mut run = Run::open(&args.run)?;
    run.config.run.device = args.device.unwrap_or(run.config.run.device);
    finish(continue_run(run, args.progress)?, args.progress)
}
