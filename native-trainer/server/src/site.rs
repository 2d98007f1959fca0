//! A site: the page and its bundles as one folder of static files, which any web server can serve from any path.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use akin_base::directory::{Draft, Kind};
use akin_base::files::{read_regular_file, write_into_draft};
use akin_base::problem::Advise;
use akin_core::bundle::{INDEX, MANIFEST, Manifest};
use anyhow::Result;
use walkdir::WalkDir;

use crate::bundles::Bundles;
use crate::onnxruntime::{FOLDER, OnnxRuntime, RuntimeFile};
use crate::page::{EmbeddedFile, Page};

/// Writes a site, with ONNX Runtime if `runtime` is given, and returns its bytes. An existing one is replaced only when the
/// new one is complete.
///
/// # Errors
///
/// A folder that exists and may not be replaced; a file that cannot be read or written.
pub fn write(
    page: &Page,
    runtime: Option<&OnnxRuntime>,
    bundles: &Bundles,
    out: &Path,
    overwrite: bool,
) -> Result<u64> {
    let files = files(page, runtime, bundles)?;
    let mut draft = Draft::create(Kind::Site, out, overwrite)?;
    match write_files(&mut draft, &files) {
        Ok(bytes) => {
            draft.complete()?;
            Ok(bytes)
        }
        Err(error) => {
            draft.discard();
            Err(error)
        }
    }
}

const MAKE_AGAIN: &str = "check its permissions, or build the page or write the bundle again";

fn read(path: &Path) -> Result<Vec<u8>> {
    read_regular_file(path).advise(|| format!("{} cannot be read", path.display()), MAKE_AGAIN)
}

/// A file of a site.
struct SiteFile<'a> {
    /// Relative to the site, with `/`.
    path: String,
    contents: Contents<'a>,
}

/// What a file of a site holds.
enum Contents<'a> {
    /// The same as the file at this path.
    CopyOf(PathBuf),
    /// The same as a file inside this program.
    Embedded(&'static EmbeddedFile),
    /// These bytes.
    Bytes(&'a [u8]),
}

impl Contents<'_> {
    fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::CopyOf(source) => read(source).map(Cow::Owned),
            Self::Embedded(file) => Ok(file.bytes()?),
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }
}

/// The files of the page, of ONNX Runtime and of the bundles, and the index of the bundles.
fn files<'a>(page: &Page, runtime: Option<&OnnxRuntime>, bundles: &'a Bundles) -> Result<Vec<SiteFile<'a>>> {
    let mut files = Vec::new();
    match page {
        Page::Folder(page) => {
            // `akin serve` shows no hidden files either.
            let visible = |entry: &walkdir::DirEntry| {
                let name = entry.file_name().to_string_lossy();
                entry.depth() == 0 || !(name.starts_with('.') || name == FOLDER)
            };
            for entry in WalkDir::new(page).into_iter().filter_entry(visible) {
                let entry = entry
                    .map_err(io::Error::from)
                    .advise(|| format!("{} cannot be listed", page.display()), MAKE_AGAIN)?;
                if entry.file_type().is_file() {
                    let path = entry.path().strip_prefix(page)?.to_string_lossy().into_owned();
                    files.push(SiteFile { path, contents: Contents::CopyOf(entry.into_path()) });
                }
            }
        }
        Page::Single(html) => {
            files.push(SiteFile { path: "index.html".into(), contents: Contents::Bytes(html.as_bytes()) });
        }
        Page::Embedded => {
            for file in EmbeddedFile::all() {
                files.push(SiteFile { path: file.path().to_owned(), contents: Contents::Embedded(file) });
                if let Some(copy) = file.gzipped() {
                    files.push(SiteFile {
                        path: format!("{}.gz", file.path()),
                        contents: Contents::Bytes(copy),
                    });
                }
            }
        }
    }
    for (path, file) in runtime.into_iter().flat_map(OnnxRuntime::files) {
        let contents = match file {
            RuntimeFile::CopyOf(source) => Contents::CopyOf(source),
            RuntimeFile::Bytes(bytes) => Contents::Bytes(bytes),
        };
        files.push(SiteFile { path, contents });
    }
    for (folder, place) in bundles.places() {
        let manifest = Manifest::parse(&read(&folder.join(MANIFEST))?)?;
        for path in manifest.files().iter().map(|file| &*file.path).chain([MANIFEST]) {
            let contents = Contents::CopyOf(folder.join(path));
            files.push(SiteFile { path: format!("{place}/{path}"), contents });
        }
    }
    files.push(SiteFile { path: INDEX.to_owned(), contents: Contents::Bytes(bundles.json()) });
    Ok(files)
}

fn write_files(draft: &mut Draft, files: &[SiteFile]) -> Result<u64> {
    draft.plan(files.iter().map(|file| file.path.clone()).collect())?;
    let mut sum = 0;
    for file in files {
        let bytes = file.contents.bytes()?;
        write_into_draft(&draft.directory().join(&file.path), &bytes)?;
        sum += bytes.len() as u64;
    }
    Ok(sum)
}
