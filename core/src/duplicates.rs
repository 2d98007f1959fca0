//! Groups of items that are nearly equal.
//!
//! Two items are nearly equal if their score is at least a bound. A group has all items that a chain of such pairs joins, so
//! that two of its items may be less alike than the bound.

use crate::Result;
use crate::embeddings::Rows;
use crate::similarity::{Items, Points, Similarity, measure};
use crate::threads::in_order;

/// The items that are compared with all later ones in one pass.
const PASS: usize = 2048;
/// The items that are read and scored together.
const BLOCK: usize = 512;

/// An item of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alike {
    /// Its place in the gallery.
    pub item: usize,
    /// Its greatest score to another item of the group.
    pub score: f32,
}

/// The groups of items whose score is at least `at_least`, with pairs in `same` that are equal for another reason, whose
/// score counts as 1. Items of a group are in gallery order, and so are groups, by their first items. `progress` gets the
/// number of items that were compared with all others.
///
/// Each pair is scored, O(N² d), by the sums of the evaluation. Memory is O(block · N) at most, and mostly O(N).
///
/// # Errors
///
/// [`Kind::Embeddings`](crate::Kind::Embeddings) for an embedding that the similarity is not defined for, or that cannot be
/// read.
pub fn duplicates(
    rows: &dyn Rows,
    similarity: Similarity,
    at_least: f32,
    same: &[[usize; 2]],
    progress: &dyn Fn(usize),
) -> Result<Vec<Vec<Alike>>> {
    let mut groups = Groups::new(rows.len());
    same.iter().for_each(|&[a, b]| groups.join(a, b, 1.0));
    let points = |first: usize, end: usize| -> Result<Points> {
        let mut numbers = vec![0.0; (end - first) * rows.dimension()];
        rows.read(first, &mut numbers)?;
        let measures = measure(similarity, (rows.dimension(), &numbers), first, "gallery")?;
        Ok(Points::new(similarity, (rows.dimension(), numbers), measures))
    };
    for first in (0..rows.len()).step_by(PASS) {
        let end = rows.len().min(first + PASS);
        let queries = points(first, end)?;
        let queries = queries.batch(0..end - first);
        // Each pair once: an item with those behind it.
        let pairs = |block: usize| -> Result<Vec<(usize, usize, f32)>> {
            let start = first + block * BLOCK;
            let items = Items::from(points(start, rows.len().min(start + BLOCK))?);
            let scores = items.scores(&queries);
            let lines = (first..end).zip(scores.chunks_exact(items.len()));
            let close = lines.flat_map(|(a, line)| {
                let pairs = (start..).zip(line).map(move |(b, &score)| (a, b, score));
                pairs.filter(|&(a, b, score)| a < b && score >= at_least)
            });
            Ok(close.collect())
        };
        for pairs in in_order((rows.len() - first).div_ceil(BLOCK), pairs) {
            pairs?.into_iter().for_each(|(a, b, score)| groups.join(a, b, score));
        }
        progress(end);
    }
    Ok(groups.of_several())
}

/// Disjoint sets of items.
struct Groups {
    /// An item of the same group before this one, or itself for the first item of a group.
    before: Vec<usize>,
    /// The greatest score of each item.
    scores: Vec<f32>,
}

impl Groups {
    fn new(len: usize) -> Self {
        Self { before: (0..len).collect(), scores: vec![f32::NEG_INFINITY; len] }
    }

    /// The first item of the group of an item.
    fn first(&mut self, mut item: usize) -> usize {
        while self.before[item] != item {
            self.before[item] = self.before[self.before[item]];
            item = self.before[item];
        }
        item
    }

    fn join(&mut self, a: usize, b: usize, score: f32) {
        for item in [a, b] {
            self.scores[item] = self.scores[item].max(score);
        }
        let (a, b) = (self.first(a), self.first(b));
        self.before[a.max(b)] = a.min(b);
    }

    /// The groups of more than one item.
    fn of_several(mut self) -> Vec<Vec<Alike>> {
        let mut groups: Vec<Vec<Alike>> = vec![Vec::new(); self.before.len()];
        for item in 0..self.before.len() {
            let first = self.first(item);
            groups[first].push(Alike { item, score: self.scores[item] });
        }
        groups.retain(|group| group.len() > 1);
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embeddings::Embeddings;

    /// Points of the unit circle at these angles, in degrees.
    fn circle(angles: &[f32]) -> Embeddings {
        let point = |angle: &f32| [angle.to_radians().cos(), angle.to_radians().sin()];
        Embeddings::new(2, angles.iter().flat_map(point).collect()).unwrap()
    }

    fn groups(rows: &Embeddings, degrees: f32, same: &[[usize; 2]]) -> Vec<Vec<Alike>> {
        let at_least = degrees.to_radians().cos();
        duplicates(rows, Similarity::Cosine, at_least, same, &|_| {}).unwrap()
    }

    fn items(groups: &[Vec<Alike>]) -> Vec<Vec<usize>> {
        groups.iter().map(|group| group.iter().map(|alike| alike.item).collect()).collect()
    }

    #[test]
    fn a_chain_of_close_pairs_is_one_group() {
        let rows = circle(&[0.0, 90.0, 2.0, 200.0, 4.0, 91.0]);
        assert_eq!(items(&groups(&rows, 2.5, &[])), [vec![0, 2, 4], vec![1, 5]]);
        assert_eq!(items(&groups(&rows, 1.5, &[])), [vec![1, 5]]);
        assert!(groups(&rows, 0.5, &[]).is_empty());
        assert!(groups(&circle(&[0.0]), 0.5, &[]).is_empty());
    }

    #[test]
    fn an_item_has_its_score_to_the_nearest_of_its_group() {
        let rows = circle(&[0.0, 3.0, 1.0]);
        let found = groups(&rows, 2.5, &[]);
        let degrees: Vec<f32> =
            found[0].iter().map(|alike| alike.score.acos().to_degrees().round()).collect();
        assert_eq!(degrees, [1.0, 2.0, 1.0]);
    }

    #[test]
    fn pairs_that_are_equal_for_another_reason_are_joined() {
        let rows = circle(&[0.0, 90.0, 2.0, 180.0]);
        let found = groups(&rows, 2.5, &[[1, 3], [2, 3]]);
        assert_eq!(items(&found), [vec![0, 1, 2, 3]]);
        assert_eq!(found[0][1].score, 1.0);
    }

    #[test]
    fn pairs_of_different_passes_and_blocks_are_found() {
        let count = PASS + BLOCK + 5;
        let angle = |item: usize| if item == 3 || item == count - 1 { 0.0 } else { 10.0 + 0.1 * item as f32 };
        let rows = circle(&(0..count).map(angle).collect::<Vec<_>>());
        let naive: Vec<usize> = (0..count)
            .filter(|&a| {
                let close =
                    |b: usize| ((angle(a) - angle(b)).rem_euclid(360.0) + 0.04).rem_euclid(360.0) < 0.08;
                (0..count).any(|b| a != b && close(b))
            })
            .collect();
        let mut found: Vec<usize> = items(&groups(&rows, 0.04, &[])).concat();
        found.sort_unstable();
        assert!(found.contains(&3) && found.contains(&(count - 1)));
        assert_eq!(found, naive);
    }
}
