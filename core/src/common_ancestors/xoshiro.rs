//! Random numbers in vectors.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::rows::LANES;

/// Xoshiro128++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), one generator for each
/// lane. The states are drawn.
pub(super) struct Xoshiro {
    state: [[u32; LANES]; 4],
}

impl Xoshiro {
    pub(super) fn new(draws: &mut ChaCha8Rng) -> Self {
        Self { state: std::array::from_fn(|_| std::array::from_fn(|_| draws.next_u32())) }
    }

    /// The next number of each lane.
    #[inline(always)]
    pub(super) fn next(&mut self) -> [u32; LANES] {
        let [a, b, c, d] = &mut self.state;
        let mut numbers = [0; LANES];
        for lane in 0..LANES {
            numbers[lane] = a[lane].wrapping_add(d[lane]).rotate_left(7).wrapping_add(a[lane]);
            let shifted = b[lane] << 9;
            c[lane] ^= a[lane];
            d[lane] ^= b[lane];
            b[lane] ^= c[lane];
            a[lane] ^= d[lane];
            c[lane] ^= shifted;
            d[lane] = d[lane].rotate_left(11);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn each_lane_has_the_numbers_of_the_algorithm() {
        let mut lanes = Xoshiro::new(&mut stream(0, "test", &[]));
        // The state 1, 2, 3, 4 and the numbers of the authors' program for it.
        for (part, number) in lanes.state.iter_mut().zip(1..) {
            part[5] = number;
        }
        for expected in [641, 1_573_767, 3_222_811_527, 3_517_856_514, 836_907_274] {
            assert_eq!(lanes.next()[5], expected);
        }
    }
}
