//! The answer to one query: its neighbours, and metrics where its labels are known.

use akin_core::certainty::VOTERS;
use akin_core::evaluate::{EvaluationConfig, QueryScores, gallery_ranking};
use akin_core::hamming::Codes;
use akin_core::metrics::Metric;
use akin_core::neighbours::Known;
use akin_core::search::{Gallery, top_k};
use akin_core::taxonomy::Labels;

use crate::messages::{CodeTexts, MetricInfo, Metrics, Ranked};

/// A query.
pub(crate) struct Query<'a> {
    pub(crate) embedding: &'a [f32],
    /// One class per level, coarse to fine; `None` where they are unknown.
    pub(crate) labels: Option<&'a Labels>,
    /// Its own position in the gallery, which is left out of the ranking.
    pub(crate) itself: Option<usize>,
}

/// A gallery with what is known of its items.
pub(crate) struct KnownGallery<'a> {
    pub(crate) gallery: &'a Gallery,
    pub(crate) known: Known<'a>,
    pub(crate) config: &'a EvaluationConfig,
}

impl Ranked {
    /// Ranks the gallery.
    pub(crate) fn new(asked: &KnownGallery, query: &Query, k: usize) -> akin_core::Result<Self> {
        let KnownGallery { gallery, known, config } = asked;
        let scores = gallery.scores(query.embedding)?;
        let hits = top_k(&scores, k.max(VOTERS), query.itself);
        let neighbours = known.neighbours(&hits, k, query.labels);
        let metrics = query.labels.zip(known.labels).map(|(own, labels)| {
            let evaluation = config.checked_for(labels)?;
            let ranking = gallery_ranking(&scores, labels, own, query.itself, config);
            let QueryScores { overall, levels, .. } = QueryScores::new(0, &ranking, &evaluation);
            let described = config.metrics.iter().copied().map(MetricInfo::new).collect();
            Ok(Metrics { described, overall, levels })
        });
        let metrics = metrics.transpose()?;
        let codes = gallery.codes().map(|codes| CodeTexts {
            query: Codes::from_signs(codes.bits(), query.embedding).text(0),
            results: neighbours.results.iter().map(|result| codes.text(result.item)).collect(),
        });
        Ok(Self { neighbours, metrics, codes })
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
