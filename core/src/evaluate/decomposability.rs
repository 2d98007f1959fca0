//! The decomposability gap: how much better AP looks inside batches than over the whole set.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::rankings::{PointSet, Search};
use super::{EvaluationConfig, Execution, Labelled, Places, Step, check_shapes};
use crate::embeddings::{Embeddings, Rows};
use crate::metrics::average_precision;
use crate::random::stream;
use crate::statistics::{bootstrap_interval, mean};
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// How the [decomposability gap](decomposability_gap) is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Decomposability {
    /// B, the number of items in a batch; at least 2.
    pub batch: usize,
    /// Seed of the batches. Default: 0.
    #[serde(default)]
    pub seed: u64,
}

/// The gap at each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecomposabilityGap {
    /// B, the number of items in a batch.
    pub batch: usize,
    /// K, the number of batches.
    pub batches: usize,
    /// The mean of DG_AP over queries at levels 1 … L; `None` where no query has a positive.
    pub levels: Vec<Option<f64>>,
    /// 95 % bootstrap intervals of these means, low and high, if they were drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interval: Vec<Option<[f64; 2]>>,
}

/// The decomposability gap of AP (ROADMAP, eq. 6), averaged over queries:
///
/// ```text
/// DG_AP(i) = 1/K · Σ_{b = 1 … K} AP_i^b − AP_i
/// ```
///
/// AP_i is the AP of query i over the whole set, AP_i^b its AP over the items of batch b, whether or not it belongs to
/// that batch. Every item is a query and never ranks itself. A batch without a positive of the query has no AP_i^b and
/// is left out of that query's mean. A query without a positive in the whole set is left out.
///
/// The set is dealt into K = ⌊N / B⌋ batches at random. They are balanced, as in the paper's proofs: the sizes of two
/// batches differ by at most one item, and so do, at every level, their numbers of items of any class. If B does not
/// divide N, the remaining items are dealt too, so that batches have more than B items, but fewer than 2B.
///
/// In (−1, 1), and mostly above 0, since few of the items that a query confuses are in any one batch. It is 0 if one
/// threshold separates the scores of all positive pairs from those of all negative pairs.
/// [`gap_bound`](super::gap_bound) bounds the gap of one query.
///
/// With [`EvaluationConfig::bootstrap`] each mean has an interval over queries; the batches stay the same.
///
/// Takes twice the time of [`evaluate`](super::evaluate), O(N² · d), and O(N · L) memory in addition to its blocks of
/// scores.
///
/// # Errors
///
/// [`Kind::Config`] for batches of fewer than 2 items or of more items than the set has; [`Kind::Taxonomy`] for unknown
/// labels; otherwise as
/// [`evaluate`](super::evaluate), except that no query needs a positive.
pub fn decomposability_gap(
    set: Labelled<'_>,
    config: &EvaluationConfig,
    settings: Decomposability,
) -> Result<DecomposabilityGap> {
    gap(set, config, settings, &Execution::default())
}

/// As [`decomposability_gap`], of embeddings that are read into memory, because batches are random.
pub(super) fn gap_of_rows(
    set: Labelled<'_, dyn Rows>,
    config: &EvaluationConfig,
    settings: Decomposability,
    execution: &Execution<'_>,
) -> Result<DecomposabilityGap> {
    let dimension = set.embeddings.dimension();
    let mut values = vec![0.0; set.embeddings.len() * dimension];
    set.embeddings.read(0, &mut values)?;
    let embeddings = &Embeddings::new(dimension, values)?;
    gap(Labelled { embeddings, labels: set.labels }, config, settings, execution)
}

