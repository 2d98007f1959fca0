//! Checksums: of bytes, and of a JSON value in canonical form.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes`, in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes every write");
        hex
    })
}

/// The digest of a manifest: everything but its `digest`, as the [module](super) describes.
pub(super) fn digest(manifest: &Value) -> String {
    let mut text = String::new();
    write_value(manifest, true, &mut text);
    sha256(text.as_bytes())
}

fn write_value(value: &Value, is_manifest: bool, text: &mut String) {
    match value {
        Value::Object(fields) => {
            // Sorted here, because `serde_json` may be built to keep the order of the file.
            let mut fields: Vec<_> =
                fields.iter().filter(|(key, _)| !is_manifest || *key != "digest").collect();
            fields.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (position, (key, value)) in fields.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_value(value, false, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (position, value) in values.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_value(value, false, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
