//! What is done with the numbers of an output before they are written.

use macerator::{Scalar, Simd};

use crate::product::{LANES, Lanes};
use crate::vectors::{load, store};

/// The numbers of each channel, scaled and shifted, and with what is negative made zero.
///
/// The default leaves them as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// A factor for each channel, [O].
    pub scale: Option<&'a [f32]>,
    /// What is added to each channel then, [O].
    pub shift: Option<&'a [f32]>,
    /// Whether what is negative is made zero. Not a number stays so.
    pub rectified: bool,
}

impl Epilogue<'_> {
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(&self, channel: usize, numbers: &mut Lanes, added: Option<&Lanes>) {
        let lanes = S::lanes32();
        let scale = self.scale.map(|scale| scale[channel].splat::<S>());
        let shift = self.shift.map(|shift| shift[channel].splat::<S>());
        for start in (0..LANES).step_by(lanes) {
            let numbers = &mut numbers[start..start + lanes];
            let mut vector = load::<S>(numbers);
            if let Some(scale) = scale {
                vector *= scale;
            }
            if let Some(shift) = shift {
                vector += shift;
            }
            if let Some(added) = added {
                vector += load(&added[start..start + lanes]);
            }
            if self.rectified {
                let zero = 0.0_f32.splat::<S>();
                vector = vector.lt(zero).select(zero, vector);
            }
            store(vector, numbers);
        }
    }
}
