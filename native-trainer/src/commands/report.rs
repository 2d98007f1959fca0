//! `akin report`: what runs have learned, as one HTML file with figures.

mod figures_of_run;
mod html;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use akin_base::directory::{Kind, Mark};
use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{count, counted, rounded_bytes};
use akin_base::{directory, machine, shell, terminal};
use akin_core::evaluate::EvaluationConfig;
use akin_core::metrics::Metric;
use akin_core::statistics::Bootstrap;
use akin_figures::rank_curves;
use akin_figures::{Figure, Painter, write_figures};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

use self::figures_of_run::{Evaluated, run_figures, shared_figures};
use self::html::{Page, RunPart};
use crate::commands::arguments::ComputeArgs;
use crate::comparison::compare::print;
use crate::comparison::compare::results::Comparison;
use crate::comparison::compare::sensitivity;
use crate::config::device;
use crate::config::{Config, Protocol, Selection};
use crate::data::{Dataset, check_output};
use crate::evaluation::by_class;
use crate::evaluation::certainty::Certainty;
use crate::evaluation::embedding::evaluate_dataset;
use crate::evaluation::paper_results::published_text;
use crate::evaluation::report::score;
use crate::pictures::loader::Pictures;
use crate::runs::code_lengths::distinct_names;
use crate::runs::run::{Run, encoder_config, refuse_twins};
use crate::runs::run_log::Log;
use crate::training::learned_ancestors;

/// Write a report on runs: one HTML file with tables, curves, maps and pictures.
///
/// Evaluates each run again, with 95 % intervals, and draws: curves of the training; H-precision, H-recall and mAHP by
/// rank; how deep the answers of `akin classify` go at each promise; the queries with the best and the worst results and the most severe mistakes; confusion along the tree; the
/// affinity of classes; maps of class means and of the gallery, with the ancestors of HIER. The file needs no other and
/// no network. Several runs stand side by side.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run directories. A directory of `akin compare` stands for all of its finished trainings.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The file to write.
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    pub out: PathBuf,
    /// Also write each figure as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Also write each figure as PNG into this folder.
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long)]
    pub overwrite: bool,
    /// The title [default: the names of the runs].
    #[arg(long)]
    pub title: Option<String>,
    /// The resamples of the 95 % intervals; 0 draws none.
    #[arg(long, value_name = "RESAMPLES", default_value_t = 1000)]
    pub bootstrap: usize,
    /// Also show the scores of each class of this level, the worst first, and their macro average: the mean over classes of
    /// the mean over their queries.
    #[arg(long, value_name = "LEVEL")]
    pub by_class: Option<String>,
    /// The queries on each sheet of pictures.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=50))]
    pub queries: u32,
    #[command(flatten)]
    pub compute: ComputeArgs,
}

