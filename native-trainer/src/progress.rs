//! Progress on stderr: bars on a terminal, plain lines elsewhere, or nothing.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli;

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A moving bar.
    Bars,
    /// A line now and then.
    Lines,
    /// Nothing.
    Silent,
}

impl From<cli::Progress> for Progress {
    fn from(asked: cli::Progress) -> Self {
        match asked {
            cli::Progress::Auto if stderr().is_terminal() => Self::Bars,
            cli::Progress::Auto | cli::Progress::Plain => Self::Lines,
            cli::Progress::None => Self::Silent,
        }
    }
}

/// One thing that takes a while.
pub struct Bar {
    progress: Progress,
    bar: ProgressBar,
    verb: &'static str,
}

impl Progress {
    /// Begins something of `length` units, such as `Embedding` 1,000 pictures.
    pub fn bar(self, verb: &'static str, length: u64) -> Bar {
        let bar = match self {
            Self::Bars => ProgressBar::new(length).with_style(
                ProgressStyle::with_template(
                    "{prefix:>12.green.bold} [{bar:30}] {pos}/{len}  {msg}  {eta} left",
                )
                .expect("the template is a constant that was tried")
                .progress_chars("=> "),
            ),
            Self::Lines | Self::Silent => ProgressBar::hidden(),
        };
        bar.set_prefix(verb);
        Bar { progress: self, bar, verb }
    }

    /// Says something, cargo's way: a verb and what it is done to.
    pub fn say(self, verb: &str, what: &str) {
        if self != Self::Silent {
            eprintln!("{verb:>12} {what}");
        }
    }
}

impl Bar {
    /// Goes on by some units.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
    }

    /// Starts at some unit other than the first.
    pub fn start_at(&self, unit: u64) {
        self.bar.set_position(unit);
        self.bar.reset_eta();
    }

    /// Shows how it stands; as a line of its own only when `mark` is set.
    pub fn note(&self, note: &str, mark: bool) {
        match self.progress {
            Progress::Bars => self.bar.set_message(note.to_owned()),
            Progress::Lines if mark => eprintln!("{:>12} {note}", self.verb),
            Progress::Lines | Progress::Silent => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
