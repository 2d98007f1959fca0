//! The bundle format: a directory of static files that the page loads. This module reads and writes their bytes; it
//! opens no files.
//!
//! A bundle holds one gallery with its taxonomy, and one or more encoders, each with its embeddings of that gallery.
//! Several galleries are several bundles, listed by an [index](#several-galleries).
//!
//! # Files
//!
//! `bundle.json`, the [`Manifest`], names every other file by its path relative to the bundle. A path consists of
//! names of ASCII letters, digits, `-`, `_` and `.`, joined by `/`; no name starts with `.`, and no two paths differ
//! in case only.
//!
//! Binary files have no header and no padding. Numbers are little-endian, matrices row-major. N is the number of
//! gallery items, Q the number of stored queries (it may be 0), L the number of levels, d the dimension of an
//! encoder. Wherever a file covers both sets, the gallery items come first.
//!
//! | file | contents |
//! |---|---|
//! | `labels` | u32, \[N + Q, L\]: the class of each item at each level, coarse to fine, as a position in `taxonomy.classes[level]` |
//! | `thumbnails.sheets` | images (JPEG, PNG or WebP, told by the file's extension) of square tiles, filled row by row, sheet by sheet |
//! | `weights`, per encoder | a Burn burnpack file, in half precision except for the normalisation layers |
//! | `gallery_embeddings`, per encoder | f32, \[N, d\] |
//! | `query_embeddings`, per encoder | f32, \[Q, d\] |
//! | `coordinates`, per map | f32, \[N, 2\] |
//!
//! `akin export` computes the gallery and query embeddings with the weights of the run, in full precision; the stored
//! weights give slightly different embeddings.
//!
//! # Fields of `bundle.json`
//!
//! All fields are required, except those marked *optional*.
//!
//! | field | value |
//! |---|---|
//! | `format` | `"akin-bundle"` |
//! | `version` | `1` |
//! | `requires` | *optional*: names of features that a reader must know, see [Versions](#versions) |
//! | `digest` | the [digest](#the-digest) of the manifest |
//! | `files` | every file but `bundle.json`: `[{ path, bytes, sha256 }]`, the SHA-256 in lower-case hexadecimal |
//! | `title`, `description` | what people see: a short name, a sentence or two |
//! | `licence` | of images and weights: an SPDX expression where there is one |
//! | `model_card` | Markdown: what the models are, what they were trained on, what they cannot do |
//! | `taxonomy` | `{ levels, classes, parents }`: L level names, coarse to fine; for each level the names of its classes; for each level and class the position of its parent one level up (level 1: `[]`) |
//! | `gallery`, `queries` | `{ count }`: N ≥ 1 and Q. Without stored queries every gallery item can be the query, and never ranks itself |
//! | `labels` | path |
//! | `thumbnails` | `{ tile, columns, rows, sheets }`: side of a tile in pixels, tiles per row, rows of a full sheet, paths. The last sheet may be smaller |
//! | `evaluation_config` | the settings of the metrics: an [`EvaluationConfig`] |
//! | `encoders` | one or more, each as below |
//!
//! Each of `encoders`:
//!
//! | field | value |
//! |---|---|
//! | `name`, `description` | what people see; the name is unique in the bundle |
//! | `architecture` | `{ backbone, head }`, as in the config of a run |
//! | `preprocessing` | what is done to an image before the backbone: a [`Preprocessing`] |
//! | `dimension` | d, 1 to [`MAX_DIMENSION`] |
//! | `weights`, `gallery_embeddings` | paths |
//! | `query_embeddings` | path; `null` if and only if Q = 0 |
//! | `self_test` | d numbers: the embedding of [`self_test_pattern`](crate::image::self_test_pattern) with the stored weights, computed at export. A reader that gets another embedding (cosine below 0.999) must not trust its device |
//! | `report` | the means of all metrics over all queries: a [`Report`]. `report.config.similarity` is what this encoder's embeddings are ranked by |
//! | `maps` | *optional*: 2-D maps of the gallery, `[{ name, description, coordinates }]`, see [`Map`] |
//! | `best_scores` | *optional*: how alike the gallery's own nearest items are, `{ quantiles }`, see [`BestScores`] |
//!
//! # The digest
//!
//! The manifest lists the length and SHA-256 of every file and the digest of itself, so that a reader finds every
//! changed or missing byte before it uses one. These are checksums against damage, not signatures.
//!
//! The digest is the SHA-256, in lower-case hexadecimal, of the manifest without its field `digest` in the canonical
//! form of [RFC 8785](https://www.rfc-editor.org/rfc/rfc8785), for which most languages have a library. In short: JSON
//! in UTF-8 without spaces; the keys of every object sorted; strings with the fewest escapes; numbers as JavaScript
//! prints them. The digest is computed from the parsed value, so the layout of the file does not matter.
//!
//! # Versions
//!
//! A reader ignores every field that it does not know (the digest still covers it), so version 1 can gain optional
//! fields that older readers pass over. A field that changes the meaning of others comes with a name in `requires`,
//! and a reader refuses a bundle that requires a feature it does not know. This reader knows none yet. Any other
//! change needs a new version, which older readers refuse.
//!
//! There is one exception: an unknown field of `architecture`, `preprocessing`, `evaluation_config` or
//! `report.config`, or an unknown metric, is refused, because it changes embeddings or scores.
//!
//! # Several galleries
//!
//! `bundles.json`, the [`Index`], lists bundles that a page offers side by side. It may be written by hand: it has no
//! digest, and each bundle checks itself.
//!
//! ```json
//! {
//!   "format": "akin-bundles",
//!   "version": 1,
//!   "bundles": [
//!     { "path": "grocery", "title": "Groceries", "description": "81 fruits, vegetables and cartons." },
//!     { "path": "creatures", "title": "Creatures", "description": "Drawn animals of 36 species." }
//!   ]
//! }
//! ```
//!
//! `path` is the directory of a bundle, relative to `bundles.json`, under the rule for paths above. `requires` and
//! unknown fields are treated as in `bundle.json`. Bundles that share a file have it under the same SHA-256, so a
//! reader can keep one copy.

