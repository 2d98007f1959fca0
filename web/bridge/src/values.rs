//! Values and errors for JavaScript.

use akin_core::{Error, Kind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

/// The result of a function that JavaScript calls.
pub type Result<T> = std::result::Result<T, JsValue>;

/// `{ code, message, hint }`.
#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// An error of akin-core as JavaScript sees it.
pub fn thrown(error: Error) -> JsValue {
    to_js(&Failure { code: error.kind().code(), message: error.message(), hint: error.hint() })
}

/// A wrong call, which is a bug of the page and not a mistake of its user.
pub fn misuse(message: &str) -> JsValue {
    thrown(Error::new(Kind::Config, message, "reload the page; if it happens again, report it"))
}

/// A value as a plain JavaScript object.
pub fn to_js(value: &impl Serialize) -> JsValue {
    value
        .serialize(&serde_wasm_bindgen::Serializer::json_compatible())
        .unwrap_or_else(|error| JsValue::from_str(&error.to_string()))
}

/// A plain JavaScript object as a value; `what` names it in the error.
///
/// # Errors
///
/// The object has other fields or types.
pub fn from_js<T: DeserializeOwned>(what: &str, value: JsValue) -> Result<T> {
    serde_wasm_bindgen::from_value(value).map_err(|error| {
        let why = error.to_string();
        thrown(Error::new(
            Kind::Config,
            format!("the {what} cannot be read: {}", why.trim_start_matches("Error: ")),
            "give the fields that www/src/messages describes",
        ))
    })
}

/// Runs when a module is loaded. Afterwards a panic prints its message and place on the console.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}
