//! `akin resume`.

use anyhow::Result;

use crate::cli::ResumeArgs;
use crate::commands::train::{continue_run, finish};
use crate::progress::Progress;
use crate::run::Run;
use crate::training::listen_to_ctrl_c;

/// Continues and prints the report.
pub fn run(args: ResumeArgs) -> Result<()> {
    let mut run = Run::open(&args.run)?;
    run.config.run.device = args.device.unwrap_or(run.config.run.device);
    listen_to_ctrl_c()?;
    finish(continue_run(run, Progress::from(args.progress))?)
}
