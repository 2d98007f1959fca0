//! One query's ranked list: the ranks and shared levels of its positives, which is all that metrics need.

use std::borrow::Cow;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::taxonomy::SharedInterval;
use crate::{Error, Kind, Result};

mod strangers;

use strangers::{Strangers, WithinTie};

/// How items with exactly equal scores are ranked.
///
/// For every metric except [H-P@k](crate::metrics::h_precision), the values under [`Pessimistic`](Self::Pessimistic)
/// and [`Optimistic`](Self::Optimistic) bound the value under any other order of the ties. [`Strict`](Self::Strict) and
/// [`Shared`](Self::Shared) are not orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TiePolicy {
    /// In gallery order.
    #[default]
    Stable,
    /// Not ordered, in H-AP and AP: the step H(s_j − s_k) of the papers is 0 at equal scores, so that tied items do not
    /// count as above each other. The other metrics need an order and use the optimistic one.
    Strict,
    /// The most relevant first.
    Optimistic,
    /// The least relevant first.
    Pessimistic,
    /// All at the last rank of the tie, as scikit-learn has it: rank(i) is the number of items that score at least as
    /// much as i, and tied items count as above each other. An item is among the first k only if its whole tie is. AP is
    /// then scikit-learn's `average_precision_score`: P/r for each positive of a tie that ends at rank r with P positives
    /// so far. All other metrics follow from their formulas; a rank that no item has counts as a stranger.
    Shared,
}

/// Reads `stable`, `strict`, `optimistic`, `pessimistic` and `shared`.
impl FromStr for TiePolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "stable" => Ok(Self::Stable),
            "strict" => Ok(Self::Strict),
            "optimistic" => Ok(Self::Optimistic),
            "pessimistic" => Ok(Self::Pessimistic),
            "shared" => Ok(Self::Shared),
            _ => Err(Error::new(
                Kind::Config,
                format!("there is no policy of ties `{text}`"),
                "write stable, strict, optimistic, pessimistic or shared",
            )),
        }
    }
}

/// The levels of an item that shares nothing.
const STRANGER: SharedInterval = SharedInterval { least: 0, most: 0 };

/// One positive of a ranked list: an item that shares at least level 1 with the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positive {
    /// The rank, from 1. No two positives have the same, unless they are tied under [`TiePolicy::Shared`].
    pub rank: usize,
    /// The shared level, 1 … L: the least that it may be.
    pub level: usize,
    /// The finest level that the item may share, `level` … L. It is `level` unless a label is unknown.
    pub most: usize,
    /// The rank of the first positive with the same score.
    tie: usize,
}

impl Positive {
    /// The levels that the item may share with the query.
    pub fn levels(&self) -> SharedInterval {
        SharedInterval { least: self.level, most: self.most }
    }

    /// Whether the pair with the query is decided at a level, 1 … L, or at all levels for level 0.
    pub fn is_decided(&self, level: usize) -> bool {
        match level {
            0 => self.levels().level().is_some(),
            level => self.levels().share(level).is_some(),
        }
    }
}

/// One query's ranked gallery.
///
/// Strangers matter to metrics only through the ranks that they occupy, so the ranking stores the positives alone.
///
/// Where labels are unknown, a metric is computed from the [decided](Self::decided) part of the ranking;
/// [`crate::unknown`] says how.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    positives: Vec<Positive>,
    counts: Vec<usize>,
    ties: TiePolicy,
    query_counts: bool,
    /// None if every label is known.
    known: Option<KnownLabels>,
}

/// What is known of the labels of a query and of its gallery.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownLabels {
    /// The number of levels at which the query's label is known.
    pub query: usize,
    /// p_1 … p_L, the share of the gallery whose label is known at each level. Each is above 0.
    pub shares: Vec<f64>,
}

