//! Embeddings from .npy files, with their labels in CSV files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{
    EvaluationConfig, Labelled, QueryScores, Report, evaluate_and_count, query_scores,
};
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use anyhow::{Context, Result};

use super::arguments::EvalArgs;
use crate::counts::{count, counted};
use crate::csv_file::CsvFile;
use crate::npy;
use crate::problem::problem;
use crate::progress::Progress;
use crate::terminal;

/// Queries, and the gallery that they rank.
pub struct EmbeddingFiles {
    queries: EmbeddingSet,
    gallery: Option<EmbeddingSet>,
    /// The rows of the queries in the gallery, if they are in it.
    query_rows: Option<Vec<usize>>,
}

/// The embeddings of a file, with their labels and, if there is a column of them, their paths.
struct EmbeddingSet {
    embeddings: Embeddings,
    rows: Vec<Vec<String>>,
    paths: Vec<String>,
}

impl EmbeddingFiles {
    /// Reads set `number`, counted from 0, with the labels in these columns.
    pub fn read(args: &EvalArgs, number: usize, columns: &[String]) -> Result<Self> {
        check_counts(args)?;
        let path_column = args.path_column.as_deref();
        let read =
            |embeddings: &Path, labels: &Path| EmbeddingSet::read(embeddings, labels, columns, path_column);
        let queries = read(&args.queries[number], &args.query_labels[number])?;
        let Some(gallery) = args.gallery.get(number) else {
            return Ok(Self { queries, gallery: None, query_rows: None });
        };
        let labels = &args.gallery_labels[number];
        let gallery = read(gallery, labels)?;
        let query_rows = match path_column {
            Some(_) => Some(rows_in_gallery(&queries, &gallery, labels)?),
            None => {
                warn_of_twins(&queries, &gallery);
                None
            }
        };
        Ok(Self { queries, gallery: Some(gallery), query_rows })
    }

    /// Evaluates over `levels`, whose labels are in the columns from `first` on.
    pub fn evaluate(
        &self,
        levels: &[String],
        first: usize,
        identity: ClassIdentity,
        config: &EvaluationConfig,
        progress: Progress,
    ) -> Result<Report> {
        let [query_labels, gallery_labels] = self.labels(levels, first, identity)?;
        let queries = Labelled { embeddings: &self.queries.embeddings, labels: &query_labels };
        let gallery = (self.gallery.as_ref())
            .map(|gallery| Labelled { embeddings: &gallery.embeddings, labels: &gallery_labels });
        let bar = progress.bar("Ranking", self.queries.rows.len() as u64);
        let ranked = |queries| bar.advance(queries as u64);
        Ok(evaluate_and_count(levels, queries, gallery, self.query_rows.as_deref(), config, &ranked)?)
    }

    /// The scores of some of the queries.
    pub fn evaluate_some(
        &self,
        some: Range<usize>,
        levels: &[String],
        identity: ClassIdentity,
        config: &EvaluationConfig,
        progress: Progress,
    ) -> Result<Vec<QueryScores>> {
        let [query_labels, gallery_labels] = self.labels(levels, 0, identity)?;
        let all = &self.queries.embeddings;
        let values = all.values()[some.start * all.dimension()..some.end * all.dimension()].to_vec();
        let embeddings = Embeddings::new(all.dimension(), values)?;
        let rows: Vec<usize> = some.collect();
        let queries = Labelled { embeddings: &embeddings, labels: &query_labels.select(&rows) };
        // Without a gallery, each query ranks all the others.
        let (gallery, places) = match &self.gallery {
            Some(gallery) => {
                let places = |places: &Vec<usize>| rows.iter().map(|&row| places[row]).collect::<Vec<_>>();
                let places = self.query_rows.as_ref().map(places);
                (Labelled { embeddings: &gallery.embeddings, labels: &gallery_labels }, places)
            }
            None => (Labelled { embeddings: all, labels: &query_labels }, Some(rows.clone())),
        };
        let bar = progress.bar("Ranking", rows.len() as u64);
        let ranked = |queries| bar.advance(queries as u64);
        Ok(query_scores(levels, queries, Some(gallery), places.as_deref(), config, &ranked)?)
    }

    /// The labels of the queries and of the gallery over `levels`, whose columns begin at `first`.
    fn labels(&self, levels: &[String], first: usize, identity: ClassIdentity) -> Result<[Labels; 2]> {
        // Queries and gallery need one taxonomy, so that their class ids agree.
        let both = [Some(&self.queries), self.gallery.as_ref()].into_iter().flatten();
        let columns = first..first + levels.len();
        let rows: Vec<Vec<&str>> = both
            .flat_map(|set| &set.rows)
            .map(|row| row[columns.clone()].iter().map(String::as_str).collect())
            .collect();
        let (_, labels) = Taxonomy::from_rows(levels, &rows, identity)?;
        let (query_items, gallery_items): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).partition(|&item| item < self.queries.rows.len());
        Ok([query_items, gallery_items].map(|items| labels.select(&items)))
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.queries.rows.len()
    }

    /// The number of items that each query ranks.
    pub fn ranked(&self) -> usize {
        let itself = usize::from(self.gallery.is_none() || self.query_rows.is_some());
        self.gallery.as_ref().unwrap_or(&self.queries).rows.len() - itself
    }

    /// The paths of the queries; empty if there is no column of paths.
    pub fn into_paths(self) -> Vec<String> {
        self.queries.paths
    }
}

