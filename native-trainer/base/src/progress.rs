//! Progress on stderr: bars and the dashboard of a training on a terminal, plain lines elsewhere, JSON, or nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::quantities::count;
use crate::terminal;

/// How progress is shown on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// Bars and the dashboard of a training on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A line from time to time.
    Plain,
    /// A JSON object on each line: progress, losses, scores, messages, warnings and errors.
    Json,
    /// Only warnings and errors.
    None,
}

/// Without a bar, long work prints a line this often.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The work beside a dashboard, which shows it in place of a bar.
static BESIDE_DASHBOARD: Mutex<Option<(&str, ProgressBar)>> = Mutex::new(None);

/// The work that goes on beside a dashboard: its verb, and how many of how many units are done.
pub fn beside_dashboard() -> Option<(&'static str, u64, u64)> {
    let work = BESIDE_DASHBOARD.lock().unwrap_or_else(PoisonError::into_inner);
    work.as_ref().map(|(verb, bar)| (*verb, bar.position(), bar.length().unwrap_or(0)))
}

/// The progress of one piece of work.
pub struct Bar {
    progress: Progress,
    /// Whether a dashboard shows it.
    in_dashboard: bool,
    bar: ProgressBar,
    verb: &'static str,
    /// When the last line was printed, or the work began.
    last_line: Mutex<Instant>,
    /// When the work began, and with which unit.
    began: Mutex<(Instant, u64)>,
}

impl Progress {
    /// Starts a piece of work of `length` units, such as `Embedding` 1,000 pictures.
    pub fn bar(self, verb: &'static str, length: u64) -> Bar {
        let in_dashboard = self == Self::Auto && terminal::has_panel();
        let bar = match self {
            Self::Auto if terminal::stderr_can_redraw() && !in_dashboard => ProgressBar::new(length)
                .with_style(
                    ProgressStyle::with_template(
                        "{prefix:>12.green.bold} [{bar:30}] {pos}/{len}  {msg}  {eta} left",
                    )
                    .expect("the template is a valid constant")
                    .progress_chars("=> "),
                ),
            _ => ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden()),
        };
        bar.set_prefix(verb);
        if in_dashboard {
            show_beside_dashboard(Some((verb, bar.clone())));
        }
        let now = Instant::now();
        let (last_line, began) = (Mutex::new(now), Mutex::new((now, 0)));
        Bar { progress: self, in_dashboard, bar, verb, last_line, began }
    }

    /// Starts a download of this number of bytes, if it is known.
    pub fn byte_bar(self, verb: &'static str, bytes: Option<u64>) -> Bar {
        let bar = self.bar(verb, bytes.unwrap_or(0));
        if !bar.bar.is_hidden() {
            let template =
                "{prefix:>12.green.bold} [{bar:30}] {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
            let style = ProgressStyle::with_template(template).expect("the template is a valid constant");
            bar.bar.set_style(style.progress_chars("=> "));
        }
        bar
    }

    /// Prints a message in the format of cargo: a verb and its object.
    pub fn say(self, verb: &str, what: &str) {
        if self != Self::None {
            terminal::say(format_args!("{verb:>12} {what}"));
        }
    }
}

impl Bar {
    /// Adds finished units. Without a bar, prints a line from time to time.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
        if let Some(place) = self.place_after(BETWEEN_LINES) {
            self.print_place(&place);
        }
    }

    /// How far the work is, if there is no bar and it was not printed for this time.
    fn place_after(&self, time: Duration) -> Option<Place> {
        // Another thread that holds the lock prints the line.
        let mut last_line = self.last_line.try_lock().ok()?;
        if self.in_dashboard || !self.bar.is_hidden() || last_line.elapsed() < time {
            return None;
        }
        *last_line = Instant::now();
        Some(self.place())
    }

    fn place(&self) -> Place {
        let [done, total] = [self.bar.position(), self.bar.length().unwrap_or(0)];
        let (began, first) = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let left = time_left(began.elapsed(), done.saturating_sub(first), total.saturating_sub(done));
        Place { done, total, left }
    }

    fn print_place(&self, place: &Place) {
        match self.progress {
            Progress::Json => terminal::emit(&place.event(self.verb)),
            _ => self.print(&place.line()),
        }
    }

    /// Sets the number of finished units. Without a bar, prints a line from time to time.
    pub fn set(&self, units: u64) {
        self.bar.set_position(units);
        self.advance(0);
    }

    fn print(&self, line: &str) {
        if self.progress != Progress::None {
            terminal::say(format_args!("{:>12} {line}", self.verb));
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Starts at a unit other than the first.
    pub fn start_at(&self, unit: u64) {
        self.bar.set_position(unit);
        self.bar.reset_eta();
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), unit);
    }

    /// Shows a note beside the bar. Without a bar, prints it as a line if `mark` is set.
    pub fn note(&self, note: &str, mark: bool) {
        self.bar.set_message(note.to_owned());
        if mark && self.bar.is_hidden() {
            self.print(note);
            if let Ok(mut last_line) = self.last_line.lock() {
                *last_line = Instant::now();
            }
        }
    }
}

/// How far a piece of work is.
pub struct Place {
    /// Units done.
    pub done: u64,
    /// All units.
    pub total: u64,
    /// The time left, if it is known.
    pub left: Option<Duration>,
}

impl Place {
    fn line(&self) -> String {
        let line = format!("{} of {}", count(self.done as usize), count(self.total as usize));
        match self.left {
            Some(left) => format!("{line}, {} left", HumanDuration(left)),
            None => line,
        }
    }

    /// The event of `--progress json` for work of this name.
    pub fn event(&self, what: &str) -> Value {
        let seconds = self.left.map(|left| (10.0 * left.as_secs_f64()).round() / 10.0);
        json!({
            "kind": "progress", "what": what, "done": self.done, "total": self.total, "seconds_left": seconds,
        })
    }
}

/// How long the units that are left take, if they take as long as those that are done; `None` before the first.
pub fn time_left(elapsed: Duration, done: u64, left: u64) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}

fn show_beside_dashboard(work: Option<(&'static str, ProgressBar)>) {
    *BESIDE_DASHBOARD.lock().unwrap_or_else(PoisonError::into_inner) = work;
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
        // So that each piece of work has an event, however short it is. The steps of a training have their own.
        if self.progress == Progress::Json {
            self.print_place(&Place { left: None, ..self.place() });
        }
        if self.in_dashboard {
            show_beside_dashboard(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_without_a_bar_has_a_line_from_time_to_time() {
        let bar = Progress::Plain.bar("Ranking", 200_000);
        let line_after = |time| bar.place_after(time).map(|place| place.line());
        assert_eq!(line_after(Duration::ZERO).as_deref(), Some("0 of 200,000"));
        bar.advance(1_200);
        let line = line_after(Duration::ZERO).unwrap();
        assert!(line.starts_with("1,200 of 200,000, ") && line.ends_with(" left"), "{line}");
        assert_eq!(line_after(Duration::MAX), None);
    }

    #[test]
    fn the_time_left_is_that_of_the_units_left() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(30), 10, 20), Some(seconds(60)));
        assert_eq!(time_left(seconds(30), 10, 0), Some(seconds(0)));
        assert_eq!(time_left(seconds(30), 0, 20), None);
    }
}
