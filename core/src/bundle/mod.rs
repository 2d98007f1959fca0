//! The bundle: a directory of static files that the page loads. This module reads and writes their bytes; it opens no
//! files. [`Manifest`] is what a reader sees, [`BundleWriter`] what an exporter fills, [`Index`] the list of several
//! bundles.
#![doc = include_str!("FORMAT.md")]

mod canonical;
mod index;
mod read;
mod write;

use half::f16;
use serde::{Deserialize, Serialize};

use crate::certainty::{BestScores, Calibration};
use crate::evaluate::{EvaluationConfig, Report};
use crate::image::Preprocessing;
use crate::taxonomy::{Kinship, Labels, Taxonomy};

pub use index::{Index, IndexEntry};
pub use read::Manifest;
pub use write::{BundleWriter, coordinate_bytes, embedding_bytes, label_bytes, number_bytes};

/// The name of the manifest's file.
pub const MANIFEST: &str = "bundle.json";

/// The name of the index's file.
pub const INDEX: &str = "bundles.json";

/// The version that this library writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// The largest dimension that an embedding of a bundle may have.
pub const MAX_DIMENSION: usize = 16_384;

const FORMAT: &str = "akin-bundle";

/// The feature that a bundle with embeddings in half precision requires of its reader.
const HALF_PRECISION: &str = "f16";

/// The feature that a bundle whose items have several label paths or a matrix of relevance requires of its reader.
const KINSHIP: &str = "kinship";

/// The feature that a bundle with the network of an encoder in an ONNX file requires of its reader.
const ONNX: &str = "onnx";

/// The feature that a bundle with a parity check requires of its reader.
const PARITY: &str = "parity";

/// The feature that a bundle with an encoder without weights requires of its reader.
const WITHOUT_WEIGHTS: &str = "without_weights";

/// The largest number of pictures of the parity check.
pub const MAX_PARITY_PICTURES: usize = 64;

/// What a bundle says, without the checksums of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
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
    /// What the items share beyond one label path each; `None` in a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinship: Option<ItemKinship>,
    /// The small pictures of all items.
    pub thumbnails: Thumbnails,
    /// The settings of the metrics, in the reports and on the page. The similarity that an encoder's embeddings are
    /// ranked by stands in its own report.
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub evaluation_config: EvaluationConfig,
    /// The paths of small pictures, PNG or JPEG, that every encoder embeds to show that a reader computes what the
    /// trainer did. Empty if and only if no encoder has weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parity_pictures: Vec<String>,
    /// The encoders over this gallery; at least one, each with a name of its own.
    pub encoders: Vec<EncoderEntry>,
}

/// The kinship of the items of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ItemKinship {
    /// The kind of each item, gallery first.
    pub kinds: Vec<u32>,
    /// The label paths of each kind, as class ids, or the relevance of each pair of kinds.
    #[cfg_attr(feature = "typescript", ts(type = "{ paths: number[][][] } | { matrix: number[][] }"))]
    pub kinship: Kinship,
}

impl ItemKinship {
    /// The kinship of these items; `None` in a tree.
    pub fn new(labels: &Labels) -> Option<Self> {
        let (kinship, kinds) = labels.kinship()?;
        Some(Self { kinds: kinds.to_vec(), kinship: Kinship::clone(kinship) })
    }
}

/// A set of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Items {
    /// The number of items.
    pub count: usize,
}

