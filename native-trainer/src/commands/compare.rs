//! `akin compare`: many losses on the same data.

use std::path::PathBuf;

use akin_base::files::write_atomic;
use akin_base::problem::{a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{shell, terminal};
use akin_figures::{Painter, remove_earlier_figures, write_figures};
use anyhow::Result;
use clap::Args;

use super::cells::{command_line, print_cells};
use crate::commands::arguments::SetArgs;
use crate::comparison::compare::execution;
use crate::comparison::compare::paired::paired_tests;
use crate::comparison::compare::plan::{Overrides, Plan};
use crate::comparison::compare::print::{FILES, Format, print};
use crate::comparison::compare::results::figures_of_earlier;
use crate::comparison::compare::sensitivity;
use crate::config::{DeviceName, Source};

/// Train many losses on the same data and compare them in one table.
///
/// Every loss gets the same data, encoder, training length and initial weights. Each training is a process of its
/// own. Finished trainings are kept: after Ctrl-C the same command continues. Prints the mean ± deviation over the
/// seeds, and writes the table in Markdown, LaTeX, CSV and JSON. With `vary`, it also draws each metric by each setting,
/// as SVG.
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
    /// List the trainings that can begin now, as commands, one a line. Each can run on a machine of its own. Settings are
    /// tuned one after another, so a later list may name more. The same command without `--cells` then collects the
    /// results.
    #[arg(long, conflicts_with_all = ["cell", "check", "format"])]
    pub cells: bool,
    /// Do only one training: a number that `--cells` prints.
    #[arg(long, value_name = "N", conflicts_with_all = ["check", "format", "json"])]
    pub cell: Option<usize>,
    /// Test every other row against this one with a paired t-test over the seeds, which need at least 3. Prints the
    /// difference in what the row optimises, Cohen's d and p; `table.json` has all columns.
    ///
    /// The test assumes that the differences between runs of one seed are independent and normally distributed. With
    /// few seeds only large effects have a small p, and p is not corrected for the number of rows.
    #[arg(long, value_name = "ROW", conflicts_with_all = ["cells", "cell"])]
    pub paired: Option<String>,
    /// The format of the printed table.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also draw the figures of `vary` as PNG.
    #[arg(long, conflicts_with_all = ["cells", "cell"])]
    pub png: bool,
    /// Print JSON: the table, or with `--cells` every training and how far it is.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Trains every run that is not done, and prints and writes the table. Or lists or trains cells.
pub fn run(args: CompareArgs) -> Result<()> {
    let source = Source::read(&args.config, &args.sets.set)?;
    let overrides = Overrides {
        losses: args.losses,
        seeds: args.seeds,
        out: args.out,
        device: args.device,
        paired: args.paired.clone(),
    };
    let plan = Plan::new(source, overrides)?;
    let progress = args.progress;
    if args.cells {
        let cells = execution::list_cells(&plan, args.overwrite, progress)?;
        return print_cells(&cells, args.json, progress);
    }
    if let Some(number) = args.cell {
        return execution::train_cell(&plan, number, args.overwrite, progress);
    }
    // A font that cannot be read is reported before the work.
    let painter = if args.png { Some(Painter::new()?) } else { None };
    let format = if args.json { Format::Json } else { args.format };
    let (mut comparison, draft, pace) = execution::run(&plan, args.overwrite, progress, command_line())?;
    comparison.paired = args.paired.and_then(|against| paired_tests(&comparison, &against));

    let figures = sensitivity::figures(&comparison)?;
    let folder = plan.out.join("figures");
    let extensions: &[&str] = if args.png { &["svg", "png"] } else { &["svg"] };
    let names = figures
        .iter()
        .flat_map(|figure| extensions.iter().map(move |extension| format!("{}.{extension}", figure.name)));
    comparison.figures = names.collect();
    write_figures(&folder, "svg", &figures, |figure| Ok(figure.drawing.svg(&figure.title)?.into_bytes()))?;
    if let Some(painter) = &painter {
        write_figures(&folder, "png", &figures, |figure| painter.png(&figure.drawing))?;
    }
    // An earlier comparison may have varied other settings.
    let earlier = figures_of_earlier(&plan.out.join("table.json"));
    remove_earlier_figures(&folder, &earlier, &comparison.figures)?;
    for (name, format) in FILES {
        let mut text = print(&comparison, format, false);
        if format == Format::Markdown {
            text += &sensitivity::markdown(&figures);
        }
        write_atomic(&plan.out.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    draft.complete()?;
    pace.done(&plan.out);
    let text = print(&comparison, format, terminal::stdout_is_terminal());
    match format {
        Format::Text => terminal::print_styled(text.trim_end())?,
        _ => terminal::print(text.trim_end())?,
    }
    progress.say("Wrote", &plan.out.join("table.{md,tex,csv,json}").display().to_string());
    if !figures.is_empty() {
        let figures = counted(figures.len(), "figure", "figures");
        progress.say("Drew", &format!("{figures} in {}", shell::path(&folder)));
    }
    if let Some(row) = comparison.rows.iter().find(|row| row.failed.is_empty()) {
        let run = shell::path(&plan.out.join(&row.name).join(format!("seed-{}", plan.seeds[0])));
        progress.say("Next", &format!("`akin export {run} --out bundle` writes this run for the browser"));
    }

    let at_edge: Vec<String> = comparison
        .rows
        .iter()
        .filter(|row| !row.at_edge.is_empty())
        .map(|row| format!("{} ({})", row.name, row.at_edge.join(", ")))
        .collect();
    if !at_edge.is_empty() {
        terminal::warn(format!(
            "tuning chose a value at the edge of its grid for {}; a better one may lie beyond: add values to `tune`",
            a_few(&at_edge)
        ));
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
