//! The commands, one per file: its arguments, its work and its output.

pub mod arguments;
pub mod bench;
pub mod biomorphs;
mod cells;
pub mod classify;
pub mod compare;
pub mod completions;
pub mod config;
pub mod data;
pub mod demo;
pub mod doctor;
pub mod embed;
pub mod eval;
pub mod export;
pub mod init;
pub mod known_gallery;
pub mod list;
pub mod page;
mod pretrained;
pub mod recipes;
pub mod report;
pub mod resume;
pub mod search;
pub mod serve;
pub mod train;
pub mod tune;
pub mod verify;
