//! ONNX files, as far as they are read before the engine takes them: any bytes, and a valid file with some bytes changed.

#![no_main]

use akin_fuzz::patched;
use akin_onnx::inspect;
use libfuzzer_sys::fuzz_target;

static VALID: &[u8] = include_bytes!("../../native-trainer/onnx/tests/files/tokens.onnx");

fuzz_target!(|bytes: &[u8]| {
    let _ = inspect(bytes);
    let _ = inspect(&patched(VALID, bytes));
});
