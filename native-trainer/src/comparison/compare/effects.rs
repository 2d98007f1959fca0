//! Settings of `vary` that have no effect: a comparison would repeat the same training with each of their values.

use std::collections::BTreeMap;

use akin_base::problem::{a_few, problem};
use anyhow::Result;
use toml::{Table, Value};

use super::settings::describe;
use crate::config::{Config, NO_RESULT_DEPENDS_ON, differences};
use crate::training::checks::why_unused;

/// Checks the settings of `vary`. `losses` are the names of the rows before `vary` repeats them. `configs` has the configs
/// of all of these rows for the first combination, then for the second, and so on. Returns a sentence for each setting
/// that has no effect in some rows.
///
/// # Errors
///
/// A setting that has no effect in any row. `place` says where the key stands.
pub fn check_effects(
    vary: &BTreeMap<String, Vec<Value>>,
    losses: &[&str],
    combinations: &[Table],
    configs: &[Config],
    place: impl Fn(&str) -> String,
) -> Result<Vec<String>> {
    let mut sentences = Vec::new();
    for (key, values) in vary {
        if values.len() < 2 {
            continue;
        }
        let alike = combinations_without(combinations, key);
        // Where it has no effect, by the reason.
        let mut unused: Vec<(String, Vec<String>)> = Vec::new();
        let mut has_effect = false;
        for (number, loss) in losses.iter().enumerate() {
            let config = |combination: &usize| &configs[combination * losses.len() + number];
            let reasons: Vec<(&Table, Option<String>)> = alike
                .iter()
                .map(|(others, places)| {
                    (others, why_equal(key, &places.iter().map(config).collect::<Vec<_>>()))
                })
                .collect();
            has_effect |= reasons.iter().any(|(_, reason)| reason.is_none());
            let in_all = reasons.iter().all(|(_, reason)| reason.is_some());
            for (others, reason) in reasons {
                let Some(reason) = reason else { continue };
                let row = match in_all {
                    true => format!("`{}`", loss),
                    false => format!("`{}` with {}", loss, describe(others)),
                };
                match unused.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, rows)) if rows.contains(&row) => {}
                    Some((_, rows)) => rows.push(row),
                    None => unused.push((reason, vec![row])),
                }
            }
        }
        if !has_effect && let Some((reason, _)) = unused.first() {
            return Err(problem(
                format!("{}: `vary` has {key}, which has no effect: {reason}", place(key)),
                "remove it from `vary`, or correct the other setting",
            ));
        }
        sentences.extend(unused.into_iter().map(|(reason, rows)| {
            let word = if rows.len() == 1 { "row" } else { "rows" };
            format!("`vary` has {key}, which has no effect in the {word} {}: {reason}", a_few(&rows))
        }));
    }
    Ok(sentences)
}

/// The combinations that differ in one key alone: the settings that they share, and their places.
fn combinations_without(combinations: &[Table], key: &str) -> Vec<(Table, Vec<usize>)> {
    let mut alike: Vec<(Table, Vec<usize>)> = Vec::new();
    for (place, combination) in combinations.iter().enumerate() {
        let mut others = combination.clone();
        remove(&mut others, key);
        match alike.iter_mut().find(|(known, _)| *known == others) {
            Some((_, places)) => places.push(place),
            None => alike.push((others, vec![place])),
        }
    }
    alike
}

/// Removes a dotted key, and the tables that are empty without it.
fn remove(table: &mut Table, key: &str) {
    match key.split_once('.') {
        None => {
            table.remove(key);
        }
        Some((first, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(first) {
                remove(inner, rest);
                if inner.is_empty() {
                    table.remove(first);
                }
            }
        }
    }
}

/// Why configs that differ in one key train the same; none if they do not.
fn why_equal(key: &str, configs: &[&Config]) -> Option<String> {
    let (first, others) = configs.split_first()?;
    let unused = why_unused(first, key);
    let mut ignored = NO_RESULT_DEPENDS_ON.to_vec();
    if unused.is_some() && others.iter().all(|config| why_unused(config, key).is_some()) {
        ignored.push(key);
    }
    let is_equal = |other: &&Config| differences(first, other, &ignored).is_empty();
    others
        .iter()
        .all(is_equal)
        .then(|| unused.unwrap_or_else(|| "all of its values give the same config".into()))
}
