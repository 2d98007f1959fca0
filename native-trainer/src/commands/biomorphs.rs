//! `akin biomorphs`.

use anyhow::{Result, bail};

use crate::cli::BiomorphsArgs;

/// Runs the command.
pub fn run(_args: BiomorphsArgs) -> Result<()> {
    bail!("not built yet")
}
