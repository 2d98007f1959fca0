//! Which settings to try next.
//!
//! The first trials are the points of a Sobol sequence, scrambled by the seed, which cover the space evenly. Bayesian
//! optimisation then tries the point at which the greatest improvement is expected (Jones et al., *Efficient Global
//! Optimization of Expensive Black-Box Functions*, 1998):
//!
//! ```text
//! EI(x) = (μ − b) Φ(z) + σ φ(z),   z = (μ − b) / σ
//! ```
//!
//! with the mean μ and deviation σ of a [Gaussian process](super::gaussian_process), and b the best mean at the points
//! tried. It looks at points of the whole cube and at points near the best one.
//!
//! A trial depends on the seed, the ranges and the scores of the trials before it, and on nothing else. So a search that
//! was stopped continues as if it had not been.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use akin_core::random::stream;
use anyhow::Result;
use rand::RngExt;
use toml::Table;

use super::config::Search;
use super::gaussian_process::{Coordinates, GaussianProcess};
use super::space::Space;

/// The points of the whole cube that are looked at.
const ANYWHERE: u32 = 1024;
/// The points near the best one that are looked at.
const NEAR: u32 = 256;
/// The side of the cube in which points are near.
const NEARNESS: f64 = 0.2;

/// The search for settings.
#[derive(Clone, Debug)]
pub struct SettingsSearch {
    /// The ranges.
    pub space: Space,
    /// How the next settings are chosen.
    pub search: Search,
    /// The trials that do not look at scores.
    pub first_trials: usize,
    /// The seed.
    pub seed: u64,
}

/// A point that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The point.
    pub point: Vec<f64>,
    /// Its score, of which a greater one is better; none if a training failed.
    pub score: Option<f64>,
}

impl SettingsSearch {
    /// Whether a trial, counted from 0, looks at the scores of those before it.
    pub fn learns(&self, trial: usize) -> bool {
        self.search == Search::Bayesian && trial >= self.first_trials
    }

    /// The point to try after those that were tried. A trial that does not [learn](Self::learns) needs no scores.
    ///
    /// # Errors
    ///
    /// As [`Space::settings`].
    pub fn next(&self, tried: &[Tried]) -> Result<Vec<f64>> {
        let trial = tried.len();
        let even = self.sobol(trial as u32, self.scramble(&[]));
        if !self.learns(trial) {
            return Ok(even);
        }
        let scores: Vec<f64> = tried.iter().filter_map(|tried| tried.score).collect();
        let Some(worst) = scores.iter().copied().min_by(f64::total_cmp) else { return Ok(even) };
        // A training that fails says that its settings are bad, but not how bad.
        let scores: Vec<f64> = tried.iter().map(|tried| tried.score.unwrap_or(worst)).collect();
        let points: Vec<Coordinates> =
            tried.iter().map(|tried| self.space.coordinates(&tried.point)).collect();
        let Some(process) = GaussianProcess::new(&points, &scores, self.space.dimension()) else {
            return Ok(even);
        };
        let means = points.iter().map(|point| process.at(point).0);
        let Some((best, best_mean)) = means.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Ok(even);
        };
        let mut candidates: Vec<(f64, Vec<f64>)> = self
            .candidates(trial, &tried[best].point)
            .into_iter()
            .map(|point| {
                let (mean, deviation) = process.at(&self.space.coordinates(&point));
                (expected_improvement(mean - best_mean, deviation), point)
            })
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        // The same settings would have the same score.
        let known =
            tried.iter().map(|tried| self.space.settings(&tried.point)).collect::<Result<Vec<Table>>>()?;
        for (_, point) in &candidates {
            if !known.contains(&self.space.settings(point)?) {
                return Ok(point.clone());
            }
        }
        Ok(even)
    }

    /// Points of the whole cube, and points near one of them.
    fn candidates(&self, trial: usize, best: &[f64]) -> Vec<Vec<f64>> {
        let anywhere = self.scramble(&[trial as u64, 0]);
        let near = self.scramble(&[trial as u64, 1]);
        let beside = |number: u32| {
            let shift = self.sobol(number, near);
            let moved = |(place, shift): (&f64, &f64)| (place + NEARNESS * (shift - 0.5)).clamp(0.0, 1.0);
            best.iter().zip(&shift).map(moved).collect()
        };
        (0..ANYWHERE).map(|number| self.sobol(number, anywhere)).chain((0..NEAR).map(beside)).collect()
    }

    fn sobol(&self, number: u32, scramble: u32) -> Vec<f64> {
        let axes = 0..self.space.dimension() as u32;
        axes.map(|axis| f64::from(sobol_burley::sample(number, axis, scramble))).collect()
    }

    fn scramble(&self, position: &[u64]) -> u32 {
        stream(self.seed, "tune", position).random()
    }
}

