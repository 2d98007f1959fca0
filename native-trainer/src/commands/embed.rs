//! `akin embed`: embeds images and writes their embeddings to a file.

use std::path::{Path, PathBuf};

use akin_base::files::check_output;
use akin_base::problem::{a_few, problem};
use akin_base::quantities::counted;
use akin_base::{directory, shell};
use akin_core::embeddings::{Embeddings, Rows};
use akin_formats::column::Column;
use akin_formats::embedding_output::EmbeddingOutput;
use akin_gallery::{Gallery, MANIFEST};
use anyhow::Result;
use clap::Args;
use walkdir::DirEntry;

use crate::commands::arguments::ComputeArgs;
use crate::commands::index::encoder::of_gallery;
use crate::commands::pretrained::{self, PretrainedArgs, is_config};
use crate::config::device;
use crate::config::{DeviceName, ModelConfig, PretrainedConfig, Selection, onnx_model};
use crate::data;
use crate::data::folder::image_files;
use crate::evaluation::embedding::embed;
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, Which};

/// Write the embeddings of images, or of a gallery, to a file.
///
/// Writes the paths of the images with them. With columns of labels added to them, `akin eval --queries` evaluates both. Of a
/// gallery without images, writes what it holds: the embeddings of its pictures with their paths, sources, sizes, times, hashes
/// and labels.
#[derive(Debug, Args)]
#[command(override_usage = "akin embed [OPTIONS] --out <FILE> <RUN|CONFIG> <IMAGES>...\n       \
    akin embed [OPTIONS] --out <FILE> --onnx <FILE> <IMAGES>...\n       \
    akin embed [OPTIONS] --out <FILE> <GALLERY> [IMAGES]...")]
pub struct EmbedArgs {
    /// The run directory of the model. Or a config, or the name of a recipe: then the model is its backbone with its
    /// published weights. Or a gallery that `akin index` wrote, which keeps its encoder. Left out with `--onnx`.
    #[arg(value_name = "RUN|CONFIG|GALLERY", required = true)]
    pub run: Option<PathBuf>,
    /// Image files, or folders of them. Rows are in this order; the files of a folder are sorted.
    #[arg(value_name = "IMAGES")]
    pub images: Vec<PathBuf>,
    /// The file to write: float32, one row per image. Its ending is the format: `.npy`, or `.npz` and `.safetensors` with an
    /// array `embeddings`; the paths of the images then go into a CSV file of the same name beside it, with the column
    /// `path`, in the same order. Or `.parquet`, `.csv`, `.tsv` and `.jsonl`, which hold the paths too. `-` writes JSON lines to
    /// standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace FILE, and the CSV file beside it, if they exist.
    #[arg(long)]
    pub overwrite: bool,
    /// Leave out images that cannot be read, and say which and how many, as `akin train` does. Otherwise nothing is written
    /// if there is one.
    #[arg(long)]
    pub skip: bool,
    #[command(flatten)]
    pub pretrained: PretrainedArgs,
    #[command(flatten)]
    pub compute: ComputeArgs,
}

/// Embeds the images and writes the file.
pub fn run(mut args: EmbedArgs) -> Result<()> {
    if args.pretrained.onnx.is_some() {
        // There is no run, so the first argument is of images too.
        args.images.splice(0..0, args.run.take());
    }
    if let Some(folder) = args.run.as_deref().filter(|folder| folder.join(MANIFEST).is_file())
        && args.images.is_empty()
    {
        return write_gallery(folder, &args);
    }
    let model = Model::open(&args)?;
    let files = files(&args.images)?;
    let output = EmbeddingOutput::new("--out", &args.out)?;
    let beside = output.beside();
    let inputs = [files.clone(), model.files(&args)].concat();
    for out in Some(&args.out).filter(|_| !output.is_printed()).into_iter().chain(&beside) {
        match model.selection() {
            Some(selection) => data::check_output(out, &inputs, &selection, args.overwrite)?,
            None => check_output(out, &inputs, args.overwrite)?,
        }
    }
    let device = device::open(args.compute.device.unwrap_or(model.device()))?;
    let encoder = match &model {
        Model::Run(run) => run.encoder(args.compute.which, &device)?,
        Model::Pretrained(config) => pretrained::encoder(&config.model, &device, args.compute.progress)?,
        Model::Onnx(model) => pretrained::encoder(model, &device, args.compute.progress)?,
        Model::Gallery(gallery) => {
            let settings = &gallery.manifest().settings;
            of_gallery(gallery.folder(), &settings.encoder, &device)?
        }
    };
    let items: Vec<usize> = (0..files.len()).collect();
    let pictures = pictures(files, args.skip);
    let progress = args.compute.progress;
    let embedded = embed(&encoder, &pictures, &items, &device, progress)?;
    let name = |&item: &usize| pictures.path(item).display().to_string();
    let paths = Column::texts("path", embedded.items.iter().map(name));
    output.write(&embedded.embeddings, &[paths])?;
    let images = counted(embedded.items.len(), "image", "images");
    let skipped = pictures.unreadable().len();
    if skipped > 0 {
        progress.say("Skipped", &format!("{} that cannot be read", counted(skipped, "image", "images")));
    }
    if output.is_printed() {
        progress.say("Embedded", &images);
        return Ok(());
    }
    progress.say("Embedded", &format!("{images} into {}", args.out.display()));
    if let Some(beside) = &beside {
        progress.say("Wrote", &format!("their paths to {}, in the same order", beside.display()));
    }
    progress.say(
        "Next",
        "with a column of labels for each level added there, `akin eval --queries` measures both",
    );
    Ok(())
}

