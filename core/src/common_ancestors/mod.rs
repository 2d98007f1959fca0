//! The loss of HIER from distances: triplets of items, and their common ancestors among P proxies.
//!
//! [`losses::hier`](crate::losses) gives the equations. Written out on tensors they need the noise of every proxy for
//! every triplet: with 180 items, 512 proxies and 50 triplets for each of both, 35 million draws a step, and a dozen
//! matrices of that size. Here a triplet is one pass over the proxies, and no more than 4 MB of these numbers are kept:
//!
//! - **Draws by eq. 7.** The proxy with the largest π + g, g from Gumbel(0, 1), is a sample of the distribution in
//!   proportion to e^π (the Gumbel-max trick). One uniform number and a sum over the proxies draw it. e^π falls with the
//!   distance, so e^π of a maximum of distances is the minimum of the items' own e^π: (n + P)·P exponentials in all, none
//!   for a triplet. The pairs (i, j) of one anchor are drawn often, and their minima are computed once.
//! - **Draws from the softmax.** Its gradient needs the noise of every proxy, because it goes through the softmax *with*
//!   the noise. e^{−M/τ + g} = e^{−M/τ} / E with E from Exp(1), so a draw costs one logarithm and one exponential. Each
//!   anchor has a generator of its own (xoshiro128++, in vectors), which draws the noise where it is used.
//! - **Gradients** go to the rows of the three items. With eq. 7 these are six numbers a triplet. With the softmax they are
//!   three rows, which are added up in blocks of columns: a thread has a block of its own and goes through the triplets
//!   in order, so that the number of threads changes no digit.
//!
//! # The floor
//!
//! With n = 180, P = 512 and 50 triplets for each of the 692 anchors there are 34,600 triplets. By eq. 7 each reads 512
//! numbers of f32 twice (the pair's minima and those of k), with one minimum and one addition: 18 million elements, or
//! 1.1 million vectors of 16, a few milliseconds for a core. With the softmax each takes 1,024 draws, logarithms and
//! exponentials: 35 million of each, about 90 vector operations for eight of them. A core with AVX2 takes 2.5 ns for one,
//! or 20 ns for the eight (`cargo bench --bench losses`).

mod choice;
mod exponential;
mod rows;
mod straight_through;
mod triplets;
mod xoshiro;

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::threads::{Workspaces, each_in_order};
use exponential::GivenDraws;

pub use triplets::{TripletRules, Triplets, mutual_neighbours};

/// How an ancestor is drawn. M is the largest distance from a proxy to the items below it, g a Gumbel draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// By eq. 7: the proxy with the largest exp(−M) + g; the choice has no gradient.
    #[default]
    Probability,
    /// A sample of the softmax of −M/τ: the proxy with the largest −M/τ + g; the gradient goes straight through that
    /// softmax.
    Softmax {
        /// τ > 0; the public code has 0.1.
        temperature: f64,
    },
}

/// The settings of the loss of a triplet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AncestorLoss {
    /// How ancestors are drawn.
    pub draw: Draw,
    /// δ ≥ 0.
    pub margin: f64,
    /// Whether both ancestors of a triplet may be the same proxy. Such a triplet counts as 0.
    pub equal_ancestors: bool,
}

/// The distances of n items to P proxies, [n, P], row by row.
#[derive(Clone, Copy, Debug)]
pub struct Distances<'a> {
    /// The numbers.
    pub values: &'a [f32],
    /// P.
    pub proxies: usize,
}

impl<'a> Distances<'a> {
    fn row(&self, item: usize) -> &'a [f32] {
        &self.values[item * self.proxies..][..self.proxies]
    }
}

impl AncestorLoss {
    /// The mean of L over the triplets of rows of `distances`, and its gradient [n, P]. Without triplets both are 0. If
    /// a distance is not finite, both are NaN. `draws` is a generator that nothing else uses; equal ones give equal
    /// results.
    ///
    /// # Panics
    ///
    /// If there are fewer than two proxies, or a triplet names an item without distances.
    pub fn mean(&self, distances: Distances, triplets: &Triplets, draws: &ChaCha8Rng) -> (f64, Vec<f32>) {
        self.mean_of(distances, triplets, || match self.draw {
            Draw::Probability => {
                let ancestors = choice::draw(distances, triplets, self.equal_ancestors, draws);
                self.hinges(distances, triplets, &ancestors)
            }
            Draw::Softmax { temperature } => {
                let noise = exponential::noise(draws.clone());
                straight_through::sum(self, temperature, distances, triplets, noise)
            }
        })
    }

