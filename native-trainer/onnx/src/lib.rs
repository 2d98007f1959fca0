//! Image encoders in ONNX files: a file from anywhere becomes a network from pictures to features.
//!
//! A [`Network`] is opened from a file that is only known when akin runs. Its graph says what it takes: the one input, in
//! planes or pixels, of one size or several, as floats or bytes. Its output is a vector [B, F], tokens [B, T, F] or maps
//! [B, F, H′, W′]; pooling, head and losses stand in `akin-core`, which begins at the features. [`preprocessing`] reads
//! what Hugging Face's `preprocessor_config.json` or timm's `config.json` beside the file says of its pictures.
//!
//! The file is untrusted. Nothing in it is executed but operators on numbers; sizes are limited before anything is read;
//! the structure is checked before a parser takes memory for it; external data stay in the folder of the file; and a panic
//! of the engine is an error. As any computation, a graph may ask for more memory than the machine has.
//!
//! The engine is [rten](https://github.com/robertknight/rten), which is pure Rust: see `README.md` for how it was chosen.
//! With the feature `onnxruntime` it is ONNX Runtime where `ORT_DYLIB_PATH` names its library.

mod engine;
mod file;
mod graph;
mod network;
mod old_softmax;
pub mod preprocessing;
#[cfg(feature = "onnxruntime")]
mod runtime;
mod whole;
mod wire;

pub use engine::{Output, engine};
pub use file::{MAX_FILE, MAX_TOTAL, OnnxFile};
pub use graph::{Element, Input, Layout};
pub use network::{Choice, Form, Network, USUAL_SIDE};

/// Reads bytes as far as the engine needs them, without running them: for a fuzz target.
///
/// # Errors
///
/// Bytes that are no ONNX file with one input of pictures and one output.
pub fn inspect(bytes: &[u8]) -> anyhow::Result<Input> {
    let path = std::path::Path::new("model.onnx");
    let model = file::parse(bytes, path)?;
    let graph = graph::graph(&model)?;
    graph::output(graph, None, false, path)?;
    graph::input(graph, path)
}