/// Thumbnails on sheets: square tiles in rows, gallery items first, then stored queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
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
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EncoderEntry {
    /// A short name for people, unique in the bundle.
    pub name: String,
    /// What sets it apart, in a sentence.
    pub description: String,
    /// The name of a family of hash encoders that differ in the number of bits only; a page offers them as one encoder
    /// with a choice of bits. `None` for an encoder that stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Backbone and head, as in the config of a run; `encoder` defines their meaning. Null without weights.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub architecture: serde_json::Value,
    /// What is done to an image before the backbone. `None` without weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub preprocessing: Option<Preprocessing>,
    /// d, the dimension of an embedding.
    pub dimension: usize,
    /// The path of the weights. `None` if only the embeddings of the items are known: these can be searched and shown, but
    /// no other picture can be embedded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// The path of the gallery's embeddings.
    pub gallery_embeddings: String,
    /// The path of the stored queries' embeddings; `None` if and only if there are no stored queries.
    pub query_embeddings: Option<String>,
    /// The type of the numbers in both files of embeddings.
    #[serde(default, skip_serializing_if = "ElementType::is_default")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub element_type: ElementType,
    /// What the trainer makes of `parity_pictures`. `None` if and only if there are no weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// The network before the head, if it is an ONNX file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxEntry>,
    /// The licence of its weights, if it is not that of the bundle: an SPDX expression where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The evaluation of the encoder on this gallery, without its rows per query.
    pub report: Report,
    /// 2-D maps of the gallery; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Map>,
    /// How alike the gallery's own nearest items are. `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_scores: Option<BestScores>,
    /// How far the answers of this gallery can be trusted. `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// How alike the classes of the gallery are; at most one per level, and none where there are too many classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affinities: Vec<Affinity>,
    /// The scores of each query. `None` where they were not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_scores: Option<QueryTable>,
}

/// The trainer's embeddings of the parity pictures: whoever embeds these pictures can tell whether an engine computes what
/// the trainer did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Parity {
    /// The path of the embeddings, f32, \[P, d\] for P pictures, with the weights that the gallery was embedded with.
    pub embeddings: String,
    /// The smallest cosine of a picture's embedding to the one that the trainer gets with the stored weights: 1 if these
    /// are the same, less in half precision or 8 bits.
    pub cosine: f64,
}

impl Parity {
    /// How far rounding may take an engine from the trainer with the same weights.
    pub const MARGIN: f64 = 1e-4;

    /// The smallest cosine that an engine with the stored weights must reach for each picture.
    pub fn bound(&self) -> f64 {
        self.cosine - Self::MARGIN
    }

    /// The smallest cosine of P pairs of embeddings, row-major \[P, d\]; NaN where one is not finite.
    pub fn smallest_cosine(own: &[f32], trainers: &[f32], dimension: usize) -> f64 {
        let rows = own.chunks_exact(dimension).zip(trainers.chunks_exact(dimension));
        rows.map(|(own, trainers)| cosine(own, trainers)).fold(1.0, |smallest, cosine| match cosine {
            cosine if cosine.is_nan() || cosine < smallest => cosine,
            _ => smallest,
        })
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(&one, &other)| f64::from(one) * f64::from(other)).sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// The network of an encoder in an ONNX file, and how it is called. `architecture.backbone` says what core needs of it:
/// the number of features and of prefix tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct OnnxEntry {
    /// The path of the file, all of whose weights are inside.
    pub file: String,
    /// The name of its input. It takes one image, of the side that the preprocessing crops to.
    pub input: String,
    /// The order of the axes of its input.
    #[serde(default)]
    pub layout: Layout,
    /// The type of the numbers of its input.
    #[serde(default)]
    pub element_type: InputType,
    /// The name of the output to use: \[1, F\], \[1, T, F\] or \[1, F, H, W\].
    pub output: String,
    /// What storing the weights in 8 bits costs. `None` if the file is as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int8: Option<Int8Loss>,
}

/// The type of the numbers of a network's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// Single precision.
    #[default]
    F32,
    /// Half precision.
    F16,
    /// Whole numbers from 0 to 255: the network normalises the pixels itself.
    U8,
}

/// The order of the axes of a network's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// \[B, 3, H, W\].
    #[default]
    ChannelsFirst,
    /// \[B, H, W, 3\].
    ChannelsLast,
}

impl Layout {
    /// The numbers of B square images \[B, 3, S, S\] in this layout.
    pub fn arrange(self, images: Vec<f32>, side: usize) -> Vec<f32> {
        let plane = side * side;
        match self {
            Self::ChannelsFirst => images,
            Self::ChannelsLast => images
                .chunks_exact(3 * plane)
                .flat_map(|image| (0..3 * plane).map(|place| image[place % 3 * plane + place / 3]))
                .collect(),
        }
    }
}

