//! One query's ranked list: the ranks and shared levels of its positives, which is all that metrics need.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

mod strangers;

/// How items with exactly equal scores are ranked.
///
/// For every metric except [H-P@k](crate::metrics::h_precision), the values under [`Pessimistic`](Self::Pessimistic)
/// and [`Optimistic`](Self::Optimistic) bound the value under any other order of the ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
}

/// One positive of a ranked list: an item that shares at least level 1 with the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positive {
    /// The rank, from 1.
    pub rank: usize,
    /// The shared level, 1 … L.
    pub level: usize,
    /// The rank of the first positive with the same score.
    tie: usize,
}

/// One query's ranked gallery.
///
/// Strangers matter to metrics only through the ranks that they occupy, so the ranking stores the positives alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    positives: Vec<Positive>,
    counts: Vec<usize>,
    ties: TiePolicy,
    query_counts: bool,
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
                positives.push(Positive { rank, level, tie: rank });
            }
        }
        Self { positives, counts, ties: TiePolicy::Stable, query_counts: false }
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
        let (scores, levels): (Vec<f32>, Vec<usize>) = items.into_iter().unzip();
        let related = levels.iter().copied().enumerate().filter(|&(_, level)| level > 0);
        Self::from_related(depth, ties, &scores, related, None, |item| levels[item] == 0)
    }

    /// As [`from_scores`](Self::from_scores), for a caller who knows the positives: `related` gives their places and
    /// levels, in gallery order. The item `itself`, which is not one of them, is not ranked. `stranger` says whether an
    /// item is neither.
    pub(crate) fn from_related(
        depth: usize,
        ties: TiePolicy,
        scores: &[f32],
        related: impl Iterator<Item = (usize, usize)>,
        itself: Option<usize>,
        stranger: impl Fn(usize) -> bool,
    ) -> Self {
        let key = |item: usize, level: usize| {
            let within_tie = match ties {
                TiePolicy::Stable => item,
                TiePolicy::Strict | TiePolicy::Optimistic => depth - level,
                TiePolicy::Pessimistic => level,
            };
            sort_key(scores[item], within_tie)
        };
        let mut related: Vec<(u64, usize)> = related.map(|(item, level)| (key(item, level), level)).collect();
        related.sort_unstable_by_key(|&(key, _)| key);
        let keys: Vec<u64> = related.iter().map(|&(key, _)| key).collect();
        let stranger = |item: usize| stranger(item).then(|| key(item, 0));
        let strangers_before = strangers::count_before(&keys, scores, itself, stranger);

        let mut counts = vec![0; depth + 1];
        let (mut rank, mut tie, mut tied_score) = (0, 0, None);
        let positives = related.into_iter().zip(strangers_before).map(|((key, level), strangers)| {
            counts[level] += 1;
            rank += strangers as usize + 1;
            if tied_score != Some(key >> 32) {
                (tie, tied_score) = (rank, Some(key >> 32));
            }
            Positive { rank, level, tie }
        });
        let positives: Vec<Positive> = positives.collect();
        counts[0] = scores.len() - positives.len() - usize::from(itself.is_some());
        Self { positives, counts, ties, query_counts: false }
    }

    /// Sets whether the query itself counts as a member of Ω(L), as in the published numbers. It has no rank either
    /// way.
    pub fn count_query(mut self, yes: bool) -> Self {
        self.query_counts = yes;
        self
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

    /// The number of ranked items whose shared level is exactly 0 … L.
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

    /// The positives, with ties ordered by `relevance[level]` as the policy says. Without this, the optimistic and the
    /// pessimistic policy order ties by level, which is not always the order by relevance.
    pub(crate) fn ties_by_relevance(&self, relevance: &[f64]) -> Cow<'_, [Positive]> {
        if self.ties == TiePolicy::Stable {
            return Cow::Borrowed(&self.positives);
        }
        let mut positives = self.positives.clone();
        for tied in positives.chunk_by_mut(|a, b| a.tie == b.tie) {
            let mut levels: Vec<usize> = tied.iter().map(|positive| positive.level).collect();
            levels.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]));
            if self.ties == TiePolicy::Pessimistic {
                levels.reverse();
            }
            for (positive, level) in tied.iter_mut().zip(levels) {
                positive.level = level;
            }
        }
        Cow::Owned(positives)
    }

    /// The positives in groups that count with one rank, that of their first: each positive by itself or, under
    /// [`TiePolicy::Strict`], the positives of equal score together.
    pub(crate) fn rank_groups<'a>(
        &self,
        positives: &'a [Positive],
    ) -> impl Iterator<Item = &'a [Positive]> + use<'a> {
        let strict = self.ties == TiePolicy::Strict;
        positives.chunk_by(move |a, b| strict && a.tie == b.tie)
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
    }

    #[test]
    fn a_list_without_ties_is_ranked_the_same_under_every_policy() {
        let levels = [1, 0, 2, 0, 1];
        let by_levels = Ranking::from_levels(2, &levels);
        let items = || levels.iter().enumerate().map(|(rank, &level)| (-(rank as f32), level));
        for ties in [TiePolicy::Stable, TiePolicy::Strict, TiePolicy::Optimistic, TiePolicy::Pessimistic] {
            let by_scores = Ranking::from_scores(2, ties, items());
            assert_eq!(by_scores.positives(), by_levels.positives());
            assert_eq!(by_scores.counts(), [2, 2, 1]);
        }
    }

    #[test]
    fn the_query_is_not_counted_by_default() {
        let ranking = Ranking::from_levels(2, &[2, 0]);
        assert_eq!(ranking.class_sizes(), [1, 0, 1]);
        assert_eq!(ranking.count_query(true).class_sizes(), [1, 0, 2]);
    }
}
