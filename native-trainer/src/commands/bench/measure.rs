//! Times of several pieces of work in turns, peak memory from the operating system, and the table or JSON of both.

use std::env;
use std::process::{Command, Stdio};
use std::time::Instant;

use akin_base::problem::problem;
use akin_base::text_table::align_numbers;
use akin_base::{machine, terminal};
use anyhow::Result;
use serde_json::{Map, Value, json};

/// How often a piece of work is repeated: until all of them have taken this long, within limits.
const SECONDS: f64 = 1.5;
const FEWEST_ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 25;

/// The median times, in seconds, of several pieces of work. They run in turns, so that what slows the machine slows all
/// of them. The first round is not counted: it fills caches and allocates memory. Work that takes long is repeated less.
pub fn median_seconds<const N: usize>(mut work: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut seconds = [const { Vec::new() }; N];
    let mut round = || {
        for (work, seconds) in work.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            work();
            seconds.push(start.elapsed().as_secs_f64());
        }
    };
    let start = Instant::now();
    round();
    let first = start.elapsed().as_secs_f64();
    let rounds = (SECONDS / first.max(1e-6)) as usize;
    // Work of half a minute is measured once: nothing that a second round would show matters then.
    let rounds = if first > 20.0 { 0 } else { rounds.clamp(FEWEST_ROUNDS, MOST_ROUNDS) };
    (0..rounds).for_each(|_| round());
    seconds.map(|mut seconds| {
        if seconds.len() > 1 {
            seconds.remove(0);
        }
        median(&mut seconds)
    })
}

/// The median of some numbers; there is at least one.
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) { (numbers[half - 1] + numbers[half]) / 2.0 } else { numbers[half] }
}

/// The peak memory, in bytes, of another process of this command with these arguments besides. That process calls
/// [`print_peak_memory`] when its work is done. None where the system does not report it.
///
/// # Errors
///
/// The process cannot be started, or fails.
pub fn peak_memory_with<const N: usize>(arguments: [&str; N]) -> Result<Option<u64>> {
    let mut process = Command::new(env::current_exe()?);
    process.args(env::args_os().skip(1)).args(arguments);
    let output = process.stdin(Stdio::null()).stderr(terminal::stderr_of_child()).output()?;
    if !output.status.success() {
        return Err(problem(
            format!("the process that measures memory ended with {}", output.status),
            "a message above says why; where there is none, the system has stopped it, mostly for lack of memory",
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Prints the peak memory of this process for [`peak_memory_with`], or nothing.
///
/// # Errors
///
/// stdout is closed.
pub fn print_peak_memory() -> Result<()> {
    Ok(terminal::print(&machine::peak_memory().map_or_else(String::new, |bytes| bytes.to_string()))?)
}

/// A number of a report, or that it was not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A time in seconds.
    Seconds(f64),
    /// A quotient of two times.
    Ratio(f64),
    /// How often something happens in a second.
    Rate(f64),
    /// A size in bytes.
    Bytes(u64),
    /// A count.
    Count(usize),
    /// It was not measured.
    Missing,
}

impl Figure {
    /// A size, where the system reports it.
    pub fn bytes(bytes: Option<u64>) -> Self {
        bytes.map_or(Self::Missing, Self::Bytes)
    }

    /// With its unit.
    pub fn text(self) -> String {
        match self {
            Self::Seconds(seconds) if seconds < 1e-3 => format!("{} µs", digits(1e6 * seconds)),
            Self::Seconds(seconds) if seconds < 1.0 => format!("{} ms", digits(1e3 * seconds)),
            Self::Seconds(seconds) => format!("{} s", digits(seconds)),
            Self::Ratio(ratio) => format!("{}×", digits(ratio)),
            Self::Rate(rate) => digits(rate),
            Self::Bytes(bytes) if bytes < 1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
            Self::Bytes(bytes) => format!("{:.1} GB", bytes as f64 / 1e9),
            Self::Count(count) => count.to_string(),
            Self::Missing => "–".into(),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Seconds(number) | Self::Ratio(number) | Self::Rate(number) => json!(number),
            Self::Bytes(bytes) => json!(bytes),
            Self::Count(count) => json!(count),
            Self::Missing => Value::Null,
        }
    }
}

/// Two significant digits, or all digits before the point.
fn digits(number: f64) -> String {
    if number >= 9.95 { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// A row of a report: what was measured, and its figures.
pub struct Row {
    /// What was measured.
    pub name: String,
    /// One for each column.
    pub figures: Vec<Figure>,
}

/// A report: its columns, each with a name for people and a key in JSON, and its rows.
pub struct Report {
    /// What the rows are: the head of the first column, and its key.
    pub subject: &'static str,
    /// The other columns.
    pub columns: Vec<(&'static str, &'static str)>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// Prints the report: a table with a line on the machine, or JSON.
    ///
    /// # Errors
    ///
    /// stdout is closed.
    pub fn print(&self, as_json: bool) -> Result<()> {
        let text = if as_json { serde_json::to_string_pretty(&self.json())? } else { self.table() };
        Ok(terminal::print(&text)?)
    }

    fn table(&self) -> String {
        let header: Vec<&str> =
            [self.subject].into_iter().chain(self.columns.iter().map(|(name, _)| *name)).collect();
        let cells = |row: &Row| {
            let figures = row.figures.iter().map(|figure| figure.text());
            [row.name.clone()].into_iter().chain(figures).collect()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        align_numbers(&header, &rows)
    }

    fn json(&self) -> Value {
        let object = |row: &Row| {
            let figures = self.columns.iter().zip(&row.figures);
            let figures = figures.map(|((_, key), figure)| ((*key).to_owned(), figure.json()));
            let name = (self.subject.to_owned(), json!(row.name));
            Value::Object([name].into_iter().chain(figures).collect::<Map<String, Value>>())
        };
        let rows: Vec<Value> = self.rows.iter().map(object).collect();
        json!({ "akin": env!("CARGO_PKG_VERSION"), "machine": machine::describe(), "rows": rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_in_turns_and_its_median_is_counted() {
        let turns = std::cell::RefCell::new(Vec::new());
        median_seconds([&mut || turns.borrow_mut().push('a'), &mut || turns.borrow_mut().push('b')]);
        let turns = turns.into_inner();
        assert_eq!(turns.len(), 2 * (1 + MOST_ROUNDS));
        assert!(turns.chunks(2).all(|round| round == ['a', 'b']));
        assert_eq!([median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0])], [2.0, 2.5]);
    }

    #[test]
    fn figures_have_their_units_and_two_digits() {
        let text = |figure: Figure| figure.text();
        assert_eq!(text(Figure::Seconds(0.000_012_3)), "12 µs");
        assert_eq!(text(Figure::Seconds(0.004_56)), "4.56 ms");
        assert_eq!(text(Figure::Seconds(18.1)), "18 s");
        assert_eq!(text(Figure::Ratio(1.5)), "1.50×");
        assert_eq!(text(Figure::Bytes(140_000_000)), "140 MB");
        assert_eq!(text(Figure::Missing), "–");
    }

    #[test]
    fn json_has_the_numbers_without_units() {
        let report = Report {
            subject: "loss",
            columns: vec![("time", "seconds"), ("memory", "peak_memory")],
            rows: vec![Row { name: "pair".into(), figures: vec![Figure::Seconds(0.5), Figure::Missing] }],
        };
        assert_eq!(report.json()["rows"][0], json!({ "loss": "pair", "seconds": 0.5, "peak_memory": null }));
        assert_eq!(report.table(), "loss    time  memory\npair  500 ms       –");
    }
}
