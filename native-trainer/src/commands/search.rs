//! `akin search`: the items of a bundle that are nearest to an image.

use std::path::{Path, PathBuf};

use akin_base::directory::{self, Kind};
use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, a_few, did_you_mean, problem};
use akin_base::quantities::counted;
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::bundle::{EncoderEntry, MANIFEST, Manifest};
use akin_core::embeddings::Rows;
use akin_core::encoder::EncoderConfig;
use akin_core::image::Pixels;
use akin_core::search::{Gallery, Hit};
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use akin_figures::terminal_picture;
use akin_figures::terminal_picture::PictureFormat;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::config::DeviceName;
use crate::config::device;
use crate::pictures::loader::Pictures;

/// Find the items of a bundle that are nearest to an image, or to embeddings.
///
/// Embeds the image with an encoder of the bundle, and prints the nearest items of the gallery: their similarity and their
/// path down the tree. A bundle holds no names of files: `item` is the place of a picture in the gallery, from 0. On a
/// terminal `--pictures` shows small pictures of the items.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// The folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// The image to search with: JPEG, PNG or WebP.
    #[arg(value_name = "IMAGE", required_unless_present = "embeddings")]
    pub image: Option<PathBuf>,
    /// Search with each row of a file of embeddings instead of an image, such as `akin embed` writes it: `.npy`, `.npz`,
    /// `.safetensors`, Parquet, CSV, TSV or JSON lines, or `-` for standard input. They must come from the same encoder.
    /// The results of a row have its number, from 0, in the column `query`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "pictures", "device"])]
    pub embeddings: Option<PathBuf>,
    /// The array, tensor, column or field with the embeddings, where their file has several.
    #[arg(long, value_name = "NAME", requires = "embeddings")]
    pub embedding_column: Option<String>,
    /// How many items to print.
    #[arg(long, short = 'k', value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// The name of the encoder [default: that with the best H-AP, as on the page].
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
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
    let contents = bundle.manifest.contents();
    let number = encoder_number(&bundle.manifest, args.encoder.as_deref())?;
    let entry = bundle.manifest.encoder(number)?;
    let queries = match (&args.image, &args.embeddings) {
        (Some(image), _) => vec![embed(&bundle, entry, image, args.device)?],
        (None, Some(file)) => read_queries(file, args, entry.report.config.similarity)?,
        // One of them is required.
        (None, None) => Vec::new(),
    };

    let embeddings = bundle.manifest.gallery_embeddings(number, &bundle.file(&entry.gallery_embeddings)?)?;
    let labels = bundle.manifest.labels(&bundle.file(&contents.labels)?)?;
    let gallery = Gallery::new(&embeddings, entry.report.config.similarity)?;
    let unlike = entry.best_scores.as_ref().and_then(|scores| scores.unlike_below());
    let mut found = Vec::new();
    for query in &queries {
        let hits = gallery.nearest(query, args.count as usize, None)?;
        let is_unlike = unlike.zip(hits.first()).is_some_and(|(least, hit)| hit.score < least);
        found.push((hits, is_unlike));
    }

    let path = |item: usize| path_of(&bundle.manifest, &labels, item);
    if args.json {
        let item = |hit: &Hit| -> Value {
            json!({ "item": hit.item, "score": hit.score, "labels": path(hit.item) })
        };
        let answer = |(hits, is_unlike): &(Vec<Hit>, bool)| -> Value {
            let items: Vec<Value> = hits.iter().map(item).collect();
            json!({ "unlike_the_gallery": is_unlike, "items": items })
        };
        let mut all = json!({
            "encoder": entry.name, "similarity": entry.report.config.similarity,
            "levels": contents.taxonomy.level_names(),
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
        query.into_iter().chain(numbers).chain(path(hit.item)).collect::<Vec<_>>()
    };
    let ranked = |(query, (hits, _)): (usize, &'_ (Vec<Hit>, bool))| -> Vec<Vec<String>> {
        hits.iter().enumerate().map(|(rank, hit)| row((query, rank, hit))).collect()
    };
    let rows: Vec<Vec<String>> = found.iter().enumerate().flat_map(ranked).collect();
    let levels = contents.taxonomy.level_names().iter().map(String::as_str);
    let header: Vec<&str> =
        many.then_some("query").into_iter().chain(["rank", "score", "item"]).chain(levels).collect();
    terminal::print(&align_words(&header, &rows, terminal::width()))?;
    if args.pictures == Some(PictureFormat::Auto) && !terminal::stdout_is_terminal() {
        terminal::warn(
            "--pictures shows pictures only on a terminal; --pictures=blocks writes their colour codes",
        );
    } else if let Some(format) = args.pictures {
        for (rank, hit) in found.iter().flat_map(|(hits, _)| hits).enumerate() {
            let caption = format!("{}  {}", rank + 1, path(hit.item).join(" / "));
            let picture = terminal_picture::draw(&bundle.thumbnail(hit.item)?, format, COLUMNS)?;
            terminal::print_styled(&format!("\n{}\n{picture}", terminal::escape(&caption)))?;
        }
    }
    terminal::say(format_args!(
        "    Searched {} of {} with {}",
        counted(embeddings.len(), "item", "items"),
        contents.title,
        entry.name
    ));
    for (query, _) in found.iter().enumerate().filter(|(_, (_, is_unlike))| *is_unlike) {
        let what = match &args.image {
            Some(image) => image.display().to_string(),
            None => format!("query {query}"),
        };
        terminal::warn(format_args!(
            "{what} is unlike anything in the gallery: its best score is below that of 99 % of the gallery's own images"
        ));
    }
    Ok(())
}

/// Embeds an image with an encoder of the bundle.
fn embed(bundle: &Bundle, entry: &EncoderEntry, image: &Path, device: DeviceName) -> Result<Vec<f32>> {
    let picture = read_picture(image)?;
    let device = device::open(device)?;
    let mut architecture = entry.architecture.clone();
    let preprocessing = serde_json::to_value(&entry.preprocessing)?;
    if let Some(table) = architecture.as_object_mut() {
        table.insert("preprocessing".into(), preprocessing);
    }
    let config: EncoderConfig = serde_json::from_value(architecture).advise(
        || format!("akin does not know the architecture of the encoder {}", entry.name),
        "export the run again with this version of akin",
    )?;
    let encoder = config.load(bundle.file(&entry.weights)?, &device)?;
    Ok(encoder.embed(&[picture], &device)?)
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

/// The labels of an item, coarse → fine.
fn path_of(manifest: &Manifest, labels: &Labels, item: usize) -> Vec<String> {
    let taxonomy = &manifest.contents().taxonomy;
    let name = |(level, &class): (usize, &u32)| taxonomy.class_name(level, class).to_owned();
    (1..).zip(labels.row(item)).map(name).collect()
}

/// The image to search with.
fn read_picture(image: &Path) -> Result<Pixels> {
    let pictures = Pictures::all_required(vec![image.to_owned()]);
    let picture = pictures.get(0);
    pictures.check()?;
    picture.map(|pixels| (*pixels).clone()).ok_or_else(|| {
        problem(format!("the image {} cannot be read", image.display()), "give a JPEG, PNG or WebP file")
    })
}

/// The encoder of this name, or the one with the best H-AP.
fn encoder_number(manifest: &Manifest, name: Option<&str>) -> Result<usize> {
    let encoders = &manifest.contents().encoders;
    let Some(name) = name else {
        let score = |number: &usize| {
            let report = &encoders[*number].report;
            report.overall.get(akin_core::metrics::Metric::named("h_ap")).unwrap_or(f64::MIN)
        };
        // The first of equal scores.
        let best = (0..encoders.len()).rev().max_by(|a, b| score(a).total_cmp(&score(b)));
        return best.ok_or_else(|| problem("the bundle has no encoder", "export a run into it"));
    };
    encoders.iter().position(|encoder| encoder.name == name).ok_or_else(|| {
        let names: Vec<&str> = encoders.iter().map(|encoder| encoder.name.as_str()).collect();
        let near = did_you_mean(name, names.iter().copied());
        problem(format!("the bundle has no encoder {name:?}"), format!("{near}it has {}", a_few(&names)))
    })
}

/// A bundle on disk.
struct Bundle {
    folder: PathBuf,
    manifest: Manifest,
}

impl Bundle {
    fn open(folder: &Path) -> Result<Self> {
        const HINT: &str = "write one with `akin export RUN --out BUNDLE`, or `akin demo`";
        directory::recover(folder)?;
        let manifest = folder.join(MANIFEST);
        if !manifest.is_file()
            && let Some(error) = directory::other_kind(folder, &[Kind::Bundle], HINT)
        {
            return Err(error);
        }
        let bytes = read_regular_file(&manifest)
            .advise(|| format!("{} is not a bundle: {MANIFEST} cannot be read", folder.display()), HINT)?;
        Ok(Self { folder: folder.to_owned(), manifest: Manifest::parse(&bytes)? })
    }

    /// The bytes of a file, checked.
    fn file(&self, path: &str) -> Result<Vec<u8>> {
        let whole = self.folder.join(path);
        let bytes = read_regular_file(&whole)
            .advise(|| format!("{} cannot be read", whole.display()), "export or copy the bundle again")?;
        self.manifest.verify(path, &bytes)?;
        Ok(bytes)
    }

    /// The thumbnail of a gallery item.
    fn thumbnail(&self, item: usize) -> Result<image::RgbImage> {
        let thumbnails = &self.manifest.contents().thumbnails;
        let per_sheet = (thumbnails.columns * thumbnails.rows) as usize;
        let Some(path) = thumbnails.sheets.get(item / per_sheet) else {
            return Err(problem(format!("item {item} has no thumbnail"), "export the bundle again"));
        };
        let sheet = image::load_from_memory(&self.file(path)?)
            .advise(|| format!("{path} is damaged"), "export or copy the bundle again")?;
        let (place, side) = ((item % per_sheet) as u32, thumbnails.tile);
        let (x, y) = (place % thumbnails.columns * side, place / thumbnails.columns * side);
        Ok(sheet.crop_imm(x, y, side, side).to_rgb8())
    }
}
