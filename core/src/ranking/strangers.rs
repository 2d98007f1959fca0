//! How many strangers rank between two positives.
//!
//! A query often has few positives and always many strangers, whose order does not matter. The range of the positives'
//! scores is cut into buckets of equal width. The bucket of an item says how many positives are in earlier buckets, and
//! all of them rank above it. So the item is compared only with the positives of its own bucket. Most buckets have at most
//! two, and two comparisons take no branch, which a processor could not predict.
//!
//! With tens of thousands of positives, the buckets and the keys leave the cache. Then the items are first sorted roughly by
//! score, so that those that follow each other need the same part of both.
//!
//! The positives are counted as if they were strangers of their scores, so that no label has to be looked up.
//! [`PartialRanking::finish`](super::PartialRanking::finish) takes them off again.

use std::hint::black_box;

use macerator::{Simd, with_simd};

/// Buckets per positive: more make fewer crowded buckets, and take more cache.
const BUCKETS_PER_POSITIVE: usize = 2;
/// The most buckets: they stay in the cache.
const MOST_BUCKETS: usize = 1 << 17;
/// The positives of a bucket that every item of the bucket is compared with.
const COMPARED: usize = 2;
/// Marks a bucket with more positives than are compared.
const CROWDED: u32 = 1 << 31;
/// The buckets and keys of more positives do not stay in the second-level cache beside the scores of a block.
const CACHED: usize = 1 << 14;
/// The ranges of buckets that items are sorted into.
const RANGES: usize = 128;
/// The items that one loop works on at a time.
const CHUNK: usize = 512;
/// What stands behind the sorted keys of the positives, so that each bucket is followed by keys to compare with.
pub(super) const BEHIND: [u64; COMPARED] = [u64::MAX; COMPARED];

/// The strangers of one query, as far as they are counted, and the positives among them.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    buckets: Buckets,
    /// The number of positives in earlier buckets, for every bucket and behind the last; marked if [`CROWDED`].
    starts: Vec<u32>,
    /// How many items rank between the positives i − 1 and i, and, last, after all of them.
    before: Vec<u32>,
}

impl Strangers {
    /// Sorts the keys of the positives, by bucket first, puts [`BEHIND`] behind them, and counts from nothing again.
    pub(super) fn restart(&mut self, keys: &mut Vec<u64>) {
        let Self { buckets, starts, before } = self;
        starts.clear();
        before.clear();
        if let (Some(&best), Some(&worst)) = (keys.iter().min(), keys.iter().max()) {
            *buckets = Buckets::new(super::score_of(best), super::score_of(worst), keys.len());
            before.resize(keys.len() + 1, 0);
            starts.resize(buckets.count + 1, 0);
            let mut key_buckets = vec![0; keys.len()];
            buckets_of(keys, *buckets, &mut key_buckets);
            key_buckets.iter().for_each(|&bucket| starts[bucket as usize + 1] += 1);
            let mut start = 0;
            for next in &mut starts[1..] {
                start += std::mem::replace(next, start);
            }
            let mut sorted = vec![0; keys.len()];
            for (&key, &bucket) in keys.iter().zip(&key_buckets) {
                // When every key has its place, this is the start of the next bucket.
                let place = &mut starts[bucket as usize + 1];
                sorted[*place as usize] = key;
                *place += 1;
            }
            for bucket in 0..buckets.count {
                match &mut sorted[starts[bucket] as usize..starts[bucket + 1] as usize] {
                    [] | [_] => {}
                    [a, b] => (*a, *b) = (*a.min(b), *a.max(b)),
                    here => here.sort_unstable(),
                }
                if starts[bucket + 1] - starts[bucket] > COMPARED as u32 {
                    starts[bucket] |= CROWDED;
                }
            }
            keys.copy_from_slice(&sorted);
        }
        keys.extend(BEHIND);
    }

    /// The bytes for this number of positives.
    pub(super) fn bytes(positives: usize) -> usize {
        (Buckets::count(positives) + 1 + positives + 1) * size_of::<u32>()
    }

    /// Counts some items by their scores, positives too. `itself` is the place of one that does not count. `within_tie`
    /// gives the place of each item among items of equal score, as if it were a stranger. `keys` are those of the
    /// positives, and [`BEHIND`]. `room` is memory to work with.
    pub(super) fn count(
        &mut self,
        keys: &[u64],
        scores: &[f32],
        itself: Option<usize>,
        within_tie: WithinTie,
        room: &mut Vec<u64>,
    ) {
        // It would make the page larger, whose galleries are small.
        let by_range = keys.len() > CACHED && !cfg!(target_family = "wasm");
        let room = by_range.then_some(room);
        self.count_in(keys, scores, itself, within_tie, room);
    }

