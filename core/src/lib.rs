//! akin-core: the science of hierarchical image retrieval.
//!
//! Image search is measured by whether the first results are of the query's very class. All other results then
//! count as equally wrong, although a cousin of the query is a smaller mistake than a stranger. This crate measures,
//! and with its losses trains, how well a ranking respects a *taxonomy*, the tree of classes: labels at L levels,
//! from coarse (level 1) to fine (level L).
//!
//! | symbol | meaning |
//! |---|---|
//! | L | the number of levels |
//! | l(q, x) | the shared level: the finest level at which query and item have the same label; 0 for a stranger |
//! | Ω(l) | the items whose shared level is exactly l; *positives* are those of l ≥ 1 |
//! | rel(x) | the relevance of an item, a number from its shared level ([`Relevance`](relevance::Relevance)) |
//! | rank(k) | the place of item k in the list, from 1 |
//! | H-rank(k) | rel(k) + Σ min(rel(j), rel(k)) over the items j above k: rank(k), had only equals of k stood there |
//! | H-AP | Σ H-rank(k) / rank(k), over the positives, divided by Σ rel(k) |
//!
//! # Two rankings that AP cannot tell apart
//!
//! The worked example of HAPPIER (Ramzi et al., ECCV 2022, fig. 8). With three levels and the relevances 1/3, 2/3
//! and 1, two rankings have their items of the query's own class in the same places, so that AP is the same. But
//! the first puts a close relative on top and a distant one below, the second the other way round:
//!
//! ```
//! use akin_core::metrics::{average_precision, hierarchical_ap};
//! use akin_core::ranking::Ranking;
//! use akin_core::relevance::Relevance;
//!
//! let close_relative_first = Ranking::from_levels(3, &[2, 3, 0, 1, 3]);
//! let distant_relative_first = Ranking::from_levels(3, &[1, 3, 0, 2, 3]);
//!
//! let ap = |ranking| average_precision(ranking, 3).unwrap();
//! assert_eq!(format!("{:.2}", ap(&close_relative_first)), "0.45");
//! assert_eq!(format!("{:.2}", ap(&distant_relative_first)), "0.45");
//!
//! let relevance = Relevance::Plain { alpha: 1.0 }.checked(3)?;
//! let h_ap = |ranking| hierarchical_ap(ranking, &relevance).unwrap();
//! assert_eq!(format!("{:.2}", h_ap(&close_relative_first)), "0.78");
//! assert_eq!(format!("{:.2}", h_ap(&distant_relative_first)), "0.67");
//! # akin_core::Result::Ok(())
//! ```
//!
//! # What is here
//!
//! - [`taxonomy`], [`relevance`]: what is related to what, and how much;
//! - [`similarity`], [`poincare`], [`hamming`], [`search`]: similarities, and the exact ranked list of one query;
//! - [`ranking`], [`metrics`]: one query's ranked list, and what it is worth;
//! - [`mod@evaluate`]: whole sets of queries, in blocks, to a report;
//! - [`geometry`]: the spaces that embeddings can live in; [`sources`]: BibTeX of all that is built on;
//! - [`statistics`]: how far a mean can be trusted, and whether two runs differ;
//! - [`random`]: one seed, split into named streams;
//! - [`miners`]: which pairs and triplets a loss looks at;
//! - `steps`, `losses`, `models` (feature `tensor`, on Burn): what training minimises, and what it trains;
//! - `image`, `bundle` (feature `image`): from the bytes of a photo to the numbers that a model reads; the files that
//!   the browser loads. With both features `encoder`: image bytes to embedding.
//!
//! Without features only plain Rust remains: `default-features = false` is all that someone needs who wants H-AP.
//! `parallel` evaluates on all threads; no result depends on it. The crate touches no file, clock or network.

mod error;

pub mod digest;
pub mod embeddings;
pub mod evaluate;
pub mod geometry;
pub mod hamming;
pub mod metrics;
pub mod miners;
pub mod poincare;
pub mod random;
mod range;
pub mod ranking;
pub mod relevance;
pub mod search;
pub mod similarity;
pub mod sources;
pub mod statistics;
#[cfg(feature = "tensor")]
pub mod steps;
pub mod taxonomy;

#[cfg(all(feature = "tensor", feature = "image"))]
pub mod encoder;
#[cfg(feature = "tensor")]
pub mod losses;
#[cfg(feature = "tensor")]
pub mod models;

#[cfg(feature = "image")]
pub mod bundle;
#[cfg(feature = "image")]
pub mod image;

pub use error::{Error, Kind, Result};
