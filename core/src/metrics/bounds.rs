//! Bounds of a metric over all ways to fill the unknown labels of a ranking.

use serde::{Deserialize, Serialize};

use super::Metric;
use crate::ranking::{Positive, Ranking, TiePolicy};
use crate::relevance::CheckedRelevance;

/// The least and the greatest value that a metric may have for one query, whatever the unknown labels are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// No value is below it.
    pub low: f64,
    /// No value is above it.
    pub high: f64,
    /// Whether the query has a positive whatever the unknown labels are. If not, it may have no value.
    pub certain: bool,
}

impl Bounds {
    fn of([low, high]: [f64; 2], certain: bool) -> Self {
        Self { low, high, certain }
    }
}

/// Above this depth the bounds of H-AP with eq. 4 are 0 and 1: they would take 2^L sets of levels.
const DEEPEST: usize = 10;

/// The bounds of a metric at a level, 1 … L, or over all levels for a metric of all levels. `None` if the query has no
/// positive, whatever the unknown labels are.
///
/// They hold for the ranking with all labels, in which every item has a rank. A filling gives each item any level that it
/// may share, independently of the others. Real labels allow fewer fillings, so that the bounds are valid and may be loose.
///
/// - **AP.** Of all fillings with m more positives, AP is greatest with the first m of the undecided items and least with
///   the last m, because AP never falls when a positive changes places with a negative above it. So the bounds are the
///   extremes over m, each from the one before in constant time. They are reached.
/// - **H-AP.** Let r_1 < r_2 < … be the relevances, r_0 = 0, and A_t the items with a relevance of at least r_t. Since
///   min(a, b) = Σ_t (r_t − r_(t−1)) [a ≥ r_t] [b ≥ r_t], HAPPIER's eq. 2 is
///   Σ_t (r_t − r_(t−1)) |A_t| AP(A_t) / Σ_t (r_t − r_(t−1)) |A_t|, a mean of APs. A_t holds the items of some levels:
///   of any levels with eq. 4, of all levels from one on if relevance rises with the level. So H-AP lies between the least
///   and the greatest AP of such sets.
/// - **Σ wAP** is a mean of the APs of levels.
/// - **R@k, P@k, MRR** follow from the first certain and the first possible positive.
/// - Other metrics have the bounds 0 and 1, or L for a severity; so have all with an order of ties other than
///   [`TiePolicy::Stable`], under which a filling changes the order.
pub fn bounds(
    metric: Metric,
    ranking: &Ranking,
    relevance: &CheckedRelevance,
    level: usize,
) -> Option<Bounds> {
    let depth = ranking.depth();
    let from = |least: usize| Levels::from(least, depth);
    let set = from(if metric.entry().per_level { level } else { 1 });
    let certain = ranking.positives().iter().any(|positive| set.certain(positive));
    if !ranking.positives().iter().any(|positive| set.possible(positive)) {
        return None;
    }
    let greatest = match metric.entry().unit {
        super::Unit::Share => 1.0,
        super::Unit::Levels => depth as f64,
    };
    let trivial = Bounds::of([0.0, greatest], certain);
    if ranking.ties() != TiePolicy::Stable {
        return Some(trivial);
    }
    let union = |sets: &mut dyn Iterator<Item = Levels>| -> Option<[f64; 2]> {
        sets.filter_map(|set| average_precision(ranking, set))
            .reduce(|[low, high], [least, most]| [low.min(least), high.max(most)])
    };
    // With a weight of 0 a query may have positives and no value.
    let has_value = certain && relevance.level_weights().iter().all(|&weight| weight > 0.0);
    let first = |found: &dyn Fn(&Positive) -> bool| ranking.positives().iter().find(|item| found(item));
    let count = |k: usize, found: &dyn Fn(&Positive) -> bool| {
        ranking.positives().iter().take_while(|item| item.rank <= k).filter(|item| found(item)).count()
    };
    Some(match (metric.entry().name, metric.cutoff()) {
        ("ap", None) => average_precision(ranking, set).map_or(trivial, |range| Bounds::of(range, certain)),
        ("weighted_ap", _) => {
            union(&mut (1..=depth).map(from)).map_or(trivial, |range| Bounds::of(range, has_value))
        }
        ("h_ap", _) if relevance.rises() => {
            union(&mut (1..=depth).map(from)).map_or(trivial, |range| Bounds::of(range, has_value))
        }
        ("h_ap", _) if depth <= DEEPEST => {
            let sets = (1..1u64 << depth).map(|set| Levels(set << 1));
            union(&mut sets.into_iter()).map_or(trivial, |range| Bounds::of(range, has_value))
        }
        ("recall", Some(k)) => {
            let high = count(k, &|item| set.possible(item)) > 0;
            let all = count(usize::MAX, &|item| set.possible(item));
            let low = match certain {
                true => count(k, &|item| set.certain(item)) > 0,
                false => count(k, &|item| set.possible(item)) == all,
            };
            Bounds::of([low, high].map(|found| f64::from(u8::from(found))), certain)
        }
        ("precision", Some(k)) => {
            let share = |found: usize| found as f64 / k as f64;
            let low = share(count(k, &|item| set.certain(item)));
            Bounds::of([low, share(count(k, &|item| set.possible(item)))], certain)
        }
        ("mrr", _) => {
            let reciprocal = |item: Option<&Positive>| item.map_or(0.0, |item| 1.0 / item.rank as f64);
            let worst = match certain {
                true => first(&|item| set.certain(item)),
                false => ranking.positives().iter().rfind(|item| set.possible(item)),
            };
            Bounds::of([reciprocal(worst), reciprocal(first(&|item| set.possible(item)))], certain)
        }
        _ => trivial,
    })
}

