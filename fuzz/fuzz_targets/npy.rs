//! Embeddings in `.npy` files, and what becomes of them.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use akin_core::embeddings::{Embeddings, Rows};
use akin_formats::npy::Matrix;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for packed in [false, true] {
        let Ok(matrix) = Matrix::new(Path::new("e.npy"), Cursor::new(bytes), packed) else { continue };
        // A byte of the file has at most eight numbers.
        assert!(matrix.len() * matrix.dimension() <= 8 * bytes.len());
        let mut values = vec![0.0; matrix.len() * matrix.dimension()];
        matrix.read(0, &mut values).expect("bytes in memory can be read");
        let _ = Embeddings::new(matrix.dimension(), values);
    }
});
