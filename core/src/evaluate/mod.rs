//! Evaluation of whole sets: every query ranks the gallery, and the scores are averaged.
//!
//! Embeddings are in memory, or are read by position from a source of [rows](Rows), so that the gallery can be larger
//! than memory. A ranking is the ranks of the positives, and these follow from the numbers of strangers between them:
//!
//! 1. the positives, which are in the query's class of level 1, are sorted by their scores;
//! 2. the strangers are counted into the gaps between the positives.
//!
//! If the gallery fits into a block, a thread computes the scores of up to [`block`](EvaluationConfig::block) queries with
//! all items, and ranks one query after the other. Otherwise, for as many queries as fit into
//! [`Execution::memory`], the scores of the positives are computed first, and then the gallery goes by in blocks whose
//! strangers are counted.
//!
//! The score of a query and an item is summed in one fixed order, and counts are whole numbers. So no digit depends on
//! blocks, groups of queries or threads.
//!
//! # What a metric needs
//!
//! All metrics are computed from the P positives of a query, each with its rank and level, and from the number of items
//! at each level. None needs a sort of the gallery.
//!
//! | metrics | need of a query | time |
//! |---|---|---|
//! | R@k, MRR | the rank of the first positive of the level | O(P) |
//! | P@k, R-precision, AP@k, mAP@R, H-R@k, H-P@k | the ranks of the positives up to k, or R | O(P) |
//! | AP, Σ wAP, H-AP with its curve | the ranks and levels of all positives | O(P · L) |
//! | NDCG, ASI | the same, and the number of positives at each level for the ideal list | O(P) |
//! | hierarchical precision, AHP, mAHP at k | the positives up to k, and the ideal list | O(k) |
//! | mistake severity | the positives before the first mistake | O(P) |
//!
//! # The floor, and what is left above it
//!
//! Q queries, N items and d numbers take Q · N · d multiply-adds, whatever the method, as long as it is exact: that is the
//! time of a matrix product. The gallery has to be read once: 4 · N · d bytes. The rest, per query:
//!
//! - if the gallery has several blocks, the scores of its P positives are computed twice: P/N of its product;
//! - every score falls into a bucket and is compared with two positives: a constant time for each pair, which
//!   weighs the less the larger d is;
//! - its positives are sorted, O(P log P), and measured, O(P · L), with a division or a logarithm for each;
//! - if the gallery has several blocks, they are read and prepared again for each group of queries: N · d numbers.
//!
//! `akin bench eval` measures all of it beside a product. Measured in processor time, beside the product of OpenBLAS (two
//! threads of an AMD EPYC with AVX-512, 2026-11-28, 512 numbers, 3 levels): 1.3 times the product for 20,000 items that
//! rank each other, 1,667 of them positives of a query, and for 60,502 items with 5,042. For the 20,000 items, 48 % of
//! the time is the product in the fixed order and 19 % the counting. The time of a pair grows where queries have tens of
//! thousands of positives, because these and their buckets leave the cache: 2.3 times the product for 10,000 queries
//! among a million items of 256 numbers, with 83,000.
//!
//! A device such as a GPU can take over the product ([`Execution::device`]). It adds up in the same order, so that no digit
//! depends on it: see [`crate::pair_sums`].
//!
//! Memory: 12 bytes for each positive of the queries of a group, and a table of at most 512 KiB for each query, or the
//! same for one query of each thread if the gallery fits into a block; two blocks of the gallery, of
//! [`gallery_memory`](Execution::gallery_memory) together; for each thread the scores of a block, at most 32 MiB, and 8
//! bytes for each of its items; and for each item of the gallery 4 bytes for its place, 8 · L for its classes, which are
//! stored in the order of the gallery and again by the class of level 1, and, for cosine and the Poincaré ball, 8 for its
//! length.

mod by_class;
mod decomposability;
mod dyml;
mod gap_bounds;
mod left_out;
mod nearest;
#[cfg(not(target_family = "wasm"))]
mod on_device;
mod paired_test;
mod rankings;
mod relatives;
mod report;
mod tree_likeness;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::rankings::{PointSet, Search};
use crate::embeddings::{Embeddings, Rows};
use crate::metrics::Metric;
#[cfg(not(target_family = "wasm"))]
use crate::pair_sums::PairSums;
use crate::ranking::{KnownLabels, Ranking, TiePolicy};
use crate::relevance::{CheckedRelevance, Relevance};
use crate::similarity::Similarity;
use crate::statistics::Bootstrap;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

