use super::{RankedList, Scoring};
use crate::metrics::{CurvePoint, precision_recall_curve};
use crate::ranking::TiePolicy;
use crate::relevance::Relevance;

/// One item's term of H-AP (HAPPIER, eq. 2–3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ItemTerm {
    /// The rank, from 1. Tied items have one rank under [`TiePolicy::Strict`], that of the first, and under
    /// [`TiePolicy::Shared`], that of the last.
    pub rank: usize,
    /// rel, at least 0.
    pub relevance: f64,
    /// H-rank = rel + Σ min(rel(j), rel) over the items j above, which [`TiePolicy::Shared`] counts tied items among. 0 for an item of relevance 0.
    pub h_rank: f64,
    /// H-rank / rank / Σ rel, the item's share of H-AP. In \[0, 1\]; 0 when every item has relevance 0.
    pub contribution: f64,
}

impl ItemTerm {
    /// H-rank / rank, from 0 to rel.
    pub fn quotient(&self) -> f64 {
        self.h_rank / self.rank as f64
    }
}

/// The term of each item, in the order of the list. The contributions add up to
/// [H-AP](crate::metrics::hierarchical_ap).
///
/// The ranks follow the tie policy; ties are ordered by relevance. O(N·L + N log N).
///
/// # Panics
///
/// When the relevance was checked for another number of levels than the list has.
pub fn terms(list: &RankedList, scoring: &Scoring) -> Vec<ItemTerm> {
    let rel = list.relevance_by_level(scoring);
    let (levels, groups) = (list.levels(), list.tie_groups());
    let total: f64 = levels.iter().map(|&level| rel[level]).sum();
    let ties_count = scoring.ties == TiePolicy::Shared;
    let one_rank = ties_count || scoring.ties == TiePolicy::Strict;
    let mut above = vec![0.0; rel.len()];
    let mut terms = vec![ItemTerm { rank: 0, relevance: 0.0, h_rank: 0.0, contribution: 0.0 }; levels.len()];
    let mut rank = 1;
    let places = list.ranked_places(scoring, &rel);
    for together in places.chunk_by(|&a, &b| one_rank && groups[a] == groups[b]) {
        let add = |above: &mut [f64]| together.iter().for_each(|&place| above[levels[place]] += 1.0);
        if ties_count {
            rank += together.len() - 1;
            add(&mut above);
        }
        for &place in together {
            let relevance = rel[levels[place]];
            let own = if ties_count { 0.0 } else { relevance };
            let h_rank = own + sum_of_minima(&above, &rel, relevance);
            let contribution = if total > 0.0 { h_rank / rank as f64 / total } else { 0.0 };
            terms[place] = ItemTerm { rank, relevance, h_rank, contribution };
        }
        if !ties_count {
            rank += together.len() - 1;
            add(&mut above);
        }
        rank += 1;
    }
    terms
}

/// Σ min(rel(j), x) over items j, given how many of them have each shared level.
pub(super) fn sum_of_minima(counts: &[f64], rel: &[f64], x: f64) -> f64 {
    counts.iter().zip(rel).map(|(count, rel)| count * rel.min(x)).sum()
}

/// The plain precision/recall curve at a level, 1 … L: the [`precision_recall_curve`] of the list when only two kinds of
/// item are told apart, those that share the level and those that do not. The area under its steps is the level's AP.
///
/// One point at the rank of each positive; empty without positives at the level.
pub fn level_curve(list: &RankedList, scoring: &Scoring, level: usize) -> Vec<CurvePoint> {
    let at_level = list.levels().iter().map(|&shared| usize::from(shared >= level)).collect();
    let binary = RankedList::new(1, at_level, Some(list.tie_groups().to_vec()));
    let relevance = Relevance::Plain { alpha: 1.0 }.checked(1);
    // Levels 0 and 1 fit a depth of 1, the groups come from a list, and α = 1 is in range.
    let (Ok(binary), Ok(relevance)) = (binary, relevance) else { return Vec::new() };
    let scoring = Scoring { relevance, ..scoring.clone() };
    precision_recall_curve(&binary.ranking(&scoring), &scoring.relevance)
}
