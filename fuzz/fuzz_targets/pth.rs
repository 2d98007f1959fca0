//! Files of weights: both forms of `.pth`, and safetensors.

#![no_main]

use akin_core::models::WeightFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = WeightFile::parse(bytes.to_vec()) {
        for tensor in file.tensors().values() {
            // A tensor has no more numbers than the file has bytes.
            assert!(tensor.shape.iter().product::<usize>() <= bytes.len());
            let _ = file.values(tensor);
        }
    }
});
