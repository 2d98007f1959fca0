use super::sort_by_decreasing;
use crate::ranking::{Ranking, TiePolicy};
use crate::relevance::CheckedRelevance;
use crate::{Error, Kind, Result};

/// The most levels of a [`RankedList`]. Memory for every level is reserved before the items are read.
const MOST_LEVELS: usize = 100;

/// The most items of a [`RankedList`]: tie groups become f32 scores, which are exact up to here.
const MOST_ITEMS: usize = 1 << 24;

/// The items of one ranking, best first, each with its shared level and its tie group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedList {
    depth: usize,
    levels: Vec<usize>,
    /// Non-decreasing from 0, in steps of at most 1. Equal groups are tied.
    groups: Vec<usize>,
}

/// How a list is scored: the settings of an [`EvaluationConfig`](crate::evaluate::EvaluationConfig) that matter to one
/// ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoring {
    /// The relevance of H-AP, checked for the depth of the list.
    pub relevance: CheckedRelevance,
    /// How tied items are ranked.
    pub ties: TiePolicy,
    /// Whether |Ω(L)| counts the query itself.
    pub count_query: bool,
}

impl RankedList {
    /// A list with `depth` levels from the shared level, 0 … `depth`, of each item, best first. `ties` are the tie groups
    /// of the items; without them no items are tied.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when the depth is 0 or above 100, there are more than 2²⁴ items, a shared level exceeds the depth,
    /// or there is not one tie group for each item, in non-decreasing order.
    pub fn new(depth: usize, levels: Vec<usize>, ties: Option<Vec<usize>>) -> Result<Self> {
        let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
        if !(1..=MOST_LEVELS).contains(&depth) {
            return refuse(
                format!("the ranking has {depth} levels"),
                "give a number of levels from 1 to 100",
            );
        }
        if levels.len() > MOST_ITEMS {
            return refuse(
                format!("the ranking has {} items", levels.len()),
                "give at most 16,777,216 items",
            );
        }
        if let Some((rank, level)) = (1..).zip(&levels).find(|&(_, &level)| level > depth) {
            return refuse(
                format!("the item at rank {rank} has the shared level {level}, and there are {depth} levels"),
                "give a level from 0 (nothing shared) to the number of levels (the same class)",
            );
        }
        let Some(ties) = ties else {
            let groups = (0..levels.len()).collect();
            return Ok(Self { depth, levels, groups });
        };
        if ties.len() != levels.len() {
            return refuse(
                format!("there are {} tie groups for {} items", ties.len(), levels.len()),
                "give one tie group for each item",
            );
        }
        if !ties.is_sorted() {
            return refuse(
                "the tie groups fall along the ranking".into(),
                "number the tie groups from the best items to the worst",
            );
        }
        Ok(Self { depth, levels, groups: numbered(&ties) })
    }

    /// L, the number of levels.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The shared level of each item, best first.
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// The tie group of each item, from 0. Equal groups are tied.
    pub fn tie_groups(&self) -> &[usize] {
        &self.groups
    }

    /// Whether any two items are tied.
    pub fn has_ties(&self) -> bool {
        self.groups.last().is_some_and(|last| last + 1 < self.groups.len())
    }

    /// The list after the item in place `from` has moved to place `to`, both counted from 0. It is tied there only
    /// when it comes between two items that are tied; the ties of the other items stay.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when the list has no such place.
    pub fn moved(&self, from: usize, to: usize) -> Result<Self> {
        self.check_places(from, to)?;
        if from == to {
            return Ok(self.clone());
        }
        let (mut levels, mut groups) = (self.levels.clone(), self.groups.clone());
        let level = levels.remove(from);
        groups.remove(from);
        let inside = to > 0 && to < groups.len() && groups[to - 1] == groups[to];
        // The other groups become even, so that an odd one is tied with none.
        let own = if inside { 2 * groups[to] } else { 1 };
        groups.iter_mut().for_each(|group| *group *= 2);
        levels.insert(to, level);
        groups.insert(to, own);
        Ok(Self { depth: self.depth, levels, groups: numbered(&groups) })
    }

    /// The ranking that metrics measure.
    pub fn ranking(&self, scoring: &Scoring) -> Ranking {
        let scores = self.groups.iter().map(|&group| -(group as f32));
        let items = scores.zip(self.levels.iter().copied());
        Ranking::from_scores(self.depth, scoring.ties, items).count_query(scoring.count_query)
    }

    /// rel of each shared level 0 … L.
    ///
    /// # Panics
    ///
    /// When the relevance was checked for another number of levels.
    pub fn relevance_by_level(&self, scoring: &Scoring) -> Vec<f64> {
        let mut sizes = vec![0; self.depth + 1];
        self.levels.iter().for_each(|&level| sizes[level] += 1);
        sizes[self.depth] += usize::from(scoring.count_query);
        scoring.relevance.by_level(&sizes)
    }

    /// The places of the items in the order in which the tie policy ranks them for H-AP. Under
    /// [`TiePolicy::Strict`] and [`TiePolicy::Shared`], which give tied items no order, the optimistic order.
    pub(super) fn ranked_places(&self, scoring: &Scoring, rel: &[f64]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.levels.len()).collect();
        let rel_of = |place: usize| rel[self.levels[place]];
        for tied in places.chunk_by_mut(|&a, &b| self.groups[a] == self.groups[b]) {
            match scoring.ties {
                TiePolicy::Stable => {}
                TiePolicy::Strict | TiePolicy::Optimistic | TiePolicy::Shared => {
                    sort_by_decreasing(tied, &rel_of);
                }
                TiePolicy::Pessimistic => sort_by_decreasing(tied, &|place| -rel_of(place)),
            }
        }
        places
    }

    pub(super) fn check_places(&self, from: usize, to: usize) -> Result<()> {
        let items = self.levels.len();
        if from.max(to) < items {
            return Ok(());
        }
        Err(Error::new(
            Kind::Config,
            format!("an item is to move from place {from} to place {to} of {items}, counted from 0"),
            "give places of the ranking",
        ))
    }
}

/// Groups numbered from 0 in steps of 1; neighbours with equal numbers stay together.
fn numbered(ties: &[usize]) -> Vec<usize> {
    let mut group = 0;
    let step = |place: usize| {
        group += usize::from(place > 0 && ties[place] != ties[place - 1]);
        group
    };
    (0..ties.len()).map(step).collect()
}
