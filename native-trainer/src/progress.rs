//! Progress on stderr: bars on a terminal, plain lines elsewhere, or nothing.

use std::io::{IsTerminal, stderr};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

/// How progress is shown on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// Bars on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A line from time to time.
    Plain,
    /// Only warnings and errors.
    None,
}

/// The progress of one piece of work.
pub struct Bar {
    progress: Progress,
    bar: ProgressBar,
    verb: &'static str,
}

impl Progress {
    /// Starts a piece of work of `length` units, such as `Embedding` 1,000 pictures.
    pub fn bar(self, verb: &'static str, length: u64) -> Bar {
        let bar = match self {
            Self::Auto if stderr().is_terminal() => ProgressBar::new(length).with_style(
                ProgressStyle::with_template(
                    "{prefix:>12.green.bold} [{bar:30}] {pos}/{len}  {msg}  {eta} left",
                )
                .expect("the template is a valid constant")
                .progress_chars("=> "),
            ),
            _ => ProgressBar::hidden(),
        };
        bar.set_prefix(verb);
        Bar { progress: self, bar, verb }
    }

    /// Prints a message in the format of cargo: a verb and its object.
    pub fn say(self, verb: &str, what: &str) {
        if self != Self::None {
            eprintln!("{verb:>12} {what}");
        }
    }
}

impl Bar {
    /// Adds finished units.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
    }

    /// Starts at a unit other than the first.
    pub fn start_at(&self, unit: u64) {
        self.bar.set_position(unit);
        self.bar.reset_eta();
    }

    /// Shows a note beside the bar. Without a bar, prints it as a line if `mark` is set.
    pub fn note(&self, note: &str, mark: bool) {
        self.bar.set_message(note.to_owned());
        if mark && self.bar.is_hidden() && self.progress != Progress::None {
            eprintln!("{:>12} {note}", self.verb);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
