//! Embeddings in `.npy` files, and what becomes of them.

#![no_main]

use akin_core::embeddings::Embeddings;
use akin_fuzz::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(matrix) = npy::parse(bytes) {
        assert_eq!(matrix.values.len(), matrix.rows * matrix.columns);
        // Every number takes at least two bytes of the file.
        assert!(2 * matrix.values.len() <= bytes.len());
        let _ = Embeddings::new(matrix.columns, matrix.values);
    }
});
