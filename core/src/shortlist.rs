//! The nearest items of a query, found with codes of 8 bits: the same items and scores as [`nearest`] finds, from a fraction
//! of the bytes.
//!
//! An embedding x is x = s·c + e, with whole numbers c from −127 to 127, the scale s = max |x| / 127 and an error e. So
//!
//! q·x = s·(q·c) + q·e, and |q·x − s·(q·c)| ≤ ‖q‖ ‖e‖
//!
//! by the inequality of Cauchy and Schwarz. With the rounding errors of both sums, each at most γ = d·u / (1 − d·u) times the
//! lengths of its two factors in single precision (u = 2⁻²⁴), this gives an interval that holds the score that [`nearest`]
//! computes. The k-th best lower end is a score that k items reach; an item whose upper end lies below it is none of the first
//! k. All others are read and scored.
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

use crate::Result;
use crate::embeddings::{Embeddings, Rows};
use crate::nearest::{Ask, check_dimension, nearest};
use crate::panels::{PANEL, Panels, Product, Queries, WHOLE_TILES};
use crate::search::Hit;
use crate::similarity::{Points, Similarity, measure};
use crate::threads::in_order;

/// The items whose codes meet all queries before the next ones do, a multiple of [`PANEL`].
const BLOCK: usize = 2048;
/// The panels that these are in.
const PANELS: usize = BLOCK / PANEL;
/// The blocks between two looks at the best lower ends.
const BLOCKS: usize = 64;
/// The queries that meet a block together.
const QUERIES: usize = 3 * WHOLE_TILES;
/// The unit roundoff of single precision, 2⁻²⁴.
const ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Shortlist {
    similarity: Similarity,
    dimension: usize,
    /// c, [N, d].
    codes: Panels<i8>,
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
        let empty = Self {
            similarity,
            dimension: rows.dimension(),
            codes: Panels::new(rows.dimension(), &[]),
            scales: Vec::new(),
            errors: Vec::new(),
            lengths: Vec::new(),
        };
        Ok(Some(empty.with_rest(rows)?))
    }

    /// The codes of more items, of which the first are those of these codes.
    ///
    /// # Errors
    ///
    /// As [`Shortlist::new`].
    pub fn extended(&self, rows: &dyn Rows) -> Result<Self> {
        let count = self.len() / BLOCK * BLOCK;
        let first = Self {
            similarity: self.similarity,
            dimension: self.dimension,
            codes: self.codes.first(count),
            scales: self.scales[..count].to_vec(),
            errors: self.errors[..count].to_vec(),
            lengths: self.lengths[..count].to_vec(),
        };
        first.with_rest(rows)
    }

    /// With the items behind these, whose number is a multiple of [`PANEL`].
    fn with_rest(mut self, rows: &dyn Rows) -> Result<Self> {
        let firsts: Vec<usize> = (self.len()..rows.len()).step_by(BLOCK).collect();
        for firsts in firsts.chunks(BLOCKS) {
            for part in in_order(firsts.len(), |number| {
                let first = firsts[number];
                Self::part(rows, self.similarity, first, rows.len().min(first + BLOCK) - first)
            }) {
                let part = part?;
                self.codes.extend(part.codes);
                self.scales.extend(part.scales);
                self.errors.extend(part.errors);
                self.lengths.extend(part.lengths);
            }
        }
        Ok(self)
    }

    fn part(rows: &dyn Rows, similarity: Similarity, first: usize, count: usize) -> Result<Self> {
        let dimension = rows.dimension();
        let mut numbers = vec![0.0; count * dimension];
        rows.read(first, &mut numbers)?;
        let measures = measure(similarity, (dimension, &numbers), first, "gallery")?;
        let points = Points::new(similarity, (dimension, numbers), measures);
        let mut codes: Vec<i8> = Vec::with_capacity(count * dimension);
        let (mut scales, mut errors, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for row in points.rows().chunks_exact(dimension) {
            let start = codes.len();
            let scale = row.iter().fold(0.0f32, |largest, number| largest.max(number.abs())) / 127.0;
            codes.extend(row.iter().map(|&number| code(number, scale)));
            let coded = codes[start..].iter().map(|&code| f64::from(code) * f64::from(scale));
            errors.push(up(distance(row, coded)));
            lengths.push(up(distance(row, std::iter::repeat(0.0))));
            scales.push(scale);
        }
        Ok(Self { similarity, dimension, codes: Panels::new(dimension, &codes), scales, errors, lengths })
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
        let mut found = Vec::with_capacity(points.len());
        for (number, queries) in points.rows().chunks(QUERIES * self.dimension).enumerate() {
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

    /// For each of the queries [Q, d] the items that may be among the first, ascending.
    fn candidates(&self, rows: &[f32], first_query: usize, ask: &Ask) -> Vec<Vec<usize>> {
        let grouped = Queries::new(self.dimension, rows);
        let queries: Vec<Query> = rows.chunks_exact(self.dimension).map(Query::new).collect();
        let blocks = blocks(self.len(), ask.items);
        let mut best: Vec<Best> = queries.iter().map(|_| Best::new(ask.count)).collect();
        for blocks in blocks.chunks(BLOCKS) {
            let reached: Vec<f32> = best.iter().map(|best| best.reached).collect();
            let work = |number: usize| {
                let panels = &blocks[number];
                let stride = panels.len() * PANEL;
                let mut sums = vec![0.0; queries.len() * stride];
                let mut column = 0;
                for run in panels.chunk_by(|a, b| a + 1 == *b) {
                    let some = run[0]..run[0] + run.len();
                    self.codes.add_up_some(some, &grouped, &mut sums[column..], stride, Product);
                    column += run.len() * PANEL;
                }
                let taking_part = panels.iter().map(|&panel| self.taking_part(panel, ask.items));
                let taking_part: Vec<u32> = taking_part.collect();
                let each = |(number, (query, sums)): (usize, (&Query, &[f32]))| {
                    let itself = ask.itself.get(first_query + number).copied().flatten();
                    let mut best = Best { reached: reached[number], ..Best::new(ask.count) };
                    for ((&panel, &lanes), sums) in panels.iter().zip(&taking_part).zip(sums.chunks(PANEL)) {
                        self.meet(query, panel, lanes, itself, sums, &mut best);
                    }
                    best.prune();
                    best
                };
                queries.iter().zip(sums.chunks_exact(stride)).enumerate().map(each).collect::<Vec<_>>()
            };
            for part in in_order(blocks.len(), work) {
                best.iter_mut().zip(part).for_each(|(best, part)| best.join(part));
            }
        }
        best.into_iter().map(Best::into_items).collect()
    }

    /// The items of a panel that take part, a bit for each.
    fn taking_part(&self, panel: usize, items: Option<&[usize]>) -> u32 {
        let first = panel * PANEL;
        let bits = |items: &mut dyn Iterator<Item = usize>| items.fold(0, |bits, lane| bits | 1 << lane);
        match items {
            None => bits(&mut (0..PANEL.min(self.len() - first))),
            Some(items) => {
                let here = items[items.partition_point(|&item| item < first)..].iter();
                bits(&mut here.map(|item| item - first).take_while(|&lane| lane < PANEL))
            }
        }
    }

    /// Offers the items of a panel, of whose codes these are the sums.
    fn meet(
        &self,
        query: &Query,
        panel: usize,
        lanes: u32,
        itself: Option<usize>,
        sums: &[f32],
        best: &mut Best,
    ) {
        let first = panel * PANEL;
        let items = first..self.len().min(first + PANEL);
        let (scales, errors, lengths) =
            (&self.scales[items.clone()], &self.errors[items.clone()], &self.lengths[items]);
        let (mut scores, mut slacks) = ([0.0; PANEL], [0.0; PANEL]);
        let numbers = sums.iter().zip(scales).zip(errors.iter().zip(lengths));
        for ((score, slack), ((sum, scale), (error, length))) in
            scores.iter_mut().zip(&mut slacks).zip(numbers)
        {
            *score = sum * scale;
            *slack = error * query.per_error + length * query.per_length + f32::MIN_POSITIVE;
        }
        if self.similarity == Similarity::Euclidean {
            for ((score, slack), length) in scores.iter_mut().zip(&mut slacks).zip(lengths) {
                let reach = query.length + length;
                *score = 2.0 * *score - length * length - query.length * query.length;
                *slack = 2.0 * *slack + query.gamma * reach * reach;
            }
        }
        let reached = best.reached;
        let below = scores.iter().zip(&slacks).map(|(score, slack)| u32::from(score + slack < reached));
        // Nearly always.
        if below.sum::<u32>() == PANEL as u32 {
            return;
        }
        for (lane, (score, slack)) in scores.iter().zip(slacks).enumerate() {
            if lanes & 1 << lane != 0 && Some(first + lane) != itself {
                best.offer(first + lane, score - slack, score + slack);
            }
        }
    }
}

/// What bounds the errors of the scores of a query.
struct Query {
    /// ‖q‖, rounded up.
    length: f32,
    /// γ, with a few roundings more.
    gamma: f32,
    /// What ‖e‖ and ‖x‖ are multiplied by.
    per_error: f32,
    per_length: f32,
}

impl Query {
    fn new(row: &[f32]) -> Self {
        let d = row.len() as f64;
        let length = distance(row, std::iter::repeat(0.0));
        // The roundings of the approximate score, of the slack and of the lengths are few beside those of the sums.
        let gamma = 2.0 * (d + 16.0) * ROUNDOFF / (1.0 - (d + 16.0) * ROUNDOFF);
        Self {
            length: up(length),
            gamma: up(gamma),
            per_error: up(length * (1.0 + gamma)),
            per_length: up(length * gamma),
        }
    }
}

/// The panels that are met together: all, or those that have one of the items.
fn blocks(count: usize, items: Option<&[usize]>) -> Vec<Vec<usize>> {
    let panels: Vec<usize> = match items {
        None => (0..count.div_ceil(PANEL)).collect(),
        Some(items) => {
            let mut panels: Vec<usize> = items.iter().map(|item| item / PANEL).collect();
            panels.dedup();
            panels
        }
    };
    panels.chunks(PANELS).map(<[usize]>::to_vec).collect()
}

/// The items that may be among the first.
struct Best {
    count: usize,
    /// The best lower ends: at most `count` after [`Best::prune`].
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

    /// Adds an item with the ends of its interval. An end that is no number excludes nothing.
    fn offer(&mut self, item: usize, lower: f32, upper: f32) {
        if upper < self.reached {
            return;
        }
        self.items.push((item, upper));
        if lower > self.reached {
            self.lowers.push(lower);
            if self.lowers.len() >= (2 * self.count).max(64) {
                self.prune();
            }
        }
    }

    /// Keeps the best lower ends, and the items that reach them.
    fn prune(&mut self) {
        if self.lowers.len() >= self.count {
            let place = self.count - 1;
            let (_, &mut least, _) = self.lowers.select_nth_unstable_by(place, |a, b| b.total_cmp(a));
            self.lowers.truncate(self.count);
            self.reached = self.reached.max(least);
        }
        let reached = self.reached;
        self.items.retain(|&(_, upper)| upper.is_nan() || upper >= reached);
    }

    /// Joins what was found behind.
    fn join(&mut self, other: Self) {
        self.lowers.extend(other.lowers.into_iter().filter(|&lower| lower > self.reached));
        self.items.extend(other.items);
        self.prune();
    }

    fn into_items(self) -> Vec<usize> {
        self.items.into_iter().map(|(item, _)| item).collect()
    }
}

/// A number as a multiple of the scale; 0 where the scale is too small to divide by.
fn code(number: f32, scale: f32) -> i8 {
    let code = (number / scale).round();
    if code.is_finite() { code.clamp(-127.0, 127.0) as i8 } else { 0 }
}

/// ‖row − other‖.
fn distance(row: &[f32], other: impl Iterator<Item = f64>) -> f64 {
    row.iter().zip(other).map(|(&number, other)| (f64::from(number) - other).powi(2)).sum::<f64>().sqrt()
}

/// A little more than a number, in single precision.
fn up(number: f64) -> f32 {
    (number * (1.0 + 1e-6)) as f32 + f32::MIN_POSITIVE
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

    fn check(
        items: &Embeddings,
        queries: &Embeddings,
        similarity: Similarity,
        ask: &Ask,
        what: &str,
    ) -> Vec<usize> {
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
    fn codes_are_extended_by_more_items() {
        let (all, queries) = (clusters(5000, 9, 0.2, 0), clusters(4, 9, 0.2, 1));
        let whole = Shortlist::new(&all, Similarity::Cosine).unwrap().unwrap();
        let expected = whole.nearest(&all, &queries, &Ask::new(20)).unwrap();
        for first in [0, 31, 2048, 2100, 4999, 5000] {
            let some = embeddings(9, all.values()[..first * 9].to_vec());
            let extended =
                Shortlist::new(&some, Similarity::Cosine).unwrap().unwrap().extended(&all).unwrap();
            assert_eq!(extended.len(), 5000);
            assert_eq!(extended.nearest(&all, &queries, &Ask::new(20)).unwrap(), expected, "{first}");
        }
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
    fn similarities_without_products_have_no_codes() {
        let items = embeddings(2, vec![0.1, 0.2]);
        assert!(Shortlist::new(&items, Similarity::Hamming).unwrap().is_none());
    }
}
