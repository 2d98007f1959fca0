//! Errors: what is wrong, why, and what the user can do.

use std::error::Error;
use std::fmt;

/// An error with a hint. Every error that a user can cause is one of these or an [`akin_core::Error`].
#[derive(Debug)]
pub struct Problem {
    message: String,
    hint: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    /// Whether it is about a number that is NaN or infinite.
    of_numbers: bool,
}

/// An error. `message` says what is wrong and why, `hint` what to do. Both start in lower case (or with a name)
/// and end without a full stop.
pub fn problem(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Problem { message: message.into(), hint: hint.into(), cause: None, of_numbers: false }.into()
}

/// As [`problem`], for a number that training made NaN or infinite. The same training would do so again, whatever the
/// state of the system.
pub fn numbers_problem(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Problem { message: message.into(), hint: hint.into(), cause: None, of_numbers: true }.into()
}

/// Whether an error is one of [`numbers_problem`], or of embeddings that cannot be ranked, such as zeros.
pub fn is_of_numbers(error: &anyhow::Error) -> bool {
    let is_about_embeddings = |error: &akin_core::Error| matches!(error.kind(), akin_core::Kind::Embeddings);
    error.chain().any(|cause| {
        cause.downcast_ref::<Problem>().is_some_and(|problem| problem.of_numbers)
            || cause.downcast_ref::<akin_core::Error>().is_some_and(is_about_embeddings)
    })
}

/// Ctrl-C stopped a command, which has saved its work. The text says where it stopped and how to continue:
/// "after step 40; continue with `akin resume RUN`".
///
/// This is an error so that only `main` ends the process.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl Interrupted {
    /// The exit code of a command that Ctrl-C stopped, as shells report it.
    pub const EXIT_CODE: u8 = 130;
}

/// Adds a message and a hint to the error of a library, which becomes the cause.
pub trait Advise<T> {
    /// `message` says what failed, `hint` what to do.
    fn advise(self, message: impl FnOnce() -> String, hint: &str) -> anyhow::Result<T>;
}

impl<T, E: Error + Send + Sync + 'static> Advise<T> for Result<T, E> {
    fn advise(self, message: impl FnOnce() -> String, hint: &str) -> anyhow::Result<T> {
        self.map_err(|error| {
            let cause = Some(Box::new(error) as Box<dyn Error + Send + Sync>);
            Problem { message: message(), hint: hint.to_owned(), cause, of_numbers: false }.into()
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Interrupted {}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// The two parts of an error: its chain of causes on one line, and the first hint in the chain, if there is one. Where the
/// system has set a limit, the hint names that.
pub fn parts(error: &anyhow::Error) -> (String, Option<String>) {
    let mut hint = None;
    let mut messages: Vec<String> = Vec::new();
    for cause in error.chain() {
        messages.push(if let Some(core) = cause.downcast_ref::<akin_core::Error>() {
            hint = hint.or(Some(core.hint().to_owned()));
            core.message().to_owned()
        } else {
            hint = hint.or_else(|| cause.downcast_ref::<Problem>().map(|problem| problem.hint.clone()));
            cause.to_string()
        });
    }
    if let Some(limit) = error.chain().find_map(|cause| limit_hint(cause.downcast_ref()?)) {
        // Behind a semicolon stands what has become of the work.
        let rest = hint.as_deref().and_then(|hint| hint.split_once(';')).map(|(_, rest)| format!(";{rest}"));
        hint = Some(format!("{limit}{}", rest.unwrap_or_default()));
    }
    (messages.join(": "), hint.filter(|hint| !hint.is_empty()))
}

/// What to do about a limit of the system, whatever a command was doing when it met it.
#[cfg(unix)]
fn limit_hint(error: &std::io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("raise the limit of open files of a process (`ulimit -n`)"),
        Errno::NFILE => Some("the machine has too many open files: end other programs"),
        Errno::FBIG => Some("raise the limit of the size of a file (`ulimit -f`)"),
        _ => None,
    }
}

#[cfg(not(unix))]
fn limit_hint(_: &std::io::Error) -> Option<&'static str> {
    None
}

/// What an error is about, as a word for programs: the code of a [`Kind`](akin_core::Kind), `numbers` for
/// [`numbers_problem`], `system` if the operating system refused something, or `other`. The guide explains each.
pub fn code(error: &anyhow::Error) -> &'static str {
    let code = |cause: &(dyn Error + 'static)| {
        if let Some(core) = cause.downcast_ref::<akin_core::Error>() {
            return Some(core.kind().code());
        }
        if cause.downcast_ref::<Problem>().is_some_and(|problem| problem.of_numbers) {
            return Some("numbers");
        }
        cause.is::<std::io::Error>().then_some(SYSTEM)
    };
    error.chain().find_map(code).unwrap_or("other")
}

