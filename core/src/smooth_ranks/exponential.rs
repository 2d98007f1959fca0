//! The exponential as a loop that runs in vectors.

/// Replaces each x of −700 … 700 by e^x, to about 10⁻¹⁵ of itself. No digit depends on the width of the vectors.
#[inline(always)]
pub(super) fn exponentials(numbers: &mut [f64]) {
    for number in numbers {
        *number = exp(*number);
    }
}

/// e^x = 2^n · e^r with |r| ≤ ½ ln 2, by the first terms of the series of e^r.
#[inline(always)]
fn exp(x: f64) -> f64 {
    // Adding this rounds to an integer, which is in the lowest bits then.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, so that the product of the first is exact.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const TERMS: [f64; 12] = {
        let mut terms = [1.0; 12];
        let mut term = 1;
        while term < 12 {
            terms[term] = terms[term - 1] / (term + 1) as f64;
            term += 1;
        }
        terms
    };
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let power = rounded - ROUND;
    let rest = x - power * LN_2[0] - power * LN_2[1];
    let mut series = 0.0;
    for term in TERMS.iter().rev() {
        series = (series + term) * rest;
    }
    (1.0 + series) * f64::from_bits((rounded.to_bits() << 52).wrapping_add(0x3ff0_0000_0000_0000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for i in -70_000..=70_000 {
            let x = f64::from(i) / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() <= 1e-15, "{x}: {} {}", exp(x), x.exp());
        }
        assert_eq!(exp(0.0), 1.0);
    }
}
