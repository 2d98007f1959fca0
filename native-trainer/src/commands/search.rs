//! `akin search`: the items of a gallery that are nearest to pictures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_base::problem::{did_you_mean, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::certainty::{Answer, Promise};
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::search::Hit;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Filter;
use akin_figures::terminal_picture;
use akin_figures::terminal_picture::PictureFormat;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use anyhow::Result;
use clap::Args;
use image::RgbImage;

use crate::commands::classify::Format;
use crate::commands::embed::{files, pictures};
use crate::commands::known_gallery::{Bundle, Found, KnownGallery, Question, parse_promise, percent};
use crate::config::DeviceName;
use crate::pictures::loader::Pictures;

/// Find the items of a gallery that are nearest to pictures, to one of its own items, or to embeddings.
///
/// Prints how far the answer of the nearest items holds, and the items: their similarity, their file and their path down the
/// tree. The search is exact, and many pictures are one pass over the gallery. A bundle has no names of files: `item` is the
/// place of a picture there, from 0. `--within` and `--not` choose the items before the search. Answers are about the whole
/// gallery, so there is none then.
#[derive(Debug, Args)]
#[command(override_usage = "akin search [OPTIONS] <GALLERY|BUNDLE> <IMAGES>...\n       \
    akin search [OPTIONS] --near <ITEM> <GALLERY|BUNDLE>\n       \
    akin search [OPTIONS] --embeddings <FILE> <GALLERY|BUNDLE>")]
pub struct SearchArgs {
    /// The folder of a gallery that `akin index` wrote, or of a bundle that `akin export` wrote.
    #[arg(value_name = "GALLERY|BUNDLE")]
    pub gallery: PathBuf,
    /// The images to search with, JPEG, PNG, WebP, GIF, BMP or TIFF, or folders of them.
    #[arg(value_name = "IMAGES", required_unless_present_any = ["embeddings", "near"])]
    pub images: Vec<PathBuf>,
    /// Search with an item of the gallery, which does not find itself: its number, from 0, or its path.
    #[arg(long, value_name = "ITEM", conflicts_with_all = ["images", "embeddings", "device"])]
    pub near: Option<String>,
    /// Search with each row of a file of embeddings instead of an image, such as `akin embed` writes it: `.npy`, `.npz`,
    /// `.safetensors`, Parquet, CSV, TSV or JSON lines, or `-` for standard input. They must come from the same encoder.
    /// The results of a row have its number, from 0, in the column `query`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["images", "pictures", "device"])]
    pub embeddings: Option<PathBuf>,
    /// The array, tensor, column or field with the embeddings, where their file has several.
    #[arg(long, value_name = "NAME", requires = "embeddings", conflicts_with_all = ["images", "near"])]
    pub embedding_column: Option<String>,
    /// How many items to print of each query.
    #[arg(long, short = 'k', value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Search only the items of this class: its name, or its path such as `Birds/Owls`. Can be repeated: then those of any of
    /// the classes. An item whose label is unknown at the level of the class is not one of its items.
    #[arg(long, value_name = "CLASS")]
    pub within: Vec<String>,
    /// Leave out the items of this class, also of one inside `--within`; can be repeated.
    #[arg(long, value_name = "CLASS")]
    pub not: Vec<String>,
    /// Print only the best item of each class of this level. Items whose label is unknown there are left out.
    #[arg(long, value_name = "LEVEL")]
    pub group_by: Option<String>,
    /// The name of the encoder, for a bundle [default: that with the best H-AP, as on the page].
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
    /// How to print the items.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Leave out images that cannot be read, and say which and how many. Otherwise nothing is printed if there is one.
    #[arg(long, conflicts_with_all = ["near", "embeddings"])]
    pub skip: bool,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Columns of characters that a picture takes.
const COLUMNS: u32 = 24;
/// The pixels of a side of a picture that is printed.
const SIDE: u32 = 192;

/// Embeds the images and prints the nearest items.
pub fn run(args: &SearchArgs) -> Result<()> {
    let place = Place::open(&args.gallery)?;
    let files = if args.images.is_empty() { Vec::new() } else { files(&args.images)? };
    let known = place.known(args, !files.is_empty())?;
    let itself = args.near.as_deref().map(|name| item_called(&known, name)).transpose()?;
    let question = question(args, &known, itself)?;
    let queries = Queries::new(args, &known, files, itself)?;
    let found = known.ask(&queries.embeddings, &question)?;
    let answers = Answers { known: &known, queries: &queries, found: &found, promise: args.promise };
    let text = match args.format {
        _ if args.json => answers.json()?,
        Format::Json => answers.json()?,
        Format::Csv => answers.csv()?,
        Format::Table => answers.table(),
    };
    terminal::print(&text)?;
    if args.pictures == Some(PictureFormat::Auto) && !terminal::stdout_is_terminal() {
        terminal::warn(
            "--pictures shows pictures only on a terminal; --pictures=blocks writes their colour codes",
        );
    } else if let Some(format) = args.pictures {
        print_pictures(&place, &answers, format)?;
    }
    args.progress.say(
        "Searched",
        &format!("{} of {} with {}", counted(known.items(), "item", "items"), place.title(), known.name),
    );
    let is_whole = question.filter.keeps_all() && question.group_by.is_none();
    if !known.is_calibrated() {
        args.progress.say("Note", place.calibration_hint());
    } else if !is_whole {
        args.progress.say("Note", "there is no answer, because its certainty was measured with all items");
    } else if !known.can_promise(args.promise) {
        terminal::warn(known.impossible_text(args.promise));
    }
    for (query, _) in found.iter().enumerate().filter(|(_, found)| found.unlike) {
        terminal::warn(format_args!(
            "{} is unlike anything in the gallery: its best score is below that of nearly all of the gallery's own images",
            queries.names[query]
        ));
    }
    if queries.skipped > 0 {
        terminal::warn(format_args!("{} could not be read", counted(queries.skipped, "image", "images")));
    }
    Ok(())
}

/// Where the gallery is.
enum Place {
    Bundle(Box<Bundle>),
    Gallery(Arc<akin_gallery::Gallery>),
}

impl Place {
    fn open(folder: &Path) -> Result<Self> {
        if folder.join(akin_gallery::MANIFEST).is_file() {
            return Ok(Self::Gallery(Arc::new(akin_gallery::Gallery::open(folder)?)));
        }
        Ok(Self::Bundle(Box::new(Bundle::open(folder)?)))
    }

