//! `akin eval`: evaluates a run, the backbone of a config, a gallery, or embeddings from files.

mod arguments;
mod benchmarks;
mod embedding_files;
mod opened_run;
mod shard;

use std::path::{Path, PathBuf};

use akin_core::digest::sha256;
use akin_core::evaluate::{self, EvaluationConfig, Report};
use akin_core::metrics::Metric;
use akin_core::statistics::Permutations;
use akin_core::taxonomy::ClassIdentity;
use anyhow::Result;
use serde_json::json;

pub use self::arguments::EvalArgs;
use akin_base::files::{check_ending, check_output, write_atomic};
use akin_base::problem::problem;
use akin_base::{directory, terminal};
use akin_figures::rank_curves;
use akin_formats::source::STANDARD_INPUT;
use akin_gallery::{Gallery, MANIFEST};

use self::embedding_files::EmbeddingFiles;
use self::opened_run::OpenedRun;
use self::shard::{Part, Shard, Whole};
use crate::commands::pretrained::{self, is_config};
use crate::config::device;
use crate::config::{
    DataConfig, PretrainedConfig, Protocol, PublishedConfig, PublishedResult, Selection, setting_name,
};
use crate::data::{self, Dataset};
use crate::evaluation::by_class;
use crate::evaluation::certainty::Certainty;
use crate::evaluation::embedding::{Evaluation, evaluate_dataset};
use crate::evaluation::paper_results::published_text;
use crate::evaluation::report::{measurement, paired_tests_text, report_text, score};
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, Which};

/// Evaluates, and prints the report.
pub fn run(mut args: EvalArgs) -> Result<()> {
    read_galleries(&mut args)?;
    let pretrained = match &args.run {
        Some(config) if is_config(config) => {
            refuse(
                &options_of_runs(&args),
                "a run",
                &format!("{} is a config", config.display()),
                "a config is evaluated with its published weights, and `--set` changes it",
            )?;
            Some(args.pretrained.read(config)?)
        }
        run => {
            args.pretrained.refuse(run.as_deref())?;
            None
        }
    };
    if args.dyml || follows_dyml(&args)? {
        return benchmarks::run(&args);
    }
    if let Some(against) = &args.against {
        // A missing run is reported now, not after the first run is evaluated.
        Run::open(against)?;
    }
    // A part that is there is kept if it belongs to this evaluation, so that a job can be started again.
    let part = args.out.as_ref().filter(|_| !args.overwrite).and_then(|out| Part::read(out).ok());
    check_outputs(&args, pretrained.as_ref(), args.overwrite || part.is_some())?;
    if let (Some(shard), Some(out)) = (args.shard, &args.out) {
        return score_shard(shard, out, part.as_ref(), &args);
    }
    let evaluated = match (pretrained, &args.run) {
        (Some(config), _) => evaluate_pretrained(config, &args)?,
        (None, Some(run)) => evaluate_run(run, None, args.untrained, &args)?,
        (None, None) if args.merge.is_empty() => evaluate_files(&args)?,
        (None, None) => {
            let (report, queries) = shard::merge(&args.merge)?;
            let asked = report.config.metrics.len();
            Evaluated {
                report,
                queries,
                gallery: vec![],
                asked,
                published: None,
                other: None,
                certainty: None,
            }
        }
    };
    if let Some(file) = &args.per_query {
        write_per_query(file, &evaluated.report, &evaluated.queries)?;
    }
    if let Some(file) = &args.curves {
        rank_curves::write(file, &evaluated.report)?;
    }
    let text = match &args.against {
        None => text_of_one(evaluated, &args)?,
        Some(against) => text_of_two(evaluated, against, &args)?,
    };
    terminal::print(&text)?;
    Ok(())
}

