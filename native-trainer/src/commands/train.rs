//! `akin train`.

use anyhow::{Result, bail};

use crate::cli::TrainArgs;

/// Runs the command.
pub fn run(_args: TrainArgs) -> Result<()> {
    bail!("not built yet")
}
