//! Images: file bytes → pixels → the numbers that a backbone reads.
//!
//! Trainer and browser share this code, so that both see the same image. [`decode`] reads the file,
//! [`Preprocessing::view`] resizes and crops, and [`Preprocessing::normalise`] computes the numbers.
//!
//! The same bytes give the same pixels on every machine: decoding and resampling use integers, with fixed-point
//! weights, and their plain, SSE4.1 and AVX2 versions were compared and agree in every byte. Colour profiles are
//! ignored, as in PyTorch's usual loaders.

#[cfg(feature = "avif")]
mod avif;
mod decode;
mod pixels;
mod preprocessing;

pub use decode::{MAX_PIXELS, decode};
pub use pixels::{Filter, Pixels, self_test_pattern};
pub use preprocessing::{
    Channels, Normalisation, Preprocessing, PreprocessingConfig, PreprocessingNumbers, PreprocessingTable,
};