fn gap(
    set: Labelled<'_>,
    config: &EvaluationConfig,
    settings: Decomposability,
    execution: &Execution<'_>,
) -> Result<DecomposabilityGap> {
    let Decomposability { batch, seed } = settings;
    let (count, depth) = (set.labels.len(), set.labels.levels());
    check_shapes(depth, "query", set.into())?;
    config.checked(depth)?;
    check_batch(batch, count)?;
    if !set.labels.are_classes() {
        return Err(Error::new(
            Kind::Taxonomy,
            "the decomposability gap needs one known label path for each item",
            "leave out the decomposability gap, or the items with unknown labels or with several paths",
        ));
    }
    let quiet = execution.quiet();
    let queries = PointSet::new(config.similarity, set.embeddings, "query", &quiet)?;
    let average_precisions = |search: Search<'_>, execution: &Execution<'_>| {
        search.rank(0..search.queries.len(), config, execution, |_, ranking| -> Vec<Option<f64>> {
            (1..=depth).map(|level| average_precision(ranking, level)).collect()
        })
    };
    let query_labels = set.labels;
    let whole = average_precisions(
        Search {
            queries: &queries,
            query_labels,
            gallery: &queries,
            labels: query_labels,
            places: Places::Same,
        },
        execution,
    )?;
    let batches = balanced_batches(set.labels, count / batch, seed);
    // For each query and level, the sum of AP_i^b and the number of batches that have one.
    let mut inside = vec![vec![(0.0, 0); depth]; count];
    for items in &batches {
        let values = items.iter().flat_map(|&item| set.embeddings.row(item)).copied().collect();
        let embeddings = Embeddings::new(set.embeddings.dimension(), values)?;
        let gallery = PointSet::new(config.similarity, &embeddings, "query", &quiet)?;
        let (gallery, labels) = (&gallery, &set.labels.select(items));
        let places = Places::Apart;
        let mut precisions =
            average_precisions(Search { queries: &queries, query_labels, gallery, labels, places }, &quiet)?;
        // Queries of this batch rank its other items.
        let (places, query_labels) = (Places::Same, labels);
        let search = Search { queries: gallery, query_labels, gallery, labels, places };
        let members = average_precisions(search, &quiet)?;
        // All queries ranked this share of the items.
        (execution.progress)(Step::Ranked(items.len()));
        for (&item, member) in items.iter().zip(members) {
            precisions[item] = member;
        }
        for (query, levels) in precisions.into_iter().enumerate() {
            for (level, precision) in levels.into_iter().enumerate() {
                if let Some(precision) = precision {
                    let (sum, batches) = &mut inside[query][level];
                    *sum += precision;
                    *batches += 1;
                }
            }
        }
    }
    let gaps = |level: usize| -> Vec<f64> {
        // A query with a positive in the whole set has one in the batch of that positive.
        let gap = |query: usize| {
            let (sum, batches) = inside[query][level];
            Some(sum / f64::from(batches) - whole[query][level]?)
        };
        (0..count).filter_map(gap).collect()
    };
    let gaps: Vec<Vec<f64>> = (0..depth).map(gaps).collect();
    let interval = config.bootstrap.map_or_else(Vec::new, |bootstrap| {
        gaps.iter().map(|gaps| bootstrap_interval(gaps, bootstrap)).collect()
    });
    let levels = gaps.iter().map(|gaps| mean(gaps)).collect();
    Ok(DecomposabilityGap { batch, batches: batches.len(), levels, interval })
}

/// Deals all items into batches. The sizes of two batches differ by at most one, and so do, at every level, their
/// numbers of items of any class.
fn balanced_batches(labels: &Labels, batches: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = stream(seed, "decomposability gap", &[]);
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.shuffle(&mut random);
    // The classes of each level come in a random order, and the items of each class one after another.
    let path = |item: usize, level: usize| &labels.row(item)[..level];
    let mut keys = BTreeMap::new();
    for &item in &order {
        for level in 1..=labels.levels() {
            keys.entry(path(item, level)).or_insert_with(|| random.random::<u64>());
        }
    }
    let key =
        |&item: &usize| -> Vec<u64> { (1..=labels.levels()).map(|level| keys[path(item, level)]).collect() };
    order.sort_by_cached_key(key);
    let mut dealt = vec![Vec::new(); batches];
    for (place, item) in order.into_iter().enumerate() {
        dealt[place % batches].push(item);
    }
    dealt
}

