//! The nearest items of many queries, in one pass over embeddings that may be larger than memory.
//!
//! ```
//! use akin_core::embeddings::Embeddings;
//! use akin_core::nearest::{Ask, nearest};
//! use akin_core::similarity::Similarity;
//!
//! let items = Embeddings::new(2, vec![1.0, 0.0, 0.8, 0.6, 0.6, 0.8, 0.0, 1.0])?;
//! let queries = Embeddings::new(2, vec![2.0, 0.0])?;
//! let found = |ask| nearest(&items, &queries, Similarity::Cosine, &ask).map(|hits| {
//!     hits[0].iter().map(|hit| hit.item).collect::<Vec<_>>()
//! });
//!
//! assert_eq!(found(Ask::new(2))?, [0, 1]);
//! assert_eq!(found(Ask { items: Some(&[1, 2, 3]), ..Ask::new(2) })?, [1, 2]);
//! // The best item of each class.
//! assert_eq!(found(Ask { classes: Some(&[0, 0, 1, 1]), ..Ask::new(2) })?, [0, 2]);
//! # akin_core::Result::Ok(())
//! ```

use std::collections::HashSet;

use crate::embeddings::{Embeddings, Rows};
use crate::ranking::sort_key;
use crate::search::Hit;
use crate::similarity::{Items, Points, Similarity, measure};
use crate::threads::in_order;
use crate::{Error, Kind, Result};

/// The rows that are read and scored together.
const BLOCK: usize = 2048;
/// The most rows between two items that are read along instead of being skipped.
const GAP: usize = 16;
/// The most queries of a pass, and the most blocks whose results are held before they are merged.
const QUERIES: usize = 1024;
const BLOCKS: usize = 64;

/// What is asked of each query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The number of items to find.
    pub count: usize,
    /// The items that take part, ascending; all if there are none.
    pub items: Option<&'a [usize]>,
    /// The class of each item of the gallery, if only the best item of each class is found.
    pub classes: Option<&'a [u32]>,
    /// For each query its own place in the gallery, which it does not find; none where no query is an item.
    pub itself: &'a [Option<usize>],
}

impl Ask<'_> {
    /// The `count` nearest of all items.
    pub fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }
}

/// The nearest items of each query; best first, ties in gallery order. The scores are those of the evaluation, to the last
/// bit. Memory is O(queries · count + threads · block · (queries + d)).
///
/// # Errors
///
/// [`Kind::Embeddings`] for queries of another dimension than the items, or embeddings that the similarity is not defined
/// for, or that cannot be read.
pub fn nearest(
    rows: &dyn Rows,
    queries: &Embeddings,
    similarity: Similarity,
    ask: &Ask,
) -> Result<Vec<Vec<Hit>>> {
    let dimension = rows.dimension();
    check_dimension(queries, dimension)?;
    let queries = Points::checked(similarity, queries, "query")?;
    let blocks = blocks(rows.len(), ask.items);
    let mut found = vec![Vec::new(); queries.len()];
    for first in (0..queries.len()).step_by(QUERIES) {
        let range = first..queries.len().min(first + QUERIES);
        let batch = queries.batch(range.clone());
        for blocks in blocks.chunks(BLOCKS) {
            let work = |number: usize| -> Result<Vec<Vec<Hit>>> {
                let (items, numbers) = read(rows, &blocks[number], ask.items)?;
                let mut measures = Vec::new();
                let mut rest = &numbers[..];
                for run in items.chunk_by(|a, b| a + 1 == *b) {
                    let (here, behind) = rest.split_at(run.len() * dimension);
                    measures.extend(measure(similarity, (dimension, here), run[0], "gallery")?);
                    rest = behind;
                }
                let prepared = Items::from(Points::new(similarity, (dimension, numbers), measures));
                let scores = prepared.scores(&batch);
                let hits = |(query, scores): (usize, &[f32])| {
                    let itself = ask.itself.get(query).copied().flatten();
                    let hits = items.iter().zip(scores).map(|(&item, &score)| Hit { item, score });
                    best(hits.filter(|hit| Some(hit.item) != itself).collect(), ask)
                };
                Ok(range.clone().zip(scores.chunks_exact(items.len())).map(hits).collect())
            };
            for block in in_order(blocks.len(), work) {
                for (found, hits) in found[range.clone()].iter_mut().zip(block?) {
                    found.extend(hits);
                }
            }
            for found in &mut found[range.clone()] {
                *found = best(std::mem::take(found), ask);
            }
        }
    }
    Ok(found)
}

/// Refuses queries of another dimension than the items.
pub(crate) fn check_dimension(queries: &Embeddings, dimension: usize) -> Result<()> {
    if queries.dimension() == dimension {
        return Ok(());
    }
    Err(Error::new(
        Kind::Embeddings,
        format!(
            "the query has {} numbers, but the gallery's embeddings have {dimension}",
            queries.dimension()
        ),
        "embed the query with the encoder of the gallery",
    ))
}

/// The best hits, in their order.
fn best(mut hits: Vec<Hit>, ask: &Ask) -> Vec<Hit> {
    let key = |hit: &Hit| sort_key(hit.score, hit.item);
    match ask.classes {
        None => {
            if ask.count < hits.len() {
                hits.select_nth_unstable_by_key(ask.count, key);
                hits.truncate(ask.count);
            }
            hits.sort_unstable_by_key(key);
        }
        Some(classes) => {
            hits.sort_unstable_by_key(key);
            let mut seen = HashSet::new();
            hits.retain(|hit| seen.len() < ask.count && seen.insert(classes[hit.item]));
        }
    }
    hits
}

/// Rows that are read together: from the first to before the second.
type Run = [usize; 2];

