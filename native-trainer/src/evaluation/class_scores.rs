//! What a bundle stores of classes and queries: how alike classes are, and how each query fared.

use std::collections::BTreeMap;

use akin_core::bundle::QueryColumn;
use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{Labelled, QueryScores};
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Labels, UNKNOWN};
use anyhow::Result;
use rayon::prelude::*;

/// The most classes of a level whose pairs are stored; the file then has 262 kB.
const MOST_CLASSES: usize = 256;

/// The mean score of every pair of classes at one level.
pub struct ClassScores {
    /// The level, 1 … L.
    pub level: usize,
    /// The C classes of the level with an item, in the order of the tree.
    pub classes: Vec<u32>,
    /// [C, C].
    pub scores: Vec<f32>,
}

/// The mean scores of class pairs at every level with at most 256 classes, over the pairs of two different items. A
/// class of one item has the score of that item to itself.
///
/// # Errors
///
/// Embeddings that the similarity is not defined for.
pub fn class_scores(
    embeddings: &Embeddings,
    labels: &Labels,
    similarity: Similarity,
) -> Result<Vec<ClassScores>> {
    let gallery = Gallery::new(embeddings, similarity)?;
    // Paths sort as the tree does: classes of one parent stand together.
    let mut paths: Vec<&[u32]> = (0..labels.len()).map(|item| labels.row(item)).collect();
    paths.sort_unstable();
    paths.dedup();
    (1..=labels.levels())
        .filter_map(|level| {
            let mut classes: Vec<u32> =
                paths.iter().map(|path| path[level - 1]).filter(|&class| class != UNKNOWN).collect();
            classes.dedup();
            (classes.len() <= MOST_CLASSES).then_some((level, classes))
        })
        .map(|(level, classes)| {
            let places: BTreeMap<u32, usize> =
                classes.iter().enumerate().map(|(place, &class)| (class, place)).collect();
            let place_of: Vec<Option<usize>> =
                labels.column(level).iter().map(|class| places.get(class).copied()).collect();
            let scores = mean_scores(&gallery, embeddings, &place_of, classes.len())?;
            Ok(ClassScores { level, classes, scores })
        })
        .collect()
}