/// Writes the embeddings and rows of a gallery.
fn write_gallery(folder: &Path, args: &EmbedArgs) -> Result<()> {
    args.pretrained.refuse(Some(folder))?;
    let gallery = Gallery::open(folder)?;
    if gallery.rows().is_empty() {
        return Err(problem(
            format!("the gallery {} has no pictures", folder.display()),
            format!("add some with `akin index {} --add PICTURES`", shell::path(folder)),
        ));
    }
    let output = EmbeddingOutput::new("--out", &args.out)?;
    let beside = output.beside();
    for out in Some(&args.out).filter(|_| !output.is_printed()).into_iter().chain(&beside) {
        check_output(out, &[], args.overwrite)?;
        directory::refuse_own_file(out)?;
    }
    let vectors = gallery.vectors();
    let mut values = vec![0.0; vectors.len() * vectors.dimension()];
    vectors.read(0, &mut values)?;
    output.write(&Embeddings::new(vectors.dimension(), values)?, &gallery.columns())?;
    let pictures = counted(vectors.len(), "picture", "pictures");
    let progress = args.compute.progress;
    if output.is_printed() {
        progress.say("Wrote", &pictures);
        return Ok(());
    }
    progress.say("Wrote", &format!("{pictures} to {}", args.out.display()));
    if let Some(beside) = &beside {
        progress.say("Wrote", &format!("their rows to {}, in the same order", beside.display()));
    }
    Ok(())
}

/// What embeds the images.
enum Model {
    Gallery(Box<Gallery>),
    Run(Box<Run>),
    Pretrained(Box<PretrainedConfig>),
    Onnx(Box<ModelConfig>),
}

impl Model {
    fn open(args: &EmbedArgs) -> Result<Self> {
        let refuse_which = |what: String| match args.compute.which == Which::default() {
            true => Ok(()),
            false => Err(problem(
                format!("`--which` is for a run, but {what}"),
                "remove it; only a run has the encoders of several steps",
            )),
        };
        let Some(run) = &args.run else {
            let onnx = args.pretrained.onnx.as_deref().unwrap_or(Path::new(""));
            refuse_which(format!("{} is an ONNX file", onnx.display()))?;
            return Ok(Self::Onnx(Box::new(onnx_model(onnx, &args.pretrained.sets.set)?)));
        };
        if run.join(MANIFEST).is_file() {
            refuse_which(format!("{} is a gallery", run.display()))?;
            args.pretrained.refuse(Some(run))?;
            return Ok(Self::Gallery(Box::new(Gallery::open(run)?)));
        }
        if is_config(run) {
            refuse_which(format!("{} is a config", run.display()))?;
            let config = args.pretrained.read(run)?;
            pretrained::provide(&config, args.pretrained.yes, false, args.compute.progress)?;
            return Ok(Self::Pretrained(Box::new(config)));
        }
        args.pretrained.refuse(Some(run))?;
        Ok(Self::Run(Box::new(Run::open(run)?)))
    }

    /// The files that it is made of.
    fn files(&self, args: &EmbedArgs) -> Vec<PathBuf> {
        match self {
            Self::Run(run) => run.files(),
            Self::Pretrained(config) => config.model.weights.iter().chain(&args.run).cloned().collect(),
            Self::Onnx(_) => args.pretrained.onnx.iter().cloned().collect(),
            Self::Gallery(_) => Vec::new(),
        }
    }

    /// The data that no output may replace.
    fn selection(&self) -> Option<Selection> {
        match self {
            Self::Run(run) => Some(run.config.selection()),
            Self::Pretrained(config) => Some(config.selection.clone()),
            Self::Onnx(_) | Self::Gallery(_) => None,
        }
    }

    fn device(&self) -> DeviceName {
        match self {
            Self::Run(run) => run.config.run.device,
            Self::Pretrained(config) => config.device,
            Self::Onnx(_) | Self::Gallery(_) => DeviceName::default(),
        }
    }
}

/// The pictures of these files. With `skip`, those that cannot be read are left out.
pub fn pictures(files: Vec<PathBuf>, skip: bool) -> Pictures {
    let hint = "give a JPEG, PNG, WebP, GIF, BMP or TIFF file in its place, or leave it out with `--skip`";
    if skip { Pictures::new(files) } else { Pictures::all_required(files, hint) }
}

/// The given files, and the images in the given folders, sorted inside each folder.
///
/// # Errors
///
/// A path that does not exist or is not UTF-8, or no image at all.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if paths.is_empty() {
        return Err(problem("no images are given", "name image files, or folders of them"));
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(image_files(path)?.into_iter().map(DirEntry::into_path));
        } else if path.exists() {
            files.push(path.clone());
        } else {
            return Err(problem(format!("{} does not exist", path.display()), "check the path"));
        }
    }
    if files.is_empty() {
        return Err(problem(
            format!("{} has no images", a_few(&paths.iter().map(|path| path.display()).collect::<Vec<_>>())),
            "give JPEG, PNG, WebP, GIF, BMP or TIFF files, or folders of them",
        ));
    }
    if let Some(file) = files.iter().find(|file| file.to_str().is_none()) {
        return Err(problem(
            format!("the path {} is not UTF-8, so a table of paths cannot hold it", file.display()),
            "rename the file or its folder",
        ));
    }
    Ok(files)
}
