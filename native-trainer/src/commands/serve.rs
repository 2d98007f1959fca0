//! `akin serve`: serves the page with bundles.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::arguments::ServerArgs;
use crate::bundles::Bundles;
use crate::problem::problem;
use crate::{page, serve};

/// Serve the page with one or more bundles, by default on this machine only.
///
/// Checks the bundles first. Shows the page that this program holds. A program without a page shows the page of the
/// source tree around the current directory, and asks before it builds that page. Without a bundle, serves the gallery of groceries in that tree.
/// Browsers allow WebGPU only for pages from localhost or over HTTPS, so opening the files directly does not work. To
/// publish, let `akin export --site` write the page and its bundles as one folder.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Folders that `akin export` wrote, or folders of such folders with a `bundles.json`. The page opens the first, and
    /// switches between them.
    #[arg(value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Serves the page and bundles until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    let folders = match args.bundles {
        none if none.is_empty() => vec![page::galleries().ok_or_else(|| {
            problem(
                "there is no bundle to serve",
                "name a folder that `akin export` wrote, or start `akin demo`",
            )
        })?],
        given => given,
    };
    // Errors in a bundle or the port are reported before the page is built.
    let bundles = Bundles::open(&folders)?;
    let hosts = args.server.hosts()?;
    let listener = serve::listen(&hosts, args.server.port)?;
    let page = page::plan(args.server.page.as_deref())?.carry_out()?;
    serve::serve(listener, page, bundles, hosts)
}