mod best_scores;
mod canonical;
mod index;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::evaluate::{EvaluationConfig, Report};
use crate::image::Preprocessing;
use crate::taxonomy::Taxonomy;

pub use best_scores::BestScores;
pub use index::{Index, IndexEntry};
pub use read::Manifest;
pub use write::{BundleWriter, embedding_bytes, label_bytes};

/// The name of the manifest's file.
pub const MANIFEST: &str = "bundle.json";

/// The name of the index's file.
pub const INDEX: &str = "bundles.json";

/// The version that this library writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// The largest dimension that an embedding of a bundle may have.
pub const MAX_DIMENSION: usize = 16_384;

const FORMAT: &str = "akin-bundle";

/// What a bundle says, without the checksums of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// A short name for people.
    pub title: String,
    /// What the bundle holds, in a sentence or two.
    pub description: String,
    /// The licence of images and weights, as an SPDX expression where there is one.
    pub licence: String,
    /// What the models are, what they were trained on and what they cannot do: Markdown.
    pub model_card: String,
    /// The label tree.
    pub taxonomy: Taxonomy,
    /// The items that are ranked; at least one.
    pub gallery: Items,
    /// Stored queries. Without any, every gallery item can be the query; it never ranks itself.
    pub queries: Items,
    /// The path of the labels.
    pub labels: String,
    /// The small pictures of all items.
    pub thumbnails: Thumbnails,
    /// The settings of the metrics, in the reports and on the page. The similarity that an encoder's embeddings are
    /// ranked by stands in its own report.
    pub evaluation_config: EvaluationConfig,
    /// The encoders over this gallery; at least one, each with a name of its own.
    pub encoders: Vec<EncoderEntry>,
}

/// A set of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items {
    /// The number of items.
    pub count: usize,
}

/// Thumbnails on sheets: square tiles in rows, gallery items first, then stored queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thumbnails {
    /// The side of a tile in pixels.
    pub tile: u32,
    /// The number of tiles in a row.
    pub columns: u32,
    /// The number of rows of a full sheet.
    pub rows: u32,
    /// The paths of the sheets; all but the last are full.
    pub sheets: Vec<String>,
}

/// One encoder of a bundle, with its embeddings of the items and its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderEntry {
    /// A short name for people, unique in the bundle.
    pub name: String,
    /// What sets it apart, in a sentence.
    pub description: String,
    /// Backbone and head, as in the config of a run; `encoder` defines their meaning.
    pub architecture: serde_json::Value,
    /// What is done to an image before the backbone.
    pub preprocessing: Preprocessing,
    /// d, the dimension of an embedding.
    pub dimension: usize,
    /// The path of the weights.
    pub weights: String,
    /// The path of the gallery's embeddings.
    pub gallery_embeddings: String,
    /// The path of the stored queries' embeddings; `None` if and only if there are no stored queries.
    pub query_embeddings: Option<String>,
    /// The embedding of [`self_test_pattern`](crate::image::self_test_pattern) at the side that the preprocessing
    /// crops to, computed at export with the stored weights: d numbers.
    pub self_test: Vec<f32>,
    /// The evaluation of the encoder on this gallery, without its rows per query.
    pub report: Report,
    /// 2-D maps of the gallery; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Map>,
    /// How alike the gallery's own nearest items are. `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_scores: Option<BestScores>,
}

/// A 2-D map of the gallery: one point per gallery item, near where the embeddings are near.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// A short name for people, such as the method.
    pub name: String,
    /// How the map was made and how to read it, in a sentence.
    pub description: String,
    /// The path of the coordinates, \[N, 2\]: x to the right, y upwards, in any unit, the same for both.
    pub coordinates: String,
}

/// A file of a bundle and its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The path, relative to the bundle: names of ASCII letters, digits, `-`, `_` and `.`, joined by `/`.
    pub path: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}