    /// As [`count`](Self::count), by ranges if there is room for that.
    fn count_in(
        &mut self,
        keys: &[u64],
        scores: &[f32],
        itself: Option<usize>,
        within_tie: WithinTie,
        room: Option<&mut Vec<u64>>,
    ) {
        let Self { buckets, starts, before } = self;
        if before.is_empty() {
            return;
        }
        let counts = Counts { keys, buckets: *buckets, starts, before };
        if let Some(room) = room {
            room.resize(scores.len().max(room.len()), 0);
            count_by_range(counts, scores, within_tie, &mut room[..scores.len()]);
        } else {
            count_all(counts, scores, within_tie);
        }
        if let Some(item) = itself {
            before[rank(keys, super::sort_key(scores[item], within_tie.of(item)))] -= 1;
        }
    }

    /// How many items rank between the positives i − 1 and i; nothing without positives.
    pub(super) fn before(&mut self) -> &mut [u32] {
        &mut self.before
    }
}

/// The places of items that follow each other, among items of equal score.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithinTie {
    /// The place of the first item.
    pub(super) first: usize,
    /// How much later the next item is.
    pub(super) step: usize,
}

impl WithinTie {
    #[inline(always)]
    fn of(self, item: usize) -> usize {
        self.first + item * self.step
    }
}

/// The number of keys below a key, which rank above it.
fn rank(keys: &[u64], key: u64) -> usize {
    keys.partition_point(|&positive| positive < key)
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
        /// The whole numbers from here on are all numbers up to twice this, so that a sum is rounded to a whole number, and
        /// its last bits are that number. Unlike a conversion, this is one vector instruction.
        const WHOLE: f32 = (1 << (f32::MANTISSA_DIGITS - 1)) as f32;
        // Finite, so that a scale of 0 makes it 0.
        let below = (self.best - score).clamp(-f32::MAX, f32::MAX);
        // Bucket 0 is for scores above `best`.
        let bucket = below * self.scale + 1.0;
        (bucket.max(0.0).min((self.count - 1) as f32) + WHOLE).to_bits() - WHOLE.to_bits()
    }
}

/// The bucket of each key.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn buckets_of<S: Simd>(keys: &[u64], buckets: Buckets, of_keys: &mut [u32]) {
    buckets_of_keys(keys, buckets, of_keys);
}

#[inline(always)]
fn buckets_of_keys(keys: &[u64], buckets: Buckets, of_keys: &mut [u32]) {
    for (bucket, &key) in of_keys.iter_mut().zip(keys) {
        *bucket = buckets.of(super::score_of(key));
    }
}

/// What items are counted with.
struct Counts<'a> {
    /// The sorted keys of the positives, and [`BEHIND`].
    keys: &'a [u64],
    buckets: Buckets,
    starts: &'a [u32],
    before: &'a mut [u32],
}

impl Counts<'_> {
    /// Brings what a range of buckets needs into the cache. Line after line, the processor knows what comes next.
    #[inline(always)]
    fn fetch(&self, first: usize, end: usize) {
        fn read<T: Copy>(numbers: &[T]) {
            const LINE: usize = 64;
            for &number in numbers.iter().step_by(LINE / size_of::<T>()) {
                black_box(number);
            }
        }
        let [first, end] = [first, end].map(|bucket| bucket.min(self.buckets.count));
        read(&self.starts[first..end]);
        let [first, end] = [first, end].map(|bucket| (self.starts[bucket] % CROWDED) as usize);
        read(&self.keys[first..end]);
        read(&self.before[first..end]);
    }

    /// Counts at most [`CHUNK`] items, each at the number of positives that rank above it. `open` is memory to work
    /// with.
    #[inline(always)]
    fn count(&mut self, item_buckets: &[u32], item_keys: &[u64], open: &mut [usize; CHUNK]) {
        let Self { keys, starts, before, .. } = self;
        let mut length = 0;
        for (item, (&bucket, &key)) in item_buckets.iter().zip(item_keys).enumerate() {
            let start = starts[bucket as usize];
            let crowded = start / CROWDED;
            let start = (start % CROWDED) as usize;
            let mut above = start;
            for &positive in &keys[start..start + COMPARED] {
                above += usize::from(positive < key);
            }
            before[above] += 1 - crowded;
            open[length] = item;
            length += crowded as usize;
        }
        for &item in &open[..length] {
            let bucket = item_buckets[item] as usize;
            let [start, end] = [starts[bucket], starts[bucket + 1]].map(|start| (start % CROWDED) as usize);
            before[start + rank(&keys[start..end], item_keys[item])] += 1;
        }
    }
}

/// Some items: at most [`CHUNK`].
struct Items {
    keys: [u64; CHUNK],
    buckets: [u32; CHUNK],
}

impl Items {
    const NONE: Self = Self { keys: [0; CHUNK], buckets: [0; CHUNK] };

    #[inline(always)]
    fn find_buckets(&mut self, scores: &[f32], buckets: Buckets) {
        for (bucket, &score) in self.buckets.iter_mut().zip(scores) {
            *bucket = buckets.of(score);
        }
    }

