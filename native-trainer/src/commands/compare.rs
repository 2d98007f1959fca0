//! `akin compare`: many losses on the same data.

use std::io::{IsTerminal, Write, stdout};

use anyhow::Result;

use crate::cli::CompareArgs;
use crate::compare::execution;
use crate::compare::plan::{Overrides, Plan};
use crate::compare::print::{FILES, print};
use crate::config::Source;
use crate::files::write_atomic;
use crate::problem::{a_few, problem};
use crate::progress::Progress;
use crate::table::counted;
use crate::training::listen_to_ctrl_c;

/// Trains every cell that is not there yet, and prints the table.
pub fn run(args: CompareArgs) -> Result<()> {
    let source = Source::read(&args.config, &args.sets.set)?;
    let overrides = Overrides { losses: args.losses, seeds: args.seeds, out: args.out, device: args.device };
    let plan = Plan::new(source, overrides)?;
    let progress = Progress::from(args.progress);
    listen_to_ctrl_c()?;
    let comparison = execution::run(&plan, args.overwrite, progress, command())?;

    for (name, format) in FILES {
        let text = print(&comparison, format, false);
        write_atomic(&plan.out.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    write!(stdout(), "{}", print(&comparison, args.format, stdout().is_terminal()))?;
    progress.say("Wrote", &plan.out.join("table.{md,tex,csv,json}").display().to_string());

    let failed: Vec<String> = comparison.lines.iter().flat_map(|line| &line.failed).cloned().collect();
    if !failed.is_empty() {
        return Err(problem(
            format!("{} failed: {}", counted(failed.len(), "training", "trainings"), a_few(&failed)),
            "the table is without them; the same command tries them again",
        ));
    }
    let worse: Vec<&str> = comparison
        .lines
        .iter()
        .filter(|line| line.improved() != Some(true))
        .map(|line| line.name.as_str())
        .collect();
    if args.check && !worse.is_empty() {
        return Err(problem(
            format!("no better than the untrained encoder by what they optimise: {}", a_few(&worse)),
            "train longer, or with other learning rates",
        ));
    }
    Ok(())
}

/// The command line as it was given.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=.,/:@+".contains(c));
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    std::iter::once("akin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
