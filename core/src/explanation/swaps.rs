use super::terms::sum_of_minima;
use super::{RankedList, Scoring};
use crate::Result;
use crate::ranking::TiePolicy;

/// One of two neighbours that swap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swapped {
    /// The shared level.
    pub level: usize,
    /// rel.
    pub relevance: f64,
    /// S = Σ min(rel(j), rel) over the items j above both.
    pub shared: f64,
}

/// What the swap of two neighbours changes, by the exact law
///
/// ```text
/// ΔH-AP = (rel_up − rel_down + S_up − S_down) / (r (r + 1) Σ rel)
/// ```
///
/// for the item `up` that moves from rank r + 1 to rank r, and the item `down` that moves from r to r + 1. It follows
/// from HAPPIER's eq. 3: only the terms of the two change, and min(rel_up, rel_down) stays in that of the lower one.
/// So H-AP rises exactly when the more relevant of the two moves up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swap {
    /// r, the upper rank, from 1.
    pub rank: usize,
    /// The item that moves from r + 1 to r.
    pub up: Swapped,
    /// The item that moves from r to r + 1.
    pub down: Swapped,
    /// ΔH-AP.
    pub delta: f64,
}

/// The neighbour swaps that move the item in place `from` to place `to`, both counted from 0, in the order in which they
/// happen. Their `delta` add up to the change of H-AP.
///
/// `None` where the law does not hold: when items are tied before or after the move and the policy is not
/// [`TiePolicy::Stable`], and when every item has relevance 0. O(L) for each swap.
///
/// # Errors
///
/// [`Kind::Config`](crate::Kind::Config) when the list has no such place.
///
/// # Panics
///
/// When the relevance was checked for another number of levels than the list has.
pub fn swaps(list: &RankedList, scoring: &Scoring, from: usize, to: usize) -> Result<Option<Vec<Swap>>> {
    let moved = list.moved(from, to)?;
    if scoring.ties != TiePolicy::Stable && (list.has_ties() || moved.has_ties()) {
        return Ok(None);
    }
    let rel = list.relevance_by_level(scoring);
    let levels = list.levels();
    let total: f64 = levels.iter().map(|&level| rel[level]).sum();
    if total == 0.0 {
        return Ok(None);
    }
    let count = |above: &[usize]| {
        let mut counts = vec![0.0; rel.len()];
        above.iter().for_each(|&level| counts[level] += 1.0);
        counts
    };
    let swap = |rank: usize, above: &[f64], up: usize, down: usize| {
        let swapped = |level: usize| {
            let relevance = rel[level];
            Swapped { level, relevance, shared: sum_of_minima(above, &rel, relevance) }
        };
        let (up, down) = (swapped(up), swapped(down));
        let gain = up.relevance - down.relevance + up.shared - down.shared;
        Swap { rank, up, down, delta: gain / (rank as f64 * (rank + 1) as f64 * total) }
    };
    let mut above = count(&levels[..from]);
    let own = levels[from];
    let mut swaps = Vec::new();
    // Places count from 0, ranks from 1.
    for place in from + 1..to + 1 {
        swaps.push(swap(place, &above, levels[place], own));
        above[levels[place]] += 1.0;
    }
    for place in (to..from).rev() {
        above[levels[place]] -= 1.0;
        swaps.push(swap(place + 1, &above, own, levels[place]));
    }
    Ok(Some(swaps))
}
