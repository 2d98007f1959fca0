//! Embeddings in `.npy` files, and what becomes of them.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use akin_core::embeddings::{Embeddings, Rows};
use akin_formats::npy::Matrix;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(matrix) = Matrix::new(Path::new("e.npy"), Cursor::new(bytes)) {
        // Every number takes at least two bytes of the file.
        assert!(2 * matrix.len() * matrix.dimension() <= bytes.len());
        let mut values = vec![0.0; matrix.len() * matrix.dimension()];
        matrix.read(0, &mut values).expect("bytes in memory can be read");
        let _ = Embeddings::new(matrix.dimension(), values);
    }
});
