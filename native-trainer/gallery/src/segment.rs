//! The files of one segment.

use std::path::{Path, PathBuf};

use akin_base::files::{create_folder, read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_core::bundle::FileEntry;
use akin_core::digest::sha256;
use akin_core::embeddings::Rows as _;
use akin_formats::npy::Matrix;
use anyhow::Result;

use crate::manifest::{Segment, Settings};
use crate::rows::{self, Row};
use crate::vectors;

const ROWS: &str = "rows.parquet";
/// The folder of the segments.
pub(crate) const SEGMENTS: &str = "segments";

/// The name of the folder of a segment, in the gallery.
pub(crate) fn name(number: u64) -> String {
    format!("{SEGMENTS}/{number:06}")
}

pub(crate) fn folder(gallery: &Path, number: u64) -> PathBuf {
    gallery.join(name(number))
}

/// Writes files of a gallery, and says what they are.
pub(crate) fn write_files(
    gallery: &Path,
    folder: &str,
    files: Vec<(&str, Vec<u8>)>,
) -> Result<Vec<FileEntry>> {
    create_folder(&gallery.join(folder))?;
    let write = |(name, bytes): (&str, Vec<u8>)| {
        let path = format!("{folder}/{name}");
        write_atomic(&gallery.join(&path), |file| file.write_all(&bytes))?;
        Ok(FileEntry { path, bytes: bytes.len() as u64, sha256: sha256(&bytes) })
    };
    files.into_iter().map(write).collect()
}

/// Writes a segment.
pub(crate) fn write(
    gallery: &Path,
    settings: &Settings,
    number: u64,
    rows: &[Row],
    values: &[f32],
) -> Result<Segment> {
    assert_eq!(rows.len() * settings.dimension, values.len(), "an embedding for each row");
    let stored = vectors::store(values, settings.dimension, settings.numbers)?;
    let mut files = vec![(ROWS, rows::to_bytes(rows, &settings.levels)?)];
    files.extend(stored.files);
    let files = write_files(gallery, &name(number), files)?;
    Ok(Segment { number, rows: rows.len(), removed: Vec::new(), files, worst_cosine: stored.worst_cosine })
}

/// The rows of a segment, removed ones included.
pub(crate) fn read_rows(gallery: &Path, settings: &Settings, segment: &Segment) -> Result<Vec<Row>> {
    let path = folder(gallery, segment.number).join(ROWS);
    let bytes = read_regular_file(&path).advise(|| format!("{} cannot be read", path.display()), RESTORE)?;
    let entry = segment.files.iter().find(|file| file.path.ends_with(ROWS));
    if entry.is_none_or(|entry| sha256(&bytes) != entry.sha256) {
        return Err(problem(
            format!("{} is damaged: its SHA-256 is not that of the gallery", path.display()),
            RESTORE,
        ));
    }
    let rows = rows::from_bytes(&path, &bytes, &settings.levels)?;
    if rows.len() != segment.rows {
        return Err(problem(
            format!("{} has {} rows instead of {}", path.display(), rows.len(), segment.rows),
            RESTORE,
        ));
    }
    Ok(rows)
}

/// The embeddings of a segment, removed ones included.
pub(crate) fn open_vectors(gallery: &Path, settings: &Settings, segment: &Segment) -> Result<Matrix> {
    let folder = folder(gallery, segment.number);
    let matrix = vectors::open(&folder, settings.numbers)?;
    if (matrix.rows(), matrix.dimension()) != (segment.rows, settings.dimension) {
        return Err(problem(
            format!(
                "{} has {}×{} numbers instead of {}×{}",
                folder.join(vectors::VECTORS).display(),
                matrix.rows(),
                matrix.dimension(),
                segment.rows,
                settings.dimension
            ),
            RESTORE,
        ));
    }
    Ok(matrix)
}

pub(crate) const RESTORE: &str = "restore the gallery from a copy, or make it again with `akin index`";

/// A segment with the embeddings of another, and other rows.
pub(crate) fn relabelled(
    gallery: &Path,
    settings: &Settings,
    old: &Segment,
    number: u64,
    rows: &[Row],
) -> Result<Segment> {
    let mut files = vec![(ROWS, rows::to_bytes(rows, &settings.levels)?)];
    for name in [vectors::SCALES, vectors::VECTORS] {
        let path = folder(gallery, old.number).join(name);
        if old.files.iter().any(|file| file.path.ends_with(name)) {
            let bytes =
                read_regular_file(&path).advise(|| format!("{} cannot be read", path.display()), RESTORE)?;
            files.push((name, bytes));
        }
    }
    let files = write_files(gallery, &name(number), files)?;
    Ok(Segment { number, files, ..old.clone() })
}