/// Makes of a gallery what files are given as. It has its levels, and was made for a similarity.
fn read_galleries(args: &mut EvalArgs) -> Result<()> {
    let is_gallery = |folder: &PathBuf| folder.join(MANIFEST).is_file();
    if let Some(folder) = args.run.take_if(|folder| is_gallery(folder)) {
        let mut given = options_of_runs(args).to_vec();
        given.push(("--against", args.against.is_some()));
        let what = format!("{} is a gallery", folder.display());
        refuse(&given, "a run", &what, "a gallery keeps its embeddings, and nothing is computed again")?;
        args.pretrained.refuse(Some(&folder))?;
        let ranked = if args.queries.is_empty() { &mut args.queries } else { &mut args.gallery };
        ranked.push(folder);
    }
    if let Some(run) = &args.run {
        let given = [
            ("--queries", !args.queries.is_empty()),
            ("--levels", !args.levels.is_empty()),
            ("--group-column", args.group_column.is_some()),
        ];
        let what = format!("{} is neither", run.display());
        refuse(&given, "galleries and files", &what, "a run is evaluated on the splits of its data")?;
    }
    if let Some(folder) = args.gallery.iter().chain(&args.queries).find(|folder| is_gallery(folder)) {
        let gallery = Gallery::open(folder)?;
        if args.levels.is_empty() {
            args.levels = gallery.levels().to_vec();
        }
        // A class of a gallery is its path down the tree.
        args.qualify = true;
        args.metrics.similarity = args.metrics.similarity.or(Some(gallery.manifest().settings.similarity));
        if args.gallery.is_empty() && args.group_column.is_none() {
            args.path_column = Some("path".into());
        }
    } else if !args.queries.is_empty() && args.levels.is_empty() {
        return Err(problem(
            "`--levels` is missing",
            "name the columns of the labels, coarse to fine, such as `--levels order,family,species`",
        ));
    }
    Ok(())
}

/// Refuses outputs that would replace an input or, unless `replace`, any other file, and those with another ending.
fn check_outputs(args: &EvalArgs, pretrained: Option<&PretrainedConfig>, replace: bool) -> Result<()> {
    let outputs = [
        ("--per-query", &args.per_query, "csv"),
        ("--out", &args.out, "json"),
        ("--curves", &args.curves, "csv"),
    ];
    if outputs.iter().all(|(_, file, _)| file.is_none()) {
        return Ok(());
    }
    let inputs = [&args.queries, &args.query_labels, &args.gallery, &args.gallery_labels, &args.merge];
    let is_file = |input: &&PathBuf| input.as_path() != Path::new(STANDARD_INPUT);
    let mut inputs: Vec<PathBuf> = inputs.into_iter().flatten().filter(is_file).cloned().collect();
    let selection = match (pretrained, args.run.as_deref()) {
        (Some(pretrained), config) => {
            inputs.extend(config.map(Path::to_owned));
            Some(pretrained.selection.clone())
        }
        (None, Some(run)) => {
            let run = Run::open(run)?;
            inputs.extend(run.files());
            Some(run.config.selection())
        }
        (None, None) => None,
    };
    for (option, file, ending) in outputs {
        let Some(file) = file else { continue };
        match &selection {
            Some(selection) => data::check_output(file, &inputs, selection, args.overwrite)?,
            None => check_output(file, &inputs, replace)?,
        }
        directory::refuse_own_file(file)?;
        check_ending(option, file, ending)?;
    }
    Ok(())
}

