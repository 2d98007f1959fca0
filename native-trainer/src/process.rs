//! The program as a process: its arguments, Ctrl-C, what it reports, and its exit code.

use std::io;
use std::process::{ExitCode, exit};

use akin_base::interrupt::{self, Answer};
use akin_base::memory;
use akin_base::problem::{self, Advise, Interrupted};
use akin_base::progress::Progress;
use akin_base::terminal::{self, OutputFailed};
use akin_base::threads::{self, RAISE_LIMIT};
use anyhow::Result;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::cli::Cli;

/// Reads the arguments, runs the command and reports its error.
pub fn main() -> ExitCode {
    let matches = Cli::command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
    if progress_of(&matches) == Some(Progress::Json) {
        terminal::speak_json();
    }
    let Err(error) = run(cli) else { return ExitCode::SUCCESS };
    if let Some(failed) = error.downcast_ref::<OutputFailed>() {
        return output_failed(failed);
    }
    if let Some(stopped) = error.downcast_ref::<Interrupted>() {
        terminal::say(format_args!("     Stopped {stopped}"));
        return ExitCode::from(Interrupted::EXIT_CODE);
    }
    let (message, hint) = problem::parts(&error);
    terminal::report(&message, hint.as_deref(), problem::code(&error));
    ExitCode::FAILURE
}

/// How the command shows progress, if it does.
fn progress_of(matches: &ArgMatches) -> Option<Progress> {
    match matches.subcommand() {
        Some((_, inner)) => progress_of(inner),
        None => matches.try_get_one::<Progress>("progress").ok().flatten().copied(),
    }
}

/// Prints what clap says of the arguments, which may be help, and ends. Without style if an argument has control
/// characters.
fn refuse(error: &clap::Error) -> ! {
    if std::env::args_os().all(|argument| terminal::is_harmless(&argument.to_string_lossy())) {
        if let Err(failed) = error.print()
            && !error.use_stderr()
            && failed.kind() != io::ErrorKind::BrokenPipe
        {
            output_failed(&OutputFailed(failed));
            exit(1);
        }
    } else {
        terminal::say(error);
    }
    exit(error.exit_code())
}

fn run(cli: Cli) -> Result<()> {
    if cli.computes() {
        memory::keep();
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    outlive_file_size_limit();
    threads::prepare()?;
    if cli.trains() {
        handle_ctrl_c()?;
    }
    cli.run()
}

/// Lets a training save before Ctrl-C ends the program. A second Ctrl-C ends it at once.
fn handle_ctrl_c() -> Result<()> {
    interrupt::handle(|answer| match answer {
        Answer::Wait => terminal::say("\n    Stopping after this step; press Ctrl-C again to abort at once"),
        Answer::Exit => exit(Interrupted::EXIT_CODE.into()),
        Answer::Ignore => {}
    })
    .advise(|| "the handler of Ctrl-C cannot be installed".into(), RAISE_LIMIT)
}

/// Reports that stdout cannot be written. If its reader has closed it, as `akin … | head` does, nothing is wrong.
fn output_failed(failed: &OutputFailed) -> ExitCode {
    if failed.0.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    let message = format!("{failed}: {}", failed.0);
    terminal::report(&message, Some("free some space, or send the output to another place"), problem::SYSTEM);
    ExitCode::FAILURE
}

/// Lets a file that exceeds `ulimit -f` be an error of its write, which names the file. Without a handler the signal ends
/// the program and says nothing.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn outlive_file_size_limit() {
    const SIGXFSZ: i32 = 25;
    // Where the handler cannot be installed, the program ends as it did.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}