/// Checks that every set has all its files.
fn check_counts(args: &EvalArgs) -> Result<()> {
    let sets = args.queries.len();
    let files = [
        ("--query-labels", args.query_labels.len(), sets),
        ("--gallery", args.gallery.len(), if args.gallery.is_empty() { 0 } else { sets }),
        ("--gallery-labels", args.gallery_labels.len(), args.gallery.len()),
    ];
    match files.into_iter().find(|(_, given, needed)| given != needed) {
        None => Ok(()),
        Some((option, given, _)) => Err(problem(
            format!(
                "`{option}` is given {}, but `--queries` is given {}",
                counted(given, "time", "times"),
                counted(sets, "time", "times")
            ),
            "give each option once per set, in the same order, and either a gallery for every set or none",
        )),
    }
}

/// Warns of queries that have the embedding and the labels of exactly one gallery item: they are probably that item, and
/// each finds itself first. Codes that many items share say nothing.
fn warn_of_twins(queries: &EmbeddingSet, gallery: &EmbeddingSet) {
    let bits = |set: &EmbeddingSet, row| -> Vec<u32> {
        set.embeddings.row(row).iter().map(|value| value.to_bits()).collect()
    };
    let mut twins: HashMap<Vec<u32>, Vec<usize>> =
        (0..queries.rows.len()).map(|row| (bits(queries, row), Vec::new())).collect();
    for row in 0..gallery.rows.len() {
        if let Some(rows) = twins.get_mut(&bits(gallery, row)) {
            rows.push(row);
        }
    }
    let has_twin = |&query: &usize| match twins[&bits(queries, query)][..] {
        [row] => gallery.rows[row] == queries.rows[query],
        _ => false,
    };
    let count = (0..queries.rows.len()).filter(has_twin).count();
    if count > 0 {
        let have = counted(count, "query has", "queries have");
        terminal::say(format_args!(
            "warning: {have} the embedding and the labels of a gallery item, and would find itself first; name a column \
             that identifies an item with `--path-column`"
        ));
    }
}

/// Finds the row of each query in the gallery by its path.
fn rows_in_gallery(queries: &EmbeddingSet, gallery: &EmbeddingSet, labels: &Path) -> Result<Vec<usize>> {
    let mut rows = HashMap::new();
    for (row, path) in gallery.paths.iter().enumerate() {
        if rows.insert(path, row).is_some() {
            return Err(problem(
                format!("{} has `{path}` twice, so the row of a query is ambiguous", labels.display()),
                "give `--path-column` a column without repeated cells",
            ));
        }
    }
    let find_row = |(path, query_labels): (&String, &Vec<String>)| {
        let row = rows.get(path).copied().ok_or_else(|| {
            problem(
                format!("the query `{path}` is not in the gallery of {}", labels.display()),
                "write paths the same way in both files; if no query is in the gallery, leave out `--path-column`",
            )
        })?;
        if gallery.rows[row] != *query_labels {
            return Err(problem(
                format!("the query `{path}` has other labels in {}", labels.display()),
                "give an item the same labels in both files, and check that both files belong to the same set",
            ));
        }
        Ok(row)
    };
    queries.paths.iter().zip(&queries.rows).map(find_row).collect()
}

impl EmbeddingSet {
    fn read(embeddings: &Path, labels: &Path, columns: &[String], path_column: Option<&str>) -> Result<Self> {
        let matrix = npy::read(embeddings)?;
        let mut csv = CsvFile::open(labels)?;
        let places = csv.columns(columns, "correct `--levels`")?;
        let path_place = path_column.map(|name| csv.column(name, "correct `--path-column`")).transpose()?;
        let (mut rows, mut paths) = (Vec::with_capacity(matrix.rows), Vec::new());
        while let Some((line, record)) = csv.next_line()? {
            let row: Vec<String> = places.iter().map(|&place| record[place].trim().to_owned()).collect();
            if let Some(level) = row.iter().position(String::is_empty) {
                return Err(problem(
                    format!("{}, line {line}: the label `{}` is empty", labels.display(), columns[level]),
                    "write the label, or remove the item from both files",
                ));
            }
            rows.push(row);
            paths.extend(path_place.map(|place| record[place].trim().to_owned()));
        }
        if rows.len() != matrix.rows {
            return Err(problem(
                format!(
                    "{} has {} rows of embeddings, but {} has {} rows of labels",
                    embeddings.display(),
                    count(matrix.rows),
                    labels.display(),
                    count(rows.len())
                ),
                "write one header line, then one line of labels per embedding, in the same order",
            ));
        }
        let embeddings = Embeddings::new(matrix.columns, matrix.values)
            .with_context(|| embeddings.display().to_string())?;
        Ok(Self { embeddings, rows, paths })
    }
}
