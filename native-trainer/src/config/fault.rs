//! What is wrong with a config: a comparison of its table with the schema of its type.
//!
//! Serde reads the config. If that fails, this file finds the key that is wrong, its line and what to write instead, or
//! all the keys that are missing.

use akin_base::problem::{a_few, did_you_mean};
use akin_core::losses::CATALOGUE;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::schema::{Node, Schema, Shape, fields, required};

/// More names than this are not listed in a message.
const FEW_NAMES: usize = 24;

/// The path of a setting: keys, and the places of items in lists.
type Path = Vec<String>;

/// What is wrong with one setting.
pub(super) struct Fault {
    /// Where it is.
    pub(super) path: Path,
    /// What is wrong.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: String,
}

/// Everything that is wrong with a config.
#[derive(Default)]
pub(super) struct Faults {
    /// Keys and values that are wrong.
    pub(super) wrong: Vec<Fault>,
    /// Keys that are missing, ready for a message.
    pub(super) missing: Vec<String>,
}

impl Faults {
    /// The faults of a table by the schema of its type. `place` is the dotted key at which the table stands.
    pub(super) fn find(schema: &Schema, table: &Table, place: &str) -> Self {
        let mut faults = Self::default();
        let path = place.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut check = Check { schema, path, faults: &mut faults };
        check.table(schema.root(), table, true, None);
        faults
    }

    /// The message and hint for all missing keys.
    pub(super) fn missing_message(&self) -> (String, String) {
        let hint = "in the file or with `--set`; CONFIG.md lists every setting";
        match &self.missing[..] {
            [key] => (format!("the setting {key} is missing"), format!("add it, {hint}")),
            keys => (format!("these settings are missing: {}", keys.join(", ")), format!("add them, {hint}")),
        }
    }
}

/// The dotted key of a path, without the numbers of items.
pub(super) fn dotted(path: &[String]) -> String {
    let keys: Vec<&str> =
        path.iter().map(String::as_str).filter(|key| key.parse::<usize>().is_err()).collect();
    keys.join(".")
}

/// The line of the text, from 1, on which a setting stands.
pub(super) fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let (first, rest) = path.split_first()?;
    let (key, mut value) = table.get_ref().get_key_value(first.as_str())?;
    let mut start = key.span().start;
    for part in rest {
        value = match value.get_ref() {
            DeValue::Table(table) => {
                let (key, value) = table.get_key_value(part.as_str())?;
                start = key.span().start;
                value
            }
            DeValue::Array(items) => {
                let item = items.get(part.parse::<usize>().ok()?)?;
                start = item.span().start;
                item
            }
            _ => return None,
        };
    }
    Some(text.get(..start)?.matches('\n').count() + 1)
}

/// The value at a path.
pub(super) fn value_at<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first)?, |value, part| match value {
        Value::Table(table) => table.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The kind of a table, and all that it could be.
struct Kind<'a> {
    name: &'a str,
    all: &'a [(&'a str, &'a Node)],
}

impl Kind<'_> {
    /// The kinds that have a key.
    fn others_with(&self, key: &str) -> Vec<String> {
        let has_key = |(_, node): &&(&str, &Node)| fields(node).iter().any(|(name, _)| *name == key);
        self.all.iter().filter(has_key).map(|(kind, _)| format!("`{kind}`")).collect()
    }
}

/// Walks a table and a schema side by side.
struct Check<'a> {
    schema: &'a Schema,
    path: Path,
    faults: &'a mut Faults,
}