impl Ranking {
    /// The ranking of a list that is already in order: the shared level, 0 … `depth`, of each item, best first.
    ///
    /// # Panics
    ///
    /// When a level exceeds `depth`.
    pub fn from_levels(depth: usize, levels: &[usize]) -> Self {
        let mut counts = vec![0; depth + 1];
        let mut positives = Vec::new();
        for (rank, &level) in (1..).zip(levels) {
            counts[level] += 1;
            if level > 0 {
                positives.push(Positive { rank, level, most: level, tie: rank });
            }
        }
        Self { positives, counts, ties: TiePolicy::Stable, query_counts: false, known: None }
    }

    /// The ranking, by decreasing score, of items given in gallery order as (score, shared level 0 … `depth`).
    ///
    /// Scores must be finite; −0 and 0 are equal. Only the P positives are sorted: O(N + P log P) for scores that are
    /// spread about evenly, at most O(N log P).
    ///
    /// # Panics
    ///
    /// When a level exceeds `depth`.
    pub fn from_scores(depth: usize, ties: TiePolicy, items: impl IntoIterator<Item = (f32, usize)>) -> Self {
        let interval = |(score, level)| (score, SharedInterval { least: level, most: level });
        Self::from_intervals(depth, ties, items.into_iter().map(interval))
    }

    /// As [`from_scores`](Self::from_scores), for items given with the levels that they may share with the query.
    ///
    /// # Panics
    ///
    /// When a level exceeds `depth`.
    pub fn from_intervals(
        depth: usize,
        ties: TiePolicy,
        items: impl IntoIterator<Item = (f32, SharedInterval)>,
    ) -> Self {
        let (scores, levels): (Vec<f32>, Vec<SharedInterval>) = items.into_iter().unzip();
        let mut ranking = PartialRanking::new(depth, ties, levels.len());
        for (item, &levels) in levels.iter().enumerate().filter(|(_, levels)| levels.most > 0) {
            assert!(levels.most <= depth, "a level of {} is above {depth}", levels.most);
            ranking.add_positive(item, scores[item], levels);
        }
        ranking.sort();
        ranking.count(0, &scores, &mut Vec::new());
        ranking.finish(|item| levels[item])
    }

    /// Sets whether the query itself counts as a member of Ω(L), as in the published numbers. It has no rank either
    /// way.
    pub fn count_query(mut self, yes: bool) -> Self {
        self.query_counts = yes;
        self
    }

    /// Sets what is known of the labels. Without it all labels are known.
    ///
    /// # Panics
    ///
    /// When there is not one share for each level.
    pub fn with_known(mut self, known: KnownLabels) -> Self {
        assert_eq!(known.shares.len(), self.depth(), "one share for each level");
        self.known = Some(known);
        self
    }

    /// What is known of the labels; `None` if all are known.
    pub fn known(&self) -> Option<&KnownLabels> {
        self.known.as_ref()
    }

    /// L, the number of levels.
    pub fn depth(&self) -> usize {
        self.counts.len() - 1
    }