    /// The gallery. Its encoder is loaded if it is to embed pictures.
    fn known(&self, args: &SearchArgs, embeds: bool) -> Result<KnownGallery> {
        let device = embeds.then_some(args.device);
        match self {
            Self::Bundle(bundle) => KnownGallery::of_bundle(bundle, args.encoder.as_deref(), device),
            Self::Gallery(_) if args.encoder.is_some() => {
                Err(problem("`--encoder` is for a bundle, but a gallery has one encoder", "remove it"))
            }
            Self::Gallery(gallery) => KnownGallery::of_gallery(gallery, device),
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Bundle(bundle) => bundle.manifest.title.clone(),
            Self::Gallery(gallery) => gallery.folder().display().to_string(),
        }
    }

    fn calibration_hint(&self) -> &'static str {
        match self {
            Self::Bundle(_) => {
                "the bundle has no calibration, so it is not known how far the answer holds; `akin export` of this version \
                 writes one where each item has one label path"
            }
            Self::Gallery(_) => "the gallery has no calibration, so it is not known how far an answer holds",
        }
    }

    /// A small picture of an item; none if its file cannot be read.
    fn picture(&self, known: &KnownGallery, item: usize) -> Result<Option<RgbImage>> {
        match self {
            Self::Bundle(bundle) => bundle.thumbnail(item).map(Some),
            Self::Gallery(_) => {
                let picture = Pictures::new(vec![known.paths[item].clone()]).get(0);
                let whole = picture.and_then(|pixels| {
                    RgbImage::from_raw(pixels.width(), pixels.height(), pixels.data().to_vec())
                });
                Ok(whole.map(|whole| image::DynamicImage::from(whole).thumbnail(SIDE, SIDE).to_rgb8()))
            }
        }
    }
}

/// What the options ask.
fn question(args: &SearchArgs, known: &KnownGallery, itself: Option<usize>) -> Result<Question> {
    Ok(Question {
        count: args.count as usize,
        promise: args.promise,
        filter: Filter::new(&known.taxonomy, &args.within, &args.not)?,
        group_by: args.group_by.as_deref().map(|level| known.taxonomy.find_level(level)).transpose()?,
        itself: itself.map(Some).into_iter().collect(),
        detailed: false,
    })
}

