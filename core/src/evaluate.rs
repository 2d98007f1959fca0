//! Whole sets: every query ranks the gallery, and the scores are averaged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cosine::{Embeddings, Points, Similarity};
use crate::metrics::{asi, average_precision, hierarchical_ap, map_at_r, ndcg, recall};
use crate::ranking::{Ranking, TiePolicy};
use crate::relevance::Relevance;
use crate::taxonomy::{Labels, shared_level};
use crate::{Error, Kind, Result};

/// What is measured, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationConfig {
    /// The relevance of H-AP. Default: HAPPIER's eq. 4 with α = 1.
    pub relevance: Relevance,
    /// How equal scores are ranked. Default: in gallery order.
    pub ties: TiePolicy,
    /// Whether |Ω(L)| counts the query itself, as published numbers do. Default: no.
    pub count_query: bool,
    /// What items are ranked by. Default: cosine.
    pub similarity: Similarity,
    /// The ks of R@k. Default: 1.
    pub recall_at: Vec<usize>,
    /// How many queries are scored at once: memory is O(block · N) per thread. No result depends on it.
    /// Default: 64.
    pub block: usize,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self {
            relevance: Relevance::default(),
            ties: TiePolicy::default(),
            count_query: false,
            similarity: Similarity::default(),
            recall_at: vec![1],
            block: 64,
        }
    }
}

impl EvaluationConfig {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a relevance that does not fit (see [`Relevance::validate`]), or a k or block of 0.
    pub fn validate(&self, depth: usize) -> Result<()> {
        self.relevance.validate(depth)?;
        if self.block == 0 || self.recall_at.contains(&0) {
            return Err(Error::new(
                Kind::Config,
                "`block` or a k of `recall_at` is 0",
                "choose numbers of at least 1",
            ));
        }
        Ok(())
    }
}

/// Embeddings with their labels: queries or gallery.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// [N, d].
    pub embeddings: &'a Embeddings,
    /// [N, L].
    pub labels: &'a Labels,
}

/// The scores of one ranking. `None` where the query has no positive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryScores {
    /// The query's place in its set, from 0.
    pub query: usize,
    /// [H-AP](hierarchical_ap).
    pub h_ap: Option<f64>,
    /// [NDCG](ndcg).
    pub ndcg: Option<f64>,
    /// [ASI](asi).
    pub asi: Option<f64>,
    /// The scores at levels 1 … L.
    pub levels: Vec<LevelScores>,
}

/// The scores of one ranking at one level. `None` where the query has no positive there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelScores {
    /// [AP](average_precision).
    pub ap: Option<f64>,
    /// [mAP@R](map_at_r).
    pub map_at_r: Option<f64>,
    /// [R@k](recall) for each k asked for.
    pub recall: BTreeMap<usize, Option<f64>>,
}

impl QueryScores {
    /// Every metric of one ranking.
    pub fn of(query: usize, ranking: &Ranking, config: &EvaluationConfig) -> Self {
        let at_level = |level| LevelScores {
            ap: average_precision(ranking, level),
            map_at_r: map_at_r(ranking, level),
            recall: config.recall_at.iter().map(|&k| (k, recall(ranking, level, k))).collect(),
        };
        Self {
            query,
            h_ap: hierarchical_ap(ranking, &config.relevance),
            ndcg: ndcg(ranking),
            asi: asi(ranking),
            levels: (1..=ranking.depth()).map(at_level).collect(),
        }
    }
}

/// Means over queries. A query without positives at a level is left out of that level's means, and each mean says
/// how many queries it is over; `None` when it is over none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it was measured.
    pub config: EvaluationConfig,
    /// The number of queries.
    pub queries: usize,
    /// The number of items that each query ranks.
    pub ranked: usize,
    /// Over all levels.
    pub overall: Overall,
    /// At levels 1 … L.
    pub levels: Vec<LevelReport>,
    /// The rows that the means are over, in the order of the queries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_query: Vec<QueryScores>,
}

/// The means over all levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// The queries with a positive at any level.
    pub queries: usize,
    /// Mean [H-AP](hierarchical_ap).
    pub h_ap: Option<f64>,
    /// Mean [NDCG](ndcg).
    pub ndcg: Option<f64>,
    /// Mean [ASI](asi).
    pub asi: Option<f64>,
}

/// The means at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelReport {
    /// The level's name.
    pub name: String,
    /// The queries with a positive at this level.
    pub queries: usize,
    /// Mean [AP](average_precision).
    pub ap: Option<f64>,
    /// Mean [mAP@R](map_at_r).
    pub map_at_r: Option<f64>,
    /// Mean [R@k](recall) for each k asked for.
    pub recall: BTreeMap<usize, Option<f64>>,
}

