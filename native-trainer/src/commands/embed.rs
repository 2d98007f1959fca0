//! `akin embed`: the embeddings of any images, as a .npy file.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use walkdir::WalkDir;

use crate::columns::counted;
use crate::config::DeviceName;
use crate::embedding::embed;
use crate::loader::Pictures;
use crate::problem::{Advise, problem};
use crate::progress::Progress;
use crate::run::Run;
use crate::{device, npy};

/// Write the embeddings of images to a .npy file.
///
/// Together with a CSV of labels, `akin eval --queries` measures such files.
#[derive(Debug, Args)]
pub struct EmbedArgs {
    /// The run directory whose model embeds them.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Image files, or folders of them; rows come in this order, and sorted inside a folder.
    #[arg(value_name = "IMAGES", required = true)]
    pub images: Vec<PathBuf>,
    /// The file to write: float32, a row per image.
    #[arg(long, value_name = "FILE.npy")]
    pub out: PathBuf,
    /// Where tensors are computed, instead of the run's run.device.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How progress is told.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Embeds and writes.
pub fn run(args: EmbedArgs) -> Result<()> {
    let run = Run::open(&args.run)?;
    let device = device::open(args.device.unwrap_or(run.config.run.device))?;
    let encoder = run.encoder(&device)?;
    let files = files(&args.images)?;
    let items: Vec<usize> = (0..files.len()).collect();
    let pictures = Pictures::new(files);
    let progress = args.progress;
    let embedded = embed(&encoder, &pictures, &items, &device, progress);
    if let Some((path, reason)) = pictures.unreadable().into_iter().next() {
        return Err(problem(
            format!("{} cannot be read: {reason}", path.display()),
            "leave it out: every row of the file stands for one image, so none is skipped here",
        ));
    }
    npy::write(&args.out, embedded?.embeddings.values(), encoder.dimension())?;
    progress
        .say("Embedded", &format!("{} into {}", counted(items.len(), "image", "images"), args.out.display()));
    Ok(())
}

/// The files named, and those in the folders named, sorted inside each folder.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in WalkDir::new(path).sort_by_file_name() {
                let entry =
                    entry.advise(|| format!("{} cannot be read", path.display()), "check its permissions")?;
                if entry.file_type().is_file() && is_image(entry.path()) {
                    files.push(entry.into_path());
                }
            }
        } else if path.exists() {
            files.push(path.clone());
        } else {
            return Err(problem(format!("{} is not there", path.display()), "check the path"));
        }
    }
    if files.is_empty() {
        return Err(problem(
            "there is no image in what was given",
            "give JPEG, PNG or WebP files, or folders of them",
        ));
    }
    Ok(files)
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    matches!(extension.as_str(), "jpg" | "jpeg" | "png" | "webp")
}
