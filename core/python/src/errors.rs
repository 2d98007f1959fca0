//! Errors of core as exceptions of Python.

use akin_core::Error;
use pyo3::prelude::*;

/// The exception of an error: `akin.Error`, or its subclass for the kind.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let raised = || {
        let made = py
            .import("akin._errors")?
            .call_method1("exception", (error.kind().code(), error.message(), error.hint()))?;
        PyResult::Ok(PyErr::from_value(made))
    };
    raised().unwrap_or_else(|error| error)
}

/// Results of core as results of Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for akin_core::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}