impl Report {
    /// The report over rows of scores. Rows of several shards of one query set, laid end to end, give the report
    /// of the whole set.
    pub fn new(levels: &[String], config: &EvaluationConfig, ranked: usize, rows: Vec<QueryScores>) -> Self {
        let level_report = |(place, name): (usize, &String)| {
            let scores = || rows.iter().map(|row| &row.levels[place]);
            LevelReport {
                name: name.clone(),
                queries: scores().filter(|scores| scores.ap.is_some()).count(),
                ap: mean(scores().map(|scores| scores.ap)),
                map_at_r: mean(scores().map(|scores| scores.map_at_r)),
                recall: config
                    .recall_at
                    .iter()
                    .map(|k| (*k, mean(scores().map(|scores| scores.recall[k]))))
                    .collect(),
            }
        };
        Self {
            config: config.clone(),
            queries: rows.len(),
            ranked,
            overall: Overall {
                queries: rows.iter().filter(|row| row.ndcg.is_some()).count(),
                h_ap: mean(rows.iter().map(|row| row.h_ap)),
                ndcg: mean(rows.iter().map(|row| row.ndcg)),
                asi: mean(rows.iter().map(|row| row.asi)),
            },
            levels: levels.iter().enumerate().map(level_report).collect(),
            per_query: rows,
        }
    }
}

/// Ranks the gallery for every query and reports every metric. Without a gallery each query ranks the other
/// queries, never itself.
///
/// `levels` names the levels, coarse → fine. Takes O(Q · N · d) time and O(block · N) memory per thread; with the
/// feature `parallel` blocks of queries run on all threads, with the very same result.
///
/// # Errors
///
/// [`Kind::Config`] for settings out of range; [`Kind::Taxonomy`] when labels, levels and embeddings do not fit
/// each other, there is nothing to rank, or no query has a positive at any level; [`Kind::Embeddings`] for
/// embeddings of different dimensions, or, naming its row, one that the similarity is not defined for.
pub fn evaluate(
    levels: &[String],
    queries: Labelled<'_>,
    gallery: Option<Labelled<'_>>,
    config: &EvaluationConfig,
) -> Result<Report> {
    let depth = levels.len();
    check_shapes(depth, "query", queries)?;
    config.validate(depth)?;
    let query_points = Points::new(config.similarity, queries.embeddings, "query")?;
    let gallery_points = match gallery {
        Some(gallery) => {
            check_shapes(depth, "gallery", gallery)?;
            check_dimensions(queries.embeddings.dimension(), gallery.embeddings.dimension())?;
            Some(Points::new(config.similarity, gallery.embeddings, "gallery")?)
        }
        None => None,
    };
    let leave_one_out = gallery.is_none();
    let points = gallery_points.as_ref().unwrap_or(&query_points);
    let labels = gallery.map_or(queries.labels, |gallery| gallery.labels);
    let (count, items) = (query_points.len(), points.len());

    let score_query = |query: usize, scores: &[f32]| {
        let itself = leave_one_out.then_some(query);
        let row = queries.labels.row(query);
        let others = scores.iter().enumerate().filter(|&(item, _)| Some(item) != itself);
        let scored = others.map(|(item, &score)| (score, shared_level(row, labels.row(item))));
        let ranking = Ranking::from_scores(depth, config.ties, scored).count_query(config.count_query);
        QueryScores::of(query, &ranking, config)
    };
    let block = config.block.min(count.max(1));
    let score_block = |number: usize| -> Vec<QueryScores> {
        let range = number * block..count.min((number + 1) * block);
        let scores = points.scores(&query_points, range.clone());
        range
            .zip(scores.chunks_exact(items.max(1)))
            .map(|(query, scores)| score_query(query, scores))
            .collect()
    };
    let rows = in_order(count.div_ceil(block), score_block).concat();

    let report = Report::new(levels, config, items - usize::from(leave_one_out && items > 0), rows);
    if report.overall.queries == 0 {
        return Err(Error::new(
            Kind::Taxonomy,
            format!("none of the {count} queries shares a class with any of the items that it ranks"),
            "check that queries and gallery are of the same taxonomy, and that classes have two items or more",
        ));
    }
    Ok(report)
}

/// `work` of 0 … `count` − 1, in this order, whatever order they run in.
fn in_order<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        (0..count).into_par_iter().map(work).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        (0..count).map(work).collect()
    }
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, count) = values.flatten().fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn check_shapes(depth: usize, set: &str, Labelled { embeddings, labels }: Labelled<'_>) -> Result<()> {
    if labels.len() == embeddings.len() && labels.levels() == depth {
        return Ok(());
    }
    Err(Error::new(
        Kind::Taxonomy,
        format!(
            "{} {set} embeddings, {} label rows of {} levels and {depth} level names do not fit",
            embeddings.len(),
            labels.len(),
            labels.levels()
        ),
        "give each embedding one label row, in the same order, with one label per level",
    ))
}

