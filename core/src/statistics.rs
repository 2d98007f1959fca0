//! Confidence intervals of means, and tests of whether two runs differ: the percentile bootstrap, the paired permutation
//! test and the paired t-test. All are deterministic: what they draw comes from a [named stream](crate::random::stream).

use rand::RngExt;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::random::stream;

/// The arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    // Not `sum`: the sum of no f64 is −0.
    let sum = values.iter().fold(0.0, |sum, value| sum + value);
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// The sample standard deviation, √(Σ (x − mean)² / (n − 1)); `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares = values.iter().fold(0.0, |sum, value| sum + (value - mean).powi(2));
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// How a bootstrap interval is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Bootstrap {
    /// The number of resamples. Default: 1000.
    pub resamples: usize,
    /// The seed of the draws. Default: 0.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 1000, seed: 0 }
    }
}

/// The 95 % percentile bootstrap interval \[low, high\] of the mean of n values (Efron & Tibshirani, *An Introduction
/// to the Bootstrap*, 1993, chapter 13).
///
/// Draws n of the values with replacement, `resamples` times. The interval runs from the 2.5 % to the 97.5 % quantile
/// of the means, interpolated between neighbours. `None` without values or resamples. O(n · resamples).
pub fn bootstrap_interval(values: &[f64], bootstrap: Bootstrap) -> Option<[f64; 2]> {
    bootstrap_statistic(&[values.len()], bootstrap, |drawn| {
        let sum = drawn[0].iter().fold(0.0, |sum, &place| sum + values[place]);
        (!values.is_empty()).then(|| sum / values.len() as f64)
    })
}

/// The same interval for any statistic of one sample, or of several independent samples.
///
/// `sizes` has the number of members of each sample. Each resample draws as many from each sample, with replacement,
/// and passes their indices to `statistic`, one list per sample. Resamples without a value are left out; `None` when
/// none has a value.
pub fn bootstrap_statistic(
    sizes: &[usize],
    bootstrap: Bootstrap,
    statistic: impl Fn(&[Vec<usize>]) -> Option<f64>,
) -> Option<[f64; 2]> {
    let mut random = stream(bootstrap.seed, "bootstrap", &[]);
    let mut drawn = vec![Vec::new(); sizes.len()];
    let mut resample = || {
        for (places, &size) in drawn.iter_mut().zip(sizes) {
            places.clear();
            places.extend((0..size).map(|_| random.random_range(0..size)));
        }
        statistic(&drawn)
    };
    let mut values: Vec<f64> = (0..bootstrap.resamples).filter_map(|_| resample()).collect();
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| [quantile(&values, 0.025), quantile(&values, 0.975)])
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The paired t-test of two methods over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedTTest {
    /// n, the number of pairs.
    pub pairs: usize,
    /// The mean of the differences.
    pub difference: f64,
    /// d = mean / deviation of the differences (Cohen 1988, d_z); none if all differences are equal.
    pub effect: Option<f64>,
    /// The two-sided p-value, in 0 … 1.
    pub p: f64,
}

/// The fewest pairs of a [`paired_t_test`]: with two, only a ratio of mean to deviation above 9 has a p below 0.05.
pub const FEWEST_PAIRS: usize = 3;

/// The paired t-test (Student, *The Probable Error of a Mean*, 1908) of n differences; `None` for fewer than
/// [`FEWEST_PAIRS`].
///
/// The null hypothesis is that the differences are drawn independently from a normal distribution with mean 0. Then
/// t = √n · mean / deviation has Student's distribution with n − 1 degrees of freedom, and p is the probability of a
/// |t| at least as large. With three to five seeds nothing can show whether the differences are normal, and only large
/// effects have a small p. If all differences are equal, p is 1 where they are 0 and else 0.
pub fn paired_t_test(differences: &[f64]) -> Option<PairedTTest> {
    if differences.len() < FEWEST_PAIRS {
        return None;
    }
    let (pairs, difference, deviation) = (differences.len(), mean(differences)?, deviation(differences)?);
    let effect = (deviation > 0.0).then(|| difference / deviation);
    let p = match effect {
        Some(effect) => student_tails(effect * (pairs as f64).sqrt(), pairs as u32 - 1),
        None => f64::from(u8::from(difference == 0.0)),
    };
    Some(PairedTTest { pairs, difference, effect, p })
}

/// The half-width of the 95 % interval of a mean: t · deviation / √n, with the t that |T| exceeds with probability 0.05 in
/// Student's distribution with n − 1 degrees of freedom. `None` for fewer than two values.
///
/// It assumes that the values are drawn independently from a normal distribution.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let freedom = u32::try_from(values.len().checked_sub(1)?).ok().filter(|&freedom| freedom > 0)?;
    Some(student_quantile(freedom) * deviation(values)? / (values.len() as f64).sqrt())
}

