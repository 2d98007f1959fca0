//! `akin eval`: the report of a run, or of embeddings made elsewhere.

mod dyml;
mod files;

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use akin_core::encoder::Encoder;
use akin_core::evaluate::{self, EvaluationConfig, Means, PairedTest, Report};
use akin_core::metrics::{Metric, Unit};
use akin_core::statistics::Permutations;
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use burn::tensor::Device;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use self::files::Files;
use crate::arguments::MetricArgs;
use crate::columns::{count, counted, percent, table};
use crate::config::{Config, DeviceName};
use crate::data::Dataset;
use crate::device;
use crate::embedding::evaluate_dataset;
use crate::files::write_atomic;
use crate::loader::Pictures;
use crate::problem::problem;
use crate::progress::Progress;
use crate::run::Run;

/// Measure a run, or embeddings made elsewhere.
///
/// Prints the metrics of each level and those over all levels, shares in percent; `akin list metrics`
/// names them. Without a gallery the queries rank each other, each leaving itself out. A query that has
/// nothing to find at a level is left out of that level's mean.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// A run directory that `akin train` left.
    #[arg(value_name = "RUN", required_unless_present = "queries", conflicts_with = "queries")]
    pub run: Option<PathBuf>,
    /// Measure what the run started from instead: the features of its backbone with the weights that
    /// the config names, or random ones, without a head.
    #[arg(long, conflicts_with = "queries")]
    pub untrained: bool,
    /// Where tensors are computed, instead of the run's run.device.
    #[arg(long, value_enum, conflicts_with = "queries")]
    pub device: Option<DeviceName>,
    /// Embeddings of the queries: a two-dimensional .npy file of float16, float32 or float64.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "query_labels",
        requires = "levels",
        help_heading = "Embeddings made elsewhere"
    )]
    pub queries: Vec<PathBuf>,
    /// Their labels: a CSV file with a column per level, and a row per embedding in the same order.
    #[arg(long, value_name = "FILE.csv", requires = "queries", help_heading = "Embeddings made elsewhere")]
    pub query_labels: Vec<PathBuf>,
    /// Embeddings to rank, if not the queries themselves.
    #[arg(
        long,
        value_name = "FILE.npy",
        requires = "queries",
        requires = "gallery_labels",
        help_heading = "Embeddings made elsewhere"
    )]
    pub gallery: Vec<PathBuf>,
    /// Their labels.
    #[arg(long, value_name = "FILE.csv", requires = "gallery", help_heading = "Embeddings made elsewhere")]
    pub gallery_labels: Vec<PathBuf>,
    /// The queries are in the gallery, too: a column of both CSV files by which to find each there, such
    /// as the path of its picture, so that it is left out of its own ranking.
    #[arg(long, value_name = "COLUMN", requires = "gallery", help_heading = "Embeddings made elsewhere")]
    pub path_column: Option<String>,
    /// The columns of the levels, coarse to fine.
    #[arg(
        long,
        value_name = "COARSE,…,FINE",
        value_delimiter = ',',
        requires = "queries",
        help_heading = "Embeddings made elsewhere"
    )]
    pub levels: Vec<String>,
    /// A class is its whole label path, so that equal names under two parents are two classes.
    #[arg(long, requires = "queries", help_heading = "Embeddings made elsewhere")]
    pub qualify: bool,

    /// Measure by DyML's protocol: every label column by itself, then the average.
    ///
    /// Of one set, each column of `--levels`, or each level of the run, is a label set (DyML-Product).
    /// Of several sets with a label column each (DyML-Vehicle, -Animal), give `--queries`,
    /// `--query-labels`, `--gallery` and `--gallery-labels` once per set, in the same order, with
    /// `--path-column`, and in `--levels` the column of each set, or one for all.
    #[arg(long, conflicts_with_all = ["against", "per_query", "qualify", "relevance", "decomposability_gap"])]
    pub dyml: bool,

    /// Compare with this run over the same queries, metric by metric: both means, their difference,
    /// and p of a paired permutation test, the chance of a difference as large if the two were equal.
    #[arg(long, value_name = "RUN", conflicts_with = "queries")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    pub metrics: MetricArgs,

    /// How progress is told.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: Progress,
    /// Print the whole report as JSON, in full precision.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write every query's own scores to a CSV file.
    #[arg(long, value_name = "FILE.csv", help_heading = "Output")]
    pub per_query: Option<PathBuf>,
}

