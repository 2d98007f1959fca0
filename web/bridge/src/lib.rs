//! What the WebAssembly modules of the page share: how values and errors cross to JavaScript, and the TypeScript of those
//! values.
//!
//! Every error that JavaScript sees is `{ code, message, hint }`.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

#[cfg(not(target_arch = "wasm32"))]
pub mod typescript;
#[cfg(target_arch = "wasm32")]
mod values;

#[cfg(target_arch = "wasm32")]
pub use values::{Result, from_js, misuse, start, thrown, to_js};
