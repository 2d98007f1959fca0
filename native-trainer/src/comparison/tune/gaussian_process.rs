//! A Gaussian process: from the scores at some points, a mean and a deviation at any other (Rasmussen & Williams,
//! *Gaussian Processes for Machine Learning*, 2006, algorithm 2.1).
//!
//! The covariance of two points is the Matérn kernel with ν = 5/2, with a length for each axis:
//!
//! ```text
//! k(a, b) = (1 + √5 r + 5/3 r²) exp(−√5 r),   r² = Σ_i ((a_i − b_i) / ℓ_axis(i))²
//! ```
//!
//! Scores are shifted and scaled to mean 0 and deviation 1 first. The lengths, and the variance of the noise in a score,
//! are those of a small grid with the greatest marginal likelihood (equation 2.30), one axis after another.

use akin_core::statistics::{deviation, mean};
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// The lengths to choose from; the cube has sides of 1.
const LENGTHS: [f64; 6] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2];
/// The variances of noise to choose from, relative to that of the scores.
const NOISES: [f64; 4] = [1e-4, 1e-2, 1e-1, 0.5];
/// How often every length is chosen anew with the others as they are.
const ROUNDS: usize = 2;

/// The coordinates of a point, each with the number of its axis.
pub type Coordinates = Vec<(usize, f64)>;

/// A Gaussian process that has seen some scores.
pub struct GaussianProcess<'a> {
    points: &'a [Coordinates],
    lengths: Vec<f64>,
    factor: Cholesky<f64, Dyn>,
    /// K⁻¹ y
    weights: DVector<f64>,
}

impl<'a> GaussianProcess<'a> {
    /// A process that has seen the scores of these points, which are in a space with `axes` axes. None without scores, or if
    /// its equations have no solution in floating point.
    pub fn new(points: &'a [Coordinates], scores: &[f64], axes: usize) -> Option<Self> {
        let centre = mean(scores)?;
        let scale = deviation(scores).filter(|&scale| scale > 0.0).unwrap_or(1.0);
        let scores =
            DVector::from_iterator(scores.len(), scores.iter().map(|score| (score - centre) / scale));
        let mut lengths = vec![0.8; axes];
        let mut noise = NOISES[1];
        let likelihood = |lengths: &[f64], noise: f64| {
            let factor = factor(points, lengths, noise)?;
            let diagonal: f64 = factor.l_dirty().diagonal().iter().map(|entry| entry.ln()).sum();
            Some(-0.5 * scores.dot(&factor.solve(&scores)) - diagonal)
        };
        let best = |choices: &[f64], likelihood: &dyn Fn(f64) -> Option<f64>| {
            let scored = choices.iter().filter_map(|&choice| Some((likelihood(choice)?, choice)));
            scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, choice)| choice)
        };
        for _ in 0..ROUNDS {
            for axis in 0..axes {
                let with = |length: f64| {
                    let mut lengths = lengths.clone();
                    lengths[axis] = length;
                    likelihood(&lengths, noise)
                };
                lengths[axis] = best(&LENGTHS, &with)?;
            }
            noise = best(&NOISES, &|noise| likelihood(&lengths, noise))?;
        }
        let factor = factor(points, &lengths, noise)?;
        let weights = factor.solve(&scores);
        Some(Self { points, lengths, factor, weights })
    }

    /// The mean and the deviation of the score without noise at a point, in units of the deviation of the scores seen and
    /// from their mean.
    pub fn predict(&self, point: &Coordinates) -> (f64, f64) {
        let covariances = DVector::from_iterator(
            self.points.len(),
            self.points.iter().map(|other| kernel(point, other, &self.lengths)),
        );
        let mean = covariances.dot(&self.weights);
        let variance = 1.0 - covariances.dot(&self.factor.solve(&covariances));
        (mean, variance.max(0.0).sqrt())
    }
}

fn factor(points: &[Coordinates], lengths: &[f64], noise: f64) -> Option<Cholesky<f64, Dyn>> {
    let count = points.len();
    let mut matrix =
        DMatrix::from_fn(count, count, |row, column| kernel(&points[row], &points[column], lengths));
    for place in 0..count {
        matrix[(place, place)] += noise;
    }
    Cholesky::new(matrix)
}

fn kernel(one: &Coordinates, other: &Coordinates, lengths: &[f64]) -> f64 {
    let squares = one.iter().zip(other).map(|(&(axis, a), &(_, b))| ((a - b) / lengths[axis]).powi(2));
    let scaled = (5.0 * squares.sum::<f64>()).sqrt();
    (1.0 + scaled + scaled * scaled / 3.0) * (-scaled).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_passes_near_the_scores_and_is_unsure_elsewhere() {
        let points: Vec<Coordinates> = [0.0, 0.25, 0.5, 0.75, 1.0].map(|place| vec![(0, place)]).to_vec();
        let scores: Vec<f64> = points.iter().map(|point| (3.0 * point[0].1).sin()).collect();
        let process = GaussianProcess::new(&points, &scores, 1).unwrap();
        let (centre, scale) = (mean(&scores).unwrap(), deviation(&scores).unwrap());
        for (point, score) in points.iter().zip(&scores) {
            assert!((centre + scale * process.predict(point).0 - score).abs() < 0.02);
        }
        let between = process.predict(&vec![(0, 0.6)]);
        assert!((centre + scale * between.0 - 1.8_f64.sin()).abs() < 0.05, "{between:?}");
        // As numpy has it, with the same grid: ℓ = 0.2 and a noise of 1e-4 are the likeliest.
        assert!((between.1.powi(2) - 0.153_154_83).abs() < 1e-7, "{between:?}");
        assert!((process.predict(&vec![(0, 20.0)]).1 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_axis_that_does_not_matter_gets_a_great_length() {
        let points: Vec<Coordinates> = (0..20)
            .map(|number| {
                let place = |axis| f64::from(sobol_burley::sample(number, axis, 3));
                vec![(0, place(0)), (1, place(1))]
            })
            .collect();
        let scores: Vec<f64> = points.iter().map(|point| (6.0 * point[0].1).sin()).collect();
        let process = GaussianProcess::new(&points, &scores, 2).unwrap();
        assert!(process.lengths[1] >= 4.0 * process.lengths[0], "{:?}", process.lengths);
    }

    #[test]
    fn equal_scores_and_equal_points_are_no_obstacle() {
        let points: Vec<Coordinates> = vec![vec![(0, 0.5)]; 3];
        let process = GaussianProcess::new(&points, &[0.25; 3], 1).unwrap();
        assert_eq!(process.predict(&points[0]).0, 0.0);
        assert!(GaussianProcess::new(&[], &[], 1).is_none());
    }
}
