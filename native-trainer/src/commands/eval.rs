//! `akin eval`: the report of a run, or of embeddings made elsewhere.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use akin_core::cosine::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate};
use akin_core::taxonomy::{ClassIdentity, Taxonomy};
use anyhow::{Context, Result};
use serde_json::Value;

use crate::cli::EvalArgs;
use crate::config::Config;
use crate::data::Dataset;
use crate::data::table::Table;
use crate::embedding::evaluate_dataset;
use crate::files::write_atomic;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::Progress;
use crate::run::Run;
use crate::table::{count, percent, table};
use crate::{device, npy};

/// Evaluates, and prints as asked for.
pub fn run(args: EvalArgs) -> Result<()> {
    let (mut report, names) = match (&args.run, &args.queries) {
        (Some(run), _) => evaluate_run(run, &args)?,
        (None, Some(queries)) => (evaluate_files(queries, &args)?, None),
        (None, None) => return Err(problem("there is nothing to evaluate", "give a RUN, or `--queries`")),
    };
    if let Some(file) = &args.per_query {
        write_per_query(file, &report, names.as_deref())?;
    }
    report.per_query.clear();
    let text = if args.json { serde_json::to_string_pretty(&report)? } else { describe(&report) };
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// The report of a run's encoder over its evaluation splits, and the paths of the queries.
fn evaluate_run(directory: &Path, args: &EvalArgs) -> Result<(Report, Option<Vec<String>>)> {
    let mut run = Run::open(directory)?;
    args.metrics.apply(&mut run.config.eval);
    let Config { data, eval, run: settings, .. } = &run.config;
    let device = device::open(args.device.unwrap_or(settings.device))?;
    let encoder = if args.untrained { run.untrained(&device)? } else { run.encoder(&device)? };
    let dataset = Dataset::load(data, settings.seed)?;
    let pictures = Pictures::new(&dataset.items);
    let progress = Progress::from(args.progress);
    let evaluation = evaluate_dataset(&encoder, &dataset, &pictures, eval, &device, progress)?;
    let path = |&item: &usize| dataset.items[item].path.display().to_string();
    let paths = evaluation.queries.items.iter().map(path).collect();
    Ok((evaluation.report, Some(paths)))
}

/// Embeddings from a .npy file with their label rows from a CSV file.
struct Set {
    embeddings: Embeddings,
    rows: Vec<Vec<String>>,
}

fn evaluate_files(queries: &Path, args: &EvalArgs) -> Result<Report> {
    let labels_of = |file: &Option<PathBuf>| file.clone().expect("clap requires labels beside embeddings");
    let queries = Set::read(queries, &labels_of(&args.query_labels), &args.levels)?;
    let gallery = match &args.gallery {
        Some(gallery) => Some(Set::read(gallery, &labels_of(&args.gallery_labels), &args.levels)?),
        None => None,
    };

    // One taxonomy for both, so that ids are comparable.
    let gallery_rows = gallery.iter().flat_map(|gallery| &gallery.rows);
    let rows: Vec<Vec<&str>> =
        queries.rows.iter().chain(gallery_rows).map(|row| row.iter().map(String::as_str).collect()).collect();
    let identity = if args.qualify { ClassIdentity::Path } else { ClassIdentity::Name };
    let (_, labels) = Taxonomy::from_rows(&args.levels, &rows, identity)?;
    let (query_items, gallery_items): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|&item| item < queries.rows.len());
    let query_labels = labels.select(&query_items);
    let gallery_labels = labels.select(&gallery_items);

    let mut config = EvaluationConfig::default();
    args.metrics.apply(&mut config);
    let labelled = |embeddings, labels| Labelled { embeddings, labels };
    let gallery = gallery.as_ref().map(|gallery| labelled(&gallery.embeddings, &gallery_labels));
    Ok(evaluate(&args.levels, labelled(&queries.embeddings, &query_labels), gallery, &config)?)
}

impl Set {
    fn read(embeddings: &Path, labels: &Path, levels: &[String]) -> Result<Self> {
        let matrix = npy::read(embeddings)?;
        let mut table = Table::open(labels)?;
        let columns = table.columns(levels, "correct `--levels`")?;
        let mut rows = Vec::with_capacity(matrix.rows);
        while let Some((line, record)) = table.next_row()? {
            let row: Vec<String> = columns.iter().map(|&column| record[column].trim().to_owned()).collect();
            if let Some(level) = row.iter().position(String::is_empty) {
                return Err(problem(
                    format!("{}, line {line}: the label `{}` is empty", labels.display(), levels[level]),
                    "write the label, or leave the item out of both files",
                ));
            }
            rows.push(row);
        }
        if rows.len() != matrix.rows {
            return Err(problem(
                format!(
                    "{} has {} rows of embeddings, but {} has {} rows of labels",
                    embeddings.display(),
                    count(matrix.rows),
                    labels.display(),
                    count(rows.len())
                ),
                "give each embedding one line of labels, in the same order, below one header line",
            ));
        }
        let embeddings = Embeddings::new(matrix.columns, matrix.values)
            .with_context(|| embeddings.display().to_string())?;
        Ok(Self { embeddings, rows })
    }
}

