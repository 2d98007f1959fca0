//! Which triplets are drawn.

use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::taxonomy::UNKNOWN;

/// Triplets of rows: triplet t is `anchors[t]`, `related[t]`, `unrelated[t]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triplets {
    /// i.
    pub anchors: Vec<usize>,
    /// j, a mutual neighbour of i.
    pub related: Vec<usize>,
    /// k, not a mutual neighbour of i.
    pub unrelated: Vec<usize>,
}

/// How triplets are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TripletRules {
    /// How many triplets each anchor gets.
    pub count: usize,
    /// How many mutual neighbours an anchor needs.
    pub fewest_neighbours: usize,
    /// Whether k may be the anchor itself.
    pub anchor_as_unrelated: bool,
}

impl Triplets {
    /// Draws the triplets of all anchors, given the mutual neighbours of each, in increasing order. j is a mutual
    /// neighbour of i and k is not. An anchor without both gets none.
    pub fn draw(mutual: &[Vec<usize>], rules: TripletRules, rng: &mut ChaCha8Rng) -> Self {
        let mut triplets = Self::default();
        let mut unrelated = Vec::with_capacity(mutual.len());
        for (anchor, related) in mutual.iter().enumerate() {
            unrelated.clear();
            let mut next_related = related.iter().peekable();
            for k in 0..mutual.len() {
                if next_related.next_if_eq(&&k).is_none() && (k != anchor || rules.anchor_as_unrelated) {
                    unrelated.push(k);
                }
            }
            if related.len() < rules.fewest_neighbours || unrelated.is_empty() {
                continue;
            }
            let mut draw = |items: &[usize]| items[rng.random_range(0..items.len())];
            for _ in 0..rules.count {
                triplets.anchors.push(anchor);
                triplets.related.push(draw(related));
                triplets.unrelated.push(draw(&unrelated));
            }
        }
        triplets
    }

    /// i, j and k of each triplet.
    pub(super) fn iter(&self) -> impl Iterator<Item = [usize; 3]> + '_ {
        (0..self.anchors.len()).map(|t| self.get(t))
    }

    /// i, j and k of a triplet.
    pub(super) fn get(&self, t: usize) -> [usize; 3] {
        [self.anchors[t], self.related[t], self.unrelated[t]]
    }

    /// The runs of triplets with the same anchor.
    pub(super) fn runs(&self) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        for run in self.anchors.chunk_by(|a, b| a == b) {
            let start = runs.last().map_or(0, |last: &Range<usize>| last.end);
            runs.push(start..start + run.len());
        }
        runs
    }
}

/// The mutual neighbours of each item, in increasing order: the other items that are among its K nearest and have it
/// among theirs. Takes the distances between all items, [n, n]. `count_self` makes an item one of its own K nearest.
/// With `classes`, items of the same known class are nearer than all others. Equal distances are ordered by item.
pub fn mutual_neighbours<D: PartialOrd + Copy + Into<f64>>(
    distances: &[D],
    neighbours: usize,
    count_self: bool,
    classes: Option<&[u32]>,
) -> Vec<Vec<usize>> {
    let count = distances.len().isqrt();
    let mut near = vec![false; count * count];
    let mut order: Vec<(bool, f64, usize)> = Vec::with_capacity(count);
    for i in 0..count {
        let row = &distances[i * count..][..count];
        let other_class =
            |j: usize| classes.is_some_and(|classes| classes[i] != classes[j] || classes[i] == UNKNOWN);
        order.clear();
        let others = (0..count).filter(|&j| count_self || j != i);
        order.extend(others.map(|j| (other_class(j), row[j].into(), j)));
        let nearest = neighbours.min(order.len());
        if nearest < order.len() {
            let by_distance = |a: &(bool, f64, usize), b: &(bool, f64, usize)| {
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
            };
            order.select_nth_unstable_by(nearest, by_distance);
        }
        order[..nearest].iter().for_each(|&(_, _, j)| near[i * count + j] = true);
    }
    let mutual = |i: usize, j: usize| i != j && near[i * count + j] && near[j * count + i];
    (0..count).map(|i| (0..count).filter(|&j| mutual(i, j)).collect()).collect()
}
