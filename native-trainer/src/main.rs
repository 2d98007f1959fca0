//! `akin`: train, evaluate, export and serve hierarchical retrieval models.

// A binary exports nothing: `pub` here means "for the other modules".
#![allow(unreachable_pub)]

mod config;
mod data;
mod files;
mod npy;
mod problem;
mod sampler;
mod table;

fn main() {}
