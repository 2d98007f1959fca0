//! Small numbers as runs: one number repeated, or eight numbers at a time in as few bits as they need. Parquet writes
//! definition levels and places in a dictionary so.

use std::ops::Range;

/// Numbers that are read one by one from a range of a page. The range ends the last run.
#[derive(Debug)]
pub(crate) struct Runs {
    /// What is not yet read, without the bits of this run.
    rest: Range<usize>,
    /// Bits of a number.
    width: usize,
    run: Run,
}

#[derive(Debug)]
enum Run {
    Repeated { number: u32, left: u64 },
    Packed { bit: usize, left: u64 },
}

impl Runs {
    /// The numbers of this width in bits, at most 32, in a range of a page.
    pub(crate) fn new(range: Range<usize>, width: usize) -> Self {
        Self { rest: range, width, run: Run::Repeated { number: 0, left: 0 } }
    }

    /// The next number; none if there is no more.
    pub(crate) fn next(&mut self, page: &[u8]) -> Option<u32> {
        loop {
            match &mut self.run {
                Run::Repeated { number, left } if *left > 0 => {
                    *left -= 1;
                    return Some(*number);
                }
                Run::Packed { bit, left } if *left > 0 => {
                    let number = bits(page.get(..self.rest.end)?, *bit, self.width)? as u32;
                    *bit += self.width;
                    *left -= 1;
                    return Some(number);
                }
                _ => self.begin(page)?,
            }
        }
    }

    /// Begins the next run.
    fn begin(&mut self, page: &[u8]) -> Option<()> {
        let mut head = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.take(page, 1)?[0];
            head |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let length = head >> 1;
        self.run = if head & 1 == 1 {
            let bit = self.rest.start.checked_mul(8)?;
            let bytes = usize::try_from(length).ok()?.checked_mul(self.width)?;
            // Some writers leave out the last bytes of the last eight numbers.
            self.rest.start = self.rest.start.saturating_add(bytes).min(self.rest.end);
            Run::Packed { bit, left: length.checked_mul(8)? }
        } else {
            let mut number = [0; 4];
            let bytes = self.width.div_ceil(8);
            number.get_mut(..bytes)?.copy_from_slice(self.take(page, bytes)?);
            Run::Repeated { number: u32::from_le_bytes(number), left: length }
        };
        Some(())
    }

    fn take<'a>(&mut self, page: &'a [u8], length: usize) -> Option<&'a [u8]> {
        let bytes = page.get(self.rest.clone())?.get(..length)?;
        self.rest.start += length;
        Some(bytes)
    }
}

/// The number of `width` bits, at most 64, that begins at a bit; none behind the end.
pub(crate) fn bits(bytes: &[u8], bit: usize, width: usize) -> Option<u64> {
    let last = (bit + width).div_ceil(8);
    let mut number = [0; 16];
    let found = bytes.get(bit / 8..last)?;
    number.get_mut(..found.len())?.copy_from_slice(found);
    let mask = (1_u128 << width) - 1;
    Some((u128::from_le_bytes(number) >> (bit % 8) & mask) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8], width: usize) -> Vec<u32> {
        let mut runs = Runs::new(0..bytes.len(), width);
        std::iter::from_fn(|| runs.next(bytes)).take(100).collect()
    }

    #[test]
    fn runs_repeat_a_number_or_pack_eight() {
        // The example of the format's specification: 0 to 7 in three bits.
        assert_eq!(numbers(&[3, 0b1000_1000, 0b1100_0110, 0b1111_1010], 3), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers(&[6, 5], 3), [5, 5, 5]);
        assert_eq!(numbers(&[4, 0x34, 0x12, 2, 1, 0], 13), [0x1234, 0x1234, 1]);
        assert_eq!(numbers(&[6], 0), [0, 0, 0], "a dictionary of one value needs no bits");
        assert_eq!(numbers(&[3, 0xff], 1), [1; 8]);
        assert_eq!(numbers(&[2, 0xff, 0xff, 0xff, 0xff], 32), [u32::MAX]);
    }

    #[test]
    fn what_is_cut_off_ends() {
        assert_eq!(numbers(&[3, 0b1000_1000], 3), [0, 1], "the third number needs a second byte");
        let nothing = Vec::<u32>::new();
        assert_eq!(numbers(&[6], 3), nothing);
        assert_eq!(numbers(&[0xff; 20], 8), nothing, "a length of too many bits");
        assert_eq!(numbers(&[1, 1, 1, 1], 8), nothing, "runs of nothing");
        assert_eq!(Runs::new(3..9, 8).next(&[2, 2]), None);
    }
}