pub use by_class::{ByClass, ClassReport};
pub use decomposability::{Decomposability, DecomposabilityGap, decomposability_gap};
pub use dyml::{DYML_METRICS, DymlRow, LabelSets, dyml};
pub use gap_bounds::{BatchCounts, calibrated_gap_bound, gap_bound};
pub use left_out::{Sets, evaluate_without_groups, evaluate_without_junk};
pub use nearest::nearest;
pub use paired_test::{PairedTest, paired_tests};
pub use report::{LevelReport, Means, Open, OpenMeans, QueryScores, Report, Scores};
pub use tree_likeness::{MeanHyperbolicity, TreeLikeness, mean_hyperbolicity};

/// Which metrics are measured, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationConfig {
    /// The metrics to report, in the order of tables. Default: `h_ap`, `ndcg`, `asi`, and per level `ap`, `map_at_r`
    /// and `recall@1`.
    pub metrics: Vec<Metric>,
    /// The relevance of H-AP. Default: HAPPIER's eq. 4 with α = 1.
    pub relevance: Relevance,
    /// How equal scores are ranked. Default: in gallery order.
    pub ties: TiePolicy,
    /// Whether |Ω(L)| counts the query itself, as in published numbers. Default: false.
    pub count_query: bool,
    /// The similarity that items are ranked by. Default: cosine.
    pub similarity: Similarity,
    /// Draws confidence intervals of the means. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub bootstrap: Option<Bootstrap>,
    /// Measures how much higher AP is in batches than over the whole set, for a set that ranks itself. Default: not
    /// measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub decomposability_gap: Option<Decomposability>,
    /// Measures how tree-like the distances of the ranked items are: their δ-hyperbolicity. Default: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub hyperbolicity: Option<TreeLikeness>,
    /// The most queries that a thread scores at once with a block of the gallery. No result depends on it. Default: 64.
    pub block: usize,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        let metrics = ["h_ap", "ndcg", "asi", "ap", "map_at_r", "recall@1"].map(Metric::named);
        Self {
            metrics: metrics.to_vec(),
            relevance: Relevance::default(),
            ties: TiePolicy::default(),
            count_query: false,
            similarity: Similarity::default(),
            bootstrap: None,
            decomposability_gap: None,
            hyperbolicity: None,
            block: 64,
        }
    }
}

/// More resamples do not make an interval better, and would take hours.
const MOST_RESAMPLES: usize = 1_000_000;

impl EvaluationConfig {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a relevance that does not fit (see [`Relevance::checked`]), no metric or the same one
    /// twice, a block of 0, a bootstrap without resamples or with more than a million, a hyperbolicity out of range, or
    /// one for a similarity that it is not defined for.
    pub fn checked(&self, depth: usize) -> Result<CheckedEvaluation> {
        self.with_relevance(self.relevance.checked(depth)?)
    }

    /// As [`checked`](Self::checked), for labels that may have a matrix of relevance.
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked).
    pub fn checked_for(&self, labels: &Labels) -> Result<CheckedEvaluation> {
        self.with_relevance(self.relevance.checked_for(labels)?)
    }

    fn with_relevance(&self, relevance: CheckedRelevance) -> Result<CheckedEvaluation> {
        let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
        if self.block == 0 {
            return refuse("`block` is 0".into(), "choose a number of at least 1");
        }
        if self.bootstrap.is_some_and(|bootstrap| bootstrap.resamples == 0) {
            return refuse(
                "the bootstrap has 0 resamples, which give no interval".into(),
                "choose at least 1; 1000 is usual",
            );
        }
        if let Some(resamples) = self
            .bootstrap
            .map(|bootstrap| bootstrap.resamples)
            .filter(|&resamples| resamples > MOST_RESAMPLES)
        {
            return refuse(
                format!("the bootstrap has {resamples} resamples, which would take too long"),
                "choose at most 1000000; 1000 is usual",
            );
        }
        if let Some(hyperbolicity) = self.hyperbolicity {
            hyperbolicity.check(self.similarity)?;
        }
        if self.metrics.is_empty() {
            return refuse(
                "`metrics` is empty".into(),
                "name what to measure, for example h_ap and recall@1",
            );
        }
        let twice = (1..).zip(&self.metrics).find(|&(next, metric)| self.metrics[next..].contains(metric));
        if let Some((_, metric)) = twice {
            return refuse(format!("`metrics` names {metric} twice"), "name it once");
        }
        Ok(CheckedEvaluation { config: self.clone(), relevance })
    }

    /// Checks that sets of this size can be measured: `count` queries, which rank each other or, if
    /// `separate_gallery`, a gallery of its own.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a decomposability gap with a separate gallery, or in batches of fewer than 2 items or of
    /// more items than there are.
    pub fn check_sets(&self, count: usize, separate_gallery: bool) -> Result<()> {
        let Some(Decomposability { batch, .. }) = self.decomposability_gap else { return Ok(()) };
        if separate_gallery {
            return Err(Error::new(
                Kind::Config,
                "the decomposability gap is defined for a set that ranks itself, and there is a separate gallery",
                "leave out the gallery or the decomposability gap",
            ));
        }
        decomposability::check_batch(batch, count)
    }
}

