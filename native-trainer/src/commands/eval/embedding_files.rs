//! Embeddings from files, with their labels in columns of the same files or of others, or from galleries, which have both.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::progress::{Bar, Progress};
use akin_base::quantities::{count, counted};
use akin_base::{shell, terminal};
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::evaluate::{
    Evaluation, EvaluationConfig, Execution, Labelled, QueryScores, Report, Sets, Step,
    evaluate_without_groups, evaluate_without_junk,
};
use akin_core::pair_sums::PairSums;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy, check_order};
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use akin_formats::source::STANDARD_INPUT;
use akin_formats::table::Table;
use akin_gallery::{Gallery, MANIFEST, check_encoder};
use anyhow::Result;
use rayon::prelude::*;

use super::arguments::{CutArgs, EvalArgs};
use crate::config::{DeviceName, KinshipSource, device};
use crate::evaluation::by_class;
use crate::evaluation::certainty::Certainty;
use crate::evaluation::embedding::{EvaluationBars, warn_if_equal};

/// Queries, and the gallery that they rank.
pub struct EmbeddingFiles {
    queries: EmbeddingSet,
    gallery: Option<EmbeddingSet>,
    /// The rows of the queries in the gallery, if they are in it.
    query_rows: Option<Vec<usize>>,
    /// The bytes for the rankings of the queries that are ranked at once, if they were given.
    memory: Option<usize>,
    /// The GPU that adds up for the scores, if it is not the CPU.
    device: Option<Box<dyn PairSums>>,
    cut: CutArgs,
    kinship: Option<KinshipSource>,
}

/// Where embeddings stay while they are evaluated.
enum Stored {
    File(EmbeddingFile),
    /// The pictures of a gallery that have labels.
    Gallery(Box<Gallery>),
}

impl Stored {
    fn open(path: &Path, choice: &Choice) -> Result<Self> {
        if !path.join(MANIFEST).is_file() {
            return Ok(Self::File(EmbeddingFile::open(path, choice)?));
        }
        let gallery = Gallery::open(path)?;
        let pictures = gallery.rows().len();
        let items = gallery.labelled();
        let labelled = items.len();
        if labelled == 0 {
            return Err(problem(
                format!("no picture of the gallery {} has a label", path.display()),
                format!(
                    "give it labels with `akin index {} --relabel TABLE --levels COARSE,…,FINE`",
                    shell::path(path)
                ),
            ));
        }
        if labelled < pictures {
            terminal::warn(format_args!(
                "{} of {} without a label {} left out",
                counted(pictures - labelled, "picture", "pictures"),
                path.display(),
                if pictures - labelled == 1 { "is" } else { "are" },
            ));
        }
        Ok(Self::Gallery(Box::new(gallery.select(&items))))
    }

    fn rows(&self) -> &dyn Rows {
        match self {
            Self::File(file) => file,
            Self::Gallery(gallery) => gallery.vectors(),
        }
    }

    fn name(&self) -> PathBuf {
        match self {
            Self::File(file) => file.name(),
            Self::Gallery(gallery) => gallery.folder().to_owned(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::File(file) => file.bytes(),
            Self::Gallery(_) => 0,
        }
    }

    /// Identifies what is in the file. The manifest of a gallery has the SHA-256 of its files.
    fn digest(&self, advance: impl Fn(u64)) -> Result<Vec<u8>> {
        match self {
            Self::File(file) => Ok(file.digest(advance)?.to_vec()),
            Self::Gallery(gallery) => Ok(serde_json::to_vec(gallery.manifest())?),
        }
    }

    /// Checks that a file was the same each time that it was read. Those of a gallery are written once.
    fn check_unchanged(&self) -> Result<()> {
        match self {
            Self::File(file) => file.check_unchanged(),
            Self::Gallery(_) => Ok(()),
        }
    }

    /// Reads columns beside the embeddings.
    fn read_columns(
        &self,
        wanted: &[(&str, &str)],
        mut each: impl FnMut(u64, &[&str]) -> Result<()>,
    ) -> Result<()> {
        let gallery = match self {
            Self::File(file) => return file.table()?.read(wanted, each),
            Self::Gallery(gallery) => gallery,
        };
        let all = gallery.columns();
        let find = |&(name, hint): &(&str, &str)| {
            all.iter().find(|column| column.name == name).ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
                problem(
                    format!("the gallery {} has no column `{name}`", gallery.folder().display()),
                    format!("{hint}; it has {}", names.join(", ")),
                )
            })
        };
        let columns = wanted.iter().map(find).collect::<Result<Vec<_>>>()?;
        (0..gallery.rows().len()).try_for_each(|row| {
            let cells: Vec<String> = columns.iter().map(|column| column.text(row)).collect();
            each(row as u64, &cells.iter().map(String::as_str).collect::<Vec<_>>())
        })
    }
}