/// Evaluates the runs, draws the figures and writes the files.
pub fn run(args: &ReportArgs) -> Result<()> {
    let directories = args.runs.iter().map(|path| runs_in(path)).collect::<Result<Vec<_>>>()?.concat();
    let runs = directories.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>>>()?;
    refuse_twins(&runs)?;
    if let Some(run) = runs.iter().find(|run| run.config.split.protocol == Protocol::Dyml) {
        let run = shell::path(&run.directory);
        return Err(problem(
            format!("the run {run} is evaluated by the protocol of DyML, which a report does not show"),
            format!("use `akin eval {run}`"),
        ));
    }
    let is_page =
        |extension: &OsStr| ["html", "htm"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    if !args.out.extension().is_some_and(is_page) {
        return Err(problem(
            format!("`--out {}` is no HTML file, and a report is one", args.out.display()),
            "name a file that ends with .html; a browser prints it to PDF, and `--svg` and `--png` write its figures",
        ));
    }
    let inputs: Vec<PathBuf> = runs.iter().flat_map(Run::files).collect();
    let mut selections: Vec<Selection> = runs.iter().map(|run| run.config.selection()).collect();
    // The trainings of a comparison share theirs.
    selections.dedup();
    for selection in &selections {
        check_output(&args.out, &inputs, selection, args.overwrite)?;
    }
    for folder in [&args.svg, &args.png].into_iter().flatten() {
        check_folder(folder, &runs, args.overwrite)?;
    }
    if let Some(level) = &args.by_class {
        runs.iter().try_for_each(|run| by_class::find_level(run.config.data.levels(), level).map(|_| ()))?;
    }
    // A font that cannot be read is reported before the work.
    let painter = args.png.as_ref().map(|_| Painter::new()).transpose()?;
    let mut evaluated: Vec<(usize, Evaluated)> = Vec::new();
    for (run, name) in runs.iter().zip(distinct_names(&runs)) {
        let asked = run.config.eval.metrics.len();
        // Data that several runs share are read once.
        let same =
            runs.iter().zip(&evaluated).find(|(other, _)| run.config.selection() == other.config.selection());
        let dataset = match same {
            Some((_, (_, other))) => other.dataset.clone(),
            None => Dataset::load_to_evaluate(&run.config.selection())?,
        };
        evaluated.push((asked, evaluate(run, name, dataset, args)?));
    }
    let (asked, evaluated): (Vec<usize>, Vec<Evaluated>) = evaluated.into_iter().unzip();

    let tests = tests_of(&evaluated);
    let comparisons = comparisons_in(&args.runs)?;
    let mut figures = sensitivity_figures(&comparisons)?;
    figures.extend(shared_figures(&evaluated, &tests)?);
    let warnings: Vec<String> = different_tests(&evaluated, &tests).into_iter().collect();
    warnings.iter().for_each(terminal::warn);
    let mut parts = Vec::new();
    for (number, ((run, evaluated), asked)) in runs.iter().zip(evaluated).zip(asked).enumerate() {
        let prefix = if runs.len() == 1 { String::new() } else { format!("run-{}-", number + 1) };
        let figures = run_figures(&evaluated, &prefix, args.queries as usize, args.compute.progress)?;
        evaluated.pictures.check()?;
        let mut report = evaluated.evaluation.report.clone();
        // Figures show the metrics of the curves.
        report.config.metrics.truncate(asked);
        let published = run.config.published.as_ref().and_then(|published| {
            published_text(published, None, |result, metric| score(&report, metric, result.level.as_deref()))
        });
        parts.push(RunPart {
            published,
            certainty: evaluated.certainty.as_ref().map(Certainty::text).transpose()?,
            facts: facts(&run.config, &evaluated),
            name: evaluated.name.clone(),
            report,
            figures,
            config: run.config.to_toml(),
            environment: environment(run)?,
        });
    }
    let page = Page {
        title: args.title.clone().unwrap_or_else(|| title_of(&runs)),
        about: vec![format!(
            "Written by akin {} on {}, with {}.",
            env!("CARGO_PKG_VERSION"),
            machine::now(),
            machine::describe()
        )],
        warnings,
        comparisons: comparisons
            .iter()
            .map(|comparison| (format!("The comparison {}", comparison.name), print::html(comparison)))
            .collect(),
        figures,
        runs: parts,
    };
    let html = page.html()?;
    write_atomic(&args.out, |file| file.write_all(html.as_bytes()))?;
    let all: Vec<&Figure> =
        page.figures.iter().chain(page.runs.iter().flat_map(|run| &run.figures)).collect();
    if let Some(folder) = &args.svg {
        write_figures(folder, "svg", all.iter().copied(), |figure| {
            Ok(figure.drawing.svg(&figure.title)?.into_bytes())
        })?;
    }
    if let (Some(folder), Some(painter)) = (&args.png, &painter) {
        write_figures(folder, "png", all.iter().copied(), |figure| painter.png(&figure.drawing))?;
    }
    let mut folders = vec![(&args.svg, "svg"), (&args.png, "png")];
    let mut written: Vec<PathBuf> = Vec::new();
    for (folder, extension) in &folders {
        let file = |figure: &&Figure| Some(folder.as_ref()?.join(format!("{}.{extension}", figure.name)));
        written.extend(all.iter().filter_map(file));
    }
    folders.dedup_by_key(|(folder, _)| *folder);
    for folder in folders.into_iter().filter_map(|(folder, _)| folder.as_ref()) {
        tell_of_others(folder, &written, args.compute.progress);
    }
    terminal::print(&args.out.display().to_string())?;
    let size = rounded_bytes(html.len() as u64);
    let figures = counted(all.len(), "figure", "figures");
    args.compute
        .progress
        .say("Wrote", &format!("{figures} ({size}); open {} in a browser", shell::path(&args.out)));
    Ok(())
}

/// The names of runs in their configs, and how many runs there are if some have the same name.
fn title_of(runs: &[Run]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.config.run.name.as_str()) {
            names.push(&run.config.run.name);
        }
    }
    match names.len() == runs.len() {
        true => a_few(&names),
        false => format!("{}: {}", a_few(&names), counted(runs.len(), "run", "runs")),
    }
}

