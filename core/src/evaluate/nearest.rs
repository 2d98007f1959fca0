//! Exact search for many queries at once.

use super::rankings::PointSet;
use super::{Execution, Step, check_dimensions};
use crate::Result;
use crate::embeddings::Rows;
use crate::panels::WHOLE_TILES;
use crate::ranking::sort_key;
use crate::search::{Hit, top_k};
use crate::similarity::Similarity;
use crate::threads::{Workspaces, each_in_order};

/// The number of queries that a thread scores at once with a block of the gallery.
const QUERIES: usize = 3 * WHOLE_TILES;

/// The `k` nearest items of the gallery for each query, or all items if there are fewer; best first, ties in gallery order.
/// Without a gallery each query finds the other queries, never itself.
///
/// The results are those of [`Gallery::nearest`](crate::search::Gallery::nearest). The gallery is read once, in blocks
/// that take half of [`Execution::gallery_memory`].
///
/// # Errors
///
/// - [`Kind::Embeddings`](crate::Kind::Embeddings) for embeddings of different dimensions, that cannot be read, that are
///   not finite, or that the similarity is not defined for; the error names the row;
/// - [`Kind::Config`](crate::Kind::Config) for 2³² items;
/// - [`Kind::Stopped`](crate::Kind::Stopped) when the caller has stopped it.
pub fn nearest(
    queries: &dyn Rows,
    gallery: Option<&dyn Rows>,
    k: usize,
    similarity: Similarity,
    execution: &Execution<'_>,
) -> Result<Vec<Vec<Hit>>> {
    let ranked = gallery.unwrap_or(queries);
    execution.check(queries.len().max(ranked.len()))?;
    check_dimensions(queries.dimension(), ranked.dimension())?;
    let asked = PointSet::new(similarity, queries, "query", execution)?;
    let apart =
        gallery.map(|gallery| PointSet::new(similarity, gallery, "gallery", execution)).transpose()?;
    let items = apart.as_ref().unwrap_or(&asked);
    let mut found: Vec<Vec<Hit>> = vec![Vec::new(); queries.len()];
    let workspaces = Workspaces::<Vec<f32>>::default();
    let length = execution.block(ranked.dimension());
    for first in (0..ranked.len()).step_by(length) {
        let end = ranked.len().min(first + length);
        let block = items.prepare((first as u32..end as u32).collect())?;
        let score = |(start, found): (usize, &mut [Vec<Hit>])| -> Result<()> {
            let points = asked.points(&(start as u32..(start + found.len()) as u32).collect::<Vec<_>>())?;
            workspaces.with(|memory| {
                let scores = block.scores(&points, 0..found.len(), memory, execution)?;
                let rows = scores.chunks_exact(end - first);
                for ((query, found), scores) in (start..).zip(found.iter_mut()).zip(rows) {
                    let itself = apart.is_none().then(|| query.checked_sub(first)).flatten();
                    let hits = top_k(scores, k, itself).into_iter();
                    found.extend(hits.map(|Hit { item, score }| Hit { item: first + item, score }));
                    found.sort_unstable_by_key(|hit| sort_key(hit.score, hit.item));
                    found.truncate(k);
                }
                if end == ranked.len() {
                    (execution.progress)(Step::Ranked(found.len()));
                }
                Ok(())
            })
        };
        let pieces = (0..).step_by(QUERIES).zip(found.chunks_mut(QUERIES)).collect();
        each_in_order(pieces, score).into_iter().collect::<Result<()>>()?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::embeddings::Embeddings;
    use crate::search::Gallery;

    /// Embeddings with equal numbers, so that there are ties.
    fn embeddings(count: usize, step: usize) -> Embeddings {
        let value = |i: usize| ((i * step + 3) % 7) as f32 - 2.5;
        Embeddings::new(3, (0..count * 3).map(value).collect()).unwrap()
    }

    #[test]
    fn many_queries_find_what_each_finds_alone() {
        let (queries, gallery) = (embeddings(130, 5), embeddings(90, 4));
        for similarity in [Similarity::Cosine, Similarity::Euclidean, Similarity::Hamming] {
            for gallery_memory in [0, 7 * 24, 1 << 20] {
                let execution = Execution { gallery_memory, ..Execution::default() };
                let alone = Gallery::new(&gallery, similarity).unwrap();
                let found = nearest(&queries, Some(&gallery), 9, similarity, &execution).unwrap();
                for (query, found) in found.iter().enumerate() {
                    assert_eq!(found, &alone.nearest(queries.row(query), 9, None).unwrap());
                }
                let alone = Gallery::new(&queries, similarity).unwrap();
                let found = nearest(&queries, None, 200, similarity, &execution).unwrap();
                for (query, found) in found.iter().enumerate() {
                    assert_eq!(found, &alone.nearest(queries.row(query), 200, Some(query)).unwrap());
                }
            }
        }
    }

    #[test]
    fn a_search_that_is_stopped_ends() {
        let items = embeddings(130, 5);
        let execution = Execution { is_stopped: &|| true, ..Execution::default() };
        let error = nearest(&items, None, 9, Similarity::Cosine, &execution).unwrap_err();
        assert_eq!(error.kind(), Kind::Stopped);
    }
}