/// The embeddings of a file, which stay there, with their labels and, if there is a column of them, their paths.
struct EmbeddingSet {
    embeddings: Stored,
    /// The different rows of labels, in the order in which they first occur.
    label_rows: Vec<Vec<String>>,
    /// The rows of the file in which they first occur, the header being row 1.
    row_numbers: Vec<u64>,
    /// The row of labels of each item.
    labels: Vec<u32>,
    paths: Vec<String>,
    /// For each item, the finest classes whose queries leave it out of their rankings; empty without a column of junk.
    junk: Vec<Vec<String>>,
    /// For each item, its group; empty without a column of groups.
    groups: Vec<String>,
    /// The file of labels.
    labels_file: PathBuf,
    /// Its columns, if it is not that of the embeddings.
    table: Option<Table>,
}

/// The columns of a file of labels that are read.
struct Columns<'a> {
    levels: &'a [String],
    path: Option<&'a str>,
    junk: Option<&'a str>,
    group: Option<&'a str>,
}

impl EmbeddingFiles {
    /// Reads set `number`, counted from 0, with the labels in these columns.
    pub fn read(args: &EvalArgs, number: usize, columns: &[String]) -> Result<Self> {
        check_counts(args)?;
        let choice = Choice {
            name: args.embedding_column.clone(),
            packed: args.metrics.similarity == Some(Similarity::Hamming),
        };
        let group = args.group_column.as_deref();
        let read = |embeddings: &Path, labels: Option<&PathBuf>, junk: Option<&str>| {
            let columns = Columns { levels: columns, path: args.path_column.as_deref(), junk, group };
            EmbeddingSet::read(embeddings, labels.map(PathBuf::as_path), &choice, &columns)
        };
        let mut files = Self {
            memory: args.memory.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
            cut: args.cut,
            kinship: args.kinship.source(columns)?,
            device: device::open_pair_sums(args.device.unwrap_or(DeviceName::Cpu))?,
            queries: read(&args.queries[number], args.query_labels.get(number), None)?,
            gallery: None,
            query_rows: None,
        };
        let queries = &files.queries;
        let Some(gallery) = args.gallery.get(number) else {
            warn_if_equal(queries.embeddings.rows())?;
            return Ok(files);
        };
        let gallery = read(gallery, args.gallery_labels.get(number), args.junk_column.as_deref())?;
        warn_if_equal(gallery.embeddings.rows())?;
        check_encoders(queries, &gallery)?;
        match args.path_column {
            Some(_) => files.query_rows = Some(rows_in_gallery(queries, &gallery)?),
            // A query is in its own group.
            None if group.is_some() => {}
            None => warn_of_twins(queries, &gallery, args.progress)?,
        }
        files.gallery = Some(gallery);
        Ok(files)
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
        let (taxonomy, labels) = self.labels(levels, first, identity)?;
        let levels = taxonomy.level_names();
        if !self.queries.groups.is_empty() {
            let report = self.evaluate_groups(&taxonomy, &labels, config, progress)?;
            self.check_unchanged()?;
            return Ok(report);
        }
        if let Some(gallery) = self.gallery.as_ref().filter(|gallery| !gallery.junk.is_empty()) {
            let report = self.evaluate_junk(gallery, &taxonomy, &labels, config, progress)?;
            self.check_unchanged()?;
            return Ok(report);
        }
        let bars = EvaluationBars::new(progress, [self.embeddings(), self.queries()], config);
        let report = self.evaluation(levels, &labels, config, |evaluation| evaluation.report(), &bars)?;
        self.check_unchanged()?;
        Ok(report)
    }

