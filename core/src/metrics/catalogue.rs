//! The registry: every metric that a config can name, with what it is and where it comes from.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    ClassSimilarity, Gain, asi, average_hierarchical_precision, average_precision, average_precision_at,
    h_precision, h_recall, hierarchical_ap, hierarchical_precision, mahp, map_at_r, mistake_severity, ndcg,
    precision, r_precision, recall, reciprocal_rank, weighted_ap,
};
use crate::ranking::Ranking;
use crate::relevance::Relevance;
use crate::{Error, Kind};

/// A metric, as configs, reports and the command line write it: `h_ap`, `ndcg@10`, `recall@1`.
///
/// It is either over all levels or per level, which its [`MetricEntry`] says. A cut-off k is at least 1.
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
#[non_exhaustive]
pub enum Metric {
    /// `h_ap`: [`hierarchical_ap`].
    HAp,
    /// `weighted_ap`: [`weighted_ap`].
    WeightedAp,
    /// `h_precision@k`: [`h_precision`].
    HPrecision(NonZeroUsize),
    /// `h_recall@k`: [`h_recall`].
    HRecall(NonZeroUsize),
    /// `ndcg`, `ndcg@k`: [`ndcg`] with [`Gain::Exponential`].
    Ndcg(Option<NonZeroUsize>),
    /// `ndcg_linear`, `ndcg_linear@k`: [`ndcg`] with [`Gain::Linear`].
    NdcgLinear(Option<NonZeroUsize>),
    /// `asi`: [`asi`].
    Asi,
    /// `hierarchical_precision@k`: [`hierarchical_precision`] with [`ClassSimilarity::LcaHeight`].
    HierarchicalPrecision(NonZeroUsize),
    /// `wu_palmer_precision@k`: [`hierarchical_precision`] with [`ClassSimilarity::WuPalmer`].
    WuPalmerPrecision(NonZeroUsize),
    /// `ahp@k`: [`average_hierarchical_precision`] with [`ClassSimilarity::LcaHeight`].
    Ahp(NonZeroUsize),
    /// `wu_palmer_ahp@k`: [`average_hierarchical_precision`] with [`ClassSimilarity::WuPalmer`].
    WuPalmerAhp(NonZeroUsize),
    /// `mahp@k`: [`mahp`].
    Mahp(NonZeroUsize),
    /// `mistake_severity`: [`mistake_severity`].
    MistakeSeverity,
    /// `ap`, `ap@k`: [`average_precision`], [`average_precision_at`].
    Ap(Option<NonZeroUsize>),
    /// `map_at_r`: [`map_at_r`].
    MapAtR,
    /// `recall@k`: [`recall`].
    Recall(NonZeroUsize),
    /// `precision@k`: [`precision`].
    Precision(NonZeroUsize),
    /// `r_precision`: [`r_precision`].
    RPrecision,
    /// `mrr`: [`reciprocal_rank`].
    Mrr,
}

/// What a metric's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What the registry says of a metric, whatever its k.
#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    /// How configs write it, before any `@k`.
    pub name: &'static str,
    /// How tables head it, before any `@k`.
    pub symbol: &'static str,
    /// What the field calls it.
    pub title: &'static str,
    /// Its formula in a line; its function's page declares the symbols.
    pub formula: &'static str,
    /// What its numbers are.
    pub unit: Unit,
    /// Whether more is better.
    pub greater_is_better: bool,
    /// Whether each level has its own, or one is over all levels.
    pub per_level: bool,
    /// The key of its source among [`crate::sources`].
    pub source: &'static str,
    /// The metric with this cut-off, or without one; `None` where it takes none, or needs one.
    metric: fn(Option<NonZeroUsize>) -> Option<Metric>,
}

impl MetricEntry {
    /// The name with the cut-off that it needs or can take: `recall@k`, `ndcg[@k]`.
    pub fn spelling(&self) -> String {
        match ((self.metric)(None), (self.metric)(Some(NonZeroUsize::MIN))) {
            (Some(_), Some(_)) => format!("{}[@k]", self.name),
            (None, Some(_)) => format!("{}@k", self.name),
            _ => self.name.into(),
        }
    }
}

