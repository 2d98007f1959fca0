//! akin-core: hierarchical image retrieval.
//!
//! Image search is usually scored by whether the first results are of the query's own class. All other results count as
//! equally wrong, although a close relative of the query is a smaller mistake than a stranger. This crate measures how
//! well a ranking respects a *taxonomy*, the tree of classes, and has the losses that train models to respect it. Items
//! have labels at L levels, from coarse (level 1) to fine (level L).
//!
//! | symbol | meaning |
//! |---|---|
//! | L | the number of levels |
//! | l(q, x) | the shared level: the finest level at which query and item have the same label; 0 for a stranger |
//! | Ω(l) | the items whose shared level is exactly l; *positives* are those with l ≥ 1 |
//! | rel(x) | the relevance of an item, computed from its shared level ([`Relevance`](relevance::Relevance)) |
//! | rank(k) | the rank of item k in the list, from 1 |
//! | H-rank(k) | rel(k) + Σ min(rel(j), rel(k)) over the items j above k |
//! | H-AP | Σ H-rank(k) / rank(k) over the positives, divided by Σ rel(k) |
//!
//! # Two rankings with the same AP
//!
//! This is the worked example of HAPPIER (Ramzi et al., ECCV 2022, fig. 8), with three levels and the relevances 1/3,
//! 2/3 and 1. Both rankings have the items of the query's own class at the same ranks, so that their AP is equal. The
//! first puts a close relative at the top and a distant one below it; the second does the reverse. H-AP tells them
//! apart:
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
//! `examples/` has this as a program, the evaluation of two sets of embeddings, and the training of a loss.
//!
//! # Modules
//!
//! - [`taxonomy`], [`relevance`]: the label tree, and how much an item matters to a query;
//! - [`embeddings`], [`similarity`], [`geometry`], [`poincare`], [`hamming`]: embeddings, the spaces that they live in,
//!   and how they are compared; [`search`]: the ranked list of one query; [`nearest`]: those of many; [`shortlist`]: the same from codes of 8 bits;
//!   [`duplicates`]: items that are nearly equal; [`votes`]: the classes of its neighbours;
//!   [`certainty`]: how far their answer can be trusted; [`neighbours`]: all that they say together;
//! - [`ranking`], [`metrics`]: one query's ranked list, and how good it is;
//! - [`explanation`]: what each item adds to H-AP, and what a move changes; [`attribution`]: which parts of two pictures
//!   carry their score; [`ancestors`]: the learned vectors under which an item and its kin meet;
//! - [`mod@evaluate`]: the scores of whole sets of queries; [`statistics`]: how far a mean can be trusted, and whether
//!   two runs differ;
//! - [`miners`]: which pairs and triplets a loss uses;
//! - [`steps`], [`query_losses`]: smooth forms of the step function, and the ranking losses of one query as functions of
//!   its scores; [`smooth_ranks`]: the same for batches, from sorted scores; [`common_ancestors`]: the loss of HIER from
//!   distances;
//! - `losses`, `models` (feature `tensor`, on Burn): what training minimises, and the networks that it trains;
//! - `image` (feature `image`): decoding and preprocessing; `bundle` (feature `image`): the files that the browser loads;
//! - `encoder` (features `tensor` and `image`): image bytes to embedding;
//! - [`pickle`]: the values of a pickle of Python;
//! - [`random`], [`digest`], [`sources`]: named random streams, checksums, and the BibTeX of all sources.
//!
//! # Features
//!
//! `tensor` and `image` are on by default. Without them the crate is plain Rust with few dependencies, and
//! `default-features = false` has everything that evaluation needs. `parallel` uses all threads; no result depends
//! on it. `cpu` computes convolutions, pooling and batch normalisation of Burn's tensors on the CPU with `akin-layers`.
//! `schema` describes all config types as JSON schemas. The crate uses no files, clock or network.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod error;

pub mod ancestors;
pub mod attribution;
pub mod certainty;
pub mod common_ancestors;
pub mod digest;
pub mod duplicates;
pub mod embeddings;
pub mod evaluate;
pub mod explanation;
pub mod geometry;
pub mod hamming;
pub mod metrics;
pub mod miners;
pub mod nearest;
pub mod neighbours;
pub mod pair_sums;
mod panels;
pub mod pickle;
pub mod poincare;
pub mod query_losses;
pub mod random;
mod range;
pub mod ranking;
pub mod relevance;
pub mod search;
pub mod shortlist;
pub mod similarity;
pub mod smooth_ranks;
pub mod sources;
pub mod statistics;
pub mod steps;
pub mod taxonomy;
mod threads;
pub mod unknown;
pub mod votes;

#[cfg(all(feature = "tensor", feature = "image"))]
pub mod encoder;
#[cfg(feature = "tensor")]
mod host;
#[cfg(feature = "tensor")]
pub mod losses;
#[cfg(feature = "tensor")]
pub mod models;

#[cfg(feature = "image")]
pub mod bundle;
#[cfg(feature = "image")]
pub mod image;

pub use error::{Error, Kind, Result};
pub use range::Checked;

/// Compiles and runs the Rust of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