    /// Adds the scores of each class of a level to the report of all levels.
    pub fn add_classes(
        &self,
        report: &mut Report,
        levels: &[String],
        identity: ClassIdentity,
        level: &str,
    ) -> Result<()> {
        let (taxonomy, [query_labels, _]) = self.labels(levels, 0, identity)?;
        by_class::add(report, &taxonomy, &query_labels, level)
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
        let (_, labels) = self.labels(levels, 0, identity)?;
        let bars = EvaluationBars::new(progress, [self.embeddings(), some.len()], config);
        let scores = |evaluation: &Evaluation<'_>| evaluation.query_scores(some);
        let scores = self.evaluation(levels, &labels, config, scores, &bars)?;
        self.check_unchanged()?;
        Ok(scores)
    }

    /// How far the answers hold.
    pub fn certainty(
        &self,
        levels: &[String],
        identity: ClassIdentity,
        similarity: Similarity,
    ) -> Result<Option<Certainty>> {
        let (_, [query_labels, gallery_labels]) = self.labels(levels, 0, identity)?;
        let queries = self.queries.in_memory()?;
        let asked = Labelled { embeddings: &queries, labels: &query_labels };
        match &self.gallery {
            Some(_) if self.query_rows.is_some() => Err(problem(
                "`--certainty` asks with queries that are not in the gallery, but `--path-column` says that they may be",
                "leave out `--gallery`, so that each item is left out while it asks the others",
            )),
            Some(gallery) => {
                let embeddings = gallery.in_memory()?;
                let gallery = Labelled { embeddings: &embeddings, labels: &gallery_labels };
                Certainty::measure(levels, Some(asked), gallery, similarity)
            }
            None => Certainty::measure(levels, None, asked, similarity),
        }
    }

    /// Evaluates queries that leave the items of their own group out of their rankings.
    fn evaluate_groups(
        &self,
        taxonomy: &Taxonomy,
        [query_labels, gallery_labels]: &[Labels; 2],
        config: &EvaluationConfig,
        progress: Progress,
    ) -> Result<Report> {
        let gallery = self.gallery.as_ref();
        let queries = self.queries.in_memory()?;
        let ranked = gallery.map(EmbeddingSet::in_memory).transpose()?;
        let bar = progress.bar("Ranking", self.queries() as u64);
        let sets = Sets {
            queries: &queries,
            query_labels,
            gallery: ranked.as_ref().unwrap_or(&queries),
            gallery_labels: if gallery.is_some() { gallery_labels } else { query_labels },
            junk: &[],
        };
        let groups = [&self.queries.groups[..], &gallery.unwrap_or(&self.queries).groups[..]];
        let execution = Execution { progress: &|step| advance(&bar, step), ..Execution::default() };
        Ok(evaluate_without_groups(taxonomy.level_names(), &sets, groups, config, &execution)?)
    }