/// A set of levels: bit l for level l.
#[derive(Clone, Copy)]
struct Levels(u64);

impl Levels {
    /// All levels from `least` on.
    fn from(least: usize, depth: usize) -> Self {
        Self((least..=depth).fold(0, |set, level| set | bit(level)))
    }

    fn has(self, level: usize) -> bool {
        self.0 & bit(level) != 0
    }

    /// Whether an item is of one of these levels for sure.
    fn certain(self, item: &Positive) -> bool {
        (item.level..=item.most).all(|level| self.has(level))
    }

    /// Whether it may be of one of these levels.
    fn possible(self, item: &Positive) -> bool {
        (item.level..=item.most).any(|level| self.has(level))
    }
}

/// A taxonomy has fewer than 64 levels, or its deepest ones are told apart no more.
fn bit(level: usize) -> u64 {
    1 << level.min(63)
}

/// The least and the greatest AP of the items of some levels; `None` if no item may be of them.
fn average_precision(ranking: &Ranking, set: Levels) -> Option<[f64; 2]> {
    let mut certain = Vec::new();
    // Of each possible positive, its rank and the number of certain ones above it.
    let mut possible = Vec::new();
    for item in ranking.positives() {
        let rank = item.rank as f64;
        if set.certain(item) {
            certain.push(rank);
        } else if set.possible(item) {
            possible.push((rank, certain.len()));
        }
    }
    // below[i]: Σ 1/rank of the certain positives from number i on.
    let mut below = vec![0.0; certain.len() + 1];
    for (place, rank) in certain.iter().enumerate().rev() {
        below[place] = below[place + 1] + rank.recip();
    }
    let start = (1..).zip(&certain).fold(0.0, |sum, (found, rank)| sum + f64::from(found) / rank);
    let count = certain.len() as f64;
    let mut range = (count > 0.0).then(|| [start / count; 2]);
    let mut reach = |value: f64| {
        range = Some(range.map_or([value; 2], |[low, high]| [low.min(value), high.max(value)]));
    };
    let mut sum = start;
    for (more, &(rank, above)) in possible.iter().enumerate() {
        sum += (above + more + 1) as f64 / rank + below[above];
        reach(sum / (count + more as f64 + 1.0));
    }
    let (mut sum, mut chosen) = (start, 0.0);
    for (more, &(rank, above)) in possible.iter().rev().enumerate() {
        sum += (above + 1) as f64 / rank + below[above] + chosen;
        chosen += rank.recip();
        reach(sum / (count + more as f64 + 1.0));
    }
    range
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::relevance::Relevance;
    use crate::taxonomy::SharedInterval;

    /// The rankings of all ways to fill the holes, by enumeration.
    fn fillings(items: &[SharedInterval]) -> Vec<Vec<usize>> {
        items.iter().fold(vec![Vec::new()], |lists, item| {
            let extended =
                |list: Vec<usize>| (item.least..=item.most).map(move |level| [&list[..], &[level]].concat());
            lists.into_iter().flat_map(extended).collect()
        })
    }

    fn items() -> impl Strategy<Value = Vec<SharedInterval>> {
        let item = prop_oneof![
            3 => (0usize..=3).prop_map(|level| SharedInterval { least: level, most: level }),
            1 => (1usize..3).prop_map(|least| SharedInterval { least, most: 3 }),
        ];
        proptest::collection::vec(item, 1..9).prop_filter("few fillings", |items| {
            items.iter().filter(|item| item.least < item.most).count() < 5
        })
    }

    fn relevance() -> impl Strategy<Value = Relevance> {
        prop_oneof![
            Just(Relevance::HierarchicalAp { alpha: 1.0 }),
            Just(Relevance::Plain { alpha: 2.0 }),
            Just(Relevance::WeightedAp { weights: vec![0.2, 0.3, 0.5] }),
            Just(Relevance::WeightedAp { weights: vec![0.0, 0.0, 1.0] }),
        ]
    }

    proptest! {
        #[test]
        fn every_filling_lies_within_the_bounds_and_ap_reaches_them(items in items(), relevance in relevance()) {
            let relevance = relevance.checked(3).unwrap();
            let scored = items.iter().enumerate().map(|(place, &levels)| (-(place as f32), levels));
            let open = Ranking::from_intervals(3, TiePolicy::Stable, scored);
            let fillings: Vec<Ranking> =
                fillings(&items).iter().map(|levels| Ranking::from_levels(3, levels)).collect();
            let metrics = ["h_ap", "weighted_ap", "ap", "recall@1", "recall@3", "precision@2", "mrr", "ndcg", "map_at_r",
                           "mistake_severity"];
            for metric in metrics.map(|name| name.parse::<Metric>().unwrap()) {
                for level in 1..=3 {
                    let values: Vec<Option<f64>> =
                        fillings.iter().map(|ranking| metric.value(ranking, &relevance, level)).collect();
                    let Some(bounds) = bounds(metric, &open, &relevance, level) else {
                        prop_assert!(values.iter().all(Option::is_none), "{metric}");
                        continue;
                    };
                    prop_assert!(!bounds.certain || values.iter().all(Option::is_some), "{metric} {level}");
                    let values: Vec<f64> = values.into_iter().flatten().collect();
                    let [low, high] = [f64::min, f64::max].map(|extreme| values.iter().copied().reduce(extreme));
                    if let (Some(low), Some(high)) = (low, high) {
                        prop_assert!(
                            bounds.low <= low + 1e-12 && high <= bounds.high + 1e-12,
                            "{metric} at {level}: {low} … {high} outside {bounds:?}"
                        );
                        if metric.to_string() == "ap" {
                            prop_assert!((bounds.low - low).abs() < 1e-12 && (bounds.high - high).abs() < 1e-12);
                        }
                    }
                }
            }
        }
    }
}
