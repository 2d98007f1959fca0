//! The checksum of a manifest in canonical form.

use serde_json::Value;

use crate::digest::sha256;

/// The digest of a manifest, as the [module](super) defines it.
pub(super) fn digest(manifest: &Value) -> String {
    sha256(canonical_form(manifest).as_bytes())
}

/// The canonical JSON text of a manifest without its `digest`.
fn canonical_form(manifest: &Value) -> String {
    let mut text = String::new();
    write_value(manifest, true, &mut text);
    text
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
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_canonical(json: &str, expected: &str) {
        assert_eq!(canonical_form(&serde_json::from_str(json).unwrap()), expected);
    }

    #[test]
    fn keys_are_sorted_spaces_are_dropped_and_only_the_outer_digest_is_left_out() {
        assert_canonical(
            r#"{ "b": [1, true, null], "digest": "x", "a": { "d": 2, "digest": "y", "C": {} } }"#,
            r#"{"a":{"C":{},"d":2,"digest":"y"},"b":[1,true,null]}"#,
        );
    }

    // The next two keep bundles readable when a new version of serde_json prints differently.
    #[test]
    fn numbers_have_the_form_that_the_format_describes() {
        assert_canonical(
            "[1.0, -0.0, 0.1, 1e5, 0.00001, 0.0000012, 1e15, 1e16, 15e15, 1.5e300, 18446744073709551615, -7]",
            "[1.0,-0.0,0.1,100000.0,0.00001,1.2e-6,1000000000000000.0,1e16,1.5e16,1.5e300,18446744073709551615,-7]",
        );
    }

    #[test]
    fn strings_have_the_form_that_the_format_describes() {
        assert_canonical(
            r#""\u00e4\u2028/\"\\\b\f\n\r\t\u001F\u007f""#,
            "\"ä\u{2028}/\\\"\\\\\\b\\f\\n\\r\\t\\u001f\u{7f}\"",
        );
    }
}
