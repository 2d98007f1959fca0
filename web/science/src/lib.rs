//! The science of the page: the scores of one ranking and what explains them, computed by akin-core.
//!
//! The module runs on the main thread and needs no model. `www/src/science.ts` describes what JavaScript gives and
//! gets.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![cfg(target_arch = "wasm32")]

pub mod ranking;
pub mod steps;
