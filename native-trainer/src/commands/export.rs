//! `akin export`: writes runs, or a gallery, into a bundle for the page.

mod embeddings;
mod encoder;
mod gallery;
mod onnx;
mod parity;
mod thumbnails;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use akin_base::directory::{Draft, Kind};
use akin_base::files::{read_regular_file, whole_path, write_into_draft};
use akin_base::problem::{Advise, problem};
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{directory, shell, terminal};
use akin_core::bundle::{BundleWriter, Contents, EncoderEntry, ItemKinship, Items, label_bytes};
use akin_core::evaluate::EvaluationConfig;
use akin_core::models::BackboneEntry;
use akin_gallery::{Gallery, MANIFEST};
use akin_server::bundles::Bundles;
use akin_server::onnxruntime::OnnxRuntime;
use akin_server::{page, site};
use anyhow::Result;
use clap::Args;

use self::embeddings::EmbeddingArgs;
use self::encoder::{Added, Exported, add_encoder};
pub use self::gallery::GalleryExport;
use self::parity::parity_pictures;
use self::thumbnails::add_thumbnails;
pub use self::thumbnails::tile;
use crate::commands::arguments::ComputeArgs;
use crate::config::{Config, DataConfig, DeviceName};
use crate::data::Dataset;
use crate::evaluation::embedding::embed;
use crate::evaluation::model_card::{model_card_file, text};
use crate::evaluation::projection::Method;
use crate::exchange::{self, Exchange, Format};
use crate::pictures::loader::Pictures;
use crate::runs::code_lengths::{distinct_names, families};
use crate::runs::run::{Run, Which, refuse_twins};

/// Write runs, or a gallery, into a bundle for the browser.
///
/// A bundle is a folder of static files: encoders, gallery embeddings, taxonomy, thumbnails and results.
/// It can hold several runs over the same data, which the page compares. Of a gallery it holds the pictures that have labels.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Run directories, all over the same data. Or one gallery that `akin index` wrote.
    #[arg(value_name = "RUN|GALLERY", required_unless_present = "embeddings")]
    pub runs: Vec<PathBuf>,
    /// The folder to write.
    #[arg(long, value_name = "BUNDLE")]
    pub out: PathBuf,
    /// Write the encoder for other tools instead of a bundle: one run, in this format. The lines of Python that load it are
    /// printed.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = BUNDLE_ONLY)]
    pub to: Option<Format>,
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
    /// The folder of ONNX Runtime for the site, `dist` of the npm package onnxruntime-web, if a bundle has an ONNX file and
    /// the page comes without it.
    #[arg(long, value_name = "DIR", requires = "site")]
    pub onnxruntime: Option<PathBuf>,
    /// The gallery's name on the page [default: the name of the data folder].
    #[arg(long)]
    pub title: Option<String>,
    /// A sentence about the gallery.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// The licence of images and weights, such as "CC-BY-4.0".
    ///
    /// Where the weights that a run began with have a licence that binds whoever passes them on, as DINOv3's do, it has to
    /// name that licence.
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
    #[command(flatten)]
    pub compute: ComputeArgs,
    #[command(flatten)]
    pub embeddings: EmbeddingArgs,
}

/// The options that are for bundles alone.
const BUNDLE_ONLY: [&str; 8] = ["site", "with", "page", "thumbnail", "half", "group_bits", "maps", "no_maps"];

/// The maps that are written by default.
pub const ALL_MAPS: [Method; 4] = [Method::Pca, Method::Tsne, Method::Umap, Method::Poincare];

/// The default side of a thumbnail in pixels.
pub const TILE: u32 = 96;
/// The model card, under the name that folders and repositories show first.
const MODEL_CARD: &str = "README.md";
/// The file of credit and licence text.
pub const NOTICE: &str = "NOTICE.md";

