//! `akin demo`.

use anyhow::{Result, bail};

use crate::cli::DemoArgs;

/// Runs the command.
pub fn run(_args: DemoArgs) -> Result<()> {
    bail!("not built yet")
}