/// Checks that a set of `count` items has a batch of this size.
pub(super) fn check_batch(batch: usize, count: usize) -> Result<()> {
    if (2..=count).contains(&batch) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!(
            "the decomposability gap cannot be measured in batches of {batch} from a set of {count} items"
        ),
        format!("choose a batch of 2 to {count} items"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal;
    use crate::statistics::Bootstrap;

    /// Random items of a taxonomy with classes of very different sizes, some of a single item.
    fn random_set(seed: u64, count: usize) -> (Embeddings, Labels) {
        let mut random = stream(seed, "test", &[]);
        let rows = (0..count).flat_map(|item| {
            let fine = random.random_range(0..=(item as u32).min(11));
            [fine / 6, fine / 2, fine]
        });
        let labels = Labels::new(3, rows.collect()).unwrap();
        let values = normal(&mut stream(seed, "values", &[]), count * 4, 1.0);
        (Embeddings::new(4, values).unwrap(), labels)
    }

    /// The AP of a query over some items, by its definition; none without a positive.
    fn naive_ap(set: Labelled, query: usize, items: &[usize], level: usize) -> Option<f64> {
        let row = |item: usize| set.embeddings.row(item);
        let length = |item: usize| row(item).iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let score = |item: usize| {
            let product: f64 = row(query).iter().zip(row(item)).map(|(&a, &b)| f64::from(a * b)).sum();
            product / (length(query) * length(item))
        };
        let positive = |&item: &usize| set.labels.row(query)[..level] == set.labels.row(item)[..level];
        let others: Vec<usize> = items.iter().copied().filter(|&item| item != query).collect();
        let positives: Vec<usize> = others.iter().copied().filter(positive).collect();
        let precision = |&k: &usize| {
            let rank = |items: &[usize]| 1 + items.iter().filter(|&&j| score(j) > score(k)).count();
            rank(&positives) as f64 / rank(&others) as f64
        };
        mean(&positives.iter().map(precision).collect::<Vec<_>>())
    }

    #[test]
    fn the_gap_is_that_of_equation_6_averaged_over_queries() {
        for (seed, count, batch) in [(1, 40, 8), (2, 41, 8), (3, 30, 4), (4, 25, 25), (5, 24, 2)] {
            let (embeddings, labels) = random_set(seed, count);
            let set = Labelled { embeddings: &embeddings, labels: &labels };
            let settings = Decomposability { batch, seed };
            let got = decomposability_gap(set, &EvaluationConfig::default(), settings).unwrap();
            let batches = balanced_batches(&labels, count / batch, seed);
            let everything: Vec<usize> = (0..count).collect();
            for level in 1..=3 {
                let (mut sum, mut queries) = (0.0, 0.0);
                for i in 0..count {
                    let Some(whole) = naive_ap(set, i, &everything, level) else { continue };
                    let (mut in_batches, mut batches_with_positives) = (0.0, 0.0);
                    for items in &batches {
                        if let Some(ap) = naive_ap(set, i, items, level) {
                            in_batches += ap;
                            batches_with_positives += 1.0;
                        }
                    }
                    sum += in_batches / batches_with_positives - whole;
                    queries += 1.0;
                }
                let got = got.levels[level - 1].unwrap();
                assert!((got - sum / queries).abs() < 1e-9, "{got} is not {}", sum / queries);
            }
        }
    }

    #[test]
    fn batches_are_balanced_at_every_level_and_hold_every_item_once() {
        for (seed, count, batches) in [(1, 40, 5), (2, 41, 5), (3, 100, 30), (4, 9, 1)] {
            let (_, labels) = random_set(seed, count);
            let dealt = balanced_batches(&labels, batches, seed);
            let mut items = dealt.concat();
            items.sort_unstable();
            assert_eq!(items, (0..count).collect::<Vec<_>>());
            for level in 0..=3 {
                let path = |item: usize| &labels.row(item)[..level];
                for item in 0..count {
                    let members =
                        |batch: &Vec<usize>| batch.iter().filter(|&&j| path(j) == path(item)).count();
                    let sizes: Vec<usize> = dealt.iter().map(members).collect();
                    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
                }
            }
            assert_eq!(balanced_batches(&labels, batches, seed), dealt);
            assert!(batches == 1 || balanced_batches(&labels, batches, seed + 1) != dealt);
        }
    }

    #[test]
    fn every_query_with_a_positive_counts_however_small_its_class() {
        // Fifty classes of two items; a random partition would put only few pairs into one batch.
        let labels = Labels::new(1, (0..100).map(|item| item / 2).collect()).unwrap();
        let values = normal(&mut stream(1, "values", &[]), 100 * 4, 1.0);
        let embeddings = Embeddings::new(4, values).unwrap();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let everything: Vec<usize> = (0..100).collect();
        let batches = balanced_batches(&labels, 10, 0);
        let gap = |i: usize| {
            let twin = i ^ 1;
            let batch = batches.iter().find(|batch| batch.contains(&twin)).unwrap();
            naive_ap(set, i, batch, 1).unwrap() - naive_ap(set, i, &everything, 1).unwrap()
        };
        let expected = (0..100).map(gap).sum::<f64>() / 100.0;
        let settings = Decomposability { batch: 10, seed: 0 };
        let got = decomposability_gap(set, &EvaluationConfig::default(), settings).unwrap().levels[0];
        assert!((got.unwrap() - expected).abs() < 1e-9 && expected > 0.1, "{got:?} is not {expected}");
    }

    #[test]
    fn settings_and_sets_that_do_not_fit_are_refused() {
        let (embeddings, labels) = random_set(1, 40);
        let settings = Decomposability { batch: 8, seed: 0 };
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let no_block = EvaluationConfig { block: 0, ..Default::default() };
        assert_eq!(decomposability_gap(set, &no_block, settings).unwrap_err().kind(), Kind::Config);
        let shorter = Labelled { labels: &labels.select(&[0, 1, 2]), ..set };
        let error = decomposability_gap(shorter, &EvaluationConfig::default(), settings).unwrap_err();
        assert!(error.message().contains("40 query embeddings, 3 label rows"), "{error}");
    }

    #[test]
    fn the_interval_is_that_of_the_queries() {
        let (embeddings, labels) = random_set(1, 40);
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let config = EvaluationConfig { bootstrap: Some(Bootstrap::default()), ..Default::default() };
        let gap = decomposability_gap(set, &config, Decomposability { batch: 8, seed: 0 }).unwrap();
        for (mean, interval) in gap.levels.iter().zip(&gap.interval) {
            let (mean, [low, high]) = (mean.unwrap(), interval.unwrap());
            assert!(low < mean && mean < high && high - low < 0.5, "{low} {mean} {high}");
        }
    }
}
