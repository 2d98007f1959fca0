//! The rankings of all queries, from galleries of any size.
//!
//! The [module above](super) says how, and what it costs. All threads prepare the next block and score the present one,
//! each thread for queries of its own.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::relatives::Relatives;
use super::{EvaluationConfig, Execution, Places, Step, known_shares};
use crate::Result;
use crate::embeddings::{Flaws, Rows};
#[cfg(not(target_family = "wasm"))]
use crate::pair_sums::{PairSum, PairSums};
use crate::panels::WHOLE_TILES;
use crate::ranking::{KnownLabels, PartialRanking, Ranking};
use crate::similarity::{Items, Measures, Points, Similarity, measure};
use crate::taxonomy::Labels;
use crate::threads::{Workspaces, each_in_order, in_order, join, threads};

/// The number of items that one thread reads and prepares at a time.
pub(super) const PART: usize = 1024;

/// A set of embeddings that a similarity is defined for. They are read each time they are needed.
pub(super) struct PointSet<'a> {
    similarity: Similarity,
    rows: &'a dyn Rows,
    measures: Measures,
}

impl<'a> PointSet<'a> {
    /// Reads and checks all embeddings. `set` names them in an error: "query" or "gallery".
    pub(super) fn new(
        similarity: Similarity,
        rows: &'a dyn Rows,
        set: &str,
        execution: &Execution<'_>,
    ) -> Result<Self> {
        let dimension = rows.dimension();
        let check = |part: usize| -> Result<(Flaws, Result<Measures>)> {
            execution.go_on()?;
            let first = part * PART;
            let mut values = vec![0.0; PART.min(rows.len() - first) * dimension];
            rows.read(first, &mut values)?;
            let mut flaws = Flaws::default();
            flaws.find(dimension, first, &values);
            (execution.progress)(Step::Checked(values.len() / dimension));
            Ok((flaws, measure(similarity, (dimension, &values), first, set)))
        };
        let (mut flaws, mut measures) = (Flaws::default(), Vec::new());
        for part in in_order(rows.len().div_ceil(PART), check) {
            let (found, measured) = part?;
            flaws.add(found);
            measures.push(measured);
        }
        flaws.refuse(&format!("{set} "))?;
        let measures = measures.into_iter().collect::<Result<Vec<_>>>()?.concat();
        Ok(Self { similarity, rows, measures })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of numbers of each embedding.
    pub(super) fn dimension(&self) -> usize {
        self.rows.dimension()
    }

    /// Reads and prepares these items. Items that follow each other are read at once.
    pub(super) fn points(&self, items: &[u32]) -> Result<Points> {
        let dimension = self.rows.dimension();
        let mut values = vec![0.0; items.len() * dimension];
        let mut rest = &mut values[..];
        for run in items.chunk_by(|&a, &b| a + 1 == b) {
            let (values, behind) = rest.split_at_mut(run.len() * dimension);
            self.rows.read(run[0] as usize, values)?;
            rest = behind;
        }
        let measures = if self.measures.is_empty() {
            Measures::new()
        } else {
            items.iter().map(|&item| self.measures[item as usize]).collect()
        };
        Ok(Points::new(self.similarity, (dimension, values), measures))
    }

    /// Reads and prepares these items, to be scored with queries.
    pub(super) fn prepare(&self, items: Vec<u32>) -> Result<Block> {
        let part = |part: &[u32]| self.points(part).map(Items::from);
        let parts = each_in_order(items.chunks(PART).collect(), part).into_iter().collect::<Result<_>>()?;
        Ok(Block { items, parts })
    }
}

/// Queries and the gallery that they rank.
pub(super) struct Search<'a> {
    pub(super) queries: &'a PointSet<'a>,
    pub(super) query_labels: &'a Labels,
    pub(super) gallery: &'a PointSet<'a>,
    pub(super) labels: &'a Labels,
    pub(super) places: Places<'a>,
}

/// How the rankings of some queries are made.
pub(super) struct Task<'a> {
    config: &'a EvaluationConfig,
    pub(super) execution: &'a Execution<'a>,
    relatives: Relatives,
    /// The pairs that have been scored, to report queries.
    scored: AtomicU64,
    pub(super) workspaces: Workspaces<Workspace>,
}

