//! The answer to one query: results, and either metrics or votes.

use akin_core::certainty::{BestScores, Calibration, Certain, Promise, VOTERS};
use akin_core::evaluate::{EvaluationConfig, QueryScores, gallery_ranking};
use akin_core::hamming::Codes;
use akin_core::metrics::Metric;
use akin_core::search::{Gallery, Hit, top_k};
use akin_core::taxonomy::Labels;
use akin_core::votes::votes;

use crate::messages::{Answered, CodeTexts, Item, Likeness, MetricInfo, Metrics, Ranked};

/// The promises that the page offers.
const PROMISES: [f64; 4] = [0.8, 0.9, 0.95, 0.99];

/// A query.
pub(crate) struct Query<'a> {
    pub(crate) embedding: &'a [f32],
    /// One class per level, coarse to fine; `None` where they are unknown.
    pub(crate) labels: Option<&'a Labels>,
    /// Its own position in the gallery, which is left out of the ranking.
    pub(crate) itself: Option<usize>,
}

/// A gallery with what is known of its items.
pub(crate) struct Known<'a> {
    pub(crate) gallery: &'a Gallery,
    /// The labels of all items, gallery first; `None` where no item has labels.
    pub(crate) labels: Option<&'a Labels>,
    pub(crate) best_scores: Option<&'a BestScores>,
    /// `None` where it was not measured.
    pub(crate) calibration: Option<&'a Calibration>,
    pub(crate) config: &'a EvaluationConfig,
}

impl Ranked {
    /// Ranks the gallery.
    pub(crate) fn new(known: &Known, query: &Query, k: usize) -> akin_core::Result<Self> {
        let scores = known.gallery.scores(query.embedding)?;
        let hits = top_k(&scores, k, query.itself);
        let likeness =
            known.best_scores.and_then(|own| own.unlike_below(Promise::default())).zip(hits.first()).map(
                |(unlike_below, &Hit { score: best, .. })| Likeness {
                    best,
                    unlike_below,
                    unlike: best < unlike_below,
                },
            );
        let own = query.labels.zip(known.labels);
        let shared_with = |item: usize| own.map(|(own, labels)| own.shared(0, labels, item));
        let votes = match (query.labels, known.labels) {
            (None, Some(labels)) => Some(votes(labels, &hits)),
            _ => None,
        };
        let answers = match (query.labels, known.labels, known.calibration) {
            (None, Some(labels), Some(calibration)) => {
                let voters = top_k(&scores, VOTERS, query.itself);
                Some(answers(&voters, labels, calibration, known.best_scores)?)
            }
            _ => None,
        };
        let metrics = own.map(|(own, labels)| {
            let evaluation = known.config.checked_for(labels)?;
            let ranking = gallery_ranking(&scores, labels, own, query.itself, known.config);
            let QueryScores { overall, levels, .. } = QueryScores::new(0, &ranking, &evaluation);
            let described = known.config.metrics.iter().copied().map(MetricInfo::new).collect();
            Ok(Metrics { described, overall, levels })
        });
        let metrics = metrics.transpose()?;
        let codes = known.gallery.codes().map(|codes| CodeTexts {
            query: Codes::from_signs(codes.bits(), query.embedding).text(0),
            results: hits.iter().map(|hit| codes.text(hit.item)).collect(),
        });
        let results = hits
            .into_iter()
            .map(|Hit { item, score }| {
                let shared = shared_with(item);
                let (shared_level, may_share) =
                    (shared.map(|shared| shared.least), shared.map(|shared| shared.most));
                Item { item, score, shared_level, may_share }
            })
            .collect();
        Ok(Self { results, metrics, votes, answers, likeness, codes })
    }
}

/// The answers at [`PROMISES`].
fn answers(
    voters: &[Hit],
    labels: &Labels,
    calibration: &Calibration,
    best_scores: Option<&BestScores>,
) -> akin_core::Result<Vec<Answered>> {
    let votes = votes(labels, voters);
    let speak = |certain: &Certain| {
        voters.iter().filter(|hit| labels.row(hit.item)[certain.level - 1] == certain.class).count()
    };
    let answer = |share: f64| {
        let promise = Promise::new(share)?;
        let is_unlike = |hit: &Hit| best_scores.is_some_and(|own| own.is_unlike(hit.score, promise));
        let answer = calibration.answer(&votes, voters.first().is_some_and(is_unlike), promise);
        let probable = answer.probable().copied();
        let speakers = answer.levels.iter().map(speak).collect();
        Ok(Answered { promise: share, answer, probable, speakers, voters: voters.len() })
    };
    PROMISES.into_iter().map(answer).collect()
}

impl MetricInfo {
    fn new(metric: Metric) -> Self {
        let entry = metric.entry();
        Self {
            name: metric.to_string(),
            label: metric.label(),
            title: entry.title,
            unit: entry.unit,
            greater_is_better: entry.greater_is_better,
            per_level: entry.per_level,
        }
    }
}
