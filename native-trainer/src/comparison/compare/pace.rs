//! How far the trainings of a comparison or a tuning are, and how long the rest will take.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use akin_base::progress::{Place, Progress};
use akin_base::quantities::{counted, duration};
use akin_base::terminal;
use serde_json::Value;

/// The trainings of a comparison or a tuning: how many there are, and how many have ended. With `--progress json` each
/// change is an event.
pub struct Pace {
    progress: Progress,
    /// What the trainings are for, such as `Comparing`.
    what: &'static str,
    counts: Cell<Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    total: u64,
    /// Those that have ended.
    done: u64,
    /// Those of them that failed.
    failed: u64,
    /// Those of them that had ended before.
    remembered: u64,
    /// Those of them that this process trained, and how long they took.
    trained: u32,
    time: Duration,
}

impl Pace {
    /// Without any training yet.
    pub fn new(what: &'static str, progress: Progress) -> Self {
        Self { progress, what, counts: Cell::default() }
    }

    /// This many trainings are to come.
    pub fn expect(&self, trainings: usize) {
        self.counts.set(Counts { total: trainings as u64, ..Counts::default() });
        self.emit("progress", &[]);
    }

    /// Leaves out a training that is not needed.
    pub fn leave_out(&self) {
        let counts = self.counts.get();
        self.counts.set(Counts { total: counts.total.saturating_sub(1), ..counts });
        self.emit("progress", &[]);
    }

    /// Counts a training that had ended before.
    pub fn remember(&self, failed: bool) {
        let counts = self.counts.get();
        self.counts.set(Counts { remembered: counts.remembered + 1, ..counts });
        self.count(failed);
        self.emit("progress", &[]);
    }

    /// Counts a training of this process, with its name and its directory. Says what is left, if anything is.
    pub fn end(&self, name: &str, directory: &Path, took: Duration, failed: bool) -> String {
        let counts = self.counts.get();
        self.counts.set(Counts { trained: counts.trained + 1, time: counts.time + took, ..counts });
        self.count(failed);
        self.emit("progress", &[("training", name), ("directory", &directory.to_string_lossy())]);
        let Place { done, total, left } = self.place();
        if done >= total {
            return String::new();
        }
        let left = left.unwrap_or_default().max(Duration::from_secs(1));
        let trainings = counted((total - done) as usize, "training", "trainings");
        format!("; {trainings} left, about {}", duration(left))
    }

    /// Tells that Ctrl-C stopped the trainings, in the one with this name and directory.
    pub fn stopped(&self, name: &str, directory: &Path) {
        self.emit("stopped", &[("training", name), ("directory", &directory.to_string_lossy())]);
    }

    /// Tells that everything is done, with the directory of the results.
    pub fn done(&self, directory: &Path) {
        self.emit("done", &[("directory", &directory.to_string_lossy())]);
    }

    fn count(&self, failed: bool) {
        let counts = self.counts.get();
        self.counts.set(Counts {
            done: counts.done + 1,
            failed: counts.failed + u64::from(failed),
            ..counts
        });
    }

    fn place(&self) -> Place {
        let Counts { total, done, trained, time, .. } = self.counts.get();
        let left =
            (trained > 0).then(|| time.mul_f64(total.saturating_sub(done) as f64 / f64::from(trained)));
        Place { done, total, left }
    }

    fn emit(&self, kind: &str, more: &[(&str, &str)]) {
        if self.progress == Progress::Json {
            terminal::emit(&self.event(kind, more));
        }
    }

    fn event(&self, kind: &str, more: &[(&str, &str)]) -> Value {
        let Counts { failed, remembered, .. } = self.counts.get();
        let mut event = self.place().event(self.what);
        event["kind"] = kind.into();
        event["failed"] = failed.into();
        event["remembered"] = remembered.into();
        for &(key, text) in more {
            event[key] = text.into();
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trainings_are_counted_by_how_they_ended() {
        let pace = Pace::new("Comparing", Progress::None);
        pace.expect(6);
        assert_eq!(pace.event("progress", &[])["seconds_left"], Value::Null, "nothing is known yet");
        pace.remember(false);
        pace.remember(true);
        pace.leave_out();
        let seconds = Duration::from_secs;
        let left = pace.end("happier, seed 0", Path::new("out/happier/seed-0"), seconds(30), false);
        assert_eq!(left, "; 2 trainings left, about 1 min");
        assert_eq!(
            pace.event("progress", &[("training", "a")]),
            json!({
                "kind": "progress", "what": "Comparing", "done": 3, "total": 5, "failed": 1, "remembered": 2,
                "seconds_left": 60.0, "training": "a",
            })
        );
        let left = pace.end("a", Path::new("a"), seconds(10), true);
        assert_eq!(left, "; 1 training left, about 20 s");
        assert_eq!(pace.end("b", Path::new("b"), seconds(10), false), "");
        let event = pace.event("done", &[]);
        assert_eq!(
            [&event["done"], &event["failed"], &event["seconds_left"]],
            [&json!(5), &json!(2), &json!(0.0)]
        );
    }
}
