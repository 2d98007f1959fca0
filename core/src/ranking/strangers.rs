//! How many strangers rank between two positives.
//!
//! A query often has few positives and always many strangers, whose order does not matter. The range of the positives'
//! scores is cut into buckets of equal width. A stranger whose bucket has no positive is above all positives of later
//! buckets and below those of earlier ones, so its score is not compared with theirs. Only the strangers in the other
//! buckets are compared.
//!
//! Those are few, unless the query has tens of thousands of positives. They are then sorted by bucket first, so that
//! memory is read in order: a processor waits longer for a number from a place that it cannot predict than it takes to
//! compare it.
//!
//! The positives are counted as if they were strangers of their scores, so that no label has to be looked up.
//! [`PartialRanking::finish`](super::PartialRanking::finish) takes them off again.

use macerator::{Simd, with_simd};

/// Buckets per positive: more make fewer comparisons, and take more cache.
const BUCKETS_PER_POSITIVE: usize = 8;
/// The most buckets: they stay in the cache.
const MOST_BUCKETS: usize = 1 << 15;
/// A query whose counts and keys take more bytes sorts the items first.
const FAST_MEMORY: usize = 1 << 18;
/// The items that are counted at a time: a bucket and a place fit into 32 bits.
const MOST_PLACES: usize = 1 << (u32::BITS - MOST_BUCKETS.ilog2());
/// Marks a bucket that has positives.
const MIXED: u32 = 1 << 31;

/// The strangers of one query, as far as they are counted, and the positives among them.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    buckets: Buckets,
    /// The positives of earlier buckets, for every bucket and behind the last; marked as [`MIXED`].
    starts: Vec<u32>,
    /// How many items rank between the positives i − 1 and i, and, last, after all of them.
    before: Vec<u32>,
}

impl Strangers {
    /// Counts from nothing again, for the sorted keys of the positives.
    pub(super) fn restart(&mut self, keys: &[u64]) {
        let Self { buckets, starts, before } = self;
        starts.clear();
        before.clear();
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else { return };
        *buckets = Buckets::new(super::score_of(first), super::score_of(last), keys.len());
        before.resize(keys.len() + 1, 0);
        starts.resize(buckets.count + 1, 0);
        for &key in keys {
            starts[buckets.of(super::score_of(key)) as usize + 1] += 1;
        }
        let mut start = 0;
        for bucket in 0..buckets.count {
            let here = starts[bucket + 1];
            starts[bucket] = start | if here > 0 { MIXED } else { 0 };
            start += here;
        }
        starts[buckets.count] = start;
    }

    /// The bytes for this number of positives.
    pub(super) fn bytes(positives: usize) -> usize {
        (Buckets::count(positives) + 1 + positives + 1) * size_of::<u32>()
    }

    /// Counts some items by their scores, positives too. `itself` is the place of one that does not count. `key` gives the
    /// key of an item as if it were a stranger.
    pub(super) fn count(
        &mut self,
        keys: &[u64],
        scores: &[f32],
        itself: Option<usize>,
        key: impl Fn(usize) -> u64,
    ) {
        if keys.is_empty() {
            return;
        }
        let in_order = Self::bytes(keys.len()) > FAST_MEMORY;
        let Self { buckets, starts, before } = self;
        for (first, scores) in (0..).step_by(MOST_PLACES).zip(scores.chunks(MOST_PLACES)) {
            let mut open = Vec::new();
            count_apart(scores, *buckets, starts, before, &mut open);
            if in_order {
                open = sorted_by_bucket(open);
            }
            for Open { bucket, place } in open.into_iter().map(Open::from) {
                let item = first + place;
                if Some(item) != itself {
                    let [start, end] =
                        [starts[bucket], starts[bucket + 1]].map(|start| (start & !MIXED) as usize);
                    let key = key(item);
                    before[start + keys[start..end].partition_point(|&positive| positive < key)] += 1;
                }
            }
        }
        if let Some(start) =
            itself.map(|item| starts[buckets.of(scores[item]) as usize]).filter(|&start| start < MIXED)
        {
            before[start as usize] -= 1;
        }
    }

    /// How many items rank between the positives i − 1 and i; nothing without positives.
    pub(super) fn before(&mut self) -> &mut [u32] {
        &mut self.before
    }
}

/// Buckets of scores, the best first.
#[derive(Clone, Copy, Debug, Default)]
struct Buckets {
    best: f32,
    scale: f32,
    count: usize,
}

impl Buckets {
    fn new(best: f32, worst: f32, positives: usize) -> Self {
        let count = Self::count(positives);
        let scale = (count - 2) as f32 / (best - worst);
        // All scores fall into one bucket if they are too close for a finite scale.
        Self { best, scale: if scale.is_finite() { scale } else { 0.0 }, count }
    }

    fn count(positives: usize) -> usize {
        (positives * BUCKETS_PER_POSITIVE).clamp(16, MOST_BUCKETS)
    }

    /// The bucket of a score. A better score never has a later bucket, because every step rounds monotonically.
    #[inline(always)]
    fn of(self, score: f32) -> u32 {
        // Bucket 0 is for scores above `best`.
        ((self.best - score) * self.scale + 1.0).clamp(0.0, (self.count - 1) as f32) as u32
    }
}