/// What weights of 8 bits cost: the means of H-AP over the queries, measured at export.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Int8Loss {
    /// With the weights of the file that was given, which the gallery is embedded with.
    pub h_ap: f64,
    /// With the weights of the bundle, for queries and gallery.
    pub h_ap_int8: f64,
}

/// The type of the numbers in a file of embeddings, little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Single precision.
    #[default]
    F32,
    /// Half precision (IEEE 754 binary16): half the size. Readers that do not know it refuse the bundle.
    F16,
}

impl ElementType {
    /// The length of a number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }

    /// `number` as a file of this type stores it. Half precision keeps 11 significant bits, and a number beyond ±65,504
    /// becomes infinite, which [`BundleWriter::finish`] refuses.
    pub fn round(self, number: f32) -> f32 {
        match self {
            Self::F32 => number,
            Self::F16 => f16::from_f32(number).to_f32(),
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A 2-D map of the gallery: one point per gallery item, near where the embeddings are near.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "GalleryMap"))]
pub struct Map {
    /// A short name for people, such as the method.
    pub name: String,
    /// How the map was made and how to read it, in a sentence.
    pub description: String,
    /// The path of the coordinates, \[N, 2\]: x to the right, y upwards, in any unit, the same for both.
    pub coordinates: String,
    /// The space that the points are in.
    #[serde(default, skip_serializing_if = "MapGeometry::is_plane")]
    pub geometry: MapGeometry,
    /// Learned ancestors of the items, in the same space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<MapProxies>,
    /// The means of classes in place of the items, as a map of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_means: Option<MapMeans>,
}

/// A map of the mean embeddings of the finest classes, made by the method of the map that it belongs to (as HAPPIER's
/// figure 5 is).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MapMeans {
    /// How the map was made and how to read it, in a sentence.
    pub description: String,
    /// The C finest classes with an item in the gallery; classes of one parent stand together.
    pub classes: Vec<u32>,
    /// The path of the coordinates of their means, \[C, 2\], in the space of the map that it belongs to.
    pub coordinates: String,
}

/// The proxies of an encoder that was trained with HIER, on a map of its gallery; see [`ancestors`](crate::ancestors).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MapProxies {
    /// P, the number of proxies, at least 1.
    pub count: usize,
    /// The path of their coordinates, \[P, 2\].
    pub coordinates: String,
    /// M, the number of nearest items of each proxy.
    pub per_proxy: usize,
    /// The path of the gallery items nearest to each proxy, \[P, M\], nearest first.
    pub nearest: String,
    /// The path of the ancestor of each gallery item at each level, \[N, L\], coarse to fine; [`NO_ANCESTOR`] for none.
    pub ancestors: String,
}

/// Stands for no proxy in the file of ancestors.
pub const NO_ANCESTOR: u32 = u32::MAX;

/// The space of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum MapGeometry {
    /// The Euclidean plane.
    #[default]
    Plane,
    /// The hyperbolic plane of curvature −1, as the Poincaré disk: points of length below 1.
    PoincareDisk,
}

impl MapGeometry {
    fn is_plane(&self) -> bool {
        *self == Self::Plane
    }
}

/// The mean score of every pair of classes at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Affinity {
    /// The level, 1 … L.
    pub level: usize,
    /// C classes of the level, each with an item in the gallery; classes of one parent stand together.
    pub classes: Vec<u32>,
    /// The path of the scores, \[C, C\]: the mean over the pairs of two different gallery items, one of either class.
    /// A class of one item has the score of that item to itself.
    pub scores: String,
}

/// The scores of each stored query or, without any, of each gallery item as the query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct QueryTable {
    /// What the K columns hold.
    pub columns: Vec<QueryColumn>,
    /// The path of the scores, \[Q or N, K\]. −1 stands for no score: the query has no positive at that level.
    pub scores: String,
}

/// A column of a [`QueryTable`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct QueryColumn {
    /// A metric by its name in the catalogue, or `first_shared_level`: the shared level of the first result, 0 … L.
    pub metric: String,
    /// The level of a metric per level, 1 … L; 0 for the others.
    pub level: usize,
}

/// A file of a bundle and its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FileEntry {
    /// The path, relative to the bundle: names of ASCII letters, digits, `-`, `_` and `.`, joined by `/`.
    pub path: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}
