//! `akin compare`: many losses on the same data.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::arguments::SetArgs;
use crate::compare::execution;
use crate::compare::plan::{Overrides, Plan};
use crate::compare::print::{FILES, Format, print};
use crate::config::{DeviceName, Source};
use crate::counts::counted;
use crate::files::write_atomic;
use crate::problem::{a_few, problem};
use crate::progress::Progress;
use crate::{shell, terminal};

/// Train many losses on the same data and compare them in one table.
///
/// Every loss gets the same data, encoder, training length and initial weights. Each training is a process of its
/// own. Finished trainings are kept: after Ctrl-C the same command continues. Prints the mean ± deviation over the
/// seeds, and writes the table in Markdown, LaTeX, CSV and JSON.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A TOML file with a section `[compare]`, or the name of a recipe.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The losses to compare, instead of those of the config; `all` stands for every loss. A loss that cannot use the
    /// config's head gets a head that it can use.
    #[arg(long, value_name = "LOSS,…", value_delimiter = ',')]
    pub losses: Vec<String>,
    /// The seeds, instead of those of the config.
    #[arg(long, value_name = "SEED,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seeds: Vec<u64>,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The directory for runs and tables [default: compare/NAME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Retrain runs whose config has changed.
    #[arg(long)]
    pub overwrite: bool,
    /// Exit with 1 unless every trained model beats the untrained encoder by the metric that its loss optimises.
    #[arg(long)]
    pub check: bool,
    /// The format of the printed table.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Trains every run that is not done, and prints and writes the table.
pub fn run(args: CompareArgs) -> Result<()> {
    let source = Source::read(&args.config, &args.sets.set)?;
    let overrides = Overrides { losses: args.losses, seeds: args.seeds, out: args.out, device: args.device };
    let plan = Plan::new(source, overrides)?;
    let progress = args.progress;
    let (comparison, draft) = execution::run(&plan, args.overwrite, progress, command_line())?;

    for (name, format) in FILES {
        let text = print(&comparison, format, false);
        write_atomic(&plan.out.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    draft.complete()?;
    let text = print(&comparison, args.format, terminal::stdout_is_terminal());
    match args.format {
        Format::Text => terminal::print_styled(text.trim_end())?,
        _ => terminal::print(text.trim_end())?,
    }
    progress.say("Wrote", &plan.out.join("table.{md,tex,csv,json}").display().to_string());
    if let Some(row) = comparison.rows.iter().find(|row| row.failed.is_empty()) {
        let run = shell::path(&plan.out.join(&row.name).join(format!("seed-{}", plan.seeds[0])));
        progress.say("Next", &format!("`akin export {run} --out bundle` writes this run for the browser"));
    }

    let failed: Vec<String> = comparison.rows.iter().flat_map(|row| &row.failed).cloned().collect();
    if !failed.is_empty() {
        return Err(problem(
            format!("{} failed: {}", counted(failed.len(), "training", "trainings"), a_few(&failed)),
            "the table leaves them out; the same command retries them",
        ));
    }
    let not_improved: Vec<&str> = comparison
        .rows
        .iter()
        .filter(|row| row.improved() != Some(true))
        .map(|row| row.name.as_str())
        .collect();
    if args.check && !not_improved.is_empty() {
        return Err(problem(
            format!(
                "training with {} did not improve the metric that the loss optimises",
                a_few(&not_improved)
            ),
            "train longer, or change the learning rates",
        ));
    }
    Ok(())
}

/// The command line, quoted for a shell.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| shell::word(&word));
    std::iter::once("akin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
