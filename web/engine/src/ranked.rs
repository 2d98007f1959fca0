//! The answer to one query: results, and either metrics or votes.

use akin_core::bundle::BestScores;
use akin_core::evaluate::{EvaluationConfig, QueryScores, gallery_ranking};
use akin_core::hamming::Codes;
use akin_core::metrics::Metric;
use akin_core::search::{Gallery, Hit, top_k};
use akin_core::taxonomy::{Labels, shared_interval};
use akin_core::votes::votes;

use crate::messages::{CodeTexts, Item, Likeness, MetricInfo, Metrics, Ranked};

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
        let shared_with = |item: usize| own.map(|(own, labels)| shared_interval(own, labels.row(item)));
        let votes = match (query.labels, known.labels) {
            (None, Some(labels)) => Some(votes(labels, &hits)),
            _ => None,
        };
        let metrics = own.map(|(own, labels)| {
            let evaluation = known.config.checked(labels.levels())?;
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
        Ok(Self { results, metrics, votes, likeness, codes })
    }
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
