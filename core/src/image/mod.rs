//! Image bytes → pixels → the numbers that a backbone reads.
//!
//! Trainer and browser share this code, so that an image means the same to both: [`decode`] reads the file,
//! [`Preprocessing::view`] brings it to the encoder's size, [`Preprocessing::normalise`] to its numbers.
//!
//! The same bytes give the same pixels on every machine: decoding and resampling work on whole numbers (resampling
//! with fixed-point weights), and their plain, SSE4.1 and AVX2 paths were compared and agree in every byte. Colour
//! profiles are ignored, as PyTorch's usual loaders ignore them.

mod decode;
mod pixels;
mod preprocessing;

pub use decode::{MAX_PIXELS, decode};
pub use pixels::{Filter, Pixels, self_test_pattern};
pub use preprocessing::{
    Channels, Normalisation, Preprocessing, PreprocessingConfig, PreprocessingNumbers, PreprocessingTable,
};
