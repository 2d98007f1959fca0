//! The checksum of a JSON value in canonical form.

use serde_json::Value;

use crate::digest::sha256;

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
