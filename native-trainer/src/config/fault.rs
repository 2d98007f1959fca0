//! What serde finds wrong with a config, in the words of a config: which key, and what to do.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::problem::did_you_mean;

/// The dotted key at fault. Inside a table with a `kind`, serde names no more than the table; there the key is found
/// as the one without which the config has another fault, or none.
pub(super) fn place_of_fault<T: DeserializeOwned>(table: &Table, error: &toml::de::Error) -> String {
    let said = error.to_string();
    let named =
        said.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`')).unwrap_or_default();
    if error.message().starts_with("missing field") {
        return named.into();
    }
    let whole = Value::Table(table.clone());
    let changes = |place: &[String]| {
        let rest = without(whole.clone(), place).try_into::<T>();
        rest.err().is_none_or(|other| other.message() != error.message())
    };
    let mut place = Vec::new();
    let mut here = &whole;
    'deeper: loop {
        for (key, value) in parts_of(here) {
            place.push(key);
            if changes(&place) {
                here = value;
                continue 'deeper;
            }
            place.pop();
        }
        break;
    }
    place.retain(|key| key.parse::<usize>().is_err());
    let found = place.join(".");
    if found.len() > named.len() { found } else { named.into() }
}

/// The keys, or places, of a value with what they hold; `kind`, without which nothing is as it was, comes last.
fn parts_of(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Table(table) => {
            let mut parts: Vec<_> = table.iter().map(|(key, value)| (key.clone(), value)).collect();
            parts.sort_by_key(|(key, _)| key == "kind");
            parts
        }
        Value::Array(items) => items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect(),
        _ => Vec::new(),
    }
}

/// A value without what is at a place in it.
fn without(mut value: Value, place: &[String]) -> Value {
    let [key, rest @ ..] = place else { return value };
    match &mut value {
        Value::Table(table) => {
            if let (Some(part), [_, ..]) = (table.remove(key), rest) {
                table.insert(key.clone(), without(part, rest));
            }
        }
        Value::Array(items) => {
            let number = key.parse().expect("`parts_of` numbers items");
            let item = items.remove(number);
            if !rest.is_empty() {
                items.insert(number, without(item, rest));
            }
        }
        _ => {}
    }
    value
}

/// What a serde error says, in the words of a config.
pub(super) fn explain(message: &str, place: &str) -> (String, String) {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let suggestion = did_you_mean(word, known.iter().copied());
    if message.starts_with("unknown field") {
        let place = match place.rsplit_once('.') {
            Some((table, key)) if key == word => table,
            None if place == word => "",
            _ => place,
        };
        let (what, list) =
            if place.is_empty() { ("section", "the sections are") } else { ("key", "the keys are") };
        let at = if place.is_empty() { String::new() } else { format!(" in [{place}]") };
        (format!("unknown {what} `{word}`{at}"), format!("{suggestion}{list} {}", known.join(", ")))
    } else if message.starts_with("unknown variant") {
        let at = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
        (format!("unknown value `{word}`{at}"), format!("{suggestion}it can be {}", known.join(", ")))
    } else if message.starts_with("missing field") {
        let (what, at) = match place {
            "" => ("section", String::new()),
            place => ("key", format!(" in [{place}]")),
        };
        (format!("the {what} `{word}` is missing{at}"), "add it, in the file or with `--set`".into())
    } else {
        let words = [
            ("expected u64", "expected a whole number of at least 0"),
            ("expected usize", "expected a whole number of at least 0"),
            ("expected f64", "expected a number"),
            ("floating point `", "number `"),
            ("expected a sequence", "expected a list"),
            ("invalid type: map", "invalid type: table"),
        ];
        let plain = words.iter().fold(message.to_owned(), |plain, (from, to)| plain.replace(from, to));
        let plain = match plain.split_once("expected internally tagged enum") {
            Some((before, _)) => format!("{before}expected a table with a `kind`"),
            None => plain,
        };
        (format!("`{place}` has a wrong value: {plain}"), format!("correct the value of `{place}`"))
    }
}
