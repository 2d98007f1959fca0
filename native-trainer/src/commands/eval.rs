//! `akin eval`.

use anyhow::{Result, bail};

use crate::cli::EvalArgs;

/// Runs the command.
pub fn run(_args: EvalArgs) -> Result<()> {
    bail!("not built yet")
}
