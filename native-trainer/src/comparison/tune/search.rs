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
//! tried. It looks at points of the whole cube and at points near the best one. Logarithms of EI are compared, because EI
//! itself can be too small for a floating-point number.
//!
//! A trial depends on the seed, the ranges and the scores of the trials before it, and on nothing else. So a search that
//! was stopped continues as if it had not been.

use std::f64::consts::TAU;

use akin_core::random::stream;
use anyhow::Result;
use rand::RngExt;
use toml::Value;

use super::config::Search;
use super::gaussian_process::{Coordinates, GaussianProcess};
use super::space::Space;

/// The points of the whole cube that are looked at.
const CUBE_CANDIDATES: u32 = 1024;
/// The points near the best one that are looked at.
const NEAR_CANDIDATES: u32 = 256;
/// The side of the cube in which points are near.
const NEAR_SIDE: f64 = 0.2;
/// The points of the Sobol sequence that are looked at for settings that have not been tried.
const NEXT_POINTS: u32 = 1024;

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
    pub fn uses_scores(&self, trial: usize) -> bool {
        self.search == Search::Bayesian && trial >= self.first_trials
    }

    /// The point to try after those that were tried. A trial that does not [use them](Self::uses_scores) needs no scores.
    ///
    /// # Errors
    ///
    /// As [`Space::settings`].
    pub fn next(&self, tried: &[Tried]) -> Result<Vec<f64>> {
        let trial = tried.len();
        // The same settings would have the same score.
        let known: Vec<Vec<Value>> = tried.iter().map(|tried| self.space.values(&tried.point)).collect();
        let is_new = |point: &Vec<f64>| !known.contains(&self.space.values(point));
        let scramble = self.scramble(&[]);
        let first = trial as u32;
        let sobol_point = (first..first + NEXT_POINTS)
            .map(|number| self.sobol(number, scramble))
            .find(is_new)
            .unwrap_or_else(|| self.sobol(first, scramble));
        if !self.uses_scores(trial) {
            return Ok(sobol_point);
        }
        let scores: Vec<f64> = tried.iter().filter_map(|tried| tried.score).collect();
        let Some(worst) = scores.iter().copied().min_by(f64::total_cmp) else { return Ok(sobol_point) };
        // A training that fails says that its settings are bad, but not how bad.
        let scores: Vec<f64> = tried.iter().map(|tried| tried.score.unwrap_or(worst)).collect();
        let points: Vec<Coordinates> =
            tried.iter().map(|tried| self.space.coordinates(&tried.point)).collect();
        let Some(process) = GaussianProcess::new(&points, &scores, self.space.dimension()) else {
            return Ok(sobol_point);
        };
        let means = points.iter().map(|point| process.predict(point).0);
        let Some((best, best_mean)) = means.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Ok(sobol_point);
        };
        let mut candidates: Vec<(f64, Vec<f64>)> = self
            .candidates(trial, &tried[best].point)
            .into_iter()
            .map(|point| {
                let (mean, deviation) = process.predict(&self.space.coordinates(&point));
                (log_expected_improvement(mean - best_mean, deviation), point)
            })
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best_new = candidates.into_iter().map(|(_, point)| point).find(is_new);
        Ok(best_new.unwrap_or(sobol_point))
    }

    /// Points of the whole cube, and points near one of them.
    fn candidates(&self, trial: usize, best: &[f64]) -> Vec<Vec<f64>> {
        let anywhere = self.scramble(&[trial as u64, 0]);
        let near = self.scramble(&[trial as u64, 1]);
        let beside = |number: u32| {
            let shift = self.sobol(number, near);
            let moved = |(place, shift): (&f64, &f64)| (place + NEAR_SIDE * (shift - 0.5)).clamp(0.0, 1.0);
            best.iter().zip(&shift).map(moved).collect()
        };
        (0..CUBE_CANDIDATES)
            .map(|number| self.sobol(number, anywhere))
            .chain((0..NEAR_CANDIDATES).map(beside))
            .collect()
    }

    fn sobol(&self, number: u32, scramble: u32) -> Vec<f64> {
        let axes = 0..self.space.dimension() as u32;
        axes.map(|axis| f64::from(sobol_burley::sample(number, axis, scramble))).collect()
    }

    fn scramble(&self, position: &[u64]) -> u32 {
        stream(self.seed, "tune", position).random()
    }
}

