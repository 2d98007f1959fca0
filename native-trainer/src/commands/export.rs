//! `akin export`: writes runs into a bundle for the page.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use akin_base::counts::counted;
use akin_base::directory::{Draft, Kind};
use akin_base::files::{read_regular_file, write_into_draft};
use akin_base::problem::{Advise, problem};
use akin_base::progress::Progress;
use akin_base::{directory, shell, terminal};
use akin_core::ancestors::Ancestors;
use akin_core::bundle::{
    Affinity, BestScores, BundleWriter, Contents, ElementType, EncoderEntry, Items, Map, MapProxies,
    NO_ANCESTOR, QueryTable, Thumbnails, coordinate_bytes, embedding_bytes, label_bytes, number_bytes,
};
use akin_core::embeddings::Embeddings;
use akin_core::encoder::EncoderConfig;
use akin_core::evaluate::{EvaluationConfig, Labelled};
use akin_core::image::{Filter, Pixels, self_test_pattern};
use akin_core::similarity::Similarity;
use akin_server::bundles::Bundles;
use akin_server::{page, site};
use anyhow::Result;
use clap::Args;
use image::codecs::jpeg::JpegEncoder;
use rayon::prelude::*;
use serde_json::Value;

use crate::config::device;
use crate::config::{Config, DataConfig, DataKind, DeviceName};
use crate::data::Dataset;
use crate::evaluation::class_scores::{ClassScores, class_scores, first_shared_levels, query_table};
use crate::evaluation::embedding::evaluate_dataset;
use crate::evaluation::model_card::{model_card_file, text};
use crate::evaluation::projection::{Method, Projection, project};
use crate::pictures::loader::Pictures;
use crate::runs::families::{distinct_names, families};
use crate::runs::run::{Run, Which, encoder_config, refuse_twins};
use crate::training::learned_ancestors;

/// Write runs into a bundle for the browser.
///
/// A bundle is a folder of static files: encoders, gallery embeddings, taxonomy, thumbnails and results.
/// It can hold several runs over the same data, which the page compares.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Run directories, all over the same data.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The folder to write.
    #[arg(long, value_name = "BUNDLE")]
    pub out: PathBuf,
    /// Replace an existing bundle, and an existing site.
    #[arg(long)]
    pub overwrite: bool,
    /// Also write a site: the page with this bundle, as one folder of static files.
    ///
    /// Any web server can serve it from any path. Takes the page as `akin serve` does.
    #[arg(long, value_name = "DIR")]
    pub site: Option<PathBuf>,
    /// Other bundles of the site, between which its page switches. Give the option once for each.
    #[arg(long, value_name = "BUNDLE", requires = "site")]
    pub with: Vec<PathBuf>,
    /// The folder of a page that is already built, for the site.
    #[arg(long, value_name = "DIR", requires = "site")]
    pub page: Option<PathBuf>,
    /// The gallery's name on the page [default: the name of the data folder].
    #[arg(long)]
    pub title: Option<String>,
    /// A sentence about the gallery.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// The licence of images and weights, such as "CC-BY-4.0".
    #[arg(long, default_value = "", hide_default_value = true)]
    pub licence: String,
    /// Credit and licence text of the data, in Markdown: stored in the bundle and shown under its models.
    #[arg(long, value_name = "FILE")]
    pub notice: Option<PathBuf>,
    /// The side of a thumbnail in pixels, 16 to 512. Half the side takes about a third of the space.
    #[arg(long, value_name = "PIXELS", default_value_t = TILE, value_parser = clap::value_parser!(u32).range(16..=512))]
    pub thumbnail: u32,
    /// Store embeddings in half precision, which halves their size. Pages older than this version refuse such a bundle.
    ///
    /// Embeddings of the Poincaré ball stay in full precision, because rounding could move one out of the ball.
    #[arg(long)]
    pub half: bool,
    /// Show runs that differ only in the number of bits as one encoder, of which the page lets its reader choose the
    /// bits. The runs embed into binary codes: `head.geometry` is binary.
    #[arg(long)]
    pub group_bits: bool,
    /// The maps of the gallery. The Poincaré disk is for encoders that embed into the Poincaré ball; others have none.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "METHODS", default_values_t = ALL_MAPS)]
    pub maps: Vec<Method>,
    /// Write no maps.
    #[arg(long, conflicts_with = "maps")]
    pub no_maps: bool,
    /// The encoder of each run.
    #[arg(long, value_enum, default_value_t)]
    pub which: Which,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// The maps that are written by default.
