//! The nearest items of a query, found with codes of 8 bits: the same items and scores as [`nearest`] finds, from a fraction
//! of the bytes.
//!
//! An embedding x is x = s·c + e, with whole numbers c from −127 to 127, the scale s = max |x| / 127 and an error e. A query is
//! q = t·p + f in the same way, with numbers p of 16 bits. Then
//!
//! q·x = t·s·(p·c) + f·(s·c) + q·e, so that |q·x − t·s·(p·c)| ≤ ‖f‖ (‖x‖ + ‖e‖) + ‖q‖ ‖e‖
//!
//! by the inequality of Cauchy and Schwarz. p·c is a sum of whole numbers, and exact. With the rounding errors of both ways to
//! compute a score, at most γ = d·u / (1 − d·u) times ‖q‖ ‖x‖ for sums of d numbers in single precision (u = 2⁻²⁴), this gives
//! an interval that holds the score that [`nearest`] computes. The k-th best lower end is a score that k items reach; an item
//! whose upper end lies below it is none of the first k. All others are read and scored.
//!
//! The codes of all items stay in memory: d + 12 bytes for each.
//!
//! ```
//! use akin_core::embeddings::Embeddings;
//! use akin_core::nearest::{Ask, nearest};
//! use akin_core::shortlist::Shortlist;
//! use akin_core::similarity::Similarity;
//!
//! let items = Embeddings::new(2, vec![1.0, 0.0, 0.8, 0.6, 0.6, 0.8, 0.0, 1.0])?;
//! let queries = Embeddings::new(2, vec![2.0, 0.1])?;
//! let shortlist = Shortlist::new(&items, Similarity::Cosine)?.expect("a similarity of products");
//! let found = shortlist.nearest(&items, &queries, &Ask::new(2))?;
//!
//! assert_eq!(found.hits, nearest(&items, &queries, Similarity::Cosine, &Ask::new(2))?);
//! assert_eq!(found.scored, [2]);
//! # akin_core::Result::Ok(())
//! ```

use macerator::{Simd, with_simd};

use crate::embeddings::{Embeddings, Rows};
use crate::nearest::{Ask, check_dimension, nearest};
use crate::search::Hit;
use crate::similarity::{Points, Similarity, measure};
use crate::threads::in_order;
use crate::Result;

