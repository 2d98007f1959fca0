//! The loss of a batch of queries, one after the other, or on all threads with the feature `parallel`.

use macerator::{Simd, with_simd};

use super::values::ItemValues;
use super::{Memory, Path, ScoredPlaces, SmoothRanks};
use crate::threads::{Workspaces, each_in_order};

/// A score: f32 or f64.
pub trait Score: Copy + Send + Sync {
    /// The same number as an f64.
    fn to_f64(self) -> f64;
    /// The nearest score.
    fn from_f64(number: f64) -> Self;
}

impl Score for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(number: f64) -> Self {
        number as f32
    }
}

impl Score for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(number: f64) -> Self {
        number
    }
}

/// The loss of each query of a batch; none for a query without a relevant item.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchLoss(pub Vec<Option<f64>>);

impl BatchLoss {
    /// The sum over the queries that have a relevant item.
    pub fn sum(&self) -> f64 {
        self.0.iter().flatten().sum()
    }

    /// The number of those queries.
    pub fn queries(&self) -> usize {
        self.0.iter().flatten().count()
    }
}

/// The places of the items of one query, and the relevance of each place.
#[derive(Default)]
pub struct Places {
    /// The place of each item, below the number of relevances, or [`LEFT_OUT`](Self::LEFT_OUT). Items of a higher place
    /// belong above it.
    pub of_items: Vec<u32>,
    /// The relevance of each place, finite and at least 0. Items of a relevance above 0 are ranked.
    pub relevances: Vec<f64>,
}

impl Places {
    /// The place of an item that the query does not rank.
    pub const LEFT_OUT: u32 = u32::MAX;
}

/// Memory that is used again for each query.
#[derive(Default)]
struct Workspace {
    places: Places,
    scores: Vec<f64>,
    descent: Vec<f64>,
    memory: Memory,
}

impl SmoothRanks {
    /// 1 − [`RankValue`](super::RankValue) of each query, and the gradient of their sum.
    ///
    /// `scores` and `gradient` are [Q, N], row by row. `places` fills in the places of the items of a query; it gets
    /// empty lists. A query without a relevant item is left out, and its gradient is 0. The result does not depend on
    /// the number of threads.
    ///
    /// # Panics
    ///
    /// If there are no items, `gradient` is shorter than `scores`, or `places` gives another number of places than items
    /// or a place without a relevance.
    pub fn batch<S: Score>(
        &self,
        scores: &[S],
        items: usize,
        gradient: &mut [S],
        places: impl Fn(usize, &mut Places) + Sync,
    ) -> BatchLoss {
        let workspaces = Workspaces::default();
        let queries = scores.chunks(items).zip(gradient.chunks_mut(items)).enumerate().collect();
        BatchLoss(each_in_order(queries, |(query, (scores, gradient))| {
            workspaces.with(|workspace: &mut Workspace| {
                workspace.places.of_items.clear();
                workspace.places.relevances.clear();
                places(query, &mut workspace.places);
                self.query_of_batch(workspace, scores, gradient)
            })
        }))
    }

    fn query_of_batch<S: Score>(
        &self,
        workspace: &mut Workspace,
        scores: &[S],
        gradient: &mut [S],
    ) -> Option<f64> {
        let Workspace { places, scores: numbers, descent, memory } = workspace;
        assert_eq!(places.of_items.len(), scores.len(), "one place for each item");
        // The items that the query ranks, if they are not all.
        let ranked: Option<Vec<usize>> = places
            .of_items
            .contains(&Places::LEFT_OUT)
            .then(|| (0..scores.len()).filter(|&item| places.of_items[item] != Places::LEFT_OUT).collect());
        numbers.clear();
        match &ranked {
            None => numbers.extend(scores.iter().map(|score| score.to_f64())),
            Some(ranked) => {
                places.of_items.retain(|&place| place != Places::LEFT_OUT);
                numbers.extend(ranked.iter().map(|&item| scores[item].to_f64()));
            }
        }
        let items =
            ScoredPlaces { scores: numbers, places: &places.of_items, relevances: &places.relevances };
        let Some(values) = self.value.item_values(&items) else {
            gradient.fill(S::from_f64(0.0));
            return None;
        };
        if numbers.iter().any(|score| !score.is_finite()) {
            gradient.fill(S::from_f64(f64::NAN));
            return Some(f64::NAN);
        }
        descent.clear();
        descent.resize(numbers.len(), 0.0);
        let path = self.path(&items);
        let value = in_vectors(self, path, memory, items, &values, descent);
        match ranked {
            None => {
                gradient
                    .iter_mut()
                    .zip(descent)
                    .for_each(|(gradient, slope)| *gradient = S::from_f64(*slope));
            }
            Some(ranked) => {
                gradient.fill(S::from_f64(0.0));
                ranked
                    .into_iter()
                    .zip(descent)
                    .for_each(|(item, slope)| gradient[item] = S::from_f64(*slope));
            }
        }
        Some(1.0 - value)
    }
}

