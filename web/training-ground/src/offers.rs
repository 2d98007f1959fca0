//! The losses that the training ground offers.

use akin_core::losses::{CATALOGUE, Family, LossConfig, LossEntry};
use serde::Serialize;
use serde_json::Value;

use crate::{Creatures, Run, Settings, Space};

/// A loss of the catalogue with its settings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Offer {
    /// Its name in the catalogue.
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// Its family.
    pub family: Family,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its settings, as the table of a config.
    #[cfg_attr(test, ts(as = "serde_json::Map<String, Value>"))]
    pub settings: Value,
}

/// The losses of the catalogue that can compare points of a space, with their settings there. Those of the catalogue,
/// except that HIER has fewer proxies, neighbours and triplets, as there are only some hundred creatures.
pub fn offers(creatures: &Creatures, space: Space) -> Vec<Offer> {
    let offer = |entry: &'static LossEntry| {
        let mut settings = serde_json::to_value(LossConfig::named(entry.name).ok()?).ok()?;
        make_smaller(&mut settings);
        let loss = serde_json::from_value(settings.clone()).ok()?;
        Run::new(creatures, &Settings { space, loss, ..Settings::default() }).ok()?;
        let LossEntry { name, title, family, summary, .. } = *entry;
        Some(Offer { name, title, family, summary, settings })
    };
    CATALOGUE.iter().filter(|entry| entry.complete).filter_map(offer).collect()
}

/// HIER's sizes for some hundred creatures.
const SIZES: [(&str, usize); 3] = [("proxies", 24), ("neighbours", 8), ("triplets", 10)];

/// Sets [`SIZES`] wherever HIER is in the settings.
fn make_smaller(settings: &mut Value) {
    match settings {
        Value::Object(table) => {
            if table.get("kind").is_some_and(|kind| kind == "hier") {
                table.extend(SIZES.map(|(key, size)| (key.to_owned(), Value::from(size))));
            }
            table.values_mut().for_each(make_smaller);
        }
        Value::Array(values) => values.iter_mut().for_each(make_smaller),
        _ => {}
    }
}
