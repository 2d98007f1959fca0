//! The command line: the list of commands. Each file in [`commands`] holds the arguments and the work of one.

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands;

/// Train, evaluate and show image retrieval that respects a taxonomy.
///
/// akin learns image embeddings that respect a label tree, evaluates them with hierarchical metrics, and
/// serves a page on which you search a gallery with a photo. Start with `akin demo`, or with `akin init PHOTOS`.
///
/// Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 error, 2 wrong usage, 130 stopped by
/// Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "akin", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::DemoArgs),
    Init(commands::init::InitArgs),
    Train(commands::train::TrainArgs),
    Import(commands::import::ImportArgs),
    Resume(commands::resume::ResumeArgs),
    Compare(commands::compare::CompareArgs),
    Tune(commands::tune::TuneArgs),
    /// Check a config, or show it with every default.
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// List losses, miners, metrics, recipes and sources.
    #[command(subcommand)]
    List(commands::list::ListCommand),
    Recipes(commands::recipes::RecipesArgs),
    Eval(Box<commands::eval::EvalArgs>),
    Report(commands::report::ReportArgs),
    Embed(commands::embed::EmbedArgs),
    /// Check a data set before training on it.
    #[command(subcommand)]
    Data(commands::data::DataCommand),
    Export(Box<commands::export::ExportArgs>),
    Serve(commands::serve::ServeArgs),
    Index(Box<commands::index::IndexArgs>),
    Search(commands::search::SearchArgs),
    Classify(commands::classify::ClassifyArgs),
    Duplicates(commands::duplicates::DuplicatesArgs),
    Verify(commands::verify::VerifyArgs),
    Page(commands::page::PageArgs),
    Biomorphs(commands::biomorphs::BiomorphsArgs),
    /// Measure the speed and memory of akin on this machine.
    #[command(subcommand)]
    Bench(commands::bench::BenchCommand),
    Doctor(commands::doctor::DoctorArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::completions::ManArgs),
}

impl Cli {
    /// Whether the command trains, so that Ctrl-C lets it save first.
    pub fn trains(&self) -> bool {
        matches!(
            self.command,
            Command::Demo(_)
                | Command::Train(_)
                | Command::Import(_)
                | Command::Index(_)
                | Command::Resume(_)
                | Command::Compare(_)
                | Command::Tune(_)
        )
    }

    /// Whether the command computes with networks for long.
    pub fn computes(&self) -> bool {
        self.trains()
            || matches!(
                self.command,
                Command::Bench(_) | Command::Classify(_) | Command::Embed(_) | Command::Eval(_)
            )
    }

    /// Runs the command.
    pub fn run(self) -> Result<()> {
        match self.command {
            Command::Demo(args) => commands::demo::run(args),
            Command::Init(args) => commands::init::run(&args),
            Command::Config(what) => commands::config::run(what),
            Command::Index(args) => commands::index::run(*args),
            Command::Search(args) => commands::search::run(&args),
            Command::Classify(args) => commands::classify::run(&args),
            Command::Duplicates(args) => commands::duplicates::run(&args),
            Command::Doctor(args) => commands::doctor::run(&args),
            Command::Completions(args) => commands::completions::completions(&args, Self::command()),
            Command::Man(args) => commands::completions::man(&args, Self::command()),
            Command::Recipes(args) => commands::recipes::run(args),
            Command::Train(args) => commands::train::run(args),
            Command::Import(args) => commands::import::run(args),
            Command::Resume(args) => commands::resume::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::Tune(args) => commands::tune::run(args),
            Command::List(what) => commands::list::run(what),
            Command::Eval(args) => commands::eval::run(*args),
            Command::Report(args) => commands::report::run(&args),
            Command::Embed(args) => commands::embed::run(args),
            Command::Data(what) => commands::data::run(what),
            Command::Export(args) => commands::export::run(*args),
            Command::Serve(args) => commands::serve::run(args),
            Command::Verify(args) => commands::verify::run(args),
            Command::Page(args) => commands::page::run(args),
            Command::Biomorphs(args) => commands::biomorphs::run(args),
            Command::Bench(what) => commands::bench::run(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_every_command() {
        let guide = include_str!("../GUIDE.md");
        let table = guide.split_once("\n# Commands\n").expect("the guide has a table of commands").1;
        for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
            let name = command.get_name();
            assert!(table.contains(&format!("| `akin {name}")), "{name} is not in the table of GUIDE.md");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
