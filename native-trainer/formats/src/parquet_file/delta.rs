//! Numbers as differences: the first number, and then blocks, each with the least difference in it and by how much every
//! other is larger, in as few bits as its part of the block needs. Parquet calls this `DELTA_BINARY_PACKED`.

use super::runs::bits;

/// Numbers that are read one by one from a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deltas {
    /// What is not yet read, without the bits of this part of a block.
    rest: usize,
    /// The numbers that are not yet read.
    left: u64,
    next: i64,
    /// The numbers in a part of a block, and the parts.
    part: u64,
    parts: usize,
    /// The least difference of this block.
    least: i64,
    /// Where the widths of the parts are that are not yet read, a byte each, and their end.
    widths: std::ops::Range<usize>,
    width: usize,
    bit: usize,
    left_in_part: u64,
}

impl Deltas {
    /// The numbers that begin at a place of a page; none if there are more than `most`, or the beginning makes no sense.
    pub(crate) fn new(page: &[u8], start: usize, most: u64) -> Option<Self> {
        // Where all cells are empty, some programs write nothing.
        if start == page.len() {
            return Some(Self { rest: start, ..Self::default() });
        }
        let mut rest = start;
        let [block, parts, left] = [(); 3].map(|()| unsigned(page, &mut rest));
        let (block, parts, left, next) = (block?, parts?, left?, signed(page, &mut rest)?);
        let part = block.checked_div(parts)?;
        // Eight numbers end where a byte ends, however many bits each has.
        if left > most || part == 0 || !part.is_multiple_of(8) {
            return None;
        }
        Some(Self { rest, left, next, part, parts: usize::try_from(parts).ok()?, ..Self::default() })
    }

    /// The next number; none if there is no more.
    pub(crate) fn next(&mut self, page: &[u8]) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next;
        if self.left > 0 {
            if self.left_in_part == 0 {
                self.begin_part(page)?;
            }
            let difference = self.least.wrapping_add(bits(page, self.bit, self.width)? as i64);
            self.next = number.wrapping_add(difference);
            self.bit += self.width;
            self.left_in_part -= 1;
        }
        Some(number)
    }

    fn begin_part(&mut self, page: &[u8]) -> Option<()> {
        if self.widths.is_empty() {
            self.least = signed(page, &mut self.rest)?;
            self.widths = self.rest..self.rest.checked_add(self.parts)?;
            self.rest = self.widths.end;
        }
        self.width = usize::from(*page.get(self.widths.next()?)?);
        if self.width > 64 {
            return None;
        }
        self.bit = self.rest.checked_mul(8)?;
        self.left_in_part = self.part;
        let bytes = usize::try_from(self.part / 8).ok()?.checked_mul(self.width)?;
        self.rest = self.rest.checked_add(bytes)?;
        Some(())
    }

    /// The place behind the numbers.
    pub(crate) fn end(&self, page: &[u8]) -> usize {
        let mut all = self.clone();
        while all.next(page).is_some() {}
        all.rest
    }
}

/// A number in groups of seven bits, the lowest first.
fn unsigned(page: &[u8], place: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *page.get(*place)?;
        *place += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A number whose lowest bit is its sign.
fn signed(page: &[u8], place: &mut usize) -> Option<i64> {
    let number = unsigned(page, place)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers, and the bytes behind them.
    fn numbers(page: &[u8]) -> (Vec<i64>, usize) {
        let Some(mut deltas) = Deltas::new(page, 0, 100) else { return (vec![], page.len()) };
        let end = deltas.end(page);
        (std::iter::from_fn(|| deltas.next(page)).collect(), page.len() - end.min(page.len()))
    }

    #[test]
    fn differences_of_the_specification_are_read() {
        // Its first example: 1 to 5, whose differences need no bits, and its second: 7, 5, 3, 1, 2, 3, 4, 5.
        let block = [0x80, 1, 4];
        assert_eq!(numbers(&[&block[..], &[5, 2, 2, 0, 0, 0, 0, 99]].concat()), (vec![1, 2, 3, 4, 5], 1));
        let packed = [&block[..], &[8, 14, 3, 2, 0, 0, 0], &[0xc0, 0x3f], &[0; 6], &[99]].concat();
        assert_eq!(numbers(&packed), (vec![7, 5, 3, 1, 2, 3, 4, 5], 1));
        assert_eq!(numbers(&[&block[..], &[1, 13, 99]].concat()), (vec![-7], 1), "one number has no block");
        assert_eq!(numbers(&[&block[..], &[0, 0]].concat()), (vec![], 0));
        assert_eq!(numbers(&[]), (vec![], 0), "a page of empty cells");
    }

    #[test]
    fn what_is_cut_off_or_makes_no_sense_ends() {
        let whole = [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f];
        for end in 1..whole.len() {
            assert!(numbers(&whole[..end]).0.len() < 8, "the first {end} bytes");
        }
        for (header, why) in [
            (&[0x80, 1, 0, 5, 2][..], "no parts"),
            (&[0, 4, 5, 2], "no numbers in a block"),
            (&[12, 1, 5, 2], "a part that ends inside a byte"),
            (&[0x80, 1, 4, 101, 2], "more numbers than the page has cells"),
            (&[0xff; 20], "a number of too many bits"),
        ] {
            assert!(Deltas::new(header, 0, 100).is_none(), "{why}");
        }
        assert!(numbers(&[8, 1, 3, 2, 0, 65, 0, 0]).0.is_empty(), "a width of more than 64 bits");
    }
}
