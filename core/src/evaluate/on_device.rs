//! Counting the gallery into rankings by sums from a device.
//!
//! The device adds up for the next queries and items while all threads count the present ones. What comes from it is
//! checked: for each query, the sum of one item of each block is computed on the processor, too.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::Step;
use super::rankings::{PART, Search, Task};
use crate::pair_sums::{LoadedItems, PairSum, PairSums, is_delicate};
use crate::ranking::PartialRanking;
use crate::similarity::{Items, Points};
use crate::threads::{each_in_order, in_order, join};
use crate::{Error, Kind, Result};

/// The most sums of a tile: 64 MiB.
const MOST_SUMS: usize = 1 << 24;
/// The most queries of a tile.
const MOST_QUERIES: usize = 1 << 16;

/// Gallery items that follow each other.
struct Block {
    first: usize,
    points: Points,
    on_device: Box<dyn LoadedItems>,
    /// The places of the delicate items, and these prepared for the processor.
    delicate: (Vec<usize>, Items),
    /// All items prepared for the processor, if a delicate query needs them.
    all: OnceLock<Items>,
}

/// The sums of some queries with the items of a block.
struct Tile {
    queries: Range<usize>,
    block: Arc<Block>,
    sums: Vec<f32>,
}

impl Search<'_> {
    /// Counts the whole gallery into the rankings of `queries`. Calls `report` with numbers of pairs that are done.
    pub(super) fn count_on(
        &self,
        (device, sum): (&dyn PairSums, PairSum),
        queries: &Points,
        rankings: &mut [PartialRanking],
        task: &Task<'_>,
        report: impl Fn(u64) + Sync,
    ) -> Result<()> {
        let execution = task.execution;
        let (dimension, gallery, count) = (self.gallery.dimension(), self.gallery.len(), rankings.len());
        let most = device.most_numbers().min(MOST_SUMS);
        let items = execution.block(dimension).min(most / dimension).clamp(1, gallery.max(1));
        let at_once = (most / items.max(dimension)).min(MOST_QUERIES).clamp(1, count.max(1));
        let delicate: Vec<bool> = in_order(count, |query| is_delicate(queries.row(query)));

        let places = (0..gallery)
            .step_by(items)
            .flat_map(|first| (0..count).step_by(at_once).map(move |query| (first, query)));
        let mut block = None::<Arc<Block>>;
        let mut tiles = places.map(|(first, query)| -> Result<Tile> {
            execution.go_on()?;
            let block = match block.clone().filter(|block| block.first == first) {
                Some(block) => block,
                None => block.insert(Arc::new(self.load(device, first..gallery.min(first + items))?)).clone(),
            };
            let some = query..count.min(query + at_once);
            let sums = block.on_device.add_up(sum, queries.rows_of(some.clone()))?;
            Ok(Tile { queries: some, block, sums })
        });
        let mut tile = tiles.next().transpose()?;
        while let Some(present) = tile {
            // The thread that waits for the device goes first, so that the device is never without work.
            let (next, counted) = join(
                || tiles.next().transpose(),
                || present.count(sum, queries, rankings, &delicate, task, &report),
            );
            let left = counted?;
            if left > 0 {
                (execution.progress)(Step::LeftToProcessor(left));
            }
            tile = next?;
        }
        Ok(())
    }

    /// Reads these items of the gallery, and gives them to the device.
    fn load(&self, device: &dyn PairSums, items: Range<usize>) -> Result<Block> {
        let ids: Vec<u32> = items.clone().map(|item| item as u32).collect();
        let parts = each_in_order(ids.chunks(PART).collect(), |part| self.gallery.points(part));
        let points = parts.into_iter().reduce(|all, part| Ok(all?.followed_by(part?)));
        let points = points.expect("a block has items")?;
        let on_device = device.load(self.gallery.dimension(), points.rows())?;
        let flags = in_order(points.len(), |item| is_delicate(points.row(item)));
        let delicate: Vec<usize> = (0..flags.len()).filter(|&item| flags[item]).collect();
        let prepared = points.select(&delicate).into();
        Ok(Block {
            first: items.start,
            points,
            on_device,
            delicate: (delicate, prepared),
            all: OnceLock::new(),
        })
    }
}