/// The memory of one thread.
#[derive(Default)]
pub(super) struct Workspace {
    scores: Vec<f32>,
    /// For [`PartialRanking::count`].
    pub(super) keys: Vec<u64>,
    ranking: Option<PartialRanking>,
}

/// A part of a set, prepared.
pub(super) struct Block {
    items: Vec<u32>,
    parts: Vec<Items>,
}

#[cfg(not(target_family = "wasm"))]
impl Task<'_> {
    /// The device that adds up for the scores, and the sum of each pair.
    fn device(&self) -> Option<(&dyn PairSums, PairSum)> {
        self.execution.device.zip(self.config.similarity.pair_sum())
    }
}

impl Search<'_> {
    /// `score` of the rankings of some queries, in their order.
    ///
    /// # Errors
    ///
    /// Embeddings that cannot be read, and a caller who stops the work.
    pub(super) fn rank<T: Send>(
        &self,
        some: Range<usize>,
        config: &EvaluationConfig,
        execution: &Execution<'_>,
        score: impl Fn(usize, &Ranking) -> T + Sync + Send,
    ) -> Result<Vec<T>> {
        let task = Task {
            config,
            execution,
            relatives: Relatives::new(self.labels, self.query_labels),
            scored: AtomicU64::new(0),
            workspaces: Workspaces::default(),
        };
        let family = |query: u32| task.relatives.family(self.query_labels.row(query as usize));
        let mut order: Vec<u32> = (some.start as u32..some.end as u32).collect();
        order.sort_by_key(|&query| family(query));

        let shares = known_shares(self.labels, self.query_labels.are_known());
        let finish = |query: u32, ranking: &mut PartialRanking| {
            let query = query as usize;
            let ranking = ranking.finish(self.query_labels.sharing(query, self.labels));
            let mut ranking = ranking.count_query(config.count_query);
            if let Some(shares) = shares.clone() {
                ranking = ranking.with_known(KnownLabels { query: self.query_labels.known(query), shares });
            }
            (query, score(query, &ranking))
        };
        let mut results: Vec<Option<T>> = some.clone().map(|_| None).collect();
        let mut put = |scored: Vec<(usize, T)>| {
            scored.into_iter().for_each(|(query, result)| results[query - some.start] = Some(result));
        };
        if self.is_one_block(&task) {
            let whole = self.gallery.prepare((0..self.gallery.len() as u32).collect())?;
            let pieces = order.chunks(piece(order.len(), config.block)).collect();
            let rank = |queries: &[u32]| self.rank_whole(queries, &whole, &task, finish);
            for scored in each_in_order(pieces, rank) {
                put(scored?);
            }
        } else {
            let (mut rest, mut rankings) = (&order[..], Vec::new());
            while !rest.is_empty() {
                let group;
                (group, rest) = rest.split_at(self.group_size(rest, &task.relatives, execution.memory));
                self.rank_group(group, &mut rankings, &task)?;
                let ranked = group.iter().copied().zip(&mut rankings).collect();
                let finish = |(query, ranking): (u32, &mut PartialRanking)| {
                    execution.go_on().map(|()| finish(query, ranking))
                };
                put(each_in_order(ranked, finish).into_iter().collect::<Result<_>>()?);
            }
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Whether the gallery fits into a block, and no device adds up.
    fn is_one_block(&self, task: &Task<'_>) -> bool {
        #[cfg(not(target_family = "wasm"))]
        if task.device().is_some() {
            return false;
        }
        (1..=task.execution.block(self.gallery.dimension())).contains(&self.gallery.len())
    }

    /// Ranks the whole gallery for some queries, and finishes each ranking.
    fn rank_whole<T>(
        &self,
        queries: &[u32],
        whole: &Block,
        task: &Task<'_>,
        finish: impl Fn(u32, &mut PartialRanking) -> T,
    ) -> Result<Vec<T>> {
        let points = self.queries.points(queries)?;
        task.workspaces.with(|Workspace { scores, keys, ranking }| {
            let scores = whole.scores(&points, 0..queries.len(), scores, task.execution)?;
            let ranking = ranking.get_or_insert_with(|| self.new_ranking(task));
            let rank = |(&query, scores): (&u32, &[f32])| {
                let row = query as usize;
                ranking.restart(self.places.row(row));
                let candidates = task.relatives.candidates(self.query_labels.row(row));
                let items = task.relatives.items(candidates.clone());
                let scores_of_items = items.iter().map(|&item| scores[item as usize]);
                self.add_positives(row, ranking, &task.relatives, candidates.start, scores_of_items);
                ranking.sort();
                ranking.count(0, scores, keys);
                finish(query, ranking)
            };
            let ranked = queries.iter().zip(scores.chunks_exact(whole.items.len())).map(rank).collect();
            (task.execution.progress)(Step::Ranked(queries.len()));
            Ok(ranked)
        })
    }

    fn new_ranking(&self, task: &Task<'_>) -> PartialRanking {
        PartialRanking::new(self.labels.levels(), task.config.ties, self.gallery.len())
    }

    /// Adds the positives of a query among the relatives from place `first` on. Each of these relatives has a score.
    fn add_positives(
        &self,
        query: usize,
        ranking: &mut PartialRanking,
        relatives: &Relatives,
        first: usize,
        scores: impl ExactSizeIterator<Item = f32>,
    ) {
        let levels = self.query_labels.sharing(query, relatives.labels());
        let items = relatives.items(first..first + scores.len());
        for ((place, &item), score) in (first..).zip(items).zip(scores) {
            let levels = levels(place);
            if levels.most > 0 {
                ranking.add_positive(item as usize, score, levels);
            }
        }
    }

    /// How many of the queries fit into `memory` bytes; at least one.
    fn group_size(&self, queries: &[u32], relatives: &Relatives, memory: usize) -> usize {
        let row = self.queries.dimension() * size_of::<f32>();
        let mut bytes = 0;
        let fits = |&&query: &&u32| {
            let positives = relatives.candidates(self.query_labels.row(query as usize)).len();
            bytes += PartialRanking::bytes(positives) + row;
            bytes <= memory
        };
        queries.iter().take_while(fits).count().max(1)
    }

    /// Ranks a group of queries and writes their rankings into `rankings`, in the order of the group. The rankings of an
    /// earlier group are overwritten, so that their memory is used again: memory that one group frees rarely fits the
    /// next.
    fn rank_group(&self, group: &[u32], rankings: &mut Vec<PartialRanking>, task: &Task<'_>) -> Result<()> {
        let Task { execution, relatives, .. } = task;
        let queries = self.queries.points(group)?;
        let classes = |place: usize| self.query_labels.row(group[place] as usize);
        rankings.resize_with(group.len(), || self.new_ranking(task));
        for (ranking, &query) in rankings.iter_mut().zip(group) {
            ranking.restart(self.places.row(query as usize));
        }

        // The queries of one family have their positives among the same items.
        let mut families = Vec::new();
        let (mut first, mut rest) = (0, &mut rankings[..]);
        let family = |&query: &u32| relatives.family(self.query_labels.row(query as usize));
        for members in group.chunk_by(|a, b| family(a) == family(b)) {
            let (rankings, behind) = rest.split_at_mut(members.len());
            families.push((first, rankings));
            (first, rest) = (first + members.len(), behind);
        }
        let find_positives = |(first, rankings): (usize, &mut [PartialRanking])| {
            let candidates = relatives.candidates(classes(first));
            rankings.iter_mut().for_each(|ranking| ranking.reserve(candidates.len()));
            let all = relatives.items(candidates.clone());
            let add =
                |place: usize, ranking: &mut PartialRanking, items: &[u32], scores: &[f32], _: &mut _| {
                    let first = candidates.start + all.partition_point(|&item| item < items[0]);
                    let (query, scores) = (group[place] as usize, scores.iter().copied());
                    self.add_positives(query, ranking, relatives, first, scores);
                };
            self.score(all.iter().copied(), &queries, (first, rankings), task, add, |_| {})
        };
        each_in_order(families, find_positives).into_iter().collect::<Result<()>>()?;
        each_in_order(rankings.iter_mut().collect(), PartialRanking::sort);

        let gallery = self.gallery.len() as u64;
        let count = |_: usize, ranking: &mut PartialRanking, items: &[u32], scores: &[f32], keys: &mut _| {
            ranking.count(items[0] as usize, scores, keys);
        };
        let report = |pairs: u64| {
            // A query counts as ranked when `gallery` pairs have been scored.
            let before = task.scored.fetch_add(pairs, Ordering::Relaxed);
            let queries = (before + pairs) / gallery - before / gallery;
            if queries > 0 {
                (execution.progress)(Step::Ranked(queries as usize));
            }
        };
        #[cfg(not(target_family = "wasm"))]
        if let Some(device) = task.device() {
            return self.count_on(device, &queries, rankings, task, report);
        }
        self.score(0..gallery as u32, &queries, (0, rankings), task, count, report)
    }

    /// Scores `items` with the queries from `first` on, one ranking each, and calls `work` with the place of a query, its
    /// ranking, the items and scores of one block after another, and memory to use. Calls `report` with numbers of pairs
    /// that are done.
    fn score(
        &self,
        mut items: impl Iterator<Item = u32> + Send,
        queries: &Points,
        (first, rankings): (usize, &mut [PartialRanking]),
        task: &Task<'_>,
        work: impl Fn(usize, &mut PartialRanking, &[u32], &[f32], &mut Vec<u64>) + Sync,
        report: impl Fn(u64) + Sync,
    ) -> Result<()> {
        let block = task.execution.block(self.gallery.dimension());
        let mut prepare = || self.gallery.prepare(items.by_ref().take(block).collect());
        let mut block = prepare()?;
        while !block.items.is_empty() {
            let score = || block.score(queries, (first, &mut *rankings), task, &work, &report);
            let (scored, next) = join(score, &mut prepare);
            scored?;
            block = next?;
        }
        Ok(())
    }
}

impl Block {
    /// As [`Search::score`], for these items.
    fn score(
        &self,
        queries: &Points,
        (first, rankings): (usize, &mut [PartialRanking]),
        task: &Task<'_>,
        work: &(impl Fn(usize, &mut PartialRanking, &[u32], &[f32], &mut Vec<u64>) + Sync),
        report: &(impl Fn(u64) + Sync),
    ) -> Result<()> {
        let piece = piece(rankings.len(), task.config.block);
        let pieces = (first..).step_by(piece).zip(rankings.chunks_mut(piece)).collect();
        let score_piece = |(first, rankings): (usize, &mut [PartialRanking])| {
            task.workspaces.with(|Workspace { scores, keys, .. }| {
                let scores = self.scores(queries, first..first + rankings.len(), scores, task.execution)?;
                let rows = scores.chunks_exact(self.items.len());
                for ((place, ranking), scores) in (first..).zip(rankings).zip(rows) {
                    work(place, ranking, &self.items, scores, keys);
                }
                report(scores.len() as u64);
                Ok(())
            })
        };
        each_in_order(pieces, score_piece).into_iter().collect()
    }

    /// The scores of some queries with these items, a row for each query, in `memory`.
    pub(super) fn scores<'m>(
        &self,
        queries: &Points,
        some: Range<usize>,
        memory: &'m mut Vec<f32>,
        execution: &Execution<'_>,
    ) -> Result<&'m [f32]> {
        let items = self.items.len();
        let length = some.len() * items;
        memory.resize(length.max(memory.len()), 0.0);
        let scores = &mut memory[..length];
        let (batch, mut column) = (queries.batch(some), 0);
        for part in &self.parts {
            execution.go_on()?;
            part.score(&batch, &mut scores[column..], items);
            column += part.len();
        }
        Ok(scores)
    }
}

