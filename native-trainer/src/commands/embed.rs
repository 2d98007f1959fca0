//! `akin embed`.

use anyhow::{Result, bail};

use crate::cli::EmbedArgs;

/// Runs the command.
pub fn run(_args: EmbedArgs) -> Result<()> {
    bail!("not built yet")
}
