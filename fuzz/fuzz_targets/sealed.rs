//! Sealed files, such as checkpoints, and the marks of directories.

#![no_main]

use std::path::Path;

use akin_core::digest::sha256;
use akin_base::directory::Mark;
use akin_base::sealed::{self, Format};
use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};

const FORMAT: Format = Format { name: "akin-test", version: 3 };
const PARTS: [&str; 2] = ["encoder", "loss"];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Contents {
    step: usize,
    config: String,
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // A changed header has another digest. It is put in, so that the fuzzer gets behind that check.
    if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        let (header, rest) = bytes.split_at(end);
        read(&[header, b"\n", sha256(header).as_bytes(), rest].concat());
    }
    // Parts of the lengths that the header names: what is written is read again.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let contents = Contents { step: bytes.len(), config: String::from_utf8_lossy(first).into_owned() };
    let mut whole = Vec::new();
    sealed::write(&mut whole, FORMAT, &contents, &[(PARTS[0], first), (PARTS[1], second)])
        .expect("writing to a vector cannot fail");
    let (again, parts) = sealed::read::<Contents, 2>(&whole, FORMAT, PARTS).expect("it is whole");
    assert_eq!((again, parts), (contents, [first.to_vec(), second.to_vec()]));

    mark(bytes);
});

fn read(bytes: &[u8]) {
    if let Ok((_, parts)) = sealed::read::<Contents, 2>(bytes, FORMAT, PARTS) {
        assert!(parts.iter().map(Vec::len).sum::<usize>() <= bytes.len());
    }
}

/// Reads a mark, with its own digest and with the right one.
fn mark(bytes: &[u8]) {
    let path = Path::new(".akin.json");
    let _ = Mark::parse(path, bytes);
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    let Some(object) = value.as_object_mut() else { return };
    object.remove("sha256");
    let Ok(mark) = serde_json::from_value::<Mark>(value.clone()) else { return };
    value["sha256"] = sha256(&serde_json::to_vec(&mark).expect("a mark is JSON")).into();
    if value["version"] == 2 {
        let bytes = serde_json::to_vec(&value).expect("a value is JSON");
        Mark::parse(path, &bytes).expect("a mark with its digest is read");
    }
}
