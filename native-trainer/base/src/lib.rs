//! What every part of the trainer needs and none of akin's subjects knows: files, directories, errors, and what a user
//! sees.
//!
//! A file imports only files of later lines:
//!
//! ```text
//! directory                runs, bundles and other directories of results: marks, locks, whole replacement
//! sealed                   files that are covered by checksums
//! files                    reading and writing, completely or not at all
//! progress  machine threads   bars and numbers of a long command; the machine, its memory and the date; its threads
//! problem   faults         errors with hints; faults that a test asks for
//! columns counts shell html interrupt      tables, numbers, commands and HTML as text; Ctrl-C
//! terminal                 stdout and stderr
//! ```

pub mod columns;
pub mod counts;
pub mod directory;
pub mod faults;
pub mod files;
pub mod html;
pub mod interrupt;
pub mod machine;
pub mod problem;
pub mod progress;
pub mod sealed;
pub mod shell;
pub mod terminal;
pub mod threads;
