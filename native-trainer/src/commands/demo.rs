//! `akin demo`: draws creatures, trains two models, exports both and serves the page. Needs no download.

use std::path::PathBuf;
use std::slice;

use akin_base::directory::{self, Draft, Kind};
use akin_base::files::write_atomic;
use akin_base::progress::Progress;
use akin_base::quantities::count;
use akin_base::{interrupt, shell, terminal};
use akin_biomorphs::{BiomorphConfig, Biomorphs};
use akin_core::evaluate::Report;
use akin_server::bundles::Bundles;
use akin_server::page::{self, Build};
use akin_server::serve::{self, Server};
use anyhow::Result;
use clap::Args;

use crate::commands::arguments::ServerArgs;
use crate::commands::biomorphs;
use crate::commands::export::{Export, export};
use crate::commands::train::{finish, train_new};
use crate::config::{Config, DeviceName};
use crate::evaluation::report::runs_text;
use crate::runs::run::Run;
use crate::training::Outcome;

/// Draw creatures, train two models on them, and show both in the browser.
///
/// Serves the page with the gallery of groceries that comes with akin. Meanwhile draws a data set, trains the same
/// encoder twice from the same initial weights (with NormSoftmax on the finest labels and with HAPPIER on the whole
/// taxonomy), prints the results of both and exports both to one bundle, which the page then shows first. In a source tree
/// whose page is not built, it says what that needs, and builds it. Needs no download of data and no GPU.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The directory for data, runs and bundle.
    #[arg(long, value_name = "DIR", default_value = "akin-demo")]
    pub out: PathBuf,
    /// Seed for creatures, initial weights and batches.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Stop after writing the bundle, without building and serving the page.
    #[arg(long)]
    pub no_serve: bool,
    /// Replace an earlier demo in DIR.
    #[arg(long)]
    pub overwrite: bool,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The recipes, which differ only in the loss. The first is the baseline.
const RECIPES: [(&str, &str); 2] = [
    ("norm-softmax", include_str!("../../recipes/biomorphs-norm-softmax.toml")),
    ("happier", include_str!("../../recipes/biomorphs-happier.toml")),
];

/// Draws, trains twice and exports, and serves meanwhile and afterwards unless `--no-serve` is given.
pub fn run(args: DemoArgs) -> Result<()> {
    let progress = args.progress;
    // A port in use, or a page that cannot be shown, is reported now, not after the training.
    let exists = directory::check(Kind::Demo, &args.out, args.overwrite)?;
    let mut place = None;
    if !args.no_serve {
        let hosts = args.server.hosts()?;
        let listener = serve::listen(&hosts, args.server.port)?;
        let page = page::plan(args.server.page.as_deref(), Build::Quick)?.carry_out()?;
        place = Some((listener, page, hosts));
    }
    // The gallery of photos that comes with akin is there while the models train, and stands beside the creatures then.
    let galleries = page::galleries();
    let mut server = None;
    if let Some(galleries) = &galleries
        && let Some((listener, page, hosts)) = place.take()
    {
        let bundles = Bundles::open(slice::from_ref(galleries))?;
        server = Some(Server::start(listener, page, None, bundles, hosts, None)?);
        terminal::say(
            "It shows photos of groceries now, and the creatures once both models are trained (about three minutes).",
        );
    }
    // Data, runs and bundle are replaced one by one, each when the new one is complete.
    let draft = match exists {
        true => Draft::resume(Kind::Demo, &args.out)?,
        false => Draft::create(Kind::Demo, &args.out, false)?,
    };
    for (name, recipe) in RECIPES {
        write_atomic(&args.out.join(format!("{name}.toml")), |file| file.write_all(recipe.as_bytes()))?;
    }

    // Twice as large as the network needs, so that the page shows more detail.
    let config = BiomorphConfig { seed: args.seed, side: 128, ..BiomorphConfig::default() };
    let creatures = Biomorphs::new(config)?;
    let bar = progress.bar("Drawing", creatures.pictures() as u64);
    biomorphs::write(&creatures, &args.out.join("data"), args.overwrite, &bar)?;
    drop(bar);
    let species = creatures.classes().last().copied().unwrap_or(0);
    progress.say("Drew", &format!("{} creatures of {species} species", count(creatures.pictures())));

    let mut runs: Vec<(Run, Report)> = Vec::new();
    for (name, _) in RECIPES {
        let mut config = Config::load(&args.out.join(format!("{name}.toml")), &[])?;
        config.run.out = std::path::absolute(args.out.join("runs").join(name))?;
        config.run.seed = args.seed;
        config.run.device = args.device;
        progress.say("Training", &format!("with {}", config.loss.describe()));
        match train_new(config, args.overwrite, progress)? {
            (run, Outcome::Done(report)) => runs.push((run, *report)),
            stopped => return finish(stopped, progress),
        }
    }
    let rows: Vec<(&str, &Report)> =
        runs.iter().map(|(run, report)| (run.config.run.name.as_str(), report)).collect();
    terminal::print(&runs_text(&rows))?;

    let runs: Vec<Run> = runs.into_iter().map(|(run, _)| run).collect();
    let bundle = args.out.join("bundle");
    export(&Export {
        overwrite: args.overwrite,
        description: "Drawn creatures that descend from one another. The models have never seen the \
                      species shown here, only others of the same families."
            .into(),
        licence: "CC0-1.0".into(),
        ..Export::new(&runs, &bundle, "Biomorphs".into(), progress)
    })?;
    draft.complete()?;
    let folders: Vec<PathBuf> = [bundle].into_iter().chain(galleries).collect();
    let server = match (server, place) {
        (Some(server), _) => {
            server.show(Bundles::open(&folders)?);
            server
        }
        (None, Some((listener, page, hosts))) => {
            Server::start(listener, page, None, Bundles::open(&folders)?, hosts, None)?
        }
        (None, None) => {
            let folders: Vec<String> = folders.iter().map(|folder| shell::path(folder)).collect();
            progress.say("Next", &page::next_serve(&folders.join(" "), "shows it in the browser"));
            return Ok(());
        }
    };
    progress
        .say("Serving", &format!("the creatures at {}; load the page again if it is open", server.address()));
    interrupt::leave_to_server();
    server.run()
}