    /// Evaluates queries that leave junk out of their rankings.
    fn evaluate_junk(
        &self,
        gallery: &EmbeddingSet,
        taxonomy: &Taxonomy,
        [query_labels, gallery_labels]: &[Labels; 2],
        config: &EvaluationConfig,
        progress: Progress,
    ) -> Result<Report> {
        let level = taxonomy.depth();
        let mut classes: HashMap<&str, Vec<u32>> = HashMap::new();
        for class in 0..taxonomy.class_count(level) as u32 {
            classes.entry(taxonomy.class_name(level, class)).or_default().push(class);
        }
        let classes_of = |(item, names): (usize, &Vec<String>)| -> Result<Vec<u32>> {
            let ids = names.iter().map(|name| {
                classes.get(name.as_str()).ok_or_else(|| {
                    problem(
                        format!(
                            "{}, item {}: it is junk for `{name}`, which is no {}",
                            gallery.labels_file.display(),
                            item + 1,
                            taxonomy.level_names()[level - 1]
                        ),
                        "correct the class, or remove it",
                    )
                })
            });
            Ok(ids.collect::<Result<Vec<_>>>()?.into_iter().flatten().copied().collect())
        };
        let junk = gallery.junk.iter().enumerate().map(classes_of).collect::<Result<Vec<_>>>()?;
        let [queries, ranked] = [&self.queries, gallery].map(EmbeddingSet::in_memory);
        let bar = progress.bar("Ranking", self.queries() as u64);
        let sets = Sets {
            queries: &queries?,
            query_labels,
            gallery: &ranked?,
            gallery_labels,
            junk: &junk.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        };
        let execution = Execution { progress: &|step| advance(&bar, step), ..Execution::default() };
        Ok(evaluate_without_junk(taxonomy.level_names(), &sets, config, &execution)?)
    }

    /// Calls `work` with the evaluation of these files.
    fn evaluation<T>(
        &self,
        levels: &[String],
        [query_labels, gallery_labels]: &[Labels; 2],
        config: &EvaluationConfig,
        work: impl FnOnce(&Evaluation<'_>) -> akin_core::Result<T>,
        bars: &EvaluationBars,
    ) -> Result<T> {
        let gallery = self.gallery.as_ref().map(|gallery| -> Labelled<'_, dyn Rows> {
            Labelled { embeddings: gallery.embeddings.rows(), labels: gallery_labels }
        });
        let ranked = self.gallery.as_ref().unwrap_or(&self.queries).embeddings.rows();
        let result = work(&Evaluation {
            levels,
            queries: Labelled { embeddings: self.queries.embeddings.rows(), labels: query_labels },
            gallery,
            places: self.query_rows.as_deref(),
            config,
            execution: Execution {
                memory: self.memory.unwrap_or_else(|| default_memory(ranked)),
                progress: &|step| bars.advance(step),
                device: self.device.as_deref(),
                ..Execution::default()
            },
        })?;
        bars.say_device(self.device.as_deref(), config);
        Ok(result)
    }