    /// The same for given Gumbel draws for ρ_ij and ρ_ijk, [triplets, P] each, in O(T·P) memory: to check the other.
    pub fn mean_drawn(
        &self,
        distances: Distances,
        triplets: &Triplets,
        gumbel: [&[f32]; 2],
    ) -> (f64, Vec<f32>) {
        self.mean_of(distances, triplets, || match self.draw {
            Draw::Probability => {
                let ancestors = choice::largest(distances, triplets, self.equal_ancestors, gumbel);
                self.hinges(distances, triplets, &ancestors)
            }
            Draw::Softmax { temperature } => {
                let noise = |_| GivenDraws { gumbel, proxies: distances.proxies };
                straight_through::sum(self, temperature, distances, triplets, noise)
            }
        })
    }

    fn mean_of(
        &self,
        distances: Distances,
        triplets: &Triplets,
        sum: impl FnOnce() -> (f64, Vec<f32>),
    ) -> (f64, Vec<f32>) {
        assert!(distances.proxies >= 2, "two ancestors need two proxies");
        if triplets.anchors.is_empty() {
            return (0.0, vec![0.0; distances.values.len()]);
        }
        if distances.values.iter().any(|distance| !distance.is_finite()) {
            return (f64::NAN, vec![f32::NAN; distances.values.len()]);
        }
        let (sum, mut gradient) = sum();
        let share = 1.0 / triplets.anchors.len() as f64;
        gradient.iter_mut().for_each(|slope| *slope = (f64::from(*slope) * share) as f32);
        (sum * share, gradient)
    }

    /// Σ L for given ancestors ρ_ij and ρ_ijk of each triplet, and its gradient where the choice has none.
    fn hinges(&self, distances: Distances, triplets: &Triplets, ancestors: &[[u32; 2]]) -> (f64, Vec<f32>) {
        let mut sum = 0.0;
        let mut gradient = vec![0.0_f32; distances.values.len()];
        for (triplet, ancestors) in triplets.iter().zip(ancestors) {
            let [low, high] = ancestors.map(|proxy| proxy as usize);
            let (value, slopes) = self.hinge(triplet.map(|item| distances.row(item)), [low, high]);
            sum += value;
            for (item, slope) in triplet.into_iter().zip(slopes) {
                gradient[item * distances.proxies + low] += slope;
                gradient[item * distances.proxies + high] -= slope;
            }
        }
        (sum, gradient)
    }

    /// L of a triplet with these rows and ancestors, and ∂L/∂(d(·, ρ_ij) − d(·, ρ_ijk)) of its items.
    #[inline(always)]
    fn hinge(&self, rows: [&[f32]; 3], [low, high]: [usize; 2]) -> (f64, [f32; 3]) {
        if low == high {
            return (0.0, [0.0; 3]);
        }
        let mut value = 0.0;
        let mut slopes = [0.0; 3];
        for ((row, sign), slope) in rows.into_iter().zip([1.0, 1.0, -1.0]).zip(&mut slopes) {
            let hinge = sign * (f64::from(row[low]) - f64::from(row[high])) + self.margin;
            if hinge > 0.0 {
                value += hinge;
                *slope = sign as f32;
            }
        }
        (value, slopes)
    }
}