/// The finished trainings of a comparison, by row and seed; a directory of something else itself.
fn runs_in(directory: &Path) -> Result<Vec<PathBuf>> {
    if Mark::read(directory)?.is_none_or(|mark| mark.kind != Kind::Comparison) {
        return Ok(vec![directory.to_owned()]);
    }
    let folders = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries =
            fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let entries: Vec<PathBuf> =
            entries.advise(|| format!("{} cannot be listed", folder.display()), "check its permissions")?;
        Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
    };
    let seed = |run: &Path| run.file_name()?.to_str()?.strip_prefix("seed-")?.parse::<u64>().ok();
    // The encoder before the training, `untrained`, is no training.
    let rows = folders(directory)?.into_iter().filter(|row| !row.ends_with("untrained"));
    let trainings = rows.map(|row| folders(&row)).collect::<Result<Vec<_>>>()?;
    let trainings = trainings.into_iter().flatten().filter(|run| seed(run).is_some());
    // Beside a training that failed there is why; the directory may hold an earlier one.
    let (mut runs, unfinished): (Vec<PathBuf>, Vec<PathBuf>) = trainings
        .partition(|run| run.join("report.json").is_file() && !run.with_extension("outcome.json").is_file());
    if !unfinished.is_empty() {
        let names: Vec<_> = unfinished.iter().map(|run| shell::path(run)).collect();
        let count = counted(names.len(), "training that is", "trainings that are");
        terminal::warn(format_args!("left out {count} not finished, or failed: {}", a_few(&names)));
    }
    runs.sort_by_key(|run| (run.parent().map(Path::to_owned), seed(run)));
    if runs.is_empty() {
        let shown = shell::path(directory);
        return Err(problem(
            format!("the comparison {shown} has no finished training"),
            format!("continue it with `akin compare CONFIG --out {shown}`, or give the directories of runs"),
        ));
    }
    Ok(runs)
}

/// The results of those directories that are comparisons.
fn comparisons_in(directories: &[PathBuf]) -> Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for directory in directories {
        comparisons.extend(Comparison::read(directory)?);
    }
    Ok(comparisons)
}

/// The curves of each comparison: its scores by the settings that it varies.
fn sensitivity_figures(comparisons: &[Comparison]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (number, comparison) in (1..).zip(comparisons) {
        let mut curves = sensitivity::figures(comparison)?;
        if comparisons.len() > 1 {
            for figure in &mut curves {
                figure.name = format!("comparison-{number}-{}", figure.name);
                figure.title = format!("{}: {}", comparison.name, figure.title);
            }
        }
        figures.extend(curves);
    }
    Ok(figures)
}

/// The places of the runs that are tested on the same images with the same labels, for each such test set.
fn tests_of(runs: &[Evaluated]) -> Vec<Vec<usize>> {
    let mut tests: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let tested = run.tested();
        match tests.iter_mut().find(|(other, _)| *other == tested) {
            Some((_, places)) => places.push(place),
            None => tests.push((tested, vec![place])),
        }
    }
    tests.into_iter().map(|(_, places)| places).collect()
}

/// What to tell of runs that are not tested on the same images.
fn different_tests(runs: &[Evaluated], tests: &[Vec<usize>]) -> Option<String> {
    let names = |places: &Vec<usize>| {
        places.iter().map(|&place| runs[place].name.as_str()).collect::<Vec<_>>().join(", ")
    };
    (tests.len() > 1).then(|| {
        let names: Vec<String> = tests.iter().map(names).collect();
        format!(
            "The runs have different test sets, so their scores cannot be compared: {}. Each test set has figures of its \
             own.",
            names.join(" | ")
        )
    })
}

/// Refuses a folder of figures that is a file, or that has files.
fn check_folder(folder: &Path, runs: &[Run], overwrite: bool) -> Result<()> {
    if folder.is_file() || folder.as_os_str().is_empty() {
        return Err(problem(format!("{:?} is no folder", folder.display()), "give a folder for the figures"));
    }
    for run in runs {
        if run.config.data.would_read(folder)? {
            return Err(problem(
                format!("the figures in {} would be read as images of the data set", folder.display()),
                "choose a folder elsewhere",
            ));
        }
    }
    let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    if is_empty || overwrite {
        return Ok(());
    }
    Err(problem(
        format!("{} is not empty", folder.display()),
        "choose another folder, or pass `--overwrite` to replace the figures in it",
    ))
}

