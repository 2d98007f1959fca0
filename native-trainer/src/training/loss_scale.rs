//! Loss scaling: on their way through a network in half precision, whose numbers end at 65,504 and begin at 6·10⁻⁸,
//! gradients are multiplied by a scale, so that small ones do not become 0 (Micikevicius et al., *Mixed Precision
//! Training*, 2018).
//!
//! The scale finds its size by itself: a step whose gradients are not finite is skipped and halves it, and
//! [`STEPS_TO_GROW`] steps in a row without that double it. A power of two, it changes no digit of a number.

use serde::{Deserialize, Serialize};

/// The steps without an overflow after which the scale grows, as in PyTorch.
const STEPS_TO_GROW: u32 = 2_000;

const LARGEST: f64 = (1_u32 << 24) as f64;

/// The smallest scale. With it, half precision holds gradients up to 65,504·2²⁴ ≈ 10¹². Larger ones are a fault that no
/// scale mends.
const SMALLEST: f64 = 1.0 / LARGEST;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossScale {
    factor: f64,
    /// The steps since it last changed.
    steps: u32,
    /// The steps that were skipped.
    skipped: u64,
}

impl LossScale {
    /// The scale of the first step, as in PyTorch.
    pub const FIRST: Self = Self { factor: 65_536.0, steps: 0, skipped: 0 };

    /// The factor of the gradients.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// The steps that were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The scale after a step that was done.
    pub fn after_step(self) -> Self {
        let steps = self.steps + 1;
        if steps < STEPS_TO_GROW {
            return Self { steps, ..self };
        }
        Self { factor: (2.0 * self.factor).min(LARGEST), steps: 0, ..self }
    }

    /// The scale after a step whose gradients overflowed, which is skipped; none if a smaller scale is of no use, and the
    /// fault lies elsewhere.
    pub fn after_overflow(self) -> Option<Self> {
        let smaller = Self { factor: self.factor / 2.0, steps: 0, skipped: self.skipped + 1 };
        (smaller.factor >= SMALLEST).then_some(smaller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_halves_the_scale_and_many_steps_without_one_double_it() {
        let scale = LossScale::FIRST.after_step().after_overflow().unwrap();
        assert_eq!((scale.factor(), scale.skipped()), (32_768.0, 1));
        let grown = |steps| (0..steps).fold(scale, |scale, _| scale.after_step());
        assert_eq!(grown(STEPS_TO_GROW - 1).factor(), 32_768.0);
        assert_eq!(grown(STEPS_TO_GROW).factor(), 65_536.0);
        assert_eq!(grown(2 * STEPS_TO_GROW).factor(), 131_072.0);
        // An overflow starts the count again.
        let interrupted = grown(STEPS_TO_GROW - 1).after_overflow().unwrap().after_step();
        assert_eq!((interrupted.factor(), interrupted.skipped()), (16_384.0, 2));
    }

    #[test]
    fn the_scale_has_bounds() {
        let largest = (0..100 * STEPS_TO_GROW).fold(LossScale::FIRST, |scale, _| scale.after_step());
        assert_eq!(largest.factor(), LARGEST);
        let mut scale = LossScale::FIRST;
        while let Some(smaller) = scale.after_overflow() {
            scale = smaller;
        }
        assert_eq!((scale.factor(), scale.skipped()), (SMALLEST, 40));
    }
}
