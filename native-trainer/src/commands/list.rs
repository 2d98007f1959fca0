//! `akin list`: what can be named in a config.

use std::io::{Write, stdout};

use akin_core::metrics::CATALOGUE;
use anyhow::Result;
use serde_json::{Value, json};

use crate::cli::ListArgs;
use crate::table::listing;

/// Every metric of the catalogue: those over all levels, then those per level.
pub fn metrics(args: ListArgs) -> Result<()> {
    let text = if args.json {
        let entries = CATALOGUE.iter().map(|entry| {
            json!({
                "name": entry.spelling(),
                "symbol": entry.symbol,
                "title": entry.title,
                "formula": entry.formula,
                "range": entry.unit.to_string(),
                "greater_is_better": entry.greater_is_better,
                "per_level": entry.per_level,
                "source": entry.source,
            })
        });
        serde_json::to_string_pretty(&entries.collect::<Vec<Value>>())?
    } else {
        let part = |first: &str, per_level: bool| {
            let entries = CATALOGUE.iter().filter(|entry| entry.per_level == per_level);
            let rows = entries.map(|entry| {
                let better = if entry.greater_is_better { "more" } else { "less" };
                let cells = [entry.symbol, entry.title, &entry.unit.to_string(), better, entry.source];
                [entry.spelling()].into_iter().chain(cells.map(str::to_owned)).collect()
            });
            listing(&[first, "", "", "range", "better", "source"], &rows.collect::<Vec<_>>())
        };
        format!("{}\n\n{}", part("over all levels", false), part("per level", true))
    };
    writeln!(stdout(), "{text}")?;
    Ok(())
}
