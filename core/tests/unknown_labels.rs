//! Scores where labels are unknown: against formulas written out, in the mean over all ways to lose labels, and within
//! their bounds.

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate};
use akin_core::metrics::{
    Gain, Metric, average_precision, hierarchical_ap, ndcg, precision, recall, reciprocal_rank,
};
use akin_core::random::stream;
use akin_core::ranking::{KnownLabels, Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Labels, SharedInterval, UNKNOWN, shared_interval};
use proptest::prelude::*;
use rand::RngExt;

const DEPTH: usize = 3;
const SHARES: [f64; DEPTH] = [1.0, 0.8, 0.6];

/// An item of a list: the level that it shares with the query, and the level down to which its label is known.
#[derive(Clone, Copy, Debug)]
struct Item {
    shared: usize,
    known: usize,
}

impl Item {
    /// What a query whose label is known sees of it.
    fn interval(self) -> SharedInterval {
        // It differs at level `shared` + 1, if that is known.
        let most = if self.known > self.shared { self.shared } else { DEPTH };
        SharedInterval { least: self.shared.min(self.known), most }
    }

    fn is_decided(self, level: usize) -> bool {
        self.known > self.shared || self.known >= level
    }

    fn weight(self, level: usize) -> f64 {
        1.0 / SHARES[(self.shared + 1).min(level) - 1]
    }
}

fn ranking(items: &[Item]) -> Ranking {
    let scored = items.iter().enumerate().map(|(place, item)| (-(place as f32), item.interval()));
    let known = KnownLabels { query: DEPTH, shares: SHARES.to_vec() };
    Ranking::from_intervals(DEPTH, TiePolicy::Stable, scored).with_known(known)
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (0..=DEPTH, 1..=DEPTH).prop_map(|(shared, known)| Item { shared, known });
    proptest::collection::vec(item, 1..12)
}

/// The page of `akin_core::unknown`, written out.
fn naive_ap(items: &[Item], level: usize) -> Option<f64> {
    let decided: Vec<Item> = items.iter().copied().filter(|item| item.is_decided(level)).collect();
    let (mut sum, mut all) = (0.0, 0.0);
    for (place, item) in decided.iter().enumerate().filter(|(_, item)| item.shared >= level) {
        let above = &decided[..place];
        let weight =
            |items: &mut dyn Iterator<Item = &Item>| items.map(|item| item.weight(level)).sum::<f64>();
        let rank = 1.0 + weight(&mut above.iter());
        let positive_rank = 1.0 + weight(&mut above.iter().filter(|item| item.shared >= level));
        sum += item.weight(level) * positive_rank / rank;
        all += item.weight(level);
    }
    (all > 0.0).then(|| sum / all)
}

fn naive_h_ap(items: &[Item]) -> Option<f64> {
    let decided: Vec<Item> = items.iter().copied().filter(|item| item.is_decided(DEPTH)).collect();
    let mass = |level: usize| -> f64 {
        decided.iter().filter(|item| item.shared == level).map(|item| item.weight(DEPTH)).sum()
    };
    let rel = |item: &Item| match item.shared {
        0 => 0.0,
        level => level as f64 / DEPTH as f64 / mass(level),
    };
    let (mut sum, mut all) = (0.0, 0.0);
    for (place, item) in decided.iter().enumerate() {
        let above = &decided[..place];
        let rank = 1.0 + above.iter().map(|item| item.weight(DEPTH)).sum::<f64>();
        let shared: f64 = above.iter().map(|other| other.weight(DEPTH) * rel(other).min(rel(item))).sum();
        if item.shared > 0 {
            sum += item.weight(DEPTH) * (rel(item) + shared) / rank;
            all += item.weight(DEPTH) * rel(item);
        }
    }
    (all > 0.0).then(|| sum / all)
}

/// Σ 1 / log2(1 + r) over the ranks r ≤ n, linear between whole numbers n.
fn discounts(n: f64) -> f64 {
    let term = |rank: usize| 1.0 / (1.0 + rank as f64).log2();
    let whole = n.floor();
    (1..=whole as usize).map(term).sum::<f64>() + (n - whole) * term(whole as usize + 1)
}

