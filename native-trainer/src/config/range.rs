//! Checks that a setting is in its range.

use akin_base::problem::problem;
use anyhow::Result;

/// An error with the message and hint of `otherwise`, unless the condition holds.
pub(super) fn ensure(condition: bool, otherwise: impl FnOnce() -> (String, &'static str)) -> Result<()> {
    if condition {
        return Ok(());
    }
    let (message, hint) = otherwise();
    Err(problem(message, hint))
}