/// The item with this number, or of this path.
fn item_called(known: &KnownGallery, name: &str) -> Result<usize> {
    let by_path = known.paths.iter().position(|path| !name.is_empty() && path.ends_with(name));
    match (by_path, name.parse::<usize>()) {
        (Some(item), _) => Ok(item),
        (None, Ok(number)) if number < known.items() => Ok(number),
        (None, Ok(_)) => Err(problem(
            format!("the gallery has no item {name}"),
            format!("give a number from 0 to {}", known.items().saturating_sub(1)),
        )),
        (None, Err(_)) => {
            // As much of the end of each path as was given.
            let parts = Path::new(name).components().count();
            let end = |path: &PathBuf| -> PathBuf {
                path.iter().skip(path.iter().count().saturating_sub(parts)).collect()
            };
            let names: Vec<String> = known.paths.iter().map(|path| end(path).display().to_string()).collect();
            let near = did_you_mean(name, names.iter().map(String::as_str));
            let hint = format!("{near}give the number of an item, or the path of its picture in the gallery");
            Err(problem(format!("the gallery has no item {name:?}"), hint))
        }
    }
}

/// The embeddings to search with.
struct Queries {
    /// What each is called.
    names: Vec<String>,
    embeddings: Embeddings,
    /// Whether there may be several, so that each has a name in the output.
    are_many: bool,
    /// The number of images that could not be read.
    skipped: usize,
}

impl Queries {
    fn new(
        args: &SearchArgs,
        known: &KnownGallery,
        files: Vec<PathBuf>,
        itself: Option<usize>,
    ) -> Result<Self> {
        if let Some(item) = itself {
            let mut row = vec![0.0; known.rows().dimension()];
            known.rows().read(item, &mut row)?;
            let embeddings = Embeddings::new(row.len(), row)?;
            return Ok(Self { names: vec![known.item_name(item)], embeddings, are_many: false, skipped: 0 });
        }
        if let Some(file) = &args.embeddings {
            let embeddings = read_embeddings(file, args, known.similarity)?;
            let names = (0..embeddings.len()).map(|row| row.to_string()).collect();
            return Ok(Self { names, embeddings, are_many: true, skipped: 0 });
        }
        let are_many = files.len() > 1 || args.images.iter().any(|image| image.is_dir());
        let pictures = pictures(files, args.skip).without_cache();
        let embedded = known.embed(&pictures, if are_many { args.progress } else { Progress::None })?;
        Ok(Self {
            names: embedded.items.iter().map(|&item| pictures.path(item).display().to_string()).collect(),
            embeddings: embedded.embeddings,
            are_many,
            skipped: pictures.unreadable().len(),
        })
    }
}

/// The rows of a file of embeddings.
fn read_embeddings(file: &Path, args: &SearchArgs, similarity: Similarity) -> Result<Embeddings> {
    let choice = Choice { name: args.embedding_column.clone(), packed: similarity == Similarity::Hamming };
    let rows = EmbeddingFile::open(file, &choice)?;
    let mut values = vec![0.0; rows.len() * rows.dimension()];
    rows.read(0, &mut values)?;
    rows.check_unchanged()?;
    Ok(Embeddings::new(rows.dimension(), values)?)
}

/// What was found, to be printed.
struct Answers<'a> {
    known: &'a KnownGallery,
    queries: &'a Queries,
    found: &'a [Found],
    promise: Promise,
}