/// ln EI of a mean that is `above` the best one.
///
/// EI = σ h(z) with h(z) = φ(z) + z Φ(z). For z below −1, h(z) = φ(z) c / (c − z) with the [tail](tail) c of −z: no
/// part of it is a difference of nearly equal numbers.
fn log_expected_improvement(above: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return above.max(0.0).ln();
    }
    let z = above / deviation;
    let log_density = -0.5 * (z * z + TAU.ln());
    let log_h = if z < -1.0 {
        let tail = tail(-z);
        log_density + (tail / (tail - z)).ln()
    } else {
        let density = log_density.exp();
        (density + z * below(z, density)).ln()
    };
    deviation.ln() + log_h
}

/// Φ(z) from φ(z), for z from −1 (Abramowitz & Stegun 26.2.11 and 26.2.14).
fn below(z: f64, density: f64) -> f64 {
    if z > 1.0 {
        return 1.0 - density / (z + tail(z));
    }
    let (mut term, mut sum) = (z, z);
    // |z| is at most 1, so the last term is below 1e-20.
    for odd in (3..41).step_by(2) {
        term *= z * z / f64::from(odd);
        sum += term;
    }
    0.5 + density * sum
}

/// The continued fraction 1/(x + 2/(x + 3/(x + …))), for x from 1. The ratio (1 − Φ(x)) / φ(x) is 1 / (x + this).
fn tail(x: f64) -> f64 {
    (1..200).rev().fold(0.0, |tail, number| f64::from(number) / (x + tail))
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
                    let density = (-0.5 * z * z).exp() / (TAU.sqrt() * deviation);
                    (above + z * deviation).max(0.0) * density * width
                })
                .sum();
            let found = log_expected_improvement(above, deviation).exp();
            assert!((found - integral).abs() < 1e-5, "{found} and {integral}");
        }
        assert_eq!(log_expected_improvement(0.25, 0.0), 0.25_f64.ln());
        assert_eq!(log_expected_improvement(-0.25, 0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn tiny_expected_improvements_keep_their_order() {
        // As computed with 50 digits.
        for (z, log) in [
            (-40.0, -808.29856835662),
            (-10.0, -55.5531220361224),
            (-5.0, -16.744301162661),
            (-1.5, -3.52993592080571),
            (-0.5, -1.62051626438732),
            (0.5, -0.359827683745064),
            (2.0, 0.697383545788228),
        ] {
            let found = log_expected_improvement(z, 1.0);
            assert!((found - log).abs() < 1e-10, "{z}: {found} and {log}");
        }
        let falling: Vec<f64> =
            (0..1000).map(|step| log_expected_improvement(-0.05 * f64::from(step), 1.0)).collect();
        assert!(falling.is_sorted_by(|one, next| one > next));
    }

    #[test]
    fn points_of_a_sobol_sequence_with_settings_that_were_tried_are_passed_over() {
        let space = Space::new(&toml::from_str("'loss.a' = { min = 1, max = 8 }").unwrap()).unwrap();
        for seed in 0..5 {
            let search =
                SettingsSearch { space: space.clone(), search: Search::Sobol, first_trials: 1, seed };
            let mut tried: Vec<Tried> = Vec::new();
            for _ in 0..9 {
                tried.push(Tried { point: search.next(&tried).unwrap(), score: None });
            }
            let mut values: Vec<i64> = tried[..8]
                .iter()
                .filter_map(|tried| search.space.values(&tried.point)[0].as_integer())
                .collect();
            values.sort_unstable();
            assert_eq!(values, (1..=8).collect::<Vec<_>>(), "with the seed {seed}");
        }
    }
}
