//! Reads a gallery.

use std::path::{Path, PathBuf};

use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use akin_formats::column::Column;
use anyhow::Result;

use crate::manifest::{Manifest, Segment};
use crate::rows::{Row, columns};
use crate::segment::{open_vectors, read_rows};
use crate::vectors::{Part, Vectors};

/// How often a gallery is read again that a writer changes meanwhile.
const ATTEMPTS: usize = 5;

/// What stands for the classes of a gallery without labels.
const NO_CLASS: &str = "no label";

/// A gallery as it was when it was opened. What a writer does later is not seen.
#[derive(Debug)]
pub struct Gallery {
    folder: PathBuf,
    manifest: Manifest,
    rows: Vec<Row>,
    vectors: Vectors,
}

impl Gallery {
    /// Opens the gallery in a folder: reads its rows, and opens its embeddings.
    ///
    /// # Errors
    ///
    /// A folder that is no gallery; files that are missing or damaged. The SHA-256 of embeddings is not checked.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let manifest = Manifest::read(folder)?;
            match Self::read(folder, &manifest) {
                Ok((rows, vectors)) => {
                    return Ok(Self { folder: folder.to_owned(), manifest, rows, vectors });
                }
                // A writer may have joined or removed the segments after the manifest was read.
                Err(_) if attempt < ATTEMPTS && Manifest::read(folder)? != manifest => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn read(folder: &Path, manifest: &Manifest) -> Result<(Vec<Row>, Vectors)> {
        let settings = &manifest.settings;
        let mut rows = Vec::with_capacity(manifest.rows());
        let mut parts = Vec::new();
        for segment in manifest.segments.iter().filter(|segment| segment.kept() > 0) {
            let kept = kept(segment);
            parts.push(Part {
                first: rows.len(),
                kept: kept.clone(),
                matrix: open_vectors(folder, settings, segment)?,
            });
            rows.extend(select(read_rows(folder, settings, segment)?, kept.as_deref()));
        }
        Ok((rows, Vectors { dimension: settings.dimension, parts }))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its pictures.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Their embeddings, read by position. Embeddings in float16 and int8 are the numbers that are stored.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The places of the pictures that have a label.
    pub fn labelled(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&item| !self.rows[item].labels.is_empty()).collect()
    }

    /// Only the pictures at these places, which ascend.
    pub fn select(self, items: &[usize]) -> Self {
        let (mut rest, mut parts) = (items, Vec::new());
        for part in self.vectors.parts {
            let (own, others) = rest.split_at(rest.partition_point(|&item| item < part.first + part.len()));
            let place = |&item: &usize| {
                let row = item - part.first;
                part.kept.as_ref().map_or(row as u32, |kept| kept[row])
            };
            let kept = Some(own.iter().map(place).collect());
            parts.push(Part { first: items.len() - rest.len(), kept, matrix: part.matrix });
            rest = others;
        }
        let vectors = Vectors { parts, ..self.vectors };
        Self { rows: items.iter().map(|&item| self.rows[item].clone()).collect(), vectors, ..self }
    }

    /// Its pictures as the columns of a table: path, source, size, modified, sha256 and one for each level.
    pub fn columns(&self) -> Vec<Column> {
        columns(&self.rows, &self.manifest.settings.levels)
    }

    /// The names of the levels at which a picture has a label, coarse → fine.
    pub fn levels(&self) -> &[String] {
        let depth = self.rows.iter().map(|row| row.labels.len()).max().unwrap_or_default();
        let levels = &self.manifest.settings.levels;
        &levels[..depth.min(levels.len())]
    }

    /// What is known of its pictures. A class is its path down the tree.
    ///
    /// # Errors
    ///
    /// Names of levels that are empty or the same.
    pub fn known(&self) -> Result<Known> {
        let mut levels = self.levels().to_vec();
        let mut names: Vec<Vec<String>> = Vec::new();
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            if row.labels.is_empty() {
                rows.push(None);
                continue;
            }
            rows.push(Some(names.len()));
            let mut labels = row.labels.clone();
            labels.resize(levels.len(), String::new());
            names.push(labels);
        }
        if names.is_empty() {
            (levels, names) = (vec!["label".into()], vec![vec![NO_CLASS.into()]]);
        }
        let (taxonomy, labels) = Taxonomy::from_rows(&levels, &names, ClassIdentity::Path)?;
        Ok(Known { taxonomy, labels, rows: rows.contains(&None).then_some(rows) })
    }
}

/// What is known of the pictures of a gallery.
#[derive(Clone, Debug)]
pub struct Known {
    /// The label tree, without levels at which no picture has a label. Without any label it has a level with one class.
    pub taxonomy: Taxonomy,
    /// The labels of the pictures that have some; of none, one row that no picture has.
    pub labels: Labels,
    /// For each picture its row of the labels, or none for a picture without labels. Without this, that is its place.
    pub rows: Option<Vec<Option<usize>>>,
}

/// The places of the rows of a segment that belong to the gallery; none if all do.
pub(crate) fn kept(segment: &Segment) -> Option<Vec<u32>> {
    if segment.removed.is_empty() {
        return None;
    }
    let mut removed = segment.removed.iter().copied().peekable();
    let is_kept = |&place: &u32| removed.next_if_eq(&place).is_none();
    Some((0..segment.rows as u32).filter(is_kept).collect())
}

/// The rows at these places.
pub(crate) fn select(rows: Vec<Row>, kept: Option<&[u32]>) -> Vec<Row> {
    match kept {
        None => rows,
        Some(kept) => kept.iter().map(|&place| rows[place as usize].clone()).collect(),
    }
}
