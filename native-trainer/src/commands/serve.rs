//! `akin serve`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::arguments::ServerArgs;
use crate::{page, serve};

/// Serve the page with a bundle, on this machine only.
///
/// Builds the page first if need be. Browsers give WebGPU only to pages from localhost or over HTTPS; that
/// is why opening the files directly will not do. To publish, copy the page and, as its folder `bundle`,
/// the bundle to any web server with HTTPS.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Serves the page and a bundle until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    // Whatever is wrong with the bundle or the port is said before the page is built.
    serve::check_bundle(&args.bundle)?;
    let listener = serve::listen(args.server.port)?;
    let page = page::find_or_build(args.server.page.as_deref())?;
    serve::serve(listener, &page, &args.bundle)
}
