//! A config file that explains every setting, for `akin init`.
//!
//! Settings with a value are written as they are. The others follow as comments: `#key = default` where the default is
//! a value, which takes effect if the `#` is removed, and prose where it is not, and where the setting belongs to another
//! kind or to a table that is not there.

use toml::{Table, Value};

use super::reference::{SettingRow, loss_settings, settings_of};
use super::{Config, last_part};

/// The sections in the order of the file. The recipes of papers also have `[published]`.
pub const SECTIONS: [&str; 10] =
    ["run", "data", "split", "model", "augment", "loss", "sampler", "optimizer", "schedule", "eval"];

/// The width of a comment.
const WIDTH: usize = 100;

/// A config with these values, and with the meaning of every setting. `comments` stand at the top.
pub fn explained(values: &Table, comments: &[String]) -> String {
    let rows = settings_of::<Config>();
    let mut text = String::new();
    comments.iter().for_each(|comment| text += &prose("", comment));
    for section in SECTIONS {
        let own = rows.iter().find(|row| row.key == section);
        let chosen = values.get(section).and_then(Value::as_table);
        // A section that is optional, and left out, would change the run if it were there.
        let mark = if chosen.is_none() && own.is_some_and(|row| row.default == "none") { "#" } else { "" };
        text += "\n\n";
        text += &prose("", own.map_or("", |row| row.meaning.as_str()));
        text += &format!("{mark}[{section}]\n");
        let empty = Table::new();
        let chosen = chosen.unwrap_or(&empty);
        let rows = rows_of(section, &rows, chosen);
        for row in &rows {
            text += &setting(row, chosen, &rows);
        }
    }
    text
}

/// The settings of a section, with keys relative to it: first those with a value, as they are listed.
fn rows_of(section: &str, all: &[SettingRow], chosen: &Table) -> Vec<SettingRow> {
    let below = format!("{section}.");
    let relative =
        |row: &SettingRow| Some(SettingRow { key: row.key.strip_prefix(&below)?.to_owned(), ..row.clone() });
    let rows: Vec<SettingRow> = if section == "loss" {
        let kind_row = SettingRow {
            key: "kind".into(),
            value: "text".into(),
            default: "required".into(),
            meaning: "The loss. `akin list losses` names and explains all of them.".into(),
            kinds: Vec::new(),
        };
        let kind = chosen.get("kind").and_then(Value::as_str).unwrap_or_default();
        [vec![kind_row], loss_settings(kind).unwrap_or_default()].concat()
    } else {
        all.iter().filter_map(relative).collect()
    };
    let (set, unset): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| value_of(chosen, &row.key).is_some());
    [set, unset].concat()
}

/// Whether a setting would have an effect: the table that it stands in is there, and of a kind that has the setting.
fn has_effect(row: &SettingRow, chosen: &Table, rows: &[SettingRow]) -> bool {
    let table = table_of(&row.key);
    // A table without a default of its own is there, with the defaults of its keys.
    let is_there =
        |row: &SettingRow| row.key == table && row.default.is_empty() && has_effect(row, chosen, rows);
    if !table.is_empty() && value_of(chosen, table).is_none() && !rows.iter().any(is_there) {
        return false;
    }
    row.kinds.is_empty() || kind_of(&row.key, chosen, rows).is_some_and(|kind| row.kinds.contains(&kind))
}

/// The kind of the table that a setting stands in, or of the next one around it that has a kind.
fn kind_of(key: &str, chosen: &Table, rows: &[SettingRow]) -> Option<String> {
    let table = table_of(key);
    let kind_key = if table.is_empty() { "kind".to_owned() } else { format!("{table}.kind") };
    let default = || {
        rows.iter()
            .find(|row| row.key == kind_key)
            .map(|row| Value::from(row.default.trim_matches(['`', '"'])))
    };
    match value_of(chosen, &kind_key).or_else(default) {
        Some(kind) => kind.as_str().map(str::to_owned),
        None if table.is_empty() => None,
        None => kind_of(table, chosen, rows),
    }
}

/// The dotted key of the table that a setting stands in.
fn table_of(key: &str) -> &str {
    key.rsplit_once('.').map_or("", |(table, _)| table)
}

