//! `akin serve`.

use anyhow::Result;

use crate::cli::ServeArgs;
use crate::{page, serve};

/// Serves the page and a bundle until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    // Whatever is wrong with the bundle or the port is said before the page is built.
    serve::check_bundle(&args.bundle)?;
    let listener = serve::listen(args.server.port)?;
    let page = page::find_or_build(args.server.page.as_deref())?;
    serve::serve(listener, &page, &args.bundle)
}
