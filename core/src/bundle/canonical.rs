//! The checksum of a manifest in canonical form: RFC 8785.

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
            let mut fields: Vec<_> =
                fields.iter().filter(|(key, _)| !is_manifest || *key != "digest").collect();
            fields.sort_by(|(key, _), (other, _)| key.encode_utf16().cmp(other.encode_utf16()));
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
        // Without the feature `arbitrary_precision`, every number of serde_json has an f64.
        Value::Number(number) => text.push_str(&number_text(number.as_f64().unwrap_or(f64::NAN))),
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// A number as JavaScript prints it, which is what the RFC prescribes. (serde_json has changed its own form before.)
fn number_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    // The shortest digits that read back as the same number, as `d.ddde-7`.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let count = digits.len() as i32;
    let zeros = |count: i32| "0".repeat(count as usize);
    let text = match exponent {
        0..21 if count <= exponent + 1 => digits + &zeros(exponent + 1 - count),
        0..21 => {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            format!("{whole}.{fraction}")
        }
        -6..0 => format!("0.{}{digits}", zeros(-1 - exponent)),
        _ => format!("{mantissa}e{exponent:+}"),
    };
    format!("{sign}{text}")
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

    /// The example of RFC 8785, section 3.2.2.
    #[test]
    fn the_example_of_the_rfc_has_the_form_that_it_prints() {
        assert_canonical(
            r#"{ "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                 "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                 "literals": [null, true, false] }"#,
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
        );
    }

    /// The keys of RFC 8785, section 3.2.3, in its order.
    #[test]
    fn keys_are_sorted_by_their_utf16_code_units() {
        assert_canonical(
            r#"{ "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }"#,
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
        );
    }

    /// Those of RFC 8785, appendix B, and the limits between the forms.
    #[test]
    fn numbers_are_printed_as_javascript_prints_them() {
        for (json, expected) in [
            ("-0.0", "0"),
            ("1.0", "1"),
            ("-7", "-7"),
            ("100000.0", "100000"),
            ("0.10000000149011612", "0.10000000149011612"),
            ("5e-324", "5e-324"),
            ("-1.7976931348623157e308", "-1.7976931348623157e+308"),
            ("9007199254740992", "9007199254740992"),
            ("295147905179352830000", "295147905179352830000"),
            ("999999999999999900000", "999999999999999900000"),
            ("1e21", "1e+21"),
            ("123e19", "1.23e+21"),
            ("0.000001", "0.000001"),
            ("0.00000123", "0.00000123"),
            ("9.999999999999997e-7", "9.999999999999997e-7"),
            ("1e-7", "1e-7"),
            ("333333333.3333332", "333333333.3333332"),
        ] {
            assert_canonical(json, expected);
        }
    }
}