/// The code of an error that the operating system reports.
pub const SYSTEM: &str = "system";

/// The candidate that is most similar to a mistyped `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |candidate: &str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (similarity(candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The start of a hint: "did you mean `x`? ", or nothing if no candidate is similar.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

/// The first name that occurs twice in a list.
pub fn repeated<T: PartialEq>(names: &[T]) -> Option<&T> {
    (0..).zip(names).find(|&(place, name)| names[..place].contains(name)).map(|(_, name)| name)
}

/// The first five of many things, and the number of the others: `a, b, c, d, e and 7 more`.
pub fn a_few<T: fmt::Display>(things: &[T]) -> String {
    listed(things, 5)
}

/// As [`a_few`], with the first `count` of them.
pub fn listed<T: fmt::Display>(things: &[T], count: usize) -> String {
    let listed: Vec<String> = things.iter().take(count).map(T::to_string).collect();
    match things.len().saturating_sub(count) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn an_error_has_its_causes_and_a_hint() {
        let error =
            Err::<(), _>(problem("the column is missing", "add it")).context("reading a.csv").unwrap_err();
        assert_eq!(parts(&error), ("reading a.csv: the column is missing".into(), Some("add it".into())));
        let error = "x".parse::<u8>().advise(|| "bad count".into(), "write a number").unwrap_err();
        assert_eq!(
            parts(&error),
            ("bad count: invalid digit found in string".into(), Some("write a number".into()))
        );
        let error = akin_core::Error::new(akin_core::Kind::Config, "alpha is -1", "choose 1");
        assert_eq!(parts(&error.into()), ("alpha is -1".into(), Some("choose 1".into())));
    }

    #[cfg(unix)]
    #[test]
    fn a_limit_of_the_system_is_named_whatever_was_done() {
        let too_many = std::io::Error::from(rustix::io::Errno::MFILE);
        let error = Err::<(), _>(too_many).advise(|| "x was not written".into(), "free some space");
        let (message, hint) = parts(&error.unwrap_err());
        assert!(message.starts_with("x was not written: "), "{message}");
        assert!(hint.unwrap().contains("`ulimit -n`"));
    }

    #[test]
    fn an_error_has_a_code_that_says_what_it_is_about() {
        let of_the_system =
            std::fs::read("nowhere").advise(|| "a.csv cannot be read".into(), "add it").context("reading");
        assert_eq!(code(&of_the_system.unwrap_err()), "system");
        let of_the_core = akin_core::Error::new(akin_core::Kind::Config, "alpha is -1", "choose 1");
        assert_eq!(code(&anyhow::Error::from(of_the_core).context("reading")), "config");
        assert_eq!(code(&numbers_problem("the loss is NaN", "lower the rate")), "numbers");
        assert_eq!(code(&problem("the column is missing", "add it")), "other");
    }

    #[test]
    fn only_similar_words_are_suggested() {
        assert_eq!(nearest("setps", ["seed", "steps", "epochs"]), Some("steps"));
        assert_eq!(nearest("qqq", ["seed", "steps"]), None);
    }

    #[test]
    fn a_few_lists_five() {
        assert_eq!(a_few(&[1, 2]), "1, 2");
        assert_eq!(a_few(&[1, 2, 3, 4, 5, 6, 7]), "1, 2, 3, 4, 5 and 2 more");
    }
}