/// An item whose bucket has positives.
struct Open {
    bucket: usize,
    place: usize,
}

impl From<u32> for Open {
    /// The bucket is in the high bits.
    fn from(bits: u32) -> Self {
        Self { bucket: bits as usize / MOST_PLACES, place: bits as usize % MOST_PLACES }
    }
}

/// Sorts items by bucket.
fn sorted_by_bucket(mut open: Vec<u32>) -> Vec<u32> {
    const DIGIT: usize = 256;
    let mut sorted = vec![0; open.len()];
    for shift in (MOST_PLACES.ilog2()..u32::BITS).step_by(DIGIT.ilog2() as usize) {
        let digit = |item: u32| (item >> shift) as usize % DIGIT;
        let mut places = [0; DIGIT + 1];
        open.iter().for_each(|&item| places[digit(item) + 1] += 1);
        (0..DIGIT).for_each(|digit| places[digit + 1] += places[digit]);
        for &item in &open {
            let place: &mut usize = &mut places[digit(item)];
            sorted[*place] = item;
            *place += 1;
        }
        (open, sorted) = (sorted, open);
    }
    open
}

/// Counts the items of buckets without positives, and lists the items of the others.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn count_apart<S: Simd>(
    scores: &[f32],
    buckets: Buckets,
    starts: &[u32],
    before: &mut [u32],
    open: &mut Vec<u32>,
) {
    const CHUNK: usize = 512;
    let mut chunk_buckets = [0; CHUNK];
    let mut listed = [0; CHUNK];
    for (first, scores) in (0..).step_by(CHUNK).zip(scores.chunks(CHUNK)) {
        for (bucket, &score) in chunk_buckets.iter_mut().zip(scores) {
            *bucket = buckets.of(score);
        }
        let mut length = 0;
        for (item, &bucket) in (first..).zip(&chunk_buckets[..scores.len()]) {
            let start = starts[bucket as usize];
            // Without branches, because the processor could not predict them.
            let mixed = start >> 31;
            before[(start & !MIXED) as usize] += 1 - mixed;
            listed[length % CHUNK] = bucket << MOST_PLACES.ilog2() | item;
            length += mixed as usize;
        }
        open.extend_from_slice(&listed[..length]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sort_key;
    use super::*;

    /// Scores with ties, twins of the range's ends, and extreme values.
    fn score() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => (-20i8..20).prop_map(|x| f32::from(x) / 7.0),
            2 => -1.0f32..1.0,
            1 => prop_oneof![Just(f32::MAX / 4.0), Just(-f32::MAX / 4.0), Just(1e-45), Just(0.0), Just(-0.0)],
        ]
    }

    proptest! {
        #[test]
        fn buckets_count_as_comparisons_do(
            items in proptest::collection::vec((score(), any::<bool>()), 0..300),
            itself in any::<Option<prop::sample::Index>>(),
            block in 1usize..400,
        ) {
            let scores: Vec<f32> = items.iter().map(|item| item.0).collect();
            let itself = itself.filter(|_| !items.is_empty()).map(|itself| itself.index(items.len()));
            let key = |item: usize| sort_key(scores[item], item);
            let positive = |&item: &usize| items[item].1 && Some(item) != itself;
            let mut keys: Vec<u64> = (0..items.len()).filter(positive).map(key).collect();
            keys.sort_unstable();
            let counted = (0..items.len()).filter(|&item| Some(item) != itself);
            let mut expected = vec![0; keys.len() + 1];
            for key in counted.map(key) {
                expected[keys.iter().filter(|&&positive| positive < key).count()] += 1;
            }
            let mut strangers = Strangers::default();
            strangers.restart(&keys);
            for (first, scores) in (0..).step_by(block).zip(scores.chunks(block)) {
                let itself = itself.filter(|itself| (first..first + scores.len()).contains(itself));
                strangers.count(&keys, scores, itself.map(|itself| itself - first), |place| key(first + place));
            }
            let got = strangers.before();
            if !keys.is_empty() {
                prop_assert_eq!(got, expected);
            }
        }
    }
    #[test]
    fn many_positives_and_blocks_longer_than_a_place_can_say_change_nothing() {
        let items = MOST_PLACES + 9_000;
        let score = |item: usize| ((item * 7_919 % 50_021) as f32).sin();
        let scores: Vec<f32> = (0..items).map(score).collect();
        let key = |item: usize| sort_key(scores[item], item);
        let itself = items - 1;
        let mut keys: Vec<u64> = (0..itself).filter(|item| item % 3 == 0).map(key).collect();
        keys.sort_unstable();
        assert!(Strangers::bytes(keys.len()) > FAST_MEMORY, "the items are sorted first");
        let mut expected = vec![0; keys.len() + 1];
        for key in (0..itself).map(key) {
            expected[keys.partition_point(|&positive| positive < key)] += 1;
        }
        let mut strangers = Strangers::default();
        strangers.restart(&keys);
        strangers.count(&keys, &scores, Some(itself), key);
        assert_eq!(strangers.before(), expected);
    }
}