    /// N, the number of ranked items.
    #[expect(
        clippy::len_without_is_empty,
        reason = "metrics ask whether there are positives, not whether there are items"
    )]
    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How equal scores are ranked.
    pub fn ties(&self) -> TiePolicy {
        self.ties
    }

    /// The positives in ranked order.
    pub fn positives(&self) -> &[Positive] {
        &self.positives
    }

    /// The number of ranked items whose shared level is exactly 0 … L. An item whose level is not decided counts at the
    /// least that it may be.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The number of ranked items that share `level` or a finer one with the query.
    pub fn positives_at(&self, level: usize) -> usize {
        self.counts[level..].iter().sum()
    }

    /// The positives' levels in the ideal order by level, finest first.
    pub fn ideal_levels(&self) -> impl Iterator<Item = usize> + '_ {
        (1..=self.depth()).rev().flat_map(|level| std::iter::repeat_n(level, self.counts[level]))
    }

    /// |Ω(0)| … |Ω(L)|: the counts, with the query if it counts.
    pub fn class_sizes(&self) -> Vec<usize> {
        let mut sizes = self.counts.clone();
        sizes[self.depth()] += usize::from(self.query_counts);
        sizes
    }

    /// The part of the ranking that is decided at a level, 1 … L, or at all levels for level 0.
    ///
    /// An item whose shared level is not decided there is left out and takes no rank. Nothing is decided for a query whose
    /// own label is unknown there: then the part has no positives.
    pub fn decided(&self, level: usize) -> Decided<'_> {
        let Some(known) = &self.known else {
            return Decided {
                positives: Cow::Borrowed(&self.positives),
                whole: Cow::Borrowed(&[]),
                counts: Cow::Borrowed(&self.counts),
                weights: Vec::new(),
                ranking: self,
            };
        };
        let depth = self.depth();
        let scored = if level == 0 { depth } else { level };
        let weights = (0..=depth).map(|shared| known.shares[(shared + 1).min(scored) - 1].recip()).collect();
        let (mut positives, mut whole) = (Vec::new(), Vec::new());
        let mut counts = vec![0; depth + 1];
        counts[0] = self.counts[0];
        let (mut left_out, mut tie, mut old_tie) = (0, 0, 0);
        let is_decided = |positive: &&Positive| positive.is_decided(level) && known.query >= scored;
        for together in self.positives.chunk_by(|a, b| a.rank == b.rank) {
            left_out += together.iter().filter(|positive| !is_decided(positive)).count();
            for positive in together.iter().filter(is_decided) {
                let rank = positive.rank - left_out;
                if positive.tie != old_tie {
                    (tie, old_tie) = (rank, positive.tie);
                }
                positives.push(Positive { rank, tie, ..*positive });
                whole.push(positive.rank);
                counts[positive.level] += 1;
            }
        }
        Decided {
            positives: Cow::Owned(positives),
            whole: Cow::Owned(whole),
            counts: Cow::Owned(counts),
            weights,
            ranking: self,
        }
    }
}

/// The part of a [`Ranking`] that is decided at a level, with the weight of its items.
///
/// With all labels known it is the whole ranking, and every weight is 1.
#[derive(Clone, Debug)]
pub struct Decided<'a> {
    positives: Cow<'a, [Positive]>,
    /// The rank of each positive in the whole ranking. Empty if that is its rank.
    whole: Cow<'a, [usize]>,
    counts: Cow<'a, [usize]>,
    /// The weight of an item by its shared level, 0 … L. Empty if all are 1.
    weights: Vec<f64>,
    ranking: &'a Ranking,
}

