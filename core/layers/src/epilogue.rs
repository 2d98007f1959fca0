//! What is done with the numbers of an output before they are written.

use crate::product::Lanes;

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
    pub(crate) fn apply(&self, channel: usize, numbers: &mut Lanes, added: Option<&Lanes>) {
        if let Some(scale) = self.scale {
            numbers.iter_mut().for_each(|number| *number *= scale[channel]);
        }
        if let Some(shift) = self.shift {
            numbers.iter_mut().for_each(|number| *number += shift[channel]);
        }
        if let Some(added) = added {
            numbers.iter_mut().zip(added).for_each(|(number, added)| *number += added);
        }
        if self.rectified {
            numbers.iter_mut().for_each(|number| *number = if *number < 0.0 { 0.0 } else { *number });
        }
    }
}
