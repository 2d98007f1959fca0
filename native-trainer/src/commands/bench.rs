//! `akin bench`: measures akin on this machine, each part beside something else that is measured in the same minute.
//!
//! Times depend on the machine, and ratios much less: compare those.

mod eval;
mod loader;
mod loss;
mod measure;
mod train;

use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    Loss(loss::BenchLossArgs),
    Eval(eval::BenchEvalArgs),
    Loader(loader::BenchLoaderArgs),
    Train(train::BenchTrainArgs),
}

/// Measures, and prints a table or JSON.
pub fn run(command: BenchCommand) -> Result<()> {
    match command {
        BenchCommand::Loss(args) => loss::run(args),
        BenchCommand::Eval(args) => eval::run(args),
        BenchCommand::Loader(args) => loader::run(&args),
        BenchCommand::Train(args) => train::run(args),
    }
}