/// EI of a mean that is so much above the best one.
fn expected_improvement(above: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return above.max(0.0);
    }
    let z = above / deviation;
    above * 0.5 * erfc(-z * FRAC_1_SQRT_2) + deviation * (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// 1 − erf(x), by the rational approximation 7.1.26 of Abramowitz & Stegun, within 1.5e-7.
fn erfc(x: f64) -> f64 {
    const TERMS: [f64; 5] = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| t * (term + sum));
    let tail = sum * (-x * x).exp();
    if x < 0.0 { 2.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(search: Search, seed: u64) -> SettingsSearch {
        let ranges = "'loss.a' = { min = 0.0, max = 1.0 }\n'loss.b' = { min = 1e-4, max = 1.0, scale = 'log' }\n\
                      'loss.c' = { values = ['x', 'y', 'z'] }";
        let space = Space::new(&toml::from_str(ranges).unwrap()).unwrap();
        SettingsSearch { space, search, first_trials: 8, seed }
    }

    /// A score with one best point: a = 0.3, b = 1e-2, c = "y".
    fn score(search: &SettingsSearch, point: &[f64]) -> f64 {
        let values = search.space.values(point);
        let (a, b) = (values[0].as_float().unwrap(), values[1].as_float().unwrap());
        let wrong = if values[2].as_str() == Some("y") { 0.0 } else { 0.5 };
        -(a - 0.3).powi(2) - (b.log10() + 2.0).powi(2) / 4.0 - wrong
    }

    fn run(search: &SettingsSearch, trials: usize) -> Vec<Tried> {
        let mut tried: Vec<Tried> = Vec::new();
        for _ in 0..trials {
            let point = search.next(&tried).unwrap();
            let score = score(search, &point);
            tried.push(Tried { point, score: Some(score) });
        }
        tried
    }

    fn best(tried: &[Tried]) -> f64 {
        tried.iter().filter_map(|tried| tried.score).max_by(f64::total_cmp).unwrap()
    }

    #[test]
    fn bayesian_optimisation_comes_nearer_to_the_best_settings_than_even_points() {
        let found =
            |kind: Search| -> Vec<f64> { (0..5).map(|seed| best(&run(&search(kind, seed), 30))).collect() };
        let (bayesian, even) = (found(Search::Bayesian), found(Search::Sobol));
        assert!(bayesian.iter().all(|&score| score > -0.01), "{bayesian:?}");
        assert!(bayesian.iter().sum::<f64>() > even.iter().sum::<f64>() + 0.05, "{bayesian:?} and {even:?}");
    }

    #[test]
    fn a_trial_depends_on_the_scores_before_it_and_the_seed_alone() {
        let search_of = |seed| search(Search::Bayesian, seed);
        let tried = run(&search_of(1), 12);
        for trial in [0, 5, 8, 11] {
            assert_eq!(search_of(1).next(&tried[..trial]).unwrap(), tried[trial].point);
        }
        assert_ne!(search_of(2).next(&[]).unwrap(), tried[0].point);
        // The first trials look at no scores.
        let unscored: Vec<Tried> =
            tried[..5].iter().map(|tried| Tried { score: None, ..tried.clone() }).collect();
        assert_eq!(search_of(1).next(&unscored).unwrap(), tried[5].point);
    }

    #[test]
    fn settings_whose_trainings_fail_are_avoided() {
        let search = search(Search::Bayesian, 0);
        let mut tried: Vec<Tried> = Vec::new();
        for _ in 0..24 {
            let point = search.next(&tried).unwrap();
            let score = (point[0] < 0.5).then(|| score(&search, &point));
            tried.push(Tried { point, score });
        }
        let failed = |tried: &[Tried]| tried.iter().filter(|tried| tried.score.is_none()).count();
        assert!(failed(&tried[8..]) * 4 < 16, "{} of the 16 trials that learn failed", failed(&tried[8..]));
    }

    #[test]
    fn no_settings_are_tried_twice_while_there_are_others() {
        let space = Space::new(&toml::from_str("'loss.a' = { values = [1, 2, 3, 4] }").unwrap()).unwrap();
        let search = SettingsSearch { space, search: Search::Bayesian, first_trials: 1, seed: 3 };
        let mut tried: Vec<Tried> = Vec::new();
        for number in 0..6 {
            let point = search.next(&tried).unwrap();
            tried.push(Tried { point, score: Some(f64::from(number % 2)) });
        }
        let mut values: Vec<String> =
            tried[..4].iter().map(|tried| search.space.values(&tried.point)[0].to_string()).collect();
        values.sort();
        assert_eq!(values, ["1", "2", "3", "4"]);
    }

    #[test]
    fn the_expected_improvement_agrees_with_its_integral() {
        for (above, deviation) in [(-1.0, 0.5), (0.0, 1.0), (0.3, 2.0), (1.5, 0.1)] {
            // ∫ max(0, y) N(y; above, deviation) dy
            let steps = 20_000;
            let width = 16.0 * deviation / f64::from(steps);
            let integral: f64 = (0..steps)
                .map(|step| {
                    let z = -8.0 + (f64::from(step) + 0.5) * 16.0 / f64::from(steps);
                    let density = (-0.5 * z * z).exp() / ((2.0 * PI).sqrt() * deviation);
                    (above + z * deviation).max(0.0) * density * width
                })
                .sum();
            let found = expected_improvement(above, deviation);
            assert!((found - integral).abs() < 1e-5, "{found} and {integral}");
        }
        assert_eq!(expected_improvement(0.25, 0.0), 0.25);
    }
}
