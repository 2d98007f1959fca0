//! akin in Python: the part of the package `akin` that is written in Rust.
//!
//! The package's own Python makes arrays and class numbers out of what its users have, and frames out of results. What
//! crosses to Rust are arrays of numpy, numbers and text:
//!
//! ```text
//! Taxonomy(levels, rows, names, qualify)   the tree of classes, and the class ids of each row
//! evaluate(queries, labels, …)             every query ranks the gallery → Report
//! nearest(queries, gallery, …)             the nearest items of each query
//! Classifier(gallery, labels, …)           the classes that they vote for, and how far that holds
//! Ranking(levels, …)                       one ranking: its metrics and its curve
//! rank_losses(scores, places, …)           a ranking loss of each query, and its gradient
//! Encoder(folder, name)                    pictures → embeddings, with the feature `encoder`
//! ```
//!
//! Embeddings are views of numpy's memory and are not copied. Work runs on threads of its own, without the lock of the
//! interpreter; the thread that called waits, shows progress, and listens to Ctrl-C.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod certainty;
#[cfg(feature = "encoder")]
mod encoder;
mod errors;
mod evaluation;
mod matrix;
mod metrics;
mod ranks;
mod report;
mod search;
mod taxonomy;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _akin {
    #[pymodule_export]
    use super::certainty::Classifier;
    #[cfg(feature = "encoder")]
    #[pymodule_export]
    use super::encoder::Encoder;
    #[pymodule_export]
    use super::evaluation::evaluate;
    #[pymodule_export]
    use super::metrics::{Ranking, catalogue};
    #[pymodule_export]
    use super::ranks::rank_losses;
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::search::nearest;
    #[pymodule_export]
    use super::taxonomy::Taxonomy;
}