/// An [`EvaluationConfig`] whose settings fit a taxonomy of L levels. Only [`EvaluationConfig::checked`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedEvaluation {
    config: EvaluationConfig,
    relevance: CheckedRelevance,
}

impl CheckedEvaluation {
    /// The settings.
    pub fn config(&self) -> &EvaluationConfig {
        &self.config
    }

    /// The relevance of H-AP.
    pub fn relevance(&self) -> &CheckedRelevance {
        &self.relevance
    }
}

/// How an evaluation runs. No result depends on it.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The bytes for the rankings of the queries that are ranked at once, if the gallery has several blocks. It is read
    /// once for each such group. A group has at least one query, however many bytes that takes: at least 12 for each of its
    /// positives. Default: 256 MiB.
    pub memory: usize,
    /// The bytes for the gallery items that are in memory at once, in two blocks. A block has at least one item, and at
    /// most 131,072. Default: 256 MiB.
    pub gallery_memory: usize,
    /// Is called from several threads with the work that has been done since its last call. Default: nothing.
    pub progress: &'a (dyn Fn(Step) + Sync),
    /// Whether the caller wants the work to stop. Is called often, from several threads. Default: it does not.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Adds up for the scores of all items, except for Hamming's similarity. The scores of the positives are always those
    /// of the processor. Default: the processor.
    #[cfg(not(target_family = "wasm"))]
    pub device: Option<&'a dyn PairSums>,
}

/// A piece of work of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// This number of embeddings has been checked. The first query is ranked after all queries and the gallery are checked.
    Checked(usize),
    /// The ranking of this number of queries is done. The decomposability gap ranks every query twice more.
    Ranked(usize),
    /// The sums of this number of pairs, which were left to a device, were computed on the processor, because an embedding
    /// is [delicate](crate::pair_sums::is_delicate).
    LeftToProcessor(u64),
}

impl Default for Execution<'_> {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            gallery_memory: 256 << 20,
            progress: &|_| {},
            is_stopped: &|| false,
            #[cfg(not(target_family = "wasm"))]
            device: None,
        }
    }
}

impl fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, gallery_memory, .. } = self;
        let mut fields = f.debug_struct("Execution");
        fields.field("memory", memory).field("gallery_memory", gallery_memory).finish_non_exhaustive()
    }
}

/// Embeddings with their labels: queries or gallery. The embeddings are in memory, or are read by position as
/// `dyn Rows`.
#[derive(Debug)]
pub struct Labelled<'a, E: ?Sized + 'a = Embeddings> {
    /// [N, d].
    pub embeddings: &'a E,
    /// [N, L].
    pub labels: &'a Labels,
}

// Derived, they would need `E: Clone`.
impl<E: ?Sized> Clone for Labelled<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: ?Sized> Copy for Labelled<'_, E> {}

impl<'a> From<Labelled<'a>> for Labelled<'a, dyn Rows> {
    fn from(Labelled { embeddings, labels }: Labelled<'a>) -> Self {
        Self { embeddings, labels }
    }
}

/// Ranks the gallery for every query and reports every metric. Without a gallery each query ranks the other queries,
/// never itself.
///
/// `levels` names the levels, coarse → fine. Takes O(Q · N · d) time. With the feature `parallel` all threads work, with
/// the same result. [`Evaluation`] says how much memory it takes, and evaluates galleries that do not fit into memory.
///
/// # Errors
///
/// As [`Evaluation::report`].
pub fn evaluate(
    levels: &[String],
    queries: Labelled<'_>,
    gallery: Option<Labelled<'_>>,
    config: &EvaluationConfig,
) -> Result<Report> {
    let (queries, gallery) = (queries.into(), gallery.map(Into::into));
    Evaluation { levels, queries, gallery, places: None, config, execution: Execution::default() }.report()
}

/// As [`evaluate`], for queries that are items of the gallery: query i is the item in row `places[i]`, and ranks all
/// other items.
///
/// # Errors
///
/// As [`Evaluation::report`].
pub fn evaluate_among(
    levels: &[String],
    queries: Labelled<'_>,
    gallery: Labelled<'_>,
    places: &[usize],
    config: &EvaluationConfig,
) -> Result<Report> {
    let (queries, gallery, places) = (queries.into(), Some(gallery.into()), Some(places));
    Evaluation { levels, queries, gallery, places, config, execution: Execution::default() }.report()
}

