//! `akin eval --dyml`: DyML's protocol, every label column by itself, and the average.

use std::io::{Write, stdout};
use std::path::Path;
use std::slice::from_ref;

use akin_core::evaluate::{
    DYML_METRICS, DymlRow, EvaluationConfig, LabelSets, Labelled, Report, dyml, evaluate,
};
use akin_core::relevance::Relevance;
use akin_core::taxonomy::{ClassIdentity, Labels};
use anyhow::{Context, Result};
use serde_json::json;

use super::files::Files;
use super::{EvalArgs, Opened, conditions, with_interval};
use crate::columns::{count, counted, table};
use crate::embedding::{embed, embed_splits};
use crate::loader::Pictures;
use crate::problem::{problem, repeated};
use crate::run::Run;

/// Evaluates every label set, and prints its row and their average.
pub fn run(args: &EvalArgs) -> Result<()> {
    let (mut reports, sets) = match &args.run {
        Some(run) => (levels_of_run(run, args)?, LabelSets::Columns),
        None if args.queries.len() == 1 => (columns_of_files(args)?, LabelSets::Columns),
        None => (sets_of_files(args)?, LabelSets::Apart),
    };
    let average = dyml(&reports, sets)?;
    let text = if args.json {
        reports.iter_mut().for_each(|report| report.per_query.clear());
        serde_json::to_string_pretty(&json!({ "average": average, "sets": reports }))?
    } else {
        describe(&reports, &average, args)
    };
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// The config that was asked for. With one level every relevance scores alike, and no gap is measured.
fn settings(config: EvaluationConfig, args: &EvalArgs) -> Result<EvaluationConfig> {
    let metrics = DYML_METRICS.to_vec();
    let relevance = Relevance::default();
    let mut config = EvaluationConfig { metrics, relevance, decomposability_gap: None, ..config };
    args.metrics.apply(&mut config);
    config.checked(1)?;
    Ok(config)
}

/// The reports of a run, one for each level.
fn levels_of_run(directory: &Path, args: &EvalArgs) -> Result<Vec<Report>> {
    let run = Run::open(directory)?;
    let config = settings(run.config.eval.clone(), args)?;
    let Opened { device, encoder, dataset } = Opened::new(&run, args.untrained, args)?;
    let (pictures, progress) = (Pictures::new(&dataset.items), args.progress);
    let (queries, gallery) =
        embed_splits(&dataset, |items| embed(&encoder, &pictures, items, &device, progress))?;
    let query_labels = dataset.labels(&queries.items);
    let gallery = gallery.map(|gallery| (dataset.labels(&gallery.items), gallery.embeddings));

    let column = |labels: &Labels, level| Labels::new(1, labels.column(level));
    let report = |(level, name): (usize, &String)| {
        let gallery_column = gallery.as_ref().map(|(labels, _)| column(labels, level)).transpose()?;
        let gallery = (gallery.as_ref().zip(gallery_column.as_ref()))
            .map(|((_, embeddings), labels)| Labelled { embeddings, labels });
        let queries = Labelled { embeddings: &queries.embeddings, labels: &column(&query_labels, level)? };
        evaluate(from_ref(name), queries, gallery, &config).with_context(|| of_set(name))
    };
    (1..).zip(dataset.taxonomy.level_names()).map(report).collect()
}

/// The reports of one set of embeddings, one for each label column.
fn columns_of_files(args: &EvalArgs) -> Result<Vec<Report>> {
    let config = settings(EvaluationConfig::default(), args)?;
    let columns = &args.levels;
    if let Some(twice) = repeated(columns) {
        return Err(problem(format!("`--levels` names {twice} twice"), "name each label column once"));
    }
    let files = Files::read(args, 0, columns)?;
    let report = |(place, name): (usize, &String)| {
        files.evaluate(from_ref(name), place, ClassIdentity::Name, &config).with_context(|| of_set(name))
    };
    columns.iter().enumerate().map(report).collect()
}

/// The reports of several sets of embeddings with a label column each. They bear the names of their columns,
/// or, where those are alike, of the files of their queries.
fn sets_of_files(args: &EvalArgs) -> Result<Vec<Report>> {
    let config = settings(EvaluationConfig::default(), args)?;
    let sets = args.queries.len();
    let columns = match &args.levels[..] {
        [column] => vec![column; sets],
        columns if columns.len() == sets => columns.iter().collect(),
        columns => {
            return Err(problem(
                format!(
                    "`--queries` is given {sets} times, and `--levels` names {}",
                    counted(columns.len(), "column", "columns")
                ),
                "name the one label column of each set, in the same order, or a single one that all sets have",
            ));
        }
    };
    let alike = repeated(&columns).is_some();
    let report = |(number, &column): (usize, &&String)| {
        let name = if alike { args.queries[number].display().to_string() } else { column.clone() };
        let files = Files::read(args, number, from_ref(column))?;
        files.evaluate(from_ref(&name), 0, ClassIdentity::Name, &config).with_context(|| of_set(&name))
    };
    columns.iter().enumerate().map(report).collect()
}

fn of_set(name: &str) -> String {
    format!("label set {name}")
}

/// A row for each label set and one for their average, then how they were measured.
fn describe(reports: &[Report], average: &DymlRow, args: &EvalArgs) -> String {
    let config = &reports[0].config;
    let metrics = &config.metrics;
    let labels: Vec<String> = metrics.iter().map(|metric| metric.label()).collect();
    let header: Vec<&str> =
        ["label set", "queries", "items"].into_iter().chain(labels.iter().map(String::as_str)).collect();
    let row_of_set = |report: &Report| -> Vec<String> {
        let [set] = &report.levels[..] else { unreachable!("a label set is of one level") };
        let cells = metrics.iter().map(|&metric| {
            let means = report.at(usize::from(metric.entry().per_level));
            with_interval(metric, means.get(metric), &means.interval)
        });
        [set.name.clone(), count(set.means.queries), count(report.ranked)].into_iter().chain(cells).collect()
    };
    let cells = metrics.iter().map(|&metric| with_interval(metric, average.get(metric), &average.interval));
    let row_of_average = ["average".into(), String::new(), String::new()].into_iter().chain(cells).collect();
    let rows: Vec<Vec<String>> = reports.iter().map(row_of_set).chain([row_of_average]).collect();
    // Where every query finds itself first, this says why.
    let kept = match args.gallery.is_empty() || args.path_column.is_some() {
        true => "",
        false => "; no query is left out of a gallery, as `--path-column` would",
    };
    format!("{}\n\neach label set by itself, ranked {}{kept}", table(&header, &rows), conditions(config))
}
