//! Reads a loss's table from any config format as JSON, so that the keys of a config can be laid over those of a
//! preset.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value of a config. Numbers that are not finite are refused: JSON cannot hold them, and no setting may have them.
pub(super) struct ConfigValue(pub(super) Value);

impl<'de> Deserialize<'de> for ConfigValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

/// Whether a table that is laid over another replaces it, by the `kind` of the old table and that of the new one.
///
/// The keys beside a `kind` belong to that kind. A table of another kind therefore replaces the old one; a table of the
/// same kind, or without one, changes only the keys that it names. Presets and the trainer's configs follow this rule.
pub fn changes_kind(old: Option<&str>, new: Option<&str>) -> bool {
    matches!((old, new), (Some(old), Some(new)) if old != new)
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a setting")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let refused = || E::custom(format!("the number {value} is not finite"));
        Number::from_f64(value).map(Value::Number).ok_or_else(refused)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(ConfigValue(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Map::new();
        while let Some((key, ConfigValue(value))) = entries.next_entry()? {
            table.insert(key, value);
        }
        Ok(Value::Object(table))
    }
}