/// Refuses a licence that leaves out that of the weights which a run began with, where this licence binds whoever passes
/// on what was trained from them, and an ONNX file whose licence is not known.
pub fn check_licences(export: &Export) -> Result<()> {
    let begun = export.runs.iter().filter(|run| run.config.model.weights.is_some());
    begun
        .map(|run| run.config.model.backbone.entry())
        .try_for_each(|entry| require_licence(entry, &export.licence))?;
    onnx::check_licences(export)
}

fn require_licence(entry: &BackboneEntry, licence: &str) -> Result<()> {
    match entry.licence {
        Some(required) if !licence.contains(required) => Err(problem(
            format!(
                "the weights of {} may be passed on only under the {required}, and `--licence` does not name it",
                entry.title
            ),
            format!("read that licence, and give `--licence \"{required}\"`, with the licence of the images"),
        )),
        _ => Ok(()),
    }
}

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
    let gallery = match &args.runs[..] {
        [folder] if folder.join(MANIFEST).is_file() => Some(folder),
        _ => None,
    };
    if let (Some(folder), Some(_)) = (gallery, args.to) {
        return Err(problem(
            format!("`--to` writes the encoder of a run, and {} is a gallery", folder.display()),
            "export the run that the gallery was made with",
        ));
    }
    if let Some(folder) = gallery
        && (args.compute.which != Which::default() || args.group_bits)
    {
        return Err(problem(
            format!("`--which` and `--group-bits` are for runs, but {} is a gallery", folder.display()),
            "remove them",
        ));
    }
    let device = args.compute.device.unwrap_or_default();
    let gallery = gallery.map(|folder| export_of_gallery(folder, device, &args.licence)).transpose()?;
    let runs = if gallery.is_some() { &[] } else { &args.runs[..] };
    let mut runs = runs.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>>>()?;
    for run in &mut runs {
        run.config.run.device = args.compute.device.unwrap_or(run.config.run.device);
    }
    let notice = args.notice.as_deref().map(read_notice).transpose()?;
    if let Some(format) = args.to {
        let [run] = &runs[..] else {
            return Err(problem(
                format!("`--to` is given with {} runs, but it writes one encoder", runs.len()),
                "export each run into a folder of its own",
            ));
        };
        return exchange::export(&Exchange {
            run,
            which: args.compute.which,
            format,
            out: &args.out,
            overwrite: args.overwrite,
            title: args.title,
            description: args.description,
            data: title_of(&run.config.data),
            licence: args.licence,
            notice,
            progress: args.compute.progress,
        });
    }
    let title = match (args.title, runs.first(), &gallery) {
        (Some(title), ..) => title,
        (None, Some(run), _) => title_of(&run.config.data),
        (None, None, Some(gallery)) => gallery.title(),
        (None, None, None) => title_of(&args.embeddings.data()?),
    };
    let settings = Export {
        runs: &runs,
        which: args.compute.which,
        out: &args.out,
        overwrite: args.overwrite,
        title,
        description: args.description,
        licence: args.licence,
        notice,
        tile: args.thumbnail,
        half: args.half,
        group_bits: args.group_bits,
        maps: if args.no_maps { &[] } else { &args.maps },
        progress: args.compute.progress,
    };
    OnnxRuntime::check(args.onnxruntime.as_deref())?;
    // Errors in licences and the site are reported before the gallery is embedded.
    check_licences(&settings)?;
    let page = match &args.site {
        Some(site) => {
            refuse_overlap(&args.out, site, &args.with)?;
            directory::check(Kind::Site, site, args.overwrite)?;
            if !args.with.is_empty() {
                Bundles::open(&args.with)?;
            }
            Some(page::plan(args.page.as_deref(), page::Build::Small)?.carry_out()?)
        }
        None => None,
    };
    match gallery {
        Some(gallery) => gallery.export(&settings)?,
        None if args.embeddings.embeddings.is_empty() => export(&settings)?,
        None => args.embeddings.export(&settings)?,
    }
    terminal::print(&args.out.display().to_string())?;
    if let (Some(site), Some(page)) = (&args.site, page) {
        let folders: Vec<PathBuf> = [args.out].into_iter().chain(args.with).collect();
        let bundles = Bundles::open(&folders)?;
        let runtime = OnnxRuntime::find(args.onnxruntime.as_deref(), &page, &bundles)?;
        let bytes = site::write(&page, runtime.as_ref(), &bundles, site, args.overwrite)?;
        args.compute
            .progress
            .say("Wrote", &format!("the site {} ({:.1} MB)", site.display(), bytes as f64 / 1e6));
        args.compute.progress.say("Next", "copy it to any path of a web server with HTTPS");
    } else {
        args.compute
            .progress
            .say("Next", &page::next_serve(&shell::path(&args.out), "shows it in the browser"));
    }
    Ok(())
}

