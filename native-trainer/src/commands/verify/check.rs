//! The result of one check.

use serde::Serialize;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is as it was written.
    Sound,
    /// Nothing is wrong, but something is worth knowing.
    Note,
    /// It is not finished.
    Unfinished,
    /// It is missing, damaged or changed.
    Faulty,
}

/// A thing that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The file, or what several files say together.
    pub what: String,
    /// What was found.
    pub state: State,
    /// The same in words.
    pub detail: String,
}

/// The checks of one directory, in their order.
#[derive(Debug, Default)]
pub struct Checks(pub Vec<Check>);

impl Checks {
    /// Adds a check that found nothing wrong.
    pub fn sound(&mut self, what: impl Into<String>, detail: impl Into<String>) {
        self.add(what, State::Sound, detail);
    }

    /// Adds something worth knowing.
    pub fn note(&mut self, what: impl Into<String>, detail: impl Into<String>) {
        self.add(what, State::Note, detail);
    }

    /// Adds what is not finished.
    pub fn unfinished(&mut self, what: impl Into<String>, detail: impl Into<String>) {
        self.add(what, State::Unfinished, detail);
    }

    /// Adds a fault.
    pub fn faulty(&mut self, what: impl Into<String>, detail: impl Into<String>) {
        self.add(what, State::Faulty, detail);
    }

    /// Adds a result: a fault if it is an error. Returns the value.
    pub fn result<T>(
        &mut self,
        what: impl Into<String>,
        result: anyhow::Result<T>,
        detail: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                self.sound(what, detail(&value));
                Some(value)
            }
            Err(error) => {
                self.faulty(what, akin_base::problem::parts(&error).0);
                None
            }
        }
    }

    fn add(&mut self, what: impl Into<String>, state: State, detail: impl Into<String>) {
        self.0.push(Check { what: what.into(), state, detail: detail.into() });
    }
}