impl Answers<'_> {
    fn json(&self) -> Result<String> {
        let known = self.known;
        let answer = |found: &Found| known.found_json(found, self.promise);
        let mut all = known.about_json();
        match (self.found, all.as_object_mut()) {
            ([one], Some(all)) if !self.queries.are_many => {
                all.extend(answer(one).as_object().cloned().unwrap_or_default());
            }
            _ => {
                let named = |(name, found): (&String, &Found)| {
                    let mut answer = answer(found);
                    answer["query"] = name.as_str().into();
                    answer
                };
                all["queries"] = self.queries.names.iter().zip(self.found).map(named).collect();
            }
        }
        Ok(serde_json::to_string_pretty(&all)?)
    }

    fn csv(&self) -> Result<String> {
        let known = self.known;
        let mut table = csv::Writer::from_writer(Vec::new());
        let levels = known.level_names().iter().map(String::as_str);
        table.write_record(["query", "rank", "score", "item", "path"].into_iter().chain(levels))?;
        for (name, found) in self.queries.names.iter().zip(self.found) {
            for (rank, hit) in (1..).zip(&found.hits) {
                let path = known.paths.get(hit.item).map(|path| path.display().to_string());
                let place: u32 = rank;
                let cells = [
                    name.clone(),
                    place.to_string(),
                    hit.score.to_string(),
                    hit.item.to_string(),
                    path.unwrap_or_default(),
                ];
                let mut labels = known.known_path_of(hit.item);
                labels.resize(known.level_names().len(), String::new());
                table.write_record(cells.into_iter().chain(labels))?;
            }
        }
        let text = String::from_utf8(table.into_inner().map_err(|error| error.into_error())?)?;
        Ok(text.trim_end().to_owned())
    }

    fn table(&self) -> String {
        let (known, many) = (self.known, self.queries.are_many);
        let has_paths = !known.paths.is_empty();
        let row = |query: &str, rank: usize, hit: &Hit| -> Vec<String> {
            let numbers = [(rank + 1).to_string(), format!("{:.3}", hit.score), hit.item.to_string()];
            let path = has_paths.then(|| known.short_path(hit.item));
            let query = many.then(|| query.to_owned());
            query.into_iter().chain(numbers).chain(path).chain(known.path_of(hit.item)).collect()
        };
        let rows: Vec<Vec<String>> = self
            .queries
            .names
            .iter()
            .zip(self.found)
            .flat_map(|(name, found)| {
                found.hits.iter().enumerate().map(move |(rank, hit)| row(name, rank, hit))
            })
            .collect();
        let header: Vec<&str> = many
            .then_some("query")
            .into_iter()
            .chain(["rank", "score", "item"])
            .chain(has_paths.then_some("path"))
            .chain(known.level_names().iter().map(String::as_str))
            .collect();
        let table = align_words(&header, &rows, terminal::width());
        let answers = self.queries.names.iter().zip(self.found).filter_map(|(name, found)| {
            let text = self.answer_text(found.answer.as_ref()?);
            Some(match (many, name.parse::<usize>()) {
                (false, _) => text,
                (true, Ok(number)) => format!("query {number}: {text}"),
                (true, Err(_)) => format!("{name}: {text}"),
            })
        });
        let answers: Vec<String> = answers.collect();
        match answers.is_empty() {
            true => table,
            false => format!("{}\n\n{table}", answers.join("\n")),
        }
    }

    /// An answer in words and, of a single query, the certainty of each level.
    fn answer_text(&self, answer: &Answer) -> String {
        let text = self.known.answer_text(answer);
        if self.queries.are_many || answer.unlike || answer.levels.is_empty() {
            return text;
        }
        let levels = self.known.level_names();
        let level = |certain: &akin_core::certainty::Certain| {
            let class = self.known.class_name(certain.level, certain.class);
            format!("{} {class} {}", levels[certain.level - 1], percent(certain.certainty))
        };
        format!("{text}\nCertainty: {}", answer.levels.iter().map(level).collect::<Vec<_>>().join(", "))
    }
}

/// Prints the pictures of the items that were found.
fn print_pictures(place: &Place, answers: &Answers, format: PictureFormat) -> Result<()> {
    let Answers { known, queries, found, .. } = answers;
    for (name, found) in queries.names.iter().zip(*found) {
        if queries.are_many {
            terminal::print(&format!("\n{name}"))?;
        }
        for (rank, hit) in found.hits.iter().enumerate() {
            let file = known.paths.get(hit.item).map(|path| format!("{}  ", path.display()));
            let labels = known.path_of(hit.item).join(" / ");
            let caption = format!("{}  {}{labels}", rank + 1, file.unwrap_or_default());
            let picture = match place.picture(known, hit.item)? {
                Some(picture) => terminal_picture::draw(&picture, format, COLUMNS)?,
                None => String::new(),
            };
            terminal::print_styled(&format!("\n{}\n{picture}", terminal::escape(&caption)))?;
        }
    }
    Ok(())
}
