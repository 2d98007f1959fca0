//! `akin classify`: what images show, and how far that can be trusted.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::{count, counted};
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::bundle::MANIFEST;
use akin_core::certainty::Promise;
use akin_core::search::Hit;
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::commands::arguments::ComputeArgs;
use crate::commands::embed::{files, pictures};
use crate::commands::known_gallery::{Bundle, Found, KnownGallery, Question, parse_promise, percent};
use crate::runs::run::{Run, Which};

/// Say what images show, and how far that can be trusted.
///
/// The nearest items of the gallery vote. The answer goes down the tree as far as it holds: of all answers that say a class
/// as sure, at least the share of `--promise` is right, for images like those of the gallery. Below, the most likely class
/// stands with its certainty. The gallery of a run is the one that it is evaluated on. With images of other cameras or
/// other classes the promise may not hold; `akin eval --certainty` measures it on labelled images.
#[derive(Debug, Args)]
pub struct ClassifyArgs {
    /// The run directory of the model, or a bundle that `akin export` wrote.
    #[arg(value_name = "RUN|BUNDLE")]
    pub model: PathBuf,
    /// Image files, or folders of them. Rows are in this order; the files of a folder are sorted.
    #[arg(value_name = "IMAGES", required = true)]
    pub images: Vec<PathBuf>,
    /// The least share of right answers among those that say a class as sure, in percent: 50 to 99.9.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = parse_promise)]
    pub promise: Promise,
    /// How to print the answers.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Leave out images that cannot be read, and say which and how many. Otherwise nothing is printed if there is one.
    #[arg(long)]
    pub skip: bool,
    /// The name of the encoder, for a bundle [default: that with the best H-AP, as on the page].
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    #[command(flatten)]
    pub compute: ComputeArgs,
}

/// How to print the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    #[default]
    Table,
    /// Comma-separated values with a header, in full precision.
    Csv,
    /// A JSON array, in full precision.
    Json,
}

/// The answer to one image.
struct Row {
    path: PathBuf,
    found: Found,
}

/// Embeds the images and prints the answers.
pub fn run(args: &ClassifyArgs) -> Result<()> {
    let known = open(args)?;
    if !known.is_calibrated() {
        return Err(problem(
            format!(
                "{} has no calibration, so it is not known how far an answer holds",
                args.model.display()
            ),
            "write the bundle again with `akin export`, from a run whose gallery has at least two images with one label path each",
        ));
    }
    let files = files(&args.images)?;
    let pictures = pictures(files, args.skip).without_cache();
    let embedded = known.embed(&pictures, args.compute.progress)?;
    let question = Question { count: 1, promise: args.promise, ..Question::default() };
    let found = known.ask(&embedded.embeddings, &question)?;
    let path = |&item: &usize| pictures.path(item).to_owned();
    let rows: Vec<Row> =
        embedded.items.iter().map(path).zip(found).map(|(path, found)| Row { path, found }).collect();
    let text = match args.format {
        Format::Table => table(&known, &rows),
        Format::Csv => csv(&known, &rows)?,
        Format::Json => {
            let rows: Vec<Value> = rows.iter().map(|row| row_json(&known, row, args.promise)).collect();
            serde_json::to_string_pretty(&rows)?
        }
    };
    terminal::print(&text)?;
    if !known.can_promise(args.promise) {
        terminal::warn(known.impossible_text(args.promise));
    }
    let unlike = rows.iter().filter(|row| row.found.unlike).count();
    let sure = rows.iter().filter(|row| row.found.answer.as_ref().is_some_and(|answer| answer.reached > 0));
    let images = counted(rows.len(), "image", "images");
    args.compute.progress.say(
        "Classified",
        &format!(
            "{images} with {} among {}: {} with a sure class, {} like nothing there",
            known.name,
            counted(known.items(), "item", "items"),
            count(sure.count()),
            count(unlike)
        ),
    );
    let skipped = pictures.unreadable().len();
    if skipped > 0 {
        terminal::warn(format_args!("{} could not be read", counted(skipped, "image", "images")));
    }
    Ok(())
}