    /// Reads the items of these scores, in loops that the compiler vectorises. `first` is the place of the first.
    #[inline(always)]
    fn read(&mut self, scores: &[f32], first: usize, within_tie: WithinTie, buckets: Buckets) {
        self.find_buckets(scores, buckets);
        for (item, (key, &score)) in self.keys.iter_mut().zip(scores).enumerate() {
            *key = super::sort_key(score, within_tie.of(first + item));
        }
    }
}

/// Counts all items in their order.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn count_all<'a, S: Simd>(mut counts: Counts<'a>, scores: &[f32], within_tie: WithinTie) {
    if scores.len() > counts.keys.len() {
        counts.fetch(0, counts.buckets.count);
    }
    let (mut items, mut open) = (Items::NONE, [0; CHUNK]);
    for (first, scores) in (0..).step_by(CHUNK).zip(scores.chunks(CHUNK)) {
        items.read(scores, first, within_tie, counts.buckets);
        counts.count(&items.buckets[..scores.len()], &items.keys, &mut open);
    }
}

/// Counts all items by ranges of buckets. `sorted` has a place for each.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn count_by_range<'a, S: Simd>(
    mut counts: Counts<'a>,
    scores: &[f32],
    within_tie: WithinTie,
    sorted: &mut [u64],
) {
    let width = counts.buckets.count.div_ceil(RANGES).next_power_of_two();
    let range = |bucket: u32| (bucket as usize >> width.trailing_zeros()) % RANGES;
    let (mut items, mut open) = (Items::NONE, [0; CHUNK]);
    let mut ends = [0; RANGES + 1];
    for scores in scores.chunks(CHUNK) {
        items.find_buckets(scores, counts.buckets);
        items.buckets[..scores.len()].iter().for_each(|&bucket| ends[range(bucket) + 1] += 1);
    }
    for range in 0..RANGES {
        ends[range + 1] += ends[range];
    }
    // Each place moves from the start of its range to the end.
    let mut places = ends;
    for (first, scores) in (0..).step_by(CHUNK).zip(scores.chunks(CHUNK)) {
        items.read(scores, first, within_tie, counts.buckets);
        for (&key, &bucket) in items.keys.iter().zip(&items.buckets[..scores.len()]) {
            let place = &mut places[range(bucket)];
            sorted[*place] = key;
            *place += 1;
        }
    }
    for (range, items_of_range) in ends.windows(2).enumerate() {
        counts.fetch(range * width, (range + 1) * width);
        for keys in sorted[items_of_range[0]..items_of_range[1]].chunks(CHUNK) {
            buckets_of_keys(keys, counts.buckets, &mut items.buckets);
            counts.count(&items.buckets[..keys.len()], keys, &mut open);
        }
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
            1 => prop_oneof![Just(f32::MAX), Just(f32::MAX / 4.0), Just(-f32::MAX), Just(1e-45), Just(0.0), Just(-0.0)],
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
            let counted = (0..items.len()).filter(|&item| Some(item) != itself);
            let mut expected = vec![0; keys.len() + 1];
            for key in counted.map(key) {
                expected[keys.iter().filter(|&&positive| positive < key).count()] += 1;
            }
            let mut strangers = Strangers::default();
            let mut room = Vec::new();
            for by_range in [false, true] {
                keys.truncate(expected.len() - 1);
                strangers.restart(&mut keys);
                prop_assert!(keys.is_sorted() && keys.ends_with(&BEHIND));
                for (first, scores) in (0..).step_by(block).zip(scores.chunks(block)) {
                    let itself = itself.filter(|itself| (first..first + scores.len()).contains(itself));
                    let itself = itself.map(|itself| itself - first);
                    let room = by_range.then_some(&mut room);
                    strangers.count_in(&keys, scores, itself, WithinTie { first, step: 1 }, room);
                }
                if expected.len() > 1 {
                    prop_assert_eq!(strangers.before(), &expected);
                }
            }
        }
    }

    #[test]
    fn crowded_buckets_count_as_comparisons_do() {
        let score = |item: usize| ((item * 7_919 % 50_021) as f32).sin();
        let scores: Vec<f32> = (0..200_000).map(score).collect();
        let key = |item: usize| sort_key(scores[item], item);
        let itself = scores.len() - 1;
        let mut keys: Vec<u64> = (0..itself).filter(|item| item % 2 == 0).map(key).collect();
        let mut strangers = Strangers::default();
        strangers.restart(&mut keys);
        let mut expected = vec![0; keys.len() - BEHIND.len() + 1];
        for key in (0..itself).map(key) {
            expected[rank(&keys, key)] += 1;
        }
        assert!(strangers.starts.iter().filter(|&&start| start >= CROWDED).count() > 1_000);
        // In blocks of different lengths, each with the memory of the block before.
        let mut room = Vec::new();
        for (first, end) in [(0, 1), (1, 100_000), (100_000, 100_003), (100_003, scores.len())] {
            let itself = (first..end).contains(&itself).then(|| itself - first);
            strangers.count(&keys, &scores[first..end], itself, WithinTie { first, step: 1 }, &mut room);
        }
        assert_eq!(strangers.before(), expected);
    }
}
