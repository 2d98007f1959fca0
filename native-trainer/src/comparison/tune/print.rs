//! A tuning as text, Markdown, CSV and JSON.

use akin_base::quantities::counted;
use akin_base::text_table::align_numbers;
use clap::ValueEnum;

use super::results::{FEWEST_FOR_INTERVAL, Interval, Results, SeedScores, Trial};
use crate::comparison::compare::print::markdown as escaped;
use crate::comparison::compare::results::Column;
use crate::comparison::compare::settings::describe;
use crate::config::last_part;
use crate::evaluation::report::displayed;

/// A format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Text,
    /// Markdown.
    Markdown,
    /// JSON, with all digits.
    Json,
}

/// A table: its header and its rows.
struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The results in a format.
pub fn print(results: &Results, format: Format) -> String {
    if format == Format::Json {
        return serde_json::to_string_pretty(results).expect("names and numbers are JSON") + "\n";
    }
    let grid = |grid: &Grid| match format {
        Format::Markdown => markdown(grid),
        _ => {
            let header: Vec<&str> = grid.header.iter().map(String::as_str).collect();
            align_numbers(&header, &grid.rows)
        }
    };
    let heading =
        format!("{} of each trial on the fold that its training holds out:", results.metric.label());
    let mut parts = vec![heading, grid(&trials(results)), chosen(results, format)];
    if !results.seeds.is_empty() {
        parts.push(grid(&models(results)));
        parts.push(legend(results));
        if format == Format::Markdown {
            parts.push(format!("{} of each model on the evaluation splits:", results.metric.label()));
            parts.push(grid(&models_by_seed(results)));
        }
    }
    if format == Format::Markdown {
        let facts = [
            ("Command", format!("`{}`", results.command)),
            ("Date", results.date.clone()),
            ("Machine", results.machine.clone()),
        ];
        parts.insert(0, format!("# Tuning {}", results.name));
        parts.push(facts.map(|(name, fact)| format!("- {name}: {fact}")).join("\n"));
    }
    parts.join("\n\n") + "\n"
}

/// The trials as CSV, with all digits.
pub fn trials_csv(results: &Results) -> String {
    let mut header: Vec<String> = vec!["trial".into()];
    header.extend(results.keys.iter().cloned());
    header.extend((1..=results.folds).map(|fold| format!("fold_{fold}")));
    header.extend([results.metric.to_string(), "failed".into()]);
    let mut table = csv::Writer::from_writer(Vec::new());
    let number = |score: Option<f64>| score.map(|score| score.to_string()).unwrap_or_default();
    let row = |trial: &Trial| -> Vec<String> {
        let mut row = vec![trial.number.to_string()];
        row.extend(trial.values.iter().map(plain));
        row.extend(trial.folds.iter().map(|&score| number(score)));
        row.extend([number(trial.score), trial.failed.clone().unwrap_or_default()]);
        row
    };
    for record in [header].into_iter().chain(results.trials.iter().map(row)) {
        table.write_record(&record).expect("all rows have the columns of the header");
    }
    let bytes = table.into_inner().expect("a list of bytes can be written");
    String::from_utf8(bytes).expect("every cell is a text")
}

fn trials(results: &Results) -> Grid {
    let score = |score: Option<f64>| match score {
        Some(score) => format!("{:.2}", displayed(results.metric, score)),
        None => "–".into(),
    };
    let mut header: Vec<String> = vec!["trial".into()];
    header.extend(results.keys.iter().map(|key| short(key, &results.keys)));
    header.extend((1..=results.folds).map(|fold| format!("fold {fold}")));
    header.push(results.metric.label());
    let row = |trial: &Trial| {
        let mark = if trial.number == results.best { " (best)" } else { "" };
        let mut row = vec![format!("{}{mark}", trial.number)];
        row.extend(trial.values.iter().map(plain));
        row.extend(trial.folds.iter().map(|&fold| score(fold)));
        row.push(if trial.failed.is_some() { "failed".into() } else { score(trial.score) });
        row
    };
    Grid { header, rows: results.trials.iter().map(row).collect() }
}

/// The last part of a key, if no other key ends with it.
fn short(key: &str, keys: &[String]) -> String {
    let is_unique = keys.iter().filter(|other| last_part(other) == last_part(key)).count() == 1;
    if is_unique { last_part(key).to_owned() } else { key.to_owned() }
}

