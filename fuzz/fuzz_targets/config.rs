//! Configs: a TOML text, and after each byte 0 the text of a `--set`.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use native_trainer::config::Source;
use toml::Table;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut texts = text.split('\0').map(str::to_owned);
    let toml = texts.next().unwrap_or_default();
    let sets: Vec<String> = texts.collect();
    let Ok(source) = Source::from_text(Path::new("/configs/fruit.toml"), toml, None, &sets) else { return };
    let Ok(config) = source.config(&Table::new()) else { return };
    // What a run saves reads back as the same config.
    let saved = Source::from_text(Path::new("/runs/fruit/config.toml"), config.to_toml(), None, &[]);
    let again = saved.and_then(|saved| saved.config(&Table::new())).expect("a saved config is read again");
    assert_eq!(again, config);
});
