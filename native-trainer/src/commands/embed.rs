//! `akin embed`: embeds images and writes a .npy file.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use walkdir::WalkDir;

use crate::config::DeviceName;
use crate::counts::counted;
use crate::data::looks_like_an_image;
use crate::embedding::embed;
use crate::files::check_output;
use crate::loader::Pictures;
use crate::problem::{Advise, a_few, problem};
use crate::progress::Progress;
use crate::run::{Run, Which};
use crate::{device, npy};

/// Write the embeddings of images to a .npy file.
///
/// `akin eval --queries` evaluates such a file with a CSV file of labels.
#[derive(Debug, Args)]
pub struct EmbedArgs {
    /// The run directory of the model.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Image files, or folders of them. Rows are in this order; the files of a folder are sorted.
    #[arg(value_name = "IMAGES", required = true)]
    pub images: Vec<PathBuf>,
    /// The file to write: float32, one row per image.
    #[arg(long, value_name = "FILE.npy")]
    pub out: PathBuf,
    /// Replace FILE.npy if it exists.
    #[arg(long)]
    pub overwrite: bool,
    /// The encoder of the run.
    #[arg(long, value_enum, default_value_t)]
    pub which: Which,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Embeds the images and writes the file.
pub fn run(args: EmbedArgs) -> Result<()> {
    let run = Run::open(&args.run)?;
    let files = files(&args.images)?;
    check_output(&args.out, &[files.clone(), run.files()].concat(), args.overwrite)?;
    let device = device::open(args.device.unwrap_or(run.config.run.device))?;
    let encoder = run.encoder(args.which, &device)?;
    let items: Vec<usize> = (0..files.len()).collect();
    let pictures = Pictures::new(files);
    let progress = args.progress;
    let embedded = embed(&encoder, &pictures, &items, &device, progress);
    if let Some((path, reason)) = pictures.unreadable().into_iter().next() {
        return Err(problem(
            format!("{} cannot be read: {reason}", path.display()),
            "remove or replace the image, or give only the others: no image is skipped, so that row i is image i",
        ));
    }
    npy::write(&args.out, embedded?.embeddings.values(), encoder.dimension())?;
    progress
        .say("Embedded", &format!("{} into {}", counted(items.len(), "image", "images"), args.out.display()));
    Ok(())
}

/// The given files, and the images in the given folders, sorted inside each folder.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in WalkDir::new(path).sort_by_file_name() {
                let entry =
                    entry.advise(|| format!("{} cannot be read", path.display()), "check its permissions")?;
                if entry.file_type().is_file() && looks_like_an_image(entry.path()) {
                    files.push(entry.into_path());
                }
            }
        } else if path.exists() {
            files.push(path.clone());
        } else {
            return Err(problem(format!("{} does not exist", path.display()), "check the path"));
        }
    }
    if files.is_empty() {
        return Err(problem(
            format!("{} has no images", a_few(&paths.iter().map(|path| path.display()).collect::<Vec<_>>())),
            "give JPEG, PNG or WebP files, or folders of them",
        ));
    }
    Ok(files)
}
