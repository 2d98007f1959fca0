//! The result of an evaluation: the scores of each query, and their means.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ByClass, CheckedEvaluation, DecomposabilityGap, EvaluationConfig, MeanHyperbolicity};
use crate::metrics::{Bounds, Metric, bounds};
use crate::ranking::{KnownLabels, Ranking};
use crate::statistics::{bootstrap_interval, mean};
use crate::threads::each_in_order;

/// A value per metric, in the order of the catalogue. In JSON it is an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores(Vec<(Metric, Option<f64>)>);

impl Scores {
    /// The value of a metric; `None` also when it was not measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == metric)?.1
    }

    /// The metrics with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, Option<f64>)> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<(Metric, Option<f64>)> for Scores {
    fn from_iter<I: IntoIterator<Item = (Metric, Option<f64>)>>(scores: I) -> Self {
        let mut scores: Vec<_> = scores.into_iter().collect();
        scores.sort_by_key(|&(metric, _)| metric);
        Self(scores)
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Scores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Scores;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metrics with their values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Scores, A::Error> {
                let mut scores = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    scores.push(entry);
                }
                Ok(scores.into_iter().collect())
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(feature = "typescript")]
impl ts_rs::TS for Scores {
    type WithoutGenerics = Self;
    type OptionInnerType = Self;

    fn name(config: &ts_rs::Config) -> String {
        BTreeMap::<String, Option<f64>>::name(config)
    }

    fn inline(config: &ts_rs::Config) -> String {
        BTreeMap::<String, Option<f64>>::inline(config)
    }

    fn inline_flattened(config: &ts_rs::Config) -> String {
        BTreeMap::<String, Option<f64>>::inline_flattened(config)
    }
}

/// The scores of one query. A score is `None` when the query has no positive to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryScores {
    /// The query's row in its set, from 0.
    pub query: usize,
    /// The finest level at which it has a positive; 0 without positives.
    pub closest: usize,
    /// The metrics over all levels.
    #[serde(flatten)]
    pub overall: Scores,
    /// The metrics per level, at levels 1 … L.
    pub levels: Vec<Scores>,
    /// What unknown labels leave open, over all levels and at levels 1 … L. Empty if every label is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
}

/// What unknown labels leave open of a query's scores at a level, or over all levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// Whether the query's own label is known there.
    pub known: bool,
    /// The items that are left out of its ranking, because their pair with the query is not decided.
    pub left_out: usize,
    /// The bounds of each metric over all ways to fill the unknown labels.
    pub bounds: BTreeMap<Metric, Bounds>,
}

impl QueryScores {
    /// Computes every metric of the config for one ranking.
    pub fn new(query: usize, ranking: &Ranking, checked: &CheckedEvaluation) -> Self {
        let scores = |level: usize| -> Scores {
            let metrics = checked.config().metrics.iter();
            let metrics = metrics.filter(|metric| metric.entry().per_level == (level > 0));
            metrics.map(|&metric| (metric, metric.value(ranking, checked.relevance(), level))).collect()
        };
        let depth = ranking.depth();
        let open = |known: &KnownLabels| -> Vec<Open> {
            (0..=depth).map(|level| Open::new(ranking, known, level, checked)).collect()
        };
        Self {
            query,
            closest: ranking.ideal_levels().next().unwrap_or(0),
            overall: scores(0),
            levels: (1..=depth).map(scores).collect(),
            open: ranking.known().map(open).unwrap_or_default(),
        }
    }

    /// The scores at a level, 1 … L, or over all levels for level 0.
    pub fn at(&self, level: usize) -> &Scores {
        if level == 0 { &self.overall } else { &self.levels[level - 1] }
    }
}

impl Open {
    fn new(ranking: &Ranking, known: &KnownLabels, level: usize, checked: &CheckedEvaluation) -> Self {
        let metrics = checked.config().metrics.iter().copied();
        let metrics = metrics.filter(|metric| metric.entry().per_level == (level > 0));
        let bounds =
            metrics.filter_map(|metric| Some((metric, bounds(metric, ranking, checked.relevance(), level)?)));
        Self {
            known: known.query >= if level == 0 { ranking.depth() } else { level },
            left_out: ranking.positives().iter().filter(|positive| !positive.is_decided(level)).count(),
            bounds: bounds.collect(),
        }
    }
}

/// Means over queries. A query without positives at a level is left out of that level's means. Each mean has the number
/// of its queries, and is `None` when there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Report {
    /// The settings of the evaluation.
    pub config: EvaluationConfig,
    /// The number of queries.
    pub queries: usize,
    /// The number of items that each query ranks.
    pub ranked: usize,
    /// Over all levels.
    pub overall: Means,
    /// At levels 1 … L.
    pub levels: Vec<LevelReport>,
    /// How much higher AP is in batches than over the whole set, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub decomposability_gap: Option<DecomposabilityGap>,
    /// How tree-like the distances of the ranked items are, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub hyperbolicity: Option<MeanHyperbolicity>,
    /// The scores by class at one level, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub by_class: Option<ByClass>,
    /// The scores of each query, in the order of the queries. May be left out of a stored report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub per_query: Vec<QueryScores>,
}

