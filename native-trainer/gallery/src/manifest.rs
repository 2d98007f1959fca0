//! `gallery.json`: what a gallery is, and which segments belong to it.

use std::io;
use std::path::Path;

use akin_base::files::{read_regular_file, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_core::bundle::FileEntry;
use akin_core::certainty::{BestScores, Calibration};
use akin_core::digest::sha256;
use akin_core::similarity::Similarity;
use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::vectors::Numbers;

/// The name of the manifest.
pub const MANIFEST: &str = "gallery.json";
/// The segments of a change that is not complete.
pub(crate) const PENDING: &str = "pending.json";

const VERSION: u32 = 1;
const MAKE_AGAIN: &str = "restore the gallery from a copy, or make it again with `akin index`";

/// What a gallery is, which is fixed when it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What embeds its pictures.
    pub encoder: EncoderNote,
    /// d, the dimension of an embedding.
    pub dimension: usize,
    /// What embeddings are ranked by.
    pub similarity: Similarity,
    /// How the numbers of the embeddings are stored.
    pub numbers: Numbers,
    /// The names of the levels, coarse to fine; none where no picture has a label.
    pub levels: Vec<String>,
}

/// What embeds the pictures of a gallery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderNote {
    /// Its name in messages.
    pub name: String,
    /// The SHA-256 of all that an embedding depends on. Embeddings of another encoder cannot be compared.
    pub digest: String,
    /// Its files.
    pub files: Vec<FileEntry>,
}

/// How certain the answers of a gallery are, measured on its own rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certainty {
    /// How certain a vote is, by its share.
    pub calibration: Option<Calibration>,
    /// The best scores of the gallery's own pictures.
    pub best_scores: Option<BestScores>,
}

/// A part of a gallery, whose files do not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// The number, of which its folder has the name.
    pub number: u64,
    /// The number of rows, removed ones included.
    pub rows: usize,
    /// The places of the rows that were removed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<u32>,
    /// Its files.
    pub files: Vec<FileEntry>,
    /// The smallest cosine between an embedding and what is stored of it; none where it is stored as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_cosine: Option<f32>,
}

impl Segment {
    /// The number of rows that belong to the gallery.
    pub(crate) fn kept(&self) -> usize {
        self.rows - self.removed.len()
    }
}

/// The contents of [`MANIFEST`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) akin: String,
    pub(crate) version: u32,
    /// What the gallery is.
    #[serde(flatten)]
    pub settings: Settings,
    /// Where the rows are, in their order.
    pub(crate) segments: Vec<Segment>,
    /// A number that no segment or encoder has had.
    pub(crate) next: u64,
    /// How certain the answers are; none where it was not measured since the rows changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
}

/// A file in JSON with the SHA-256 of what it holds.
#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    #[serde(flatten)]
    contents: T,
    sha256: String,
}

impl Manifest {
    /// The manifest of a gallery without rows.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            akin: "gallery".into(),
            version: VERSION,
            settings,
            segments: Vec::new(),
            next: 1,
            certainty: None,
        }
    }

    /// The manifest of the gallery in a folder.
    ///
    /// # Errors
    ///
    /// A folder that is no gallery; a manifest that is damaged, or of another version.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let bytes = read_regular_file(&path).advise(
            || format!("{} is not a gallery: {MANIFEST} cannot be read", folder.display()),
            "make one with `akin index MODEL PICTURES --out GALLERY`",
        )?;
        let damaged = || problem(format!("{} is damaged", path.display()), MAKE_AGAIN);
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if value["akin"] != "gallery" {
            return Err(problem(
                format!("{} is not the manifest of a gallery", path.display()),
                "make a gallery with `akin index MODEL PICTURES --out GALLERY`",
            ));
        }
        if value["version"] != VERSION {
            return Err(problem(
                format!(
                    "{} is of version {}, but this akin reads version {VERSION}",
                    path.display(),
                    value["version"]
                ),
                "use the akin that wrote it, or make the gallery again with `akin index`",
            ));
        }
        let manifest: Self = unseal(&bytes).ok_or_else(damaged)?;
        let is_sound = |segment: &Segment| {
            segment.removed.is_sorted_by(|a, b| a < b)
                && segment.removed.last().is_none_or(|&last| (last as usize) < segment.rows)
        };
        if manifest.settings.dimension == 0 || !manifest.segments.iter().all(is_sound) {
            return Err(damaged());
        }
        Ok(manifest)
    }

    /// Replaces the manifest in a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        seal(&folder.join(MANIFEST), self)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.segments.iter().map(Segment::kept).sum()
    }

    /// The number of segments.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The files of the gallery, without the manifest.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.settings.encoder.files.iter().chain(self.segments.iter().flat_map(|segment| &segment.files))
    }

    /// The smallest cosine between an embedding and what is stored of it; none where all are stored as they are.
    pub fn worst_cosine(&self) -> Option<f32> {
        self.segments.iter().filter_map(|segment| segment.worst_cosine).min_by(f32::total_cmp)
    }
}

/// Writes JSON with the SHA-256 of what it holds.
pub(crate) fn seal(path: &Path, contents: &impl Serialize) -> Result<()> {
    let sha256 = sha256(serde_json::to_string(contents)?.as_bytes());
    let json = serde_json::to_vec_pretty(&Sealed { contents, sha256 })?;
    write_atomic(path, |file| file.write_all(&json))
}

/// The contents of what [`seal`] has written; none if they are damaged.
pub(crate) fn unseal<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let Sealed { contents, sha256: stated } = serde_json::from_slice::<Sealed<T>>(bytes).ok()?;
    (sha256(serde_json::to_string(&contents).ok()?.as_bytes()) == stated).then_some(contents)
}

/// The segments of a change that is not complete.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The digest of the encoder that made their embeddings.
    pub encoder: String,
    pub segments: Vec<Segment>,
}

impl Pending {
    /// What a killed change has left in a folder; none if there is nothing, or nothing that can be used.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        match read_regular_file(&folder.join(PENDING)) {
            Ok(bytes) => Ok(unseal(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