fn naive_ndcg(items: &[Item], k: usize) -> Option<f64> {
    let decided =
        || (1..).zip(items).filter(|(_, item)| item.is_decided(DEPTH)).map(|(rank, &item)| (rank, item));
    let gain = |level: usize| level as f64;
    let dcg: f64 = decided()
        .filter(|&(rank, _)| rank <= k)
        .map(|(rank, item)| item.weight(DEPTH) * gain(item.shared) / (1.0 + rank as f64).log2())
        .sum();
    let at_least = |level: usize| -> f64 {
        decided().filter(|(_, item)| item.shared >= level).map(|(_, item)| item.weight(DEPTH)).sum()
    };
    let ideal: f64 = (1..=DEPTH)
        .map(|level| (gain(level) - gain(level - 1)) * discounts(at_least(level).min(k as f64)))
        .sum();
    (ideal > 0.0).then(|| dcg / ideal)
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    a.is_some() == b.is_some() && a.zip(b).is_none_or(|(a, b)| (a - b).abs() < 1e-12)
}

proptest! {
    #[test]
    fn ap_h_ap_and_ndcg_are_the_formulas_of_the_page(items in items(), k in 1usize..14) {
        let ranking = ranking(&items);
        for level in 1..=DEPTH {
            let (got, expected) = (average_precision(&ranking, level), naive_ap(&items, level));
            prop_assert!(near(got, expected), "{got:?} {expected:?} at {level}");
        }
        let relevance = Relevance::default().checked(DEPTH).unwrap();
        let (got, expected) = (hierarchical_ap(&ranking, &relevance), naive_h_ap(&items));
        prop_assert!(near(got, expected), "{got:?} {expected:?}");
        let (got, expected) = (ndcg(&ranking, Gain::Linear, Some(k)), naive_ndcg(&items, k));
        prop_assert!(near(got, expected), "{got:?} {expected:?} at {k}");
    }

    #[test]
    fn scores_of_the_first_items_are_right_in_the_mean_over_all_ways_to_lose_labels(
        levels in proptest::collection::vec(0..=DEPTH, 1..6),
        level in 1..=DEPTH,
        k in 1usize..4,
    ) {
        // P(known = l) for l = 1 … L.
        let chance = |known: usize| SHARES[known - 1] - SHARES.get(known).copied().unwrap_or(0.0);
        let mut means = [0.0; 3];
        for number in 0..DEPTH.pow(levels.len() as u32) {
            let known = |place: usize| number / DEPTH.pow(place as u32) % DEPTH + 1;
            let items: Vec<Item> = levels
                .iter()
                .enumerate()
                .map(|(place, &shared)| Item { shared, known: known(place) })
                .collect();
            let chance: f64 = items.iter().map(|item| chance(item.known)).product();
            let ranking = ranking(&items);
            let values = [recall(&ranking, level, k), precision(&ranking, level, k), reciprocal_rank(&ranking, level)];
            for (mean, value) in means.iter_mut().zip(values) {
                *mean += chance * value.unwrap_or(0.0);
            }
        }
        let full = Ranking::from_levels(DEPTH, &levels);
        let full = [recall(&full, level, k), precision(&full, level, k), reciprocal_rank(&full, level)];
        for (mean, full) in means.into_iter().zip(full) {
            prop_assert!((mean - full.unwrap_or(0.0)).abs() < 1e-9, "{mean} {full:?}");
        }
    }
}

/// Items of two families, four genera and eight species, whose embeddings are near their species.
fn collection(seed: u64, count: usize) -> (Embeddings, Labels) {
    let mut random = stream(seed, "collection", &[]);
    let mut centre = || [0; 4].map(|_| random.random_range(-1.0f32..1.0));
    let centres: Vec<[f32; 4]> = (0..8).map(|_| centre()).collect();
    let (mut values, mut ids) = (Vec::new(), Vec::new());
    for item in 0..count {
        let species = item % 8;
        values.extend(centres[species].map(|number| number + random.random_range(-0.7f32..0.7)));
        ids.extend([species / 4, species / 2, species].map(|class| class as u32));
    }
    (Embeddings::new(4, values).unwrap(), Labels::new(3, ids).unwrap())
}