/// A share, of which more is better.
const fn share(
    name: &'static str,
    symbol: &'static str,
    title: &'static str,
    formula: &'static str,
    source: &'static str,
    metric: fn(Option<NonZeroUsize>) -> Option<Metric>,
) -> MetricEntry {
    let (unit, greater_is_better, per_level) = (Unit::Share, true, false);
    MetricEntry { name, symbol, title, formula, unit, greater_is_better, per_level, source, metric }
}

/// The same at each level.
const fn share_per_level(
    name: &'static str,
    symbol: &'static str,
    title: &'static str,
    formula: &'static str,
    source: &'static str,
    metric: fn(Option<NonZeroUsize>) -> Option<Metric>,
) -> MetricEntry {
    MetricEntry { per_level: true, ..share(name, symbol, title, formula, source, metric) }
}

/// Every metric there is.
pub const CATALOGUE: &[MetricEntry] = &[
    share(
        "h_ap",
        "H-AP",
        "hierarchical average precision",
        "Σ_i H-rank(i) / rank(i) / Σ_i rel(i)",
        "ramzi2022",
        |k| k.is_none().then_some(Metric::HAp),
    ),
    share(
        "weighted_ap",
        "Σ wAP",
        "weighted sum of the AP of every level; weights from a `weighted_ap` relevance, else equal",
        "Σ_l w_l AP(l) / Σ_l w_l",
        "ramzi2022",
        |k| k.is_none().then_some(Metric::WeightedAp),
    ),
    share(
        "h_precision",
        "H-P",
        "hierarchical precision at rank k of the H-AP curve",
        "Σ_{rank(i) ≤ k} min(rel(i), rel_k) / (k rel_k)",
        "ramzi2022",
        |k| k.map(Metric::HPrecision),
    ),
    share(
        "h_recall",
        "H-R",
        "hierarchical recall at rank k of the H-AP curve",
        "Σ_{rank(i) ≤ k} rel(i) / Σ_i rel(i)",
        "ramzi2022",
        |k| k.map(Metric::HRecall),
    ),
    share(
        "ndcg",
        "NDCG",
        "normalised discounted cumulative gain, exponential gain",
        "Σ_i (2^l(i) − 1) / log2(1 + rank(i)) / ideal",
        "burges2005",
        |k| Some(Metric::Ndcg(k)),
    ),
    share(
        "ndcg_linear",
        "NDCG linear",
        "normalised discounted cumulative gain, linear gain",
        "Σ_i l(i) / log2(1 + rank(i)) / ideal",
        "jarvelin2002",
        |k| Some(Metric::NdcgLinear(k)),
    ),
    share(
        "asi",
        "ASI",
        "average set intersection with the ideal list",
        "1/P Σ_{n ≤ P} 1/n Σ_{l ≥ 1} min(n_l, ideal n_l)",
        "sun2021",
        |k| k.is_none().then_some(Metric::Asi),
    ),
    share(
        "hierarchical_precision",
        "HP",
        "hierarchical precision, similarity by the height of the lowest common ancestor",
        "Σ_{rank(i) ≤ k} l(i)/L / ideal",
        "deng2011",
        |k| k.map(Metric::HierarchicalPrecision),
    ),
    share(
        "wu_palmer_precision",
        "HP Wu-Palmer",
        "hierarchical precision, Wu-Palmer similarity",
        "Σ_{rank(i) ≤ k} (l(i) + 1)/(L + 1) / ideal",
        "deng2011",
        |k| k.map(Metric::WuPalmerPrecision),
    ),
    share(
        "ahp",
        "AHP",
        "area under hierarchical precision by the trapezoidal rule, at most (k − 1)/k",
        "1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)",
        "barz2019",
        |k| k.map(Metric::Ahp),
    ),
    share(
        "wu_palmer_ahp",
        "AHP Wu-Palmer",
        "the same with Wu-Palmer similarity",
        "1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)",
        "barz2019",
        |k| k.map(Metric::WuPalmerAhp),
    ),
    share(
        "mahp",
        "mAHP",
        "mean of hierarchical precision over the first k ranks",
        "1/k Σ_{n ≤ k} HP@n",
        "zhang2019",
        |k| k.map(Metric::Mahp),
    ),
    MetricEntry {
        unit: Unit::Levels,
        greater_is_better: false,
        ..share(
            "mistake_severity",
            "severity",
            "height of the lowest common ancestor of the query and the first wrong item",
            "L − l(first wrong item)",
            "bertinetto2020",
            |k| k.is_none().then_some(Metric::MistakeSeverity),
        )
    },
    share_per_level(
        "ap",
        "AP",
        "average precision; with a k that of the first k items",
        "1/R Σ_i rank⁺(i) / rank(i)",
        "manning2008",
        |k| Some(Metric::Ap(k)),
    ),
    share_per_level(
        "map_at_r",
        "mAP@R",
        "average precision of the first R items",
        "1/R Σ_{rank(i) ≤ R} rank⁺(i) / rank(i)",
        "musgrave2020",
        |k| k.is_none().then_some(Metric::MapAtR),
    ),
    share_per_level(
        "recall",
        "R",
        "recall at k: is there a positive among the first k items?",
        "1 if the first positive's rank ≤ k, else 0",
        "jegou2011",
        |k| k.map(Metric::Recall),
    ),
    share_per_level(
        "precision",
        "P",
        "precision at k",
        "|positives of rank ≤ k| / k",
        "manning2008",
        |k| k.map(Metric::Precision),
    ),
    share_per_level(
        "r_precision",
        "R-precision",
        "precision at R, the number of positives",
        "|positives of rank ≤ R| / R",
        "manning2008",
        |k| k.is_none().then_some(Metric::RPrecision),
    ),
    share_per_level(
        "mrr",
        "MRR",
        "mean reciprocal rank",
        "1 / rank of the first positive",
        "voorhees1999",
        |k| k.is_none().then_some(Metric::Mrr),
    ),
];

