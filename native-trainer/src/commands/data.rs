//! `akin data`: checks, verifies, describes and fetches data sets. `akin data check` is here; the others have files of
//! their own.

mod arguments;
mod class_tree;
pub(super) mod fetch;
mod stats;
mod verify;

use std::path::Path;

use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_base::quantities::{count, counted};
use akin_base::terminal::{self, one_line};
use akin_base::text_table::align_numbers;
use anyhow::Result;
use clap::{Args, Subcommand};

use self::arguments::DataSetArgs;
use self::fetch::DataFetchArgs;
use self::stats::DataStatsArgs;
use self::verify::DataVerifyArgs;
use crate::data::Dataset;
use crate::data::check::{Findings, inspect};

#[derive(Debug, Subcommand)]
/// The commands on a data set.
pub enum DataCommand {
    Check(DataCheckArgs),
    Verify(DataVerifyArgs),
    Stats(DataStatsArgs),
    Fetch(DataFetchArgs),
}

/// Count a data set and report mistakes in it.
///
/// Counts images and classes per split and level, checks the taxonomy, reads every image, and lists unreadable files
/// and duplicates across splits. Only `[data]` of the config is needed. Exits with 1 if a file cannot be read.
#[derive(Debug, Args)]
pub struct DataCheckArgs {
    #[command(flatten)]
    pub data: DataSetArgs,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Runs a command on a data set.
pub fn run(command: DataCommand) -> Result<()> {
    match command {
        DataCommand::Check(args) => check(&args),
        DataCommand::Verify(args) => verify::run(&args),
        DataCommand::Stats(args) => stats::run(&args),
        DataCommand::Fetch(args) => fetch::run(&args),
    }
}

/// Counts a data set and prints the findings.
fn check(args: &DataCheckArgs) -> Result<()> {
    let selection = args.data.load()?;
    let dataset = Dataset::read(&selection)?;
    dataset.unused_settings(&selection).iter().for_each(terminal::warn);
    let bar = args.progress.bar("Reading", dataset.paths.len() as u64);
    let findings = inspect(&dataset, || bar.advance(1))?;
    drop(bar);
    let text = if args.json { serde_json::to_string_pretty(&findings)? } else { describe(&findings) };
    terminal::print(&text)?;
    match findings.unreadable.len() {
        0 => Ok(()),
        unreadable => Err(problem(
            format!("{} cannot be read", counted(unreadable, "image", "images")),
            "replace or remove the images listed above: training skips damaged images, but does not start if one is \
             missing",
        )),
    }
}

fn describe(findings: &Findings) -> String {
    let levels: Vec<&str> = findings.levels.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = findings
        .splits
        .iter()
        .map(|split| {
            let classes = split.classes.iter().map(|&classes| count(classes));
            [split.name.to_owned(), count(split.images)].into_iter().chain(classes).collect()
        })
        .collect();
    let header: Vec<&str> = ["split", "images"].into_iter().chain(levels).collect();
    let mut text = align_numbers(&header, &rows);

    let rows: Vec<Vec<String>> = findings
        .taxonomy
        .iter()
        .map(|level| {
            vec![
                level.name.clone(),
                count(level.classes),
                count(level.shared),
                count(level.queries_with_positives),
                count(level.unknown),
            ]
        })
        .collect();
    let header = ["level", "classes", "trained and evaluated", "queries with positives", "unknown"];
    // A column of zeros says nothing.
    let columns = header.len() - usize::from(findings.taxonomy.iter().all(|level| level.unknown == 0));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row[..columns].to_vec()).collect();
    text += &format!("\n\n{}", align_numbers(&header[..columns], &rows));

    for remark in &findings.remarks {
        text += &format!("\n\nnote: {}", one_line(remark));
    }
    let groups = [
        (&findings.duplicates, "in more than one split"),
        (&findings.repeated, "in one split more than once, where a copy is a positive that is found at once"),
    ];
    for (groups, place) in groups.into_iter().filter(|(groups, _)| !groups.is_empty()) {
        let count = counted(groups.len(), "image is", "images are");
        text += &format!("\n\nwarning: {count} {place}:");
        for group in groups {
            let files: Vec<String> =
                group.iter().map(|file| format!("{} ({})", name(&file.path), file.split)).collect();
            text += &format!("\n  {}", files.join(" = "));
        }
    }
    if !findings.unreadable.is_empty() {
        text += &format!("\n\n{} cannot be read:", counted(findings.unreadable.len(), "image", "images"));
        for file in &findings.unreadable {
            text += &format!("\n  {}: {}", name(&file.path), one_line(&file.reason));
        }
    }
    text
}

/// A path on one line.
fn name(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}
