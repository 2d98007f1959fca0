//! akin-core: the science of hierarchical image retrieval.

mod error;

pub mod cosine;
pub mod evaluate;
pub mod metrics;
pub mod random;
pub mod ranking;
pub mod relevance;
pub mod search;
pub mod taxonomy;

#[cfg(feature = "tensor")]
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