impl Metric {
    /// What the registry says of it.
    pub fn entry(self) -> &'static MetricEntry {
        let (name, _) = self.name_and_cutoff();
        CATALOGUE
            .iter()
            .find(|entry| entry.name == name)
            .expect("a test looks for every name in the catalogue")
    }

    /// How tables head it: `R@10`.
    pub fn label(self) -> String {
        let symbol = self.entry().symbol;
        match self.name_and_cutoff() {
            (_, Some(k)) => format!("{symbol}@{k}"),
            _ => symbol.into(),
        }
    }

    /// Its value for one ranking; `None` where the ranking gives it nothing to measure. Only a metric per level looks
    /// at `level`, 1 … L, and only one that weighs levels at `relevance`.
    pub fn value(self, ranking: &Ranking, relevance: &Relevance, level: usize) -> Option<f64> {
        use ClassSimilarity::{LcaHeight, WuPalmer};
        let whole = |k: Option<NonZeroUsize>| k.map(NonZeroUsize::get);
        match self {
            Self::HAp => hierarchical_ap(ranking, relevance),
            Self::WeightedAp => match relevance {
                Relevance::WeightedAp { weights } => weighted_ap(ranking, weights),
                _ => weighted_ap(ranking, &vec![1.0; ranking.depth()]),
            },
            Self::HPrecision(k) => h_precision(ranking, relevance, k.get()),
            Self::HRecall(k) => h_recall(ranking, relevance, k.get()),
            Self::Ndcg(k) => ndcg(ranking, Gain::Exponential, whole(k)),
            Self::NdcgLinear(k) => ndcg(ranking, Gain::Linear, whole(k)),
            Self::Asi => asi(ranking),
            Self::HierarchicalPrecision(k) => hierarchical_precision(ranking, LcaHeight, k.get()),
            Self::WuPalmerPrecision(k) => hierarchical_precision(ranking, WuPalmer, k.get()),
            Self::Ahp(k) => average_hierarchical_precision(ranking, LcaHeight, k.get()),
            Self::WuPalmerAhp(k) => average_hierarchical_precision(ranking, WuPalmer, k.get()),
            Self::Mahp(k) => mahp(ranking, k.get()),
            Self::MistakeSeverity => mistake_severity(ranking),
            Self::Ap(None) => average_precision(ranking, level),
            Self::Ap(Some(k)) => average_precision_at(ranking, level, k.get()),
            Self::MapAtR => map_at_r(ranking, level),
            Self::Recall(k) => recall(ranking, level, k.get()),
            Self::Precision(k) => precision(ranking, level, k.get()),
            Self::RPrecision => r_precision(ranking, level),
            Self::Mrr => reciprocal_rank(ranking, level),
        }
    }

    fn name_and_cutoff(self) -> (&'static str, Option<NonZeroUsize>) {
        match self {
            Self::HAp => ("h_ap", None),
            Self::WeightedAp => ("weighted_ap", None),
            Self::HPrecision(k) => ("h_precision", Some(k)),
            Self::HRecall(k) => ("h_recall", Some(k)),
            Self::Ndcg(k) => ("ndcg", k),
            Self::NdcgLinear(k) => ("ndcg_linear", k),
            Self::Asi => ("asi", None),
            Self::HierarchicalPrecision(k) => ("hierarchical_precision", Some(k)),
            Self::WuPalmerPrecision(k) => ("wu_palmer_precision", Some(k)),
            Self::Ahp(k) => ("ahp", Some(k)),
            Self::WuPalmerAhp(k) => ("wu_palmer_ahp", Some(k)),
            Self::Mahp(k) => ("mahp", Some(k)),
            Self::MistakeSeverity => ("mistake_severity", None),
            Self::Ap(k) => ("ap", k),
            Self::MapAtR => ("map_at_r", None),
            Self::Recall(k) => ("recall", Some(k)),
            Self::Precision(k) => ("precision", Some(k)),
            Self::RPrecision => ("r_precision", None),
            Self::Mrr => ("mrr", None),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name_and_cutoff() {
            (name, Some(k)) => write!(f, "{name}@{k}"),
            (name, None) => f.write_str(name),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, k) = match text.split_once('@') {
            Some((name, k)) => (name, Some(k)),
            None => (text, None),
        };
        let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
            return Err(Error::new(
                Kind::Config,
                format!("there is no metric `{text}`"),
                format!("the nearest are {}", nearest(name).join(", ")),
            ));
        };
        let k: Option<Option<NonZeroUsize>> = match k {
            Some(k) => k.parse().ok().map(Some),
            None => Some(None),
        };
        k.and_then(entry.metric).ok_or_else(|| {
            Error::new(
                Kind::Config,
                format!("`{text}` is not how the metric {} is written", entry.title),
                format!("write {}, with a whole number k of at least 1", entry.spelling()),
            )
        })
    }
}

