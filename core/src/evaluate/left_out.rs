//! Rankings that leave some of the gallery out: junk, which a data set names for some queries, and the items of a query's
//! own group.

use std::collections::{BTreeMap, HashSet};

use super::{
    Evaluation, EvaluationConfig, Execution, Labelled, QueryScores, Report, Step, check_dimensions,
    check_shapes, mean_hyperbolicity,
};
use crate::embeddings::{Embeddings, Rows};
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Queries and a gallery with junk.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// The embeddings of the queries, [Q, d].
    pub queries: &'a dyn Rows,
    /// Their labels, [Q, L].
    pub query_labels: &'a Labels,
    /// The embeddings of the gallery, [N, d].
    pub gallery: &'a dyn Rows,
    /// Its labels, [N, L].
    pub gallery_labels: &'a Labels,
    /// For each gallery image, the finest classes whose queries do not rank it.
    pub junk: &'a [&'a [u32]],
}

/// Evaluates queries that rank the gallery without their junk. The queries of a finest class have the same junk and are
/// evaluated together.
///
/// A query without positives has no row in the report. The report counts the whole gallery as ranked.
///
/// # Errors
///
/// As [`Evaluation::report`], and sets in which no query has a positive.
///
/// # Panics
///
/// When junk is not given for each item.
pub fn evaluate_without_junk(
    levels: &[String],
    sets: &Sets<'_>,
    config: &EvaluationConfig,
    execution: &Execution<'_>,
) -> Result<Report> {
    let classes = sets.query_labels.column(levels.len());
    evaluate_parts(levels, sets, &classes, |class, item| sets.junk[item].contains(class), config, execution)
}

/// As [`evaluate_without_junk`], but a query leaves out the items of its own group: `groups` are those of the queries and
/// of the gallery. The junk of the sets is not looked at.
///
/// # Errors
///
/// As [`evaluate_without_junk`].
///
/// # Panics
///
/// When a query or an item has no group.
pub fn evaluate_without_groups<G: Ord>(
    levels: &[String],
    sets: &Sets<'_>,
    [of_queries, of_gallery]: [&[G]; 2],
    config: &EvaluationConfig,
    execution: &Execution<'_>,
) -> Result<Report> {
    evaluate_parts(levels, sets, of_queries, |group, item| of_gallery[item] == *group, config, execution)
}

/// Evaluates the queries with the same key together, on the gallery without the items that `is_out` for it.
fn evaluate_parts<K: Ord>(
    levels: &[String],
    sets: &Sets<'_>,
    keys: &[K],
    is_out: impl Fn(&K, usize) -> bool,
    config: &EvaluationConfig,
    execution: &Execution<'_>,
) -> Result<Report> {
    let queries = Labelled { embeddings: sets.queries, labels: sets.query_labels };
    let gallery = Labelled { embeddings: sets.gallery, labels: sets.gallery_labels };
    check_shapes(levels.len(), "query", queries)?;
    check_shapes(levels.len(), "gallery", gallery)?;
    check_dimensions(sets.queries.dimension(), sets.gallery.dimension())?;
    let checked = config.checked_for(sets.gallery_labels)?;
    let quiet = execution.quiet();
    // It is a function of the whole gallery.
    let without_hyperbolicity = EvaluationConfig { hyperbolicity: None, ..config.clone() };
    let mut parts: BTreeMap<&K, Vec<usize>> = BTreeMap::new();
    for (query, key) in keys.iter().enumerate() {
        parts.entry(key).or_default().push(query);
    }
    let mut rows: Vec<QueryScores> = Vec::new();
    for (key, queries) in parts {
        let gallery: Vec<usize> = (0..sets.gallery_labels.len()).filter(|&item| !is_out(key, item)).collect();
        (execution.progress)(Step::Ranked(queries.len()));
        let coarse: HashSet<u32> = gallery.iter().map(|&item| sets.gallery_labels.row(item)[0]).collect();
        let has_positive = |query: &usize| match sets.query_labels.kinship() {
            None => coarse.contains(&sets.query_labels.row(*query)[0]),
            Some(_) => {
                let shared = |&item: &usize| sets.query_labels.shared(*query, sets.gallery_labels, item);
                gallery.iter().any(|item| shared(item).most > 0)
            }
        };
        let queries: Vec<usize> = queries.into_iter().filter(has_positive).collect();
        if queries.is_empty() {
            continue;
        }
        let labels = [sets.query_labels.select(&queries), sets.gallery_labels.select(&gallery)];
        let embeddings = [select(sets.queries, &queries)?, select(sets.gallery, &gallery)?];
        let [queried, ranked] = [0, 1].map(|set| -> Labelled<'_, dyn Rows> {
            Labelled { embeddings: &embeddings[set], labels: &labels[set] }
        });
        let (config, execution) = (&without_hyperbolicity, quiet);
        let evaluation =
            Evaluation { levels, queries: queried, gallery: Some(ranked), places: None, config, execution };
        let report = evaluation.report()?;
        rows.extend(report.per_query.into_iter().map(|row| QueryScores { query: queries[row.query], ..row }));
    }
    if rows.is_empty() {
        return Err(Error::new(
            Kind::Taxonomy,
            "no query has a positive among the gallery images that it ranks",
            "check the labels, and what each query leaves out",
        ));
    }
    rows.sort_by_key(|row| row.query);
    let mut report = Report::new(levels, &checked, sets.gallery_labels.len(), rows);
    if let Some(settings) = config.hyperbolicity {
        report.hyperbolicity = Some(mean_hyperbolicity(sets.gallery, config.similarity, settings)?);
    }
    Ok(report)
}