impl Decided<'_> {
    /// L, the number of levels.
    pub fn depth(&self) -> usize {
        self.ranking.depth()
    }

    /// The number of items.
    #[expect(
        clippy::len_without_is_empty,
        reason = "metrics ask whether there are positives, not whether there are items"
    )]
    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The positives in ranked order.
    pub fn positives(&self) -> &[Positive] {
        &self.positives
    }

    /// The number of items whose shared level is exactly 0 … L.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The positives' levels in the ideal order by level, finest first.
    pub fn ideal_levels(&self) -> impl Iterator<Item = usize> + '_ {
        (1..=self.depth()).rev().flat_map(|level| std::iter::repeat_n(level, self.counts[level]))
    }

    /// Whether every weight is 1.
    pub fn is_unweighted(&self) -> bool {
        self.weights.is_empty()
    }

    /// Whether H-AP and AP take the positives one by one: every weight is 1, and ties have an order.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_unweighted() && !matches!(self.ranking.ties, TiePolicy::Strict | TiePolicy::Shared)
    }

    /// The weight of an item with this shared level, 0 … L.
    pub fn weight(&self, level: usize) -> f64 {
        self.weights.get(level).copied().unwrap_or(1.0)
    }

    /// The weight of all items of each shared level, 0 … L.
    pub fn masses(&self) -> Vec<f64> {
        self.counts.iter().enumerate().map(|(level, &count)| self.weight(level) * count as f64).collect()
    }

    /// The weight of all items that share `level` or a finer one with the query.
    pub fn mass_at(&self, level: usize) -> f64 {
        self.masses()[level..].iter().sum()
    }

    /// |Ω(0)| … |Ω(L)|: the masses, with the query if it counts.
    pub fn class_sizes(&self) -> Vec<f64> {
        let mut sizes = self.masses();
        sizes[self.depth()] += f64::from(u8::from(self.ranking.query_counts));
        sizes
    }

    /// The rank of positive number `place` in the whole ranking, where items that are left out have ranks, too.
    pub fn whole_rank(&self, place: usize) -> usize {
        self.whole.get(place).copied().unwrap_or_else(|| self.positives[place].rank)
    }

    /// The weighted rank of each of these positives, which are all in ranked order: 1 and the weight of all items above
    /// it. Without weights it is the rank.
    pub(crate) fn weighted_ranks(&self, positives: &[Positive]) -> Vec<f64> {
        if self.is_unweighted() {
            return positives.iter().map(|positive| positive.rank as f64).collect();
        }
        // Strangers weigh 1, so that only the positives above an item can weigh more.
        let extra = |positive: &Positive| self.weight(positive.level) - 1.0;
        let mut more = 0.0;
        let mut ranks = Vec::with_capacity(positives.len());
        for together in positives.chunk_by(|a, b| a.rank == b.rank) {
            let all: f64 = together.iter().map(extra).sum();
            ranks.extend(together.iter().map(|item| item.rank as f64 + more + (all - extra(item))));
            more += all;
        }
        ranks
    }

    /// The same where ties of [`TiePolicy::Strict`] have the rank of their first.
    pub(crate) fn ranks_of_steps(&self, positives: &[Positive]) -> Vec<f64> {
        let mut ranks = self.weighted_ranks(positives);
        if self.ranking.ties == TiePolicy::Strict {
            for group in self.rank_groups(positives) {
                let first = ranks[group.start];
                ranks[group].fill(first);
            }
        }
        ranks
    }

    /// The weighted rank of each positive of a level, 1 … L, in ranked order, with the weight of those above it, up to
    /// the rank `last`.
    pub(crate) fn ranks_at(&self, level: usize, last: f64) -> Vec<(f64, f64)> {
        let weight = self.weight(level);
        // No weight is below 1, so that no weighted rank is below the rank.
        let first = self.positives.partition_point(|positive| positive.rank as f64 <= last);
        let positives = &self.positives[..first];
        let ranks = self.weighted_ranks(positives);
        let places: Vec<usize> = (0..ranks.len()).filter(|&place| positives[place].level >= level).collect();
        let mut above = 0.0;
        let mut found = Vec::with_capacity(places.len());
        for together in places.chunk_by(|&a, &b| positives[a].rank == positives[b].rank) {
            let others = weight * (together.len() - 1) as f64;
            found.extend(together.iter().map(|&place| (ranks[place], above + others)));
            above += weight * together.len() as f64;
        }
        found.truncate(found.partition_point(|(rank, _)| *rank <= last));
        found
    }

    /// The positives, with ties ordered by `relevance[level]` as the policy says. Without this, the optimistic and the
    /// pessimistic policy order ties by level, which is not always the order by relevance.
    pub(crate) fn ties_by_relevance(&self, relevance: &[f64]) -> Cow<'_, [Positive]> {
        let ties = self.ranking.ties;
        if ties == TiePolicy::Stable {
            return Cow::Borrowed(&self.positives);
        }
        let mut positives = self.positives.to_vec();
        for tied in positives.chunk_by_mut(|a, b| a.tie == b.tie) {
            let mut levels: Vec<usize> = tied.iter().map(|positive| positive.level).collect();
            levels.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]));
            if ties == TiePolicy::Pessimistic {
                levels.reverse();
            }
            for (positive, level) in tied.iter_mut().zip(levels) {
                positive.level = level;
            }
        }
        Cow::Owned(positives)
    }

    /// Whether tied items count as above each other, as [`TiePolicy::Shared`] says.
    pub(crate) fn ties_count(&self) -> bool {
        self.ranking.ties == TiePolicy::Shared
    }

    /// The places of the positives in groups that count with one rank in H-AP and AP: each positive by itself or, under
    /// [`TiePolicy::Strict`] and [`TiePolicy::Shared`], the positives of equal score together.
    pub(crate) fn rank_groups<'a>(
        &self,
        positives: &'a [Positive],
    ) -> impl Iterator<Item = std::ops::Range<usize>> + use<'a> {
        let together = matches!(self.ranking.ties, TiePolicy::Strict | TiePolicy::Shared);
        let mut start = 0;
        positives.chunk_by(move |a, b| together && a.tie == b.tie).map(move |group| {
            let first = start;
            start += group.len();
            first..start
        })
    }
}