/// Says which files of a folder are not figures of this report. An earlier report may have left them, or the user may have
/// put them there, so they stay.
fn tell_of_others(folder: &Path, written: &[PathBuf], progress: Progress) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let others = entries.filter(|entry| !written.contains(&entry.path()));
    let mut others: Vec<String> =
        others.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    others.sort();
    if !others.is_empty() {
        let count = counted(others.len(), "file that is", "files that are");
        let folder = shell::path(folder);
        progress.say("Kept", &format!("{count} not of this report in {folder}: {}", a_few(&others)));
    }
}

/// Embeds and scores the evaluation splits of a run.
fn evaluate(run: &Run, name: String, dataset: Dataset, args: &ReportArgs) -> Result<Evaluated> {
    let config = &run.config;
    let log = Log::read(run)?;
    let device = device::open(args.compute.device.unwrap_or(config.run.device))?;
    let encoder = run.encoder(args.compute.which, &device)?;
    run.check_data(&dataset.digest())?;
    let pictures = Pictures::of(&dataset);
    let mut eval: EvaluationConfig = config.eval.clone();
    if args.bootstrap > 0 {
        eval.bootstrap = Some(Bootstrap { resamples: args.bootstrap, ..eval.bootstrap.unwrap_or_default() });
    }
    // The sheets order queries by it.
    let h_ap = Metric::named("h_ap");
    if !eval.metrics.contains(&h_ap) {
        eval.metrics.push(h_ap);
    }
    rank_curves::add_metrics(&mut eval, dataset.splits.ranked());
    let mut evaluation =
        evaluate_dataset(&encoder, &dataset, &pictures, &eval, &device, args.compute.progress)?;
    if let Some(level) = &args.by_class {
        let labels = dataset.labels.select(&evaluation.queries.items);
        by_class::add(&mut evaluation.report, &dataset.taxonomy, &labels, level)?;
    }
    let ancestors = learned_ancestors(run, args.compute.which, &dataset, &pictures, &device)?;
    let similarity = config.eval.similarity;
    let seed = config.run.seed;
    let results = Vec::new();
    let certainty = evaluation.certainty(&dataset)?;
    let mut evaluated = Evaluated {
        name,
        log,
        dataset,
        pictures,
        evaluation,
        similarity,
        ancestors,
        seed,
        certainty,
        results,
    };
    evaluated.find_results()?;
    Ok(evaluated)
}

/// What was trained on what.
fn facts(config: &Config, run: &Evaluated) -> Vec<(String, String)> {
    let encoder = encoder_config(config);
    let side = encoder.preprocessing.side();
    let taxonomy = &run.dataset.taxonomy;
    let levels = (1..).zip(taxonomy.level_names());
    let levels = levels.map(|(level, name)| format!("{name} ({})", count(taxonomy.class_count(level))));
    [
        ("data", shell::path(config.data.path())),
        ("levels and classes", levels.collect::<Vec<_>>().join(", ")),
        ("images", crate::data::detect::sizes(&run.dataset)),
        ("backbone", format!("{}, images of {side}×{side}", config.model.backbone_title())),
        ("embedding", format!("{} dimensions, {}", encoder.dimension(), encoder.geometry().space().name())),
        ("loss", config.loss.describe()),
        ("batch", config.sampler.describe()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Where and how a run was trained, as `run.json` has it.
fn environment(run: &Run) -> Result<Vec<(String, String)>> {
    directory::recover(&run.directory)?;
    let bytes = read_regular_file(&run.file("run.json")).unwrap_or_default();
    let entries: serde_json::Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut rows = Vec::new();
    entries.into_iter().for_each(|(key, value)| add_rows(&mut rows, key.replace('_', " "), value));
    Ok(rows)
}

/// Adds a value under its name, and of a table each of its values.
fn add_rows(rows: &mut Vec<(String, String)>, name: String, value: Value) {
    let text = match value {
        Value::Object(table) if !table.is_empty() => {
            return table.into_iter().for_each(|(key, value)| {
                add_rows(rows, format!("{name}: {}", key.replace('_', " ")), value)
            });
        }
        Value::Object(_) => "none".into(),
        Value::String(text) => text,
        Value::Number(number) => match number.as_u64() {
            Some(whole) => count(whole as usize),
            None => format!("{:.4}", number.as_f64().unwrap_or_default()),
        },
        other => other.to_string(),
    };
    rows.push((name, text));
}