/// The report of one evaluation, as a table or as JSON.
fn text_of_one(evaluated: Evaluated, args: &EvalArgs) -> Result<String> {
    let Evaluated { mut report, asked, published, other, certainty, .. } = evaluated;
    report.per_query.clear();
    if let (true, Some(certainty)) = (args.json, &certainty) {
        let all = json!({ "report": report, "certainty": certainty.json()? });
        return Ok(serde_json::to_string_pretty(&all)?);
    }
    if args.json {
        return Ok(serde_json::to_string_pretty(&report)?);
    }
    if args.curves.is_some() {
        let curves = rank_curves::text(&report);
        report.config.metrics.truncate(asked);
        return Ok(format!("{}\n\n{curves}", report_text(&report)));
    }
    let measured = |result: &PublishedResult, metric| score(&report, metric, result.level.as_deref());
    let published = published.and_then(|published| published_text(&published, other.as_ref(), measured));
    let certainty = certainty.map(|certainty| certainty.text()).transpose()?;
    let groups = args
        .group_column
        .as_ref()
        .map(|column| format!("a query's own `{column}` is left out of its ranking"));
    let parts = [report_text(&report)].into_iter().chain(groups).chain(certainty).chain(published);
    Ok(parts.collect::<Vec<_>>().join("\n\n"))
}

/// The scores of an evaluation beside those of the run `against`, with tests of their differences.
fn text_of_two(evaluated: Evaluated, against: &Path, args: &EvalArgs) -> Result<String> {
    let Evaluated { mut report, queries, gallery, .. } = evaluated;
    let mut other = evaluate_run(against, Some(&report.config), false, args)?;
    if (&queries, &gallery) != (&other.queries, &other.gallery) {
        return Err(problem(
            format!(
                "{} has other queries, or another gallery, than the run to compare it with",
                against.display()
            ),
            "compare runs of the same [data] and [split] and, with `test_fraction`, the same seed",
        ));
    }
    let tests = evaluate::paired_tests(&report, &other.report, Permutations::default())?;
    report.per_query.clear();
    other.report.per_query.clear();
    if args.json {
        let all = json!({ "report": report, "against": other.report, "comparison": tests });
        return Ok(serde_json::to_string_pretty(&all)?);
    }
    let table = paired_tests_text(&tests, [&report, &other.report]);
    let similarity = other.report.config.similarity;
    let other_similarity = match similarity == report.config.similarity {
        true => String::new(),
        false => format!("; the other run ranks by {}", setting_name(similarity)),
    };
    Ok(format!("{table}\n\n{}{other_similarity}", measurement(&report)))
}

/// Whether a run's config asks for the protocol of DyML, and no option for what it does not have.
fn follows_dyml(args: &EvalArgs) -> Result<bool> {
    let other = args.against.is_some()
        || args.per_query.is_some()
        || args.curves.is_some()
        || args.data.is_some()
        || args.by_class.is_some()
        || args.metrics.relevance.is_some()
        || args.metrics.decomposability_gap.is_some()
        || args.metrics.hyperbolicity.is_some();
    Ok(match &args.run {
        Some(run) if !other && !is_config(run) => Run::open(run)?.config.split.protocol == Protocol::Dyml,
        _ => false,
    })
}

/// A report, and the paths of the pictures behind it. Embeddings from files may have no paths.
struct Evaluated {
    report: Report,
    queries: Vec<String>,
    gallery: Vec<String>,
    /// How many of the report's metrics are not those of the curves.
    asked: usize,
    /// What a paper reports for the run.
    published: Option<PublishedConfig>,
    /// The data set that was evaluated instead of the run's.
    other: Option<DataConfig>,
    /// How far the answers hold, if that is asked for.
    certainty: Option<Certainty>,
}

impl Evaluated {
    fn new(
        mut evaluation: Evaluation,
        dataset: &Dataset,
        asked: usize,
        published: Option<PublishedConfig>,
        args: &EvalArgs,
    ) -> Result<Self> {
        let certainty = if args.certainty { evaluation.certainty(dataset)? } else { None };
        if let Some(level) = &args.by_class {
            let labels = dataset.labels.select(&evaluation.queries.items);
            by_class::add(&mut evaluation.report, &dataset.taxonomy, &labels, level)?;
        }
        let paths = |items: &[usize]| -> Vec<String> {
            items.iter().map(|&item| dataset.paths[item].display().to_string()).collect()
        };
        let queries = paths(&evaluation.queries.items);
        let gallery = evaluation.gallery.map(|gallery| paths(&gallery.items)).unwrap_or_default();
        Ok(Self { report: evaluation.report, queries, gallery, asked, published, other: None, certainty })
    }
}

