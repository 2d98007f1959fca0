//! eˣ, so that the compiler makes vector instructions of a loop over it.

/// eˣ within two units in the last place. What is below 2⁻¹²⁵ is zero.
///
/// x = n · ln 2 + r with |r| ≤ ln 2 / 2, and eʳ is the polynomial of Cephes (Moshier, *Methods and Programs for
/// Mathematical Functions*, 1989).
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    const LARGEST: f32 = 88.722_83;
    const SMALLEST: f32 = -86.643_394;
    /// A number so large that its last bit is worth 1: adding it rounds to a whole number, which its bits then hold.
    const ROUNDS: f32 = 12_582_912.0;
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let inside = x.clamp(SMALLEST, LARGEST);
    let rounded = inside * std::f32::consts::LOG2_E + ROUNDS;
    let n = rounded - ROUNDS;
    let r = inside - n * LN_2[0] - n * LN_2[1];
    let mut y = 1.987_569_2e-4_f32;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        y = y * r + coefficient;
    }
    let y = y * r * r + r + 1.0;
    // 2ⁿ⁻¹ · 2, because 2¹²⁸ is not a number of this type.
    let half = (rounded.to_bits() as i32 - ROUNDS.to_bits() as i32 + 126) << 23;
    let y = y * f32::from_bits(half as u32) * 2.0;
    let y = if x < SMALLEST { 0.0 } else { y };
    if x > LARGEST { f32::INFINITY } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_64_bits() {
        for i in -866_000..887_000 {
            let x = i as f32 / 1e4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exponential(x)) - exact).abs() / exact;
            assert!(error < 2.4e-7, "e^{x}: {error}");
        }
    }

    #[test]
    fn its_limits_are_those_of_the_function() {
        assert_eq!(exponential(f32::NEG_INFINITY), 0.0);
        assert_eq!(exponential(-1e9), 0.0);
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(f32::INFINITY), f32::INFINITY);
        assert!(exponential(f32::NAN).is_nan());
    }
}
