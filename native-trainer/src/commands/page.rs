//! `akin page`.

use std::io::{Write, stdout};

use anyhow::Result;

use crate::cli::PageArgs;
use crate::page;

/// Builds the page and prints where it is.
pub fn run(args: PageArgs) -> Result<()> {
    let folder = page::build(args.force)?;
    writeln!(stdout(), "{}", folder.display())?;
    Ok(())
}