/// Evaluates, and prints as asked for.
pub fn run(args: EvalArgs) -> Result<()> {
    if args.dyml {
        return dyml::run(&args);
    }
    if let Some(against) = &args.against {
        // A run that is not there is better missed now than after the first one is measured.
        Run::open(against)?;
    }
    let Evaluated { mut report, queries, gallery } = match &args.run {
        Some(run) => evaluate_run(run, None, args.untrained, &args)?,
        None => evaluate_files(&args)?,
    };
    if let Some(file) = &args.per_query {
        write_per_query(file, &report, &queries)?;
    }
    let text = match &args.against {
        None => {
            report.per_query.clear();
            if args.json { serde_json::to_string_pretty(&report)? } else { describe(&report) }
        }
        Some(against) => {
            let mut other = evaluate_run(against, Some(&report.config), false, &args)?;
            if (&queries, &gallery) != (&other.queries, &other.gallery) {
                return Err(problem(
                    format!(
                        "{} has other queries, or another gallery, than the run it is to be compared with",
                        against.display()
                    ),
                    "compare runs of the same [data] and, with `test_fraction`, the same seed",
                ));
            }
            let tests = evaluate::paired_tests(&report, &other.report, Permutations::default())?;
            report.per_query.clear();
            other.report.per_query.clear();
            if args.json {
                let all = json!({ "report": report, "against": other.report, "comparison": tests });
                serde_json::to_string_pretty(&all)?
            } else {
                let table = describe_tests(&tests, [&report, &other.report]);
                let similarity = other.report.config.similarity;
                let apart = match similarity == report.config.similarity {
                    true => String::new(),
                    false => format!("; the other run ranks by {}", name(similarity)),
                };
                format!("{table}\n\n{}{apart}", measured(&report))
            }
        }
    };
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// A report, with the paths of the pictures that it is over; embeddings made elsewhere may have none.
struct Evaluated {
    report: Report,
    queries: Vec<String>,
    gallery: Vec<String>,
}

/// The report of a run's encoder over its evaluation splits, measured as the run says, or by another config; what
/// items are ranked by is the run's own in any case.
fn evaluate_run(
    directory: &Path,
    measured_as: Option<&EvaluationConfig>,
    untrained: bool,
    args: &EvalArgs,
) -> Result<Evaluated> {
    let mut run = Run::open(directory)?;
    args.metrics.apply(&mut run.config.eval);
    if let Some(config) = measured_as {
        run.config.eval = EvaluationConfig { similarity: run.config.eval.similarity, ..config.clone() };
    }
    let eval = &run.config.eval;
    eval.checked(run.config.data.levels.len())?;
    let Opened { device, encoder, dataset } = Opened::new(&run, untrained, args)?;
    eval.check_sets(dataset.splits.query.len(), !dataset.splits.leave_one_out())?;
    let pictures = Pictures::new(&dataset.items);
    let progress = args.progress;
    let evaluation = evaluate_dataset(&encoder, &dataset, &pictures, eval, &device, progress)?;
    let paths = |items: &[usize]| -> Vec<String> {
        items.iter().map(|&item| dataset.items[item].path.display().to_string()).collect()
    };
    Ok(Evaluated {
        report: evaluation.report,
        queries: paths(&evaluation.queries.items),
        gallery: evaluation.gallery.map(|gallery| paths(&gallery.items)).unwrap_or_default(),
    })
}

/// What a run is measured with.
struct Opened {
    device: Device,
    encoder: Encoder,
    dataset: Dataset,
}

impl Opened {
    fn new(run: &Run, untrained: bool, args: &EvalArgs) -> Result<Self> {
        let Config { data, run: settings, .. } = &run.config;
        let device = device::open(args.device.unwrap_or(settings.device))?;
        let encoder = if untrained { run.untrained(&device)? } else { run.encoder(&device)? };
        let dataset = Dataset::load(data, settings.seed)?;
        Ok(Self { device, encoder, dataset })
    }
}

fn evaluate_files(args: &EvalArgs) -> Result<Evaluated> {
    if args.queries.len() > 1 {
        return Err(problem(
            format!("`--queries` is given {} times, and a taxonomy is of one set", args.queries.len()),
            "measure one set at a time; if each has a label column of its own, add `--dyml` for their average",
        ));
    }
    let files = Files::read(args, 0, &args.levels)?;
    let identity = if args.qualify { ClassIdentity::Path } else { ClassIdentity::Name };
    let mut config = EvaluationConfig::default();
    args.metrics.apply(&mut config);
    let report = files.evaluate(&args.levels, 0, identity, &config)?;
    Ok(Evaluated { report, queries: files.into_paths(), gallery: vec![] })
}

/// A report as tables for the terminal: per level, then over all levels, then how it was measured.
pub fn describe(report: &Report) -> String {
    let metrics = |per_level: bool| -> Vec<Metric> {
        report.config.metrics.iter().copied().filter(|metric| metric.entry().per_level == per_level).collect()
    };
    let part = |first: &str, metrics: &[Metric], rows: &[(&str, &Means)]| {
        let labels = metrics.iter().map(|metric| metric.label());
        let header: Vec<String> = [first.to_owned(), "queries".into()].into_iter().chain(labels).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let rows = rows.iter().map(|&(name, means)| {
            let cells =
                metrics.iter().map(|&metric| with_interval(metric, means.get(metric), &means.interval));
            [name.to_owned(), count(means.queries)].into_iter().chain(cells).collect()
        });
        table(&header, &rows.collect::<Vec<_>>())
    };
    let mut parts = Vec::new();
    let (of_levels, overall) = (metrics(true), metrics(false));
    if !of_levels.is_empty() {
        let rows: Vec<_> = report.levels.iter().map(|level| (level.name.as_str(), &level.means)).collect();
        parts.push(part("level", &of_levels, &rows));
    }
    if !overall.is_empty() {
        parts.push(part("", &overall, &[("all levels", &report.overall)]));
    }
    if let Some(gap) = &report.decomposability_gap {
        let number = |gap: f64| difference(Unit::Share, gap);
        let cell = |place: usize| match (gap.levels[place], gap.interval.get(place).copied().flatten()) {
            (Some(gap), Some([low, high])) => format!("{} [{}, {}]", number(gap), number(low), number(high)),
            (Some(gap), None) => number(gap),
            (None, _) => "–".into(),
        };
        let names = report.levels.iter().map(|level| level.name.clone()).enumerate();
        let rows: Vec<Vec<String>> = names.map(|(place, name)| vec![name, cell(place)]).collect();
        parts.push(format!(
            "{}\n\n{} of {} items",
            table(&["level", "decomposability gap"], &rows),
            counted(gap.batches, "batch", "batches"),
            count(gap.batch)
        ));
    }
    parts.push(measured(report));
    parts.join("\n\n")
}

/// A mean with its interval, if it has one: `87.20 [85.10, 89.05]`; a dash where there is none.
fn with_interval(metric: Metric, mean: Option<f64>, intervals: &BTreeMap<Metric, [f64; 2]>) -> String {
    let number = |value: f64| number(metric.entry().unit, value);
    match (mean, intervals.get(&metric)) {
        (Some(mean), Some(&[low, high])) => format!("{} [{}, {}]", number(mean), number(low), number(high)),
        (Some(mean), None) => number(mean),
        (None, _) => "–".into(),
    }
}

/// A share in percent, or a number of levels.
fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => percent(Some(value)),
        Unit::Levels => format!("{value:.2}"),
    }
}

