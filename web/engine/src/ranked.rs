//! The answer to one query: results, and either metrics or votes.

use akin_core::bundle::BestScores;
use akin_core::evaluate::EvaluationConfig;
use akin_core::metrics::{Gain, asi, average_precision, hierarchical_ap, ndcg, recall};
use akin_core::ranking::Ranking;
use akin_core::search::{Gallery, Hit, top_k};
use akin_core::taxonomy::{Labels, shared_level};
use serde::Serialize;

/// The answer as JavaScript sees it.
#[derive(Serialize)]
pub(crate) struct Ranked {
    pub(crate) search_ms: f64,
    results: Vec<Item>,
    metrics: Option<Metrics>,
    votes: Option<Vec<Vote>>,
    likeness: Option<Likeness>,
}

/// How alike a picture and its nearest item are, beside the gallery's own items and theirs.
#[derive(Serialize)]
struct Likeness {
    best: f32,
    unlike_below: f32,
    unlike: bool,
}

#[derive(Serialize)]
struct Item {
    item: usize,
    score: f32,
    shared_level: Option<usize>,
}

/// The metrics of the whole ranking, not only of the results.
#[derive(Serialize)]
struct Metrics {
    h_ap: Option<f64>,
    ndcg: Option<f64>,
    asi: Option<f64>,
    levels: Vec<LevelMetrics>,
}

#[derive(Serialize)]
struct LevelMetrics {
    ap: Option<f64>,
    recall_at_1: Option<f64>,
}

#[derive(Serialize)]
struct Vote {
    level: usize,
    class: u32,
    share: f64,
}

/// A query.
pub(crate) struct Query<'a> {
    pub(crate) embedding: &'a [f32],
    /// One class per level, coarse to fine; `None` where they are unknown.
    pub(crate) labels: Option<&'a [u32]>,
    /// Its own position in the gallery, which is left out of the ranking.
    pub(crate) itself: Option<usize>,
}

/// A gallery with what is known of its items.
pub(crate) struct Known<'a> {
    pub(crate) gallery: &'a Gallery,
    /// The labels of all items, gallery first; `None` where no item has labels.
    pub(crate) labels: Option<&'a Labels>,
    pub(crate) best_scores: Option<&'a BestScores>,
    pub(crate) config: &'a EvaluationConfig,
}

impl Ranked {
    /// Ranks the gallery.
    pub(crate) fn new(known: &Known, query: &Query, k: usize) -> akin_core::Result<Self> {
        let scores = known.gallery.scores(query.embedding)?;
        let hits = top_k(&scores, k, query.itself);
        let likeness = known.best_scores.and_then(BestScores::unlike_below).zip(hits.first()).map(
            |(unlike_below, &Hit { score: best, .. })| Likeness {
                best,
                unlike_below,
                unlike: best < unlike_below,
            },
        );
        let own = query.labels.zip(known.labels);
        let shared_level_with = |item: usize| own.map(|(own, labels)| shared_level(own, labels.row(item)));
        let votes = match (query.labels, known.labels) {
            (None, Some(labels)) => Some(votes(labels, hits.iter().map(|hit| (hit.item, hit.score)))),
            _ => None,
        };
        let config = known.config;
        let metrics = own.map(|(own, labels)| {
            let relevance = config.relevance.checked(labels.levels())?;
            let items = (0..scores.len())
                .filter(|&item| Some(item) != query.itself)
                .map(|item| (scores[item], shared_level(own, labels.row(item))));
            let ranking =
                Ranking::from_scores(labels.levels(), config.ties, items).count_query(config.count_query);
            let at_level = |level| LevelMetrics {
                ap: average_precision(&ranking, level),
                recall_at_1: recall(&ranking, level, 1),
            };
            Ok(Metrics {
                h_ap: hierarchical_ap(&ranking, &relevance),
                ndcg: ndcg(&ranking, Gain::Exponential, None),
                asi: asi(&ranking),
                levels: (1..=labels.levels()).map(at_level).collect(),
            })
        });
        let metrics = metrics.transpose()?;
        let results = hits
            .into_iter()
            .map(|hit| Item { item: hit.item, score: hit.score, shared_level: shared_level_with(hit.item) })
            .collect();
        Ok(Self { search_ms: 0.0, results, metrics, votes, likeness })
    }
}

/// The class that the neighbours vote for at each level, coarse to fine. Below the first level only
/// the neighbours of the class chosen above vote, so that the classes form a path of the taxonomy.
///
/// A neighbour's weight falls linearly with its score, from 1.01 for the nearest to 0.01 for the last.
/// A tie goes to the class of the nearer neighbour. A share is of the weight of all neighbours.
fn votes(labels: &Labels, neighbours: impl Iterator<Item = (usize, f32)>) -> Vec<Vote> {
    let mut neighbours: Vec<(usize, f32)> = neighbours.collect();
    let last = neighbours.last().map_or(0.0, |&(_, score)| score);
    let span = neighbours.first().map_or(0.0, |&(_, score)| score - last).max(f32::EPSILON);
    let weight = |score: f32| 0.01 + f64::from((score - last) / span);
    let total: f64 = neighbours.iter().map(|&(_, score)| weight(score)).sum();
    let mut votes = Vec::new();
    for level in 1..=labels.levels() {
        let class_of = |item: usize| labels.row(item)[level - 1];
        let mut classes: Vec<(u32, f64)> = Vec::new();
        for &(item, score) in &neighbours {
            match classes.iter_mut().find(|(class, _)| *class == class_of(item)) {
                Some((_, sum)) => *sum += weight(score),
                None => classes.push((class_of(item), weight(score))),
            }
        }
        let Some((class, sum)) =
            classes.into_iter().reduce(|best, other| if other.1 > best.1 { other } else { best })
        else {
            break;
        };
        votes.push(Vote { level, class, share: sum / total });
        neighbours.retain(|&(item, _)| class_of(item) == class);
    }
    votes
}