/// The low half of the [sort keys](sort_key) of items that may share the levels 0 … L: the place among items of equal
/// score.
#[derive(Clone, Copy, Debug)]
struct LowHalf {
    ties: TiePolicy,
    /// The bits of a level.
    bits: u32,
    /// Under [`TiePolicy::Stable`], the number of bits below the number of an item. They hold its levels, so that these
    /// are not looked up again. It is 0 if there are too many items for that.
    below: u32,
}

impl LowHalf {
    /// For a gallery of `items`.
    fn new(depth: usize, ties: TiePolicy, items: usize) -> Self {
        let bits = usize::BITS - depth.leading_zeros();
        let fits = items as u64 <= (1 << 32) >> (2 * bits);
        Self { ties, bits, below: if fits { 2 * bits } else { 0 } }
    }

    /// The low half of an item that may share these levels.
    fn write(self, item: usize, SharedInterval { least, most }: SharedInterval) -> usize {
        let levels = least << self.bits | most;
        match self.ties {
            TiePolicy::Stable => item << self.below | levels & low_bits(self.below),
            TiePolicy::Strict | TiePolicy::Optimistic => low_bits(2 * self.bits) - levels,
            TiePolicy::Pessimistic | TiePolicy::Shared => levels,
        }
    }

    /// The levels that an item shares with the query, from the low half of its key. If the key holds no levels, they are
    /// those that `look_up` returns for the item.
    fn levels(self, low_half: usize, look_up: impl Fn(usize) -> SharedInterval) -> SharedInterval {
        let levels = match self.ties {
            TiePolicy::Stable if self.below == 0 => return look_up(low_half),
            TiePolicy::Stable => low_half & low_bits(self.below),
            TiePolicy::Strict | TiePolicy::Optimistic => low_bits(2 * self.bits) - low_half,
            TiePolicy::Pessimistic | TiePolicy::Shared => low_half,
        };
        SharedInterval { least: levels >> self.bits, most: levels & low_bits(self.bits) }
    }
}

/// A number whose `count` lowest bits are 1.
fn low_bits(count: u32) -> usize {
    (1 << count) - 1
}

/// A ranking in the making: first all positives are added, then sorted, and then all items are counted, in any number
/// of blocks.
#[derive(Debug)]
pub(crate) struct PartialRanking {
    depth: usize,
    low_half: LowHalf,
    /// The query's own row in the gallery, which it does not rank.
    itself: Option<usize>,
    /// The [sort keys](sort_key) of the positives; when they are sorted, with [`strangers::BEHIND`].
    keys: Vec<u64>,
    strangers: Strangers,
    counted: usize,
}

impl PartialRanking {
    /// For a gallery of `items` that may share the levels 0 … `depth`.
    pub(crate) fn new(depth: usize, ties: TiePolicy, items: usize) -> Self {
        let low_half = LowHalf::new(depth, ties, items);
        Self { depth, low_half, itself: None, keys: Vec::new(), strangers: Strangers::default(), counted: 0 }
    }

    /// Begins the ranking of another query, in the same memory. `itself` is its own row in the gallery.
    pub(crate) fn restart(&mut self, itself: Option<usize>) {
        self.itself = itself;
        self.keys.clear();
        self.counted = 0;
    }

    /// The bytes that the ranking of this number of positives takes.
    pub(crate) fn bytes(positives: usize) -> usize {
        size_of::<Self>() + positives * size_of::<u64>() + Strangers::bytes(positives)
    }

