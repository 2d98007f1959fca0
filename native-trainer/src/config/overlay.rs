//! How settings are laid over others: by `--set`, by the rows of `[compare.loss]` and by their grids.
//!
//! A table that is laid over another changes only the keys that it names. The exception is a table with another `kind`
//! ([`changes_kind`]): it replaces the other, since the keys beside a `kind` belong to that kind. Presets of losses
//! follow the same rule.

use akin_base::problem::problem;
use akin_core::losses::changes_kind;
use anyhow::Result;
use toml::{Table, Value};

/// Lays the values of one table over those of another. See the [module](self).
pub fn lay_over(below: &mut Table, over: &Table) {
    if drops_keys(below, over.get("kind")) {
        below.clear();
    }
    for (key, value) in over {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => lay_over(below, over),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Sets the value of a dotted key, and makes the tables that are missing on the way. A table as value replaces the
/// old one; another `kind` drops the keys of the old kind.
///
/// # Errors
///
/// A part of the key that is a value and not a table.
pub fn put(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let (place, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = table;
    for part in place.split('.').filter(|part| !part.is_empty()) {
        let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut().ok_or_else(|| {
            problem(
                format!("`{key}` cannot be set: `{part}` is not a table"),
                format!("set `{part}` itself, or remove it"),
            )
        })?;
    }
    if last == "kind" && drops_keys(table, Some(&value)) {
        table.clear();
    }
    table.insert(last.to_owned(), value);
    Ok(())
}

/// Whether a table drops its keys when it gets this `kind`.
fn drops_keys(table: &Table, kind: Option<&Value>) -> bool {
    changes_kind(table.get("kind").and_then(Value::as_str), kind.and_then(Value::as_str))
}

#[cfg(test)]
mod tests {
    use toml::toml;

    use super::*;

    #[test]
    fn a_table_changes_the_keys_that_it_names() {
        let mut below =
            toml! { loss = { kind = "happier", lambda = 0.5, surrogate = { smooth_rank = true } } };
        lay_over(&mut below, &toml! { loss = { kind = "happier", surrogate = { stop_gradient = true } } });
        let merged = toml! {
            loss = { kind = "happier", lambda = 0.5, surrogate = { smooth_rank = true, stop_gradient = true } }
        };
        assert_eq!(below, merged);
    }

    #[test]
    fn a_table_of_another_kind_replaces_the_old_one() {
        let over = toml! { loss = { kind = "fast_ap" } };
        let mut below = toml! { loss = { kind = "happier", lambda = 0.5 } };
        lay_over(&mut below, &over);
        assert_eq!(below, over);
        let mut below = toml! { loss = { kind = "happier", lambda = 0.5 } };
        put(&mut below, "loss.kind", "fast_ap".into()).unwrap();
        assert_eq!(below, over);
    }

    #[test]
    fn what_stands_beside_the_table_of_a_kind_stays() {
        let over = toml! { optimizer = { rule = { kind = "sgd" } } };
        let changed = toml! { optimizer = { rule = { kind = "sgd" }, lr_head = 0.5 } };
        let mut below = toml! { optimizer = { rule = { kind = "adam", beta_1 = 0.5 }, lr_head = 0.5 } };
        lay_over(&mut below, &over);
        assert_eq!(below, changed);
    }
}
