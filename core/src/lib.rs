//! akin-core: the science of hierarchical image retrieval.

mod error;

pub mod cosine;
pub mod evaluate;
pub mod metrics;
pub mod random;
pub mod ranking;
pub mod relevance;
pub mod search;
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
