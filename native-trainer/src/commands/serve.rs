//! `akin serve`: serves the page with a bundle.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::arguments::ServerArgs;
use crate::{page, serve};

/// Serve the page with a bundle, on this machine only.
///
/// Builds the page first if it is not up to date. Browsers allow WebGPU only for pages from localhost or over HTTPS, so
/// opening the files directly does not work. To publish, copy the page to a web server with HTTPS, and the bundle to
/// the folder `bundle` beside it.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Serves the page and a bundle until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    // Errors in the bundle or the port are reported before the page is built.
    serve::check_bundle(&args.bundle)?;
    let listener = serve::listen(args.server.port)?;
    let page = page::find_or_build(args.server.page.as_deref())?;
    serve::serve(listener, &page, &args.bundle)
}
