//! Reading: nothing is handed out before it has been checked.

use std::collections::HashSet;
use std::ops::Deref;

use serde::Deserialize;
use serde_json::Value;

use super::{Contents, EncoderEntry, FORMAT, FileEntry, MANIFEST, MAX_DIMENSION, VERSION, canonical};
use crate::digest::sha256;
use crate::embeddings::Embeddings;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

const AGAIN: &str = "download the bundle again, or write it anew with `akin export`";
const EXPORT: &str = "write the bundle anew with `akin export`";

/// A checked manifest: the [`Contents`] of a bundle and the checksums of its files.
///
/// All paths in it are safe to join to the bundle's address, and every file named in the contents is listed
/// with the length that the contents ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    contents: Contents,
    files: Vec<FileEntry>,
    digest: String,
}

#[derive(Deserialize)]
struct Seal {
    files: Vec<FileEntry>,
    digest: String,
}

impl Deref for Manifest {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

impl Manifest {
    /// Reads and checks the bytes of `bundle.json`.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`], naming the file and what to do: no JSON, another format, a newer version, a wrong digest,
    /// a missing or wrong field, an unsafe path, a file listed twice or not at all, or counts, lengths and
    /// dimensions that do not fit each other.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| fault(format!("{MANIFEST} is damaged or cut short ({error})"), AGAIN))?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(fault(
                format!("{MANIFEST} is not of the format {FORMAT:?}"),
                "choose a directory that `akin export` has written",
            ));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => {
                return Err(fault(
                    format!("{MANIFEST} is of version {newer}, newer than the {VERSION} that is known here"),
                    "update akin (in the browser, reload the page), or export the bundle with this version",
                ));
            }
            _ => return Err(fault(format!("{MANIFEST} has no known version"), EXPORT)),
        }
        let digest = canonical::digest(&value);
        if value.get("digest").and_then(Value::as_str) != Some(&digest) {
            return Err(fault(format!("{MANIFEST} has been changed: its digest is not {digest}"), AGAIN));
        }
        let field =
            |error: serde_json::Error| fault(format!("{MANIFEST} cannot be understood: {error}"), EXPORT);
        let Seal { files, digest } = Seal::deserialize(&value).map_err(field)?;
        let contents = Contents::deserialize(&value).map_err(field)?;
        let manifest = Self { contents, files, digest };
        manifest.check()?;
        Ok(manifest)
    }

    /// What the bundle says.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Every file but `bundle.json`.
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// The digest of the manifest; since it covers the checksums of all files, of the whole bundle.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The number of items, gallery and stored queries together.
    pub fn item_count(&self) -> usize {
        self.gallery.count + self.queries.count
    }

    /// The length and checksum of a file.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the manifest lists no such file.
    pub fn file(&self, path: &str) -> Result<&FileEntry> {
        self.files
            .iter()
            .find(|file| file.path == path)
            .ok_or_else(|| fault(format!("{MANIFEST} lists no file {path:?}"), EXPORT))
    }

    /// Checks that `bytes` are those of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the manifest lists no such file, or length or SHA-256 differ.
    pub fn verify(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let file = self.file(path)?;
        if bytes.len() as u64 != file.bytes {
            let what = if (bytes.len() as u64) < file.bytes { "cut short" } else { "too long" };
            return Err(fault(
                format!("{path} is {what}: {} bytes instead of {}", bytes.len(), file.bytes),
                AGAIN,
            ));
        }
        if sha256(bytes) != file.sha256 {
            return Err(fault(format!("{path} has been changed: its SHA-256 is not {}", file.sha256), AGAIN));
        }
        Ok(())
    }

    /// An encoder by its position.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when there are not so many.
    pub fn encoder(&self, encoder: usize) -> Result<&EncoderEntry> {
        self.encoders.get(encoder).ok_or_else(|| {
            fault(
                format!(
                    "there is no encoder {encoder}: {MANIFEST} has {}, counted from 0",
                    self.encoders.len()
                ),
                "choose one of them",
            )
        })
    }

    /// The labels of all items, gallery first, from the verified bytes of their file.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the bytes are not those of the file, a class is unknown, or a label's parent is not
    /// the label before it.
    pub fn labels(&self, bytes: &[u8]) -> Result<Labels> {
        self.verify(&self.labels, bytes)?;
        let ids = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
        let labels = Labels::new(self.taxonomy.depth(), ids)?;
        for item in 0..labels.len() {
            let row = labels.row(item);
            for (position, &class) in row.iter().enumerate() {
                let level = position + 1;
                let known = (class as usize) < self.taxonomy.class_count(level);
                if !known || self.taxonomy.parent(level, class) != row[..position].last().copied() {
                    let name = &self.taxonomy.level_names()[position];
                    return Err(fault(
                        format!(
                            "{}: item {item} has {name} {class}, which is not there in the taxonomy",
                            self.labels
                        ),
                        EXPORT,
                    ));
                }
            }
        }
        Ok(labels)
    }

    /// An encoder's embeddings of the gallery, [gallery, d], from the verified bytes of their file.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when there is no such encoder, the bytes are not those of the file, or a number is not
    /// finite.
    pub fn gallery_embeddings(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let entry = self.encoder(encoder)?;
        self.embeddings(&entry.gallery_embeddings, entry.dimension, bytes)
    }

    /// An encoder's embeddings of the stored queries, [queries, d], from the verified bytes of their file.
    ///
    /// # Errors
    ///
    /// As for the gallery; also when the bundle has no stored queries.
    pub fn query_embeddings(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let entry = self.encoder(encoder)?;
        let path = entry.query_embeddings.as_ref().ok_or_else(|| {
            fault(format!("{MANIFEST} names no stored queries"), "use the gallery's items as queries")
        })?;
        self.embeddings(path, entry.dimension, bytes)
    }

    fn embeddings(&self, path: &str, dimension: usize, bytes: &[u8]) -> Result<Embeddings> {
        self.verify(path, bytes)?;
        let numbers = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
        Embeddings::new(dimension, numbers)
            .map_err(|error| fault(format!("{path}: {}", error.message()), EXPORT))
    }

    fn check(&self) -> Result<()> {
        self.check_files()?;
        self.check_items()?;
        self.evaluation_config
            .validate(self.taxonomy.depth())
            .map_err(|error| wrong(format!("evaluation_config: {}", error.message())))?;
        let mut names = HashSet::new();
        for (position, entry) in self.encoders.iter().enumerate() {
            if entry.name.trim().is_empty() || !names.insert(&entry.name) {
                return Err(wrong(format!("encoder {position} has no name of its own: {:?}", entry.name)));
            }
            self.check_encoder(entry)?;
        }
        if names.is_empty() {
            return Err(wrong("there is no encoder"));
        }
        Ok(())
    }

    fn check_files(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for file in &self.files {
            check_path(&file.path)?;
            // Some file systems do not tell upper from lower case.
            if !seen.insert(file.path.to_ascii_lowercase()) {
                return Err(wrong(format!("the file {:?} is listed twice", file.path)));
            }
            let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if file.sha256.len() != 64 || !file.sha256.bytes().all(hexadecimal) {
                return Err(wrong(format!("the SHA-256 of {:?} is not 64 hexadecimal digits", file.path)));
            }
        }
        Ok(())
    }

    fn check_items(&self) -> Result<()> {
        if self.gallery.count == 0 {
            return Err(wrong("the gallery is empty"));
        }
        let items = self
            .gallery
            .count
            .checked_add(self.queries.count)
            .ok_or_else(|| wrong("there are more items than can be counted"))?;
        self.check_length(&self.labels, &[items, self.taxonomy.depth(), 4])?;

        let super::Thumbnails { tile, columns, rows, ref sheets } = self.thumbnails;
        let sides = [tile, columns, rows];
        if sides.iter().any(|side| !(1..=65_535).contains(side)) {
            return Err(wrong(format!("thumbnails have {columns} × {rows} tiles of {tile} pixels")));
        }
        let tiles = u64::from(columns) * u64::from(rows);
        let wanted = (items as u64).div_ceil(tiles);
        if sheets.len() as u64 != wanted {
            return Err(wrong(format!(
                "{items} items need {wanted} sheets of {tiles} thumbnails, and {} are named",
                sheets.len()
            )));
        }
        sheets.iter().try_for_each(|sheet| self.file(sheet).map(drop))
    }

    fn check_encoder(&self, entry: &EncoderEntry) -> Result<()> {
        let EncoderEntry { name, dimension, .. } = entry;
        if !(1..=MAX_DIMENSION).contains(dimension) {
            return Err(wrong(format!(
                "encoder {name:?} has {dimension} dimensions, where 1 to {MAX_DIMENSION} are supported"
            )));
        }
        if entry.self_test.len() != *dimension || !entry.self_test.iter().all(|number| number.is_finite()) {
            return Err(wrong(format!(
                "the self-test of encoder {name:?} is not {dimension} finite numbers"
            )));
        }
        let levels = entry.report.levels.iter().map(|level| &level.name);
        if !levels.eq(self.taxonomy.level_names()) {
            return Err(wrong(format!(
                "the report of encoder {name:?} is not of the levels of the taxonomy"
            )));
        }
        entry
            .report
            .config
            .validate(self.taxonomy.depth())
            .map_err(|error| wrong(format!("the report of encoder {name:?}: {}", error.message())))?;
        self.file(&entry.weights)?;
        self.check_length(&entry.gallery_embeddings, &[self.gallery.count, *dimension, 4])?;
        match &entry.query_embeddings {
            Some(path) if self.queries.count > 0 => {
                self.check_length(path, &[self.queries.count, *dimension, 4])
            }
            None if self.queries.count == 0 => Ok(()),
            Some(path) => Err(wrong(format!("encoder {name:?} has {path} for no stored queries"))),
            None => Err(wrong(format!("encoder {name:?} has no embeddings of the stored queries"))),
        }
    }

    /// Checks that a file is listed with the length that the product of `factors` asks for.
    fn check_length(&self, path: &str, factors: &[usize]) -> Result<()> {
        let file = self.file(path)?;
        let wanted = factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor as u64));
        if wanted != Some(file.bytes) {
            let factors: Vec<String> = factors.iter().map(usize::to_string).collect();
            return Err(wrong(format!(
                "{path} is listed with {} bytes instead of {}",
                file.bytes,
                factors.join(" × ")
            )));
        }
        Ok(())
    }
}

/// Refuses every path that could leave the bundle, or mean something else in an address or on another system.
pub(super) fn check_path(path: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let safe = |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain);
    if path.split('/').all(safe) && !path.eq_ignore_ascii_case(MANIFEST) {
        return Ok(());
    }
    Err(fault(
        format!("{MANIFEST} has the path {path:?}, which is not safe"),
        "use relative paths of ASCII letters, digits, '-', '_' and '.', joined by '/'",
    ))
}

fn wrong(what: impl std::fmt::Display) -> Error {
    fault(format!("{MANIFEST} contradicts itself: {what}"), EXPORT)
}

pub(super) fn fault(message: String, hint: &str) -> Error {
    Error::new(Kind::Bundle, message, hint)
}
