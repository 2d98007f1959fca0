//! `akin completions` and `akin man`: what a shell and `man` know about akin, written from the command line itself.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::files::{create_folder, write_atomic};
use crate::problem::problem;
use crate::terminal;

/// Print a script that completes commands and options of akin in a shell.
///
/// For bash: `akin completions bash > ~/.local/share/bash-completion/completions/akin`. For zsh: a file `_akin` in a
/// folder of `$fpath`. For fish: `~/.config/fish/completions/akin.fish`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Write the manual pages of all commands into a folder.
///
/// `akin man ~/.local/share/man/man1` lets `man akin-train` find them.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder, which is created if it does not exist.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Replace pages that are there.
    #[arg(long)]
    pub overwrite: bool,
}

/// Prints the script for a shell.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "akin", &mut script);
    terminal::print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(())
}

/// Writes a page for akin, and one for each command.
pub fn man(args: &ManArgs, command: Command) -> Result<()> {
    let mut pages = Vec::new();
    collect(command.disable_help_subcommand(true), "akin", &mut pages)?;
    if args.folder.is_file() {
        return Err(problem(format!("{} is a file", args.folder.display()), "give a folder"));
    }
    let present = pages.iter().map(|(name, _)| args.folder.join(name)).find(|page| page.exists());
    if let Some(page) = present.filter(|_| !args.overwrite) {
        return Err(problem(
            format!("{} already exists", page.display()),
            "choose another folder, or pass `--overwrite` to replace the pages",
        ));
    }
    create_folder(&args.folder)?;
    for (name, page) in &pages {
        write_atomic(&args.folder.join(name), |file| file.write_all(page))?;
    }
    terminal::say(format_args!("       Wrote {} manual pages to {}", pages.len(), args.folder.display()));
    Ok(())
}

/// The pages of a command and of those below it, by their file names.
fn collect(command: Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        collect(below.clone(), &format!("{name}-{}", below.get_name()), pages)?;
    }
    let mut page = Vec::new();
    let command = command.display_name(name).bin_name(name.replace('-', " "));
    clap_mangen::Man::new(command).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let command = Command::new("akin").subcommand(Command::new("data").subcommand(Command::new("check")));
        let mut pages = Vec::new();
        collect(command, "akin", &mut pages).unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["akin-data-check.1", "akin-data.1", "akin.1"]);
    }
}
