//! The terms of a series in the vectors of this machine.
//!
//! By name, because the compiler makes scalars of sums of so few terms. No digit depends on the width of the vectors: a
//! sum adds the second half of the terms to the first, and so on.

use macerator::{Scalar, Simd, Vector};

/// M, the number of terms.
pub(super) const TERMS: usize = 16;

/// One number for each term, in as many vectors as are needed.
pub(super) struct Terms<S: Simd>([Vector<S, f64>; TERMS]);

// Derived, these would ask for them of `S`.
impl<S: Simd> Copy for Terms<S> {}

impl<S: Simd> Clone for Terms<S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

/// The number of vectors.
#[inline(always)]
fn vectors<S: Simd>() -> usize {
    TERMS / f64::lanes::<S>()
}

impl<S: Simd> Terms<S> {
    /// The same number for all terms.
    #[inline(always)]
    pub(super) fn all(number: f64) -> Self {
        Self([number.splat(); TERMS])
    }

    #[inline(always)]
    pub(super) fn load(numbers: &[f64; TERMS]) -> Self {
        let mut terms = Self::all(0.0);
        let parts = numbers.chunks_exact(f64::lanes::<S>());
        for (vector, part) in terms.0.iter_mut().zip(parts) {
            *vector = bytemuck::pod_read_unaligned(bytemuck::cast_slice(part));
        }
        terms
    }

    #[inline(always)]
    pub(super) fn store(self, numbers: &mut [f64; TERMS]) {
        let parts = numbers.chunks_exact_mut(f64::lanes::<S>());
        for (vector, part) in self.0.iter().zip(parts) {
            bytemuck::cast_slice_mut(part).copy_from_slice(bytemuck::bytes_of(vector));
        }
    }

    /// x, x², … x^M.
    #[inline(always)]
    pub(super) fn powers(x: f64) -> Self {
        const BITS: [[f64; TERMS]; 4] = [
            [0., 1., 0., 1., 0., 1., 0., 1., 0., 1., 0., 1., 0., 1., 0., 1.],
            [0., 0., 1., 1., 0., 0., 1., 1., 0., 0., 1., 1., 0., 0., 1., 1.],
            [0., 0., 0., 0., 1., 1., 1., 1., 0., 0., 0., 0., 1., 1., 1., 1.],
            [0., 0., 0., 0., 0., 0., 0., 0., 1., 1., 1., 1., 1., 1., 1., 1.],
        ];
        let lanes = f64::lanes::<S>();
        let mut terms = Self::all(x);
        let one = 1.0.splat();
        let mut power: Vector<S, f64> = x.splat();
        let mut done = 1;
        // The power of term m is a product of x and x, x², x⁴ and x⁸, by the bits of m − 1.
        for bits in BITS {
            if done < lanes {
                let bits: Vector<S, f64> = Self::load(&bits).0[0];
                terms.0[0] *= bits.gt(0.0.splat()).select(power, one);
            } else {
                for vector in 0..done / lanes {
                    terms.0[done / lanes + vector] = terms.0[vector] * power;
                }
            }
            power = power * power;
            done *= 2;
        }
        terms
    }

    #[inline(always)]
    pub(super) fn plus(mut self, other: Self) -> Self {
        for vector in 0..vectors::<S>() {
            self.0[vector] += other.0[vector];
        }
        self
    }

    #[inline(always)]
    pub(super) fn times(mut self, other: Self) -> Self {
        for vector in 0..vectors::<S>() {
            self.0[vector] *= other.0[vector];
        }
        self
    }

    /// The sum of all terms.
    #[inline(always)]
    pub(super) fn sum(self) -> f64 {
        let mut terms = self.0;
        let mut half = vectors::<S>() / 2;
        while half > 0 {
            for vector in 0..half {
                terms[vector] += terms[half + vector];
            }
            half /= 2;
        }
        terms[0].reduce_add()
    }
}

#[cfg(test)]
mod tests {
    use macerator::with_simd;

    use super::*;

    /// The powers of x, and the sum of their squares plus 1.
    #[with_simd]
    fn powers_and_sum<S: Simd>(x: f64) -> ([f64; TERMS], f64) {
        let mut powers = [0.0; TERMS];
        let terms = Terms::<S>::powers(x);
        terms.store(&mut powers);
        let squares = terms.times(Terms::load(&powers));
        (powers, squares.plus(Terms::all(1.0)).sum())
    }

    #[test]
    fn every_width_of_vectors_has_the_digits_of_the_stated_order() {
        for x in (1..200).map(|i| f64::from(i) * 0.0137) {
            let squares = [x, x * x, (x * x) * (x * x), ((x * x) * (x * x)) * ((x * x) * (x * x))];
            let powers: [f64; TERMS] = std::array::from_fn(|term| {
                let factors = squares.iter().enumerate().filter(|(bit, _)| term >> bit & 1 == 1);
                factors.fold(x, |power, (_, square)| power * square)
            });
            let mut sums = powers.map(|power| power * power + 1.0).to_vec();
            while sums.len() > 1 {
                let (first, second) = sums.split_at(sums.len() / 2);
                sums = first.iter().zip(second).map(|(a, b)| a + b).collect();
            }
            assert_eq!(powers_and_sum(x), (powers, sums[0]), "{x}");
            for (power, number) in powers.iter().zip(1..) {
                assert!((power / x.powi(number) - 1.0).abs() < 1e-14, "{x}^{number}: {power}");
            }
        }
    }
}