/// One setting with its meaning. For a table, it writes only the keys that none of `rows` explains.
fn setting(row: &SettingRow, chosen: &Table, rows: &[SettingRow]) -> String {
    let SettingRow { key, value, default, .. } = row;
    let meaning = meaning(row);
    if let Some(value) = value_of(chosen, key)
        && (row.kinds.is_empty() || has_effect(row, chosen, rows))
    {
        let lines = match &value {
            Value::Table(table) => {
                let entries = table.iter().map(|(inner, value)| (format!("{key}.{inner}"), value));
                let own = entries.filter(|(key, _)| !rows.iter().any(|row| row.key == *key));
                own.map(|(key, value)| format!("{key} = {value}\n")).collect()
            }
            value => format!("{key} = {value}\n"),
        };
        return format!("\n{}{lines}", prose("", &meaning));
    }
    let quoted = default.strip_prefix('`').and_then(|default| default.strip_suffix('`'));
    let is_value = |default: &&str| toml::from_str::<Table>(&format!("value = {default}")).is_ok();
    match quoted.filter(is_value) {
        Some(default) if has_effect(row, chosen, rows) => {
            format!("\n{}#{key} = {default}\n", prose("", &meaning))
        }
        _ => {
            // A setting of another kind names it.
            let meaning = if has_effect(row, chosen, rows) { meaning } else { row.text() };
            let meaning = match default.as_str() {
                "" | "required" | "none" => meaning,
                default => format!("{meaning} Default: {default}."),
            };
            format!("\n{}", prose(&format!("{key} ({}): ", value.replace('`', "")), &meaning))
        }
    }
}

/// What a setting means. `akin list` explains long lists of kinds.
fn meaning(row: &SettingRow) -> String {
    let is_listed = last_part(&row.key) == "kind" && row.meaning.len() > 400;
    if is_listed { String::new() } else { row.meaning.clone() }
}

/// The value at a dotted key of a section.
fn value_of(section: &Table, key: &str) -> Option<Value> {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let value = section.get(first)?;
    match rest {
        "" => Some(value.clone()),
        rest => value_of(value.as_table()?, rest),
    }
}

/// Comment lines.
fn prose(start: &str, text: &str) -> String {
    let mut lines = vec![format!("# {start}")];
    for word in text.replace('`', "").split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.len() > 2 {
            lines.push(format!("# {word}"));
        } else {
            if !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.into_iter().filter(|line| line.len() > 2).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Source;
    use super::*;

    fn values() -> Table {
        toml::toml! {
            [run]
            epochs = 3
            [data]
            kind = "folder"
            path = "photos"
            levels = ["group", "class"]
            [split]
            test_fraction = 0.5
            [augment]
            crop_scale = [0.5, 1.0]
            flip = true
            [model]
            backbone = { kind = "small_resnet" }
            head = { dimension = 64 }
            [loss]
            kind = "happier"
        }
    }

    fn config(text: &str) -> Config {
        Source::from_text(Path::new("photos.toml"), text.into(), None, &[])
            .unwrap()
            .config(&Table::new())
            .unwrap()
    }

    #[test]
    fn an_explained_config_is_the_config_of_its_values() {
        let text = explained(&values(), &["For photos.".into()]);
        assert!(text.starts_with("# For photos.\n"), "{text}");
        assert_eq!(config(&text), config(&toml::to_string(&values()).unwrap()));
    }

    /// The values in comments are the defaults, in valid TOML.
    #[test]
    fn settings_in_comments_may_be_uncommented() {
        let text = explained(&values(), &[]);
        let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        let count = text.lines().filter(is_setting).count();
        assert!(count > 20, "{count} settings in\n{text}");
        let uncommented: Vec<&str> =
            text.lines().map(|line| if is_setting(&line) { &line[1..] } else { line }).collect();
        // Long numbers are rounded.
        let uncommented = uncommented.join("\n").replace("1.3333]", &format!("{}]", 4.0 / 3.0));
        assert_eq!(config(&uncommented), config(&text), "{uncommented}");
    }

    #[test]
    fn every_setting_is_explained() {
        let text = explained(&values(), &[]);
        let sections = SECTIONS.iter().filter(|section| **section != "loss");
        let rows_in = |section: &&str| rows_of(section, &settings_of::<Config>(), &Table::new());
        let rows = sections.flat_map(rows_in).chain(loss_settings("happier").unwrap());
        let missing: Vec<String> = rows
            .map(|row| row.key)
            .filter(|key| {
                ![format!("{key} = "), format!("# {key} ("), format!("\n{key}.")]
                    .iter()
                    .any(|part| text.contains(part))
            })
            .collect();
        assert!(missing.is_empty(), "{missing:?} in\n{text}");
    }

    #[test]
    fn a_key_in_a_table_of_a_kind_is_written() {
        let mut values = values();
        let data = values["data"].as_table_mut().unwrap();
        data.insert("splits".into(), toml::toml! { test = "val" }.into());
        let text = explained(&values, &[]);
        assert!(text.contains("\nsplits.test = \"val\"\n") && text.contains("\n#splits.train = "), "{text}");
    }

    #[test]
    fn a_setting_of_the_default_kind_may_be_changed_and_one_of_another_kind_is_prose() {
        let mut values = values();
        values["augment"].as_table_mut().unwrap().remove("crop_scale");
        let text = explained(&values, &[]);
        for part in [
            "\n#crop_scale = [0.4, 1.0]\n",
            "# crop_side (",
            "# batches_per_pair (whole number): class_pairs: ",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
