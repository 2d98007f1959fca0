//! `akin page`: builds the page.

use akin_base::terminal;
use akin_server::page;
use anyhow::Result;
use clap::Args;

/// Build the page if it is not up to date, and print its folder.
///
/// Needs the source tree, Rust and Node. Installs what else it needs (Rust's wasm target and packages of npm) and says so.
/// The page is as small as it gets; `akin demo` and `akin serve` build a larger one much sooner if there is none.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Build the page even if it is up to date.
    #[arg(long)]
    pub force: bool,
}

/// Builds the page and prints its folder.
pub fn run(args: PageArgs) -> Result<()> {
    let folder = page::build(args.force)?;
    terminal::print(&folder.display().to_string())?;
    Ok(())
}