/// For each run of triplets of one anchor: `run` with its number and place for its result, and with memory that is used
/// again.
fn for_each_anchor<T: Send, M: Default + Send>(
    runs: &[Range<usize>],
    results: &mut [T],
    run: impl Fn(&mut M, usize, Range<usize>, &mut T) + Sync + Send,
) {
    let memories = Workspaces::default();
    each_in_order(runs.iter().zip(results).enumerate().collect(), |(number, (range, result))| {
        memories.with(|memory| run(memory, number, range.clone(), result))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, uniform};

    fn triplets(items: usize) -> Triplets {
        let mutual: Vec<Vec<usize>> =
            (0..items).map(|i| (0..items).filter(|&j| j != i && j % 3 == i % 3).collect()).collect();
        let rules = TripletRules { count: 7, fewest_neighbours: 1, anchor_as_unrelated: false };
        Triplets::draw(&mutual, rules, &mut stream(1, "triplets", &[]))
    }

    fn losses() -> Vec<AncestorLoss> {
        let draws = [Draw::Probability, Draw::Softmax { temperature: 0.1 }];
        let loss =
            |draw| [true, false].map(|equal_ancestors| AncestorLoss { draw, margin: 0.1, equal_ancestors });
        draws.into_iter().flat_map(loss).collect()
    }

    #[cfg(feature = "parallel")]
    #[test]
    fn the_number_of_threads_changes_no_digit() {
        let (items, proxies) = (40, 300);
        let values = uniform(&mut stream(0, "distances", &[]), items * proxies, 0.0, 3.0);
        for loss in losses() {
            let with_threads = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let distances = Distances { values: &values, proxies };
                pool.install(|| loss.mean(distances, &triplets(items), &stream(2, "draws", &[])))
            };
            let one = with_threads(1);
            assert!(one.0 > 0.0 && one.1.iter().any(|slope| *slope != 0.0), "{loss:?}");
            assert_eq!(one, with_threads(2), "{loss:?}");
            assert_eq!(one, with_threads(5), "{loss:?}");
        }
    }

    #[test]
    fn a_distance_that_is_not_finite_has_no_number_for_a_loss() {
        for loss in losses() {
            for wrong in [f32::NAN, f32::INFINITY] {
                let mut values = vec![1.0; 6 * 4];
                values[9] = wrong;
                let distances = Distances { values: &values, proxies: 4 };
                let (value, gradient) = loss.mean(distances, &triplets(6), &stream(2, "draws", &[]));
                assert!(value.is_nan() && gradient.iter().all(|slope| slope.is_nan()), "{loss:?}");
            }
        }
    }

    #[test]
    fn without_triplets_the_loss_is_zero() {
        let distances = Distances { values: &[1.0; 8], proxies: 4 };
        for loss in losses() {
            let got = loss.mean(distances, &Triplets::default(), &stream(2, "draws", &[]));
            assert_eq!(got, (0.0, vec![0.0; 8]));
        }
    }

    #[test]
    fn equal_distances_and_extreme_temperatures_have_finite_gradients() {
        let some = uniform(&mut stream(0, "distances", &[]), 9 * 5, 0.0, 9.0);
        for temperature in [1e-12, 1e-3, 1.0, 1e12] {
            for values in [&vec![2.0; 9 * 5], &some] {
                let loss =
                    AncestorLoss { draw: Draw::Softmax { temperature }, margin: 0.1, equal_ancestors: false };
                let distances = Distances { values, proxies: 5 };
                let (value, gradient) = loss.mean(distances, &triplets(9), &stream(2, "draws", &[]));
                assert!(value.is_finite() && value >= 0.0, "{temperature}");
                assert!(gradient.iter().all(|slope| slope.is_finite()), "{temperature}");
            }
        }
    }

    #[test]
    fn a_sharp_softmax_takes_the_nearest_proxy_and_a_flat_one_any() {
        // Proxy 1 is the nearest to the pair, and proxy 2 to all three.
        let values = [3.0, 0.5, 1.0, 3.0, 0.6, 1.0, 3.0, 2.0, 0.9, 1.0, 1.0, 1.0];
        let distances = Distances { values: &values, proxies: 3 };
        let triplets = Triplets { anchors: vec![0; 50], related: vec![1; 50], unrelated: vec![2; 50] };
        let of = |temperature| {
            let draw = Draw::Softmax { temperature };
            let loss = AncestorLoss { draw, margin: 0.0, equal_ancestors: false };
            loss.mean(distances, &triplets, &stream(2, "draws", &[])).0
        };
        assert_eq!(of(1e-12), 0.0);
        assert!(of(1e12) > 0.5);
    }
}
