//! What the user sees: results on stdout, everything else on stderr. No other module prints.
//!
//! File names, labels and cells of files can hold anything. A control character in one of them could move the cursor,
//! hide text or change the settings of a terminal. It is therefore printed as its code, `\u001b`, as JSON writes it.

#![allow(clippy::disallowed_methods, reason = "this is the module that prints")]

use std::borrow::Cow;
use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use terminal_size::{Height, Width, terminal_size_of};

/// The panel below everything else that is printed; no line if there is none.
static PANEL: Mutex<Vec<PanelLine>> = Mutex::new(Vec::new());

/// Whether every line on stderr is a JSON object.
static SPEAKS_JSON: AtomicBool = AtomicBool::new(false);

/// Prints every line on stderr as a JSON object from now on.
pub fn speak_json() {
    SPEAKS_JSON.store(true, Ordering::Relaxed);
}

/// Prints a JSON object as a line on stderr. JSON leaves some of the control characters as they are; they are printed as
/// their codes, which mean the same to its reader.
pub fn emit(event: &Value) {
    write_stderr(&format!("{}\n", escape(&event.to_string())));
}

/// Prints an event with a text, if lines on stderr are JSON. Says whether they are.
fn emits(kind: &str, text: &str) -> bool {
    let speaks_json = SPEAKS_JSON.load(Ordering::Relaxed);
    if speaks_json {
        emit(&json!({ "kind": kind, "text": text.trim() }));
    }
    speaks_json
}

/// A line of the panel, without its line end.
pub struct PanelLine {
    /// With styles for a terminal. The caller has escaped every part that is not its own.
    pub text: String,
    /// The columns that it takes.
    pub width: u16,
}

/// A result that could not be printed on stdout.
#[derive(Debug)]
pub struct OutputFailed(pub io::Error);

impl fmt::Display for OutputFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the output cannot be written")
    }
}

impl Error for OutputFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Prints a result and a line end on stdout.
///
/// # Errors
///
/// A full disk; a pipe that is closed.
pub fn print(text: &str) -> Result<(), OutputFailed> {
    print_styled(&escape(text))
}

/// Prints a result with styles for a terminal, and a line end. The caller has escaped every part that is not its own.
///
/// # Errors
///
/// The errors of [`print`].
pub fn print_styled(text: &str) -> Result<(), OutputFailed> {
    let panel = panel();
    write_stderr(&erased(&panel));
    let mut stdout = io::stdout().lock();
    let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    write_stderr(&drawn(&panel));
    printed.map_err(OutputFailed)
}

/// Prints a line on stderr, above the panel. If stderr is closed, nobody can be told.
pub fn say(line: impl fmt::Display) {
    let text = line.to_string();
    let text = cut(&text);
    if emits("message", &text) {
        return;
    }
    let panel = panel();
    // One write, so that the panel does not flicker.
    write_stderr(&format!("{}{}\n{}", erased(&panel), escape(&text), drawn(&panel)));
}

/// Shows these lines on stderr below everything that is printed, instead of the panel so far. Each has to fit the width
/// of the terminal. All should fit its height; the smallest dashboard has three lines at any height. Needs
/// [`stderr_can_redraw`].
///
/// The panel needs no mode of the terminal: no key is read, and a program that ends at any moment leaves nothing to put
/// back.
pub fn show_panel(lines: Vec<PanelLine>) {
    let mut panel = panel();
    // Terminals that know the two codes show all of it at once; others pass over them.
    write_stderr(&format!("\x1b[?2026h{}{}\x1b[?2026l", erased(&panel), drawn(&lines)));
    *panel = lines;
}

/// Whether there is a panel.
pub fn has_panel() -> bool {
    !panel().is_empty()
}

/// Leaves the panel as it is, above whatever is printed next.
pub fn leave_panel() {
    panel().clear();
}

fn panel() -> MutexGuard<'static, Vec<PanelLine>> {
    PANEL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What moves the cursor from below a panel to its start and erases it. In a terminal that was made narrower, its lines
/// now take more rows.
fn erased(panel: &[PanelLine]) -> String {
    let columns = stderr_size().map_or(u16::MAX, |(columns, _)| columns);
    match rows(panel, columns) {
        0 => String::new(),
        rows => format!("\r\x1b[{rows}A\x1b[J"),
    }
}

/// The rows that a panel takes in a terminal of this width.
fn rows(panel: &[PanelLine], columns: u16) -> u16 {
    panel.iter().map(|line| line.width.div_ceil(columns.max(1)).max(1)).sum()
}

fn drawn(panel: &[PanelLine]) -> String {
    panel.iter().map(|line| format!("{}\n", line.text)).collect()
}

/// A message without its middle, if it is longer than anybody reads: names, cells and lines of files have any length.
fn cut(text: &str) -> Cow<'_, str> {
    const START: usize = 3000;
    const END: usize = 1000;
    let place = |character| text.char_indices().nth(character).map_or(text.len(), |(place, _)| place);
    let count = text.chars().count();
    if count <= START + END {
        return Cow::Borrowed(text);
    }
    let (start, end) = (&text[..place(START)], &text[place(count - END)..]);
    Cow::Owned(format!("{start} … {} characters … {end}", count - START - END))
}

