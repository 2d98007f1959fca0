//! `akin compare`: many losses on the same data, with the same encoder, budget and start.
//!
//! [`plan`] reads the section `[compare]` of a recipe and makes a config for every cell, a row
//! (a loss) with a seed. [`execution`] does them one after another: [`start`] measures what they begin
//! with, [`cell`] trains one in a process of its own. [`report`] reads what they leave, [`table`] makes
//! means and deviations of it, and [`print`] writes them down.
//!
//! With `tune`, every row first tries the same grid of settings on classes held out from the training
//! split, with a seed that is none of the table's, and keeps what is best by the metric that its loss
//! optimises. The evaluation splits take no part in that.
//!
//! ```text
//! OUT/untrained/seed-0/       what every training begins with, measured
//! OUT/LOSS/seed-0.toml        the config of a cell
//! OUT/LOSS/seed-0/            its run
//! OUT/LOSS/tune-0/            a run over the grid
//! OUT/table.{md,tex,csv,json}
//! ```

pub mod cell;
pub mod execution;
pub mod plan;
pub mod print;
pub mod report;
pub mod start;
pub mod table;