impl Tile {
    /// Counts the items into the rankings of the queries. Returns how many pairs were left to the processor.
    fn count(
        mut self,
        sum: PairSum,
        queries: &Points,
        rankings: &mut [PartialRanking],
        delicate: &[bool],
        task: &Task<'_>,
        report: impl Fn(u64) + Sync,
    ) -> Result<u64> {
        let block = &*self.block;
        let items = block.points.len();
        let rankings = rankings[self.queries.clone()].iter_mut();
        let rows = self.queries.clone().zip(rankings).zip(self.sums.chunks_exact_mut(items)).collect();
        type Row<'a> = ((usize, &'a mut PartialRanking), &'a mut [f32]);
        let count = |((query, ranking), scores): Row<'_>| -> Result<u64> {
            let left = if delicate[query] {
                let all = block.all.get_or_init(|| block.points.clone().into());
                all.score(&queries.batch(query..query + 1), scores, items);
                items
            } else {
                block.check(sum, queries, query, scores)?;
                queries.finish(query, block.points.slacks(), scores);
                let (places, prepared) = &block.delicate;
                for (&place, score) in places.iter().zip(prepared.scores(&queries.batch(query..query + 1))) {
                    scores[place] = score;
                }
                places.len()
            };
            task.workspaces.with(|workspace| ranking.count(block.first, scores, &mut workspace.keys));
            report(items as u64);
            Ok(left as u64)
        };
        each_in_order(rows, count).into_iter().sum()
    }
}

