//! Every setting with its type, default and meaning, read from the config's types and their doc comments.
//!
//! `CONFIG.md` and `akin list losses --show NAME` print these rows, so that both always say what the program does.

use akin_base::problem::{did_you_mean, problem};
use akin_core::losses::{CATALOGUE, LossConfig};
use anyhow::Result;
use schemars::JsonSchema;
use serde_json::Value;

use super::schema::{Node, Schema, Shape, description, fields, required};

/// A setting, as people read about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingRow {
    /// Its key, dotted below the table that it stands in.
    pub key: String,
    /// What its value is: `number`, `text`, `list of numbers` …
    pub value: String,
    /// Its default: TOML, or words where it follows from something else.
    pub default: String,
    /// What it means.
    pub meaning: String,
    /// The kinds of its table that have it; none if all have it.
    pub kinds: Vec<String>,
}

impl SettingRow {
    /// What it means, after the kinds that have it: "`adam`, `adamw`: the decay rate …".
    pub fn text(&self) -> String {
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("`{kind}`")).collect();
        if kinds.is_empty() {
            self.meaning.clone()
        } else {
            format!("{}: {}", kinds.join(", "), self.meaning)
        }
    }
}

/// The settings of a type.
pub fn settings_of<T: JsonSchema>() -> Vec<SettingRow> {
    let schema = Schema::of::<T>();
    let mut rows = Vec::new();
    Rows { schema: &schema, rows: &mut rows }.table(schema.root(), "", None);
    rows
}

/// The settings of a loss or preset, with the defaults of that preset.
///
/// # Errors
///
/// A name that the catalogue does not have.
pub fn loss_settings(name: &str) -> Result<Vec<SettingRow>> {
    if !CATALOGUE.iter().any(|entry| entry.name == name) {
        let near = did_you_mean(name, CATALOGUE.iter().map(|entry| entry.name));
        return Err(problem(
            format!("unknown loss `{name}`"),
            format!("{near}`akin list losses` lists all of them"),
        ));
    }
    // A loss with required settings, such as a sum, has no value that could be shown as defaults.
    let config = LossConfig::named(name).ok();
    let kind = config.as_ref().map_or(name, |config| config.name());
    let values = config.as_ref().and_then(|config| serde_json::to_value(config).ok());
    Ok(settings_of_kind::<LossConfig>(kind, values.as_ref()))
}

/// The settings of one kind of a type that has kinds, with these values as defaults.
pub fn settings_of_kind<T: JsonSchema>(kind: &str, values: Option<&Value>) -> Vec<SettingRow> {
    let schema = Schema::of::<T>();
    let mut rows = Vec::new();
    if let Shape::Kinds(kinds) = schema.shape(schema.root())
        && let Some((_, table)) = kinds.into_iter().find(|(name, _)| *name == kind)
    {
        Rows { schema: &schema, rows: &mut rows }.table(table, "", values);
    }
    rows
}

/// Collects the rows of nested tables.
struct Rows<'a> {
    schema: &'a Schema,
    rows: &'a mut Vec<SettingRow>,
}

