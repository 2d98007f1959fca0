//! Binary codes and their Hamming distance: the number of bits in which two codes differ.
//!
//! The code of an embedding is the signs of its numbers: bit k is 1 if number k is above 0, and 0 otherwise. 0 and −0
//! count as negative. A word holds 64 bits; bit k is in word ⌊k/64⌋ at position k mod 64. The unused bits of the last
//! word are 0 in every code.
//!
//! With b ∈ {−1, 1}ᴷ for the signs, a·b = K − 2 · distance(a, b). Ranking by Hamming distance is therefore the same as
//! ranking by the dot product, the cosine or the Euclidean distance of the signs.

use std::ops::Range;

use macerator::{Simd, with_simd};

/// N codes of K bits.
///
/// ```
/// use akin_core::hamming::Codes;
///
/// let codes = Codes::from_signs(3, &[0.5, -2.0, 1.0, 0.1, 3.0, -0.2]);
/// assert_eq!(codes.len(), 2);
/// assert_eq!(codes.code(0), [0b101]);
/// assert_eq!(codes.distance(0, 1), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    bits: usize,
    words: Vec<u64>,
}

const WORD: usize = u64::BITS as usize;

impl Codes {
    /// The codes of embeddings [N, `bits`], row-major.
    ///
    /// # Panics
    ///
    /// When `bits` is 0.
    pub fn from_signs(bits: usize, values: &[f32]) -> Self {
        let word = |chunk: &[f32]| {
            (0..).zip(chunk).fold(0, |word, (bit, &value)| word | (u64::from(value > 0.0) << bit))
        };
        Self { bits, words: values.chunks_exact(bits).flat_map(|row| row.chunks(WORD).map(word)).collect() }
    }

    /// N, the number of codes.
    #[expect(clippy::len_without_is_empty, reason = "codes are a column of a data set, not a container")]
    pub fn len(&self) -> usize {
        self.words.len() / self.width()
    }

    /// K, the number of bits of a code.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The words of code `i`.
    pub fn code(&self, i: usize) -> &[u64] {
        &self.words[i * self.width()..][..self.width()]
    }

    /// The bits of code `i` as a text of `0` and `1`, bit 0 first.
    pub fn text(&self, i: usize) -> String {
        let code = self.code(i);
        (0..self.bits).map(|bit| if code[bit / WORD] >> (bit % WORD) & 1 == 1 { '1' } else { '0' }).collect()
    }

    /// The Hamming distance of the codes `i` and `j`.
    pub fn distance(&self, i: usize, j: usize) -> u32 {
        distance(self.code(i), self.code(j))
    }

    /// Minus the distances of a range of queries to all these codes. The scores of a query are `stride` places behind
    /// those of the query before: [queries, `stride`], of which the first N columns are written.
    pub(crate) fn score(&self, queries: &Codes, range: Range<usize>, scores: &mut [f32], stride: usize) {
        if self.len() > 0 && !range.is_empty() {
            let queries = &queries.words[range.start * self.width()..range.end * self.width()];
            score_words(queries, &self.words, self.width(), scores, stride);
        }
    }

    /// The number of words of a code; 1 if there are no codes.
    fn width(&self) -> usize {
        self.bits.div_ceil(WORD).max(1)
    }
}

/// The Hamming distance of two codes of equal length.
#[inline(always)]
pub fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Counts with the machine's instruction for it, of whole vectors where it has that.
#[with_simd]
#[allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]
fn score_words<S: Simd>(queries: &[u64], items: &[u64], width: usize, scores: &mut [f32], stride: usize) {
    for (query, scores) in queries.chunks_exact(width).zip(scores.chunks_mut(stride)) {
        if let [query] = *query {
            for (score, item) in scores.iter_mut().zip(items) {
                *score = -((query ^ item).count_ones() as f32);
            }
        } else {
            for (score, item) in scores.iter_mut().zip(items.chunks_exact(width)) {
                *score = -(distance(query, item) as f32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_above_0_is_the_bit_0() {
        let codes = Codes::from_signs(4, &[0.0, -0.0, f32::MIN_POSITIVE, -1.0]);
        assert_eq!(codes.code(0), [0b0100]);
    }

    #[test]
    fn long_codes_take_several_words() {
        let mut values = vec![-1.0; 2 * 130];
        values[129] = 1.0;
        let codes = Codes::from_signs(130, &values);
        assert_eq!((codes.len(), codes.bits()), (2, 130));
        assert_eq!(codes.code(0), [0, 0, 0b10]);
        assert_eq!((codes.distance(0, 1), codes.distance(1, 1)), (1, 0));
        assert_eq!([codes.text(0), codes.text(1)], ["0".repeat(129) + "1", "0".repeat(130)]);
        let mut scores = [9.0; 6];
        codes.score(&codes, 0..2, &mut scores, 3);
        assert_eq!(scores, [0.0, -1.0, 9.0, -1.0, 0.0, 9.0]);
    }
}