    /// The taxonomy, and the labels of the queries and of the gallery, over `levels`, whose columns begin at `first`.
    fn labels(
        &self,
        levels: &[String],
        first: usize,
        identity: ClassIdentity,
    ) -> Result<(Taxonomy, [Labels; 2])> {
        // Queries and gallery need one taxonomy, so that their class ids agree.
        let columns = first..first + levels.len();
        let some = |row: &'_ Vec<String>| -> Vec<String> { row[columns.clone()].to_vec() };
        let different: Vec<Vec<String>> = self.sets().flat_map(|set| &set.label_rows).map(some).collect();
        let rows = |set: &'_ EmbeddingSet| -> Vec<(PathBuf, u64)> {
            set.row_numbers.iter().map(|&row| (set.labels_file.clone(), row)).collect()
        };
        let places: Vec<(PathBuf, u64)> = self.sets().flat_map(rows).collect();
        let place = |row: usize| format!("{}, row {}", places[row].0.display(), places[row].1);
        let (taxonomy, labels) = match &self.kinship {
            Some(kinship) => {
                // A file of classes names the levels itself.
                let levels = matches!(kinship, KinshipSource::Separator(_)).then_some(levels);
                kinship.labels(levels, &different, &place)?
            }
            None => {
                if identity == ClassIdentity::Path {
                    check_order(levels, &different)?;
                }
                Taxonomy::from_named_rows(levels, &different, identity, &place)?
            }
        };
        let select = |set: Option<&EmbeddingSet>, first: usize| {
            let rows = set.into_iter().flat_map(|set| &set.labels).map(|&row| first + row as usize);
            labels.select(&rows.collect::<Vec<_>>())
        };
        let queries = &self.queries;
        let gallery = self.cut.apply(select(self.gallery.as_ref(), queries.label_rows.len()), 1);
        let queries = match &self.query_rows {
            // The queries are items of the gallery.
            Some(rows) => gallery.select(rows),
            None => self.cut.apply(select(Some(queries), 0), 0),
        };
        Ok((taxonomy, [queries, gallery]))
    }

    fn sets(&self) -> impl Iterator<Item = &EmbeddingSet> {
        [Some(&self.queries), self.gallery.as_ref()].into_iter().flatten()
    }

    /// The number of embeddings, of queries and gallery.
    fn embeddings(&self) -> usize {
        self.sets().map(|set| set.labels.len()).sum()
    }

    /// What identifies the contents of every file, in a fixed order.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn digests(&self, progress: Progress) -> Result<Vec<Vec<u8>>> {
        const UNIT: u64 = 1 << 20;
        let bytes: u64 = self.sets().map(|set| set.embeddings.bytes()).sum();
        let bar = progress.bar("Hashing", bytes / UNIT);
        let mut digests = Vec::new();
        for set in self.sets() {
            digests.push(set.embeddings.digest(|bytes| bar.advance(bytes / UNIT))?);
            if let Some(table) = &set.table {
                digests.push(table.digest()?.to_vec());
            }
        }
        Ok(digests)
    }

    /// Checks that the files were the same each time that they were read.
    fn check_unchanged(&self) -> Result<()> {
        self.sets().try_for_each(|set| {
            set.table.as_ref().map_or(Ok(()), Table::check_unchanged)?;
            set.embeddings.check_unchanged()
        })
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.queries.labels.len()
    }

    /// The number of items that each query ranks.
    pub fn ranked(&self) -> usize {
        let itself = usize::from(self.gallery.is_none() || self.query_rows.is_some());
        self.gallery.as_ref().unwrap_or(&self.queries).labels.len().saturating_sub(itself)
    }

    /// The paths of the queries; empty if there is no column of paths.
    pub fn into_paths(self) -> Vec<String> {
        self.queries.paths
    }
}

/// The bytes for the rankings of the queries that are ranked at once, for a gallery. It is read for each group of
/// queries; a group that takes as much memory is large enough for that to weigh little.
fn default_memory(gallery: &dyn Rows) -> usize {
    const RANGE: [usize; 2] = [256 << 20, 1 << 30];
    (gallery.len() * gallery.dimension() * size_of::<f32>()).clamp(RANGE[0], RANGE[1])
}

/// Moves the bar of the queries that are ranked.
fn advance(bar: &Bar, step: Step) {
    if let Step::Ranked(queries) = step {
        bar.advance(queries as u64);
    }
}

