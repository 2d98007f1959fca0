//! What holds between the rooms of akin, and the command that tests everything.
//!
//! - `run`: formatting, clippy, the metrics alone, the native tests of every package, the page and its
//!   size, and the page in a browser;
//! - `tests/`: losses against metrics, and facts that are written in two places;
//! - `e2e/`: the page, served by `akin serve` and looked at in headless Chromium, held to the command line;
//! - `golden/`: values and gradients of the reference implementations, which the tests of core read.
