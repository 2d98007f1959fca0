//! `akin page`.

use std::io::{Write, stdout};

use anyhow::Result;
use clap::Args;

use crate::page;

/// Build the page, if it is not up to date, and print where it is.
///
/// Needs the source tree, Rust and Node. What else it needs (the wasm target, trunk, wasm-bindgen, npm
/// packages) it installs, saying so; tools go to $AKIN_CACHE or the user's cache folder.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Build it even if it is up to date.
    #[arg(long)]
    pub force: bool,
}

/// Builds the page and prints where it is.
pub fn run(args: PageArgs) -> Result<()> {
    let folder = page::build(args.force)?;
    writeln!(stdout(), "{}", folder.display())?;
    Ok(())
}
