//! The science of the page: the scores of one ranking and what explains them, computed by akin-core.
//!
//! The module runs on the main thread and needs no model. [`messages`] are the objects that cross to JavaScript and back.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod messages;
#[cfg(target_arch = "wasm32")]
pub mod ranking;
#[cfg(target_arch = "wasm32")]
pub mod steps;
