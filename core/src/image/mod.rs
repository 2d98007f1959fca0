//! Image bytes → pixels → the numbers that a backbone reads.
//!
//! Trainer and browser share this code, so that an image means the same to both: [`decode`] reads the file,
//! [`Preprocessing::view`] brings it to the encoder's size, [`Preprocessing::normalise`] to its numbers.
//!
//! The same bytes give the same pixels on every machine: decoding, resampling and everything else here works on
//! whole numbers (resampling with fixed-point weights), so that the instruction set makes no difference. Colour
//! profiles are ignored, as PyTorch's usual loaders ignore them.

mod decode;
mod pixels;
mod preprocessing;

pub use decode::{MAX_PIXELS, decode};
pub use pixels::{Filter, Pixels, self_test_pattern};
pub use preprocessing::{Channels, Preprocessing, Settings};
