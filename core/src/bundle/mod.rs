//! The bundle: a directory of static files that the browser app loads. Bytes in, bytes out; no files are touched.
//!
//! Version 1 is `bundle.json`, the [`Manifest`], and beside it
//!
//! | file | bytes |
//! |---|---|
//! | labels | u32, little-endian, [gallery + queries, L], coarse → fine: gallery items first, then stored queries |
//! | embeddings, per encoder | f32, little-endian, [items, dimension] |
//! | weights, per encoder | as the encoder's architecture writes them |
//! | thumbnail sheets | images of `columns` × `rows` tiles; items in the order of the labels, row by row, sheet by sheet |
//!
//! The manifest lists the length and SHA-256 of every file and the digest of itself, so that a reader finds every
//! changed or missing byte before it uses one. These are checksums against damage, not signatures.
//!
//! # The digest
//!
//! The SHA-256, in lower-case hexadecimal, of the manifest without its `digest` in canonical form: the JSON text
//! without spaces, the keys of every object sorted by their bytes, strings and numbers as `serde_json` prints them
//! (integers plain; other numbers the shortest decimal that reads back as the same f64, `1.0` with its fraction;
//! non-ASCII characters unescaped). It is computed from the parsed value, so how the file is laid out does not matter.
//!
//! # Versions
//!
//! Readers ignore fields that they do not know (the digest still covers them), so what an old reader can do without
//! may be added to version 1. Whatever an old reader would get wrong needs a new version, which it refuses.
//! Preprocessing and evaluation settings are the exception: an unknown one there would change embeddings or metrics,
//! and is refused.

mod canonical;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::evaluate::{EvaluationConfig, Report};
use crate::image::Preprocessing;
use crate::taxonomy::Taxonomy;

pub use read::Manifest;
pub use write::{BundleWriter, embedding_bytes, label_bytes};

/// The name of the manifest's file.
pub const MANIFEST: &str = "bundle.json";

/// The version that this library writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// The most dimensions an embedding of a bundle may have.
pub const MAX_DIMENSION: usize = 16_384;

const FORMAT: &str = "akin-bundle";

/// What a bundle says, without the checksums of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// A short name for people.
    pub title: String,
    /// What is in it, in a sentence or two.
    pub description: String,
    /// The licence of images and weights, as an SPDX expression where there is one.
    pub licence: String,
    /// What the models are, were trained on and are not good for: Markdown.
    pub model_card: String,
    /// The label tree.
    pub taxonomy: Taxonomy,
    /// The items that are ranked.
    pub gallery: Items,
    /// Stored queries; with none, the gallery is its own query set, and a query never ranks itself.
    pub queries: Items,
    /// The path of the labels.
    pub labels: String,
    /// The small pictures of all items.
    pub thumbnails: Thumbnails,
    /// How the reports were computed, and how the page computes its metrics; what an encoder's embeddings are ranked
    /// by stands in its own report.
    pub evaluation_config: EvaluationConfig,
    /// The encoders over this gallery, at least one, each with its own name.
    pub encoders: Vec<EncoderEntry>,
}

/// A set of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items {
    /// How many there are.
    pub count: usize,
}

/// Thumbnails on sheets: square tiles in rows, gallery items first, then stored queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thumbnails {
    /// The side of a tile in pixels.
    pub tile: u32,
    /// Tiles a row of a sheet.
    pub columns: u32,
    /// Rows of a full sheet.
    pub rows: u32,
    /// The paths of the sheets; all but the last are full.
    pub sheets: Vec<String>,
}

/// One encoder of a bundle, and what it made of the items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderEntry {
    /// A short name for people, its own in the bundle.
    pub name: String,
    /// What sets it apart, in a sentence.
    pub description: String,
    /// The network; its meaning belongs to `models`.
    pub architecture: serde_json::Value,
    /// What is done to an image first.
    pub preprocessing: Preprocessing,
    /// d, the length of an embedding.
    pub dimension: usize,
    /// The path of the weights.
    pub weights: String,
    /// The path of the gallery's embeddings.
    pub gallery_embeddings: String,
    /// The path of the stored queries' embeddings; `None` exactly when there are no stored queries.
    pub query_embeddings: Option<String>,
    /// The embedding of [`self_test_pattern`](crate::image::self_test_pattern) at the side that the preprocessing
    /// names, computed on the CPU at export: d numbers.
    pub self_test: Vec<f32>,
    /// The evaluation of the encoder on this gallery, without its rows per query.
    pub report: Report,
}

/// A file of a bundle and its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the bundle: names of ASCII letters, digits, `-`, `_` and `.`, joined by `/`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}
