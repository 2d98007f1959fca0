//! `akin serve`: serves the page with bundles, and with runs, which it exports first.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use akin_core::bundle::MANIFEST;
use anyhow::Result;
use clap::Args;

use crate::arguments::ServerArgs;
use crate::bundles::Bundles;
use crate::commands::export::{ALL_MAPS, Export, TILE, export, title_of};
use crate::directory::{self, Kind, MARK_FILE};
use crate::problem::problem;
use crate::progress::Progress;
use crate::run::{CONFIG_FILE, Run, Which};
use crate::{page, serve};

/// Serve the page with one or more bundles or runs, by default on this machine only.
///
/// A run is first exported to a bundle beside it, as `akin export RUN --out RUN.bundle` does; a bundle that is newer than
/// its run is served as it is. Checks the bundles first. Shows the page that this program holds. A program without a page
/// shows the page of the source tree around the current directory, and asks before it builds that page. Without a bundle,
/// serves the gallery of groceries in that tree.
/// Browsers allow WebGPU only for pages from localhost or over HTTPS, so opening the files directly does not work. To
/// publish, let `akin export --site` write the page and its bundles as one folder.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Run directories, folders that `akin export` wrote, or folders of such folders with a `bundles.json`. The page opens
    /// the first, and switches between them.
    #[arg(value_name = "BUNDLE|RUN")]
    pub bundles: Vec<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
    /// How to show progress while a run is exported.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Serves the page and bundles until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    let folders = match args.bundles {
        none if none.is_empty() => vec![page::galleries().ok_or_else(|| {
            problem(
                "there is no bundle to serve",
                "name a run that `akin train` wrote or a folder that `akin export` wrote, or start `akin demo`",
            )
        })?],
        given => given,
    };
    let (runs, given): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.iter().cloned().partition(|folder| is_run(folder));
    // Errors in a bundle, a run or the port are reported before a run is exported and the page is built.
    for run in &runs {
        check_run(run)?;
    }
    let bundles = if given.is_empty() { None } else { Some(Bundles::open(&given)?) };
    let hosts = args.server.hosts()?;
    let listener = serve::listen(&hosts, args.server.port)?;
    let page = page::plan(args.server.page.as_deref())?;
    let bundles = match bundles {
        Some(bundles) if runs.is_empty() => bundles,
        _ => {
            let bundle_of = |folder: PathBuf| match is_run(&folder) {
                true => export_run(&folder, args.progress),
                false => Ok(folder),
            };
            Bundles::open(&folders.into_iter().map(bundle_of).collect::<Result<Vec<_>>>()?)?
        }
    };
    serve::serve(listener, page.carry_out()?, bundles, hosts)
}

/// Whether a folder is a run, and no bundle.
fn is_run(folder: &Path) -> bool {
    folder.join(CONFIG_FILE).is_file() && !folder.join(MANIFEST).is_file()
}

/// Refuses a run that is not finished.
fn check_run(folder: &Path) -> Result<()> {
    Run::open(folder)?;
    if directory::is_complete(Kind::Run, folder)? {
        return Ok(());
    }
    Err(problem(
        format!("the training of the run {} is not finished", folder.display()),
        "finish it with `akin resume RUN`",
    ))
}

/// The bundle of a run, which is written now unless it is newer than the run.
fn export_run(folder: &Path, progress: Progress) -> Result<PathBuf> {
    let run = Run::open(folder)?;
    let whole = fs::canonicalize(folder)?;
    let name =
        [whole.file_name().unwrap_or_default(), ".bundle".as_ref()].iter().copied().collect::<OsString>();
    let out = folder.parent().unwrap_or(Path::new("")).join(name);
    directory::recover(&out)?;
    let written = |folder: &Path| fs::metadata(folder.join(MARK_FILE)).and_then(|mark| mark.modified()).ok();
    if directory::is_complete(Kind::Bundle, &out)? && written(&out) > written(folder) {
        return Ok(out);
    }
    let title = title_of(&run.config.data.path);
    export(&Export {
        runs: &[run],
        which: Which::Last,
        out: &out,
        overwrite: true,
        title,
        description: String::new(),
        licence: String::new(),
        notice: None,
        tile: TILE,
        half: false,
        group_bits: false,
        maps: &ALL_MAPS,
        progress,
    })?;
    Ok(out)
}
