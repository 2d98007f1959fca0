//! A metric by name: how configs, reports and tables write it, and what the catalogue says about it.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::CATALOGUE;
use crate::ranking::Ranking;
use crate::relevance::CheckedRelevance;
use crate::{Error, Kind};

/// A metric with its cut-off k, as configs, reports and the command line write it: `h_ap`, `ndcg@10`, `recall@1`.
///
/// It has either one value over all levels or one value per level; its [`MetricEntry`] says which. k is at least 1.
/// Metrics are ordered as in the [`CATALOGUE`].
///
/// ```
/// use akin_core::metrics::Metric;
///
/// let metric: Metric = "recall@10".parse()?;
/// assert_eq!((metric.to_string(), metric.label()), ("recall@10".into(), "R@10".into()));
/// assert!(metric.entry().per_level);
/// assert!("recal@10".parse::<Metric>().unwrap_err().hint().contains("recall@k"));
/// # akin_core::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(as = "String"))]
pub struct Metric {
    /// The index of its entry in [`CATALOGUE`].
    index: usize,
    cutoff: Option<NonZeroUsize>,
}

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A share, from 0 to 1.
    Share,
    /// A number of levels, from 0 to L.
    Levels,
}

impl fmt::Display for Unit {
    /// The range.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Share => "0 … 1",
            Self::Levels => "0 … L",
        })
    }
}

/// What the catalogue says about a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    /// Its name in a config, before any `@k`.
    pub name: &'static str,
    /// Its name in a table, before any `@k`.
    pub symbol: &'static str,
    /// Its name in the literature.
    pub title: &'static str,
    /// Its formula in one line; the page of its function defines the symbols.
    pub formula: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether a greater value is better.
    pub greater_is_better: bool,
    /// Whether it has a value per level, or one over all levels.
    pub per_level: bool,
    /// A key of [`crate::sources`].
    pub source: &'static str,
    /// Computes it, with the cut-off that it takes.
    pub(super) compute: Compute,
}

/// Computes a metric. `None` where the ranking has no positive to measure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compute {
    /// A metric of the whole list, without a cut-off.
    WholeList(fn(&Input) -> Option<f64>),
    /// A metric of the first k items.
    FirstK(fn(&Input, usize) -> Option<f64>),
    /// A metric of the whole list or, with a k, of the first k items.
    Either(fn(&Input, Option<usize>) -> Option<f64>),
}

/// What a metric is computed from.
pub(super) struct Input<'a> {
    pub(super) ranking: &'a Ranking,
    /// Used by the metrics that weigh levels.
    pub(super) relevance: &'a CheckedRelevance,
    /// 1 … L. Used by the metrics per level.
    pub(super) level: usize,
}

impl MetricEntry {
    /// The name with the cut-off that it needs or can take: `recall@k`, `ndcg[@k]`.
    pub fn spelling(&self) -> String {
        match self.compute {
            Compute::WholeList(_) => self.name.into(),
            Compute::FirstK(_) => format!("{}@k", self.name),
            Compute::Either(_) => format!("{}[@k]", self.name),
        }
    }

    const fn accepts(&self, cutoff: Option<NonZeroUsize>) -> bool {
        match self.compute {
            Compute::WholeList(_) => cutoff.is_none(),
            Compute::FirstK(_) => cutoff.is_some(),
            Compute::Either(_) => true,
        }
    }
}

impl Metric {
    /// The metric that is written like this, for names that are known when the program is written. In a `const` a wrong
    /// name is a compile error. User input is read with `parse`.
    ///
    /// # Panics
    ///
    /// When there is no such metric.
    pub const fn named(text: &str) -> Self {
        match Self::read(text) {
            Some(metric) => metric,
            None => panic!("there is no such metric"),
        }
    }

