//! `akin recipes`: the published results that a recipe reproduces, by paper and table, and those that have none.

use akin_base::problem::{did_you_mean, problem};
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::sources::source;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use toml::{Table, Value};

use crate::config::recipes::{RECIPES, Recipe, row_settings};
use crate::config::{PublishedConfig, PublishedResult};
use crate::evaluation::paper_results::printed;

/// List the published results that a recipe reproduces, by paper and table.
///
/// Each line is a row of a table in a paper, the scores that it reports in percent, and the recipe that trains it with
/// the settings of the paper: `akin train RECIPE`. A row whose numbers akin does not know, or whose paper prints none,
/// says so. Rows of the papers' tables that have no recipe follow, with the reason. `akin list recipes` lists the recipes
/// without their rows. A recipe in a folder `pretrained` needs no training: `akin eval RECIPE`.
#[derive(Debug, Args)]
pub struct RecipesArgs {
    /// Only the results of this paper, a key of `akin list sources`.
    #[arg(long, value_name = "PAPER")]
    pub paper: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A published result and the recipe that reproduces it.
pub struct Reproduction {
    /// The paper, a key of `akin list sources`.
    pub paper: String,
    /// What `akin train` takes, or `akin eval` if there is no training.
    pub recipe: String,
    /// The result; none if its numbers are not in any text that akin's recipes were made from.
    pub result: Option<PublishedResult>,
}

/// Rows of a paper's table that have no recipe.
pub struct Missing {
    /// The paper, a key of `akin list sources`.
    pub paper: String,
    /// The table.
    pub place: String,
    /// The names of the rows.
    pub row: String,
    /// Why there is no recipe.
    pub reason: String,
}

/// What stands for the scores of a row without numbers.
const UNKNOWN: &str = "its numbers are not in any text at hand";

/// What stands for the scores of a result that has none.
const NO_SCORE: &str = "the paper prints no score of its own: a drawing, or a difference of two rows";

/// Prints the list.
pub fn run(args: RecipesArgs) -> Result<()> {
    let (mut list, mut missing) = (all()?, missing());
    if let Some(paper) = &args.paper {
        let papers: Vec<String> = list.iter().map(|entry| entry.paper.clone()).collect();
        list.retain(|entry| entry.paper == *paper);
        missing.retain(|entry| entry.paper == *paper);
        if list.is_empty() {
            let near = did_you_mean(paper, papers.iter().map(String::as_str));
            return Err(problem(
                format!("no recipe reproduces a result of `{paper}`"),
                format!("{near}`akin recipes` lists the papers whose results have recipes"),
            ));
        }
    }
    let text = if args.json {
        let object = |entry: &Reproduction| {
            let (paper, recipe, result) = (&entry.paper, &entry.recipe, entry.result.as_ref());
            json!({
                "paper": paper,
                "place": result.map(|result| &result.place),
                "row": result.map(|result| &result.row),
                "level": result.and_then(|result| result.level.as_ref()),
                "on": result.and_then(|result| result.on),
                "scores": result.map(|result| &result.scores),
                "recipe": recipe,
            })
        };
        let without = |entry: &Missing| {
            let Missing { paper, place, row, reason } = entry;
            json!({ "paper": paper, "place": place, "row": row, "recipe": null, "reason": reason })
        };
        let objects = list.iter().map(object).chain(missing.iter().map(without));
        serde_json::to_string_pretty(&objects.collect::<Vec<_>>())?
    } else {
        describe(&list, &missing)
    };
    terminal::print(text.trim_end())?;
    Ok(())
}

/// Every published result that a recipe reproduces, by paper and place.
///
/// # Errors
///
/// A recipe whose section `[published]` cannot be read.
pub fn all() -> Result<Vec<Reproduction>> {
    let mut list = Vec::new();
    for recipe in RECIPES {
        let rows = recipe.rows().into_iter().map(|row| (format!("{}/{row}", recipe.name), Some(row)));
        let alone = (!recipe.trains()).then(|| (recipe.name.to_owned(), None));
        for (name, row) in rows.chain(alone) {
            let published =
                published(recipe, row.as_deref()).with_context(|| format!("[published] of {name}"))?;
            let results: Vec<_> = match published.results {
                results if results.is_empty() => vec![None],
                results => results.into_iter().map(Some).collect(),
            };
            list.extend(results.into_iter().map(|result| Reproduction {
                paper: published.paper.clone(),
                recipe: name.clone(),
                result,
            }));
        }
    }
    // `Table 10` comes after `Table 9`.
    let number = |place: &str| place.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok());
    list.sort_by_key(|entry| {
        let place = entry.result.as_ref().map_or("", |result| &result.place);
        (entry.paper.clone(), number(place), place.to_owned())
    });
    Ok(list)
}

/// The rows of the papers' tables that have no recipe, in the order of the file that lists them.
pub fn missing() -> Vec<Missing> {
    let mut reader = csv::Reader::from_reader(include_str!("../../recipes/facts/missing.csv").as_bytes());
    let row = |line: csv::Result<csv::StringRecord>| {
        let line = line.expect("a test reads the file");
        let [paper, place, row, reason] = std::array::from_fn(|place| line[place].to_owned());
        Missing { paper, place, row, reason }
    };
    reader.records().map(row).collect()
}

/// What a paper reports for a recipe, or for a row of it.
fn published(recipe: &Recipe, row: Option<&str>) -> Result<PublishedConfig> {
    let config = recipe.table();
    let section =
        |table: &Table| table.get("published").and_then(Value::as_table).cloned().unwrap_or_default();
    let mut published = section(&config);
    if let Some(row) = row {
        published.extend(section(&row_settings(&config, row)));
    }
    Ok(published.try_into()?)
}

/// The scores of a result in a line, with the level or the data set that they are of.
fn scores(result: &PublishedResult) -> String {
    if result.scores.is_empty() {
        return NO_SCORE.to_owned();
    }
    let scores =
        result.scores.iter().map(|(metric, score)| format!("{} {}", metric.label(), printed(*score)));
    let scores = scores.collect::<Vec<_>>().join(", ");
    let of = result.on.map(|on| on.to_string()).or_else(|| result.level.clone());
    of.map_or_else(String::new, |of| format!("{of}: ")) + &scores
}

/// A table for each paper, under its title, and one of the rows without a recipe.
fn describe(list: &[Reproduction], missing: &[Missing]) -> String {
    let mut parts = Vec::new();
    for papers in list.chunk_by(|one, other| one.paper == other.paper) {
        let paper = &papers[0].paper;
        let title = source(paper).map_or_else(String::new, |source| source.title());
        let row = |entry: &Reproduction| {
            let (place, row, scores) = match &entry.result {
                None => ("–", "–", UNKNOWN.to_owned()),
                Some(result) => (result.place.as_str(), result.row.as_str(), scores(result)),
            };
            vec![place.to_owned(), row.to_owned(), scores, entry.recipe.clone()]
        };
        let rows: Vec<Vec<String>> = papers.iter().map(row).collect();
        let table =
            align_words(&["place", "row", "published, in percent", "recipe"], &rows, terminal::width());
        parts.push(format!("{title} ({paper})\n\n{table}"));
        let without = |entry: &Missing| vec![entry.place.clone(), entry.row.clone(), entry.reason.clone()];
        let rows: Vec<Vec<String>> =
            missing.iter().filter(|entry| entry.paper == *paper).map(without).collect();
        if !rows.is_empty() {
            parts.push(align_words(&["place", "row without a recipe", "reason"], &rows, terminal::width()));
        }
    }
    parts.join("\n\n")
}