/// The same labels, of which a share is known to a random coarser level.
fn cut(labels: &Labels, share: f64, seed: u64) -> Labels {
    let mut random = stream(seed, "cut", &[]);
    let rows = (0..labels.len()).flat_map(|item| {
        let mut row = labels.row(item).to_vec();
        if random.random_bool(share) {
            let known = random.random_range(1..labels.levels());
            row[known..].fill(UNKNOWN);
        }
        row
    });
    Labels::new(labels.levels(), rows.collect()).unwrap()
}

fn report(embeddings: &Embeddings, labels: &Labels, ties: TiePolicy) -> Report {
    let names = ["family", "genus", "species"].map(String::from);
    let metrics =
        ["h_ap", "ndcg", "asi", "weighted_ap", "mistake_severity", "ap", "map_at_r", "recall@1", "mrr"];
    let metrics = metrics.map(|name| name.parse::<Metric>().unwrap()).to_vec();
    let config = EvaluationConfig { metrics, ties, ..EvaluationConfig::default() };
    evaluate(&names, Labelled { embeddings, labels }, None, &config).unwrap()
}

#[test]
fn estimates_are_near_the_scores_of_full_labels_which_lie_within_their_bounds() {
    let (embeddings, labels) = collection(1, 400);
    let full = report(&embeddings, &labels, TiePolicy::Stable);
    assert!(full.overall.open.is_none() && full.per_query.iter().all(|row| row.open.is_empty()));
    let mut errors = Vec::new();
    for seed in 0..5 {
        let labels = cut(&labels, 0.3, seed);
        let some = report(&embeddings, &labels, TiePolicy::Stable);
        for level in 0..=3 {
            let (full, some) = (full.at(level), some.at(level));
            let open = some.open.as_ref().unwrap();
            assert_eq!(open.left_out == 0, level == 1, "at level 1 all pairs are decided");
            for (metric, truth) in full.scores.iter().filter_map(|(metric, value)| Some((metric, value?))) {
                let [low, high] = open.bounds[&metric];
                assert!((low..=high).contains(&truth), "{metric} at {level}: {truth} outside {low} … {high}");
                if metric.to_string() != "mistake_severity" {
                    errors.push((metric, level, some.get(metric).unwrap() - truth));
                }
            }
        }
        let unknown = 400 - labels.known_counts()[2];
        assert_eq!(some.overall.open.as_ref().unwrap().unknown_queries, unknown);
        assert_eq!(some.at(3).queries + unknown, full.at(3).queries);
    }
    for (metric, level, _) in &errors {
        let all = errors.iter().filter(|other| (other.0, other.1) == (*metric, *level));
        let bias = all.map(|error| error.2).sum::<f64>() / 5.0;
        let most = if metric.to_string() == "ndcg" { 0.005 } else { 0.02 };
        assert!(bias.abs() < most, "{metric} at {level}: {bias}");
    }
}

#[test]
fn the_order_of_ties_and_the_rankings_in_blocks_agree_where_labels_are_unknown() {
    let (embeddings, labels) = collection(2, 60);
    let labels = cut(&labels, 0.4, 0);
    let stable = report(&embeddings, &labels, TiePolicy::Stable);
    for ties in [TiePolicy::Strict, TiePolicy::Optimistic, TiePolicy::Pessimistic, TiePolicy::Shared] {
        let other = report(&embeddings, &labels, ties);
        for (a, b) in stable.per_query.iter().zip(&other.per_query) {
            assert_eq!((&a.overall, &a.levels), (&b.overall, &b.levels), "no two scores are equal");
        }
    }
    let ranked = Gallery::new(&embeddings, Similarity::Cosine).unwrap();
    for query in [0, 7, 33] {
        let gallery: Vec<usize> = (0..60).filter(|&item| item != query).collect();
        let scores = ranked.scores(embeddings.row(query)).unwrap();
        let scored =
            gallery.iter().map(|&item| (scores[item], shared_interval(labels.row(query), labels.row(item))));
        let shares = labels.known_counts().into_iter().map(|known| known as f64 / 60.0).collect();
        let known = KnownLabels { query: labels.known(query), shares };
        let ranking = Ranking::from_intervals(3, TiePolicy::Stable, scored).with_known(known);
        for level in 1..=3 {
            let metric: Metric = "ap".parse().unwrap();
            assert_eq!(stable.per_query[query].at(level).get(metric), average_precision(&ranking, level));
        }
    }
}
