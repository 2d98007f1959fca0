//! Settings as tables: their dotted keys, their text on one line, and their combinations.

use std::collections::BTreeMap;

use anyhow::Result;
use toml::{Table, Value};

use crate::config::put;
use crate::problem::problem;

/// The dotted keys of nested tables, each with its value as TOML text.
pub fn dotted(settings: &Table) -> Vec<(String, String)> {
    fn collect(table: &Table, path: &str, entries: &mut Vec<(String, String)>) {
        for (key, value) in table {
            match value {
                Value::Table(table) => collect(table, &format!("{path}{key}."), entries),
                value => entries.push((format!("{path}{key}"), value.to_string())),
            }
        }
    }
    let mut entries = Vec::new();
    collect(settings, "", &mut entries);
    entries
}

/// Settings on one line: `optimizer.lr_head = 0.001, …`.
pub fn describe(settings: &Table) -> String {
    let assignments: Vec<String> =
        dotted(settings).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    assignments.join(", ")
}

/// Every combination of the values, each as a table to lay over a config. No keys give no combinations.
///
/// # Errors
///
/// A key without values, or one that does not name a section; `section` names the place in the message.
pub fn combinations(section: &str, choices: &BTreeMap<String, Vec<Value>>) -> Result<Vec<Table>> {
    if choices.is_empty() {
        return Ok(Vec::new());
    }
    let mut combinations = vec![Table::new()];
    for (key, values) in choices {
        if values.is_empty() || !key.contains('.') {
            return Err(problem(
                format!("`{key}` of compare.{section} has no values, or is not a key of the config"),
                "write \"SECTION.KEY\" = [VALUE, …], with the key in quotes",
            ));
        }
        let mut longer = Vec::new();
        for settings in &combinations {
            for value in values {
                let mut settings = settings.clone();
                put(&mut settings, key, value.clone())?;
                longer.push(settings);
            }
        }
        combinations = longer;
    }
    Ok(combinations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_keep_the_keys_that_belong_to_a_kind() {
        let keys = [("h.curvature", Value::Float(0.5)), ("h.kind", Value::String("poincare".into()))];
        let choices = keys.map(|(key, value)| (key.to_owned(), vec![value])).into();
        let expected = toml::toml! { h = { curvature = 0.5, kind = "poincare" } };
        assert_eq!(combinations("vary", &choices).unwrap(), [expected]);
    }

    #[test]
    fn combinations_pair_every_value_with_every_other() {
        let values = |numbers: &[i64]| numbers.iter().map(|&number| Value::Integer(number)).collect();
        let choices =
            BTreeMap::from([("a.x".to_owned(), values(&[1, 2])), ("b.y".into(), values(&[3, 4, 5]))]);
        let combinations = combinations("vary", &choices).unwrap();
        assert_eq!(combinations.len(), 6);
        assert_eq!(
            combinations[4],
            toml::toml! { a = { x = 2 }
            b = { y = 4 } }
        );
    }

    #[test]
    fn settings_are_described_with_their_dotted_keys() {
        let settings = toml::toml! { optimizer = { lr_head = 0.001 }
        loss = { surrogate = { smooth_rank = false } } };
        assert_eq!(describe(&settings), "loss.surrogate.smooth_rank = false, optimizer.lr_head = 0.001");
    }
}
