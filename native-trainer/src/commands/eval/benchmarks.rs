//! `akin eval --dyml`: the protocol of DyML, which evaluates each label column separately and averages.

use std::slice::from_ref;

use akin_base::problem::{problem, repeated};
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_base::text_table::align_numbers;
use akin_core::evaluate::{DYML_METRICS, DymlRow, EvaluationConfig, LabelSets, Report, dyml};
use akin_core::taxonomy::ClassIdentity;
use anyhow::{Context, Result};
use serde_json::json;

use super::arguments::EvalArgs;
use super::embedding_files::EmbeddingFiles;
use super::opened_run::OpenedRun;
use crate::config::{AVERAGE, PublishedResult, Selection};
use crate::evaluation::dyml_protocol::{evaluate_benchmarks, evaluate_levels, level_config, set_name};
use crate::evaluation::embedding::embed;
use crate::evaluation::paper_results::published_text;
use crate::evaluation::report::{conditions, with_interval};
use crate::pictures::loader::Pictures;
use crate::runs::run::Run;

/// Evaluates each label set, and prints a row for each and for their average.
pub fn run(args: &EvalArgs) -> Result<()> {
    let mut published = None;
    let (mut reports, sets) = match &args.run {
        Some(directory) => {
            let mut run = Run::open(directory)?;
            // The paper says nothing about other data.
            published = run.config.published.take().filter(|_| args.data.is_none());
            evaluate_run(run, args)?
        }
        None if args.queries.len() == 1 => (evaluate_columns(args)?, LabelSets::Columns),
        None => (evaluate_sets(args)?, LabelSets::Apart),
    };
    let average = dyml(&reports, sets)?;
    let text = if args.json {
        reports.iter_mut().for_each(|report| report.per_query.clear());
        serde_json::to_string_pretty(&json!({ "average": average, "sets": reports }))?
    } else {
        let measured = |result: &PublishedResult, metric| {
            let is_average = result.level.as_deref() == Some(AVERAGE);
            is_average.then(|| average.get(metric)).flatten()
        };
        let published = published.and_then(|published| published_text(&published, None, measured));
        let described = describe(&reports, &average, args);
        [described].into_iter().chain(published).collect::<Vec<_>>().join("\n\n")
    };
    terminal::print(&text)?;
    Ok(())
}

/// The evaluation config: with `--dyml`, DyML's metrics, unless others are asked for.
fn dyml_config(config: EvaluationConfig, args: &EvalArgs) -> Result<EvaluationConfig> {
    let metrics = if args.dyml { DYML_METRICS.to_vec() } else { config.metrics.clone() };
    let mut config = EvaluationConfig { metrics, ..level_config(config) };
    args.metrics.apply(&mut config);
    config.checked(1)?;
    Ok(config)
}

/// Evaluates each level of a run: each benchmark of a data set that has one per level, else each level of one set.
fn evaluate_run(mut run: Run, args: &EvalArgs) -> Result<(Vec<Report>, LabelSets)> {
    if let Some(config) = &args.data {
        run.config.select(Selection::load(config, &[])?);
    }
    let selection = run.config.selection();
    evaluate_benchmarks(&selection, |selection, only| {
        run.config.select(selection);
        evaluate_data(&run, args, only)
    })
}

/// Evaluates each level of a run's data set, or only one of them.
fn evaluate_data(run: &Run, args: &EvalArgs, only: Option<usize>) -> Result<Vec<Report>> {
    let config = dyml_config(run.config.eval.clone(), args)?;
    let OpenedRun { device, encoder, dataset } =
        OpenedRun::open(run, args.which, args.untrained, args.device)?;
    let (pictures, progress) = (Pictures::of(&dataset), args.progress);
    evaluate_levels(&dataset, &config, only, |items| embed(&encoder, &pictures, items, &device, progress))
}

/// Evaluates each label column of one set of embeddings.
fn evaluate_columns(args: &EvalArgs) -> Result<Vec<Report>> {
    let config = dyml_config(EvaluationConfig::default(), args)?;
    let columns = &args.levels;
    if let Some(name) = repeated(columns) {
        return Err(problem(format!("`--levels` names {name} twice"), "name each label column once"));
    }
    let files = EmbeddingFiles::read(args, 0, columns)?;
    let report = |(place, name): (usize, &String)| {
        files
            .evaluate(from_ref(name), place, ClassIdentity::Name, &config, args.progress)
            .with_context(|| set_name(name))
    };
    columns.iter().enumerate().map(report).collect()
}

/// Evaluates several sets of embeddings with one label column each. A report is named after its column or, if
/// columns share a name, after the file of its queries.
fn evaluate_sets(args: &EvalArgs) -> Result<Vec<Report>> {
    let config = dyml_config(EvaluationConfig::default(), args)?;
    let sets = args.queries.len();
    let columns = match &args.levels[..] {
        [column] => vec![column; sets],
        columns if columns.len() == sets => columns.iter().collect(),
        columns => {
            return Err(problem(
                format!(
                    "`--queries` is given {sets} times, but `--levels` names {}",
                    counted(columns.len(), "column", "columns")
                ),
                "name one label column per set, in the same order, or one column that all sets have",
            ));
        }
    };
    let names_repeat = repeated(&columns).is_some();
    let report = |(number, &column): (usize, &&String)| {
        let name = if names_repeat { args.queries[number].display().to_string() } else { column.clone() };
        let files = EmbeddingFiles::read(args, number, from_ref(column))?;
        files
            .evaluate(from_ref(&name), 0, ClassIdentity::Name, &config, args.progress)
            .with_context(|| set_name(&name))
    };
    columns.iter().enumerate().map(report).collect()
}

/// A row for each label set and one for their average, and how they were measured.
fn describe(reports: &[Report], average: &DymlRow, args: &EvalArgs) -> String {
    let config = &reports[0].config;
    let metrics = &config.metrics;
    let labels: Vec<String> = metrics.iter().map(|metric| metric.label()).collect();
    let header: Vec<&str> =
        ["label set", "queries", "items"].into_iter().chain(labels.iter().map(String::as_str)).collect();
    let row_of_set = |report: &Report| -> Vec<String> {
        let [set] = &report.levels[..] else { unreachable!("a label set has one level") };
        let cells = metrics.iter().map(|&metric| {
            let means = report.at(usize::from(metric.entry().per_level));
            with_interval(metric, means.get(metric), &means.interval)
        });
        [set.name.clone(), count(set.means.queries), count(report.ranked)].into_iter().chain(cells).collect()
    };
    let cells = metrics.iter().map(|&metric| with_interval(metric, average.get(metric), &average.interval));
    let row_of_average = ["average".into(), String::new(), String::new()].into_iter().chain(cells).collect();
    let rows: Vec<Vec<String>> = reports.iter().map(row_of_set).chain([row_of_average]).collect();
    // Otherwise a reader could not tell why every query finds itself first.
    let note = match args.gallery.is_empty() || args.path_column.is_some() {
        true => "",
        false => "; no query is left out of its own ranking (see `--path-column`)",
    };
    format!(
        "{}\n\neach label set separately, ranked {}{note}",
        align_numbers(&header, &rows),
        conditions(config)
    )
}