impl Rows<'_> {
    /// The rows of a table. `values` are defaults that replace those of its type.
    fn table(&mut self, table: &Node, prefix: &str, values: Option<&Value>) {
        let required = required(table);
        let mut fields = fields(table);
        // As in TOML, plain values come before tables.
        fields.sort_by_key(|(_, node)| matches!(self.schema.shape(node), Shape::Table(_)));
        for (key, node) in fields {
            // The row of `kind` stands before those of all kinds.
            if node.contains_key("const") {
                continue;
            }
            let value = values.and_then(|values| values.get(key)).or_else(|| node.get("default"));
            self.setting(node, &format!("{prefix}{key}"), value, required.contains(&key));
        }
    }

    /// The row of one setting, and those of the keys inside it.
    fn setting(&mut self, node: &Node, key: &str, value: Option<&Value>, is_required: bool) {
        let shape = self.schema.shape(node);
        let named_type = self.schema.named_type(node);
        let (mut meaning, sentence) = split_default(&plain(description(node)));
        let value = value.filter(|value| is_set(value));
        let default = match (value, sentence) {
            // The rows of the table's own keys show their defaults.
            (Some(_), _) if named_type.is_none() && matches!(shape, Shape::Table(_) | Shape::Kinds(_)) => {
                String::new()
            }
            (Some(value), sentence) => {
                let own_default = node.get("default").unwrap_or(value);
                if let Some(words) = sentence.filter(|words| !same(words, value) && !same(words, own_default))
                {
                    meaning += &format!(" Default: {words}.");
                }
                format!("`{}`", inline(value))
            }
            (None, Some(words)) => words,
            (None, None) if is_required => "required".into(),
            (None, None) => "none".into(),
        };
        let key = key.to_owned();
        if let Some(name) = named_type {
            self.rows.push(SettingRow {
                key,
                value: format!("a {name}"),
                default,
                meaning,
                kinds: Vec::new(),
            });
            return;
        }
        if let Shape::Names(names, _) = &shape {
            meaning += &meanings(names.iter().copied());
        }
        let meaning = meaning.trim().to_owned();
        let row = SettingRow { key, value: self.value_type(&shape), default, meaning, kinds: Vec::new() };
        self.rows.push(row.clone());
        self.inside(&shape, &row.key, value);
    }

    /// The rows of what a value contains.
    fn inside(&mut self, shape: &Shape, key: &str, value: Option<&Value>) {
        match shape {
            Shape::Table(table) => self.table(table, &format!("{key}."), value),
            Shape::Names(_, Some(table)) => {
                let first = self.rows.len();
                self.table(table, &format!("{key}."), value.filter(|value| value.is_object()));
                // Serde writes a name with settings as a table with one key; its meaning is that of the table.
                if let Some(row) = self.rows.get_mut(first).filter(|row| row.meaning.is_empty()) {
                    row.meaning = plain(description(table));
                    row.default.clear();
                }
            }
            Shape::Kinds(kinds) => self.kinds(kinds, key, value),
            Shape::List(items, _) if self.schema.named_type(items).is_none() => {
                self.inside(&self.schema.shape(items), &format!("{key}[]"), None);
            }
            Shape::Map(values) => {
                self.inside(&self.schema.shape(values), &format!("{key}.NAME"), None);
            }
            _ => {}
        }
    }

    /// The row of the `kind` of a table, and those of the keys of all kinds.
    fn kinds(&mut self, kinds: &[(&str, &Node)], key: &str, value: Option<&Value>) {
        let default = value.and_then(|value| value.get("kind"));
        let names: Vec<String> = kinds.iter().map(|(kind, _)| format!("`{kind}`")).collect();
        self.rows.push(SettingRow {
            key: format!("{key}.kind"),
            value: names.join(", "),
            default: default.map_or("required".into(), |kind| format!("`{kind}`")),
            meaning: meanings(kinds.iter().map(|(kind, table)| (*kind, description(table))))
                .trim()
                .to_owned(),
            kinds: Vec::new(),
        });
        let first = self.rows.len();
        let mut of_kinds: Vec<(SettingRow, Vec<String>)> = Vec::new();
        for (kind, table) in kinds {
            self.table(table, &format!("{key}."), value.filter(|_| default.is_some_and(|name| name == kind)));
            // Kinds may have keys in common.
            for row in self.rows.split_off(first) {
                match of_kinds.iter_mut().find(|(other, _)| *other == row) {
                    Some((_, kinds)) => kinds.push((*kind).to_owned()),
                    None => of_kinds.push((row, vec![(*kind).to_owned()])),
                }
            }
        }
        for (mut row, names) in of_kinds {
            // The kinds of a table inside this one say more.
            if row.kinds.is_empty() && names.len() < kinds.len() {
                row.kinds = names;
            }
            self.rows.push(row);
        }
    }

    /// What a value is, in words.
    fn value_type(&self, shape: &Shape) -> String {
        match shape {
            Shape::Table(_) | Shape::Map(_) | Shape::Plain("object") => "table".into(),
            Shape::Kinds(_) => "table with a `kind`".into(),
            Shape::Names(names, table) => {
                let mut names: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
                let settings = table.map(|table| self.schema.name_with_settings(table));
                names.extend(
                    settings
                        .map(|settings| settings.map_or("a table".into(), |(_, text)| format!("`{text}`"))),
                );
                names.join(", ")
            }
            Shape::List(items, length) => {
                let item = match self.schema.shape(items) {
                    Shape::Plain("number") => "numbers",
                    Shape::Plain("integer") => "whole numbers",
                    Shape::Plain("string") => "texts",
                    Shape::Any => "values",
                    _ => "tables",
                };
                match length {
                    Some(length) => format!("list of {length} {item}"),
                    None => format!("list of {item}"),
                }
            }
            Shape::Plain("number") => "number".into(),
            Shape::Plain("integer") => "whole number".into(),
            Shape::Plain("boolean") => "`true` or `false`".into(),
            Shape::Plain(_) => "text".into(),
            Shape::Any => "value".into(),
        }
    }
}

/// Whether a default is a value to show, and not one that stands for a missing setting.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(table) => !table.is_empty(),
        _ => true,
    }
}

/// What each name means, in sentences.
fn meanings<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let sentence = |(name, text): (&str, &str)| format!(" `{name}`: {}.", plain(text).trim_end_matches('.'));
    names.filter(|(_, text)| !text.is_empty()).map(sentence).collect()
}