/// A value without the quotes of a text.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn chosen(results: &Results, format: Format) -> String {
    let best = results.best_trial();
    let score =
        best.score.map(|score| format!("{:.2}", displayed(results.metric, score))).unwrap_or_default();
    let settings = match format {
        Format::Markdown => format!("`{}`", describe(&best.settings)),
        _ => describe(&best.settings),
    };
    let mut text = format!(
        "Best: trial {}, with a mean {} of {score} over {} folds of the training classes:\n{settings}",
        best.number,
        results.metric.label(),
        results.folds
    );
    let failed = results.trials.iter().filter(|trial| trial.failed.is_some()).count();
    if failed > 0 {
        text += &format!(
            "\n{} of {} failed; trials.csv says why",
            failed,
            counted(results.trials.len(), "trial", "trials")
        );
    }
    text
}

fn models(results: &Results) -> Grid {
    let title = |column: &Column| match &column.level {
        Some(level) => format!("{} {level}", column.metric.label()),
        None => column.metric.label(),
    };
    let header = [String::new()].into_iter().chain(results.columns.iter().map(title)).collect();
    let cell = |(column, interval): (&Column, &Option<Interval>)| match interval {
        None => "–".to_owned(),
        Some(Interval { mean, half_width, .. }) => {
            let number = |value: f64| format!("{:.1}", displayed(column.metric, value));
            match half_width {
                Some(half_width) => format!("{} ± {}", number(*mean), number(*half_width)),
                None => number(*mean),
            }
        }
    };
    let row = |name: &str, intervals: &[Option<Interval>]| {
        let cells = results.columns.iter().zip(intervals).map(cell);
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let mut rows = vec![row("separated", &results.separated)];
    if results.concatenated.iter().any(Option::is_some) {
        rows.push(row("concatenated", &results.concatenated));
    }
    Grid { header, rows }
}

/// A row for each seed: the score of the model of each fold, their mean, and the score of all models as one.
fn models_by_seed(results: &Results) -> Grid {
    let score = |score: Option<f64>| match score {
        Some(score) => format!("{:.2}", displayed(results.metric, score)),
        None => "–".into(),
    };
    let has_concatenated = results.models.iter().any(|models| models.concatenated.is_some());
    let mut header: Vec<String> = vec!["seed".into()];
    header.extend((1..=results.folds).map(|fold| format!("fold {fold}")));
    header.push("mean".into());
    header.extend(has_concatenated.then(|| "concatenated".into()));
    let row = |models: &SeedScores| {
        let mut row = vec![models.seed.to_string()];
        row.extend(models.folds.iter().map(|&fold| score(fold)));
        let folds: Vec<f64> = models.folds.iter().copied().flatten().collect();
        row.push(score(akin_core::statistics::mean(&folds)));
        row.extend(has_concatenated.then(|| score(models.concatenated)));
        row
    };
    Grid { header, rows: results.models.iter().map(row).collect() }
}

fn legend(results: &Results) -> String {
    let mut text = format!(
        "On the evaluation splits, in percent: the models of the {} folds with the best settings, over {}",
        results.folds,
        counted(results.seeds.len(), "seed", "seeds")
    );
    if results.separated.iter().chain(&results.concatenated).flatten().any(|score| score.half_width.is_some())
    {
        text += "; mean ± half of the 95 % interval, where the interval stays in the range of the metric";
    } else if results.seeds.len() < FEWEST_FOR_INTERVAL {
        text += "; an interval needs at least 3";
    } else {
        text += "; no 95 % interval stays in the range of its metric";
    }
    text += ".\nSeparated: the mean of their scores. ";
    text += match results.concatenated.iter().any(Option::is_some) {
        true => "Concatenated: the score of their embeddings put together.",
        false => "Points of a Poincaré ball cannot be put together.",
    };
    text
}

fn markdown(grid: &Grid) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let rule = format!("|---|{}", "---:|".repeat(grid.header.len() - 1));
    [line(&grid.header), rule]
        .into_iter()
        .chain(grid.rows.iter().map(|row| line(row)))
        .collect::<Vec<_>>()
        .join("\n")
}
