//! `akin tune`: searches for settings on folds of the training classes.

use std::path::PathBuf;

use akin_base::files::write_atomic;
use akin_base::problem::{a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{shell, terminal};
use anyhow::Result;
use clap::Args;

use super::cells::{command_line, print_cells};
use crate::commands::arguments::SetArgs;
use crate::comparison::tune::execution;
use crate::comparison::tune::plan::{Overrides, Plan};
use crate::comparison::tune::print::{Format, print, trials_csv};
use crate::config::{DeviceName, Source};

/// Search for settings on folds of the training classes.
///
/// Tries settings of the ranges in the section `[tune]`. Each trial trains on all folds of the training classes but one, is
/// scored on that one, and does so for each fold; the evaluation splits take no part. Then trains the best settings again
/// with other seeds, and evaluates these models, apart and with their embeddings put together. Each training is a process of
/// its own. Finished trainings are kept: after Ctrl-C the same command continues.
///
/// Prints the trials and the scores, and writes them as CSV, Markdown and JSON, with a config of the best settings for
/// `akin train`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// A TOML file with a section `[tune]`.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The number of settings to try, instead of `tune.trials`. A larger one continues a search that is done.
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    /// The directory for runs and results [default: tune/NAME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Retrain runs whose config has changed.
    #[arg(long)]
    pub overwrite: bool,
    /// List the trainings that can begin now, as commands, one a line. Each can run on a machine of its own. What a trial
    /// tries may depend on the scores of earlier ones, so a later list may name more. The same command without `--cells`
    /// then collects the results.
    #[arg(long, conflicts_with = "cell")]
    pub cells: bool,
    /// Do only one training: a number that `--cells` prints.
    #[arg(long, value_name = "N", conflicts_with = "json")]
    pub cell: Option<usize>,
    /// Print JSON: the results, or with `--cells` every training and how far it is.
    #[arg(long)]
    pub json: bool,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Trains every run that is not done, and prints and writes the results. Or lists or trains cells.
pub fn run(args: TuneArgs) -> Result<()> {
    let source = Source::read(&args.config, &args.sets.set)?;
    let overrides = Overrides { trials: args.trials, out: args.out, device: args.device };
    let plan = Plan::new(source, overrides)?;
    let progress = args.progress;
    if args.cells {
        let cells = execution::list_cells(&plan, args.overwrite, progress)?;
        return print_cells(&cells, args.json, progress);
    }
    if let Some(number) = args.cell {
        return execution::train_cell(&plan, number, args.overwrite, progress);
    }
    let (results, draft, pace) = execution::run(&plan, args.overwrite, progress, command_line())?;
    let best = plan.best(&results.best_trial().settings)?.to_toml();
    for (name, text) in [
        ("best.toml", best),
        ("trials.csv", trials_csv(&results)),
        ("results.md", print(&results, Format::Markdown)),
        ("results.json", print(&results, Format::Json)),
    ] {
        write_atomic(&plan.out.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    draft.complete()?;
    pace.done(&plan.out);
    let format = if args.json { Format::Json } else { Format::Text };
    terminal::print(print(&results, format).trim_end())?;
    progress
        .say("Wrote", &plan.out.join("{best.toml,trials.csv,results.md,results.json}").display().to_string());
    let best = shell::path(&plan.out.join("best.toml"));
    progress.say("Next", &format!("`akin train {best}` trains the best settings on all training classes"));
    if !results.failed.is_empty() {
        return Err(problem(
            format!(
                "{} failed: {}",
                counted(results.failed.len(), "training", "trainings"),
                a_few(&results.failed)
            ),
            "the table leaves out their seeds; the same command retries them",
        ));
    }
    Ok(())
}
