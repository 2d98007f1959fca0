//! `akin demo`: creatures, two trainings, one bundle, the page. Needs nothing from outside.

use std::io::{Write, stdout};
use std::path::PathBuf;

use akin_biomorphs::{BiomorphConfig, Biomorphs};
use akin_core::evaluate::Report;
use anyhow::Result;
use clap::Args;

use crate::arguments::ServerArgs;
use crate::columns::count;
use crate::commands::biomorphs;
use crate::commands::export::{Export, export};
use crate::commands::train::begin;
use crate::config::{Config, DeviceName};
use crate::files::{create_directory, write_atomic};
use crate::progress::Progress;
use crate::report::runs_text;
use crate::run::Run;
use crate::training::Outcome;
use crate::{page, serve};

/// Draw creatures, train two models on them, and show both in the browser.
///
/// Generates biomorphs, trains the same encoder twice from the same start, with NormSoftmax on the finest
/// labels and with HAPPIER on the whole taxonomy, prints both rows of the table, puts both into one
/// bundle, and serves the page. Needs no download and no GPU.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where data, runs and bundle go.
    #[arg(long, value_name = "DIR", default_value = "akin-demo")]
    pub out: PathBuf,
    /// From this follow creatures, first weights and batches.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Stop when the bundle is written, without building and serving the page.
    #[arg(long)]
    pub no_serve: bool,
    /// Replace what an earlier demo left in DIR.
    #[arg(long)]
    pub overwrite: bool,
    /// Where tensors are computed.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The two recipes: the same but for the loss. The first is the baseline.
const RECIPES: [(&str, &str); 2] = [
    ("norm-softmax", include_str!("../../recipes/biomorphs-norm-softmax.toml")),
    ("happier", include_str!("../../recipes/biomorphs-happier.toml")),
];

/// The file that marks a directory as one of the demo.
const MARK: &str = "norm-softmax.toml";

/// Generates, trains twice, exports, and serves unless told not to.
pub fn run(args: DemoArgs) -> Result<()> {
    let progress = args.progress;
    // A port that is taken is better said now than after the training.
    let listener = if args.no_serve { None } else { Some(serve::listen(args.server.port)?) };
    create_directory(&args.out, "demo", MARK, args.overwrite)?;
    for (name, recipe) in RECIPES {
        write_atomic(&args.out.join(format!("{name}.toml")), |file| file.write_all(recipe.as_bytes()))?;
    }

    // Twice as large as the network needs, so that the page shows more detail.
    let config = BiomorphConfig { seed: args.seed, side: 128, ..BiomorphConfig::default() };
    let creatures = Biomorphs::new(config)?;
    let bar = progress.bar("Drawing", creatures.pictures() as u64);
    biomorphs::write(&creatures, &args.out.join("data"), &bar)?;
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
        match begin(config, false, progress)? {
            (run, Outcome::Done(report)) => runs.push((run, *report)),
            stopped => return crate::commands::train::finish(stopped),
        }
    }
    let rows: Vec<(&str, &Report)> =
        runs.iter().map(|(run, report)| (run.config.run.name.as_str(), report)).collect();
    writeln!(stdout(), "{}", runs_text(&rows))?;

    let runs: Vec<Run> = runs.into_iter().map(|(run, _)| run).collect();
    let bundle = args.out.join("bundle");
    export(&Export {
        runs: &runs,
        out: &bundle,
        overwrite: false,
        title: "Biomorphs".into(),
        description: "Drawn creatures that descend from one another. The models have never seen the \
                      species shown here, only others of the same families."
            .into(),
        licence: "CC0-1.0".into(),
        progress,
    })?;
    match listener {
        None => {
            progress.say("Finished", &format!("show it with `akin serve {}`", bundle.display()));
            Ok(())
        }
        Some(listener) => {
            let page = page::find_or_build(args.server.page.as_deref())?;
            serve::serve(listener, &page, &bundle)
        }
    }
}
