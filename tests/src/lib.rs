//! What holds between the rooms: losses against metrics (`tests/bounds.rs`), and, through
//! `tests/run`, everything from the command line to the browser (`e2e/`).
