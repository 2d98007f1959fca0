//! `CONFIG.md`: every setting, written from the types of the config.
//!
//! `AKIN_UPDATE=1 cargo test --workspace --lib config_md` rewrites the page. Without the variable the test fails
//! if the page and the types differ.

use std::fmt::Write as _;
use std::{env, fs};

use akin_core::losses::{self, LossConfig};
use akin_core::miners::{self, Miner};
use serde_json::Value;

use crate::comparison::compare::config::CompareConfig;
use crate::comparison::tune::config::TuneConfig;
use crate::config::Config;
use crate::config::explained::SECTIONS;
use crate::config::reference::{SettingRow, inline, loss_settings, settings_of, settings_of_kind};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/CONFIG.md");

/// The sections in the order of the page.
fn sections() -> impl Iterator<Item = &'static str> {
    SECTIONS.into_iter().chain(["published"])
}

const INTRODUCTION: &str = "\
# Every setting

A config is one TOML file that says everything about a run: `akin train CONFIG` trains it.
`--set SECTION.KEY=VALUE` changes one setting on the command line.

```toml
[run]
epochs = 20

[data]
kind = \"folder\"
path = \"photos\"
levels = [\"group\", \"family\", \"species\"]

[model]
backbone = { kind = \"small_resnet\" }
head = { dimension = 128 }

[loss]
kind = \"happier\"
```

A relative path starts at the folder of the config file; in `--set` and in a built-in recipe it starts at the current \
directory.
A path may contain environment variables, written `${NAME}`.
The keys beside a `kind` belong to that kind: a table that gets another `kind` starts without the keys of the old one.
The meaning of such a key begins with the kinds that have it, unless all have it.

Each table below lists the keys of a section.
A dotted key such as `head.dimension` is the key `dimension` of the table `head`; `terms[].weight` is the key `weight` \
of each table in the list `terms`.

This page is generated from the program's types. After a change of them, \
`AKIN_UPDATE=1 cargo test --workspace --lib config_md` writes it.
";

fn page() -> String {
    let rows = settings_of::<Config>();
    let mut page = INTRODUCTION.to_owned();
    for section in sections() {
        let below = format!("{section}.");
        let own = rows.iter().find(|row| row.key == section).expect("each section is a field of the config");
        let inside = rows.iter().filter_map(|row| {
            Some(SettingRow { key: row.key.strip_prefix(&below)?.to_owned(), ..row.clone() })
        });
        let inside: Vec<SettingRow> = inside.collect();
        let needed = if own.default == "required" { "Required." } else { "Optional." };
        write!(page, "\n## [{section}]\n\n{} {needed}\n", own.meaning).unwrap();
        page += &table(&inside);
        if section == "loss" {
            page += &losses();
            page += &miners();
        }
    }
    page += "\n## [compare]\n\nWhat `akin compare` trains and shows. Other commands ignore the section. Optional.\n";
    page += &table(&settings_of::<CompareConfig>());
    page += "\n## [tune]\n\nWhat `akin tune` tries, and how it judges. Other commands ignore the section. Optional.\n";
    page + &table(&settings_of::<TuneConfig>())
}

fn losses() -> String {
    let mut text =
        "\nThe keys beside `kind` are those of the loss. A preset is a loss with other defaults; its keys \
                    are those of that loss.\n"
            .to_owned();
    let mut family = None;
    for entry in losses::CATALOGUE.iter() {
        if family.replace(entry.family) != Some(entry.family) {
            let name = serde_json::to_value(entry.family).expect("a family has a name");
            write!(text, "\n### Losses: {}\n", name.as_str().unwrap_or_default().replace('_', " ")).unwrap();
        }
        let spaces: Vec<&str> = entry.spaces.iter().map(|space| space.name()).collect();
        write!(
            text,
            "\n#### `{}`\n\n{}: {}. Optimises `{}`; compares {} embeddings.\n",
            entry.name,
            entry.title,
            entry.summary,
            entry.optimises,
            spaces.join(", ")
        )
        .unwrap();
        match entry.preset.map(serde_json::from_str::<Value>) {
            Some(preset) => {
                let preset = preset.expect("a preset is JSON");
                write!(text, "\nPreset: `{}`\n", inline(&preset)).unwrap();
            }
            None => text += &table(&loss_settings(entry.name).expect("the name is from the catalogue")),
        }
    }
    text
}

fn miners() -> String {
    let mut text = "\n### Miners\n\nA miner chooses the pairs or triplets that a loss looks at, for example \
                    `miner = { kind = \"batch_hard_miner\" }`.\n"
        .to_owned();
    for entry in miners::CATALOGUE {
        write!(text, "\n#### `{}`\n\n{}: {}.\n", entry.name, entry.title, entry.summary).unwrap();
        text += &table(&settings_of_kind::<Miner>(entry.name, None));
    }
    text
}

/// A Markdown table; nothing without rows.
fn table(rows: &[SettingRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let mut text = "\n| key | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let SettingRow { key, value, default, .. } = row;
        writeln!(text, "| `{key}` | {} | {} | {} |", cell(value), cell(default), cell(&row.text())).unwrap();
    }
    text
}

#[test]
fn config_md_says_what_the_types_say() {
    let page = page();
    if env::var_os("AKIN_UPDATE").is_some() {
        fs::write(FILE, &page).unwrap();
    }
    let file = fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        file == page,
        "CONFIG.md differs from the types; run `AKIN_UPDATE=1 cargo test --workspace --lib config_md`"
    );
}

#[test]
fn no_path_of_rust_is_left_in_config_md() {
    let paths: Vec<String> = page().lines().filter(|line| line.contains("::")).map(str::to_owned).collect();
    assert!(paths.is_empty(), "{paths:#?}");
}

#[test]
fn every_section_of_the_config_is_in_config_md() {
    for row in settings_of::<Config>() {
        let section = row.key.split('.').next().unwrap_or_default();
        assert!(sections().any(|known| known == section), "[{section}] has no place on the page");
    }
}

#[test]
fn a_default_in_a_doc_comment_is_that_of_the_type() {
    let losses = losses::CATALOGUE.iter().filter(|entry| entry.preset.is_none());
    let miners = miners::CATALOGUE.iter().flat_map(|entry| settings_of_kind::<Miner>(entry.name, None));
    let rows = settings_of::<Config>().into_iter().chain(settings_of::<CompareConfig>()).chain(miners);
    let rows = rows.chain(settings_of::<TuneConfig>());
    let rows = rows.chain(losses.flat_map(|entry| settings_of_kind::<LossConfig>(entry.name, None)));
    for row in rows {
        // The sentence stays in the meaning where it is not simply the value of the type.
        let Some((_, sentence)) = row.meaning.split_once("Default: ") else { continue };
        let word = sentence.split([' ', ',', ';']).next().unwrap_or_default();
        if let Ok(told) = word.trim_end_matches('.').parse::<f64>() {
            let value = row.default.trim_matches('`').parse::<f64>().ok();
            assert_eq!(Some(told), value, "{}: {}", row.key, row.meaning);
        }
    }
}

#[test]
fn the_config_on_the_page_needs_no_other_setting() {
    let (_, example) = INTRODUCTION.split_once("```toml\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.toml");
    fs::write(&file, example.split_once("```").unwrap().0).unwrap();
    Config::load(&file, &[]).unwrap();
}