/// The runs of each block.
fn blocks(len: usize, items: Option<&[usize]>) -> Vec<Vec<Run>> {
    let Some(items) = items else {
        return (0..len).step_by(BLOCK).map(|first| vec![[first, len.min(first + BLOCK)]]).collect();
    };
    let mut blocks: Vec<Vec<Run>> = Vec::new();
    let mut size = BLOCK;
    for &item in items {
        if let Some([_, end]) = blocks.last_mut().and_then(|block| block.last_mut())
            && item - *end <= GAP
            && size + item + 1 - *end <= BLOCK
        {
            size += item + 1 - *end;
            *end = item + 1;
            continue;
        }
        if size >= BLOCK {
            blocks.push(Vec::new());
            size = 0;
        }
        size += 1;
        if let Some(block) = blocks.last_mut() {
            block.push([item, item + 1]);
        }
    }
    blocks
}

/// The items of a block that take part, and their embeddings.
fn read(rows: &dyn Rows, runs: &[Run], items: Option<&[usize]>) -> Result<(Vec<usize>, Vec<f32>)> {
    let dimension = rows.dimension();
    let (mut taken, mut numbers) = (Vec::new(), Vec::new());
    for &[first, end] in runs {
        let start = numbers.len();
        numbers.resize(start + (end - first) * dimension, 0.0);
        rows.read(first, &mut numbers[start..])?;
        let Some(items) = items else {
            taken.extend(first..end);
            continue;
        };
        let mut kept = start;
        let here = &items[items.partition_point(|&item| item < first)..];
        for &item in here.iter().take_while(|&&item| item < end) {
            let from = start + (item - first) * dimension;
            numbers.copy_within(from..from + dimension, kept);
            kept += dimension;
            taken.push(item);
        }
        numbers.truncate(kept);
    }
    Ok((taken, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Gallery;

    fn embeddings(count: usize, dimension: usize, seed: usize) -> Embeddings {
        let value = |i: usize| (((i + seed) * 37 + 11) % 1009) as f32 / 500.0 - 1.0;
        Embeddings::new(dimension, (0..count * dimension).map(value).collect()).unwrap()
    }

    /// What the search of one query over embeddings in memory finds.
    fn one_by_one(
        items: &Embeddings,
        queries: &Embeddings,
        similarity: Similarity,
        ask: &Ask,
    ) -> Vec<Vec<Hit>> {
        let gallery = Gallery::new(items, similarity).unwrap();
        let one = |query: usize| {
            let itself = ask.itself.get(query).copied().flatten();
            let mut hits = gallery.nearest(queries.row(query), items.len(), itself).unwrap();
            hits.retain(|hit| ask.items.is_none_or(|items| items.binary_search(&hit.item).is_ok()));
            let mut seen = HashSet::new();
            hits.retain(|hit| ask.classes.is_none_or(|classes| seen.insert(classes[hit.item])));
            hits.truncate(ask.count);
            hits
        };
        (0..queries.len()).map(one).collect()
    }

    #[test]
    fn many_queries_find_what_each_finds_alone() {
        let (items, queries) = (embeddings(2 * BLOCK + 77, 5, 0), embeddings(11, 5, 3));
        let classes: Vec<u32> = (0..items.len() as u32).map(|item| item * 7 % 13).collect();
        let some: Vec<usize> = (0..items.len()).filter(|item| item % 29 == 0 || item % 11 == 3).collect();
        let itself: Vec<Option<usize>> =
            (0..11).map(|query| (query % 2 == 0).then_some(query * 50)).collect();
        for similarity in [Similarity::Cosine, Similarity::Euclidean, Similarity::Hamming] {
            for items_asked in [None, Some(&some[..]), Some(&[]), Some(&[4000])] {
                for classes in [None, Some(&classes[..])] {
                    for count in [0, 1, 9, 5000] {
                        let ask = Ask { count, items: items_asked, classes, itself: &itself };
                        let found = nearest(&items, &queries, similarity, &ask).unwrap();
                        assert!(
                            found == one_by_one(&items, &queries, similarity, &ask),
                            "{similarity:?} {ask:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn distant_items_are_read_one_by_one_and_close_ones_together() {
        assert_eq!(blocks(3, None), [[[0, 3]]]);
        assert_eq!(blocks(9999, Some(&[2, 3, 10, 500, 9000])), [[[2, 11], [500, 501], [9000, 9001]]]);
        let all: Vec<usize> = (0..BLOCK + 2).collect();
        assert_eq!(blocks(9999, Some(&all)), [[[0, BLOCK]], [[BLOCK, BLOCK + 2]]]);
    }

    #[test]
    fn a_query_of_another_dimension_and_an_item_without_a_cosine_are_refused() {
        let items = Embeddings::new(2, vec![1.0, 0.0, 0.0, 0.0]).unwrap();
        let asked = |query: &[f32]| {
            let query = Embeddings::new(query.len(), query.to_vec()).unwrap();
            nearest(&items, &query, Similarity::Cosine, &Ask::new(1)).unwrap_err().to_string()
        };
        assert!(asked(&[1.0]).contains("the query has 1 numbers"));
        assert!(asked(&[0.0, 0.0]).contains("query embedding in row 0 is all zero"));
        assert!(asked(&[0.0, 1.0]).contains("gallery embedding in row 1 is all zero"));

        let items = Embeddings::new(1, vec![1.0, 1.0, 1.0, 0.0]).unwrap();
        let ask = Ask { items: Some(&[0, 3]), ..Ask::new(1) };
        let error = nearest(&items, &Embeddings::new(1, vec![1.0]).unwrap(), Similarity::Cosine, &ask);
        assert!(error.unwrap_err().message().contains("in row 3"));
    }
}
