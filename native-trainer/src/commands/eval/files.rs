//! Embeddings made elsewhere: .npy files, each with its labels in a CSV file.

use std::collections::HashMap;
use std::path::Path;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, Report, evaluate, evaluate_among};
use akin_core::taxonomy::{ClassIdentity, Taxonomy};
use anyhow::{Context, Result};

use super::EvalArgs;
use crate::columns::{count, counted};
use crate::data::table::Table;
use crate::npy;
use crate::problem::problem;

/// Queries, and what they rank.
pub struct Files {
    queries: Set,
    gallery: Option<Set>,
    /// The rows of the queries in the gallery, if they stand in it.
    places: Option<Vec<usize>>,
}

/// The embeddings of a file with their label rows and, where a column has them, their paths.
struct Set {
    embeddings: Embeddings,
    rows: Vec<Vec<String>>,
    paths: Vec<String>,
}

impl Files {
    /// Reads the set of this number, from 0, with the labels of these columns.
    pub fn read(args: &EvalArgs, number: usize, columns: &[String]) -> Result<Self> {
        check_counts(args)?;
        let path_column = args.path_column.as_deref();
        let read = |embeddings: &Path, labels: &Path| Set::read(embeddings, labels, columns, path_column);
        let queries = read(&args.queries[number], &args.query_labels[number])?;
        let Some(gallery) = args.gallery.get(number) else {
            return Ok(Self { queries, gallery: None, places: None });
        };
        let labels = &args.gallery_labels[number];
        let gallery = read(gallery, labels)?;
        let places = path_column.map(|_| places(&queries, &gallery, labels)).transpose()?;
        Ok(Self { queries, gallery: Some(gallery), places })
    }

    /// The report over `levels`, named so, whose labels stand in the columns from `first` on.
    pub fn evaluate(
        &self,
        levels: &[String],
        first: usize,
        identity: ClassIdentity,
        config: &EvaluationConfig,
    ) -> Result<Report> {
        // One taxonomy for both, so that ids are comparable.
        let both = [Some(&self.queries), self.gallery.as_ref()].into_iter().flatten();
        let columns = first..first + levels.len();
        let rows: Vec<Vec<&str>> = both
            .flat_map(|set| &set.rows)
            .map(|row| row[columns.clone()].iter().map(String::as_str).collect())
            .collect();
        let (_, labels) = Taxonomy::from_rows(levels, &rows, identity)?;
        let (query_items, gallery_items): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).partition(|&item| item < self.queries.rows.len());
        let [query_labels, gallery_labels] = [query_items, gallery_items].map(|items| labels.select(&items));

        let queries = Labelled { embeddings: &self.queries.embeddings, labels: &query_labels };
        let gallery = (self.gallery.as_ref())
            .map(|gallery| Labelled { embeddings: &gallery.embeddings, labels: &gallery_labels });
        Ok(match (gallery, &self.places) {
            (Some(gallery), Some(places)) => evaluate_among(levels, queries, gallery, places, config)?,
            _ => evaluate(levels, queries, gallery, config)?,
        })
    }

    /// The paths of the queries; none without a column of them.
    pub fn into_paths(self) -> Vec<String> {
        self.queries.paths
    }
}

/// Checks that every set has all of its files.
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
                "`{option}` is given {}, and `--queries` {}",
                counted(given, "time", "times"),
                counted(sets, "time", "times")
            ),
            "give each option once per set, in the same order; a gallery for every set, or for none",
        )),
    }
}

/// The rows of the queries in the gallery, by their paths.
fn places(queries: &Set, gallery: &Set, labels: &Path) -> Result<Vec<usize>> {
    let mut places = HashMap::new();
    for (place, path) in gallery.paths.iter().enumerate() {
        if places.insert(path, place).is_some() {
            return Err(problem(
                format!(
                    "{} has `{path}` twice, so that the place of a query is not certain",
                    labels.display()
                ),
                "give `--path-column` a column whose cells are all different",
            ));
        }
    }
    let place_of = |(path, row): (&String, &Vec<String>)| {
        let place = places.get(path).copied().ok_or_else(|| {
            problem(
                format!("the query `{path}` is not in the gallery of {}", labels.display()),
                "write paths alike in both files, or, if no query is in the gallery, leave out `--path-column`",
            )
        })?;
        if gallery.rows[place] != *row {
            return Err(problem(
                format!("the query `{path}` has other labels in {}", labels.display()),
                "label an item alike in both files, and give the files of one set together",
            ));
        }
        Ok(place)
    };
    queries.paths.iter().zip(&queries.rows).map(place_of).collect()
}

impl Set {
    fn read(embeddings: &Path, labels: &Path, columns: &[String], path_column: Option<&str>) -> Result<Self> {
        let matrix = npy::read(embeddings)?;
        let mut table = Table::open(labels)?;
        let places = table.columns(columns, "correct `--levels`")?;
        let path_place = path_column.map(|name| table.column(name, "correct `--path-column`")).transpose()?;
        let (mut rows, mut paths) = (Vec::with_capacity(matrix.rows), Vec::new());
        while let Some((line, record)) = table.next_row()? {
            let row: Vec<String> = places.iter().map(|&place| record[place].trim().to_owned()).collect();
            if let Some(level) = row.iter().position(String::is_empty) {
                return Err(problem(
                    format!("{}, line {line}: the label `{}` is empty", labels.display(), columns[level]),
                    "write the label, or leave the item out of both files",
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
                "give each embedding one line of labels, in the same order, below one header line",
            ));
        }
        let embeddings = Embeddings::new(matrix.columns, matrix.values)
            .with_context(|| embeddings.display().to_string())?;
        Ok(Self { embeddings, rows, paths })
    }
}
