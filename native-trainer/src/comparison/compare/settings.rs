//! Settings as tables: what a row may change, their dotted keys, their text on one line, and their combinations.

use std::collections::BTreeMap;

use akin_base::problem::{did_you_mean, problem};
use anyhow::Result;
use toml::{Table, Value};

use super::config::TunedSetting;
use crate::config::{dotted, put};

/// The sections of a config that a row may change.
pub const SECTIONS: [&str; 5] = ["loss", "model", "optimizer", "schedule", "eval"];

/// Settings on one line: `optimizer.lr_head = 0.001, …`.
pub fn describe(settings: &Table) -> String {
    let assignments: Vec<String> =
        dotted(settings).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    assignments.join(", ")
}

/// The values of a setting, each as a table to lay over a config.
///
/// # Errors
///
/// A setting without values, or of a section that rows may not change. `place` names the setting's place in the
/// recipe.
fn choices(place: &str, sections: &[&str], key: &str, values: &[Value]) -> Result<Vec<Table>> {
    let section = key.split('.').next().unwrap_or_default();
    if !sections.contains(&section) {
        return Err(problem(
            format!("{place} names `{key}`, which all rows share"),
            format!(
                "{}name a key of {}, for example `loss.temperature`",
                did_you_mean(section, sections.iter().copied()),
                sections.join(", ")
            ),
        ));
    }
    if values.is_empty() {
        return Err(problem(format!("{place} gives `{key}` no values"), "give it at least one value"));
    }
    if let Some(value) = repeated_value(values) {
        return Err(problem(
            format!("{place} gives `{key}` the value {value} twice"),
            "give each value once",
        ));
    }
    let table = |value: &Value| {
        let mut settings = Table::new();
        put(&mut settings, key, value.clone())?;
        Ok(settings)
    };
    values.iter().map(table).collect()
}

/// The first value that equals one before it. A whole number equals the same number with a point.
pub fn repeated_value(values: &[Value]) -> Option<&Value> {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    let is_equal =
        |one: &Value, other: &Value| one == other || number(one).is_some() && number(one) == number(other);
    let is_repeated = |&place: &usize| values[..place].iter().any(|one| is_equal(one, &values[place]));
    (1..values.len()).find(is_repeated).map(|place| &values[place])
}

impl TunedSetting {
    /// Its values, each as a table to lay over a config.
    ///
    /// # Errors
    ///
    /// As [`choices`].
    pub fn choices(&self) -> Result<Vec<Table>> {
        choices("`tune`", &SECTIONS, &self.key, &self.values)
    }
}

/// Every combination of the values of `[compare] vary`, each as a table to lay over a config. No keys give no
/// combinations.
///
/// # Errors
///
/// As [`choices`].
pub fn combinations(vary: &BTreeMap<String, Vec<Value>>) -> Result<Vec<Table>> {
    if vary.is_empty() {
        return Ok(Vec::new());
    }
    let mut combinations = vec![Table::new()];
    for (key, values) in vary {
        // The rows of a group share their batches.
        choices("`vary`", &[&SECTIONS[..], &["sampler"]].concat(), key, values)?;
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
        let keys = [("model.curvature", Value::Float(0.5)), ("model.kind", Value::String("poincare".into()))];
        let vary = keys.map(|(key, value)| (key.to_owned(), vec![value])).into();
        let expected = toml::toml! { model = { curvature = 0.5, kind = "poincare" } };
        assert_eq!(combinations(&vary).unwrap(), [expected]);
    }

    #[test]
    fn combinations_pair_every_value_with_every_other() {
        let values = |numbers: &[i64]| numbers.iter().map(|&number| Value::Integer(number)).collect();
        let vary =
            BTreeMap::from([("loss.x".to_owned(), values(&[1, 2])), ("model.y".into(), values(&[3, 4, 5]))]);
        let combinations = combinations(&vary).unwrap();
        assert_eq!(combinations.len(), 6);
        assert_eq!(
            combinations[4],
            toml::toml! { loss = { x = 2 }
            model = { y = 4 } }
        );
    }

    #[test]
    fn settings_are_described_with_their_dotted_keys() {
        let settings = toml::toml! { optimizer = { lr_head = 0.001 }
        loss = { surrogate = { smooth_rank = false } } };
        assert_eq!(describe(&settings), "loss.surrogate.smooth_rank = false, optimizer.lr_head = 0.001");
    }
}