impl Check<'_> {
    /// Checks a table's keys. `complete` says whether the required keys must be present, `kind` of which kind it is.
    fn table(&mut self, node: &Node, table: &Table, complete: bool, kind: Option<&Kind>) {
        let known = fields(node);
        let is_closed = node.get("additionalProperties") == Some(&Json::Bool(false));
        for (key, value) in table {
            match known.iter().find(|(name, _)| name == key) {
                Some((_, node)) => self.inside(key, |check| check.value(node, value)),
                None if is_closed => self.unknown_key(key, &known, kind),
                None => {}
            }
        }
        for key in required(node) {
            if complete && !table.contains_key(key) {
                self.inside(key, |check| {
                    if let Some((_, node)) = known.iter().find(|(name, _)| *name == key) {
                        check.missing(node);
                    }
                });
            }
        }
    }

    fn value(&mut self, node: &Node, value: &Value) {
        let shape = self.schema.shape(node);
        match (&shape, value) {
            (Shape::Names(names, Some(node)), Value::Table(table))
                if self
                    .schema
                    .name_with_settings(node)
                    .is_some_and(|(name, _)| !table.contains_key(name)) =>
            {
                self.unknown_value(&value.to_string(), names, Some(node))
            }
            (Shape::Table(node) | Shape::Names(_, Some(node)), Value::Table(table)) => {
                self.table(node, table, true, None)
            }
            (Shape::Kinds(kinds), Value::Table(table)) => self.kinds(node, kinds, table),
            (Shape::Names(names, table), Value::String(name)) => {
                if !names.iter().any(|(known, _)| known == name) {
                    self.unknown_value(name, names, *table);
                }
            }
            (Shape::Map(values), Value::Table(table)) => {
                for (key, value) in table {
                    self.inside(key, |check| check.value(values, value));
                }
            }
            (Shape::List(item, length), Value::Array(items))
                if length.is_none_or(|length| length == items.len() as u64) =>
            {
                for (place, value) in items.iter().enumerate() {
                    self.inside(&place.to_string(), |check| check.value(item, value));
                }
            }
            (Shape::Plain("number"), Value::Float(number)) if number.is_finite() => {}
            (Shape::Plain("number"), Value::Integer(_)) => {}
            (Shape::Plain("integer"), Value::Integer(number)) if !is_out_of_range(node, *number) => {}
            (Shape::Plain("boolean"), Value::Boolean(_)) | (Shape::Plain("string"), Value::String(_)) => {}
            (Shape::Plain("object"), Value::Table(_)) | (Shape::Any, _) => {}
            _ => self.wrong_value(node, &shape, value),
        }
    }

    fn kinds(&mut self, node: &Node, kinds: &[(&str, &Node)], table: &Table) {
        let what = self.schema.named_type(node);
        let Some(kind) = table.get("kind") else {
            return self.missing_kind(kinds, table);
        };
        let Some(kind) = kind.as_str() else {
            let text = Shape::Plain("string");
            return self.inside("kind", |check| check.wrong_value(node, &text, kind));
        };
        // A preset has the keys of the loss it stands for, and needs none.
        let preset = CATALOGUE.iter().find(|entry| what == Some("loss") && entry.name == kind);
        let preset = preset.and_then(|entry| serde_json::from_str::<Json>(entry.preset?).ok());
        let base = preset.as_ref().and_then(|preset| preset["kind"].as_str());
        match kinds.iter().find(|(name, _)| *name == base.unwrap_or(kind)) {
            Some((_, node)) => {
                self.table(node, table, preset.is_none(), Some(&Kind { name: kind, all: kinds }))
            }
            None => {
                let names = match what {
                    Some("loss") => CATALOGUE.iter().map(|entry| entry.name).collect(),
                    _ => kinds.iter().map(|(kind, _)| *kind).collect(),
                };
                self.inside("kind", |check| check.unknown_name(what.unwrap_or("kind"), kind, names));
            }
        }
    }

    fn inside(&mut self, key: &str, check: impl FnOnce(&mut Self)) {
        self.path.push(key.to_owned());
        check(self);
        self.path.pop();
    }

    /// Notes a missing value, or what is required inside it.
    fn missing(&mut self, node: &Node) {
        match self.schema.shape(node) {
            Shape::Table(table) if !required(table).is_empty() => {
                self.table(table, &Table::new(), true, None);
            }
            Shape::Kinds(kinds) => self.missing_kind(&kinds, &Table::new()),
            Shape::Names(names, None) => {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                self.note_missing(&names);
            }
            _ => self.note_missing(&[]),
        }
    }

    /// Notes that a table has no `kind`, and which keys are missing whatever its kind.
    fn missing_kind(&mut self, kinds: &[(&str, &Node)], table: &Table) {
        let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
        self.inside("kind", |check| check.note_missing(&names));
        let Some((first, others)) = kinds.split_first() else { return };
        for key in required(first.1) {
            let is_in_all = others.iter().all(|(_, node)| required(node).contains(&key));
            if key != "kind" && is_in_all && !table.contains_key(key) {
                self.inside(key, |check| check.note_missing(&[]));
            }
        }
    }

    fn note_missing(&mut self, names: &[&str]) {
        let key = dotted(&self.path);
        self.faults.missing.push(match names.len() {
            1..=FEW_NAMES => format!("`{key}` ({})", names.join(", ")),
            _ => format!("`{key}`"),
        });
    }

    fn unknown_key(&mut self, key: &str, known: &[(&str, &Node)], kind: Option<&Kind>) {
        let place = dotted(&self.path);
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let near = match self.same_key_elsewhere(key, known) {
            Some(elsewhere) => format!("did you mean `{elsewhere}`? "),
            None => did_you_mean(key, names.iter().copied()),
        };
        let (mut message, list) = match place.as_str() {
            "" => (format!("unknown section `{key}`"), "the sections are"),
            _ => (format!("unknown key `{key}` in [{place}]"), "the keys are"),
        };
        let unquoted = place.strip_prefix("tune.ranges.").filter(|section| !section.contains('.'));
        let of_other_kinds =
            kind.map(|kind| (kind, kind.others_with(key))).filter(|(_, others)| !others.is_empty());
        let hint = match (of_other_kinds, names.len()) {
            (Some((kind, others)), _) => {
                message += &format!(": it belongs to {}, not to `{}`", a_few(&others), kind.name);
                format!("remove it, or choose another `{place}.kind`")
            }
            _ if unquoted.is_some() => {
                format!(
                    "a key of tune.ranges needs quotes, such as \"{}.{key}\"",
                    unquoted.unwrap_or_default()
                )
            }
            (None, 0) => "remove it; it has no keys".to_owned(),
            _ => format!("{near}{list} {}", names.join(", ")),
        };
        let path = [self.path.clone(), vec![key.to_owned()]].concat();
        self.faults.wrong.push(Fault { path, message, hint });
    }

    /// Where a key of this name stands: in a table inside this one, or in another section.
    fn same_key_elsewhere(&self, key: &str, known: &[(&str, &Node)]) -> Option<String> {
        let has_key = |node: &Node| fields(node).iter().any(|(name, _)| *name == key);
        let inside = |(_, node): &&(&str, &Node)| match self.schema.shape(node) {
            Shape::Table(table) | Shape::Names(_, Some(table)) => has_key(table),
            Shape::Kinds(kinds) => kinds.iter().any(|(_, node)| has_key(node)),
            _ => false,
        };
        let below =
            known.iter().find(inside).map(|(name, _)| [&self.path[..], &[(*name).to_owned()]].concat());
        let sections = fields(self.schema.root());
        let section = || sections.iter().filter(|_| key != "kind" && !self.path.is_empty()).find(inside);
        let table = below.map(|path| dotted(&path)).or_else(|| Some(section()?.0.to_owned()))?;
        Some(format!("{table}.{key}"))
    }

    fn unknown_name(&mut self, what: &str, name: &str, known: Vec<&str>) {
        let near = did_you_mean(name, known.iter().copied());
        let hint = match what {
            "loss" => format!("{near}`akin list losses` lists all of them"),
            _ => format!("{near}it can be {}", known.join(", ")),
        };
        let message = format!("unknown {what} `{name}` in `{}`", dotted(&self.path));
        self.faults.wrong.push(Fault { path: self.path.clone(), message, hint });
    }

    /// A value that is not one of the known names. Besides `names` there is the name that `table` gives settings to.
    fn unknown_value(&mut self, value: &str, names: &[(&str, &str)], table: Option<&Node>) {
        let mut known: Vec<String> = names.iter().map(|(name, _)| (*name).to_owned()).collect();
        known.extend(table.and_then(|table| self.schema.name_with_settings(table)).map(|(_, text)| text));
        self.unknown_name("value", value, known.iter().map(String::as_str).collect());
    }

    fn wrong_value(&mut self, node: &Node, shape: &Shape, value: &Value) {
        let wanted = match shape {
            Shape::Plain("number") if value.is_float() => "a finite number".into(),
            Shape::Table(_) | Shape::Map(_) | Shape::Plain("object") => "a table".into(),
            Shape::Kinds(_) => "a table with a `kind`".into(),
            Shape::Names(_, Some(_)) => "a name or a table".into(),
            Shape::Names(names, None) => {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                format!("one of {}", names.join(", "))
            }
            Shape::List(_, Some(length)) => format!("a list of {length} values"),
            Shape::List(_, None) => "a list".into(),
            Shape::Plain("number") => "a number".into(),
            Shape::Plain("integer") => match (minimum(node), value) {
                (_, Value::Integer(number)) if is_too_large(node, *number) => "a small enough number".into(),
                (Some(minimum), _) => format!("a whole number of at least {minimum}"),
                (None, _) => "a whole number".into(),
            },
            Shape::Plain("boolean") => "true or false".into(),
            Shape::Plain(_) | Shape::Any => "a text in quotes".to_owned(),
        };
        let place = dotted(&self.path);
        let message = format!("`{place}` is {value}, not {wanted}");
        let hint = match (shape, value) {
            (Shape::Kinds(_), Value::String(_)) => format!("write {{ kind = {value} }}"),
            (Shape::List(..), Value::Table(table)) if place.starts_with("compare.vary.") => {
                let key = self.path.last().map(String::as_str).unwrap_or_default();
                let key = first_key(key, table);
                format!("a key of compare.vary needs quotes: write vary = {{ \"{key}\" = […] }}")
            }
            (Shape::List(_, None), value) if !value.is_array() => format!("put it in brackets: [{value}]"),
            _ => format!("give `{place}` {wanted}"),
        };
        self.faults.wrong.push(Fault { path: self.path.clone(), message, hint });
    }
}

/// The dotted key of the first value inside a table that stands at this key.
fn first_key(key: &str, table: &Table) -> String {
    match table.iter().next() {
        Some((inner, Value::Table(table))) => first_key(&format!("{key}.{inner}"), table),
        Some((inner, _)) => format!("{key}.{inner}"),
        None => key.to_owned(),
    }
}

fn minimum(node: &Node) -> Option<i64> {
    node.get("minimum")?.as_i64()
}

fn is_out_of_range(node: &Node, number: i64) -> bool {
    minimum(node).is_some_and(|minimum| number < minimum) || is_too_large(node, number)
}

/// Whether a number does not fit into the 32 bits that the setting has.
fn is_too_large(node: &Node, number: i64) -> bool {
    node.get("format").and_then(Json::as_str) == Some("uint32") && number > i64::from(u32::MAX)
}