/// An evaluation whose embeddings are in memory or are read by position, so that the gallery can be larger than memory.
///
/// Every embedding is read once to be checked. Then a gallery that fits into a block is read once more, and a larger one
/// once for each group of queries whose rankings fit into [`Execution::memory`]. A ranking takes 12 bytes for each
/// positive of the query and at most 512 KiB besides.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    /// The names of the levels, coarse → fine.
    pub levels: &'a [String],
    /// The queries.
    pub queries: Labelled<'a, dyn Rows>,
    /// What they rank. Without it each query ranks the other queries.
    pub gallery: Option<Labelled<'a, dyn Rows>>,
    /// The row of each query in the gallery, if they are there. A query never ranks itself.
    pub places: Option<&'a [usize]>,
    /// What is measured.
    pub config: &'a EvaluationConfig,
    /// How it runs.
    pub execution: Execution<'a>,
}

impl Evaluation<'_> {
    /// Ranks the gallery for every query and reports every metric.
    ///
    /// # Errors
    ///
    /// - [`Kind::Config`] for settings out of range; a decomposability gap with a separate gallery; places without a
    ///   gallery, not one for each query, or not rows of the gallery; a gallery of 2³² items;
    /// - [`Kind::Taxonomy`] when labels, levels and embeddings do not fit each other, there is nothing to rank, or no
    ///   query has a positive at any level;
    /// - [`Kind::Embeddings`] for embeddings of different dimensions, that cannot be read, that are not finite, or that
    ///   the similarity is not defined for; the error names the row;
    /// - [`Kind::Stopped`] when the caller has stopped it.
    pub fn report(&self) -> Result<Report> {
        let config = self.config;
        let mut report = self.search(|search, checked| {
            let (count, items) = (search.queries.len(), search.gallery.len());
            let rows = self.rows(search, checked, 0..count)?;
            let itself = usize::from(!matches!(search.places, Places::Apart) && items > 0);
            let report = Report::new(self.levels, checked, items - itself, rows);
            if report.overall.queries == 0 {
                return Err(Error::new(
                    Kind::Taxonomy,
                    match count {
                        1 => "the query shares no class with an item that it ranks".to_owned(),
                        _ => format!("none of the {count} queries shares a class with an item that it ranks"),
                    },
                    "check that queries and gallery use the same taxonomy, and that classes have at least two items",
                ));
            }
            Ok(report)
        })?;
        if let Some(settings) = config.decomposability_gap {
            let gap = decomposability::gap_of_rows(self.queries, config, settings, &self.execution)?;
            report.decomposability_gap = Some(gap);
        }
        if let Some(settings) = config.hyperbolicity {
            let ranked = self.gallery.as_ref().unwrap_or(&self.queries).embeddings;
            report.hyperbolicity = Some(mean_hyperbolicity(ranked, config.similarity, settings)?);
        }
        Ok(report)
    }

    /// The [rows](Report::per_query) of some queries, also if none has a positive. So several machines can share the
    /// queries of one evaluation: [`Report::new`] gives the report of all their rows.
    ///
    /// # Errors
    ///
    /// As [`report`](Self::report), except that no query needs a positive.
    ///
    /// # Panics
    ///
    /// There are no such queries.
    pub fn query_scores(&self, some: Range<usize>) -> Result<Vec<QueryScores>> {
        self.search(|search, checked| self.rows(search, checked, some))
    }

    fn rows(
        &self,
        search: &Search<'_>,
        checked: &CheckedEvaluation,
        some: Range<usize>,
    ) -> Result<Vec<QueryScores>> {
        search.rank(some, checked.config(), &self.execution, |query, ranking| {
            QueryScores::new(query, ranking, checked)
        })
    }

    /// Checks everything, and calls `work`.
    fn search<T>(&self, work: impl FnOnce(&Search<'_>, &CheckedEvaluation) -> Result<T>) -> Result<T> {
        let Self { levels, queries, gallery, places, config, ref execution } = *self;
        check_shapes(levels.len(), "query", queries)?;
        let checked = config.checked_for(queries.labels)?;
        config.check_sets(queries.labels.len(), gallery.is_some())?;
        execution.check(queries.labels.len().max(gallery.map_or(0, |gallery| gallery.labels.len())))?;
        let (count, items) = (queries.labels.len(), gallery.map_or(0, |gallery| gallery.labels.len()));
        let fits = |places: &[usize]| places.len() == count && places.iter().all(|&place| place < items);
        if let Some(places) = places.filter(|places| !fits(places)) {
            return Err(Error::new(
                Kind::Config,
                format!("{count} queries have {} places among {items} gallery items", places.len()),
                "give each query its row in the gallery, counted from 0",
            ));
        }
        let query_labels = queries.labels;
        if let Some(gallery) = gallery {
            check_shapes(levels.len(), "gallery", gallery)?;
            check_dimensions(queries.embeddings.dimension(), gallery.embeddings.dimension())?;
        }
        let queries = PointSet::new(config.similarity, queries.embeddings, "query", execution)?;
        let Some(gallery) = gallery else {
            let (gallery, labels, places) = (&queries, query_labels, Places::Same);
            return work(&Search { queries: &queries, query_labels, gallery, labels, places }, &checked);
        };
        let points = PointSet::new(config.similarity, gallery.embeddings, "gallery", execution)?;
        let places = places.map_or(Places::Apart, Places::Among);
        work(
            &Search { queries: &queries, query_labels, gallery: &points, labels: gallery.labels, places },
            &checked,
        )
    }
}