fn difference(unit: Unit, value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", number(unit, value.abs()))
}

/// Two runs, metric by metric, with the intervals of their reports.
fn describe_tests(tests: &[PairedTest], reports: [&Report; 2]) -> String {
    let row = |test: &PairedTest| {
        let PairedTest { metric, ref level, queries, first, second, .. } = *test;
        let place = reports[0].levels.iter().position(|known| Some(&known.name) == level.as_ref());
        let [first, second] = [(first, reports[0]), (second, reports[1])].map(|(mean, report)| {
            let means = report.at(place.map_or(0, |place| place + 1));
            with_interval(metric, Some(mean), &means.interval)
        });
        vec![
            format!("{} {}", metric.label(), level.as_deref().unwrap_or_default()),
            count(queries),
            first,
            second,
            difference(metric.entry().unit, test.difference),
            format!("{:.4}", test.p),
        ]
    };
    let rows: Vec<Vec<String>> = tests.iter().map(row).collect();
    table(&["", "queries", "run", "against", "difference", "p"], &rows)
}

/// A setting as a config names it, without the numbers that it may have, such as the curvature of the ball.
fn name(setting: impl Serialize) -> String {
    match serde_json::to_value(setting) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(table)) => table.keys().cloned().collect(),
        other => unreachable!("neither a name nor a name with settings: {other:?}"),
    }
}

