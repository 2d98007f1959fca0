//! A site: the page and its bundles as one folder of static files, which any web server can serve from any path.

use std::path::Path;

use akin_core::bundle::{INDEX, MANIFEST, Manifest};
use anyhow::Result;
use walkdir::WalkDir;

use crate::bundles::Bundles;
use crate::directory::{Draft, Kind};
use crate::files::{read_regular_file, write_into_draft};
use crate::page::{EmbeddedFile, Page};
use crate::problem::Advise;

/// Writes a site and returns its bytes. An existing one is replaced only when the new one is complete.
///
/// # Errors
///
/// A folder that exists and may not be replaced; a file that cannot be read or written.
pub fn write(page: &Page, bundles: &Bundles, out: &Path, overwrite: bool) -> Result<u64> {
    let draft = Draft::create(Kind::Site, out, overwrite)?;
    match copy(page, bundles, draft.directory()) {
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

fn copy(page: &Page, bundles: &Bundles, site: &Path) -> Result<u64> {
    let mut bytes = 0;
    match page {
        Page::Folder(page) => {
            // Trunk keeps its own files in a hidden folder.
            let visible = |entry: &walkdir::DirEntry| {
                entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
            };
            for entry in WalkDir::new(page).into_iter().filter_entry(visible) {
                let entry = entry?;
                if entry.file_type().is_file() {
                    bytes += copy_file(page, &entry.path().strip_prefix(page)?.to_string_lossy(), site)?;
                }
            }
        }
        Page::Embedded => {
            for file in EmbeddedFile::all() {
                let contents = file.bytes()?;
                write_into_draft(&site.join(file.path()), &contents)?;
                bytes += contents.len() as u64;
                if let Some(copy) = file.gzipped() {
                    write_into_draft(&site.join(format!("{}.gz", file.path())), copy)?;
                    bytes += copy.len() as u64;
                }
            }
        }
    }
    for (folder, place) in bundles.places() {
        let manifest = Manifest::parse(&read_regular_file(&folder.join(MANIFEST))?)?;
        let site = site.join(place);
        for file in manifest.files() {
            bytes += copy_file(folder, &file.path, &site)?;
        }
        bytes += copy_file(folder, MANIFEST, &site)?;
    }
    write_into_draft(&site.join(INDEX), bundles.json())?;
    Ok(bytes + bundles.json().len() as u64)
}

/// Copies the file at `path` below `from` to the same path below `to`, and returns its bytes.
fn copy_file(from: &Path, path: &str, to: &Path) -> Result<u64> {
    let source = from.join(path);
    let bytes = read_regular_file(&source).advise(
        || format!("{} cannot be read", source.display()),
        "check its permissions, or build the page or write the bundle again",
    )?;
    write_into_draft(&to.join(path), &bytes)?;
    Ok(bytes.len() as u64)
}