/// [C, C], from the class of each item, 0 … C − 1, if it is known.
fn mean_scores(
    gallery: &Gallery,
    embeddings: &Embeddings,
    place_of: &[Option<usize>],
    count: usize,
) -> Result<Vec<f32>> {
    let mut sizes = vec![0usize; count];
    for &place in place_of.iter().flatten() {
        sizes[place] += 1;
    }
    // Per item, the sum of its scores to the items of each class but itself.
    let sums_of = |item: usize| -> akin_core::Result<Vec<f64>> {
        let mut sums = vec![0.0; count];
        let scores = gallery.scores(embeddings.row(item))?;
        for (other, (&score, place)) in scores.iter().zip(place_of).enumerate() {
            if let Some(place) = *place
                && (other != item || sizes[place] == 1)
            {
                sums[place] += f64::from(score);
            }
        }
        Ok(sums)
    };
    let mut totals = vec![0.0; count * count];
    // In blocks, so that the sums of all items are never in memory at once.
    let items: Vec<(usize, usize)> =
        place_of.iter().enumerate().filter_map(|(item, place)| Some((item, (*place)?))).collect();
    for block in items.chunks(256) {
        let rows: akin_core::Result<Vec<_>> = block.par_iter().map(|&(item, _)| sums_of(item)).collect();
        for (&(_, place), sums) in block.iter().zip(rows?) {
            let row = &mut totals[place * count..][..count];
            row.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    let pairs =
        |a: usize, b: usize| if a == b { sizes[a] * (sizes[a] - 1).max(1) } else { sizes[a] * sizes[b] };
    let mean = |place: usize| (totals[place] / pairs(place / count, place % count) as f64) as f32;
    Ok((0..count * count).map(mean).collect())
}

/// The shared level of each query with its first result. With `itself`, the queries are the gallery, and none ranks
/// itself; a gallery of one item gives 0.
///
/// # Errors
///
/// Embeddings that the similarity is not defined for.
pub fn first_shared_levels(
    queries: Labelled<'_>,
    gallery: Labelled<'_>,
    itself: bool,
    similarity: Similarity,
) -> Result<Vec<usize>> {
    let search = Gallery::new(gallery.embeddings, similarity)?;
    let first = |query: usize| -> akin_core::Result<usize> {
        let hits = search.nearest(queries.embeddings.row(query), 1, itself.then_some(query))?;
        let level = |item| queries.labels.shared(query, gallery.labels, item).least;
        Ok(hits.first().map_or(0, |hit| level(hit.item)))
    };
    let levels: akin_core::Result<_> = (0..queries.labels.len()).into_par_iter().map(first).collect();
    Ok(levels?)
}

/// The columns and the rows of a query table: every metric over all levels, AP of each level, and the shared level of
/// the first result. −1 stands for no score.
pub fn query_table(rows: &[QueryScores], first: &[usize]) -> (Vec<QueryColumn>, Vec<f32>) {
    let Some(top) = rows.first() else { return (Vec::new(), Vec::new()) };
    let overall = top.overall.iter().map(|(metric, _)| (metric, 0));
    let per_level = (1..).zip(&top.levels).flat_map(|(level, scores)| {
        scores.iter().filter(|(metric, _)| metric.to_string() == "ap").map(move |(metric, _)| (metric, level))
    });
    let metrics: Vec<_> = overall.chain(per_level).collect();
    let mut columns: Vec<QueryColumn> =
        metrics.iter().map(|&(metric, level)| QueryColumn { metric: metric.to_string(), level }).collect();
    columns.push(QueryColumn { metric: "first_shared_level".into(), level: 0 });
    let mut scores = Vec::with_capacity(rows.len() * columns.len());
    for (row, &first) in rows.iter().zip(first) {
        scores.extend(
            metrics.iter().map(|&(metric, level)| row.at(level).get(metric).map_or(-1.0, |x| x as f32)),
        );
        scores.push(first as f32);
    }
    (columns, scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_scores_are_means_over_pairs_of_different_items() {
        let embeddings = Embeddings::new(2, vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8, -1.0, 0.0]).unwrap();
        let labels = Labels::new(2, vec![0, 1, 1, 0, 0, 1, 0, 2]).unwrap();
        let scores = class_scores(&embeddings, &labels, Similarity::Cosine).unwrap();
        let coarse = &scores[0];
        assert_eq!((coarse.level, &coarse.classes), (1, &vec![0, 1]));
        // Class 0: items 0, 2 and 3 with the cosines 0.6, −1 and −0.6; class 1: item 1 alone.
        let expected = [-1.0 / 3.0, 0.8 / 3.0, 0.8 / 3.0, 1.0];
        coarse.scores.iter().zip(expected).for_each(|(a, b)| assert!((a - b as f32).abs() < 1e-6, "{a} {b}"));
        assert_eq!(scores[1].classes, [1, 2, 0]);
        assert!((scores[1].scores[0] - 0.6).abs() < 1e-6);
    }

    #[test]
    fn no_query_ranks_itself() {
        let embeddings = Embeddings::new(1, vec![1.0, 1.1, 5.0]).unwrap();
        let labels = Labels::new(2, vec![0, 0, 0, 1, 1, 2]).unwrap();
        let set = Labelled { embeddings: &embeddings, labels: &labels };
        assert_eq!(first_shared_levels(set, set, true, Similarity::Euclidean).unwrap(), [1, 1, 0]);
        assert_eq!(first_shared_levels(set, set, false, Similarity::Euclidean).unwrap(), [2, 2, 2]);
    }
}