/// A report as tables for the terminal: per level, then over all levels, then how it was measured.
pub fn describe(report: &Report) -> String {
    let mut header = vec!["level".to_owned(), "queries".into()];
    header.extend(report.config.recall_at.iter().map(|k| format!("R@{k}")));
    header.extend(["AP".into(), "mAP@R".into()]);
    let rows: Vec<Vec<String>> = report
        .levels
        .iter()
        .map(|level| {
            let mut row = vec![level.name.clone(), count(level.queries)];
            row.extend(
                report.config.recall_at.iter().map(|k| percent(level.recall.get(k).copied().flatten())),
            );
            row.extend([percent(level.ap), percent(level.map_at_r)]);
            row
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let levels = table(&header, &rows);

    let overall = &report.overall;
    let row = vec![
        "all levels".to_owned(),
        count(overall.queries),
        percent(overall.h_ap),
        percent(overall.ndcg),
        percent(overall.asi),
    ];
    let overall = table(&["", "queries", "H-AP", "NDCG", "ASI"], &[row]);
    format!("{levels}\n\n{overall}\n\n{}", measured(report))
}

/// How a report was measured, in a sentence.
fn measured(report: &Report) -> String {
    let config = &report.config;
    let name = |value: serde_json::Result<Value>| match value {
        Ok(Value::String(name)) => name,
        // A name with settings.
        Ok(Value::Object(table)) => table.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    };
    let itself = if config.count_query { "counted" } else { "not counted" };
    format!(
        "{} queries, each ranking {} items by {}; ties {}; relevance {}; the query itself {itself}",
        count(report.queries),
        count(report.ranked),
        name(serde_json::to_value(config.similarity)),
        name(serde_json::to_value(config.ties)),
        serde_json::to_string(&config.relevance).unwrap_or_default(),
    )
}

/// Reports side by side, a row each: H-AP, NDCG and ASI, then R@1 of the finest level and AP of every
/// level, finest first.
pub fn compare(reports: &[(&str, &Report)]) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let finest = first.levels.last().map_or("", |level| &level.name);
    let mut header = vec![String::new(), "H-AP".into(), "NDCG".into(), "ASI".into(), format!("R@1 {finest}")];
    header.extend(first.levels.iter().rev().map(|level| format!("AP {}", level.name)));
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|(name, report)| {
            let overall = &report.overall;
            let finest = report.levels.last().and_then(|level| level.recall.get(&1).copied().flatten());
            let mut row = vec![(*name).to_owned()];
            row.extend([overall.h_ap, overall.ndcg, overall.asi, finest].map(percent));
            row.extend(report.levels.iter().rev().map(|level| percent(level.ap)));
            row
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, &rows)
}

/// Writes every query's own scores, in full precision; an empty cell where a query has no positive.
/// `names`, one per query, become the second column.
fn write_per_query(file: &Path, report: &Report, names: Option<&[String]>) -> Result<()> {
    let mut columns = vec!["query".to_owned()];
    columns.extend(names.map(|_| "path".to_owned()));
    columns.extend(["h_ap", "ndcg", "asi"].map(str::to_owned));
    for level in &report.levels {
        columns.extend([format!("{}_ap", level.name), format!("{}_map_at_r", level.name)]);
        columns.extend(report.config.recall_at.iter().map(|k| format!("{}_recall_at_{k}", level.name)));
    }
    write_atomic(file, |out| {
        let cell = |score: Option<f64>| score.map(|score| score.to_string()).unwrap_or_default();
        let mut table = csv::Writer::from_writer(out);
        table.write_record(&columns)?;
        for row in &report.per_query {
            let mut cells = vec![row.query.to_string()];
            cells.extend(names.map(|names| names[row.query].clone()));
            cells.extend([row.h_ap, row.ndcg, row.asi].map(cell));
            for level in &row.levels {
                cells.extend([cell(level.ap), cell(level.map_at_r)]);
                cells.extend(
                    report.config.recall_at.iter().map(|k| cell(level.recall.get(k).copied().flatten())),
                );
            }
            table.write_record(&cells)?;
        }
        table.flush()
    })
}
