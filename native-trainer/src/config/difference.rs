//! The keys in which two configs differ.

use toml::{Table, Value};

use super::Config;

/// Keys that no result of a training depends on.
pub const NO_RESULT_DEPENDS_ON: [&str; 7] = [
    "run.name",
    "run.out",
    "run.log",
    "model.feature_cache",
    "model.weights_sha256",
    "model.weights_address",
    "published",
];

/// The keys in which two configs differ, sorted, without those that are or begin with one of `ignored`.
pub fn differences(one: &Config, other: &Config, ignored: &[&str]) -> Vec<String> {
    let entries = |config: &Config| dotted(&Table::try_from(config).unwrap_or_default());
    let (one, other) = (entries(one), entries(other));
    let missing = |here: &[(String, String)], there: &[(String, String)]| -> Vec<String> {
        here.iter().filter(|entry| !there.contains(entry)).map(|(key, _)| key.clone()).collect()
    };
    let mut keys = [missing(&one, &other), missing(&other, &one)].concat();
    keys.retain(|key| !ignored.iter().any(|ignored| key.starts_with(ignored)));
    keys.sort();
    keys.dedup();
    keys
}

/// The last part of a dotted key.
pub fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

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
