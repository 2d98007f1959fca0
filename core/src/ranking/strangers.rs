//! How many strangers rank between two positives.
//!
//! A query often has few positives and always many strangers, whose order does not matter. The range of the positives'
//! scores is cut into buckets of equal width. The bucket of an item says how many positives are in earlier buckets, and
//! all of them rank above it. So the item is compared only with the positives of its own bucket. Most buckets have at most
//! two, and two comparisons take no branch, which a processor could not predict.
//!
//! The positives are counted as if they were strangers of their scores, so that no label has to be looked up.
//! [`PartialRanking::finish`](super::PartialRanking::finish) takes them off again.

use macerator::{Simd, with_simd};

/// Buckets per positive: more make fewer crowded buckets, and take more cache.
const BUCKETS_PER_POSITIVE: usize = 2;
/// The most buckets: they stay in the cache.
const MOST_BUCKETS: usize = 1 << 17;
/// The positives of a bucket that every item of the bucket is compared with.
const COMPARED: usize = 2;
/// Marks a bucket with more positives than are compared.
const CROWDED: u32 = 1 << 31;
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
            let bucket = |key| buckets.of(super::score_of(key)) as usize;
            keys.iter().for_each(|&key| starts[bucket(key) + 1] += 1);
            let mut start = 0;
            for next in &mut starts[1..] {
                start += std::mem::replace(next, start);
            }
            let mut sorted = vec![0; keys.len()];
            for &key in &*keys {
                // When every key has its place, this is the start of the next bucket.
                let place = &mut starts[bucket(key) + 1];
                sorted[*place as usize] = key;
                *place += 1;
            }
            for bucket in 0..buckets.count {
                let here = &mut sorted[starts[bucket] as usize..starts[bucket + 1] as usize];
                if here.len() > 1 {
                    here.sort_unstable();
                }
                if here.len() > COMPARED {
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
    /// positives, and [`BEHIND`].
    pub(super) fn count(
        &mut self,
        keys: &[u64],
        scores: &[f32],
        itself: Option<usize>,
        within_tie: WithinTie,
    ) {
        let Self { buckets, starts, before } = self;
        if before.is_empty() {
            return;
        }
        count_all(keys, scores, within_tie, *buckets, starts, before);
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

/// Counts each item into `before`, at the number of positives that rank above it.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn count_all<S: Simd>(
    keys: &[u64],
    scores: &[f32],
    within_tie: WithinTie,
    buckets: Buckets,
    starts: &[u32],
    before: &mut [u32],
) {
    const CHUNK: usize = 512;
    let (mut item_buckets, mut item_keys, mut open) = ([0; CHUNK], [0; CHUNK], [0; CHUNK]);
    for (first, scores) in (0..).step_by(CHUNK).zip(scores.chunks(CHUNK)) {
        // Loops of their own, which the compiler vectorises.
        for (bucket, &score) in item_buckets.iter_mut().zip(scores) {
            *bucket = buckets.of(score);
        }
        for (item, (item_key, &score)) in item_keys.iter_mut().zip(scores).enumerate() {
            *item_key = super::sort_key(score, within_tie.of(first + item));
        }
        let mut length = 0;
        for item in 0..scores.len() {
            let start = starts[item_buckets[item] as usize];
            let crowded = start / CROWDED;
            let start = (start % CROWDED) as usize;
            let mut above = start;
            for &positive in &keys[start..start + COMPARED] {
                above += usize::from(positive < item_keys[item]);
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
            let any = !keys.is_empty();
            strangers.restart(&mut keys);
            prop_assert!(keys.is_sorted() && keys.ends_with(&BEHIND));
            for (first, scores) in (0..).step_by(block).zip(scores.chunks(block)) {
                let itself = itself.filter(|itself| (first..first + scores.len()).contains(itself));
                let itself = itself.map(|itself| itself - first);
                strangers.count(&keys, scores, itself, WithinTie { first, step: 1 });
            }
            if any {
                prop_assert_eq!(strangers.before(), expected);
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
        strangers.count(&keys, &scores, Some(itself), WithinTie { first: 0, step: 1 });
        assert_eq!(strangers.before(), expected);
    }
}
