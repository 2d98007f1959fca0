//! `akin`: train, evaluate, export and serve hierarchical retrieval models.
//!
//! Each line imports only from those below it, and a test holds that order. The crates know nothing of each other,
//! except that all use `akin-base`.
//!
//! | room | |
//! |---|---|
//! | `cli`, `commands` | the arguments; one file for each command |
//! | `comparison` | many trainings on the same data: `compare` and `tune` |
//! | `training` | loop, sampler, optimiser, schedule, checkpoint |
//! | `exchange` | encoders in the formats of other tools: safetensors, ONNX, PyTorch, the hub |
//! | `evaluation` | embeddings, scores, maps, reports |
//! | `pictures`, `runs` | loader and forward pass; the directories of trainings |
//! | `data` | readers of data sets, checks, downloads |
//! | `config` | settings and recipes |
//! | the crates `akin-server`, `akin-figures`, `akin-gallery`, `akin-formats`, `akin-biomorphs` | the page and its server; charts; galleries on disk; file formats; drawn creatures |
//! | the crate `akin-base` | files, directories, errors, the terminal |
//!
//! The science itself is [`akin_core`].

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A program exports little, here the config for its fuzz target: `pub` means "for the other modules".
#![allow(unreachable_pub)]
// Only `terminal` prints, because it escapes control characters in names and labels.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod comparison;
pub mod config;
#[cfg(test)]
mod config_md;
mod data;
mod evaluation;
mod exchange;
mod pictures;
mod process;
#[cfg(test)]
mod recipe_facts;
mod runs;
mod training;

pub use process::main;
