//! Layers of image networks on the CPU: forwards and backwards, on plain slices.
//!
//! # Convolution
//!
//! A picture is maps of C channels, [C, H, W]. A convolution slides a window over it: its output at channel o and
//! position p is the sum, over the channels c and the places (i, j) of the window, of weight\[o, c, i, j\] times the
//! number that the window meets there. That is a product of matrices,
//!
//! output = weights \[O, K\] · columns \[K, P\], with K = C·h·w terms and P positions.
//!
//! The columns are h·w times as large as the maps, so they are never written as a whole. Blocks of them that a cache holds
//! are gathered and multiplied at once. Both gradients are such products, too:
//!
//! | result | rows | columns | terms |
//! |---|---|---|---|
//! | output | output channels | positions of the output | input channels × window |
//! | gradient of the input | input channels | positions of the input | output channels × window |
//! | gradient of the weights | input channels × window | output channels | positions of the output |
//!
//! # Transformers
//!
//! [`Linear`] maps are products of matrices in all three directions. [`Attention`] never keeps the weights of all tokens:
//! on the way back it computes them again. [`LayerNorm`] and [`gelu`] read their numbers once, with an exponential that the
//! compiler turns into vectors.
//!
//! # Equal bits
//!
//! A number of a result is added up in an order that depends on the layer's shape alone: not on threads, on the pictures
//! beside it, or on the length of the machine's vectors. Processors with AVX2 and with AVX-512 give the same bits. Older
//! ones, and WebAssembly, have no fused multiply-add, so their last digits differ.
//!
//! `UPSTREAM.md` beside this crate says what of it could become part of Burn.
//!
//! ```
//! use akin_layers::{Convolution, Epilogue};
//!
//! // A window of 1×2 numbers on one map of 1×3.
//! let layer = Convolution { size: [1, 2], ..Convolution::new([1, 1, 3], 1) };
//! let output = layer.forward(&[1.0, 2.0, 4.0], &[-1.0, 1.0], Epilogue::default());
//! assert_eq!(output, [1.0, 2.0]);
//! ```

mod attention;
mod batch_norm;
mod convolution;
mod depthwise;
mod epilogue;
mod exponential;
mod gathered;
mod gelu;
mod layer_norm;
mod linear;
mod matrix;
mod max_pool;
mod planes;
mod product;
mod rectifier;
mod threads;
mod vectors;

pub use attention::Attention;
pub use batch_norm::{BatchNorm, Normalised};
pub use convolution::Convolution;
pub use epilogue::Epilogue;
pub use gelu::{gelu, gelu_gradient, gelu_in_place};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use max_pool::MaxPool;
pub use rectifier::{rectified_sum, rectifier_gradient};
