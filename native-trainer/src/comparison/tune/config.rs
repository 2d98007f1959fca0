//! `[tune]`: the section of a config that `akin tune` reads.

use std::collections::BTreeMap;

use akin_core::metrics::Metric;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Value;

/// `[tune]`: what `akin tune` tries, and how it judges.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneConfig {
    /// The number of folds that the finest training classes are divided into, 2 … 100. Default 4.
    pub folds: usize,
    /// The number of settings to try, 1 … 10000, with the search `bayesian` at most 500. Each takes a training for each fold. Default 50.
    pub trials: usize,
    /// How the next settings are chosen. Default `bayesian`.
    pub search: Search,
    /// `bayesian`: the number of trials that cover the ranges evenly, before the search learns from scores.
    /// Default 10.
    pub first_trials: usize,
    /// The metric that settings are chosen by; a metric per level counts at the finest. With
    /// `run.evaluate_every_epochs` the best evaluation counts, else the one at the end. Default: the metric that the
    /// loss optimises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// How often the best settings are trained again on all folds, each time with another seed, to be evaluated on the
    /// evaluation splits, 0 … 1000. Default 10.
    pub reproductions: usize,
    /// The seed of the search. The trainings have seeds of their own: trials that of the config, reproductions those
    /// that follow. Default 0.
    pub seed: u64,
    /// The settings to search, by their keys in the config, which need quotes. For example
    /// `{ "optimizer.lr_head" = { min = 1e-5, max = 1e-2, scale = "log" } }`. At least one is needed.
    #[serde(deserialize_with = "tables")]
    pub ranges: BTreeMap<String, RangeConfig>,
}

/// Ranges that are tables. Serde would also take a list, with its items as min and max.
fn tables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, RangeConfig>, D::Error> {
    let ranges = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let range = |(key, range): (String, Value)| match range {
        Value::Table(table) => Ok((key, table.try_into().map_err(D::Error::custom)?)),
        _ => Err(D::Error::custom(format!(
            "the range of `{key}` is no table; write {{ min = …, max = … }} or {{ values = […] }}"
        ))),
    };
    ranges.into_iter().map(range).collect()
}

impl Default for TuneConfig {
    fn default() -> Self {
        Self {
            folds: 4,
            trials: 50,
            search: Search::default(),
            first_trials: 10,
            metric: None,
            reproductions: 10,
            seed: 0,
            ranges: BTreeMap::new(),
        }
    }
}

/// How the next settings are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// Bayesian optimisation: where a Gaussian process of the scores so far expects the greatest improvement.
    #[default]
    Bayesian,
    /// The points of a Sobol sequence, which cover the ranges evenly. No trial waits for another.
    Sobol,
}

/// `[tune.ranges]`: the values that a setting may have.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RangeConfig {
    /// The smallest value. If it and `max` are whole numbers, only whole numbers are tried.
    #[schemars(with = "Option<f64>")]
    pub min: Option<Value>,
    /// The largest value, above `min`.
    #[schemars(with = "Option<f64>")]
    pub max: Option<Value>,
    /// How values are spread over the range. Default `linear`.
    pub scale: Option<Scale>,
    /// Instead of `min` and `max`: the values. They have no order.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// How values are spread over a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly in their logarithms, as suits learning rates.
    Log,
}