/// Evaluates the encoder of a run on its evaluation splits. `eval_config` replaces the run's `[eval]`, except for the
/// similarity, which is always the run's.
fn evaluate_run(
    directory: &Path,
    eval_config: Option<&EvaluationConfig>,
    untrained: bool,
    args: &EvalArgs,
) -> Result<Evaluated> {
    let mut run = Run::open(directory)?;
    if let Some(config) = &args.data {
        run.config.select(Selection::load(config, &[])?);
    }
    args.metrics.apply(&mut run.config.eval);
    if let Some(config) = eval_config {
        run.config.eval = EvaluationConfig { similarity: run.config.eval.similarity, ..config.clone() };
    }
    let asked = run.config.eval.metrics.len();
    let levels = run.config.data.levels();
    run.config.eval.checked(levels.len())?;
    args.by_class.as_ref().map(|level| by_class::find_level(levels, level)).transpose()?;
    let OpenedRun { device, encoder, mut dataset } =
        OpenedRun::open(&run, args.which, untrained, args.device)?;
    if args.curves.is_some() {
        rank_curves::add_metrics(&mut run.config.eval, dataset.splits.ranked());
    }
    let eval = &run.config.eval;
    if args.data.is_none() {
        run.check_data(&dataset.digest())?;
    }
    dataset.labels = args.cut.apply(dataset.labels, 0);
    eval.check_sets(dataset.splits.query.len(), !dataset.splits.leave_one_out())?;
    let pictures = Pictures::of(&dataset);
    let progress = args.progress;
    let evaluation = evaluate_dataset(&encoder, &dataset, &pictures, eval, &device, progress)?;
    let evaluated = Evaluated::new(evaluation, &dataset, asked, run.config.published, args)?;
    Ok(Evaluated { other: args.data.is_some().then_some(run.config.data), ..evaluated })
}

/// Options that only a run has a meaning for, and whether they are given.
fn options_of_runs(args: &EvalArgs) -> [(&'static str, bool); 4] {
    [
        ("--untrained", args.untrained),
        ("--which", args.which != Which::default()),
        ("--data", args.data.is_some()),
        ("--dyml", args.dyml),
    ]
}

/// Refuses options that are given, but are for something else than `what` is.
fn refuse(options: &[(&str, bool)], takes: &str, what: &str, hint: &str) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(problem(format!("`{option}` is for {takes}, but {what}"), format!("remove it; {hint}")))
        }
    }
}

/// Evaluates the backbone of a config with its published weights on the evaluation splits of the config.
fn evaluate_pretrained(mut config: PretrainedConfig, args: &EvalArgs) -> Result<Evaluated> {
    let progress = args.progress;
    pretrained::provide(&config, args.pretrained.yes, true, progress)?;
    args.metrics.apply(&mut config.eval);
    let asked = config.eval.metrics.len();
    let levels = config.selection.data.levels();
    config.eval.checked(levels.len())?;
    args.by_class.as_ref().map(|level| by_class::find_level(levels, level)).transpose()?;
    let mut dataset = Dataset::load_to_evaluate(&config.selection)?;
    dataset.labels = args.cut.apply(dataset.labels, 0);
    if args.curves.is_some() {
        rank_curves::add_metrics(&mut config.eval, dataset.splits.ranked());
    }
    config.eval.check_sets(dataset.splits.query.len(), !dataset.splits.leave_one_out())?;
    let device = device::open(args.device.unwrap_or(config.device))?;
    let encoder = pretrained::encoder(&config.model, &device, progress)?;
    let pictures = Pictures::of(&dataset);
    let evaluation = evaluate_dataset(&encoder, &dataset, &pictures, &config.eval, &device, progress)?;
    Evaluated::new(evaluation, &dataset, asked, config.published, args)
}

