//! Checks that numbers in a config are within their range.

use crate::{Error, Kind, Result};

/// Checks that a setting is a finite number above 0.
pub(crate) fn above_zero(owner: &str, setting: &str, value: f64, usual: f64) -> Result<()> {
    check(value > 0.0, owner, setting, value, format!("a finite number above 0; {usual} is usual"))
}

/// Checks that a setting is a finite number of at least 0.
pub(crate) fn not_negative(owner: &str, setting: &str, value: f64, usual: f64) -> Result<()> {
    check(value >= 0.0, owner, setting, value, format!("a finite number of at least 0; {usual} is usual"))
}

/// Checks that a setting is a finite number.
#[cfg(feature = "tensor")]
pub(crate) fn finite(owner: &str, setting: &str, value: f64, usual: f64) -> Result<()> {
    check(true, owner, setting, value, format!("a finite number; {usual} is usual"))
}

fn check(in_range: bool, owner: &str, setting: &str, value: f64, wanted: String) -> Result<()> {
    if in_range && value.is_finite() {
        return Ok(());
    }
    Err(Error::new(Kind::Config, format!("the {setting} of {owner} is {value}"), format!("give {wanted}")))
}

/// Checks that a number of things is at least this.
#[cfg(feature = "tensor")]
pub(crate) fn at_least(loss: &str, setting: &str, value: usize, least: usize, usual: usize) -> Result<()> {
    if value >= least {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!("the {setting} of {loss} is {value}"),
        format!("give at least {least}; {usual} is usual"),
    ))
}