/// How a report was measured, in a sentence.
fn measured(report: &Report) -> String {
    format!(
        "{} queries, each ranking {} items {}; relevance {}",
        count(report.queries),
        count(report.ranked),
        conditions(&report.config),
        serde_json::to_string(&report.config.relevance).unwrap_or_default(),
    )
}

/// What items were ranked by, and what that did with ties and the query itself.
fn conditions(config: &EvaluationConfig) -> String {
    let itself = if config.count_query { "counted" } else { "not counted" };
    let intervals = config.bootstrap.map_or_else(String::new, |bootstrap| {
        format!("; in brackets 95 % bootstrap intervals of {} resamples", count(bootstrap.resamples))
    });
    let (similarity, ties) = (name(config.similarity), name(config.ties));
    format!("by {similarity}; ties {ties}; the query itself {itself}{intervals}")
}

/// Reports side by side, a row each: H-AP, NDCG and ASI, then R@1 of the finest level and AP of every
/// level, finest first.
pub fn compare(reports: &[(&str, &Report)]) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let depth = first.levels.len();
    let overall =
        [Metric::named("h_ap"), Metric::named("ndcg"), Metric::named("asi")].map(|metric| (0, metric));
    let columns = overall
        .into_iter()
        .chain([(depth, Metric::named("recall@1"))])
        .chain((1..=depth).rev().map(|level| (level, Metric::named("ap"))));
    let columns: Vec<(usize, Metric)> = columns.collect();
    let heading = |&(level, metric): &(usize, Metric)| match level {
        0 => metric.label(),
        _ => format!("{} {}", metric.label(), first.levels[level - 1].name),
    };
    let header: Vec<String> = [String::new()].into_iter().chain(columns.iter().map(heading)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = reports.iter().map(|(name, report)| {
        let cells = columns.iter().map(|&(level, metric)| percent(report.at(level).get(metric)));
        [(*name).to_owned()].into_iter().chain(cells).collect()
    });
    table(&header, &rows.collect::<Vec<_>>())
}

/// Writes every query's own scores, in full precision; an empty cell where a query has no positive.
/// `names`, one per query unless there are none, become the second column.
fn write_per_query(file: &Path, report: &Report, names: &[String]) -> Result<()> {
    let metrics: Vec<(usize, Metric)> = (0..=report.levels.len())
        .flat_map(|level| {
            let of_level = report.config.metrics.iter().filter(move |m| m.entry().per_level == (level > 0));
            of_level.map(move |&metric| (level, metric))
        })
        .collect();
    let mut columns = vec!["query".to_owned()];
    columns.extend((!names.is_empty()).then(|| "path".to_owned()));
    columns.extend(metrics.iter().map(|&(level, metric)| match level {
        0 => metric.to_string(),
        _ => format!("{}_{metric}", report.levels[level - 1].name),
    }));
    write_atomic(file, |out| {
        let cell = |score: Option<f64>| score.map(|score| score.to_string()).unwrap_or_default();
        let mut table = csv::Writer::from_writer(out);
        table.write_record(&columns)?;
        for row in &report.per_query {
            let mut cells = vec![row.query.to_string()];
            cells.extend(names.get(row.query).cloned());
            cells.extend(metrics.iter().map(|&(level, metric)| cell(row.at(level).get(metric))));
            table.write_record(&cells)?;
        }
        table.flush()
    })
}
