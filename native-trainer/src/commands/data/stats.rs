//! `akin data stats`: the classes of a data set, their sizes and their tree, as tables and as a picture.

use std::path::PathBuf;

use akin_base::files::{check_ending, write_atomic};
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_base::text_table::align_numbers;
use akin_figures::Painter;
use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::arguments::DataSetArgs;
use crate::commands::data::class_tree::draw;
use crate::data::statistics::{ClassNode, LevelStatistics, class_tree, level_statistics};
use crate::data::{Dataset, check_output, entry};

/// The coarsest classes that a table lists.
const LISTED: usize = 20;

/// Show the classes of a data set, their sizes and their tree.
///
/// Counts the classes of each level and the images of their smallest, median and largest class over all splits, and lists
/// the coarsest classes. `--svg` and `--png` draw the whole tree. No image is read.
#[derive(Debug, Args)]
pub struct DataStatsArgs {
    #[command(flatten)]
    pub data: DataSetArgs,
    /// Draw the class tree and the sizes of the finest classes to this file.
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// The same picture as PNG.
    #[arg(long, value_name = "FILE.png")]
    pub png: Option<PathBuf>,
    /// Replace the files of `--svg` and `--png`.
    #[arg(long)]
    pub overwrite: bool,
    /// Print the numbers and the whole tree as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Prints the statistics of a data set.
pub fn run(args: &DataStatsArgs) -> Result<()> {
    let selection = args.data.load()?;
    for (option, file, ending) in [("--svg", &args.svg, "svg"), ("--png", &args.png, "png")] {
        let Some(file) = file else { continue };
        check_output(file, std::slice::from_ref(&args.data.data), &selection, args.overwrite)?;
        check_ending(option, file, ending)?;
    }
    // A font that cannot be read is reported before the work.
    let painter = args.png.as_ref().map(|_| Painter::new()).transpose()?;
    let dataset = Dataset::read(&selection)?;
    let (levels, classes) = (level_statistics(&dataset), class_tree(&dataset));
    if args.svg.is_some() || args.png.is_some() {
        let entry = entry(selection.data.kind());
        let folder = selection.data.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let title = if entry.counts.is_some() { entry.title.to_owned() } else { folder };
        let picture = draw(&title, &levels, &classes);
        if let Some(file) = &args.svg {
            let svg = picture.svg(&title)?;
            write_atomic(file, |out| out.write_all(svg.as_bytes()))?;
        }
        if let (Some(file), Some(painter)) = (&args.png, &painter) {
            let png = painter.png(&picture)?;
            write_atomic(file, |out| out.write_all(&png))?;
        }
    }
    let text = if args.json {
        serde_json::to_string_pretty(&json!({ "levels": levels, "tree": classes }))?
    } else {
        describe(&levels, &classes)
    };
    terminal::print(&text)?;
    Ok(())
}

/// A name as it is printed: without tabs and line ends, which would break the columns, and with other control characters as
/// codes, whose width counts.
fn one_line(name: &str) -> String {
    terminal::escape(&name.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn describe(levels: &[LevelStatistics], tree: &[ClassNode]) -> String {
    let row = |level: &LevelStatistics| {
        vec![
            one_line(&level.level),
            count(level.classes),
            level.children.map_or("–".into(), |children| format!("{children:.1}")),
            count(level.fewest),
            count(level.median),
            format!("{:.1}", level.mean),
            count(level.most),
            count(level.unknown),
        ]
    };
    let header = ["level", "classes", "below each", "fewest images", "median", "mean", "most", "unknown"];
    // A column of zeros says nothing.
    let columns = header.len() - usize::from(levels.iter().all(|level| level.unknown == 0));
    let rows: Vec<Vec<String>> = levels.iter().map(|level| row(level)[..columns].to_vec()).collect();
    let mut text = align_numbers(&header[..columns], &rows);
    let all: usize = tree.iter().map(|node| node.images).sum();
    let finest = levels.last().map_or("class".into(), |level| one_line(&level.level));
    let row = |node: &ClassNode| {
        vec![
            one_line(&node.name),
            count(node.images),
            format!("{:.1} %", 100.0 * node.images as f64 / all as f64),
            count(node.finest),
        ]
    };
    let rows: Vec<Vec<String>> = tree.iter().take(LISTED).map(row).collect();
    let below = format!("classes of {finest}");
    let coarsest = one_line(&levels[0].level);
    let header = [coarsest.as_str(), "images", "share", below.as_str()];
    text += &format!("\n\n{}", align_numbers(&header, &rows));
    if tree.len() > LISTED {
        text += &format!("\n… and {} more", counted(tree.len() - LISTED, "class", "classes"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_under_a_name_with_control_characters() {
        let node = |name: &str| ClassNode { name: name.into(), images: 5, finest: 1, children: Vec::new() };
        let level = |level: &str| LevelStatistics {
            level: level.into(),
            classes: 2,
            children: None,
            fewest: 5,
            median: 5,
            mean: 5.0,
            most: 5,
            unknown: 0,
        };
        let text =
            terminal::escape(&describe(&[level("kind")], &[node("a\u{1b}[2J"), node("owl")])).into_owned();
        let ends: Vec<Option<usize>> = text.lines().rev().take(2).map(|line| line.find("50.0 %")).collect();
        assert!(ends[0].is_some() && ends[0] == ends[1], "{text}");
    }
}