impl Block {
    /// Checks the sum of a query and one of the items.
    fn check(&self, sum: PairSum, queries: &Points, query: usize, sums: &[f32]) -> Result<()> {
        // Another place for each query, so that the checks of a tile are spread over it.
        let item = (query * 7_919 + self.first) % sums.len();
        let expected = sum.of(queries.row(query), self.points.row(item));
        if sums[item] == expected || self.delicate.0.binary_search(&item).is_ok() {
            return Ok(());
        }
        Err(Error::new(
            Kind::Device,
            format!(
                "the device adds up to {:e} for the gallery item in row {}, and the processor to {expected:e}",
                sums[item],
                self.first + item
            ),
            "leave out the device, and update its driver",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;
    use rand::RngExt;

    use super::*;
    use crate::embeddings::Embeddings;
    use crate::evaluate::{Evaluation, EvaluationConfig, Execution, Labelled, Report};
    use crate::poincare::Curvature;
    use crate::random::stream;
    use crate::similarity::Similarity;
    use crate::taxonomy::Labels;

    /// A device that takes subnormal numbers for 0.
    #[derive(Default)]
    struct Flushing {
        most: usize,
        /// What it adds to every sum.
        fault: f32,
        pairs: Arc<AtomicU64>,
    }

    struct Taken {
        dimension: usize,
        items: Vec<f32>,
        fault: f32,
        pairs: Arc<AtomicU64>,
    }

    fn flush(x: f32) -> f32 {
        if x.is_subnormal() { 0.0 } else { x }
    }

    impl PairSums for Flushing {
        fn name(&self) -> String {
            "flushing".into()
        }

        fn is_quick(&self) -> bool {
            false
        }

        fn most_numbers(&self) -> usize {
            self.most
        }

        fn load(&self, dimension: usize, items: &[f32]) -> Result<Box<dyn LoadedItems>> {
            assert!(items.len() <= self.most);
            let (items, pairs) = (items.to_vec(), self.pairs.clone());
            Ok(Box::new(Taken { dimension, items, fault: self.fault, pairs }))
        }
    }

    impl LoadedItems for Taken {
        fn add_up(&self, sum: PairSum, queries: &[f32]) -> Result<Vec<f32>> {
            let pair = |query: &[f32], item: &[f32]| {
                let numbers = query.iter().zip(item).map(|(&x, &y)| (flush(x), flush(y)));
                numbers.fold(self.fault, |total, (x, y)| match sum {
                    PairSum::Products => flush(x.mul_add(y, total)),
                    PairSum::SquaredDifferences => flush(flush(x - y).mul_add(flush(x - y), total)),
                })
            };
            let rows = queries.chunks_exact(self.dimension);
            let sums: Vec<f32> = rows
                .flat_map(|query| self.items.chunks_exact(self.dimension).map(move |item| pair(query, item)))
                .collect();
            self.pairs.fetch_add(sums.len() as u64, Ordering::Relaxed);
            Ok(sums)
        }
    }

    /// Embeddings with ties and, in some of them, numbers that are delicate.
    fn set(seed: u64, count: usize, delicate: f64) -> (Embeddings, Labels) {
        let mut random = stream(seed, "on device", &[]);
        let mut rows = Vec::new();
        for item in 0..count {
            let row: [f32; 3] = std::array::from_fn(|_| random.random_range(-4..5) as f32 / 8.0 + 0.03);
            rows.extend(row);
            if item == 0 && delicate > 0.0 || random.random_bool(delicate) {
                let place = rows.len() - random.random_range(1..4);
                rows[place] = [1e-45, -1e-38, 1e-20, 3e-39][random.random_range(0..4)];
            }
        }
        let labels = (0..count).flat_map(|_| {
            let fine = random.random_range(0..8);
            [fine / 3, fine]
        });
        (Embeddings::new(3, rows).unwrap(), Labels::new(2, labels.collect()).unwrap())
    }

    /// The report with a device, and how many pairs were left to the processor.
    fn report(
        (embeddings, labels): &(Embeddings, Labels),
        similarity: Similarity,
        memory: usize,
        device: Option<&dyn PairSums>,
    ) -> Result<(Report, u64)> {
        let left = Mutex::new(0);
        let progress = |step| {
            if let Step::LeftToProcessor(pairs) = step {
                *left.lock().unwrap() += pairs;
            }
        };
        let execution = Execution {
            memory,
            gallery_memory: 50 * memory,
            progress: &progress,
            device,
            ..Execution::default()
        };
        let evaluation = Evaluation {
            levels: &["a", "b"].map(String::from),
            queries: Labelled { embeddings, labels },
            gallery: None,
            places: None,
            config: &EvaluationConfig { similarity, ..EvaluationConfig::default() },
            execution,
        };
        let report = evaluation.report()?;
        Ok((report, left.into_inner().unwrap()))
    }

    fn similarities() -> [Similarity; 4] {
        let curvature = Curvature::try_from(0.3).unwrap();
        [Similarity::Cosine, Similarity::Dot, Similarity::Euclidean, Similarity::Poincare { curvature }]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_device_changes_no_digit(
            seed in any::<u64>(),
            count in 30usize..70,
            delicate in prop_oneof![Just(0.0), Just(0.1), Just(1.0)],
            similarity in 0usize..4,
            (memory, most) in (0usize..10_000, 3usize..400),
        ) {
            let (set, similarity) = (set(seed, count, delicate), similarities()[similarity]);
            let device = Flushing { most, ..Flushing::default() };
            let (with, left) = report(&set, similarity, memory, Some(&device)).unwrap();
            prop_assert_eq!(&with, &report(&set, similarity, memory, None).unwrap().0);
            let pairs = (count * count) as u64;
            prop_assert_eq!(device.pairs.load(Ordering::Relaxed), pairs);
            prop_assert_eq!(left == 0, delicate == 0.0);
            prop_assert_eq!(left == pairs, delicate == 1.0);
        }
    }

    #[test]
    fn a_device_that_adds_up_wrongly_is_found_out() {
        let device = Flushing { most: 1_000, fault: 1e-7, ..Flushing::default() };
        for similarity in similarities() {
            let error = report(&set(1, 40, 0.0), similarity, 1 << 20, Some(&device)).unwrap_err();
            assert_eq!(error.kind(), Kind::Device);
            assert!(error.message().contains("the device adds up to"), "{error}");
        }
    }

    #[test]
    fn codes_are_compared_by_the_processor() {
        let device = Flushing { most: 1_000, ..Flushing::default() };
        report(&set(1, 40, 0.0), Similarity::Hamming, 1 << 20, Some(&device)).unwrap();
        assert_eq!(device.pairs.load(Ordering::Relaxed), 0);
    }
}