    /// What the catalogue says about the metric.
    pub fn entry(self) -> &'static MetricEntry {
        &CATALOGUE[self.index]
    }

    /// k, where the metric has one.
    pub fn cutoff(self) -> Option<usize> {
        self.cutoff.map(NonZeroUsize::get)
    }

    /// Its name in a table: `R@10`.
    pub fn label(self) -> String {
        let symbol = self.entry().symbol;
        match self.cutoff {
            Some(k) => format!("{symbol}@{k}"),
            None => symbol.into(),
        }
    }

    /// Its value for one ranking; `None` where the ranking has no positive to measure. A metric per level is measured
    /// at `level`, 1 … L; the others ignore it.
    ///
    /// # Panics
    ///
    /// When the relevance was checked for another number of levels than the ranking has.
    pub fn value(self, ranking: &Ranking, relevance: &CheckedRelevance, level: usize) -> Option<f64> {
        let input = Input { ranking, relevance, level };
        match (self.entry().compute, self.cutoff()) {
            (Compute::WholeList(value), _) => value(&input),
            (Compute::FirstK(value), k) => {
                value(&input, k.expect("`read` refuses this metric without a cut-off"))
            }
            (Compute::Either(value), k) => value(&input, k),
        }
    }

    const fn read(text: &str) -> Option<Self> {
        let mut at = 0;
        while at < text.len() && text.as_bytes()[at] != b'@' {
            at += 1;
        }
        let (name, rest) = text.split_at(at);
        let cutoff = if rest.is_empty() {
            None
        } else {
            match usize::from_str_radix(rest.split_at(1).1, 10) {
                Ok(0) | Err(_) => return None,
                Ok(k) => NonZeroUsize::new(k),
            }
        };
        let mut index = 0;
        while index < CATALOGUE.len() {
            if same(CATALOGUE[index].name, name) {
                return if CATALOGUE[index].accepts(cutoff) { Some(Self { index, cutoff }) } else { None };
            }
            index += 1;
        }
        None
    }
}

/// Whether two strings are equal; `==` is not available in a `const fn`.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)?;
        match self.cutoff {
            Some(k) => write!(f, "@{k}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| {
            let name = text.split('@').next().unwrap_or_default();
            match CATALOGUE.iter().find(|entry| entry.name == name) {
                None => Error::new(
                    Kind::Config,
                    format!("unknown metric `{text}`"),
                    format!("did you mean {}?", nearest(name).join(", ")),
                ),
                Some(entry) => Error::new(
                    Kind::Config,
                    format!(
                        "`{text}` does not name a metric: {}",
                        match entry.compute {
                            Compute::WholeList(_) => "it takes no cut-off",
                            _ if !text.contains('@') => "it needs a cut-off",
                            _ => "its cut-off must be a whole number of at least 1",
                        }
                    ),
                    format!("write {}", entry.spelling()),
                ),
            }
        })
    }
}

/// The spellings of the three metrics with the most similar names.
fn nearest(name: &str) -> Vec<String> {
    let mut entries: Vec<&MetricEntry> = CATALOGUE.iter().collect();
    entries.sort_by_key(|entry| strsim::levenshtein(entry.name, name));
    entries.into_iter().take(3).map(MetricEntry::spelling).collect()
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Metric {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "The name of a metric with its cut-off, for example `recall@1`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::source;

    /// Every metric, with and without a cut-off.
    fn every_metric() -> impl Iterator<Item = Metric> {
        let cutoffs = [None, NonZeroUsize::new(10)];
        CATALOGUE.iter().enumerate().flat_map(move |(index, entry)| {
            let accepted = cutoffs.into_iter().filter(|&cutoff| entry.accepts(cutoff));
            accepted.map(move |cutoff| Metric { index, cutoff })
        })
    }

    #[test]
    fn every_metric_is_read_as_it_is_written() {
        for metric in every_metric() {
            assert_eq!(metric.to_string().parse(), Ok(metric));
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(serde_json::from_str::<Metric>(&json).unwrap(), metric);
        }
        for (index, entry) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
        }
    }

    #[test]
    fn every_source_is_among_the_references() {
        for entry in CATALOGUE {
            assert!(source(entry.source).is_some(), "{}", entry.source);
        }
    }

    #[test]
    fn an_unknown_metric_is_refused_with_the_nearest_names() {
        let hint = |text: &str| text.parse::<Metric>().unwrap_err().hint().to_owned();
        assert!(hint("hap").contains("h_ap"));
        assert!(hint("recal@5").contains("recall@k"));
        assert!(hint("ndgc").contains("ndcg[@k]"));
        for text in ["recall", "recall@0", "recall@", "recall@x", "recall@1@2"] {
            assert!(hint(text).contains("write recall@k"), "{text}");
        }
        assert!(hint("h_ap@3").contains("write h_ap"));
        let error = "h_ap@3".parse::<Metric>().unwrap_err();
        assert_eq!(error.message(), "`h_ap@3` does not name a metric: it takes no cut-off");
    }
}
