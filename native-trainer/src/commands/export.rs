//! `akin export`.

use anyhow::{Result, bail};

use crate::cli::ExportArgs;

/// Runs the command.
pub fn run(_args: ExportArgs) -> Result<()> {
    bail!("not built yet")
}
