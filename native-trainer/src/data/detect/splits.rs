//! Which of the splits that are present are used, and how a config names them.

use toml::{Table, Value};

use crate::data::listing::SPLIT_NAMES;

/// The share of the finest classes that is held out if the data have no splits.
pub(super) const TEST_FRACTION: f64 = 0.5;

/// The fewest classes of which a share can be held out: two to train on and two to evaluate on.
pub(super) const FEWEST_CLASSES: usize = 4;

/// Of the splits that are present, those that are used: the training split with queries and gallery, or with the first
/// that can be evaluated of `test`, `val` and their other names. None if the training split or the others are missing.
pub(super) fn used_splits(present: &[String]) -> Vec<String> {
    match SPLIT_NAMES.map(|(_, names)| first_named(present, names)) {
        [Some(train), _, Some(query), Some(gallery)] => vec![train, query, gallery],
        [Some(train), Some(test), ..] => vec![train, test],
        _ => Vec::new(),
    }
}

/// A remark on splits that are not used; nothing if there are none.
pub(super) fn not_used(one: &str, several: &str, names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!(" ({one} {name} is not used)"),
        _ => format!(" ({several} {} are not used)", names.join(", ")),
    }
}

/// The first of these names that is present, as it is written there.
pub(super) fn first_named(present: &[String], names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let exact = present.iter().find(|other| other == name);
        exact.or_else(|| present.iter().find(|other| other.eq_ignore_ascii_case(name))).cloned()
    })
}

/// Writes the names of splits that are not akin's own.
pub(super) fn name_splits(data: &mut Table, present: &[String]) {
    for (key, names) in SPLIT_NAMES {
        if let Some(name) = first_named(present, names).filter(|name| name != key) {
            name_split(data, key, &name);
        }
    }
}

/// Writes the name of a split.
pub(super) fn name_split(data: &mut Table, key: &str, name: &str) {
    if let Value::Table(splits) = data.entry("splits").or_insert_with(|| Table::new().into()) {
        splits.insert(key.into(), name.into());
    }
}

/// Writes which of the splits is evaluated, also if it has akin's own name: others are present that it could be.
pub(super) fn state_evaluation_split(data: &mut Table, used: &[String]) {
    if let Some(test) = first_named(used, SPLIT_NAMES[1].1) {
        name_split(data, "test", &test);
    }
}