/// Checks that every set has all its files.
fn check_counts(args: &EvalArgs) -> Result<()> {
    let sets = args.queries.len();
    // Without a file of labels, they are in columns beside the embeddings.
    let given_or = |given: usize, needed: usize| if given == 0 { 0 } else { needed };
    let files = [
        ("--query-labels", args.query_labels.len(), given_or(args.query_labels.len(), sets)),
        ("--gallery", args.gallery.len(), given_or(args.gallery.len(), sets)),
        (
            "--gallery-labels",
            args.gallery_labels.len(),
            given_or(args.gallery_labels.len(), args.gallery.len()),
        ),
    ];
    let all = [&args.queries, &args.query_labels, &args.gallery, &args.gallery_labels];
    if all.into_iter().flatten().filter(|file| *file == Path::new(STANDARD_INPUT)).count() > 1 {
        return Err(problem(
            "`-` is given for several files, but standard input can be read once",
            "give the others as files",
        ));
    }
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

/// Refuses embeddings of two galleries whose encoders differ.
fn check_encoders(queries: &EmbeddingSet, gallery: &EmbeddingSet) -> Result<()> {
    match (&queries.embeddings, &gallery.embeddings) {
        (Stored::Gallery(queries), Stored::Gallery(gallery)) => {
            check_encoder(gallery.manifest(), &queries.manifest().settings.encoder.digest)
        }
        _ => Ok(()),
    }
}

/// Warns of queries that have the embedding and the labels of exactly one gallery item: they are probably that item, and
/// each finds itself first. Codes that many items share say nothing.
fn warn_of_twins(queries: &EmbeddingSet, gallery: &EmbeddingSet, progress: Progress) -> Result<()> {
    if queries.embeddings.rows().dimension() != gallery.embeddings.rows().dimension() {
        return Ok(());
    }
    // Hashes first, so that memory holds neither set.
    let mut hashes: HashMap<u64, Vec<usize>> = HashMap::new();
    for (hash, row) in hashes_of(queries, &|_| true, &progress.bar("Reading", queries.labels.len() as u64))? {
        hashes.entry(hash).or_default().push(row);
    }
    let bar = progress.bar("Reading", gallery.labels.len() as u64);
    let mut twins: HashMap<usize, Vec<usize>> = HashMap::new();
    for (hash, row) in hashes_of(gallery, &|hash| hashes.contains_key(&hash), &bar)? {
        hashes[&hash].iter().for_each(|&query| twins.entry(query).or_default().push(row));
    }
    let mut count = 0;
    for (query, rows) in twins {
        if let [row] = rows[..]
            && gallery.row(row) == queries.row(query)
            && bits(gallery, row)? == bits(queries, query)?
        {
            count += 1;
        }
    }
    if count > 0 {
        let have = counted(count, "query has", "queries have");
        terminal::warn(format_args!(
            "{have} the embedding and the labels of a gallery item, and would find itself first; name a column \
             that identifies an item with `--path-column`"
        ));
    }
    Ok(())
}

/// The hashes of the embeddings that are `wanted`, each with its row.
fn hashes_of(
    set: &EmbeddingSet,
    wanted: &(impl Fn(u64) -> bool + Sync),
    bar: &Bar,
) -> Result<Vec<(u64, usize)>> {
    const PART: usize = 1024;
    let (rows, dimension) = (set.labels.len(), set.embeddings.rows().dimension());
    let part = |part: usize| -> akin_core::Result<Vec<(u64, usize)>> {
        let first = part * PART;
        let mut values = vec![0.0f32; PART.min(rows - first) * dimension];
        set.embeddings.rows().read(first, &mut values)?;
        let hash = |row: &[f32]| {
            let mut hasher = DefaultHasher::new();
            row.iter().for_each(|value| value.to_bits().hash(&mut hasher));
            hasher.finish()
        };
        bar.advance((values.len() / dimension) as u64);
        Ok(values.chunks_exact(dimension).map(hash).zip(first..).filter(|&(hash, _)| wanted(hash)).collect())
    };
    let parts = (0..rows.div_ceil(PART)).into_par_iter().map(part).collect::<akin_core::Result<Vec<_>>>()?;
    Ok(parts.concat())
}

/// The bits of an embedding: two of them are equal only if all numbers are the same.
fn bits(set: &EmbeddingSet, row: usize) -> Result<Vec<u32>> {
    let mut values = vec![0.0; set.embeddings.rows().dimension()];
    set.embeddings.rows().read(row, &mut values)?;
    Ok(values.into_iter().map(f32::to_bits).collect())
}

/// Finds the row of each query in the gallery by its path.
fn rows_in_gallery(queries: &EmbeddingSet, gallery: &EmbeddingSet) -> Result<Vec<usize>> {
    let labels = &gallery.labels_file;
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
        if gallery.row(row) != query_labels {
            return Err(problem(
                format!("the query `{path}` has other labels in {}", labels.display()),
                "give an item the same labels in both files, and check that both files belong to the same set",
            ));
        }
        Ok(row)
    };
    queries.paths.iter().zip(queries.rows()).map(find_row).collect()
}