pub const ALL_MAPS: [Method; 4] = [Method::Pca, Method::Tsne, Method::Umap, Method::Poincare];

/// The default side of a thumbnail in pixels.
pub const TILE: u32 = 96;
/// The number of columns, and of rows, of a full sheet of thumbnails.
const GRID: u32 = 20;
/// The JPEG quality of the sheets.
const QUALITY: u8 = 85;
/// The number of nearest items stored for each proxy.
const NEAREST: usize = 8;
/// The model card, under the name that folders and repositories show first.
const MODEL_CARD: &str = "README.md";
/// The file of credit and licence text.
pub const NOTICE: &str = "NOTICE.md";

/// What to write into a bundle.
pub struct Export<'a> {
    /// The runs, on the same data.
    pub runs: &'a [Run],
    /// The encoder of each run.
    pub which: Which,
    /// The folder to write.
    pub out: &'a Path,
    /// Whether to replace an existing bundle.
    pub overwrite: bool,
    /// The gallery's name on the page.
    pub title: String,
    /// A sentence about the gallery.
    pub description: String,
    /// The licence of images and weights.
    pub licence: String,
    /// Credit and licence text of the data, in Markdown.
    pub notice: Option<String>,
    /// The side of a thumbnail in pixels.
    pub tile: u32,
    /// Whether to store embeddings in half precision, except those of the Poincaré ball.
    pub half: bool,
    /// Whether runs that differ only in the number of bits are a family.
    pub group_bits: bool,
    /// The maps of the gallery.
    pub maps: &'a [Method],
    /// How to show progress.
    pub progress: Progress,
}

impl<'a> Export<'a> {
    /// The last encoders with all maps, as `akin export` writes them without further options.
    pub fn new(runs: &'a [Run], out: &'a Path, title: String, progress: Progress) -> Self {
        Self {
            runs,
            which: Which::Last,
            out,
            overwrite: false,
            title,
            description: String::new(),
            licence: String::new(),
            notice: None,
            tile: TILE,
            half: false,
            group_bits: false,
            maps: &ALL_MAPS,
            progress,
        }
    }
}

/// Writes a bundle and prints its path.
pub fn run(args: ExportArgs) -> Result<()> {
    let mut runs = args.runs.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>>>()?;
    for run in &mut runs {
        run.config.run.device = args.device.unwrap_or(run.config.run.device);
    }
    // Errors in the site are reported before the gallery is embedded.
    let page = match &args.site {
        Some(site) => {
            directory::check(Kind::Site, site, args.overwrite)?;
            if !args.with.is_empty() {
                Bundles::open(&args.with)?;
            }
            Some(page::plan(args.page.as_deref())?.carry_out()?)
        }
        None => None,
    };
    let title = args.title.unwrap_or_else(|| title_of(&runs[0].config.data));
    let notice = args.notice.map(|path| {
        let text =
            read_regular_file(&path).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        text.advise(
            || format!("the notice {} cannot be read", path.display()),
            "give a text file in UTF-8 with `--notice`",
        )
    });
    export(&Export {
        runs: &runs,
        which: args.which,
        out: &args.out,
        overwrite: args.overwrite,
        title,
        description: args.description,
        licence: args.licence,
        notice: notice.transpose()?,
        tile: args.thumbnail,
        half: args.half,
        group_bits: args.group_bits,
        maps: if args.no_maps { &[] } else { &args.maps },
        progress: args.progress,
    })?;
    terminal::print(&args.out.display().to_string())?;
    if let (Some(site), Some(page)) = (&args.site, page) {
        let folders: Vec<PathBuf> = [args.out].into_iter().chain(args.with).collect();
        let bytes = site::write(&page, &Bundles::open(&folders)?, site, args.overwrite)?;
        args.progress.say("Wrote", &format!("the site {} ({:.1} MB)", site.display(), bytes as f64 / 1e6));
        args.progress.say("Next", "copy it to any path of a web server with HTTPS");
    } else {
        args.progress.say("Next", &page::next_serve(&shell::path(&args.out), "shows it in the browser"));
    }
    Ok(())
}

