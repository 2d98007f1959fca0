//! `akin compare`: many losses on the same data, with the same encoder, budget and start.
//!
//! A file imports only files above it in this list:
//!
//! | file | |
//! |---|---|
//! | [`config`] | `[compare]`, the section of a recipe |
//! | [`settings`] | settings as dotted keys, as text, and their combinations |
//! | [`results`] | means and deviations over seeds, and the best of each column |
//! | [`paired`] | tests of each row against one, over the seeds |
//! | [`mod@print`] | results as text, Markdown, LaTeX, CSV and JSON |
//! | [`sensitivity`] | figures of scores by the settings that are varied |
//! | [`tuning`] | the order in which settings are tried |
//! | [`planned_run`] | one training, in a process of its own |
//! | [`effects`] | settings of `vary` that have no effect |
//! | [`plan`] | rows, seeds, and the config of every run |
//! | [`data_sets`] | what runs would be made with today, to compare with what they were made with |
//! | [`pace`] | how many trainings are done, and how long the rest will take |
//! | [`trainer`] | trains runs one after another |
//! | [`cells`] | the trainings, numbered, for several machines |
//! | [`untrained`] | the encoders that the trainings begin with, evaluated |
//! | [`execution`] | checks, trains and collects everything |
//!
//! With `tune`, every row first chooses settings, one after another, by the metric that its loss optimises. It
//! trains on a part of the training classes, with a seed that the table does not use, and is scored on the others.
//! The evaluation splits take no part in the choice.
//!
//! ```text
//! OUT/untrained/seed-0/       the untrained encoder, evaluated
//! OUT/LOSS/seed-0.toml        the config of a training
//! OUT/LOSS/seed-0/            its run
//! OUT/LOSS/seed-0.lock        is locked while a process trains it
//! OUT/LOSS/seed-0.stderr      what a failed or stopped training printed
//! OUT/LOSS/seed-0.outcome.json  how it ended, with its error
//! OUT/LOSS/tune-3f9a1c22/     a run for tuning; its name is a digest of its settings
//! OUT/table.{md,tex,csv,json}
//! OUT/figures/KEY-METRIC.svg  with `vary`: a metric by a setting
//! ```

pub mod cells;
pub mod config;
pub mod data_sets;
pub mod effects;
pub mod execution;
mod grid;
pub mod pace;
pub mod paired;
pub mod plan;
pub mod planned_run;
pub mod print;
pub mod results;
pub mod sensitivity;
pub mod settings;
pub mod trainer;
pub mod tuning;
pub mod untrained;