/// A doc comment as plain Markdown on one line: without the links of rustdoc.
pub fn plain(comment: &str) -> String {
    let mut rest =
        comment.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\[", "[").replace("\\]", "]");
    // [text](path::to::item) → text, [`Item`] → `Item`.
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, after)) = after.split_once(']') else { break };
        let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        let (kept, after) = match target {
            Some((path, _)) if path.starts_with("http") => (format!("[{inside}]"), after),
            Some((_, after)) => (inside.to_owned(), after),
            None if inside.starts_with('`') => (inside.to_owned(), after),
            None => (format!("[{inside}]"), after),
        };
        text = text + before + &kept;
        rest = after.to_owned();
    }
    text + &rest
}

/// A meaning without its sentence on the default, and what that sentence says.
fn split_default(meaning: &str) -> (String, Option<String>) {
    let start = match meaning.find(". Default") {
        Some(place) => place + 2,
        None if meaning.starts_with("Default") => 0,
        None => return (meaning.to_owned(), None),
    };
    let sentence = &meaning[start..];
    let ends = |place: &usize| sentence[place + 2..].starts_with(char::is_uppercase);
    let end = sentence.match_indices(". ").map(|(place, _)| place).find(ends);
    let end = end.map_or(sentence.len(), |end| end + 2);
    let words = sentence[..end].trim_start_matches("Default").trim_start_matches(':');
    let words = words.trim().trim_end_matches('.').to_owned();
    let rest = format!("{}{}", &meaning[..start], &sentence[end..]);
    (rest.trim().to_owned(), Some(words))
}

/// Whether a sentence on the default says no more than the value: its number, or the name of its kind in words.
fn same(words: &str, value: &Value) -> bool {
    let numbers = |value: &Value| match value {
        Value::Array(items) => items.iter().map(Value::as_f64).collect::<Option<Vec<_>>>(),
        value => value.as_f64().map(|number| vec![number]),
    };
    let list = format!("[{words}]");
    let json = if value.is_array() && !words.starts_with('[') { &list } else { words };
    if let Ok(told) = serde_json::from_str::<Value>(json) {
        return told == *value || numbers(value).is_some_and(|value| numbers(&told) == Some(value));
    }
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let name = match value {
        Value::Bool(value) => Some(if *value { "yes" } else { "no" }),
        value => value.get("kind").unwrap_or(value).as_str(),
    };
    name.is_some_and(|name| letters(words.trim_start_matches("the ")).starts_with(&letters(name)))
}

/// A value as TOML on one line, the `kind` of a table first.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(table) => {
            let mut entries: Vec<_> = table.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_by_key(|(key, _)| *key != "kind");
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            if entries.is_empty() { "{}".into() } else { format!("{{ {} }}", entries.join(", ")) }
        }
        Value::Number(number) if number.to_string().len() > 8 => {
            format!("{:.4}", number.as_f64().unwrap_or_default())
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_of_rustdoc_become_plain_text() {
        assert_eq!(
            plain("See [`Head`], the\n[distance](crate::poincare) and \\[0, 1\\]."),
            "See `Head`, the distance and [0, 1]."
        );
    }

    #[test]
    fn the_sentence_on_the_default_is_separate_from_the_meaning() {
        let split = |text: &str| split_default(text);
        assert_eq!(split("The width. Default 16."), ("The width.".into(), Some("16".into())));
        let (meaning, default) =
            split("The relevance. Default: HAPPIER eq. 4 with α = 1. A larger α is finer.");
        assert_eq!(meaning, "The relevance. A larger α is finer.");
        assert_eq!(default.unwrap(), "HAPPIER eq. 4 with α = 1");
        assert_eq!(split("The width."), ("The width.".into(), None));
    }

    #[test]
    fn a_default_in_words_is_recognised() {
        for (words, value) in [
            ("1e-2", json!(0.01)),
            ("[0.4, 1]", json!([0.4, 1.0])),
            ("0, 1, 2", json!([0, 1, 2])),
            ("`auto`", json!("auto")),
            ("no", json!(false)),
            ("Proxy-Anchor", json!({ "kind": "proxy_anchor", "margin": 0.1 })),
            ("the proxies", json!("proxies")),
        ] {
            assert!(same(words, &value), "{words}");
        }
        assert!(!same("0.5, which makes it at least 1", &json!(0.5)));
        assert!(!same("unit vectors", &json!({ "kind": "cosine" })));
    }

    #[test]
    fn a_preset_shows_its_own_defaults() {
        let default = |loss: &str, key: &str| {
            let rows = loss_settings(loss).unwrap();
            rows.into_iter().find(|row| row.key == key).unwrap().default
        };
        assert_eq!(default("happier", "surrogate.relevance.alpha"), "`1.0`");
        assert_eq!(default("happier_f", "surrogate.relevance.alpha"), "`5.0`");
        assert_eq!(default("sum", "terms"), "required");
        assert!(loss_settings("hapier").is_err());
    }
}
