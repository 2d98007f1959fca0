//! `akin duplicates`: the nearly equal pictures of a gallery.

use std::collections::HashMap;
use std::path::PathBuf;

use akin_base::progress::Progress;
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::duplicates::{Alike, duplicates};
use akin_core::similarity::Similarity;
use akin_gallery::{Gallery, Row};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::classify::Format;

/// List the nearly equal pictures of a gallery.
///
/// Two pictures are nearly equal if the cosine of their embeddings is at least that of `--at-least`, or if their files are
/// identical. Each pair is compared. A group has all pictures that a chain of such pairs joins, and stands with the similarity
/// of each to the nearest of the others. Groups with identical files come first, then the most similar ones. Nothing is
/// removed: `akin index GALLERY --remove` takes pictures out of the gallery, and the files are yours to delete.
#[derive(Debug, Args)]
pub struct DuplicatesArgs {
    /// The folder of a gallery that `akin index` wrote.
    #[arg(value_name = "GALLERY")]
    pub gallery: PathBuf,
    /// The least cosine of nearly equal pictures, above 0 and at most 1. Which one fits depends on the encoder.
    #[arg(long, value_name = "COSINE", default_value = "0.98", value_parser = parse_cosine)]
    pub at_least: f32,
    /// How to print the groups.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Nearly equal pictures.
struct Group {
    items: Vec<Alike>,
    /// For each item, whether the file of another one is identical.
    identical: Vec<bool>,
}

/// Compares all pictures and prints the groups.
pub fn run(args: &DuplicatesArgs) -> Result<()> {
    let gallery = Gallery::open(&args.gallery)?;
    let rows = gallery.rows();
    let bar = args.progress.bar("Comparing", rows.len() as u64);
    let same = identical_files(rows);
    let groups = duplicates(gallery.vectors(), Similarity::Cosine, args.at_least, &same, &|done| {
        bar.set(done as u64);
    })?;
    bar.finish();
    let groups = in_order(groups, rows);
    let text = match args.format {
        Format::Table => table(&groups, rows),
        Format::Csv => csv(&groups, rows)?,
        Format::Json => serde_json::to_string_pretty(
            &groups.iter().map(|group| group_json(group, rows)).collect::<Vec<_>>(),
        )?,
    };
    if !text.is_empty() {
        terminal::print(&text)?;
    }
    let found: usize = groups.iter().map(|group| group.items.len()).sum();
    args.progress.say(
        "Compared",
        &format!(
            "{}: {} in {} with a cosine of at least {} or identical files",
            counted(rows.len(), "picture", "pictures"),
            count(found),
            counted(groups.len(), "group", "groups"),
            args.at_least
        ),
    );
    Ok(())
}

/// Pairs of rows with identical files, each with the first of its kind.
fn identical_files(rows: &[Row]) -> Vec<[usize; 2]> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let before = *first.entry(&row.sha256).or_insert(place);
        if before != place {
            pairs.push([before, place]);
        }
    }
    pairs
}

/// Groups with identical files first, then by their greatest score.
fn in_order(groups: Vec<Vec<Alike>>, rows: &[Row]) -> Vec<Group> {
    let with_files = |items: Vec<Alike>| {
        let mut files: HashMap<&str, usize> = HashMap::new();
        for alike in &items {
            *files.entry(&rows[alike.item].sha256).or_default() += 1;
        }
        let identical = items.iter().map(|alike| files[&*rows[alike.item].sha256] > 1).collect();
        Group { items, identical }
    };
    let mut groups: Vec<Group> = groups.into_iter().map(with_files).collect();
    let key = |group: &Group| {
        let best = group.items.iter().map(|alike| alike.score).fold(f32::NEG_INFINITY, f32::max);
        (group.identical.contains(&true), best)
    };
    // The sort is stable: equal groups stay in gallery order.
    groups.sort_by(|a, b| {
        let ((a_files, a_best), (b_files, b_best)) = (key(a), key(b));
        b_files.cmp(&a_files).then(b_best.total_cmp(&a_best))
    });
    groups
}

fn table(groups: &[Group], rows: &[Row]) -> String {
    let line = |number: usize, alike: &Alike, identical: bool| {
        let row = &rows[alike.item];
        vec![
            number.to_string(),
            format!("{:.3}", alike.score),
            if identical { "identical" } else { "" }.to_owned(),
            alike.item.to_string(),
            row.file().display().to_string(),
            row.labels.join(" > "),
        ]
    };
    let lines: Vec<Vec<String>> = (1..)
        .zip(groups)
        .flat_map(|(number, group)| {
            let items = group.items.iter().zip(&group.identical);
            items.map(move |(alike, &identical)| line(number, alike, identical))
        })
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => {
            align_words(&["group", "score", "file", "item", "path", "labels"], &lines, terminal::width())
        }
    }
}

fn csv(groups: &[Group], rows: &[Row]) -> Result<String> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["group", "score", "identical", "item", "path", "size", "sha256", "labels"])?;
    for (number, group) in (1_usize..).zip(groups) {
        for (alike, identical) in group.items.iter().zip(&group.identical) {
            let row = &rows[alike.item];
            table.write_record([
                number.to_string(),
                alike.score.to_string(),
                identical.to_string(),
                alike.item.to_string(),
                row.file().display().to_string(),
                row.size.to_string(),
                row.sha256.clone(),
                row.labels.join(" > "),
            ])?;
        }
    }
    let text = String::from_utf8(table.into_inner().map_err(|error| error.into_error())?)?;
    Ok(text.trim_end().to_owned())
}

fn group_json(group: &Group, rows: &[Row]) -> Value {
    let item = |(alike, identical): (&Alike, &bool)| {
        let row = &rows[alike.item];
        json!({
            "item": alike.item, "path": row.file().display().to_string(), "score": alike.score,
            "identical": identical, "size": row.size, "sha256": row.sha256, "labels": row.labels,
        })
    };
    group.items.iter().zip(&group.identical).map(item).collect()
}

/// Reads a cosine above 0.
fn parse_cosine(text: &str) -> Result<f32, String> {
    match text.trim().parse::<f32>() {
        Ok(cosine) if cosine > 0.0 && cosine <= 1.0 => Ok(cosine),
        _ => Err("it is a number above 0 and at most 1, such as 0.98".into()),
    }
}
