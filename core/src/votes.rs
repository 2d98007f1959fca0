//! The votes of a query's nearest neighbours: the class that they give it at each level.

use serde::Serialize;

use crate::search::Hit;
use crate::taxonomy::{Labels, UNKNOWN};

/// The class that has most votes at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Vote {
    /// 1 … L.
    pub level: usize,
    /// The class id at this level.
    pub class: u32,
    /// Its share of the weight of all neighbours whose label is known at this level. In (0, 1]; if all labels are known, it
    /// never rises from one level to the next.
    pub share: f64,
}

/// The votes of the neighbours, coarse to fine: one class per level, down to the last level at which a neighbour votes.
///
/// A neighbour's weight falls linearly with its score, from 1.01 for the nearest to 0.01 for the last; neighbours of
/// equal score have equal weights. Below the first level only the neighbours of the class chosen above vote, so that
/// the classes form a path of the taxonomy. A neighbour does not vote at a level at which its label is unknown. One with
/// several label paths votes for the class of each. When two classes have equal votes, the one with the nearer neighbour
/// wins.
///
/// `neighbours` are in ranked order, best first, as [`top_k`](crate::search::top_k) returns them; `labels` has a row for
/// each of their items.
///
/// ```
/// use akin_core::search::Hit;
/// use akin_core::taxonomy::Labels;
/// use akin_core::votes::votes;
///
/// // Two levels. Items 0 and 1 are of one family and two species, item 2 is of another family.
/// let labels = Labels::new(2, vec![0, 0, 0, 1, 1, 2])?;
/// let neighbours = [(2, 0.9), (0, 0.8), (1, 0.8), (0, 0.1)].map(|(item, score)| Hit { item, score });
/// let path: Vec<u32> = votes(&labels, &neighbours).iter().map(|vote| vote.class).collect();
/// assert_eq!(path, [0, 0]);
/// # akin_core::Result::Ok(())
/// ```
///
/// # Panics
///
/// When a neighbour has no row in `labels`.
pub fn votes(labels: &Labels, neighbours: &[Hit]) -> Vec<Vote> {
    let (Some(first), Some(last)) = (neighbours.first(), neighbours.last()) else { return Vec::new() };
    let span = (first.score - last.score).max(f32::EPSILON);
    let weight = |hit: &Hit| 0.01 + f64::from((hit.score - last.score) / span);
    // Each label path of each neighbour, in ranked order.
    let paths =
        |voter: usize| labels.paths(neighbours[voter].item).into_iter().map(move |path| (voter, path));
    let mut voters: Vec<(usize, &[u32])> = (0..neighbours.len()).flat_map(paths).collect();
    let mut votes = Vec::new();
    for level in 1..=labels.levels() {
        let is_known = |hit: &&Hit| labels.paths(hit.item).into_iter().any(|path| path[level - 1] != UNKNOWN);
        let total: f64 = neighbours.iter().filter(is_known).map(weight).sum();
        // In the order of each class's nearest neighbour: the class, the weight of its neighbours, and the last of them.
        let mut classes: Vec<(u32, f64, usize)> = Vec::new();
        for &(voter, path) in voters.iter().filter(|(_, path)| path[level - 1] != UNKNOWN) {
            let weight = weight(&neighbours[voter]);
            match classes.iter_mut().find(|(class, ..)| *class == path[level - 1]) {
                Some((_, _, last)) if *last == voter => {}
                Some((_, sum, last)) => (*sum, *last) = (*sum + weight, voter),
                None => classes.push((path[level - 1], weight, voter)),
            }
        }
        let most = classes.into_iter().reduce(|best, other| if other.1 > best.1 { other } else { best });
        let Some((class, sum, _)) = most else { break };
        votes.push(Vote { level, class, share: sum / total });
        voters.retain(|(_, path)| path[level - 1] == class);
    }
    votes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three families; the first has two species with two items each, the others one species with one item.
    fn labels() -> Labels {
        Labels::new(2, vec![0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 2, 3]).unwrap()
    }

    fn voted(neighbours: &[(usize, f32)]) -> Vec<Vote> {
        let neighbours: Vec<Hit> = neighbours.iter().map(|&(item, score)| Hit { item, score }).collect();
        votes(&labels(), &neighbours)
    }

    fn path(neighbours: &[(usize, f32)]) -> Vec<u32> {
        voted(neighbours).iter().map(|vote| vote.class).collect()
    }

    #[test]
    fn one_neighbour_gives_its_own_classes() {
        let one = voted(&[(4, 0.3)]);
        assert_eq!(one, [Vote { level: 1, class: 1, share: 1.0 }, Vote { level: 2, class: 2, share: 1.0 }]);
        assert!(voted(&[]).is_empty());
    }

    #[test]
    fn neighbours_of_equal_score_have_equal_votes() {
        let votes = voted(&[(5, 0.5), (0, 0.5), (1, 0.5), (4, 0.5)]);
        assert_eq!((votes[0].class, votes[1].class), (0, 0));
        assert!((votes[0].share - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_neighbour_of_unknown_species_votes_for_its_family_alone() {
        let labels = Labels::new(2, vec![0, UNKNOWN, 0, 1, 1, 2]).unwrap();
        let neighbours = [0, 1, 2].map(|item| Hit { item, score: 0.5 });
        let shares: Vec<_> =
            votes(&labels, &neighbours).iter().map(|vote| (vote.class, vote.share)).collect();
        assert_eq!(shares, [(0, 0.02 / 0.03), (1, 0.5)]);
        assert_eq!(votes(&labels, &neighbours[..1]).len(), 1);
    }

    #[test]
    fn a_tie_goes_to_the_nearer_neighbour() {
        assert_eq!(path(&[(5, 0.5), (4, 0.5)]), [2, 3]);
        assert_eq!(path(&[(4, 0.5), (5, 0.5)]), [1, 2]);
        assert_eq!(path(&[(2, 0.5), (0, 0.5)]), [0, 1]);
    }

    #[test]
    fn nearer_neighbours_weigh_more() {
        // The weights are 1.01, 0.11 and 0.01.
        let votes = voted(&[(4, 1.0), (0, 0.1), (1, 0.0)]);
        assert_eq!(votes[0].class, 1);
        assert!((votes[0].share - 1.01 / 1.13).abs() < 1e-6);
    }

    #[test]
    fn the_classes_form_a_path_of_the_taxonomy() {
        // No species has more votes than that of item 4, but its family loses.
        let votes = voted(&[(4, 0.9), (0, 0.8), (2, 0.8), (5, 0.0)]);
        assert_eq!((votes[0].class, votes[1].class), (0, 0));
        assert!(votes[1].share < votes[0].share);
    }
}
