//! What every part of the trainer needs and none of akin's subjects knows: files, directories, errors, and what a user
//! sees.
//!
//! A file imports only files of later lines:
//!
//! ```text
//! directory                                    directories of results: marks, locks, whole replacement
//! sealed                                       files that are covered by checksums
//! files                                        reading and writing, completely or not at all
//! progress machine memory threads              bars of a long command; memory and date; the allocator; threads
//! problem faults                               errors with hints; faults that a test asks for
//! text_table quantities markup shell interrupt tables, numbers, HTML and commands as text; Ctrl-C
//! terminal                                     stdout and stderr
//! ```

pub mod directory;
pub mod faults;
pub mod files;
pub mod interrupt;
pub mod machine;
pub mod markup;
pub mod memory;
pub mod problem;
pub mod progress;
pub mod quantities;
pub mod sealed;
pub mod shell;
pub mod terminal;
pub mod text_table;
pub mod threads;