impl Execution<'_> {
    /// The same on the processor, without reports of progress: for a part of an evaluation.
    fn quiet(&self) -> Self {
        Self {
            progress: &|_| {},
            #[cfg(not(target_family = "wasm"))]
            device: None,
            ..*self
        }
    }

    /// An error if the caller wants the work to stop.
    fn go_on(&self) -> Result<()> {
        match (self.is_stopped)() {
            false => Ok(()),
            true => Err(Error::new(Kind::Stopped, "the evaluation was stopped", "start it again")),
        }
    }

    /// The number of items in a block of a gallery of this dimension.
    fn block(&self, dimension: usize) -> usize {
        /// The scores of 64 queries with this number of items take 32 MiB for each thread.
        const MOST: usize = 1 << 17;
        (self.gallery_memory / (2 * dimension * size_of::<f32>())).clamp(1, MOST)
    }

    /// Checks that sets of up to `items` items are not too large.
    fn check(&self, items: usize) -> Result<()> {
        if u32::try_from(items).is_err() {
            return Err(Error::new(
                Kind::Config,
                format!("{items} items are too many for one evaluation"),
                "evaluate at most 4,294,967,295",
            ));
        }
        Ok(())
    }
}

/// One query's ranking of the gallery: `scores[i]` is the score of item i, which has row i of `labels`. The query has
/// the first row of `query`, and `itself` is its row if it is an item of the gallery, which it then does not rank.
///
/// # Panics
///
/// When `labels` has fewer rows than there are scores, `query` has none, or a score is not finite.
pub fn gallery_ranking(
    scores: &[f32],
    labels: &Labels,
    query: &Labels,
    itself: Option<usize>,
    config: &EvaluationConfig,
) -> Ranking {
    let others = scores.iter().enumerate().filter(|&(item, _)| Some(item) != itself);
    let scored = others.map(|(item, &score)| (score, query.shared(0, labels, item)));
    let ranking = Ranking::from_intervals(labels.levels(), config.ties, scored);
    let ranking = ranking.count_query(config.count_query);
    match known_shares(labels, query.are_known()) {
        Some(shares) => ranking.with_known(KnownLabels { query: query.known(0), shares }),
        None => ranking,
    }
}

/// The share of a gallery whose label is known at each level. `None` if all are, and those of the queries, too.
fn known_shares(gallery: &Labels, queries_are_known: bool) -> Option<Vec<f64>> {
    let count = gallery.len().max(1) as f64;
    // An unknown level of all items has no share, and decides no pair.
    let share = |known: usize| known.max(1) as f64 / count;
    (!queries_are_known || !gallery.are_known())
        .then(|| gallery.known_counts().into_iter().map(share).collect())
}

/// Where the queries are in the gallery. A query never ranks itself.
enum Places<'a> {
    /// Query set and gallery are separate.
    Apart,
    /// The queries are the gallery.
    Same,
    /// Each query is in this row.
    Among(&'a [usize]),
}

impl Places<'_> {
    /// The row of a query in the gallery, if it is there.
    fn row(&self, query: usize) -> Option<usize> {
        match self {
            Self::Apart => None,
            Self::Same => Some(query),
            Self::Among(rows) => Some(rows[query]),
        }
    }
}

