//! `akin search`: the items of a bundle that are nearest to an image.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::certainty::Promise;
use akin_core::embeddings::Rows;
use akin_core::image::Pixels;
use akin_core::search::Hit;
use akin_core::similarity::Similarity;
use akin_figures::terminal_picture;
use akin_figures::terminal_picture::PictureFormat;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::known_gallery::{Bundle, Found, KnownGallery, parse_promise};
use crate::config::DeviceName;
use crate::pictures::loader::Pictures;

/// Find the items of a bundle that are nearest to an image, or to embeddings.
///
/// Embeds the image with an encoder of the bundle, and prints how far the answer of the nearest items holds, and the items:
/// their similarity and their path down the tree. A bundle holds no names of files: `item` is the place of a picture in the gallery, from 0. On a
/// terminal `--pictures` shows small pictures of the items.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// The folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// The image to search with: JPEG, PNG, WebP, GIF, BMP or TIFF.
    #[arg(value_name = "IMAGE", required_unless_present = "embeddings")]
    pub image: Option<PathBuf>,
    /// Search with each row of a file of embeddings instead of an image, such as `akin embed` writes it: `.npy`, `.npz`,
    /// `.safetensors`, Parquet, CSV, TSV or JSON lines, or `-` for standard input. They must come from the same encoder.
    /// The results of a row have its number, from 0, in the column `query`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "pictures", "device"])]
    pub embeddings: Option<PathBuf>,
    /// The array, tensor, column or field with the embeddings, where their file has several.
    #[arg(long, value_name = "NAME", requires = "embeddings", conflicts_with = "image")]
    pub embedding_column: Option<String>,
    /// How many items to print.
    #[arg(long, short = 'k', value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// The name of the encoder [default: that with the best H-AP, as on the page].
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    /// The answer says a class as sure only if at least this share of such answers is right, in percent: 50 to 99.9.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = parse_promise)]
    pub promise: Promise,
    /// Print the pictures of the items, too: with the terminal's own protocol where it says that it has one, or else in
    /// coloured characters. `--pictures=FORMAT` chooses. Without a terminal only a chosen format is printed.
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "auto")]
    pub pictures: Option<PictureFormat>,
    /// Print the items as JSON.
    #[arg(long)]
    pub json: bool,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
}

/// Columns of characters that a picture takes.
const COLUMNS: u32 = 24;

