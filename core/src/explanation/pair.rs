use super::sort_by_decreasing;
use crate::metrics::{average_precision, hierarchical_ap};
use crate::ranking::Ranking;
use crate::relevance::CheckedRelevance;
use crate::{Error, Kind, Result};

/// How many sets of ranks for level L, and how many candidates, the search looks at more closely.
const MOST_RANK_SETS: usize = 8;
const MOST_CANDIDATES: usize = 16;

/// How far AP and H-AP together may be from the request.
const TOLERANCE: f64 = 0.01;

/// The scores that a [`pair`] of rankings is to have.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRequest {
    /// L, from 2 to 4.
    pub depth: usize,
    /// The number of items, from L + 1 to 40.
    pub size: usize,
    /// AP at level L, of both rankings. In \[0, 1\].
    pub average_precision: f64,
    /// H-AP of the first and of the second ranking. In \[0, 1\], the greater one first.
    pub h_ap: [f64; 2],
    /// The relevance of H-AP, checked for `depth` levels.
    pub relevance: CheckedRelevance,
}

/// Ranks for the items of level L and a multiset of the other items.
#[derive(Clone)]
struct Candidate {
    /// The shared levels in the order of the highest H-AP.
    best: Vec<usize>,
    /// Whether a finer level is never less relevant than a coarser one. With eq. 4 it can be.
    rising: bool,
    /// By how much AP, and the H-AP that its orders reach, fail the request.
    error: f64,
}

impl Candidate {
    /// The better candidate has less: within the tolerance first, then with rising relevance, then by error. An error,
    /// the sum of at most five differences of scores, is below 10.
    fn penalty(&self, error: f64) -> f64 {
        error + f64::from(u8::from(error > TOLERANCE)) * 20.0 + f64::from(u8::from(!self.rising)) * 10.0
    }
}

/// Two rankings of the same items, as shared levels, with the same AP and different H-AP, like the two rows of
/// HAPPIER's fig. 1 (AP 0.9; H-AP 0.94 and 0.68).
///
/// The items of level L stand at the same ranks in both: in one or two blocks, chosen for the AP. There is at least one
/// item of every other level. From the order with the highest H-AP to the one with the lowest (see
/// [`order`](super::order)), exchanges of two items lower H-AP step by step; the steps nearest to the two requested
/// values are the answer. A pair in which finer levels are never less relevant is preferred, if one is near enough.
/// Where no ranking has the requested scores, the answer is the nearest that the search finds. It depends on nothing but
/// the request.
///
/// # Errors
///
/// [`Kind::Config`] when the depth, the size or a score is out of range.
///
/// # Panics
///
/// When the relevance was checked for another number of levels.
pub fn pair(request: &PairRequest) -> Result<[Vec<usize>; 2]> {
    check(request)?;
    let &PairRequest { depth, size, .. } = request;
    let [high, low] = request.h_ap;
    let mut candidates = Vec::new();
    for (ranks, error) in rank_sets(request) {
        for counts in counts_of_others(depth, size - ranks.len()) {
            let rel = relevance_by_level(request, &ranks, &counts);
            let best = arrange(request, &ranks, &counts, &rel, false);
            let worst = arrange(request, &ranks, &counts, &rel, true);
            let missed = (high - h_ap(request, &best)).max(0.0) + (h_ap(request, &worst) - low).max(0.0);
            candidates.push(Candidate { best, rising: rel.is_sorted(), error: error + missed });
        }
    }
    let nearest = first_by(&candidates, MOST_CANDIDATES, &|candidate| candidate.penalty(candidate.error));
    let pairs = nearest.iter().map(|candidate| {
        let (error, pair) = nearest_steps(request, candidate);
        (candidate.penalty(error), pair)
    });
    // The size leaves room for every level, so there is a candidate.
    pairs.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, pair)| pair).ok_or_else(|| {
        Error::new(Kind::Config, "no ranking has these levels and items", "give more items or fewer levels")
    })
}

/// The `count` entries of least value, in order.
fn first_by<T: Clone>(entries: &[T], count: usize, value: &dyn Fn(&T) -> f64) -> Vec<T> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    sort_by_decreasing(&mut order, &|entry| -value(&entries[entry]));
    order.into_iter().take(count).map(|entry| entries[entry].clone()).collect()
}