/// How the three metrics are written whose names are most like this one.
fn nearest(name: &str) -> Vec<String> {
    let mut entries: Vec<&MetricEntry> = CATALOGUE.iter().collect();
    entries.sort_by_key(|entry| edits(entry.name, name));
    entries.into_iter().take(3).map(MetricEntry::spelling).collect()
}

/// Levenshtein's distance: how many letters have to be put in, taken out or changed.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
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
    fn every() -> impl Iterator<Item = Metric> {
        let cutoffs = [None, NonZeroUsize::new(10)];
        CATALOGUE.iter().flat_map(move |entry| cutoffs.into_iter().filter_map(entry.metric))
    }

    #[test]
    fn every_metric_is_read_as_it_is_written() {
        for metric in every() {
            assert_eq!(metric.to_string().parse(), Ok(metric));
            assert_eq!(metric.name_and_cutoff().0, metric.entry().name);
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(serde_json::from_str::<Metric>(&json).unwrap(), metric);
        }
        for (place, entry) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..place].iter().all(|other| other.name != entry.name), "{}", entry.name);
        }
    }

    #[test]
    fn every_source_is_among_the_references() {
        for entry in CATALOGUE {
            assert!(source(entry.source).is_some(), "{}", entry.source);
        }
    }

    #[test]
    fn what_is_no_metric_is_refused_with_the_nearest() {
        let hint = |text: &str| text.parse::<Metric>().unwrap_err().hint().to_owned();
        assert!(hint("hap").contains("h_ap"));
        assert!(hint("recal@5").contains("recall@k"));
        assert!(hint("ndgc").contains("ndcg[@k]"));
        for text in ["recall", "recall@0", "recall@", "recall@x", "recall@1@2"] {
            assert!(hint(text).contains("write recall@k"), "{text}");
        }
        assert!(hint("h_ap@3").contains("write h_ap"));
    }
}
