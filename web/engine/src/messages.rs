//! The objects that cross between the engine and JavaScript. The page's types are made from them: the test below
//! writes `www/src/messages/engine.ts`.

use akin_core::evaluate::Scores;
use akin_core::metrics::Unit;
use akin_core::neighbours::Neighbours;
use serde::{Deserialize, Serialize};

/// The graphics adapter that the engine computes with.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Adapter {
    /// What the browser tells of it, such as `nvidia ampere`; empty where it tells nothing.
    pub name: String,
    /// Whether the processor does the work of the adapter.
    pub software: bool,
    /// The largest buffer in bytes.
    pub largest_buffer: u64,
    /// Whether shaders have numbers of 16 bits.
    pub half_precision: bool,
}

/// How far the embeddings of the parity pictures agree with the trainer's.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ParityCheck {
    /// The number of pictures.
    pub pictures: usize,
    /// The smallest cosine of a picture's two embeddings.
    pub cosine: f64,
    /// The smallest that is good enough.
    pub bound: f64,
    /// Whether it is.
    pub passed: bool,
}

/// The embedding of an image.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Embedded {
    /// d numbers.
    pub embedding: Vec<f32>,
    /// The time of decoding in milliseconds.
    pub decode_ms: f64,
    /// The time of the network in milliseconds.
    pub embed_ms: f64,
}

/// The taxonomy of the reader's own pictures as in `bundle.json`, and their labels.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OwnLabels {
    /// The names of the classes, one list per level, coarse to fine.
    pub classes: Vec<Vec<String>>,
    /// The parent of each class, one level coarser; empty at the first level.
    pub parents: Vec<Vec<u32>>,
    /// Class ids, picture by picture, coarse to fine.
    pub labels: Vec<u32>,
}

/// The answer to one query.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Ranked {
    /// The best items, and what they say.
    #[serde(flatten)]
    pub neighbours: Neighbours,
    /// `None` where the query's labels are unknown.
    pub metrics: Option<Metrics>,
    /// `None` where the encoder has no codes.
    pub codes: Option<CodeTexts>,
}

/// The metrics of the whole ranking, not only of the results, by name as in a report. A metric is `None` where the query
/// has no positives.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Metrics {
    /// The metrics that the bundle asks for, in its order.
    pub described: Vec<MetricInfo>,
    /// Those over all levels.
    pub overall: Scores,
    /// Those per level, coarse to fine.
    pub levels: Vec<Scores>,
}

/// What core's catalogue says about a metric.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MetricInfo {
    /// The name in a config: `recall@1`.
    pub name: String,
    /// The name in a table: `R@1`.
    pub label: String,
    /// The name in the literature.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether a greater value is better.
    pub greater_is_better: bool,
    /// Whether it has a value per level, or one over all levels.
    pub per_level: bool,
}

/// The codes of the query and of the results, in their order: texts of `0` and `1`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CodeTexts {
    /// That of the query.
    pub query: String,
    /// Those of the results.
    pub results: Vec<String>,
}

/// Where two pictures carry their score.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Look {
    /// The score of the two pictures.
    pub score: f64,
    /// Whether the score is a sum over cells. Otherwise `occlude` gives the values of the patches.
    pub exact: bool,
    /// The picture that was asked with.
    pub query: LookSide,
    /// The picture that was found.
    pub item: LookSide,
    /// The part of each pair of cells, [query's cells, item's cells]; `None` where the score is no sum.
    pub pairs: Option<Vec<f64>>,
}

/// One of the two pictures, as a grid of cells.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LookSide {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// What the encoder sees, as shares of the picture: left, top, width, height.
    pub region: [f64; 4],
    /// What each cell adds to the score, row by row; `None` where the score is no sum.
    pub values: Option<Vec<f64>>,
    /// The embedding of the picture.
    pub embedding: Vec<f32>,
}

/// The part of the map that a frame shows.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MapView {
    /// The width of the canvas in device pixels.
    pub width: u32,
    /// The height of the canvas in device pixels.
    pub height: u32,
    /// Device pixels per CSS pixel.
    pub ratio: f32,
    /// Device pixels per unit of the plane, or the radius of the disk.
    pub scale: f32,
    /// The point in the middle.
    pub centre: [f64; 2],
    /// Whether the map is the Poincaré disk.
    pub is_disk: bool,
    /// The radius of a mark in device pixels.
    pub radius: f32,
    /// The colour of the paper, each part from 0 to 1.
    pub paper: [f32; 3],
}

#[cfg(test)]
mod tests {
    use akin_bridge::typescript::Declarations;

    use super::*;

    #[test]
    fn the_page_has_the_types_of_the_module() {
        Declarations::default()
            .with::<Adapter>()
            .with::<akin_core::bundle::Contents>()
            .with::<akin_core::bundle::FileEntry>()
            .with::<Embedded>()
            .with::<Look>()
            .with::<MapView>()
            .with::<OwnLabels>()
            .with::<Ranked>()
            .with::<ParityCheck>()
            .check("engine.ts");
    }
}