/// Embeds the gallery with every run and writes the bundle, `bundle.json` last. The runs may rank by different
/// similarities, because heads differ in geometry. An existing bundle is replaced only when the new one is complete.
pub fn export(export: &Export) -> Result<()> {
    let Export { runs, out, progress, .. } = export;
    let first = &runs[0].config;
    refuse_twins(runs)?;
    for run in &runs[1..] {
        // Where the data have no split of their own, the seed draws it.
        let other_split = first.data.splits_by_run_seed() && run.config.run.seed != first.run.seed;
        let similarity = run.config.eval.similarity;
        let other_eval = run.config.eval != EvaluationConfig { similarity, ..first.eval.clone() };
        if run.config.data != first.data || other_eval || other_split {
            return Err(problem(
                format!(
                    "{} and {} differ in data, split or [eval], but a bundle has one gallery",
                    runs[0].directory.display(),
                    run.directory.display()
                ),
                "export them to separate bundles, or train them with the same [data] and [eval] (and the \
                 same seed, if the split is drawn at random)",
            ));
        }
    }
    let configs: Vec<&Config> = runs.iter().map(|run| &run.config).collect();
    let families = if export.group_bits { families(&configs)? } else { vec![None; runs.len()] };
    directory::check(Kind::Bundle, out, export.overwrite)?;
    let dataset = Dataset::load(&first.data, first.run.seed)?;
    let digest = dataset.digest();
    runs.iter().try_for_each(|run| run.check_data(&digest))?;
    let pictures = Pictures::of(&dataset);

    let mut bundle = BundleWriter::new();
    let mut encoders: Vec<EncoderEntry> = Vec::new();
    // Gallery items and stored queries.
    let mut items: Option<(Vec<usize>, Vec<usize>)> = None;
    for ((run, name), family) in runs.iter().zip(distinct_names(runs)).zip(families) {
        let device = device::open(run.config.run.device)?;
        let encoder = run.encoder(export.which, &device)?;
        // The model card has an interval with each result.
        let bootstrap = Some(run.config.eval.bootstrap.unwrap_or_default());
        let eval = EvaluationConfig { bootstrap, ..run.config.eval.clone() };
        let mut evaluation = evaluate_dataset(&encoder, &dataset, &pictures, &eval, &device, *progress)?;
        let per_query = std::mem::take(&mut evaluation.report.per_query);
        let (gallery, queries) = match evaluation.gallery {
            Some(gallery) => (gallery, Some(evaluation.queries)),
            None => (evaluation.queries, None),
        };
        let folder = slug(&name, encoders.len());
        // The browser loads the weights in half precision, so the self-test uses these too.
        let half = encoder.to_half_bytes()?;
        check_size(&name, half.len())?;
        let config = encoder_config(&run.config);
        let shipped = config.load(half.clone(), &device)?;
        let pattern = self_test_pattern(shipped.preprocessing().side())?;
        let self_test = shipped.embed(&[pattern], &device)?;
        let similarity = run.config.eval.similarity;
        let element_type = match similarity {
            Similarity::Poincare { .. } => ElementType::F32,
            _ if export.half => ElementType::F16,
            _ => ElementType::F32,
        };
        let extension = match element_type {
            ElementType::F32 => "f32",
            ElementType::F16 => "f16",
        };
        let mut entry = EncoderEntry {
            description: run.config.loss.describe(),
            family,
            architecture: architecture(&config)?,
            preprocessing: config.preprocessing.clone(),
            dimension: encoder.dimension(),
            weights: format!("{folder}/weights.bpk"),
            gallery_embeddings: format!("{folder}/gallery.{extension}"),
            query_embeddings: queries.as_ref().map(|_| format!("{folder}/queries.{extension}")),
            element_type,
            self_test,
            maps: Vec::new(),
            best_scores: BestScores::of_gallery(&rounded(&gallery.embeddings, element_type)?, similarity)?,
            affinities: Vec::new(),
            query_scores: None,
            report: evaluation.report,
            name,
        };
        let gallery_labels = dataset.labels.select(&gallery.items);
        let proxies = if export.maps.contains(&Method::Poincare) {
            learned_ancestors(run, export.which, &dataset, &pictures, &device)?
        } else {
            None
        };
        let projections = project(
            &gallery.embeddings,
            similarity,
            proxies.as_ref(),
            export.maps,
            run.config.run.seed,
            *progress,
        )?;
        for Projection { method, description, geometry, points, proxies: proxy_points } in projections {
            let coordinates = format!("{folder}/{}", method.file_name());
            bundle.add(&coordinates, coordinate_bytes(&points))?;
            let proxies = match (&proxies, proxy_points) {
                (Some(proxies), Some(points)) => {
                    let ancestors =
                        Ancestors::new(&gallery.embeddings, &gallery_labels, proxies, similarity)?;
                    Some(add_proxies(&mut bundle, &folder, &ancestors, &points, gallery.items.len())?)
                }
                _ => None,
            };
            entry.maps.push(Map { name: method.name().into(), description, coordinates, geometry, proxies });
        }
        for ClassScores { level, classes, scores } in
            class_scores(&gallery.embeddings, &gallery_labels, similarity)?
        {
            let path = format!("{folder}/affinity-{level}.f32");
            bundle.add(&path, embedding_bytes(&scores, ElementType::F32))?;
            entry.affinities.push(Affinity { level, classes, scores: path });
        }
        let first = match &queries {
            Some(queries) => first_shared_levels(
                Labelled { embeddings: &queries.embeddings, labels: &dataset.labels.select(&queries.items) },
                Labelled { embeddings: &gallery.embeddings, labels: &gallery_labels },
                false,
                similarity,
            )?,
            None => {
                let gallery = Labelled { embeddings: &gallery.embeddings, labels: &gallery_labels };
                first_shared_levels(gallery, gallery, true, similarity)?
            }
        };
        let (columns, scores) = query_table(&per_query, &first);
        let path = format!("{folder}/query-scores.f32");
        bundle.add(&path, embedding_bytes(&scores, ElementType::F32))?;
        entry.query_scores = Some(QueryTable { columns, scores: path });
        bundle.add(&entry.weights, half)?;
        bundle.add(&entry.gallery_embeddings, embedding_bytes(gallery.embeddings.values(), element_type))?;
        if let (Some(path), Some(queries)) = (&entry.query_embeddings, &queries) {
            bundle.add(path, embedding_bytes(queries.embeddings.values(), element_type))?;
        }
        encoders.push(entry);
        items.get_or_insert((gallery.items, queries.map(|queries| queries.items).unwrap_or_default()));
    }

    let (gallery, queries) = items.unwrap_or_default();
    let all: Vec<usize> = gallery.iter().chain(&queries).copied().collect();
    bundle.add("labels.bin", label_bytes(&dataset.labels.select(&all)))?;
    let mut sheets = Vec::new();
    for (number, tiles) in all.chunks((GRID * GRID) as usize).enumerate() {
        let path = format!("thumbnails-{number}.jpg");
        bundle.add(&path, sheet(&pictures, tiles, export.tile)?)?;
        sheets.push(path);
    }
    let contents = Contents {
        title: export.title.clone(),
        description: export.description.clone(),
        licence: export.licence.clone(),
        model_card: model_card(export, &dataset),
        taxonomy: dataset.taxonomy.clone(),
        gallery: Items { count: gallery.len() },
        queries: Items { count: queries.len() },
        labels: "labels.bin".into(),
        thumbnails: Thumbnails { tile: export.tile, columns: GRID, rows: GRID, sheets },
        evaluation_config: first.eval.clone(),
        encoders,
    };
    bundle.add(MODEL_CARD, model_card_file(&contents, &configs)?.into_bytes())?;
    if let Some(notice) = &export.notice {
        bundle.add(NOTICE, notice.clone().into_bytes())?;
    }
    let files = bundle.finish(&contents)?;
    let draft = Draft::create(Kind::Bundle, out, export.overwrite)?;
    let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    match write_files(draft.directory(), files) {
        Ok(()) => draft.complete()?,
        Err(error) => {
            draft.discard();
            return Err(error);
        }
    }
    progress.say("Exported", &format!("{} ({:.1} MB)", out.display(), size as f64 / 1e6));
    Ok(())
}

