//! The engine of the page: core, as a Web Worker calls it from JavaScript.
//!
//! One [`Engine`] holds a device, a bundle and its encoders. It is opened step by step, so that the
//! page can fetch each file itself and show how far it is:
//!
//! ```text
//! Engine.create("webgpu")      a device, or an error: then try "cpu"
//! engine.open(bundle.json)     the manifest, checked
//! engine.load_labels(bytes)
//! engine.load_encoder(i, …)    weights and gallery; tests itself against a known embedding
//! engine.embed(i, image)       image bytes → embedding
//! engine.rank(i, embedding, …) the ranked gallery, its scores or the neighbours' vote
//! ```
//!
//! Every error that JavaScript sees is `{ code, message, hint }`.

#![cfg(target_arch = "wasm32")]

mod engine;
mod failure;
mod ranked;

pub use engine::Engine;

use wasm_bindgen::prelude::*;

/// Runs when the module is loaded: a panic then says what and where on the console.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}
