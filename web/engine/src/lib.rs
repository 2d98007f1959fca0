//! The engine of the page: the parts of akin-core that a Web Worker calls from JavaScript.
//!
//! One [`Engine`] holds a device, a bundle and its encoders. It takes one file at a time, so that the
//! page fetches the files itself and shows its progress:
//!
//! ```text
//! Engine.create("webgpu", …)   opens a device; after an error, try "cpu"
//! engine.open(bundle.json)     checks the manifest
//! engine.load_labels(bytes)
//! engine.load_encoder(i, …)    loads weights and embeddings
//! engine.embed(i, image)       image bytes → embedding
//! engine.rank(i, k, …)         ranks the gallery, with metrics or votes
//! engine.look(i, query, item)  where two pictures carry their score; where that has no parts,
//! engine.occlude(i, …)         how it changes when patches are covered
//! engine.start_own_gallery(…)  a gallery of the reader's own pictures,
//! engine.embed_own_gallery(i)  with their embeddings; rank(…, own) ranks it
//! engine.map(canvas, tile)     a map on a canvas, where the engine runs on WebGPU
//! ```
//!
//! [`messages`] are the objects that cross to JavaScript and back. Every error that it sees is `{ code, message, hint }`.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

#[cfg(target_arch = "wasm32")]
mod engine;
#[cfg(target_arch = "wasm32")]
mod foreign;
#[cfg(target_arch = "wasm32")]
mod graphics;
#[cfg(target_arch = "wasm32")]
mod look;
#[cfg(target_arch = "wasm32")]
mod map;
pub mod messages;
#[cfg(target_arch = "wasm32")]
mod ranked;

#[cfg(target_arch = "wasm32")]
pub use engine::Engine;
#[cfg(target_arch = "wasm32")]
pub use map::MapCanvas;