/// The t with P(|T| ≥ t) = 0.05, by bisection. It is 12.706… with one degree of freedom and less with more.
fn student_quantile(freedom: u32) -> f64 {
    let (mut low, mut high) = (1.0, 13.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if student_tails(middle, freedom) > 0.05 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(|T| ≥ |t|) of Student's distribution: the finite sums of Abramowitz & Stegun, 26.7.3 and 26.7.4, in θ = atan(t/√ν).
fn student_tails(t: f64, freedom: u32) -> f64 {
    let angle = (t.abs() / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // Odd: Σ cos, ⅔ cos³, (2·4)/(3·5) cos⁵ …; even: Σ 1, ½ cos², (1·3)/(2·4) cos⁴ …
    let first = if odd { cosine } else { 1.0 };
    let (mut term, mut sum) = (first, 0.0);
    let mut next = if odd { 3 } else { 2 };
    while next <= freedom {
        sum += term;
        term *= f64::from(next - 1) / f64::from(next) * cosine * cosine;
        next += 2;
    }
    let within = if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// For up to this many differences all patterns of signs are enumerated: 2^16 at most.
const ENUMERABLE: usize = 16;

/// How the signs of a permutation test are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutations {
    /// The number of patterns of signs to draw when there are too many to enumerate. Default: 10,000.
    pub draws: usize,
    /// The seed of the draws. Default: 0.
    pub seed: u64,
}

impl Default for Permutations {
    fn default() -> Self {
        Self { draws: 10_000, seed: 0 }
    }
}

/// The two-sided p-value of the paired permutation test (Fisher, *The Design of Experiments*, 1935; Pitman, 1937).
///
/// The null hypothesis is that each of the `differences` could as well have the opposite sign. p is the share of sign
/// patterns whose sum is at least as far from 0 as that of the data. Differences of 0 are ignored. For up to 16 other
/// differences p is exact, over all 2^n patterns. For more it is (b + 1) / (m + 1), where b of m drawn patterns are at
/// least as far (Phipson & Smyth, 2010).
///
/// In (0, 1], and 1 when no pair differs. O(n · draws).
pub fn paired_permutation_test(differences: &[f64], permutations: Permutations) -> f64 {
    let differences: Vec<f64> = differences.iter().copied().filter(|&difference| difference != 0.0).collect();
    let observed: f64 = differences.iter().sum::<f64>().abs();
    // Sums that are equal up to rounding count as equal.
    let rounding = 1e-12 * differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let as_far = |signs: &mut dyn FnMut() -> u64| {
        let sum: f64 = differences.chunks(64).map(|chunk| with_signs(chunk, signs())).sum();
        sum.abs() >= observed - rounding
    };
    if differences.len() <= ENUMERABLE {
        let patterns = 1u64 << differences.len();
        let far = (0..patterns).filter(|&pattern| as_far(&mut || pattern)).count();
        return far as f64 / patterns as f64;
    }
    let mut random = stream(permutations.seed, "permutation test", &[]);
    let far = (0..permutations.draws).filter(|_| as_far(&mut || random.next_u64())).count();
    (far + 1) as f64 / (permutations.draws + 1) as f64
}

/// The sum of at most 64 numbers, where bit i of `signs` inverts the sign of number i.
fn with_signs(numbers: &[f64], signs: u64) -> f64 {
    let turned = |(i, number): (usize, &f64)| f64::from_bits(number.to_bits() ^ ((signs >> i & 1) << 63));
    numbers.iter().enumerate().map(turned).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_follow_their_formulas() {
        assert_eq!((mean(&[]), deviation(&[]), deviation(&[3.0])), (None, None, None));
        assert_eq!((mean(&[1.0, 2.0, 6.0]), deviation(&[1.0, 2.0, 6.0])), (Some(3.0), Some(7f64.sqrt())));
    }

    #[test]
    fn the_interval_of_many_values_is_the_normal_one() {
        let mut random = stream(1, "test", &[]);
        let values: Vec<f64> = (0..2000).map(|_| random.random::<f64>()).collect();
        let [low, high] = bootstrap_interval(&values, Bootstrap::default()).unwrap();
        let expected = 1.96 * deviation(&values).unwrap() / (values.len() as f64).sqrt();
        let centre = mean(&values).unwrap();
        assert!((centre - low - expected).abs() < 0.15 * expected, "{low} {high} {expected}");
        assert!((high - centre - expected).abs() < 0.15 * expected, "{low} {high} {expected}");
        assert_eq!(bootstrap_interval(&values, Bootstrap::default()), Some([low, high]));
        let other = Bootstrap { seed: 1, ..Bootstrap::default() };
        assert_ne!(bootstrap_interval(&values, other), Some([low, high]));
    }

    #[test]
    fn a_bootstrap_of_equal_values_has_no_width() {
        assert_eq!(bootstrap_interval(&[0.5; 7], Bootstrap::default()), Some([0.5, 0.5]));
        assert_eq!(bootstrap_interval(&[], Bootstrap::default()), None);
    }

    #[test]
    fn the_t_test_agrees_with_the_tables_of_student() {
        // Two-sided 5 % and 1 % points by degrees of freedom, as every table has them.
        for (freedom, five, one) in [
            (1, 12.7062, 63.6567),
            (2, 4.30265, 9.92484),
            (3, 3.18245, 5.84091),
            (4, 2.77645, 4.60409),
            (5, 2.57058, 4.03214),
            (9, 2.26216, 3.24984),
            (10, 2.22814, 3.16927),
            (30, 2.04227, 2.75000),
        ] {
            assert!((student_tails(five, freedom) - 0.05).abs() < 1e-6, "{freedom}");
            assert!((student_tails(-one, freedom) - 0.01).abs() < 1e-6, "{freedom}");
            assert!((student_quantile(freedom) - five).abs() < 1e-4, "{freedom}");
        }
        assert_eq!(student_tails(0.0, 7), 1.0);
    }

    #[test]
    fn the_half_width_of_an_interval_follows_its_formula() {
        let expected = 2.77645 * deviation(&[1.0, 2.0, 3.0, 4.0, 6.0]).unwrap() / 5f64.sqrt();
        assert!((half_width(&[1.0, 2.0, 3.0, 4.0, 6.0]).unwrap() - expected).abs() < 1e-4);
        assert_eq!((half_width(&[]), half_width(&[1.0]), half_width(&[0.5; 3])), (None, None, Some(0.0)));
    }

    #[test]
    fn a_paired_t_test_needs_three_pairs() {
        assert_eq!(paired_t_test(&[1.0, 1.1]), None);
        let test = paired_t_test(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((test.pairs, test.difference, test.effect), (3, 2.0, Some(2.0)));
        // t = 2√3 with 2 degrees of freedom: p = 1 − t/√(2 + t²).
        let t = 12_f64.sqrt();
        assert!((test.p - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-12, "{test:?}");
        let turned = paired_t_test(&[-1.0, -2.0, -3.0]).unwrap();
        assert_eq!((turned.difference, turned.p), (-2.0, test.p));
    }

    #[test]
    fn equal_differences_have_no_effect_size() {
        let same = paired_t_test(&[0.0; 4]).unwrap();
        assert_eq!((same.effect, same.p), (None, 1.0));
        let shifted = paired_t_test(&[0.5; 4]).unwrap();
        assert_eq!((shifted.effect, shifted.difference, shifted.p), (None, 0.5, 0.0));
    }

    #[test]
    fn few_pairs_are_permuted_exactly() {
        let test = |differences: &[f64]| paired_permutation_test(differences, Permutations::default());
        // Only the pattern of the data and its opposite are as far from 0.
        assert_eq!(test(&[1.0, 2.0, 3.0]), 2.0 / 8.0);
        // |±1 ±2 ±3| ≥ 4 for 1+2+3 and −1+2+3, and for their opposites.
        assert_eq!(test(&[-1.0, 2.0, 3.0]), 4.0 / 8.0);
        assert_eq!(test(&[0.1, 0.2, -0.3]), 1.0);
        assert_eq!((test(&[]), test(&[0.0; 40])), (1.0, 1.0));
        assert_eq!(test(&[1.0, 0.0, 2.0, 3.0]), test(&[1.0, 2.0, 3.0]));
    }

    #[test]
    fn drawn_patterns_agree_with_all_patterns() {
        // Seventeen differences are drawn; sixteen of them, with the smallest left out, are enumerated.
        let mut random = stream(2, "test", &[]);
        let mut differences: Vec<f64> = (0..16).map(|_| random.random::<f64>() - 0.35).collect();
        let exact = paired_permutation_test(&differences, Permutations::default());
        differences.push(1e-9);
        let drawn = paired_permutation_test(&differences, Permutations::default());
        assert!((exact - drawn).abs() < 0.02, "{exact} {drawn}");
    }

    #[test]
    fn a_clear_difference_has_a_small_p() {
        let p = |shift: f64| {
            let mut random = stream(3, "test", &[]);
            let differences: Vec<f64> = (0..100).map(|_| random.random::<f64>() - 0.5 + shift).collect();
            paired_permutation_test(&differences, Permutations::default())
        };
        assert_eq!(p(0.3), 1.0 / 10_001.0);
        assert!(p(0.0) > 0.05, "{}", p(0.0));
    }
}
