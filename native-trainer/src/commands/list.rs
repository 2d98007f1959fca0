//! `akin list`: what there is by name.

use std::io::{IsTerminal, Write, stdout};

use akin_core::sources::SOURCES;
use akin_core::{losses, metrics, miners};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::columns::listing;
use crate::problem::{did_you_mean, problem};
use crate::recipes::RECIPES;

#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// What training can minimise: the `kind` of [loss].
    Losses(ListArgs),
    /// What picks pairs and triplets for a loss: its `miner`.
    Miners(ListArgs),
    /// What evaluation can report.
    Metrics(ListArgs),
    /// Configs that are built in.
    Recipes(ListRecipesArgs),
    /// The papers that losses and metrics come from.
    Sources(ListSourcesArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ListRecipesArgs {
    /// Print this recipe, to make your own of it.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub struct ListSourcesArgs {
    /// Print a BibTeX entry for each.
    #[arg(long, conflicts_with = "json")]
    pub bibtex: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

/// How wide a list is on a terminal.
const WIDTH: u16 = 100;

/// A list: its columns and their cells.
struct List {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// Prints a list, one recipe, or BibTeX.
pub fn run(what: ListCommand) -> Result<()> {
    let text = match what {
        ListCommand::Losses(args) if args.json => serde_json::to_string_pretty(&*losses::CATALOGUE)? + "\n",
        ListCommand::Losses(args) => losses().print(&args)?,
        ListCommand::Miners(args) => miners().print(&args)?,
        ListCommand::Metrics(args) => metrics().print(&args)?,
        ListCommand::Recipes(ListRecipesArgs { show: Some(name), .. }) => show(&name)?.to_owned(),
        ListCommand::Recipes(args) => recipes().print(&args.list)?,
        ListCommand::Sources(args) if args.bibtex => {
            let entries: Vec<&str> = SOURCES.iter().map(|source| source.bibtex).collect();
            entries.join("\n\n") + "\n"
        }
        ListCommand::Sources(args) => sources().print(&args.list)?,
    };
    write!(stdout(), "{text}")?;
    Ok(())
}

impl List {
    /// The list as a table, or an object for each row.
    fn print(&self, args: &ListArgs) -> Result<String> {
        if args.json {
            let object = |row: &Vec<String>| -> Value {
                self.header.iter().zip(row).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
            };
            let objects: Vec<Value> = self.rows.iter().map(object).collect();
            return Ok(serde_json::to_string_pretty(&objects)? + "\n");
        }
        // Where a program reads, every row stays on its line.
        let width = stdout().is_terminal().then_some(WIDTH);
        Ok(listing(&self.header, &self.rows, width) + "\n")
    }
}

fn losses() -> List {
    let row = |entry: &losses::LossEntry| {
        vec![
            entry.name.to_owned(),
            entry.optimises.to_owned(),
            entry.spaces.iter().map(|space| space.name()).collect::<Vec<_>>().join(", "),
            format!("{}: {}{}", entry.title, entry.summary, cited(entry.sources)),
        ]
    };
    List {
        header: vec!["loss", "optimises", "embeddings", "summary"],
        rows: losses::CATALOGUE.iter().map(row).collect(),
    }
}

/// Sources in brackets, where there are any.
fn cited(sources: &[&str]) -> String {
    if sources.is_empty() { String::new() } else { format!(" [{}]", sources.join(", ")) }
}

fn miners() -> List {
    let row = |entry: &miners::MinerEntry| {
        let summary = format!("{}: {}{}", entry.title, entry.summary, cited(entry.sources));
        vec![entry.name.to_owned(), summary]
    };
    List { header: vec!["miner", "summary"], rows: miners::CATALOGUE.iter().map(row).collect() }
}

fn metrics() -> List {
    let row = |entry: &metrics::MetricEntry| {
        vec![
            entry.spelling(),
            if entry.per_level { "each level" } else { "all levels" }.to_owned(),
            entry.unit.to_string(),
            if entry.greater_is_better { "more" } else { "less" }.to_owned(),
            entry.source.to_owned(),
            format!("{}: {}", entry.symbol, entry.title),
            entry.formula.to_owned(),
        ]
    };
    List {
        header: vec!["metric", "over", "range", "better", "source", "summary", "formula"],
        rows: metrics::CATALOGUE.iter().map(row).collect(),
    }
}

fn recipes() -> List {
    let row = |recipe: &crate::recipes::Recipe| {
        let command = if recipe.compares() { "compare" } else { "train" };
        vec![recipe.name.to_owned(), format!("akin {command}"), recipe.title().to_owned()]
    };
    List { header: vec!["recipe", "for", "title"], rows: RECIPES.iter().map(row).collect() }
}

fn sources() -> List {
    let row = |source: &akin_core::sources::Source| vec![source.key.to_owned(), source.title()];
    List { header: vec!["source", "title"], rows: SOURCES.iter().map(row).collect() }
}

fn show(name: &str) -> Result<&'static str> {
    RECIPES.iter().find(|recipe| recipe.name == name).map(|recipe| recipe.text).ok_or_else(|| {
        let near = did_you_mean(name, RECIPES.iter().map(|recipe| recipe.name));
        problem(format!("there is no recipe `{name}`"), format!("{near}`akin list recipes` names them all"))
    })
}