/// The gallery of the bundle, or of the run.
fn open(args: &ClassifyArgs) -> Result<KnownGallery> {
    let refuse = |option: &str, what: &str| {
        Err(problem(format!("`{option}` is for a {what}, but {} is none", args.model.display()), "remove it"))
    };
    if args.model.join(MANIFEST).is_file() {
        if args.compute.which != Which::default() {
            return refuse("--which", "run");
        }
        let bundle = Bundle::open(&args.model)?;
        return KnownGallery::of_bundle(
            &bundle,
            args.encoder.as_deref(),
            Some(args.compute.device.unwrap_or_default()),
        );
    }
    if args.encoder.is_some() {
        return refuse("--encoder", "bundle");
    }
    KnownGallery::of_run(
        &Run::open(&args.model)?,
        args.compute.which,
        args.compute.device,
        args.compute.progress,
    )
}

fn table(known: &KnownGallery, rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let answer = row.found.answer.as_ref();
        let certainty = answer.and_then(|answer| answer.certainty()).map(percent).unwrap_or_default();
        let nearest = row.found.hits.first();
        vec![
            file_name(&row.path),
            answer.map(|answer| known.answer_text(answer)).unwrap_or_default(),
            certainty,
            nearest.map(|hit| known.path_of(hit.item).join(" > ")).unwrap_or_default(),
            nearest.map(|hit| format!("{:.3}", hit.score)).unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    align_words(&["image", "answer", "certainty", "nearest", "score"], &rows, terminal::width())
}

/// The name of a file without its folders, which would fill the line.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn csv(known: &KnownGallery, rows: &[Row]) -> Result<String> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "path",
        "unlike",
        "level",
        "classes",
        "certainty",
        "probable_level",
        "probable_class",
        "probable_certainty",
        "nearest",
        "nearest_classes",
        "score",
    ])?;
    let levels = known.taxonomy.level_names();
    for Row { path, found } in rows {
        let answer = found.answer.as_ref();
        let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
        let reached = answer.and_then(|answer| levels[..answer.reached].last()).cloned();
        let probable = answer.and_then(|answer| answer.probable());
        let nearest = found.hits.first();
        let of_nearest = |text: &dyn Fn(&Hit) -> String| nearest.map(text).unwrap_or_default();
        table.write_record([
            path.display().to_string(),
            found.unlike.to_string(),
            reached.unwrap_or_default(),
            answer.map(|answer| known.said(answer).join(" > ")).unwrap_or_default(),
            number(answer.and_then(|answer| answer.certainty())),
            probable.map(|probable| levels[probable.level - 1].clone()).unwrap_or_default(),
            probable.map(|probable| known.class_name(probable.level, probable.class)).unwrap_or_default(),
            number(probable.map(|probable| probable.certainty)),
            of_nearest(&|hit| known.item_name(hit.item)),
            of_nearest(&|hit| known.path_of(hit.item).join(" > ")),
            of_nearest(&|hit| hit.score.to_string()),
        ])?;
    }
    let text = String::from_utf8(table.into_inner().map_err(|error| error.into_error())?)?;
    Ok(text.trim_end().to_owned())
}

fn row_json(known: &KnownGallery, Row { path, found }: &Row, promise: Promise) -> Value {
    let nearest = found.hits.first().map(|hit| {
        let name = known.item_name(hit.item);
        json!({ "item": hit.item, "name": name, "score": hit.score, "labels": known.path_of(hit.item) })
    });
    json!({
        "path": path.display().to_string(), "unlike_the_gallery": found.unlike,
        "answer": found.answer.as_ref().map(|answer| known.answer_json(answer, promise)), "nearest": nearest,
    })
}
