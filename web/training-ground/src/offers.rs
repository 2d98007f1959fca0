//! The losses that the training ground offers.

use akin_core::losses::{CATALOGUE, Family, LossConfig};
use serde::Serialize;
use serde_json::Value;

use crate::{Creatures, Run, Settings, Space};

/// A loss of the catalogue with its settings.
#[derive(Clone, Debug, Serialize)]
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
    pub settings: LossConfig,
}

/// The losses of the catalogue that can compare points of a space, with their settings there. Those of the catalogue,
/// except that HIER has fewer proxies, neighbours and triplets, as there are only some hundred creatures.
pub fn offers(creatures: &Creatures, space: Space) -> Vec<Offer> {
    let fits = |settings: &LossConfig| {
        let settings = Settings { space, loss: settings.clone(), ..Settings::default() };
        Run::new(creatures, &settings).is_ok()
    };
    CATALOGUE
        .iter()
        .filter(|entry| entry.complete)
        .filter_map(|entry| {
            let settings = smaller(LossConfig::named(entry.name).ok()?);
            let offer = Offer {
                name: entry.name,
                title: entry.title,
                family: entry.family,
                summary: entry.summary,
                settings,
            };
            fits(&offer.settings).then_some(offer)
        })
        .collect()
}

/// HIER's sizes for some hundred creatures.
const SIZES: [(&str, usize); 3] = [("proxies", 24), ("neighbours", 8), ("triplets", 10)];

/// The same settings, with [`SIZES`] wherever HIER is in them.
fn smaller(settings: LossConfig) -> LossConfig {
    fn visit(value: &mut Value) {
        if let Value::Object(table) = value {
            if table.get("kind").is_some_and(|kind| kind == "hier") {
                table.extend(SIZES.map(|(key, size)| (key.to_owned(), Value::from(size))));
            }
        }
        match value {
            Value::Object(table) => table.values_mut().for_each(visit),
            Value::Array(values) => values.iter_mut().for_each(visit),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::to_value(&settings) else { return settings };
    visit(&mut value);
    serde_json::from_value(value).unwrap_or(settings)
}
