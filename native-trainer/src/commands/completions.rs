//! `akin completions` and `akin man`: what a shell and `man` know about akin, written from the command line itself.

use std::path::PathBuf;

use akin_base::files::{create_folder, write_atomic};
use akin_base::problem::problem;
use akin_base::terminal;
use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

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
    let mut command = command.display_name(name).bin_name(name.replace('-', " "));
    let synopsis = synopsis(&mut command);
    let has_subcommands = command.has_subcommands();
    let source = format!("akin {}", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command).source(source);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend(synopsis.into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    pages.push((format!("{name}.1"), page));
    Ok(())
}

/// The section with the usage as `--help` has it. That of clap_mangen leaves out which options take a value.
fn synopsis(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    let mut text = ".SH SYNOPSIS\n".to_owned();
    for line in usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|line| !line.is_empty()) {
        let escaped = line.replace('\\', "\\e").replace('-', "\\-");
        text += &format!("{escaped}\n.br\n");
    }
    text
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

    #[test]
    fn the_synopsis_of_a_page_is_the_usage() {
        let check = Command::new("check")
            .about("Check it.")
            .arg(clap::Arg::new("config").value_name("CONFIG").required(true))
            .arg(clap::Arg::new("out").long("out").value_name("DIR").required(true));
        let mut pages = Vec::new();
        collect(Command::new("akin").subcommand(check), "akin", &mut pages).unwrap();
        let text = |place: usize| String::from_utf8(pages[place].1.clone()).unwrap();
        assert!(text(0).contains(".SH SYNOPSIS\nakin check \\-\\-out <DIR> <CONFIG>\n"), "{}", text(0));
        assert!(text(1).contains(".SH SYNOPSIS\nakin [COMMAND]\n"), "{}", text(1));
        assert!(text(0).contains("akin\\-check \\- Check it.\n"), "{}", text(0));
    }
}