fn write_stderr(text: &str) {
    if !text.is_empty() {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Prints a warning on stderr.
pub fn warn(message: impl fmt::Display) {
    let message = message.to_string();
    let message = cut(&message);
    if !emits("warning", &message) {
        say(format_args!("warning: {}", indented(&message)));
    }
}

/// Prints an error and its hint on stderr, in the format of cargo. The code is for programs, which read JSON.
pub fn report(message: &str, hint: Option<&str>, code: &str) {
    let (message, hint) = (cut(message), hint.map(cut));
    if SPEAKS_JSON.load(Ordering::Relaxed) {
        return emit(
            &json!({ "kind": "error", "text": message.trim(), "hint": hint.as_deref(), "code": code }),
        );
    }
    let (red, blue, plain) =
        if stderr_has_colours() { ("\x1b[1;31m", "\x1b[1;34m", "\x1b[0m") } else { ("", "", "") };
    let mut text = format!("{red}error{plain}: {}\n", escape(&indented(message.trim_end())));
    if let Some(hint) = hint {
        text += &format!("  {blue}hint{plain}: {}\n", escape(&indented(&hint)));
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Asks a question on stderr and reads the answer from stdin, without spaces around it. An empty answer stands for
/// `default`.
///
/// # Errors
///
/// An answer that cannot be read.
pub fn ask(question: &str, default: Option<&str>) -> io::Result<String> {
    let default_shown = default.map_or(String::new(), |default| format!(" [{default}]"));
    let mut stderr = io::stderr();
    write!(stderr, "{}", escape(&format!("{question}{default_shown}: ")))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(if answer.is_empty() { default.unwrap_or_default() } else { answer }.to_owned())
}

/// Whether there is somebody to ask: stdin and stderr are terminals.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && stderr_is_terminal()
}

/// The text with all lines but the first moved to the right, so that a name with a line end cannot look like a message.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

/// The text with every control character replaced by its code, except line ends and tabs. Characters that change the
/// direction of the text count as control characters.
pub fn escape(text: &str) -> Cow<'_, str> {
    if is_harmless(text) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|c| match is_unsafe(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    });
    Cow::Owned(escaped.collect())
}

/// As [`escape`], and line ends and tabs too: a name with a line end cannot look like a line of its own.
pub fn one_line(text: &str) -> String {
    escape(text).replace('\n', "\\u000a").replace('\t', "\\u0009")
}

/// Whether a text has nothing to escape.
pub fn is_harmless(text: &str) -> bool {
    !text.contains(is_unsafe)
}

fn is_unsafe(c: char) -> bool {
    let changes_direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    changes_direction || c.is_control() && !matches!(c, '\n' | '\t')
}

/// Where the output of another program goes that reports progress.
pub fn stderr_of_child() -> Stdio {
    io::stderr().into()
}

/// Whether stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether stderr is a terminal on which a line can be drawn again: one that moves its cursor.
pub fn stderr_can_redraw() -> bool {
    // The terminal of Windows has no name.
    let moves_cursor = env::var_os("TERM").map_or(cfg!(windows), |name| !name.is_empty() && name != "dumb");
    stderr_is_terminal() && moves_cursor
}

/// Whether stderr is a terminal that is wanted in colour, see <https://no-color.org>.
pub fn stderr_has_colours() -> bool {
    stderr_can_redraw() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The columns and rows of the terminal; none if stderr is no terminal.
pub fn stderr_size() -> Option<(u16, u16)> {
    terminal_size_of(io::stderr()).map(|(Width(columns), Height(rows))| (columns, rows))
}

/// The columns of the terminal; none if stdout is no terminal.
pub fn width() -> Option<u16> {
    terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_loses_its_middle() {
        assert_eq!(cut("short"), "short");
        let long = format!("start{}end", "é".repeat(20_000_000));
        let cut = cut(&long);
        assert!(cut.starts_with("start") && cut.ends_with("end") && cut.chars().count() < 5000);
        assert!(cut.contains(" … 19996008 characters … "), "{cut}");
    }

    #[test]
    fn a_name_with_a_line_end_begins_no_line_of_a_message() {
        assert_eq!(indented("skipped a\nerror: b"), "skipped a\n    error: b");
    }

    #[test]
    fn the_lines_of_a_panel_take_more_rows_in_a_narrower_terminal() {
        let panel: Vec<PanelLine> =
            [0, 40, 80].map(|width| PanelLine { text: String::new(), width }).into_iter().collect();
        assert_eq!([100, 80, 79, 30, 0].map(|columns| rows(&panel, columns)), [3, 3, 4, 6, 121]);
        assert_eq!(rows(&[], 80), 0);
    }

    #[test]
    fn control_characters_become_their_codes_and_lines_stay() {
        assert_eq!(escape("a\tb\né – 猫"), "a\tb\né – 猫");
        assert_eq!(escape("\x1b[31m\r\u{7f}\u{9b}2J\u{202e}"), "\\u001b[31m\\u000d\\u007f\\u009b2J\\u202e");
        let json = serde_json::to_string("\u{9b}\x1b").unwrap();
        assert_eq!(serde_json::from_str::<String>(&escape(&json)).unwrap(), "\u{9b}\x1b");
    }
}
