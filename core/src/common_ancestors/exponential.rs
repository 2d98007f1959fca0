//! The noise of the softmax draws, and logarithm and exponential as loops that run in vectors.

use rand_chacha::ChaCha8Rng;

use super::rows::{LANES, larger};
use super::xoshiro::Xoshiro;

/// Fills 1/E for draws E from Exp(1), so that e^z / E is e^{z + g} with g from Gumbel(0, 1). The anchor and the position
/// among its draws determine the numbers.
pub(super) fn noise(draws: ChaCha8Rng) -> impl Fn(u64) -> ReciprocalDraws + Sync + Send {
    move |anchor| {
        let mut rng = draws.clone();
        rng.set_stream(anchor);
        ReciprocalDraws { rng: Xoshiro::new(&mut rng) }
    }
}

/// A source of 1/E.
pub(super) trait Reciprocals {
    /// Fills the numbers of a triplet: first for ρ_ij (ancestor 0), then for ρ_ijk (1). What stands behind the numbers of
    /// the proxies does not matter.
    fn fill(&mut self, triplet: usize, ancestor: usize, numbers: &mut [[f32; LANES]]);
}

/// The draws of one anchor.
pub(super) struct ReciprocalDraws {
    rng: Xoshiro,
}

impl Reciprocals for ReciprocalDraws {
    #[inline(always)]
    fn fill(&mut self, _: usize, _: usize, numbers: &mut [[f32; LANES]]) {
        for numbers in numbers {
            let bits = self.rng.next();
            for lane in 0..LANES {
                // The middle of one of 2²³ intervals of 0 … 1: never 0 or 1.
                let uniform = ((bits[lane] >> 9) as f32 + 0.5) * (1.0 / 8_388_608.0);
                numbers[lane] = -reciprocal_ln(uniform);
            }
        }
    }
}

/// Draws that are given: those of a triplet are e^g, for g from Gumbel(0, 1), [triplets, P] for each ancestor.
pub(super) struct GivenDraws<'a> {
    /// g.
    pub gumbel: [&'a [f32]; 2],
    /// P.
    pub proxies: usize,
}

impl Reciprocals for GivenDraws<'_> {
    #[inline(always)]
    fn fill(&mut self, triplet: usize, ancestor: usize, numbers: &mut [[f32; LANES]]) {
        let gumbel = &self.gumbel[ancestor][triplet * self.proxies..][..self.proxies];
        for (number, gumbel) in numbers.as_flattened_mut().iter_mut().zip(gumbel) {
            *number = gumbel.exp();
        }
    }
}

/// 1 / ln x of a normal number x > 0 other than 1, to about 10⁻⁷ of itself. x = m · 2^e with m in √½ … √2, and
/// ln m = 2 atanh z with z = (m − 1) / (m + 1) of at most 0.172. atanh z = z (1 − a z²) / (1 − b z²) to 2.4 · 10⁻⁸, so
/// that one division is left.
#[inline(always)]
pub(super) fn reciprocal_ln(x: f32) -> f32 {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    const A: f32 = 0.269_525_65;
    const B: f32 = 0.602_850_2;
    let bits = x.to_bits().wrapping_sub(ROOT_HALF);
    let exponent = ((bits as i32) >> 23) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) + ROOT_HALF);
    let (less, more) = (mantissa - 1.0, mantissa + 1.0);
    let (less_squared, more_squared) = (less * less, more * more);
    let numerator = less * (more_squared - A * less_squared);
    let denominator = more * (more_squared - B * less_squared);
    denominator / (exponent * std::f32::consts::LN_2 * denominator + 2.0 * numerator)
}

/// e^x for x ≤ 0, to about 10⁻⁷ of itself; e⁻⁸⁰ below −80, so that a product with noise is not subnormal.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = larger(x, -80.0);
    // Adding this rounds to an integer, which is in the lowest bits then.
    const ROUND: f32 = 12_582_912.0;
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let power = rounded - ROUND;
    // ln 2 in two parts, so that the product of the first is exact.
    let rest = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
    let series = 1.0 / 720.0;
    let series = series * rest + 1.0 / 120.0;
    let series = series * rest + 1.0 / 24.0;
    let series = series * rest + 1.0 / 6.0;
    let series = series * rest + 0.5;
    let series = 1.0 + rest + rest * rest * series;
    series * f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn logarithm_and_exponential_are_those_of_the_library() {
        for i in 1..=100_000 {
            let x = i as f32 / 100_000.0;
            if x != 1.0 {
                let (got, expected) = (f64::from(reciprocal_ln(x)), f64::from(x).ln().recip());
                assert!((got / expected - 1.0).abs() <= 3e-7, "1 / ln {x}: {got} {expected}");
            }
            let x = -80.0 * x;
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / expected - 1.0).abs() <= 3e-7, "exp {x}: {got} {expected}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) > 0.0 && exp(-1e30) < 1e-34);
        for tiny in [2.0_f32.powi(-24), 1.0 - 2.0_f32.powi(-24)] {
            let (got, expected) = (f64::from(reciprocal_ln(tiny)), f64::from(tiny).ln().recip());
            assert!((got / expected - 1.0).abs() < 3e-7, "1 / ln {tiny}: {got} {expected}");
        }
    }

    #[test]
    fn draws_are_those_of_the_exponential_distribution_and_follow_from_the_anchor() {
        let noise = noise(stream(3, "test", &[]));
        let mut numbers = vec![[0.0; LANES]; 1 << 11];
        noise(5).fill(0, 0, &mut numbers);
        let numbers = numbers.as_flattened();
        let count = numbers.len() as f64;
        let mean = numbers.iter().map(|number| 1.0 / f64::from(*number)).sum::<f64>() / count;
        let above_two = numbers.iter().filter(|&&number| number < 0.5).count() as f64 / count;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((above_two - (-2.0_f64).exp()).abs() < 0.006, "{above_two}");
        let (mut again, mut other) = ([[0.0; LANES]; 2], [[0.0; LANES]; 2]);
        noise(5).fill(0, 0, &mut again);
        noise(6).fill(0, 0, &mut other);
        assert_eq!(again.as_flattened(), &numbers[..2 * LANES]);
        assert_ne!(again, other);
    }
}