/// The parts of an encoder, as the engine of the page reads them.
fn architecture(config: &EncoderConfig) -> Result<Value> {
    let mut parts = serde_json::to_value(config)?;
    // Has an entry of its own.
    parts.as_object_mut().map(|parts| parts.remove("preprocessing"));
    Ok(parts)
}

/// Adds the files of a map's proxies.
fn add_proxies(
    bundle: &mut BundleWriter,
    folder: &str,
    ancestors: &Ancestors,
    points: &[[f32; 2]],
    items: usize,
) -> Result<MapProxies> {
    let per_proxy = NEAREST.min(items);
    let nearest: Vec<Vec<usize>> = (0..points.len())
        .into_par_iter()
        .map(|proxy| ancestors.nearest(proxy, per_proxy))
        .collect::<akin_core::Result<_>>()?;
    let lines: Vec<Vec<Option<usize>>> =
        (0..items).into_par_iter().map(|item| ancestors.line(item)).collect::<akin_core::Result<_>>()?;
    let numbers: Vec<u32> = nearest.into_iter().flatten().map(|item| item as u32).collect();
    let line_numbers: Vec<u32> =
        lines.into_iter().flatten().map(|proxy| proxy.map_or(NO_ANCESTOR, |proxy| proxy as u32)).collect();
    let proxies = MapProxies {
        count: points.len(),
        coordinates: format!("{folder}/proxies.f32"),
        per_proxy,
        nearest: format!("{folder}/proxies-nearest.u32"),
        ancestors: format!("{folder}/ancestors.u32"),
    };
    bundle.add(&proxies.coordinates, coordinate_bytes(points))?;
    bundle.add(&proxies.nearest, number_bytes(&numbers))?;
    bundle.add(&proxies.ancestors, number_bytes(&line_numbers))?;
    Ok(proxies)
}