impl EmbeddingSet {
    /// Reads a set whose labels are in the columns of a file of their own or, without one, beside the embeddings.
    fn read(path: &Path, labels: Option<&Path>, choice: &Choice, columns: &Columns) -> Result<Self> {
        let embeddings = Stored::open(path, choice)?;
        if let (Stored::Gallery(_), Some(labels)) = (&embeddings, labels) {
            return Err(problem(
                format!("the gallery {} has labels, and {} is given, too", path.display(), labels.display()),
                format!(
                    "leave out the file, or give the gallery its labels with `akin index {} --relabel {}`",
                    shell::path(path),
                    shell::path(labels)
                ),
            ));
        }
        let own = labels.map(Table::open).transpose()?;
        let labels_file = labels.map_or(embeddings.name(), Path::to_owned);
        let mut wanted: Vec<(&str, &str)> =
            columns.levels.iter().map(|level| (level.as_str(), "correct `--levels`")).collect();
        wanted.extend(columns.path.map(|path| (path, "correct `--path-column`")));
        wanted.extend(columns.junk.map(|junk| (junk, "correct `--junk-column`")));
        wanted.extend(columns.group.map(|group| (group, "correct `--group-column`")));
        let mut known: HashMap<Vec<String>, u32> = HashMap::new();
        let (mut label_rows, mut row_numbers) = (Vec::new(), Vec::new());
        let (mut items, mut paths) = (Vec::new(), Vec::new());
        let (mut junk, mut groups) = (Vec::new(), Vec::new());
        let mut add = |number: u64, cells: &[&str]| -> Result<()> {
            let (labels, more) = cells.split_at(columns.levels.len());
            let mut more = more.iter();
            if labels.iter().all(|label| label.is_empty()) {
                return Err(problem(
                    format!("{}, row {number}: the item has no label", labels_file.display()),
                    "write its labels as far as they are known, or remove the item from both files",
                ));
            }
            let row: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
            items.push(match known.get(&row) {
                Some(&known) => known,
                None => {
                    let new = label_rows.len() as u32;
                    label_rows.push(row.clone());
                    row_numbers.push(number);
                    known.insert(row, new);
                    new
                }
            });
            // Only a column that is read has a cell.
            paths.extend(columns.path.and_then(|_| more.next()).map(|&path| path.to_owned()));
            junk.extend(columns.junk.and_then(|_| more.next()).map(|cell| -> Vec<String> {
                let classes = cell.split(';').map(str::trim).filter(|class| !class.is_empty());
                classes.map(str::to_owned).collect()
            }));
            if let Some((group, column)) = columns.group.and_then(|column| Some((more.next()?, column))) {
                if group.is_empty() {
                    return Err(problem(
                        format!("{}, row {number}: the group `{column}` is empty", labels_file.display()),
                        "write the item's group; an item without others has a group of its own",
                    ));
                }
                groups.push((*group).to_owned());
            }
            Ok(())
        };
        match &own {
            Some(table) => table.read(&wanted, &mut add)?,
            None => embeddings.read_columns(&wanted, &mut add)?,
        }
        if items.len() != embeddings.rows().len() {
            return Err(problem(
                format!(
                    "{} has {} rows of embeddings, but {} has {} rows of labels",
                    embeddings.name().display(),
                    count(embeddings.rows().len()),
                    labels_file.display(),
                    count(items.len())
                ),
                "write one header line, then one line of labels per embedding, in the same order",
            ));
        }
        Ok(Self {
            embeddings,
            label_rows,
            row_numbers,
            labels: items,
            paths,
            junk,
            groups,
            labels_file,
            table: own,
        })
    }

    /// All embeddings.
    fn in_memory(&self) -> Result<Embeddings> {
        let rows = self.embeddings.rows();
        let mut values = vec![0.0; rows.len() * rows.dimension()];
        rows.read(0, &mut values)?;
        Ok(Embeddings::new(rows.dimension(), values)?)
    }

    /// The labels of an item.
    fn row(&self, item: usize) -> &Vec<String> {
        &self.label_rows[self.labels[item] as usize]
    }

    /// The labels of each item.
    fn rows(&self) -> impl Iterator<Item = &Vec<String>> {
        (0..self.labels.len()).map(|item| self.row(item))
    }
}