fn check_dimensions(queries: usize, gallery: usize) -> Result<()> {
    if queries == gallery {
        return Ok(());
    }
    Err(Error::new(
        Kind::Embeddings,
        format!("query embeddings have {queries} numbers, gallery embeddings {gallery}"),
        "embed both with the same encoder",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> Vec<String> {
        ["kind", "variety"].map(String::from).to_vec()
    }

    /// Five items on a circle: two of one variety, a cousin, and a stranger with its twin.
    fn circle() -> (Embeddings, Labels) {
        let angles = [0.0f32, 0.1, 0.5, 0.22, 0.27];
        let embeddings = angles.iter().flat_map(|angle| [angle.cos(), angle.sin()]).collect();
        let labels = vec![0, 0, 0, 0, 0, 1, 1, 2, 1, 2];
        (Embeddings::new(2, embeddings).unwrap(), Labels::new(2, labels).unwrap())
    }

    fn report(gallery: bool, config: &EvaluationConfig) -> Report {
        let (embeddings, labels) = circle();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        evaluate(&levels(), set, gallery.then_some(set), config).unwrap()
    }

    #[test]
    fn a_query_never_ranks_itself() {
        let report = report(false, &EvaluationConfig::default());
        assert_eq!((report.queries, report.ranked), (5, 4));
        // Query 0 finds its variety, two strangers, and its cousin.
        let first = &report.per_query[0];
        assert_eq!(first.levels[1].ap, Some(1.0));
        assert_eq!(first.levels[0].ap, Some((1.0 + 2.0 / 4.0) / 2.0));
    }

    #[test]
    fn with_a_gallery_all_of_it_is_ranked() {
        let report = report(true, &EvaluationConfig::default());
        assert_eq!((report.queries, report.ranked), (5, 5));
        assert_eq!(report.levels[1].recall[&1], Some(1.0));
    }

    #[test]
    fn a_query_without_positives_at_a_level_is_left_out_there_and_counted() {
        let report = report(false, &EvaluationConfig::default());
        assert_eq!(report.per_query[2].levels[1].ap, None);
        assert_eq!(report.levels[1].queries, 4);
        assert_eq!(report.levels[0].queries, 5);
        assert_eq!(report.overall.queries, 5);
        assert_eq!(report.levels[1].ap, Some((1.0 + 1.0 + 1.0 + 1.0) / 4.0));
    }

    #[test]
    fn no_result_depends_on_the_block() {
        let whole = report(false, &EvaluationConfig::default());
        for block in [1, 2, 3] {
            let blocks = report(false, &EvaluationConfig { block, ..EvaluationConfig::default() });
            assert_eq!(blocks.per_query, whole.per_query);
            assert_eq!(blocks.overall, whole.overall);
        }
    }

    #[test]
    fn rows_of_shards_merge_into_the_report_of_the_whole() {
        let whole = report(false, &EvaluationConfig::default());
        let (first, second) = whole.per_query.split_at(2);
        let merged = Report::new(&levels(), &whole.config, whole.ranked, [first, second].concat());
        assert_eq!(merged, whole);
    }

    #[test]
    fn sets_without_positives_or_of_unlike_shape_are_refused() {
        let config = EvaluationConfig::default();
        let (embeddings, labels) = circle();
        let all = Labelled { embeddings: &embeddings, labels: &labels };
        let two = Embeddings::new(2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let strangers = Labels::new(2, vec![7, 7, 8, 8]).unwrap();
        let others = Labelled { embeddings: &two, labels: &strangers };
        let fault = |levels: &[String], queries, gallery| {
            evaluate(levels, queries, gallery, &config).unwrap_err().message().to_owned()
        };
        assert!(fault(&levels(), all, Some(others)).contains("none of the 5 queries"));
        assert!(fault(&levels(), others, None).contains("none of the 2 queries"));
        assert!(
            fault(&levels(), Labelled { embeddings: &two, labels: &labels }, None).contains("do not fit")
        );
        assert!(fault(&levels()[..1], all, None).contains("1 level names"));

        let wide = Embeddings::new(4, vec![1.0; 8]).unwrap();
        assert!(fault(&levels(), all, Some(Labelled { embeddings: &wide, ..others })).contains("4"));
        let none = (Embeddings::new(2, vec![]).unwrap(), Labels::new(2, vec![]).unwrap());
        let none = Labelled { embeddings: &none.0, labels: &none.1 };
        assert!(fault(&levels(), none, None).contains("none of the 0 queries"));
        assert!(fault(&levels(), all, Some(none)).contains("none of the 5 queries"));
    }

    #[test]
    fn settings_out_of_range_or_unknown_are_refused() {
        for config in [
            EvaluationConfig { block: 0, ..EvaluationConfig::default() },
            EvaluationConfig { recall_at: vec![1, 0], ..EvaluationConfig::default() },
            EvaluationConfig { relevance: Relevance::Plain { alpha: -1.0 }, ..EvaluationConfig::default() },
        ] {
            assert_eq!(config.validate(2).unwrap_err().kind(), Kind::Config);
        }
        assert_eq!(serde_json::from_str::<EvaluationConfig>("{}").unwrap(), EvaluationConfig::default());
        assert!(serde_json::from_str::<EvaluationConfig>(r#"{"tie": "strict"}"#).is_err());
    }

    #[test]
    fn a_report_survives_json() {
        let report = report(false, &EvaluationConfig::default());
        let json = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(read.levels, report.levels);
        assert!(json.contains(r#""recall":{"1":"#), "{json}");
    }
}