/// Embeds the image and prints the nearest items.
pub fn run(args: &SearchArgs) -> Result<()> {
    let bundle = Bundle::open(&args.bundle)?;
    let picture = args.image.as_deref().map(read_picture).transpose()?;
    let known = KnownGallery::of_bundle(&bundle, args.encoder.as_deref(), args.device)?;
    let queries = match (picture, &args.embeddings) {
        (Some(picture), _) => vec![known.encoder.embed(&[picture], &known.device)?],
        (None, Some(file)) => read_queries(file, args, known.similarity)?,
        // One of them is required.
        (None, None) => Vec::new(),
    };
    let ask = |query: &Vec<f32>| known.ask(query, args.count as usize, args.promise);
    let found: Vec<Found> = queries.iter().map(ask).collect::<Result<_>>()?;

    if args.json {
        let item = |hit: &Hit| -> Value {
            json!({ "item": hit.item, "score": hit.score, "labels": known.known_path_of(hit.item) })
        };
        let answer = |Found { hits, unlike, answer }: &Found| -> Value {
            let items: Vec<Value> = hits.iter().map(item).collect();
            let answer = answer.as_ref().map(|answer| known.answer_json(answer, args.promise));
            json!({ "unlike_the_gallery": unlike, "answer": answer, "items": items })
        };
        let mut all = json!({
            "encoder": known.name, "similarity": known.similarity, "levels": known.taxonomy.level_names(),
        });
        match (&args.embeddings, &found[..], all.as_object_mut()) {
            (None, [one], Some(all)) => all.extend(answer(one).as_object().cloned().unwrap_or_default()),
            _ => all["queries"] = found.iter().map(answer).collect(),
        }
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    let many = args.embeddings.is_some();
    let row = |(query, rank, hit): (usize, usize, &Hit)| {
        let query = many.then(|| query.to_string());
        let numbers = [(rank + 1).to_string(), format!("{:.3}", hit.score), hit.item.to_string()];
        query.into_iter().chain(numbers).chain(known.path_of(hit.item)).collect::<Vec<_>>()
    };
    let ranked = |(query, found): (usize, &'_ Found)| -> Vec<Vec<String>> {
        found.hits.iter().enumerate().map(|(rank, hit)| row((query, rank, hit))).collect()
    };
    let rows: Vec<Vec<String>> = found.iter().enumerate().flat_map(ranked).collect();
    let levels = known.taxonomy.level_names().iter().map(String::as_str);
    let header: Vec<&str> =
        many.then_some("query").into_iter().chain(["rank", "score", "item"]).chain(levels).collect();
    let table = align_words(&header, &rows, terminal::width());
    let answers: Vec<String> = found
        .iter()
        .enumerate()
        .filter_map(|(query, found)| {
            let text = known.answer_text(found.answer.as_ref()?);
            Some(if many { format!("query {query}: {text}") } else { text })
        })
        .collect();
    match answers.is_empty() {
        true => terminal::print(&table)?,
        false => terminal::print(&format!("{}\n\n{table}", answers.join("\n")))?,
    }
    if args.pictures == Some(PictureFormat::Auto) && !terminal::stdout_is_terminal() {
        terminal::warn(
            "--pictures shows pictures only on a terminal; --pictures=blocks writes their colour codes",
        );
    } else if let Some(format) = args.pictures {
        for (rank, hit) in found.iter().flat_map(|found| &found.hits).enumerate() {
            let caption = format!("{}  {}", rank + 1, known.path_of(hit.item).join(" / "));
            let picture = terminal_picture::draw(&bundle.thumbnail(hit.item)?, format, COLUMNS)?;
            terminal::print_styled(&format!("\n{}\n{picture}", terminal::escape(&caption)))?;
        }
    }
    terminal::say(format_args!(
        "    Searched {} of {} with {}",
        counted(known.items(), "item", "items"),
        bundle.manifest.title,
        known.name
    ));
    if !known.is_calibrated() {
        terminal::say(
            "        Note the bundle has no calibration, so it is not known how far the answer holds; `akin export` of this \
             version writes one where each item has one label path",
        );
    } else if !known.can_promise(args.promise) {
        terminal::warn(known.impossible_text(args.promise));
    }
    for (query, _) in found.iter().enumerate().filter(|(_, found)| found.unlike) {
        let what = match &args.image {
            Some(image) => image.display().to_string(),
            None => format!("query {query}"),
        };
        terminal::warn(format_args!(
            "{what} is unlike anything in the gallery: its best score is below that of nearly all of the gallery's own images"
        ));
    }
    Ok(())
}

/// The rows of a file of embeddings.
fn read_queries(file: &Path, args: &SearchArgs, similarity: Similarity) -> Result<Vec<Vec<f32>>> {
    let choice = Choice { name: args.embedding_column.clone(), packed: similarity == Similarity::Hamming };
    let rows = EmbeddingFile::open(file, &choice)?;
    let mut queries = vec![vec![0.0; rows.dimension()]; rows.len()];
    for (row, query) in queries.iter_mut().enumerate() {
        rows.read(row, query)?;
    }
    rows.check_unchanged()?;
    Ok(queries)
}

/// The image to search with.
fn read_picture(image: &Path) -> Result<Pixels> {
    let pictures = Pictures::all_required(vec![image.to_owned()], "give a JPEG, PNG, WebP, GIF, BMP or TIFF file");
    let picture = pictures.get(0);
    pictures.check()?;
    picture.map(|pixels| (*pixels).clone()).ok_or_else(|| {
        problem(format!("the image {} cannot be read", image.display()), "give a JPEG, PNG, WebP, GIF, BMP or TIFF file")
    })
}