    /// Makes room for `positives` positives. The memory of a query with more than twice that number is given back, so that a group
    /// takes at most twice the memory that it counts.
    pub(crate) fn reserve(&mut self, positives: usize) {
        if self.keys.capacity() > 2 * positives {
            self.keys = Vec::new();
            self.strangers = Strangers::default();
        }
        self.keys.reserve_exact(positives + strangers::BEHIND.len());
    }

    /// Adds an item that may share a level, 1 … L, with the query. The query itself is left out.
    pub(crate) fn add_positive(&mut self, item: usize, score: f32, levels: SharedInterval) {
        if Some(item) == self.itself {
            return;
        }
        self.keys.push(sort_key(score, self.low_half.write(item, levels)));
    }

    /// Sorts the positives, when all are there.
    pub(crate) fn sort(&mut self) {
        self.strangers.restart(&mut self.keys);
    }

    /// Counts the items from `first` on. `scores` are their scores. A positive must have the score that
    /// [`add_positive`](Self::add_positive) was given. `room` is memory to work with.
    pub(crate) fn count(&mut self, first: usize, scores: &[f32], room: &mut Vec<u64>) {
        let itself = self.itself.filter(|itself| (first..first + scores.len()).contains(itself));
        self.counted += scores.len() - usize::from(itself.is_some());
        let [place, next] = [first, first + 1].map(|item| self.low_half.write(item, STRANGER));
        let within_tie = WithinTie { first: place, step: next - place };
        self.strangers.count(&self.keys, scores, itself.map(|itself| itself - first), within_tie, room);
    }

    /// The ranking, when all items are counted. `levels` gives the levels that a positive may share with the query.
    pub(crate) fn finish(&mut self, levels: impl Fn(usize) -> SharedInterval) -> Ranking {
        let Self { depth, low_half, ref keys, ref mut strangers, counted, .. } = *self;
        let ties = low_half.ties;
        let mut counts = vec![0; depth + 1];
        let keys = &keys[..keys.len() - strangers::BEHIND.len()];
        let before = strangers.before();
        // The positives were counted as if they were strangers of their scores.
        let mut end = 0;
        for tied in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let start = end;
            end += tied.len();
            match ties {
                TiePolicy::Stable => before[start..end].iter_mut().for_each(|items| *items -= 1),
                TiePolicy::Strict | TiePolicy::Optimistic => before[end] -= tied.len() as u32,
                TiePolicy::Pessimistic | TiePolicy::Shared => before[start] -= tied.len() as u32,
            }
        }
        let (mut rank, mut tie, mut tied_score) = (0, 0, None);
        let positives = keys.iter().zip(before).map(|(key, strangers)| {
            let SharedInterval { least: level, most } = low_half.levels(*key as u32 as usize, &levels);
            counts[level] += 1;
            rank += *strangers as usize + 1;
            if tied_score != Some(key >> 32) {
                (tie, tied_score) = (rank, Some(key >> 32));
            }
            Positive { rank, level, most, tie }
        });
        let mut positives: Vec<Positive> = positives.collect();
        if ties == TiePolicy::Shared {
            for tied in positives.chunk_by_mut(|a, b| a.tie == b.tie) {
                let last = tied[tied.len() - 1].rank;
                tied.iter_mut().for_each(|positive| (positive.rank, positive.tie) = (last, last));
                // The most relevant first, so that weighted ranks never fall.
                tied.reverse();
            }
        }
        counts[0] = counted - positives.len();
        Ranking { positives, counts, ties, query_counts: false, known: None }
    }
}

/// A number that sorts by decreasing score, then by increasing `within_tie` (below 2³²).
pub(crate) fn sort_key(score: f32, within_tie: usize) -> u64 {
    u64::from(descending(score)) << 32 | within_tie as u64
}

const SIGN: u32 = 1 << 31;

/// Bits that increase as the score decreases.
fn descending(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits(); // −0 + 0 is 0.
    if bits < SIGN { SIGN - 1 - bits } else { bits }
}