/// Some rows of embeddings.
fn select(embeddings: &dyn Rows, rows: &[usize]) -> Result<Embeddings> {
    let dimension = embeddings.dimension();
    let mut values = vec![0.0; rows.len() * dimension];
    for (&row, values) in rows.iter().zip(values.chunks_exact_mut(dimension)) {
        embeddings.read(row, values)?;
    }
    Embeddings::new(dimension, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metric;

    /// AP of one ranking by its definition, without the items in `junk`.
    fn average_precision(order: &[usize], positives: &[usize], junk: &[usize]) -> f64 {
        let ranked: Vec<usize> = order.iter().copied().filter(|item| !junk.contains(item)).collect();
        let places: Vec<usize> =
            (0..ranked.len()).filter(|&place| positives.contains(&ranked[place])).collect();
        let precisions =
            places.iter().enumerate().map(|(found, &place)| (found + 1) as f64 / (place + 1) as f64);
        precisions.sum::<f64>() / positives.len() as f64
    }

    #[test]
    fn junk_takes_no_place_in_a_ranking() {
        // On a half circle, so that the query at 0° ranks the gallery by angle and the query at 180° in reverse.
        let point = |degrees: f32| [degrees.to_radians().cos(), degrees.to_radians().sin()];
        let queries = Embeddings::new(2, [point(0.0), point(180.0)].concat()).unwrap();
        let gallery = Embeddings::new(2, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0].map(point).concat()).unwrap();
        let query_labels = Labels::new(1, vec![0, 1]).unwrap();
        let gallery_labels = Labels::new(1, vec![2, 0, 1, 0, 1, 2]).unwrap();
        let config = EvaluationConfig { metrics: vec![Metric::named("ap")], ..EvaluationConfig::default() };
        let levels = ["landmark".to_owned()];
        let report = |junk: &[&[u32]]| {
            let sets = Sets {
                queries: &queries,
                query_labels: &query_labels,
                gallery: &gallery,
                gallery_labels: &gallery_labels,
                junk,
            };
            evaluate_without_junk(&levels, &sets, &config, &Execution::default()).unwrap()
        };
        let ap = |report: &Report| -> Vec<f64> {
            report.per_query.iter().map(|row| row.levels[0].get(Metric::named("ap")).unwrap()).collect()
        };
        let forward = [0, 1, 2, 3, 4, 5];
        let backward = [5, 4, 3, 2, 1, 0];
        let nothing: &[u32] = &[];
        let found = ap(&report(&[nothing; 6]));
        assert_eq!(
            found,
            [average_precision(&forward, &[1, 3], &[]), average_precision(&backward, &[2, 4], &[])]
        );
        // The first image is junk for the first query, the last for the second.
        let found = ap(&report(&[&[0], nothing, nothing, nothing, nothing, &[1]]));
        assert_eq!(
            found,
            [average_precision(&forward, &[1, 3], &[0]), average_precision(&backward, &[2, 4], &[5])]
        );
        assert_eq!(found[1], 1.0 / 2.0 + 1.0 / 3.0, "positives at ranks 1 and 3 of what is left");
        // Without positives a query has no row.
        let rows = report(&[nothing, &[0], nothing, &[0], nothing, nothing]).per_query;
        assert_eq!(rows.iter().map(|row| row.query).collect::<Vec<_>>(), [1]);
    }
}