fn check_shapes(
    depth: usize,
    set: &str,
    Labelled { embeddings, labels }: Labelled<'_, dyn Rows>,
) -> Result<()> {
    if labels.len() == embeddings.len() && labels.levels() == depth {
        return Ok(());
    }
    Err(Error::new(
        Kind::Taxonomy,
        format!(
            "there are {} {set} embeddings, {} label rows of {} levels and {depth} level names",
            embeddings.len(),
            labels.len(),
            labels.levels()
        ),
        "give each embedding one row of labels, in the same order, with one label per named level",
    ))
}

fn check_dimensions(queries: usize, gallery: usize) -> Result<()> {
    if queries == gallery {
        return Ok(());
    }
    Err(Error::new(
        Kind::Embeddings,
        format!("query embeddings have {queries} numbers, but gallery embeddings have {gallery}"),
        "embed both with the same encoder",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Permutations;

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

    const AP: Metric = Metric::named("ap");
    const ASI: Metric = Metric::named("asi");
    const H_AP: Metric = Metric::named("h_ap");
    const MAP_AT_R: Metric = Metric::named("map_at_r");
    const R_AT_1: Metric = Metric::named("recall@1");

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
        assert_eq!(first.levels[1].get(AP), Some(1.0));
        assert_eq!(first.levels[0].get(AP), Some((1.0 + 2.0 / 4.0) / 2.0));
    }

    #[test]
    fn a_gallery_of_its_own_is_ranked_whole() {
        let report = report(true, &EvaluationConfig::default());
        assert_eq!((report.queries, report.ranked), (5, 5));
        assert_eq!(report.at(2).get(R_AT_1), Some(1.0));
    }

    #[test]
    fn a_query_without_positives_at_a_level_is_left_out_there_and_counted() {
        let report = report(false, &EvaluationConfig::default());
        assert_eq!(report.per_query[2].at(2).get(AP), None);
        assert_eq!(report.at(2).queries, 4);
        assert_eq!(report.at(1).queries, 5);
        assert_eq!(report.overall.queries, 5);
        assert_eq!(report.at(2).get(AP), Some((1.0 + 1.0 + 1.0 + 1.0) / 4.0));
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
    fn every_query_is_counted_when_it_is_ranked() {
        let (embeddings, labels) = circle();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let config = EvaluationConfig { block: 2, ..EvaluationConfig::default() };
        let ranked = std::sync::Mutex::new(Vec::new());
        let checked = std::sync::Mutex::new(0);
        let count = |step| match step {
            Step::Checked(items) => *checked.lock().unwrap() += items,
            Step::Ranked(queries) => ranked.lock().unwrap().push(queries),
            Step::LeftToProcessor(_) => unreachable!("there is no device"),
        };
        let evaluation = |places| {
            Evaluation {
                levels: &levels(),
                queries: set.into(),
                gallery: None,
                places,
                config: &config,
                execution: Execution { progress: &count, ..Execution::default() },
            }
            .report()
        };
        let report = evaluation(None).unwrap();
        assert_eq!(report, evaluate(&levels(), set, None, &config).unwrap());
        let mut blocks = ranked.lock().unwrap().clone();
        blocks.sort_unstable();
        assert_eq!(blocks, [1, 2, 2]);
        assert_eq!(*checked.lock().unwrap(), 5);
        ranked.lock().unwrap().clear();
        let decomposability_gap = Some(Decomposability { batch: 2, seed: 0 });
        let with_gap = EvaluationConfig { decomposability_gap, ..config.clone() };
        let execution = Execution { progress: &count, ..Execution::default() };
        let queries = set.into();
        let (gallery, places, levels) = (None, None, &levels());
        let with_gap = Evaluation { levels, queries, gallery, places, config: &with_gap, execution };
        with_gap.report().unwrap();
        assert_eq!(ranked.lock().unwrap().iter().sum::<usize>(), 3 * 5);
        assert!(evaluation(Some(&[0])).is_err());
    }

    #[test]
    fn rows_of_shards_merge_into_the_report_of_the_whole() {
        let whole = report(false, &EvaluationConfig::default());
        let (first, second) = whole.per_query.split_at(2);
        let merged =
            Report::new(&levels(), &whole.config.checked(2).unwrap(), whole.ranked, [first, second].concat());
        assert_eq!(merged, whole);
    }

    #[test]
    fn sets_that_do_not_fit_or_have_no_positives_are_refused() {
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
            fault(&levels(), Labelled { embeddings: &two, labels: &labels }, None).contains("5 label rows")
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
            EvaluationConfig { metrics: vec![], ..EvaluationConfig::default() },
            EvaluationConfig { metrics: vec![AP, H_AP, AP], ..EvaluationConfig::default() },
            EvaluationConfig {
                bootstrap: Some(Bootstrap { resamples: 0, seed: 0 }),
                ..EvaluationConfig::default()
            },
            EvaluationConfig { relevance: Relevance::Plain { alpha: -1.0 }, ..EvaluationConfig::default() },
        ] {
            assert_eq!(config.checked(2).unwrap_err().kind(), Kind::Config);
        }
        assert_eq!(serde_json::from_str::<EvaluationConfig>("{}").unwrap(), EvaluationConfig::default());
        assert!(serde_json::from_str::<EvaluationConfig>(r#"{"tie": "strict"}"#).is_err());
        let ball = r#"{"similarity": {"poincare": {"curvature": 0}}}"#;
        let error = serde_json::from_str::<EvaluationConfig>(ball).unwrap_err().to_string();
        assert!(error.contains("the curvature of the Poincaré ball is 0"), "{error}");
    }

    #[test]
    fn a_report_survives_json() {
        let config = EvaluationConfig {
            bootstrap: Some(Bootstrap::default()),
            decomposability_gap: Some(Decomposability { batch: 2, seed: 0 }),
            hyperbolicity: Some(TreeLikeness { points: 4, draws: 3, seed: 0 }),
            ..EvaluationConfig::default()
        };
        let report = report(false, &config);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["overall"]["h_ap"], report.overall.get(H_AP).unwrap());
        assert_eq!(json["levels"][1]["recall@1"], 1.0);
        assert_eq!(json["levels"][1]["interval"]["recall@1"], serde_json::json!([1.0, 1.0]));
        assert_eq!(json["per_query"][2]["levels"][1]["ap"], serde_json::Value::Null);
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains(r#""overall":{"queries":5,"h_ap":"#), "{text}");
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!((read.levels.len(), &read.config), (2, &config));
    }

    #[test]
    fn the_metrics_of_the_config_are_reported() {
        let metrics = ["mrr", "precision@2", "h_recall@3", "asi"].map(|name| name.parse().unwrap()).to_vec();
        let report = report(false, &EvaluationConfig { metrics, ..EvaluationConfig::default() });
        let names =
            |means: &Means| means.scores.iter().map(|(metric, _)| metric.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&report.overall), ["h_recall@3", "asi"]);
        assert_eq!(names(report.at(1)), ["precision@2", "mrr"]);
        assert_eq!((report.overall.queries, report.at(2).queries), (5, 4));
        assert_eq!(report.overall.get(H_AP), None);
    }

    #[test]
    fn a_mean_over_fewer_queries_says_so() {
        let relevance = Relevance::WeightedAp { weights: vec![0.0, 1.0] };
        let report = report(false, &EvaluationConfig { relevance, ..EvaluationConfig::default() });
        assert_eq!((report.overall.queries, report.overall.fewer[&H_AP]), (5, 4));
        assert_eq!(report.overall.fewer.len(), 1);
    }

    #[test]
    fn queries_among_the_gallery_do_not_rank_themselves() {
        let (embeddings, labels) = circle();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let config = EvaluationConfig::default();
        let whole = report(false, &config);
        let (rows, row_labels) = (embeddings.values(), labels.select(&[4, 1]));
        let queries = Embeddings::new(2, [&rows[8..10], &rows[2..4]].concat()).unwrap();
        let queries = Labelled { embeddings: &queries, labels: &row_labels };
        let some = evaluate_among(&levels(), queries, set, &[4, 1], &config).unwrap();
        assert_eq!((some.queries, some.ranked), (2, 4));
        assert_eq!(some.per_query[0].levels, whole.per_query[4].levels);
        assert_eq!(some.per_query[1].levels, whole.per_query[1].levels);
        for places in [&[4, 5][..], &[4], &[]] {
            assert!(evaluate_among(&levels(), queries, set, places, &config).is_err());
        }
    }

    /// The circle's reports with each column of its labels.
    fn columns(config: &EvaluationConfig) -> Vec<Report> {
        let (embeddings, labels) = circle();
        let evaluate_level = |level: usize| {
            let column = Labels::new(1, labels.column(level)).unwrap();
            let set = Labelled { embeddings: &embeddings, labels: &column };
            evaluate(&levels()[level - 1..level], set, None, config).unwrap()
        };
        vec![evaluate_level(1), evaluate_level(2)]
    }

    #[test]
    fn dyml_averages_over_label_sets() {
        let config = EvaluationConfig::default();
        let whole = report(false, &config);
        let sets = columns(&config);
        let row = dyml(&sets, LabelSets::Columns).unwrap();
        assert_eq!(dyml(&sets, LabelSets::Apart).unwrap(), row);
        for metric in [AP, R_AT_1, MAP_AT_R] {
            let mean = (whole.at(1).get(metric).unwrap() + whole.at(2).get(metric).unwrap()) / 2.0;
            assert_eq!(row.get(metric), Some(mean));
        }
        // With one level, H-AP is AP, and ASI binary.
        assert_eq!(row.get(H_AP), row.get(AP));
        let asi = |set: &Report| set.overall.get(ASI).unwrap();
        assert_eq!(row.get(ASI), Some((asi(&sets[0]) + asi(&sets[1])) / 2.0));
        assert!(row.interval.is_empty());
    }

    #[test]
    fn label_sets_that_do_not_fit_each_other_are_refused() {
        let config = EvaluationConfig::default();
        let drawn = EvaluationConfig { bootstrap: Some(Bootstrap::default()), ..config.clone() };
        let fault = |reports: &[Report], sets| dyml(reports, sets).unwrap_err().message().to_owned();
        assert!(fault(&[], LabelSets::Apart).contains("at least one label set"));
        assert!(fault(&[report(false, &config)], LabelSets::Apart).contains("one level each"));
        let tied = EvaluationConfig { ties: TiePolicy::Strict, ..config.clone() };
        for other in [&drawn, &tied] {
            let mixed = [columns(&config), columns(other)].concat();
            assert!(fault(&mixed, LabelSets::Apart).contains("different settings"));
        }
        let mut shorter = columns(&config);
        shorter[1].queries = 4;
        assert!(fault(&shorter, LabelSets::Columns).contains("different queries"));
        assert!(dyml(&shorter, LabelSets::Apart).is_ok());
        let mut bare = columns(&drawn);
        bare[1].per_query.clear();
        assert!(fault(&bare, LabelSets::Columns).contains("no scores of single queries"));
    }

    #[test]
    fn runs_are_compared_query_by_query() {
        let config = EvaluationConfig::default();
        let first = report(false, &config);
        let same = paired_tests(&first, &first, Permutations::default()).unwrap();
        assert_eq!(same.len(), 3 + 2 * 3);
        assert!(same.iter().all(|row| row.difference == 0.0 && row.p == 1.0));
        assert_eq!((same[3].level.as_deref(), same[3].metric, same[3].queries), (Some("kind"), AP, 5));

        let (embeddings, labels) = circle();
        let turned = Embeddings::new(2, embeddings.values().iter().rev().copied().collect()).unwrap();
        let set = Labelled { embeddings: &turned, labels: &labels };
        let second = evaluate(&levels(), set, None, &config).unwrap();
        let there = paired_tests(&first, &second, Permutations::default()).unwrap();
        let back = paired_tests(&second, &first, Permutations::default()).unwrap();
        for (there, back) in there.iter().zip(&back) {
            assert_eq!((there.p, there.difference), (back.p, -back.difference));
            assert!(there.p > 0.0 && there.p <= 1.0);
        }

        let two = Embeddings::new(2, turned.values()[..4].to_vec()).unwrap();
        let two = Labelled { embeddings: &two, labels: &labels.select(&[0, 1]) };
        let fewer = evaluate_among(&levels(), two, set, &[0, 1], &config).unwrap();
        let fault = paired_tests(&first, &fewer, Permutations::default()).unwrap_err();
        assert!(fault.message().contains("cannot be paired"), "{fault}");
        let plain = EvaluationConfig { relevance: Relevance::Plain { alpha: 1.0 }, ..config };
        assert!(paired_tests(&first, &report(false, &plain), Permutations::default()).is_err());
    }

    #[test]
    fn the_decomposability_gap_is_reported_if_asked_for() {
        let (embeddings, labels) = circle();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let config = EvaluationConfig::default();
        let gap = |batch| decomposability_gap(set, &config, Decomposability { batch, seed: 3 });
        // One batch of everything is the whole set.
        assert_eq!(gap(5).unwrap().levels, [Some(0.0), Some(0.0)]);
        let pairs = gap(2).unwrap();
        assert_eq!(pairs.batches, 2);
        assert_eq!(gap(2).unwrap(), pairs);
        assert!(gap(1).is_err() && gap(6).is_err());
        let asked =
            EvaluationConfig { decomposability_gap: Some(Decomposability { batch: 2, seed: 3 }), ..config };
        assert_eq!(report(false, &asked).decomposability_gap, Some(pairs.clone()));

        let drawn = EvaluationConfig { bootstrap: Some(Bootstrap::default()), ..asked.clone() };
        let with_interval = report(false, &drawn).decomposability_gap.unwrap();
        assert_eq!((with_interval.levels, with_interval.interval.len()), (pairs.levels, 2));
        assert!(evaluate(&levels(), set, Some(set), &asked).is_err());
    }
}