/// The mean of each metric over queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Means {
    /// The number of queries with a positive at this level or, for metrics over all levels, at any level, and with a known
    /// label there.
    pub queries: usize,
    /// The number of queries of each mean that has fewer. H-AP has fewer, for example, when the weights give all
    /// positives of a query the relevance 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub fewer: BTreeMap<Metric, usize>,
    /// The means.
    #[serde(flatten)]
    pub scores: Scores,
    /// The 95 % bootstrap intervals of the means, low and high, if they were drawn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub interval: BTreeMap<Metric, [f64; 2]>,
    /// What unknown labels leave open; `None` if every label is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub open: Option<OpenMeans>,
}

/// What unknown labels leave open of the means at a level, or over all levels. The means are then estimates, which assume
/// that labels are missing at random: see [`crate::unknown`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenMeans {
    /// The number of queries whose own label is unknown there. They are left out of the means.
    pub unknown_queries: usize,
    /// The number of pairs of a query and an item that are not decided. They are left out of the rankings.
    pub left_out: u64,
    /// The least and the greatest mean of each metric over all ways to fill the unknown labels.
    pub bounds: BTreeMap<Metric, [f64; 2]>,
}

impl OpenMeans {
    fn new(rows: &[QueryScores], level: usize, metrics: &[Metric]) -> Option<Self> {
        let open: Vec<&Open> = rows.iter().filter_map(|row| row.open.get(level)).collect();
        let bounds = |metric: &Metric| {
            let all: Vec<Bounds> = open.iter().filter_map(|open| open.bounds.get(metric).copied()).collect();
            let low = least_mean(all.iter().map(|bounds| (bounds.low, bounds.certain)))?;
            let high = least_mean(all.iter().map(|bounds| (-bounds.high, bounds.certain)))?;
            Some((*metric, [low, -high]))
        };
        (!open.is_empty()).then(|| Self {
            unknown_queries: open.iter().filter(|open| !open.known).count(),
            left_out: open.iter().map(|open| open.left_out as u64).sum(),
            bounds: metrics.iter().filter_map(bounds).collect(),
        })
    }
}

/// The least mean of the values that are certain with any number of the others; `None` without values.
fn least_mean(values: impl Iterator<Item = (f64, bool)>) -> Option<f64> {
    let (certain, mut others): (Vec<_>, Vec<_>) = values.partition(|(_, certain)| *certain);
    others.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut count) = (certain.iter().fold(0.0, |sum, (value, _)| sum + value), certain.len());
    for (value, _) in others {
        if count > 0 && value >= sum / count as f64 {
            break;
        }
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

impl Means {
    /// The mean of a metric; `None` also when it was not measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.scores.get(metric)
    }

    /// Means without intervals.
    pub(super) fn plain(queries: usize, scores: Scores) -> Self {
        Self { queries, fewer: BTreeMap::new(), scores, interval: BTreeMap::new(), open: None }
    }

    /// The means over rows of scores at a level, 1 … L, or over all levels for level 0.
    fn new(rows: &[QueryScores], level: usize, config: &EvaluationConfig) -> Self {
        let is_known = |row: &QueryScores| row.open.get(level).is_none_or(|open| open.known);
        let queries = rows.iter().filter(|row| row.closest >= level.max(1) && is_known(row)).count();
        let metrics: Vec<Metric> =
            config.metrics.iter().copied().filter(|metric| metric.entry().per_level == (level > 0)).collect();
        let open = OpenMeans::new(rows, level, &metrics);
        // A bootstrap takes a draw for each query and resample.
        let means = each_in_order(metrics, |metric| {
            let values: Vec<f64> = rows.iter().filter_map(|row| row.at(level).get(metric)).collect();
            let bounds = config.bootstrap.and_then(|bootstrap| bootstrap_interval(&values, bootstrap));
            (metric, values.len(), mean(&values), bounds)
        });
        let (mut fewer, mut interval) = (BTreeMap::new(), BTreeMap::new());
        for &(metric, count, _, bounds) in &means {
            if count < queries {
                fewer.insert(metric, count);
            }
            interval.extend(bounds.map(|bounds| (metric, bounds)));
        }
        let scores = means.into_iter().map(|(metric, _, mean, _)| (metric, mean)).collect();
        Self { queries, scores, fewer, interval, open }
    }
}

/// The means at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LevelReport {
    /// The level's name.
    pub name: String,
    /// The means of the metrics per level.
    #[serde(flatten)]
    pub means: Means,
}

impl Report {
    /// The report over rows of scores. The concatenated rows of several shards of one query set give the report of the
    /// whole set.
    pub fn new(
        levels: &[String],
        checked: &CheckedEvaluation,
        ranked: usize,
        rows: Vec<QueryScores>,
    ) -> Self {
        let config = checked.config();
        let level_report = |(level, name): (usize, &String)| LevelReport {
            name: name.clone(),
            means: Means::new(&rows, level, config),
        };
        Self {
            config: config.clone(),
            queries: rows.len(),
            ranked,
            overall: Means::new(&rows, 0, config),
            levels: (1..).zip(levels).map(level_report).collect(),
            decomposability_gap: None,
            hyperbolicity: None,
            by_class: None,
            per_query: rows,
        }
    }

    /// The means at a level, 1 … L, or over all levels for level 0.
    pub fn at(&self, level: usize) -> &Means {
        if level == 0 { &self.overall } else { &self.levels[level - 1].means }
    }
}