/// The embeddings as a reader of the bundle gets them.
fn rounded(embeddings: &Embeddings, element_type: ElementType) -> akin_core::Result<Embeddings> {
    let values = embeddings.values().iter().map(|&number| element_type.round(number)).collect();
    Embeddings::new(embeddings.dimension(), values)
}

/// Writes the files of a bundle, by their paths relative to `directory`.
fn write_files(directory: &Path, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<()> {
    files.into_iter().try_for_each(|(path, bytes)| write_into_draft(&directory.join(path), &bytes))
}

/// A sheet of thumbnails as JPEG: the central square of each picture, row by row.
fn sheet(pictures: &Pictures, items: &[usize], side: u32) -> Result<Vec<u8>> {
    let rows = (items.len() as u32).div_ceil(GRID);
    let mut sheet = image::RgbImage::new(GRID * side, rows * side);
    let tiles: Vec<Option<Pixels>> =
        items.par_iter().map(|&item| tile(&*pictures.get(item)?, side).ok()).collect();
    pictures.check()?;
    for (place, tile) in (0..).zip(tiles) {
        let tile = tile.and_then(|tile| image::RgbImage::from_raw(side, side, tile.into_data()));
        if let Some(tile) = tile {
            let (x, y) = (place % GRID * side, place / GRID * side);
            image::imageops::replace(&mut sheet, &tile, i64::from(x), i64::from(y));
        }
    }
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, QUALITY).encode_image(&sheet)?;
    Ok(bytes)
}

