//! Biomorphs: drawn creatures that descend from one another. A labelled data set that needs no download.
//!
//! [`Biomorphs::new`] grows a random family tree. Genes drift from parent to child, so siblings look alike
//! and cousins less so. The coarse levels decide the body plan and the proportions, the finest level the
//! colours. All branches take their colours from the same palettes, so a model that looks only at colour
//! tells species apart but mistakes strangers for relatives. [`Biomorphs::picture`] draws one individual:
//! each picture shows another pose, view, light and background. The seed decides everything.
//!
//! ```
//! use akin_biomorphs::{BiomorphConfig, Biomorphs};
//!
//! let config = BiomorphConfig { branching: vec![2, 3], images_per_class: 4, ..BiomorphConfig::default() };
//! let creatures = Biomorphs::new(config)?;
//! assert_eq!(creatures.levels(), ["family", "species"]);
//! assert_eq!(creatures.classes(), [2, 6]);
//! assert_eq!(creatures.pictures(), 24);
//!
//! let first = creatures.row(0);
//! println!("{}: {}, split {}", first.path, first.labels.join(" > "), first.split.name());
//! assert_eq!(creatures.picture(0).dimensions(), (64, 64));
//! # Ok::<(), akin_core::Error>(())
//! ```
//!
//! The crate writes no files: it returns pictures and rows, and the caller stores them.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod biomorphs;
mod body;
mod canvas;
mod config;
mod family;
mod genome;
mod names;
mod palette;
mod plans;
mod scene;
mod shape;

pub use crate::biomorphs::{Biomorphs, Row};
pub use crate::config::BiomorphConfig;
pub use crate::family::Split;
