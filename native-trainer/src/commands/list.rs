//! `akin list`: what there is by name.

use std::io::{Write, stdout};

use anyhow::Result;
use serde_json::{Value, json};

use crate::catalogue;
use crate::cli::{ListArgs, ListKind};
use crate::problem::{did_you_mean, problem};
use crate::recipes::RECIPES;
use crate::table::text_table;

/// Prints a list, or one recipe.
pub fn run(args: ListArgs) -> Result<()> {
    if let Some(name) = &args.show {
        let Some(recipe) = RECIPES.iter().find(|recipe| recipe.name == name) else {
            let near = did_you_mean(name, RECIPES.iter().map(|recipe| recipe.name));
            return Err(problem(
                format!("there is no recipe `{name}`"),
                format!("{near}`akin list recipes` names them all"),
            ));
        };
        write!(stdout(), "{}", recipe.text)?;
        return Ok(());
    }
    let (header, rows) = match args.what {
        ListKind::Losses => losses(),
        ListKind::Metrics => (vec!["metric"], Vec::new()),
        ListKind::Recipes => recipes(),
        ListKind::Sources => (vec!["source"], Vec::new()),
    };
    let text = if args.json {
        let object = |row: &Vec<String>| -> Value {
            header.iter().zip(row).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
        };
        serde_json::to_string_pretty(&rows.iter().map(object).collect::<Vec<_>>())?
    } else {
        text_table(&header, &rows)
    };
    writeln!(stdout(), "{text}")?;
    Ok(())
}

type Rows = (Vec<&'static str>, Vec<Vec<String>>);

fn losses() -> Rows {
    let rows = catalogue::names()
        .iter()
        .filter_map(|name| catalogue::find(name))
        .map(|known| vec![known.name, known.title, known.family, known.optimises])
        .collect();
    (vec!["loss", "title", "family", "optimises"], rows)
}

fn recipes() -> Rows {
    let rows = RECIPES.iter().map(|recipe| {
        let command = if recipe.compares() { "compare" } else { "train" };
        vec![recipe.name.to_owned(), command.to_owned(), recipe.title().to_owned()]
    });
    (vec!["recipe", "for", "title"], rows.collect())
}