fn check(request: &PairRequest) -> Result<()> {
    let refuse = |what: String, hint: &str| Err(Error::new(Kind::Config, what, hint));
    let &PairRequest { depth, size, average_precision, h_ap: [high, low], .. } = request;
    if !(2..=4).contains(&depth) {
        return refuse(format!("a pair of rankings is to have {depth} levels"), "give 2, 3 or 4 levels");
    }
    if !(depth + 1..=40).contains(&size) {
        return refuse(
            format!("a pair of rankings with {depth} levels is to have {size} items"),
            "give from one item more than there are levels to 40 items",
        );
    }
    if [average_precision, high, low].iter().any(|score| !(0.0..=1.0).contains(score)) || high < low {
        return refuse(
            format!("a pair of rankings is to have AP {average_precision} and H-AP {high} and {low}"),
            "give numbers from 0 to 1, the greater H-AP first",
        );
    }
    Ok(())
}

fn h_ap(request: &PairRequest, levels: &[usize]) -> f64 {
    hierarchical_ap(&Ranking::from_levels(request.depth, levels), &request.relevance).unwrap_or(0.0)
}

/// The sets of ranks for level L, from 0, whose AP is nearest to that of the request, with the difference: the first
/// ranks, a gap, and a second block.
fn rank_sets(request: &PairRequest) -> Vec<(Vec<usize>, f64)> {
    let &PairRequest { depth, size, average_precision: wanted, .. } = request;
    let most = size - depth;
    let mut sets = Vec::new();
    for first in 0..most {
        for second in 1..=most - first {
            for gap in 1..=size - first - second {
                let ranks: Vec<usize> = (0..first).chain(first + gap..first + gap + second).collect();
                let binary: Vec<usize> = (0..size).map(|rank| usize::from(ranks.contains(&rank))).collect();
                let ap = average_precision(&Ranking::from_levels(1, &binary), 1).unwrap_or(0.0);
                sets.push((ranks, (ap - wanted).abs()));
            }
        }
    }
    first_by(&sets, MOST_RANK_SETS, &|(_, error)| *error)
}

/// All ways to have `items` items of the levels 0 … depth − 1, at least one of each, as counts per level.
fn counts_of_others(depth: usize, items: usize) -> Vec<Vec<usize>> {
    let Some(last) = depth.checked_sub(1).filter(|_| items >= depth) else { return Vec::new() };
    if last == 0 {
        return vec![vec![items]];
    }
    let with = |count: usize| {
        let rest = counts_of_others(last, items - count);
        rest.into_iter().map(move |mut counts| {
            counts.push(count);
            counts
        })
    };
    (1..items).flat_map(with).collect()
}

fn relevance_by_level(request: &PairRequest, ranks: &[usize], counts: &[usize]) -> Vec<f64> {
    let mut sizes = counts.to_vec();
    sizes.push(ranks.len());
    request.relevance.by_level(&sizes)
}

/// The ranking with level L at `ranks` and the other items by decreasing relevance or, for `worst`, increasing.
fn arrange(request: &PairRequest, ranks: &[usize], counts: &[usize], rel: &[f64], worst: bool) -> Vec<usize> {
    let mut others: Vec<usize> =
        (0..request.depth).flat_map(|level| std::iter::repeat_n(level, counts[level])).collect();
    sort_by_decreasing(&mut others, &|level| if worst { -rel[level] } else { rel[level] });
    let mut others = others.into_iter();
    let at = |rank: usize| {
        if ranks.contains(&rank) { request.depth } else { others.next().unwrap_or(0) }
    };
    (0..request.size).map(at).collect()
}

/// Lowers the candidate's H-AP by exchanges of two items that are not of level L, and keeps the steps nearest to the
/// two requested values. Returns their error with them.
fn nearest_steps(request: &PairRequest, candidate: &Candidate) -> (f64, [Vec<usize>; 2]) {
    let mut levels = candidate.best.clone();
    let free: Vec<usize> = (0..levels.len()).filter(|&rank| levels[rank] < request.depth).collect();
    let mut nearest = request.h_ap.map(|wanted| ((h_ap(request, &levels) - wanted).abs(), levels.clone()));
    // The least relevant item moves up to the first free rank, then the next one to the second, and so on.
    for first in 0..free.len() {
        for place in (first..free.len() - 1).rev() {
            levels.swap(free[place], free[place + 1]);
            let now = h_ap(request, &levels);
            for (wanted, (error, best)) in request.h_ap.iter().zip(&mut nearest) {
                if (now - wanted).abs() < *error {
                    (*error, *best) = ((now - wanted).abs(), levels.clone());
                }
            }
        }
    }
    let error = candidate.error + nearest[0].0 + nearest[1].0;
    (error, nearest.map(|(_, levels)| levels))
}