/// The central square of a picture, `side` pixels wide.
pub fn tile(picture: &Pixels, side: u32) -> akin_core::Result<Pixels> {
    let whole = picture.width().min(picture.height());
    let (x, y) = ((picture.width() - whole) / 2, (picture.height() - whole) / 2);
    let whole = f64::from(whole);
    picture.resize_region(f64::from(x), f64::from(y), whole, whole, side, side, Filter::Bicubic)
}

/// A folder name of ASCII letters, digits and dashes.
fn slug(name: &str, number: usize) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    format!("{number}-{}", plain.trim_matches('-'))
}

/// The name of the data's folder: "grocery" for `grocery/` and for `grocery/labels.csv`.
pub fn title_of(data: &DataConfig) -> String {
    let path = data.path.as_path();
    let mut folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    // The hub of Hugging Face puts the Parquet files of every data set into such a folder.
    if data.kind == DataKind::Parquet && folder.ends_with("data") {
        folder = folder.parent().filter(|above| above.file_name().is_some()).unwrap_or(folder);
    }
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The model card, in Markdown: what the models are and what they were trained on.
fn model_card(export: &Export, dataset: &Dataset) -> String {
    let levels = dataset.taxonomy.level_names();
    let splits: Vec<String> = dataset
        .splits
        .named()
        .into_iter()
        .map(|(name, items)| {
            let classes: BTreeSet<u32> = dataset.classes(items, levels.len()).into_iter().collect();
            format!(
                "- {name}: {} in {} of the level *{}*",
                counted(items.len(), "image", "images"),
                counted(classes.len(), "class", "classes"),
                text(&levels[levels.len() - 1])
            )
        })
        .collect();
    let models: Vec<String> = export
        .runs
        .iter()
        .map(|run| format!("- **{}**: {}", text(&run.config.run.name), text(&run.config.loss.describe())))
        .collect();
    let notice = export.notice.as_ref().map(|notice| format!("\n{}\n", notice.trim())).unwrap_or_default();
    format!(
        "## Models\n\n{}\n\n## Data\n\n{}\n\nLevels, coarse to fine: {}.\n\n## Limits\n\nTrained on {} only. \
         An image unlike those still gets nearest neighbours, so a near neighbour does not prove kinship.\n{notice}",
        models.join("\n"),
        splits.join("\n"),
        levels.iter().map(|level| text(level)).collect::<Vec<_>>().join(", "),
        text(&export.title),
    )
}

/// The largest encoder that is exported, in bytes. A phone downloads and holds it.
const LARGEST_ENCODER: usize = 60_000_000;

/// Refuses an encoder that is too large for a browser.
fn check_size(name: &str, bytes: usize) -> Result<()> {
    if bytes <= LARGEST_ENCODER {
        return Ok(());
    }
    Err(problem(
        format!(
            "the encoder {name} has {:.1} MB in half precision, and a browser loads at most 60 MB",
            bytes as f64 / 1e6
        ),
        "train a smaller backbone; `akin list backbones` shows their sizes",
    ))
}

#[cfg(test)]
mod tests {
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::models::{BackboneConfig, Pooling};
    use serde_json::json;

    use super::*;

    /// An encoder that the page pools otherwise gives other embeddings.
    #[test]
    fn the_architecture_has_the_pooling() {
        let mut config = EncoderConfig {
            backbone: BackboneConfig::named("squeezenet").unwrap(),
            pooling: None,
            head: None,
            preprocessing: Preprocessing::new(Normalisation::Imagenet, 64).unwrap(),
        };
        assert_eq!(
            architecture(&config).unwrap(),
            json!({ "backbone": { "kind": "squeezenet" }, "head": null })
        );
        config.pooling = Some(Pooling::Max);
        assert_eq!(architecture(&config).unwrap()["pooling"], "max");
    }
}