/// The items whose codes meet all queries before the next ones do.
const BLOCK: usize = 2048;
/// The blocks between two looks at the best lower ends.
const BLOCKS: usize = 64;
/// The queries that meet a block together.
const QUERIES: usize = 64;
/// The unit roundoff of single precision, 2⁻²⁴.
const ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Shortlist {
    similarity: Similarity,
    dimension: usize,
    /// c, [N, d].
    codes: Vec<i8>,
    /// s of each item.
    scales: Vec<f32>,
    /// ‖e‖ of each item, rounded up.
    errors: Vec<f32>,
    /// ‖x‖ of each item, rounded up.
    lengths: Vec<f32>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortlisted {
    /// For each query the nearest items, best first, as [`nearest`] finds them.
    pub hits: Vec<Vec<Hit>>,
    /// For each query the number of items that were scored, because the codes did not exclude them.
    pub scored: Vec<usize>,
}

impl Shortlist {
    /// The codes of these items. None for similarities that are not made of products: Hamming's and Poincaré's.
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`](crate::Kind::Embeddings) for embeddings that cannot be read or that the similarity is not defined
    /// for.
    pub fn new(rows: &dyn Rows, similarity: Similarity) -> Result<Option<Self>> {
        if !matches!(similarity, Similarity::Cosine | Similarity::Dot | Similarity::Euclidean) {
            return Ok(None);
        }
        let (count, dimension) = (rows.len(), rows.dimension());
        let mut all = Self {
            similarity,
            dimension,
            codes: Vec::with_capacity(count * dimension),
            scales: Vec::with_capacity(count),
            errors: Vec::with_capacity(count),
            lengths: Vec::with_capacity(count),
        };
        let firsts: Vec<usize> = (0..count).step_by(BLOCK).collect();
        for firsts in firsts.chunks(BLOCKS) {
            for part in in_order(firsts.len(), |number| {
                let first = firsts[number];
                Self::part(rows, similarity, first, count.min(first + BLOCK) - first)
            }) {
                let part = part?;
                all.codes.extend(part.codes);
                all.scales.extend(part.scales);
                all.errors.extend(part.errors);
                all.lengths.extend(part.lengths);
            }
        }
        Ok(Some(all))
    }

    fn part(rows: &dyn Rows, similarity: Similarity, first: usize, count: usize) -> Result<Self> {
        let dimension = rows.dimension();
        let mut numbers = vec![0.0; count * dimension];
        rows.read(first, &mut numbers)?;
        let measures = measure(similarity, (dimension, &numbers), first, "gallery")?;
        let points = Points::new(similarity, (dimension, numbers), measures);
        let mut part = Self {
            similarity,
            dimension,
            codes: Vec::with_capacity(count * dimension),
            scales: Vec::with_capacity(count),
            errors: Vec::with_capacity(count),
            lengths: Vec::with_capacity(count),
        };
        for row in points.rows().chunks_exact(dimension) {
            let start = part.codes.len();
            let scale = scale(row, 127.0);
            part.codes.extend(row.iter().map(|&number| code(number, scale, 127.0) as i8));
            let codes = part.codes[start..].iter().map(|&code| f64::from(code));
            part.errors.push(up(distance(row, codes.map(|code| code * f64::from(scale)))));
            part.lengths.push(up(distance(row, std::iter::repeat(0.0))));
            part.scales.push(scale);
        }
        Ok(part)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// What [`nearest`] finds in the embeddings `rows`, which are those that the codes were made of. With classes, all items
    /// are scored.
    ///
    /// # Errors
    ///
    /// As [`nearest`].
    pub fn nearest(&self, rows: &dyn Rows, queries: &Embeddings, ask: &Ask) -> Result<Shortlisted> {
        let taking_part = ask.items.map_or(self.len(), <[usize]>::len);
        // The best of each class may lie far behind the first items.
        if ask.classes.is_some() || ask.count == 0 {
            let hits = nearest(rows, queries, self.similarity, ask)?;
            return Ok(Shortlisted { scored: vec![taking_part; hits.len()], hits });
        }
        check_dimension(queries, self.dimension)?;
        let points = Points::checked(self.similarity, queries, "query")?;
        let all: Vec<Query> = points.rows().chunks_exact(self.dimension).map(Query::new).collect();
        let mut found = Vec::with_capacity(all.len());
        for (number, queries) in all.chunks(QUERIES).enumerate() {
            found.extend(self.candidates(queries, number * QUERIES, ask));
        }
        let scored = found.iter().map(Vec::len).collect();
        let hits = in_order(found.len(), |query| {
            let itself = [ask.itself.get(query).copied().flatten()];
            let ask = Ask { items: Some(&found[query]), itself: &itself, ..Ask::new(ask.count) };
            let row = Embeddings::new(self.dimension, queries.row(query).to_vec())?;
            Ok(nearest(rows, &row, self.similarity, &ask)?.swap_remove(0))
        });
        Ok(Shortlisted { hits: hits.into_iter().collect::<Result<_>>()?, scored })
    }

    /// For each query the items that may be among the first, ascending.
    fn candidates(&self, queries: &[Query], first_query: usize, ask: &Ask) -> Vec<Vec<usize>> {
        let taking_part = ask.items.map_or(self.len(), <[usize]>::len);
        let firsts: Vec<usize> = (0..taking_part).step_by(BLOCK).collect();
        let mut best: Vec<Best> = queries.iter().map(|_| Best::new(ask.count)).collect();
        for firsts in firsts.chunks(BLOCKS) {
            let reached: Vec<f32> = best.iter().map(Best::reached).collect();
            let work = |number: usize| {
                let places = firsts[number]..taking_part.min(firsts[number] + BLOCK);
                let items: Vec<usize> = match ask.items {
                    Some(items) => items[places].to_vec(),
                    None => places.collect(),
                };
                let mut sums = vec![0; items.len()];
                let each = |(number, (query, &reached)): (usize, (&Query, &f32))| {
                    self.add_up(&items, &query.codes, &mut sums);
                    let itself = ask.itself.get(first_query + number).copied().flatten();
                    self.part_of(query, &items, &sums, itself, Best { reached, ..Best::new(ask.count) })
                };
                queries.iter().zip(&reached).enumerate().map(each).collect::<Vec<_>>()
            };
            for part in in_order(firsts.len(), work) {
                best.iter_mut().zip(part).for_each(|(best, part)| best.join(part));
            }
        }
        best.into_iter().map(Best::into_items).collect()
    }

    /// p·c of a query with some items.
    fn add_up(&self, items: &[usize], query: &[i16], sums: &mut [i32]) {
        let d = self.dimension;
        let (first, last) = (items[0], items[items.len() - 1]);
        if last - first + 1 == items.len() {
            products(&self.codes[first * d..(last + 1) * d], query, sums);
            return;
        }
        for (&item, sum) in items.iter().zip(sums) {
            products(&self.codes[item * d..(item + 1) * d], query, std::slice::from_mut(sum));
        }
    }

    /// The items of a block whose upper ends reach the best lower ends.
    fn part_of(&self, query: &Query, items: &[usize], sums: &[i32], itself: Option<usize>, mut best: Best) -> Best {
        let ends: Vec<(usize, f32, f32)> = items
            .iter()
            .zip(sums)
            .filter(|(item, _)| Some(**item) != itself)
            .map(|(&item, &sum)| {
                let [score, slack] = self.score(query, item, sum);
                (item, score - slack, score + slack)
            })
            .collect();
        best.add(ends.iter().map(|&(_, lower, _)| lower));
        // An end that is no number excludes nothing.
        best.items.extend(
            ends.iter()
                .filter(|(.., upper)| !(*upper < best.reached))
                .map(|&(item, _, upper)| (item, upper)),
        );
        best
    }

    /// An approximate score, and how far the score may lie from it.
    #[inline]
    fn score(&self, query: &Query, item: usize, sum: i32) -> [f32; 2] {
        let (error, length) = (self.errors[item], self.lengths[item]);
        let product = sum as f32 * (query.scale * self.scales[item]);
        let slack = error * query.per_error + length * query.per_length + f32::MIN_POSITIVE;
        match self.similarity {
            Similarity::Euclidean => {
                let reach = query.length + length;
                let score = 2.0 * product - length * length - query.length * query.length;
                [score, 2.0 * slack + query.per_square * reach * reach]
            }
            _ => [product, slack],
        }
    }
}

/// A query as codes, with what bounds the errors of its scores.
struct Query {
    /// p.
    codes: Vec<i16>,
    /// t.
    scale: f32,
    /// ‖q‖, rounded up.
    length: f32,
    /// What ‖e‖ and ‖x‖ are multiplied by, and (‖q‖ + ‖x‖)² for the Euclidean distance.
    per_error: f32,
    per_length: f32,
    per_square: f32,
}

impl Query {
    fn new(row: &[f32]) -> Self {
        let d = row.len() as f64;
        // A sum of products with ±127 stays below 2³¹.
        let most = (f64::from(i32::MAX) / (127.0 * d)).min(f64::from(i16::MAX)).floor() as f32;
        let scale = scale(row, most);
        let codes: Vec<i16> = row.iter().map(|&number| code(number, scale, most) as i16).collect();
        let length = distance(row, std::iter::repeat(0.0));
        let error = distance(row, codes.iter().map(|&code| f64::from(code) * f64::from(scale)));
        // A few roundings more: those of the approximate score, of the slack itself, and of the lengths.
        let gamma = (d + 2.0) * ROUNDOFF / (1.0 - (d + 2.0) * ROUNDOFF) + 32.0 * ROUNDOFF;
        Self {
            codes,
            scale,
            length: up(length),
            per_error: up(length + error + gamma * length),
            per_length: up(error + gamma * (length + error)),
            per_square: up(gamma),
        }
    }
}

/// The items that may be among the first.
struct Best {
    count: usize,
    /// The best lower ends, at most `count` after [`Best::add`].
    lowers: Vec<f32>,
    /// The least of the `count` best lower ends; −∞ as long as there are fewer.
    reached: f32,
    /// The items whose upper ends reach it, with these.
    items: Vec<(usize, f32)>,
}

impl Best {
    fn new(count: usize) -> Self {
        Self { count, lowers: Vec::new(), reached: f32::NEG_INFINITY, items: Vec::new() }
    }

    fn reached(&self) -> f32 {
        self.reached
    }

    /// Adds lower ends.
    fn add(&mut self, lowers: impl Iterator<Item = f32>) {
        let reached = self.reached;
        self.lowers.extend(lowers.filter(|&lower| lower > reached));
        if self.lowers.len() >= self.count {
            let place = self.count - 1;
            let (_, &mut least, _) = self.lowers.select_nth_unstable_by(place, |a, b| b.total_cmp(a));
            self.lowers.truncate(self.count);
            self.reached = self.reached.max(least);
        }
    }

    /// Joins what was found elsewhere.
    fn join(&mut self, other: Self) {
        self.add(other.lowers.into_iter());
        let reached = self.reached;
        self.items.retain(|(_, upper)| !(*upper < reached));
        self.items.extend(other.items.into_iter().filter(|(_, upper)| !(*upper < reached)));
    }

    fn into_items(self) -> Vec<usize> {
        self.items.into_iter().map(|(item, _)| item).collect()
    }
}

/// The scale with which the largest number becomes ±`most`.
fn scale(row: &[f32], most: f32) -> f32 {
    row.iter().fold(0.0f32, |largest, number| largest.max(number.abs())) / most
}

/// A number as a multiple of the scale; 0 where the scale is too small to divide by.
fn code(number: f32, scale: f32, most: f32) -> f32 {
    let code = (number / scale).round();
    if code.is_finite() { code.clamp(-most, most) } else { 0.0 }
}

/// ‖row − other‖.
fn distance(row: &[f32], other: impl Iterator<Item = f64>) -> f64 {
    row.iter().zip(other).map(|(&number, other)| (f64::from(number) - other).powi(2)).sum::<f64>().sqrt()
}

/// A little more than a number, in single precision.
fn up(number: f64) -> f32 {
    (number * (1.0 + 1e-6)) as f32 + f32::MIN_POSITIVE
}

/// The sums of products of a query with each row of codes.
#[with_simd]
fn products<S: Simd>(codes: &[i8], query: &[i16], sums: &mut [i32]) {
    // The compiler makes the vector instructions of the machine of this loop.
    let _ = S::lanes32();
    for (row, out) in codes.chunks_exact(query.len()).zip(sums) {
        let mut sum = 0;
        for (&code, &number) in row.iter().zip(query) {
            sum += i32::from(i16::from(code)) * i32::from(number);
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, uniform};

    fn embeddings(dimension: usize, values: Vec<f32>) -> Embeddings {
        Embeddings::new(dimension, values).unwrap()
    }

    /// Embeddings around some centres, so that many scores are close to each other.
    fn clusters(count: usize, dimension: usize, noise: f32, seed: u64) -> Embeddings {
        let centres = uniform(&mut stream(seed, "centres", &[]), 7 * dimension, -1.0, 1.0);
        let mut values = uniform(&mut stream(seed, "noise", &[]), count * dimension, -noise, noise);
        for (row, values) in values.chunks_mut(dimension).enumerate() {
            let centre = &centres[row * 31 % 7 * dimension..];
            values.iter_mut().zip(centre).for_each(|(value, centre)| *value += centre);
        }
        embeddings(dimension, values)
    }

    fn check(items: &Embeddings, queries: &Embeddings, similarity: Similarity, ask: &Ask, what: &str) -> Vec<usize> {
        let shortlist = Shortlist::new(items, similarity).unwrap().unwrap();
        let found = shortlist.nearest(items, queries, ask).unwrap();
        let expected = nearest(items, queries, similarity, ask).unwrap();
        assert!(found.hits == expected, "{what}: {similarity:?} {ask:?}");
        found.scored
    }

    const PRODUCTS: [Similarity; 3] = [Similarity::Cosine, Similarity::Dot, Similarity::Euclidean];

    #[test]
    fn the_items_and_scores_are_those_of_the_exact_search() {
        let some: Vec<usize> = (0..6000).filter(|item| item % 29 == 0 || item % 11 == 3).collect();
        let itself: Vec<Option<usize>> = (0..9).map(|query| (query % 2 == 0).then_some(query * 50)).collect();
        let classes: Vec<u32> = (0..6000).map(|item| item * 7 % 13).collect();
        for (dimension, noise) in [(1, 0.5), (3, 1.0), (32, 0.1), (130, 0.01)] {
            let (items, queries) = (clusters(6000, dimension, noise, 0), clusters(9, dimension, noise, 0));
            for similarity in PRODUCTS {
                for items_asked in [None, Some(&some[..]), Some(&[]), Some(&[4000])] {
                    for classes in [None, Some(&classes[..])] {
                        for count in [0, 1, 10, 7000] {
                            let ask = Ask { count, items: items_asked, classes, itself: &itself };
                            check(&items, &queries, similarity, &ask, "clusters");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ties_and_numbers_at_the_ends_of_their_range_lose_nothing() {
        let values = uniform(&mut stream(3, "values", &[]), 4000, -1.0, 1.0);
        let with = |change: fn(usize, f32) -> f32| -> Embeddings {
            embeddings(4, values.iter().enumerate().map(|(place, &value)| change(place, value)).collect())
        };
        for (what, items) in [
            ("equal", with(|place, _| (1 + place % 4) as f32)),
            ("few values", with(|_, value| value.signum())),
            ("one large number", with(|place, value| if place % 4 == 0 { 1e4 } else { value })),
            ("tiny", with(|_, value| value * 1e-18)),
            ("large", with(|_, value| value * 1e15)),
            ("of all sizes", with(|place, value| value * 10f32.powi((place / 4 % 30) as i32 - 15))),
        ] {
            let queries = embeddings(4, items.values()[..40].to_vec());
            for similarity in PRODUCTS {
                for count in [1, 10, 100] {
                    check(&items, &queries, similarity, &Ask::new(count), what);
                }
            }
        }
        // Rows of zeros have no cosine, but products.
        let zeros = embeddings(2, vec![0.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 1e-45]);
        for similarity in [Similarity::Dot, Similarity::Euclidean] {
            check(&zeros, &zeros, similarity, &Ask::new(2), "zeros");
        }
        assert!(Shortlist::new(&zeros, Similarity::Cosine).is_err());
    }

    #[test]
    fn few_items_are_scored() {
        let items = embeddings(64, uniform(&mut stream(1, "items", &[]), 20_000 * 64, -1.0, 1.0));
        let queries = embeddings(64, uniform(&mut stream(2, "queries", &[]), 5 * 64, -1.0, 1.0));
        for similarity in PRODUCTS {
            let scored = check(&items, &queries, similarity, &Ask::new(10), "uniform");
            assert!(scored.iter().all(|&scored| scored < 200), "{similarity:?}: {scored:?}");
        }
    }

    #[test]
    fn a_sum_of_codes_does_not_overflow() {
        let codes = vec![127; 4096];
        let query = Query::new(&[1.0; 4096]);
        let mut sums = [0];
        products(&codes, &query.codes, &mut sums);
        let expected: i64 = query.codes.iter().map(|&number| 127 * i64::from(number)).sum();
        assert_eq!(i64::from(sums[0]), expected);
    }

    #[test]
    fn similarities_without_products_have_no_codes() {
        let items = embeddings(2, vec![0.1, 0.2]);
        assert!(Shortlist::new(&items, Similarity::Hamming).unwrap().is_none());
    }
}
