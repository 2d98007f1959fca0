//! Checks that numbers in a config are within their range.

use std::ops::Deref;

use crate::{Error, Kind, Result};

/// Settings that are within their range. Only their own `checked` makes one, for example
/// [`Miner::checked`](crate::miners::Miner::checked), so that nothing is computed with wrong settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<S>(S);

impl<S> Checked<S> {
    pub(crate) fn new(settings: S) -> Self {
        Self(settings)
    }
}

impl<S> Deref for Checked<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// Checks that a setting is a finite number above 0, and that an f32 can hold both it and its inverse.
pub(crate) fn above_zero(owner: &str, setting: &str, value: f64, usual: f64) -> Result<()> {
    check(
        value >= f64::from(f32::MIN_POSITIVE),
        owner,
        setting,
        value,
        format!("a finite number above 0; {usual} is usual"),
    )
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

/// Checks λ of (1 − λ) · first + λ · second, for the loss of this title.
pub(crate) fn blend_weight(title: &str, lambda: f64) -> Result<()> {
    if (0.0..=1.0).contains(&lambda) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!("the lambda of {title} is {lambda}"),
        "set it from 0 (only the first part) to 1 (only the second)",
    ))
}

fn check(in_range: bool, owner: &str, setting: &str, value: f64, wanted: String) -> Result<()> {
    if in_range && value.abs() <= f64::from(f32::MAX) {
        return Ok(());
    }
    Err(Error::new(Kind::Config, format!("the {setting} of {owner} is {value}"), format!("give {wanted}")))
}

/// Checks that a number is within a range.
#[cfg(feature = "tensor")]
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    owner: &str,
    setting: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
    usual: T,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!("the {setting} of {owner} is {value}"),
        format!("give a number from {} to {}; {usual} is usual", range.start(), range.end()),
    ))
}

#[cfg(all(test, feature = "tensor"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        for value in [0.0, -1.0, 1e-50, 1e50, f64::NAN, f64::INFINITY] {
            let error = above_zero("a loss", "temperature", value, 0.1).unwrap_err();
            assert!(error.message().starts_with("the temperature of a loss is "), "{error}");
        }
        assert!(above_zero("a loss", "temperature", 1e-30, 0.1).is_ok());
        assert!(not_negative("a loss", "margin", 0.0, 0.1).is_ok());
        assert!(not_negative("a loss", "margin", 1e50, 0.1).is_err());
        let error = within("a loss", "size", usize::MAX, 1..=100, 10).unwrap_err();
        assert_eq!(error.hint(), "give a number from 1 to 100; 10 is usual");
    }
}