/// The pictures of a gallery that have labels.
fn export_of_gallery(folder: &Path, device: DeviceName, licence: &str) -> Result<GalleryExport> {
    let gallery = Gallery::open(folder)?;
    let items = gallery.labelled();
    if items.is_empty() {
        let place = shell::path(folder);
        return Err(problem(
            format!("no picture of the gallery {} has a label", folder.display()),
            format!(
                "give it labels with `akin index {place} --relabel TABLE --levels COARSE,…,FINE`, or show it with \
                 `akin serve {place}`"
            ),
        ));
    }
    GalleryExport::new(gallery, &items, device, licence)
}

/// The text of `--notice`.
fn read_notice(path: &Path) -> Result<String> {
    let text = read_regular_file(path).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    text.advise(
        || format!("the notice {} cannot be read", path.display()),
        "give a text file in UTF-8 with `--notice`",
    )
}

/// Refuses a bundle that is the site or is inside it, a site inside the bundle, and a bundle that is given twice.
fn refuse_overlap(bundle: &Path, site: &Path, with: &[PathBuf]) -> Result<()> {
    let (whole, whole_site) = (whole_path(bundle)?, whole_path(site)?);
    if whole.starts_with(&whole_site) || whole_site.starts_with(&whole) {
        return Err(problem(
            format!(
                "the site {} and the bundle {} are in each other's place",
                site.display(),
                bundle.display()
            ),
            "give `--out` and `--site` two directories, neither inside the other",
        ));
    }
    for other in with {
        if whole_path(other)? == whole {
            return Err(problem(
                format!("`--with {}` is the bundle of `--out`", other.display()),
                "leave it out: the site has the new bundle anyway",
            ));
        }
    }
    Ok(())
}

/// Embeds the gallery with every run and writes the bundle, `bundle.json` last. The runs may rank by different
/// similarities, because heads differ in geometry. An existing bundle is replaced only when the new one is complete.
pub fn export(export: &Export) -> Result<()> {
    let Export { runs, out, .. } = export;
    check_runs(runs)?;
    let first = &runs[0].config;
    let configs: Vec<&Config> = runs.iter().map(|run| &run.config).collect();
    let families = if export.group_bits { families(&configs)? } else { vec![None; runs.len()] };
    directory::check(Kind::Bundle, out, export.overwrite)?;
    check_licences(export)?;
    let dataset = Dataset::load(&first.selection())?;
    let digest = dataset.digest();
    runs.iter().try_for_each(|run| run.check_data(&digest))?;
    let pictures = Pictures::of(&dataset);

    let mut bundle = BundleWriter::new();
    let mut encoders: Vec<EncoderEntry> = Vec::new();
    let (mut gallery, mut queries) = (Vec::new(), Vec::new());
    for ((run, name), family) in runs.iter().zip(distinct_names(runs)).zip(families) {
        let mut entry;
        let number = encoders.len();
        let exported = Exported::of_run(run, export, name, number, &dataset, &pictures)?;
        let (encoder, device) = (exported.encoder.clone(), exported.device.clone());
        let embed = |items: &[usize]| embed(&encoder, &pictures, items, &device, export.progress);
        Added { entry, gallery, queries } =
            add_encoder(&mut bundle, export, exported, number, &dataset, &pictures, embed)?;
        entry.family = family;
        encoders.push(entry);
    }
    let card = model_card(export, &dataset);
    write(export, bundle, card, &dataset, &pictures, &first.eval, encoders, (gallery, queries), &configs)
}

