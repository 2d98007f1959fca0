//! Errors as JavaScript sees them.

use akin_core::{Error, Kind};
use serde::Serialize;
use wasm_bindgen::JsValue;

/// The result of a function that JavaScript calls.
pub(crate) type Result<T> = std::result::Result<T, JsValue>;

/// `{ code, message, hint }`.
#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// An error of akin-core as JavaScript sees it.
pub(crate) fn thrown(error: Error) -> JsValue {
    to_js(&Failure { code: error.kind().code(), message: error.message(), hint: error.hint() })
}

/// A failure of the device.
pub(crate) fn device(message: impl Into<String>) -> JsValue {
    thrown(Error::new(Kind::Device, message, "compute on the CPU instead"))
}

/// A wrong call, which is a bug of the page and not a mistake of its user.
pub(crate) fn misuse(message: &str) -> JsValue {
    thrown(Error::new(Kind::Config, message, "reload the page; if it happens again, report it"))
}

/// A value as a plain JavaScript object.
pub(crate) fn to_js(value: &impl Serialize) -> JsValue {
    value
        .serialize(&serde_wasm_bindgen::Serializer::json_compatible())
        .unwrap_or_else(|error| JsValue::from_str(&error.to_string()))
}