/// [`SmoothRanks::query`] with the widest vectors of this machine. No digit depends on their width.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
pub(super) fn in_vectors<'a, S: Simd>(
    ranks: &SmoothRanks,
    path: Path,
    memory: &mut Memory,
    items: ScoredPlaces<'a>,
    values: &ItemValues,
    descent: &mut [f64],
) -> f64 {
    ranks.query::<S>(path, memory, &items, values, descent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smooth_ranks::RankSteps;
    use crate::steps::{LowerStep, UpperStep};

    fn surrogate() -> SmoothRanks {
        let upper = UpperStep::default().checked().unwrap();
        let lower = Some(LowerStep::default().checked().unwrap());
        SmoothRanks::new(RankSteps::Bounds { upper, lower })
    }

    /// Every third item is of place 1; more than the pairwise path takes.
    fn every_third(query: usize, places: &mut Places, items: usize) {
        places.of_items.extend((0..items).map(|item| u32::from((item + query).is_multiple_of(3))));
        places.relevances.extend([0.0, 1.0]);
    }

    fn scores(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 0.7).sin()).collect()
    }

    #[test]
    fn a_query_with_a_score_that_is_not_finite_has_no_number_for_a_loss() {
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut scores = scores(12);
            scores[7] = wrong;
            let mut gradient = [1.0; 12];
            let loss =
                surrogate().batch(&scores, 6, &mut gradient, |query, places| every_third(query, places, 6));
            assert!(loss.sum().is_nan() && loss.queries() == 2);
            assert!(gradient[..6].iter().all(|slope| slope.is_finite()));
            assert!(gradient[6..].iter().all(|slope| slope.is_nan()));
        }
    }

    #[test]
    fn a_query_without_relevant_items_is_left_out() {
        let mut gradient = [1.0; 6];
        let loss = surrogate().batch(&scores(6), 6, &mut gradient, |_, places| {
            places.of_items.extend([0; 6]);
            places.relevances.extend([0.0, 1.0]);
        });
        assert_eq!((loss, gradient), (BatchLoss(vec![None]), [0.0; 6]));
    }

    #[test]
    fn one_item_and_equal_scores_have_a_loss() {
        let mut gradient = [1.0];
        let loss = surrogate().batch(&[0.3_f32], 1, &mut gradient, |_, places| {
            places.of_items.push(1);
            places.relevances.extend([0.0, 1.0]);
        });
        assert_eq!((loss.sum(), gradient), (0.0, [0.0]));
        let mut gradient = [1.0; 300];
        let equal = [0.5_f64; 300];
        let loss =
            surrogate().batch(&equal, 300, &mut gradient, |query, places| every_third(query, places, 300));
        // Each of the 100 relevant items has 100 at or above it, and 200 ties that count one half.
        assert!((loss.sum() - 0.5).abs() < 1e-12, "{}", loss.sum());
        assert!(gradient.iter().sum::<f64>().abs() < 1e-9);
    }

    #[cfg(feature = "parallel")]
    #[test]
    fn the_number_with_threads_changes_no_digit() {
        let with_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut gradient = vec![0.0; 20 * 150];
            let scores = scores(20 * 150);
            let loss = pool.install(|| {
                surrogate()
                    .batch(&scores, 150, &mut gradient, |query, places| every_third(query, places, 150))
            });
            (loss, gradient)
        };
        assert_eq!(with_threads(1), with_threads(3));
    }
}
