//! The error of the library: its kind, what went wrong, and what to do about it.

use std::fmt;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error. The browser receives it as `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The label tree is not a tree, or a label is missing.
    Taxonomy,
    /// A setting is out of its range or does not fit the others.
    Config,
    /// Embeddings are of the wrong shape, not finite, or zero.
    Embeddings,
    /// An image could not be read.
    Image,
    /// Weights do not fit the architecture.
    Weights,
    /// A bundle is damaged, incomplete, or of another version.
    Bundle,
    /// The device failed or does not support an operation.
    Device,
    /// The caller has stopped the work.
    Stopped,
}

impl Kind {
    /// A stable lower-case name for programs.
    pub fn code(self) -> &'static str {
        match self {
            Kind::Taxonomy => "taxonomy",
            Kind::Config => "config",
            Kind::Embeddings => "embeddings",
            Kind::Image => "image",
            Kind::Weights => "weights",
            Kind::Bundle => "bundle",
            Kind::Device => "device",
            Kind::Stopped => "stopped",
        }
    }
}

/// An error: what happened and why (`message`), and what to do (`hint`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: String,
}

impl Error {
    /// `message` says what is wrong and why, `hint` what the user can do.
    /// Both start in lower case and end without a full stop.
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
    }

    /// The kind of the error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What is wrong and why.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl std::error::Error for Error {}
