//! `[compare]`: the section of a recipe that `akin compare` reads.

use std::collections::BTreeMap;

use akin_core::metrics::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// `[compare]`: what `akin compare` trains and prints.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompareConfig {
    /// The rows, in order: losses of `akin list losses`, or names of `[compare.loss]`. `all` stands for every loss
    /// that the list does not name. A loss of the same `kind` as `[loss]` keeps the settings there; the others start
    /// from their defaults. A loss that cannot use the recipe's head gets a head that it can use. Default: none;
    /// `--losses` then has to name them.
    pub losses: Vec<String>,
    /// The seeds that every row is trained with. Default 0, 1, 2.
    pub seeds: Vec<u64>,
    /// The metrics that get columns. AP gets one for every level; R@k is that of the finest level.
    /// Default: R@1, AP, H-AP, ASI, NDCG.
    pub columns: Vec<Metric>,
    /// The settings that every row tunes, one after another in this order; a row's own follow. Each value is tried
    /// with the best values of the settings before it. For example
    /// `[{ key = "optimizer.lr_head", values = [1e-4, 1e-3] }]`. Default: none.
    pub tune: Vec<TunedSetting>,
    /// Settings that every row is repeated with: each combination of their values is a group of the table. A figure shows
    /// each metric by each of them. For example `{ "loss.lambda" = [0.1, 0.3, 0.5] }`. Default: none.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub vary: BTreeMap<String, Vec<Value>>,
    /// tune: the share of the training classes that settings are chosen on. Default 0.25.
    pub validation_fraction: f64,
    /// Rows that are more than a loss with its defaults, by name.
    pub loss: BTreeMap<String, RowConfig>,
}

impl Default for CompareConfig {
    fn default() -> Self {
        Self {
            losses: Vec::new(),
            seeds: vec![0, 1, 2],
            columns: vec![
                Metric::named("recall@1"),
                Metric::named("ap"),
                Metric::named("h_ap"),
                Metric::named("asi"),
                Metric::named("ndcg"),
            ],
            tune: Vec::new(),
            vary: BTreeMap::new(),
            validation_fraction: 0.25,
            loss: BTreeMap::new(),
        }
    }
}

/// A setting to tune: an item of `tune`.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunedSetting {
    /// Its key in the config, such as `loss.temperature`. A row whose loss has no proxies skips
    /// `optimizer.lr_proxies`.
    pub key: String,
    /// The values to try. A value that is a table sets several keys at once.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// `[compare.loss.NAME]`: a row.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowConfig {
    /// The row's name in tables. Default: the title of the loss.
    pub label: Option<String>,
    /// The group that the row stands in. Default: `fine-grained`, `hierarchical`, `hyperbolic` or `hashing`, by
    /// the loss.
    pub group: Option<String>,
    /// The metric that the row is tuned and judged by. Default: the one that the loss optimises.
    pub optimises: Option<Metric>,
    /// The settings that the row tunes besides those of all rows. Default: none.
    pub tune: Vec<TunedSetting>,
    /// What the row changes in the sections loss, model, optimizer, schedule, eval and published.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub config: Table,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use akin_base::problem::parts;

    use super::*;
    use crate::config::Source;

    #[test]
    fn a_value_in_place_of_a_list_gets_brackets() {
        let refusal = |set: &str| {
            let source =
                Source::from_text(Path::new("x.toml"), String::new(), None, &[set.to_owned()]).unwrap();
            let (message, hint) = parts(&source.command::<CompareConfig>("compare").unwrap_err());
            (message, hint.unwrap())
        };
        let (message, hint) = refusal("compare.vary={'loss.lambda'=0.1}");
        assert!(message.ends_with("`compare.vary.loss.lambda` is 0.1, not a list"), "{message}");
        assert_eq!(hint, "put it in brackets: [0.1]");
        assert_eq!(refusal("compare.losses='happier'").1, "put it in brackets: [\"happier\"]");
        let (_, hint) = refusal("compare.vary={loss={surrogate={temperature=[0.1]}}}");
        assert!(hint.ends_with("write vary = { \"loss.surrogate.temperature\" = […] }"), "{hint}");
        // A list is right, and what is wrong elsewhere is named.
        let (message, _) = refusal("compare={vary={'loss.lambda'=[0.1]},sedes=[1]}");
        assert!(message.contains("unknown key `sedes` in [compare]"), "{message}");
    }
}