/// The score of a [`sort_key`].
fn score_of(key: u64) -> f32 {
    let bits = (key >> 32) as u32;
    f32::from_bits(if bits < SIGN { SIGN - 1 - bits } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(ties: TiePolicy, items: &[(f32, usize)]) -> Vec<(usize, usize)> {
        let ranking = Ranking::from_scores(2, ties, items.iter().copied());
        ranking.positives().iter().map(|positive| (positive.rank, positive.level)).collect()
    }

    #[test]
    fn scores_rank_as_numbers_do() {
        let scores = [f32::MAX, 1.5, 1.0, f32::MIN_POSITIVE, 0.0, -f32::MIN_POSITIVE, -1.0, -2.0, f32::MIN];
        assert!(scores.windows(2).all(|pair| descending(pair[0]) < descending(pair[1])));
        assert_eq!(descending(0.0), descending(-0.0));
    }

    #[test]
    fn strangers_occupy_ranks() {
        let items = [(0.1, 1), (0.9, 0), (0.5, 2), (0.3, 0), (0.2, 0), (-0.5, 0)];
        assert_eq!(ranked(TiePolicy::Stable, &items), [(2, 2), (5, 1)]);
    }

    #[test]
    fn each_policy_orders_ties_differently() {
        let items = [(0.5, 1), (0.5, 0), (0.5, 2), (0.9, 1)];
        assert_eq!(ranked(TiePolicy::Stable, &items), [(1, 1), (2, 1), (4, 2)]);
        assert_eq!(ranked(TiePolicy::Optimistic, &items), [(1, 1), (2, 2), (3, 1)]);
        assert_eq!(ranked(TiePolicy::Pessimistic, &items), [(1, 1), (3, 1), (4, 2)]);
        assert_eq!(ranked(TiePolicy::Shared, &items), [(1, 1), (4, 2), (4, 1)]);
    }

    #[test]
    fn a_list_without_ties_is_ranked_the_same_under_every_policy() {
        let levels = [1, 0, 2, 0, 1];
        let by_levels = Ranking::from_levels(2, &levels);
        let items = || levels.iter().enumerate().map(|(rank, &level)| (-(rank as f32), level));
        use TiePolicy::{Optimistic, Pessimistic, Shared, Stable, Strict};
        for ties in [Stable, Strict, Optimistic, Pessimistic, Shared] {
            let by_scores = Ranking::from_scores(2, ties, items());
            assert_eq!(by_scores.positives(), by_levels.positives());
            assert_eq!(by_scores.counts(), [2, 2, 1]);
        }
    }

    #[test]
    fn levels_are_the_same_whether_keys_hold_them_or_not() {
        let depth = 5;
        let levels: Vec<SharedInterval> = (0..=depth)
            .flat_map(|least| (least..=depth).map(move |most| SharedInterval { least, most }))
            .collect();
        let score = |item: usize| (item % 3) as f32;
        let all = levels.iter().enumerate().map(|(item, &levels)| (score(item), levels));
        let expected = Ranking::from_intervals(depth, TiePolicy::Stable, all);
        for (items, are_held) in [(1 << 26, true), ((1 << 26) + 1, false)] {
            let mut ranking = PartialRanking::new(depth, TiePolicy::Stable, items);
            assert_eq!(ranking.low_half.below > 0, are_held);
            // The last number that an item may have.
            let first = items - levels.len();
            for (item, &levels) in levels.iter().enumerate().skip(1) {
                ranking.add_positive(first + item, score(item), levels);
            }
            ranking.sort();
            let scores: Vec<f32> = (0..levels.len()).map(score).collect();
            ranking.count(first, &scores, &mut Vec::new());
            let look_up = |item: usize| if are_held { STRANGER } else { levels[item - first] };
            assert_eq!(ranking.finish(look_up), expected);
        }
    }

    #[test]
    fn the_query_is_not_counted_by_default() {
        let ranking = Ranking::from_levels(2, &[2, 0]);
        assert_eq!(ranking.class_sizes(), [1, 0, 1]);
        assert_eq!(ranking.count_query(true).class_sizes(), [1, 0, 2]);
    }
}
