//! The science of the page: the scores of one ranking and what explains them, computed by akin-core.
//!
//! The module runs on the main thread and needs no model. `www/src/science.ts` describes what JavaScript gives and
//! gets.

#![cfg(target_arch = "wasm32")]

pub mod ranking;
pub mod steps;
