//! `akin compare`: many losses on the same data, with the same encoder, budget and start.
//!
//! A file imports only files above it in this list:
//!
//! | file | |
//! |---|---|
//! | [`config`] | `[compare]`, the section of a recipe |
//! | [`settings`] | settings as dotted keys, as text, and their combinations |
//! | [`results`] | means and deviations over seeds, and the best of each column |
//! | [`print`] | results as text, Markdown, LaTeX, CSV and JSON |
//! | [`planned_run`] | one training, in a process of its own |
//! | [`plan`] | rows, seeds, and the config of every run |
//! | [`untrained`] | the encoders that the trainings begin with, evaluated |
//! | [`execution`] | checks, trains and collects everything |
//!
//! With `tune`, every row first tries the same grid of settings on classes held out from the training split, with a
//! seed that the table does not use. It keeps the settings that are best by the metric that its loss optimises. The
//! evaluation splits take no part in the choice.
//!
//! ```text
//! OUT/untrained/seed-0/       the untrained encoder, evaluated
//! OUT/LOSS/seed-0.toml        the config of a training
//! OUT/LOSS/seed-0/            its run
//! OUT/LOSS/tune-0/            a run of the grid
//! OUT/table.{md,tex,csv,json}
//! ```

pub mod config;
pub mod execution;
pub mod plan;
pub mod planned_run;
pub mod print;
pub mod results;
pub mod settings;
pub mod untrained;