fn evaluate_files(args: &EvalArgs) -> Result<Evaluated> {
    let (files, identity, mut config) = read_files(args)?;
    let asked = config.metrics.len();
    if args.curves.is_some() {
        rank_curves::add_metrics(&mut config, files.ranked());
    }
    args.by_class.as_ref().map(|level| by_class::find_level(&args.levels, level)).transpose()?;
    let mut report = files.evaluate(&args.levels, 0, identity, &config, args.progress)?;
    if let Some(level) = &args.by_class {
        files.add_classes(&mut report, &args.levels, identity, level)?;
    }
    let certainty = match args.certainty {
        true => files.certainty(&args.levels, identity, config.similarity)?,
        false => None,
    };
    Ok(Evaluated {
        report,
        certainty,
        queries: files.into_paths(),
        gallery: vec![],
        asked,
        published: None,
        other: None,
    })
}

/// Scores a shard and writes its part to `out`, unless the part that is there holds its scores.
fn score_shard(shard: Shard, out: &Path, part: Option<&Part>, args: &EvalArgs) -> Result<()> {
    let (files, identity, config) = read_files(args)?;
    let queries = shard.queries(files.queries())?;
    let options =
        format!("{:?} {identity:?} {:?} {:?}", args.levels, args.path_column, args.embedding_column);
    let whole = Whole {
        akin: env!("CARGO_PKG_VERSION").into(),
        data: sha256(&[&files.digests(args.progress)?.concat(), options.as_bytes()].concat()),
        levels: args.levels.clone(),
        queries: files.queries(),
        ranked: files.ranked(),
        config,
    };
    if let Some(part) = part {
        part.check_is(shard, &whole, out)?;
        terminal::say(format_args!(
            "       Kept {}, which has the scores of the shard {shard}",
            out.display()
        ));
        return Ok(());
    }
    let scores =
        files.evaluate_some(queries.clone(), &args.levels, identity, &whole.config, args.progress)?;
    let paths = files.into_paths();
    let paths = if paths.is_empty() { paths } else { paths[queries].to_vec() };
    Part::new(shard, whole, scores, paths).write(out)?;
    terminal::say(format_args!("     Scored the shard {shard}; its scores are in {}", out.display()));
    Ok(())
}

/// The files of one set, and how to read and measure them.
fn read_files(args: &EvalArgs) -> Result<(EmbeddingFiles, ClassIdentity, EvaluationConfig)> {
    if args.queries.len() > 1 {
        return Err(problem(
            format!(
                "`--queries` is given {} times, but without `--dyml` one set is evaluated",
                args.queries.len()
            ),
            "evaluate one set at a time; if each set has its own label column, add `--dyml` for their average",
        ));
    }
    let files = EmbeddingFiles::read(args, 0, &args.levels)?;
    let identity = if args.qualify { ClassIdentity::Path } else { ClassIdentity::Name };
    let mut config = EvaluationConfig::default();
    args.metrics.apply(&mut config);
    Ok((files, identity, config))
}

/// Writes the scores of every query in full precision. A cell is empty if the query has no positive.
/// `paths`, one per query or none at all, become the second column.
fn write_per_query(file: &Path, report: &Report, paths: &[String]) -> Result<()> {
    let metrics: Vec<(usize, Metric)> = (0..=report.levels.len())
        .flat_map(|level| {
            let at_level = report.config.metrics.iter().filter(move |m| m.entry().per_level == (level > 0));
            at_level.map(move |&metric| (level, metric))
        })
        .collect();
    let mut columns = vec!["query".to_owned()];
    columns.extend((!paths.is_empty()).then(|| "path".to_owned()));
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
            cells.extend(paths.get(row.query).cloned());
            cells.extend(metrics.iter().map(|&(level, metric)| cell(row.at(level).get(metric))));
            table.write_record(&cells)?;
        }
        table.flush()
    })
}