/// Adds what all encoders share, and writes the bundle. `configs` are those of the encoders, if these have any.
#[allow(clippy::too_many_arguments)]
fn write(
    export: &Export,
    mut bundle: BundleWriter,
    model_card: String,
    dataset: &Dataset,
    pictures: &Pictures,
    eval: &EvaluationConfig,
    encoders: Vec<EncoderEntry>,
    (gallery, queries): (Vec<usize>, Vec<usize>),
    configs: &[&Config],
) -> Result<()> {
    let Export { out, progress, .. } = export;
    let all: Vec<usize> = gallery.iter().chain(&queries).copied().collect();
    let labels = dataset.labels.select(&all);
    bundle.add("labels.bin", label_bytes(&labels))?;
    let mut parity = Vec::new();
    if encoders.iter().any(|encoder| encoder.weights.is_some()) {
        for (path, bytes) in parity_pictures(pictures, &gallery)? {
            bundle.add(&path, bytes)?;
            parity.push(path);
        }
    }
    let contents = Contents {
        title: export.title.clone(),
        description: export.description.clone(),
        licence: export.licence.clone(),
        model_card,
        taxonomy: dataset.taxonomy.clone(),
        gallery: Items { count: gallery.len() },
        queries: Items { count: queries.len() },
        labels: "labels.bin".into(),
        kinship: ItemKinship::new(&labels),
        thumbnails: add_thumbnails(&mut bundle, pictures, &all, export.tile)?,
        evaluation_config: eval.clone(),
        parity_pictures: parity,
        encoders,
    };
    bundle.add(MODEL_CARD, model_card_file(&contents, configs)?.into_bytes())?;
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

/// Refuses runs that cannot share a gallery.
fn check_runs(runs: &[Run]) -> Result<()> {
    refuse_twins(runs)?;
    let first = &runs[0].config;
    for run in &runs[1..] {
        let similarity = run.config.eval.similarity;
        let other_eval = run.config.eval != EvaluationConfig { similarity, ..first.eval.clone() };
        if run.config.selection() != first.selection() || other_eval {
            return Err(problem(
                format!(
                    "{} and {} differ in data, split or [eval], but a bundle has one gallery",
                    runs[0].directory.display(),
                    run.directory.display()
                ),
                "export them to separate bundles, or train them with the same [data], [split] and [eval] (and the \
                 same seed, if the split is drawn at random)",
            ));
        }
    }
    Ok(())
}

/// Writes the files of a bundle, by their paths relative to `directory`.
fn write_files(directory: &Path, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<()> {
    files.into_iter().try_for_each(|(path, bytes)| write_into_draft(&directory.join(path), &bytes))
}

/// The name of the data's folder: "grocery" for `grocery/` and for `grocery/labels.csv`.
pub fn title_of(data: &DataConfig) -> String {
    let path = data.path();
    let mut folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    // The hub of Hugging Face puts the Parquet files of every data set into such a folder.
    if matches!(data, DataConfig::Parquet(_)) && folder.ends_with("data") {
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

#[cfg(test)]
mod tests {
    use akin_core::models::BackboneConfig;

    use super::*;

    #[test]
    fn weights_that_may_be_passed_on_only_under_their_licence_need_its_name() {
        let entry = |name| BackboneConfig::named(name).unwrap().entry();
        let error = require_licence(entry("dinov3_b16"), "CC-BY-4.0").unwrap_err().to_string();
        assert!(error.contains("DINOv3 License"), "{error}");
        require_licence(entry("dinov3_b16"), "photos CC-BY-4.0, weights DINOv3 License").unwrap();
        require_licence(entry("dinov2_b14"), "").unwrap();
    }
}