/// The number of queries of a piece of work: several pieces for each thread, so that all end at about the same time;
/// whole tiles, and at most `most`.
fn piece(queries: usize, most: usize) -> usize {
    queries.div_ceil(4 * threads()).next_multiple_of(WHOLE_TILES).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::embeddings::Embeddings;
    use crate::evaluate::{Evaluation, Labelled, QueryScores, gallery_ranking};
    use crate::poincare::Curvature;
    use crate::random::stream;
    use crate::ranking::TiePolicy;
    use crate::search::Gallery;
    #[cfg(feature = "parallel")]
    use crate::statistics::Bootstrap;
    use crate::{Error, Kind};
    use rand::RngExt;

    /// Embeddings with equal numbers, so that there are ties, in the balls of the tests; labels that are a tree or, if
    /// `crossed`, none.
    fn random_set(seed: u64, count: usize, crossed: bool) -> (Embeddings, Labels) {
        let mut random = stream(seed, "rankings", &[]);
        let values = (0..count * 3).map(|_| random.random_range(-4..5) as f32 / 8.0 + 0.03);
        let embeddings = Embeddings::new(3, values.collect()).unwrap();
        let rows = (0..count).flat_map(|_| {
            let fine = random.random_range(0..8);
            [if crossed { random.random_range(0..3) } else { fine / 3 }, fine]
        });
        (embeddings, Labels::new(2, rows.collect()).unwrap())
    }

    fn similarity() -> impl Strategy<Value = Similarity> {
        let curvature = Curvature::try_from(0.3).unwrap();
        prop_oneof![
            Just(Similarity::Cosine),
            Just(Similarity::Dot),
            Just(Similarity::Euclidean),
            Just(Similarity::Poincare { curvature }),
            Just(Similarity::Hamming),
        ]
    }

    fn ties() -> impl Strategy<Value = TiePolicy> {
        use TiePolicy::{Optimistic, Pessimistic, Shared, Stable, Strict};
        prop_oneof![Just(Stable), Just(Strict), Just(Optimistic), Just(Pessimistic), Just(Shared)]
    }

    #[derive(Clone, Copy, Debug)]
    enum Kin {
        Same,
        Among,
        Apart,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_and_groups_change_no_digit_and_every_ranking_is_that_of_all_scores_at_once(
            seed in any::<u64>(),
            count in 1usize..60,
            crossed in any::<bool>(),
            (similarity, ties) in (similarity(), ties()),
            kin in prop_oneof![Just(Kin::Same), Just(Kin::Among), Just(Kin::Apart)],
            (gallery_memory, block, memory) in (0usize..1_700, 1usize..20, 0usize..20_000),
        ) {
            let (embeddings, labels) = random_set(seed, count, crossed);
            let places: Vec<usize> = (0..count).rev().step_by(2).collect();
            let rows: Vec<f32> =
                places.iter().flat_map(|&place| embeddings.row(place)).copied().collect();
            let (some, some_labels) = (Embeddings::new(3, rows).unwrap(), labels.select(&places));
            let all = Labelled { embeddings: &embeddings, labels: &labels };
            let queries = Labelled { embeddings: &some, labels: &some_labels };
            let config = EvaluationConfig { similarity, ties, block, ..EvaluationConfig::default() };
            let levels = ["a", "b"].map(String::from);
            let evaluation = Evaluation {
                levels: &levels,
                queries: if let Kin::Same = kin { all.into() } else { queries.into() },
                gallery: if let Kin::Same = kin { None } else { Some(all.into()) },
                places: if let Kin::Among = kin { Some(&places) } else { None },
                config: &config,
                execution: Execution { gallery_memory, memory, ..Execution::default() },
            };
            let checked = config.checked(2).unwrap();
            let gallery = Gallery::new(&embeddings, similarity).unwrap();
            let expected = |query: usize| {
                let itself = match kin {
                    Kin::Same => Some(query),
                    Kin::Among => Some(places[query]),
                    Kin::Apart => None,
                };
                let row = if let Kin::Same = kin { query } else { places[query] };
                let scores = gallery.scores(embeddings.row(row)).unwrap();
                let ranking = gallery_ranking(&scores, &labels, &labels.select(&[row]), itself, &config);
                QueryScores::new(query, &ranking, &checked)
            };
            let queries = evaluation.queries.labels.len();
            let expected: Vec<QueryScores> = (0..queries).map(expected).collect();
            prop_assert_eq!(&evaluation.query_scores(0..queries).unwrap(), &expected);
            let middle = queries / 3..queries - queries / 4;
            prop_assert_eq!(&evaluation.query_scores(middle.clone()).unwrap(), &expected[middle]);
        }
    }

    #[test]
    #[cfg(feature = "parallel")]
    fn threads_change_no_digit() {
        let (embeddings, labels) = random_set(3, 3000, false);
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        let bootstrap = Some(Bootstrap { resamples: 20, seed: 1 });
        let config = EvaluationConfig { bootstrap, ..EvaluationConfig::default() };
        let report = |threads, memory| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let evaluation = Evaluation {
                levels: &["a", "b"].map(String::from),
                queries: set.into(),
                gallery: None,
                places: None,
                config: &config,
                execution: Execution { gallery_memory: 26_400, memory, ..Execution::default() },
            };
            pool.install(|| evaluation.report()).unwrap()
        };
        let one = report(1, 256 << 20);
        for (threads, memory) in [(2, 256 << 20), (3, 10 << 20), (7, 0)] {
            assert_eq!(report(threads, memory), one);
        }
    }

    /// Embeddings of which some cannot be read.
    #[derive(Debug)]
    struct Torn(Embeddings, usize);

    impl Rows for Torn {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn dimension(&self) -> usize {
            self.0.dimension()
        }

        fn read(&self, first: usize, rows: &mut [f32]) -> Result<()> {
            if (first..first + rows.len() / self.0.dimension()).contains(&self.1) {
                return Err(Error::new(Kind::Embeddings, "the disk is gone", "mend it"));
            }
            Rows::read(&self.0, first, rows)
        }
    }

    /// Numbers that are not checked, as in a file.
    #[derive(Debug)]
    struct Raw(Vec<f32>);

    impl Rows for Raw {
        fn len(&self) -> usize {
            self.0.len() / 2
        }

        fn dimension(&self) -> usize {
            2
        }

        fn read(&self, first: usize, rows: &mut [f32]) -> Result<()> {
            rows.copy_from_slice(&self.0[2 * first..][..rows.len()]);
            Ok(())
        }
    }

    #[test]
    fn the_error_of_a_bad_row_names_its_set_and_its_row_in_the_whole_set() {
        let fault = |similarity, change: &dyn Fn(&mut [f32])| {
            let mut values: Vec<f32> = (0..6000).map(|i| 0.1 + (i % 7) as f32 / 100.0).collect();
            let queries = Raw(values[..10].to_vec());
            change(&mut values);
            let labels = Labels::new(1, vec![0; 3000]).unwrap();
            let config = EvaluationConfig { similarity, ..EvaluationConfig::default() };
            let evaluation = Evaluation {
                levels: &["a".to_owned()],
                queries: Labelled { embeddings: &queries, labels: &labels.select(&[0; 5]) },
                gallery: Some(Labelled { embeddings: &Raw(values), labels: &labels }),
                places: None,
                config: &config,
                execution: Execution::default(),
            };
            evaluation.report().unwrap_err().message().to_owned()
        };
        let message = fault(Similarity::Dot, &|values| {
            (values[5001], values[4097], values[5990]) = (f32::NAN, f32::INFINITY, f32::NAN);
        });
        assert!(message.starts_with("the gallery embedding in row 2048 has inf in column 1"), "{message}");
        assert!(message.ends_with("; 2 more rows are not finite: 2500, 2995"), "{message}");
        let message = fault(Similarity::Cosine, &|values| values[4000..4002].fill(0.0));
        assert!(message.starts_with("the gallery embedding in row 2000 is all zero"), "{message}");
        let curvature = Curvature::try_from(1.0).unwrap();
        let message = fault(Similarity::Poincare { curvature }, &|values| values[5999] = 2.0);
        assert!(message.starts_with("the gallery embedding in row 2999 lies outside"), "{message}");
        let message = fault(Similarity::Euclidean, &|values| values[2222] = 3e38);
        assert!(message.starts_with("the gallery embedding in row 1111 is too long"), "{message}");
    }

    #[test]
    fn embeddings_that_cannot_be_read_end_the_evaluation() {
        let (embeddings, labels) = random_set(1, 40, false);
        let torn = Torn(embeddings, 33);
        let evaluation = Evaluation {
            levels: &["a", "b"].map(String::from),
            queries: Labelled { embeddings: &torn, labels: &labels },
            gallery: None,
            places: None,
            config: &EvaluationConfig::default(),
            execution: Execution::default(),
        };
        assert_eq!(evaluation.report().unwrap_err().message(), "the disk is gone");
    }
}
