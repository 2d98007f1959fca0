//! `akin resume`.

use anyhow::{Result, bail};

use crate::cli::ResumeArgs;

/// Runs the command.
pub fn run(_args: ResumeArgs) -> Result<()> {
    bail!("not built yet")
}
