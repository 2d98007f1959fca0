//! `akin data verify`: holds a copy of a data set to its published counts, and decodes every image.

use akin_base::problem::{a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{count, counted};
use akin_base::text_table::align_words;
use akin_base::{shell, terminal};
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::arguments::DataSetArgs;
use crate::config::{DataConfig, Selection};
use crate::data::check::{Findings, inspect, inspect_benchmarks};
use crate::data::published_counts::{Comparison, compare};
use crate::data::{Dataset, entry};

/// Hold a copy of a data set to its published counts, and decode every image.
///
/// Compares the numbers of images and classes with those that were published, and reads every image: of DyML-Vehicle and
/// -Animal those of all three benchmarks. Exits with 1 if a number differs or an image cannot be read.
#[derive(Debug, Args)]
pub struct DataVerifyArgs {
    #[command(flatten)]
    pub data: DataSetArgs,
    /// Print the counts as JSON.
    #[arg(long)]
    pub json: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Verifies a data set and prints the counts.
pub fn run(args: &DataVerifyArgs) -> Result<()> {
    let selection = args.data.load()?;
    let entry = entry(selection.data.kind());
    let Some(counts) = &entry.counts else {
        return Err(problem(
            format!("a {} has no published counts", entry.title),
            format!(
                "use `akin data check {}`, which counts it and looks for mistakes",
                shell::path(&args.data.data)
            ),
        ));
    };
    let findings = inspect_copy(selection.data, args.progress)?;
    let comparisons = compare(&findings, counts);
    let text = if args.json {
        let unreadable = &findings.unreadable;
        serde_json::to_string_pretty(&json!({
            "title": entry.title,
            "counts": comparisons,
            "published_in": counts.published_in,
            "unreadable": unreadable,
        }))?
    } else {
        describe(entry.title, &comparisons, counts.published_in)
    };
    terminal::print(&text)?;
    let differing: Vec<&str> =
        comparisons.iter().filter(|count| !count.agrees).map(|count| count.what.as_str()).collect();
    if !differing.is_empty() {
        let what = match &differing[..] {
            [_] => "1 count is not the published one".to_owned(),
            _ => format!("{} counts are not the published ones", count(differing.len())),
        };
        return Err(problem(
            format!("{what}: {}", differing.join("; ")),
            "copy or unpack the data set again; `akin list datasets` says which files belong to it",
        ));
    }
    let unreadable: Vec<String> =
        findings.unreadable.iter().map(|file| format!("{} ({})", file.path.display(), file.reason)).collect();
    if !unreadable.is_empty() {
        return Err(problem(
            format!(
                "{} cannot be read: {}",
                counted(unreadable.len(), "image", "images"),
                a_few(&unreadable)
            ),
            "copy or unpack these images again",
        ));
    }
    Ok(())
}

/// Counts the published splits of a copy, or its training images and all of its benchmarks, and decodes every image.
fn inspect_copy(data: DataConfig, progress: Progress) -> Result<Findings> {
    let bar = |images: usize| progress.bar("Reading", images as u64);
    let Some(benchmarks) = data.benchmarks() else {
        let dataset = Dataset::read(&Selection::of(data))?;
        let bar = bar(dataset.paths.len());
        return inspect(&dataset, || bar.advance(1));
    };
    let read =
        |(level, data): (&String, DataConfig)| Ok((level.clone(), Dataset::read(&Selection::of(data))?));
    let benchmarks = data.levels().iter().zip(benchmarks).map(read).collect::<Result<Vec<_>>>()?;
    let evaluated = |dataset: &Dataset| dataset.splits.query.len() + dataset.splits.gallery.len();
    let training = benchmarks.first().map_or(0, |(_, dataset)| dataset.splits.train.len());
    let bar = bar(training + benchmarks.iter().map(|(_, dataset)| evaluated(dataset)).sum::<usize>());
    inspect_benchmarks(benchmarks, || bar.advance(1))
}

fn describe(title: &str, comparisons: &[Comparison], published_in: &str) -> String {
    let row = |comparison: &Comparison| {
        let published = count(comparison.published);
        vec![
            comparison.what.clone(),
            count(comparison.found),
            if comparison.rounded { format!("about {published}") } else { published },
            if comparison.agrees { "the same" } else { "different" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = comparisons.iter().map(row).collect();
    let table = align_words(&[title, "found", "published", ""], &rows, None);
    format!("{table}\n\nPublished in {published_in}.")
}
