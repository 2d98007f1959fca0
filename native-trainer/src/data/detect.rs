//! Finds out how a folder of images is laid out: a published data set, a CSV or Parquet file with labels, or a folder
//! tree.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter::repeat_n;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use akin_base::counts::{count, counted};
use akin_base::problem::{Advise, a_few, parts, problem};
use akin_formats::csv_file::CsvFile;
use akin_formats::parquet_file::{Kind, ParquetFile};
use anyhow::Result;
use toml::{Table, Value};

use super::folder::image_files;
use super::listing::{SPLIT_NAMES, is_named, is_split_name};
use super::parquet::{self, Labels};
use super::table::row_name;
use super::{Dataset, entry};
use crate::config::{DataConfig, DataKind, Selection};

/// The share of the finest classes that is held out if the data have no splits.
const TEST_FRACTION: f64 = 0.5;

/// The fewest classes of which a share can be held out: two to train on and two to evaluate on.
const FEWEST_CLASSES: usize = 4;

/// Names of columns that divide the images in some way. They are no labels.
const DIVISIONS: [&str; 6] = ["set", "subset", "partition", "phase", "fold", "usage"];

/// The layout of a folder.
#[derive(Debug)]
pub struct Layout {
    /// The section `[data]`, with the path as it was given.
    pub data: Table,
    /// The section `[split]`.
    pub split: Table,
    /// What it is, for people.
    pub found: String,
    /// Whether the names of the levels are made up, because the layout has none.
    pub names_levels: bool,
    /// Which data are left out or filled in, in words.
    pub notes: Vec<String>,
}

impl Layout {
    /// The names of the levels, coarse → fine.
    pub fn levels(&self) -> Vec<String> {
        let levels = self.data.get("levels").and_then(Value::as_array);
        levels.into_iter().flatten().filter_map(|level| level.as_str().map(str::to_owned)).collect()
    }

    /// Replaces the names of the levels.
    ///
    /// # Errors
    ///
    /// Another number of names than there are folder levels; columns that the file does not have are found later.
    pub fn name_levels(&mut self, levels: &[String]) -> Result<()> {
        let known = self.levels();
        if self.names_levels && levels.len() != known.len() {
            return Err(problem(
                format!(
                    "{} given, but the images are {} deep",
                    counted(levels.len(), "level is", "levels are"),
                    counted(known.len(), "folder", "folders")
                ),
                format!("give {}, coarse to fine", counted(known.len(), "name", "names")),
            ));
        }
        self.data.insert("levels".into(), levels.to_vec().into());
        Ok(())
    }
}

/// Finds the layout of a folder, or of a CSV or Parquet file.
///
/// # Errors
///
/// A path that does not exist; a folder without images, with images outside of the folders of classes, or with too few
/// classes; a CSV or Parquet file without a column of images or of labels.
pub fn detect(path: &Path) -> Result<Layout> {
    if path.is_file() {
        return if has_extension(path, "parquet") { parquet_layout(path) } else { csv_layout(path) };
    }
    fs::read_dir(path).advise(
        || format!("the folder {} cannot be read", path.display()),
        "give the folder that holds the images, or a CSV or Parquet file that lists them",
    )?;
    if let Some(layout) = published_layout(path) {
        return Ok(layout);
    }
    let mut unusable = None;
    let parquet = parquet::files(path).is_ok().then(|| parquet_layout(path));
    for layout in csv_files(path)?.iter().map(|file| csv_layout(file)).chain(parquet) {
        match layout {
            Ok(layout) => return Ok(layout),
            Err(error) => unusable = unusable.or(Some(error)),
        }
    }
    folder_layout(path).map_err(|tree| match unusable {
        // Images in folders of classes are what the user means, whatever tables lie beside them.
        Some(table) if !has_classes(path) => with_both_hints(&table, &tree),
        _ => tables_inside(path).unwrap_or(tree),
    })
}

/// The error for a folder whose images are in Parquet files of folders inside it: on the hub of Hugging Face these are
/// several data sets, or several forms of one. None if there are no such folders, or images beside them.
fn tables_inside(path: &Path) -> Option<anyhow::Error> {
    if has_classes(path) {
        return None;
    }
    let folders = folders_in(path).ok()?.into_iter().map(|name| path.join(name));
    let folders: Vec<String> = folders
        .filter(|folder| parquet::files(folder).is_ok())
        .map(|folder| folder.display().to_string())
        .collect();
    (!folders.is_empty()).then(|| {
        problem(
            format!("{} has no images, but there are Parquet files in {}", path.display(), a_few(&folders)),
            "give one of these folders",
        )
    })
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// The error of a table, with what to do about it or about the folders.
fn with_both_hints(table: &anyhow::Error, tree: &anyhow::Error) -> anyhow::Error {
    let ((message, table_hint), (_, tree_hint)) = (parts(table), parts(tree));
    let hints: Vec<String> = [table_hint, tree_hint].into_iter().flatten().collect();
    problem(message, hints.join(", or "))
}

/// Whether images stand in folders below this one.
fn has_classes(path: &Path) -> bool {
    let mut images = Images::default();
    images.add(path).is_ok() && !images.classes.is_empty()
}

/// A data set of the papers, if the folder holds one.
fn published_layout(path: &Path) -> Option<Layout> {
    let kinds = DataKind::ALL.iter().copied().filter(|kind| !kind.levels(false).is_empty());
    let kind = kinds.into_iter().find(|kind| {
        let data = DataConfig::for_copy(&kind.name(), path);
        data.and_then(|data| Dataset::load(&Selection::of(data))).is_ok()
    })?;
    let data = toml::toml! { kind = "" };
    let found = format!("a copy of {}", entry(kind).title);
    let mut layout = Layout { data, split: Table::new(), found, names_levels: false, notes: Vec::new() };
    layout.data.insert("kind".into(), kind.name().into());
    layout.data.insert("path".into(), path.to_string_lossy().as_ref().into());
    layout.data.insert("levels".into(), kind.levels(false).to_vec().into());
    Some(layout)
}

/// The CSV files in a folder, sorted; `labels.csv` comes first.
fn csv_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = entries
        .collect::<io::Result<_>>()
        .advise(|| format!("{} cannot be listed", folder.display()), "check the disk")?;
    files.retain(|path| path.is_file() && has_extension(path, "csv"));
    files.sort_by_key(|path| (path.file_stem().is_none_or(|name| name != "labels"), path.clone()));
    Ok(files)
}

// --- Tables -----------------------------------------------------------------------------------------

/// A CSV file with a column of image paths and columns of labels.
fn csv_layout(file: &Path) -> Result<Layout> {
    let (header, columns) = read_columns(file)?;
    let rows = columns.first().map_or(0, Vec::len);
    table_layout(Cells {
        kind: DataKind::Csv,
        path: file,
        folder: file.parent().unwrap_or(Path::new("")),
        header,
        columns,
        images: None,
        unread: Vec::new(),
        // The header is row 1.
        files: vec![TableFile { path: file.to_owned(), split: String::new(), rows, first_row: 2 }],
        places: (0..rows).collect(),
    })
}

/// A Parquet file, or a folder of them, with a column of images or of their paths, and columns of labels.
fn parquet_layout(path: &Path) -> Result<Layout> {
    let paths = parquet::files(path)?;
    let (mut header, mut columns, mut images) = (Vec::new(), Vec::new(), None);
    let (mut texts, mut unread, mut unread_because) = (HashSet::new(), Vec::new(), None);
    let mut files = Vec::new();
    for (number, file) in paths.iter().enumerate() {
        let mut table = ParquetFile::open(file)?;
        // All files have the columns of the first.
        if number == 0 {
            for column in table.columns() {
                match (column.kind, &column.group) {
                    (Kind::Text | Kind::Number(_), None) => header.push(column.name.clone()),
                    (Kind::Bytes, None) => images = images.or(Some(column.name.clone())),
                    (Kind::Bytes, Some(group)) if column.name == "bytes" => {
                        images = images.or(Some(group.to_string()));
                    }
                    _ => {}
                }
            }
            columns = vec![Vec::new(); header.len()];
        }
        let mut place = 0;
        while place < header.len() {
            let mut labels = Labels::of(&table, &header[place], "give all files the same columns")?;
            let mut read = || -> Result<()> {
                for row in 1..=table.rows() {
                    let label = labels.next(&mut table, || row_name(file, row))?;
                    columns[place].push(shared(&mut texts, &label));
                }
                Ok(())
            };
            match (read(), labels.no_labels()) {
                (Ok(()), _) => place += 1,
                (Err(error), None) => return Err(error),
                // The column may not be needed.
                (Err(error), Some(why)) => {
                    columns.remove(place);
                    unread.push(format!("`{}` ({why})", header.remove(place)));
                    unread_because.get_or_insert(error);
                }
            }
        }
        table.check_unchanged()?;
        files.push(TableFile {
            path: file.clone(),
            split: parquet::split_of_name(file),
            rows: table.rows() as usize,
            first_row: 1,
        });
    }
    let layout = table_layout(Cells {
        kind: DataKind::Parquet,
        path,
        folder: paths[0].parent().unwrap_or(Path::new("")),
        header,
        columns,
        images,
        unread,
        places: (0..files.iter().map(|file| file.rows).sum()).collect(),
        files,
    });
    layout.map_err(|error| unread_because.unwrap_or(error))
}

/// A text that equal cells share. A small file can repeat a text in every row.
fn shared(texts: &mut HashSet<Rc<str>>, text: &str) -> Rc<str> {
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    let text: Rc<str> = text.into();
    texts.insert(text.clone());
    text
}

/// The cells of a column. Equal ones share their text.
type Column = Vec<Rc<str>>;

/// The cells of a CSV file, or of Parquet files, that may be paths, labels and splits.
struct Cells<'a> {
    kind: DataKind,
    /// The file, or the folder of files.
    path: &'a Path,
    /// The folder that paths are relative to.
    folder: &'a Path,
    header: Vec<String>,
    columns: Vec<Column>,
    /// The column with the images themselves.
    images: Option<String>,
    /// The columns that cannot be read, each with the reason.
    unread: Vec<String>,
    /// The files, in the order of their rows.
    files: Vec<TableFile>,
    /// The place of each row among all rows of the files.
    places: Vec<usize>,
}

/// A file of a table.
struct TableFile {
    path: PathBuf,
    /// What its name begins with. Empty for a CSV file, whose name tells no split.
    split: String,
    /// The number of its rows.
    rows: usize,
    /// The number of the first of them in messages.
    first_row: u64,
}

impl Cells<'_> {
    /// A row, for messages.
    fn row_name(&self, row: usize) -> String {
        let mut place = self.places[row];
        for file in &self.files {
            match place.checked_sub(file.rows) {
                Some(behind) => place = behind,
                None => return row_name(&file.path, file.first_row + place as u64),
            }
        }
        self.path.display().to_string()
    }

    /// The split of each row: its cell in a column, or what the name of its file begins with.
    fn splits(&self, column: Option<usize>) -> Column {
        match column {
            Some(column) => self.columns[column].clone(),
            None => {
                let splits = |file: &TableFile| repeat_n(Rc::from(file.split.as_str()), file.rows);
                self.files.iter().flat_map(splits).collect()
            }
        }
    }

    /// The first column that has labels, but none in the rows of this split. `row_splits` has the split of each row.
    fn unlabelled_column(&self, split: &str, row_splits: &[Rc<str>]) -> Option<&str> {
        let has_label = |column: &Column, wanted: bool| {
            column
                .iter()
                .zip(row_splits)
                .any(|(cell, other)| (**other == *split) == wanted && !cell.is_empty())
        };
        let column =
            self.columns.iter().position(|column| has_label(column, false) && !has_label(column, true))?;
        Some(&self.header[column])
    }

    /// Drops rows.
    fn retain(&mut self, is_used: &[bool]) {
        fn keep<T>(values: &mut Vec<T>, is_used: &[bool]) {
            let mut is_used = is_used.iter();
            values.retain(|_| is_used.next().is_some_and(|&is_used| is_used));
        }
        for column in &mut self.columns {
            keep(column, is_used);
        }
        keep(&mut self.places, is_used);
    }
}

/// A table with a column of images and columns of labels.
fn table_layout(mut table: Cells) -> Result<Layout> {
    let split_column = table.columns.iter().position(|column| is_split_column(column));
    let row_splits = table.splits(split_column);
    let names: BTreeSet<&str> =
        row_splits.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect();
    if let Some(column) = split_column {
        let column = format!("the column `{}` of {}", table.header[column], table.path.display());
        check_split_names(&names, &column)?;
    }
    let named: Vec<String> = names.into_iter().map(str::to_owned).collect();
    // The labels of a test split are often not published.
    let labelled: Vec<String> =
        named.iter().filter(|split| table.unlabelled_column(split, &row_splits).is_none()).cloned().collect();
    let mut splits = used_splits(&labelled);
    if splits.is_empty() {
        splits = used_splits(&named);
    }
    if splits.is_empty() && split_column.is_some() {
        splits.clone_from(&named);
    }
    let unused: Vec<&str> = named
        .iter()
        .filter(|name| !splits.is_empty() && !splits.contains(name))
        .map(String::as_str)
        .collect();
    let without_labels = |split: &&str| {
        let column = table.unlabelled_column(split, &row_splits)?;
        Some(format!("no image of the split {split} has a label in the column `{column}`"))
    };
    let mut notes: Vec<String> = unused.iter().filter_map(without_labels).collect();
    if !unused.is_empty() {
        let is_used: Vec<bool> =
            row_splits.iter().map(|name| splits.iter().any(|used| **used == **name)).collect();
        table.retain(&is_used);
    }
    let Cells { kind, path: file, folder, header, columns, images: bytes, unread, .. } = &table;
    let rows = columns.first().map_or(0, Vec::len);
    let paths = if bytes.is_some() { None } else { path_column(columns, folder) };
    if bytes.is_none() && paths.is_none() {
        if rows == 0 {
            return Err(problem(
                format!("{} has no row for an image", file.display()),
                "write a row for each image below the names of the columns",
            ));
        }
        let is_one_column = *kind == DataKind::Csv && header.len() == 1;
        let separation = if is_one_column { "separate the columns with commas, and " } else { "" };
        return Err(problem(
            format!("no column of {} holds the paths of images that exist", file.display()),
            format!("{separation}write the paths relative to the folder of the file in a column `path`"),
        ));
    }
    let is_path = |place: usize| paths.as_ref().is_some_and(|(column, _)| *column == place);
    let candidates: Vec<usize> =
        (0..columns.len()).filter(|&place| !is_path(place) && Some(place) != split_column).collect();
    let labels: Vec<usize> =
        candidates.iter().copied().filter(|&place| !names_division(&header[place])).collect();
    let mut levels = chain(columns, &labels);
    if levels.is_empty() {
        // What is named like a division may be the only label.
        levels = chain(columns, &candidates);
    }
    let no_levels = candidates
        .iter()
        .filter(|place| !levels.contains(place))
        .map(|&place| format!("`{}` ({})", header[place], why_no_level(&table, place, &levels)));
    let left_out: Vec<String> = no_levels.chain(unread.iter().cloned()).collect();
    if levels.is_empty() {
        let found = match left_out.len() {
            0 => String::new(),
            _ => format!("; it has {}", a_few(&left_out)),
        };
        return Err(problem(
            format!("{} has no column of labels that images share{found}", file.display()),
            "add a column per level of the taxonomy, each with a label per image",
        ));
    }
    let levels_found: Vec<&str> = levels.iter().map(|&column| header[column].as_str()).collect();
    let (mut data, mut split) = (Table::new(), Table::new());
    data.insert("kind".into(), kind.name().into());
    data.insert("path".into(), file.to_string_lossy().as_ref().into());
    data.insert("levels".into(), levels_found.to_vec().into());
    if let Some((_, Some(images))) = &paths {
        data.insert("images".into(), images.to_string_lossy().as_ref().into());
    }
    let image_column = bytes.as_deref().or(paths.map(|(column, _)| header[column].as_str()));
    if let Some(name) = image_column.filter(|name| *name != "path") {
        data.insert("path_column".into(), name.into());
    }
    if let Some(name) = split_column.map(|column| &header[column]).filter(|name| *name != "split") {
        data.insert("split_column".into(), name.as_str().into());
    }
    name_splits(&mut data, &splits);
    // A single split leaves nothing to evaluate on, or to train on.
    if splits.len() < 2 {
        split.insert("test_fraction".into(), TEST_FRACTION.into());
    }
    if !unused.is_empty() {
        state_evaluation_split(&mut data, &splits);
    }
    let what = match kind {
        DataKind::Csv => "a CSV file".to_owned(),
        _ if file.is_dir() => "a folder of Parquet files".to_owned(),
        _ => "a Parquet file".to_owned(),
    };
    let found = format!(
        "{what} with {} and the levels {}{}",
        counted(rows, "image", "images"),
        levels_found.join(", "),
        not_used("the split", "the splits", &unused)
    );
    match left_out.len() {
        0 => {}
        1 => notes.push(format!("left out the column {}", left_out[0])),
        _ => notes.push(format!("left out the columns {}", a_few(&left_out))),
    }
    Ok(Layout { data, split, found, names_levels: false, notes })
}

/// Why a column is none of the levels.
fn why_no_level(table: &Cells, place: usize, levels: &[usize]) -> String {
    let (name, cells) = (&table.header[place], &table.columns[place]);
    let classes = cells.iter().collect::<BTreeSet<_>>().len();
    let empty: Vec<usize> = (0..cells.len()).filter(|&row| cells[row].is_empty()).collect();
    if classes == 1 && empty.is_empty() {
        return "one value".into();
    }
    if let [first, ..] = empty[..] {
        let row = table.row_name(first);
        let (empty, all) = (count(empty.len()), counted(cells.len(), "cell", "cells"));
        return match &*empty {
            "1" => format!("1 of {all} is without a label: {row}"),
            _ => format!("{empty} of {all} are without a label, the first in {row}"),
        };
    }
    if classes == cells.len() {
        return "another value for each image".into();
    }
    if names_division(name) {
        return "no label".into();
    }
    let is_above = |coarse: usize, fine: usize| determines(&table.columns, fine, coarse);
    for &level in levels {
        let name = &table.header[level];
        match (is_above(place, level), is_above(level, place)) {
            (true, true) => return format!("the same classes as `{name}`, one for one"),
            (false, false) => return format!("its classes are neither above nor below those of `{name}`"),
            _ => {}
        }
    }
    "not in line with the levels".into()
}

/// The header of a CSV file, and its cells by column.
fn read_columns(file: &Path) -> Result<(Vec<String>, Vec<Column>)> {
    let mut table = CsvFile::open(file)?;
    let header = table.header();
    let mut columns = vec![Vec::new(); header.len()];
    let mut texts = HashSet::new();
    while let Some((_, record)) = table.next_row()? {
        for (column, cell) in columns.iter_mut().zip(record) {
            column.push(shared(&mut texts, cell.trim()));
        }
    }
    Ok((header, columns))
}

/// The column whose cells name files, and the folder that they are relative to if it is not that of the CSV file.
fn path_column(columns: &[Column], folder: &Path) -> Option<(usize, Option<PathBuf>)> {
    const LOOKED_AT: usize = 20;
    let names_files = |column: &[Rc<str>], folder: &Path| {
        !column.is_empty()
            && column.iter().take(LOOKED_AT).all(|cell| !cell.is_empty() && folder.join(&**cell).is_file())
    };
    let inside = ["images", "img", "imgs", "photos", "pictures"].map(|name| folder.join(name));
    let folders = [None].into_iter().chain(inside.iter().map(Some));
    folders.into_iter().find_map(|images| {
        let folder = images.map_or(folder, PathBuf::as_path);
        let column = columns.iter().position(|column| names_files(column, folder))?;
        Some((column, images.cloned()))
    })
}

/// Whether every cell is the name of a split, or empty, and some are names.
fn is_split_column(column: &[Rc<str>]) -> bool {
    let known = |cell: &Rc<str>| cell.is_empty() || is_split_name(cell);
    column.iter().all(known) && column.iter().any(|cell| !cell.is_empty())
}

/// Whether a column of this name divides the images, as `official_split` does.
fn names_division(column: &str) -> bool {
    let column = column.to_lowercase();
    column.contains("split") || DIVISIONS.contains(&column.as_str())
}

/// Refuses two names of a split, of which a config can give one. Of two splits to evaluate on, one is used.
fn check_split_names(present: &BTreeSet<&str>, column: &str) -> Result<()> {
    for (key, names) in SPLIT_NAMES {
        let named: Vec<&str> = present.iter().copied().filter(|name| is_named(name, names)).collect();
        // `test` and `validation` are two splits; other names, and other spellings, are two names of one.
        let are_one = |one: &str, other: &str| key != "test" || one.eq_ignore_ascii_case(other);
        for (place, used) in named.iter().enumerate() {
            if let Some(unused) = named[place + 1..].iter().find(|other| are_one(used, other)) {
                return Err(problem(
                    format!("{column} has both `{used}` and `{unused}`, and akin uses only one of them"),
                    format!("rename the cells of `{unused}` to `{used}`, or empty them"),
                ));
            }
        }
    }
    Ok(())
}

/// The longest chain of columns, coarse → fine, in which each label has one label above it. Columns that number the
/// labels of another column, or that give each image a label of its own, are left out.
fn chain(columns: &[Column], candidates: &[usize]) -> Vec<usize> {
    let classes = |column: usize| columns[column].iter().collect::<BTreeSet<_>>().len();
    let rows = columns.first().map_or(0, Vec::len);
    let mut candidates: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&column| {
            (2..rows).contains(&classes(column)) && columns[column].iter().all(|cell| !cell.is_empty())
        })
        .collect();
    // If a number and a name stand for the same classes, the name comes first.
    let is_numbers = |column: usize| columns[column].iter().all(|cell| cell.parse::<f64>().is_ok());
    candidates.sort_by_key(|&column| (classes(column), is_numbers(column)));
    // The longest chain that ends in each column, and the column before it.
    let mut best: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
    for (place, &fine) in candidates.iter().enumerate() {
        let longer = candidates[..place]
            .iter()
            .filter(|&&coarse| classes(coarse) < classes(fine) && determines(columns, fine, coarse))
            .map(|&coarse| (best[&coarse].0 + 1, coarse))
            // The first of equal columns counts.
            .fold(None, |found: Option<(usize, usize)>, new| match found {
                Some(found) if found.0 >= new.0 => Some(found),
                _ => Some(new),
            });
        best.insert(fine, longer.map_or((1, None), |(length, coarse)| (length, Some(coarse))));
    }
    let mut end = None;
    for &column in &candidates {
        let better = |end: usize| (best[&column].0, classes(column)) > (best[&end].0, classes(end));
        if end.is_none_or(better) {
            end = Some(column);
        }
    }
    let mut levels = Vec::new();
    while let Some(column) = end {
        levels.insert(0, column);
        end = best[&column].1;
    }
    levels
}

/// Whether all images of a class of one column are of one class of another.
fn determines(columns: &[Column], fine: usize, coarse: usize) -> bool {
    let mut above = HashMap::new();
    columns[fine]
        .iter()
        .zip(&columns[coarse])
        .all(|(fine, coarse)| *above.entry(fine).or_insert(coarse) == coarse)
}

// --- Splits ---------------------------------------------------------------------------------------------

/// Of the splits that are present, those that are used: the training split with queries and gallery, or with the first
/// that can be evaluated of `test`, `val` and their other names. None if the training split or the others are missing.
fn used_splits(present: &[String]) -> Vec<String> {
    match SPLIT_NAMES.map(|(_, names)| first_named(present, names)) {
        [Some(train), _, Some(query), Some(gallery)] => vec![train, query, gallery],
        [Some(train), Some(test), ..] => vec![train, test],
        _ => Vec::new(),
    }
}

/// A remark on splits that are not used; nothing if there are none.
fn not_used(one: &str, several: &str, names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!(" ({one} {name} is not used)"),
        _ => format!(" ({several} {} are not used)", names.join(", ")),
    }
}

// --- Folders ----------------------------------------------------------------------------------------

/// A tree of folders with images.
fn folder_layout(root: &Path) -> Result<Layout> {
    let (mut data, mut split) = (toml::toml! { kind = "folder" }, Table::new());
    data.insert("path".into(), root.to_string_lossy().as_ref().into());
    let present = folders_in(root)?;
    let splits = used_splits(&present);
    let mut images = Images::default();
    if splits.is_empty() {
        images.add(root)?;
    } else {
        name_splits(&mut data, &splits);
        for name in &splits {
            images.add(&root.join(name))?;
        }
    }
    let depth = images.check(root)?;
    if splits.is_empty() {
        if images.classes.len() < FEWEST_CLASSES {
            return Err(problem(
                format!(
                    "{} has {}, and half of the classes are held out to evaluate on classes that were not trained on",
                    root.display(),
                    counted(images.classes.len(), "folder of images", "folders of images")
                ),
                format!("sort the images into at least {FEWEST_CLASSES} folders, one for each class"),
            ));
        }
        split.insert("test_fraction".into(), TEST_FRACTION.into());
    }
    if images.by_depth.len() > 1 {
        data.insert("ragged".into(), "fill".into());
    }
    data.insert("levels".into(), level_names(depth).into());
    let named = SPLIT_NAMES.iter().flat_map(|(_, names)| *names);
    let unused: Vec<&str> = named
        .flat_map(|name| present.iter().filter(|other| other.eq_ignore_ascii_case(name)))
        .filter(|name| !splits.is_empty() && !splits.contains(name))
        .map(String::as_str)
        .collect();
    if !unused.is_empty() {
        state_evaluation_split(&mut data, &splits);
    }
    let not_used = not_used("the folder", "the folders", &unused);
    let found = format!(
        "a folder tree with {} in {}, {} deep{not_used}",
        counted(images.by_depth.values().sum(), "image", "images"),
        counted(images.classes.len(), "folder", "folders"),
        counted(depth, "level", "levels")
    );
    let deepest = images.by_depth.keys().max().copied().unwrap_or(0);
    let filled = |(&depth, &count): (&usize, &usize)| {
        format!(
            "{} {} deep, where the levels below repeat the name of the folder",
            counted(count, "image is", "images are"),
            counted(depth, "folder", "folders")
        )
    };
    let notes = images.by_depth.iter().filter(|(depth, _)| **depth < deepest).map(filled).collect();
    Ok(Layout { data, split, found, names_levels: true, notes })
}

/// The names of the folders in a folder, sorted. Those that are not UTF-8 are no splits.
fn folders_in(root: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(root)?
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir())?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The first of these names that is present, as it is written there.
fn first_named(present: &[String], names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let exact = present.iter().find(|other| other == name);
        exact.or_else(|| present.iter().find(|other| other.eq_ignore_ascii_case(name))).cloned()
    })
}

/// The images of a tree, without their contents.
#[derive(Default)]
struct Images {
    /// How many images stand how many folders deep.
    by_depth: BTreeMap<usize, usize>,
    /// The folders with images.
    classes: BTreeSet<PathBuf>,
    /// Images that are in no folder.
    loose: Vec<PathBuf>,
}

impl Images {
    fn add(&mut self, folder: &Path) -> Result<()> {
        for entry in image_files(folder)? {
            match entry.depth() - 1 {
                0 => self.loose.push(entry.into_path()),
                depth => {
                    *self.by_depth.entry(depth).or_default() += 1;
                    let class = entry.path().strip_prefix(folder).ok().and_then(Path::parent);
                    self.classes.extend(class.map(Path::to_owned));
                }
            }
        }
        Ok(())
    }

    /// The depth of the tree.
    fn check(&self, root: &Path) -> Result<usize> {
        let Some(&depth) = self.by_depth.keys().last() else {
            let (message, hint) = match self.loose.len() {
                0 => (
                    "has no images".to_owned(),
                    "give the folder that holds the images: JPEG, PNG or WebP files",
                ),
                loose => (
                    format!("has {}, but no folders of classes", counted(loose, "image", "images")),
                    "sort the images into folders, one for each class: PHOTOS/Owls/1.jpg, PHOTOS/Hawks/2.jpg",
                ),
            };
            return Err(problem(format!("{} {message}", root.display()), hint));
        };
        if !self.loose.is_empty() {
            let names: Vec<_> = self.loose.iter().map(|path| path.display()).collect();
            return Err(problem(
                format!(
                    "{} in no folder of a class: {}",
                    counted(names.len(), "image is", "images are"),
                    a_few(&names)
                ),
                format!(
                    "move {} into the folders of their classes",
                    if names.len() == 1 { "it" } else { "them" }
                ),
            ));
        }
        Ok(depth)
    }
}

/// Names for the levels of a tree that has none.
fn level_names(depth: usize) -> Vec<String> {
    match depth {
        1 => vec!["class".into()],
        2 => vec!["group".into(), "class".into()],
        3 => vec!["group".into(), "subgroup".into(), "class".into()],
        depth => (1..depth).map(|level| format!("level {level}")).chain(["class".into()]).collect(),
    }
}

/// Writes the names of splits that are not akin's own.
fn name_splits(data: &mut Table, present: &[String]) {
    for (key, names) in SPLIT_NAMES {
        if let Some(name) = first_named(present, names).filter(|name| name != key) {
            name_split(data, key, &name);
        }
    }
}

/// Writes the name of a split.
fn name_split(data: &mut Table, key: &str, name: &str) {
    if let Value::Table(splits) = data.entry("splits").or_insert_with(|| Table::new().into()) {
        splits.insert(key.into(), name.into());
    }
}

/// Writes which of the splits is evaluated, also if it has akin's own name: others are present that it could be.
fn state_evaluation_split(data: &mut Table, used: &[String]) {
    if let Some(test) = first_named(used, SPLIT_NAMES[1].1) {
        name_split(data, "test", &test);
    }
}

/// The counts of a data set in words: `12 images for training, 12 for evaluation`.
pub fn sizes(dataset: &Dataset) -> String {
    let level = dataset.taxonomy.depth();
    let part = |(name, items): (&str, &[usize])| {
        let classes: BTreeSet<u32> = dataset.classes(items, level).into_iter().collect();
        format!(
            "{name} {} of {}",
            counted(items.len(), "image", "images"),
            counted(classes.len(), "class", "classes")
        )
    };
    let parts: Vec<String> = dataset.splits.named().into_iter().map(part).collect();
    let levels: Vec<String> = (1..=level).map(|level| count(dataset.taxonomy.class_count(level))).collect();
    format!("{}; {} classes by level", parts.join(", "), levels.join(" → "))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{files, refusal, tree};
    use super::*;

    #[test]
    fn splits_may_be_written_in_capital_letters() {
        let images: Vec<String> = ["Train", "TEST"]
            .iter()
            .flat_map(|split| {
                ["Owls/1.jpg", "Owls/2.jpg", "Hawks/1.jpg"].map(|image| format!("{split}/{image}"))
            })
            .collect();
        let layout = found(&tree(&images.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(layout.levels(), ["class"]);
        assert_eq!(
            [text(&layout, "train"), text(&layout, "test")],
            ["Train", "TEST"].map(|name| Some(name.into()))
        );
        assert!(text(&layout, "test_fraction").is_none());

        let csv = "path,class,Set\na.jpg,x,Train\nb.jpg,x,Train\nc.jpg,y,Test\nd.jpg,y,Test\n";
        let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
        let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
        assert_eq!(
            ["split_column", "train", "test"].map(|key| text(&layout, key).unwrap()),
            ["Set", "Train", "Test"]
        );
    }

    #[test]
    fn the_only_column_of_labels_may_be_named_like_a_division() {
        let csv = "path,phase\na.jpg,solid\nb.jpg,solid\nc.jpg,liquid\nd.jpg,liquid\n";
        let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
        let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
        assert_eq!(layout.levels(), ["phase"]);
    }

    #[test]
    fn a_second_division_of_the_images_is_no_level() {
        let csv = "path,character,split,official_split\na.jpg,x,train,background\nb.jpg,x,train,background\n\
                   c.jpg,y,test,background\nd.jpg,y,test,background\ne.jpg,z,test,evaluation\nf.jpg,z,test,evaluation\n";
        let images = ["a", "b", "c", "d", "e", "f"].map(|name| format!("{name}.jpg"));
        let images: Vec<(&str, &[u8])> = images.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
        assert_eq!(layout.levels(), ["character"]);
    }

    #[test]
    fn classes_are_held_out_where_there_is_only_one_split() {
        let csv = "path,class,split\na.jpg,x,train\nb.jpg,x,train\nc.jpg,y,train\nd.jpg,y,\n";
        let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
        let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
        assert_eq!(text(&layout, "test_fraction").as_deref(), Some("0.5"));
    }

    fn found(folder: &tempfile::TempDir) -> Layout {
        detect(folder.path()).unwrap()
    }

    /// The value of a key of `[data]`, of its table `splits`, or of `[split]`.
    fn text(layout: &Layout, key: &str) -> Option<String> {
        let splits = layout.data.get("splits").and_then(Value::as_table);
        let value = layout.data.get(key).or(splits.and_then(|splits| splits.get(key)));
        let value = value.or(layout.split.get(key))?;
        Some(value.as_str().map_or(value.to_string(), str::to_owned))
    }

    /// A tree of empty images that can be read as a data set.
    fn photos() -> tempfile::TempDir {
        let paths: Vec<String> = ["Birds/Owls", "Birds/Hawks", "Cats/Lions", "Cats/Lynxes"]
            .iter()
            .flat_map(|class| (0..3).map(move |number| format!("{class}/{number}.jpg")))
            .collect();
        tree(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn reads(layout: &Layout) -> Dataset {
        let (data, split) = (layout.data.clone(), layout.split.clone());
        let (data, split) = (data.try_into().unwrap(), split.try_into().unwrap());
        Dataset::load(&Selection { data, split, seed: 0 }).unwrap()
    }

    #[test]
    fn folders_without_splits_hold_out_half_of_the_classes() {
        let photos = photos();
        let layout = found(&photos);
        assert_eq!(layout.levels(), ["group", "class"]);
        assert_eq!(text(&layout, "test_fraction").as_deref(), Some("0.5"));
        let dataset = reads(&layout);
        assert_eq!(
            sizes(&dataset),
            "train 6 images of 2 classes, test 6 images of 2 classes; 2 → 4 classes by level"
        );
    }

    #[test]
    fn folders_of_splits_are_recognised_by_common_names() {
        let layout = found(&tree(&["training/a/1.jpg", "training/b/1.jpg", "val/c/1.jpg", "val/c/2.jpg"]));
        assert_eq!(
            (text(&layout, "train").as_deref(), text(&layout, "test").as_deref()),
            (Some("training"), Some("val"))
        );
        assert_eq!((layout.levels(), text(&layout, "test_fraction")), (vec!["class".to_owned()], None));
        let layout = found(&tree(&["train/a/1.jpg", "query/b/1.jpg", "gallery/b/2.jpg"]));
        assert_eq!(text(&layout, "query"), None, "the names of akin need no setting");
    }

    #[test]
    fn folders_of_splits_that_are_not_used_are_named() {
        let images = ["train/a/1.jpg", "test/b/1.jpg", "test/b/2.jpg", "val/c/1.jpg"];
        let layout = found(&tree(&images));
        assert!(layout.found.ends_with(" (the folder val is not used)"), "{}", layout.found);
        assert!(!found(&tree(&images[..3])).found.contains("not used"));
        let more = [&images[..], &["query/d/1.jpg"]].concat();
        assert!(found(&tree(&more)).found.ends_with(" (the folders val, query are not used)"));
    }

    #[test]
    fn a_tree_of_uneven_depth_is_filled() {
        let uneven = tree(&["a/1.jpg", "b/x/1.jpg", "b/y/1.jpg", "c/z/1.jpg"]);
        let layout = found(&uneven);
        assert_eq!((text(&layout, "ragged").as_deref(), layout.levels().len()), (Some("fill"), 2));
    }

    #[test]
    fn folders_that_cannot_be_used_are_refused_with_a_reason() {
        for (images, message) in [
            (&["notes.txt"][..], "has no images"),
            (&["1.jpg", "2.jpg"], "has 2 images, but no folders of classes"),
            (&["1.jpg", "a/1.jpg", "b/1.jpg"], "1 image is in no folder of a class: "),
            (&["a/1.jpg", "b/1.jpg"], "has 2 folders of images, and half"),
        ] {
            let (found, hint) = refusal(detect(tree(images).path()));
            assert!(found.contains(message) && !hint.is_empty(), "{found}");
        }
        assert!(refusal(detect(Path::new("/nowhere"))).0.contains("cannot be read"));
    }

    #[test]
    fn levels_can_be_named() {
        let photos = photos();
        let mut layout = found(&photos);
        layout.name_levels(&["order".into(), "species".into()]).unwrap();
        assert_eq!(reads(&layout).taxonomy.level_names(), ["order", "species"]);
        assert!(refusal(layout.name_levels(&["species".into()])).0.contains("1 level is given"));
    }

    const TABLE: &str = "id,file,species_id,species,family,colour,set
0,img/a.jpg,7,Barn owl,Owls,white,train
1,img/b.jpg,7,Barn owl,Owls,brown,train
2,img/c.jpg,8,Tawny owl,Owls,brown,val
3,img/d.jpg,9,Kestrel,Hawks,brown,val
4,img/e.jpg,9,Kestrel,Hawks,white,val
";

    #[test]
    fn a_csv_file_is_read_for_its_paths_splits_and_levels() {
        let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
        let mut all = vec![("birds.csv", TABLE.as_bytes())];
        all.extend(images.iter().map(|&image| (image, &b""[..])));
        let folder = files(&all);
        let layout = found(&folder);
        assert_eq!(layout.levels(), ["family", "species"], "the numbers of classes are no level");
        let expected = [("kind", "csv"), ("path_column", "file"), ("split_column", "set"), ("test", "val")];
        for (key, value) in expected {
            assert_eq!(text(&layout, key).as_deref(), Some(value));
        }
        assert_eq!(reads(&layout).splits.train.len(), 2);
    }

    #[test]
    fn a_csv_file_without_paths_or_labels_is_refused() {
        let folder = files(&[("a.csv", b"x,y\n1,2\n"), ("b.csv", b"path\na.jpg\n"), ("a.jpg", b"")]);
        assert!(refusal(detect(&folder.path().join("a.csv"))).0.contains("no column of"));
        assert!(refusal(detect(&folder.path().join("b.csv"))).0.contains("no column of labels"));
    }

    /// `birds.csv` with other names of splits, and its images.
    fn birds(table: &str) -> tempfile::TempDir {
        let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
        let images = images.iter().map(|&image| (image, &b""[..]));
        files(&[("birds.csv", table.as_bytes())].into_iter().chain(images).collect::<Vec<_>>())
    }

    #[test]
    fn a_csv_file_with_two_names_of_a_split_is_refused() {
        for (table, names) in [
            (TABLE.replacen(",train", ",training", 1), ["train", "training"]),
            (TABLE.replacen(",val", ",Val", 1), ["Val", "val"]),
            (TABLE.replacen(",val", ",Val", 1).replacen(",train", ",test", 1), ["Val", "val"]),
        ] {
            let (message, hint) = refusal(detect(&birds(&table).path().join("birds.csv")));
            let both = format!("both `{}` and `{}`", names[0], names[1]);
            assert!(message.contains("the column `set` of ") && message.contains(&both), "{message}");
            assert_eq!(hint, format!("rename the cells of `{}` to `{}`, or empty them", names[1], names[0]));
        }
    }

    #[test]
    fn a_column_with_two_evaluation_splits_uses_one() {
        let table = TABLE.replace("Hawks,brown,val", "Hawks,brown,test").replace("white,val", "white,test");
        let folder = birds(&table);
        let layout = found(&folder);
        assert!(layout.found.contains("with 4 images"), "{}", layout.found);
        assert!(layout.found.ends_with("(the split val is not used)"), "{}", layout.found);
        assert_eq!(text(&layout, "test").as_deref(), Some("test"));
        assert_eq!(reads(&layout).paths.len(), 4);

        let unpublished = table.replace("9,Kestrel,Hawks", ",,");
        let layout = found(&birds(&unpublished));
        assert_eq!(text(&layout, "test").as_deref(), Some("val"));
        let note = "no image of the split test has a label in the column `species_id`";
        assert_eq!(layout.notes[0], note);
        assert_eq!(layout.levels(), ["species"]);
    }

    #[test]
    fn a_folder_says_why_its_csv_file_cannot_be_used() {
        let folder =
            files(&[("labels.csv", b"file,kind\n1.jpg,a\n3.jpg,b\n"), ("1.jpg", b""), ("2.jpg", b"")]);
        let (message, hint) = refusal(detect(folder.path()));
        assert!(message.contains("no column of ") && message.contains("labels.csv"), "{message}");
        assert!(!message.contains("folders of classes"), "one error at a time: {message}");
        assert!(hint.contains("in a column `path`") && hint.contains("sort the images"), "{hint}");
        // With folders of classes, the table is something else.
        let folder = files(&[("notes.csv", b"x,y\n1,2\n"), ("a/1.jpg", b""), ("b/2.jpg", b"")]);
        let (message, hint) = refusal(detect(folder.path()));
        assert!(message.contains("has 2 folders of images") && !hint.contains("column"), "{message}; {hint}");
    }

    #[test]
    fn parquet_files_are_read_for_their_images_splits_and_levels() {
        let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
        let layout = detect(&hub).unwrap();
        assert_eq!(layout.found, "a folder of Parquet files with 36 images and the levels kind, variety");
        assert_eq!(text(&layout, "path_column").as_deref(), Some("image"));
        assert_eq!((text(&layout, "split_column"), text(&layout, "test_fraction")), (None, None));
        assert_eq!(reads(&layout).splits.train.len(), 24);

        let one = detect(&hub.join("test-00000-of-00001.parquet")).unwrap();
        assert_eq!(
            text(&one, "test_fraction").as_deref(),
            Some("0.5"),
            "one split leaves nothing to train on"
        );
        assert_eq!(reads(&one).splits.train.len(), 6);
        let table = detect(&hub.join("../table-snappy.parquet")).unwrap();
        assert_eq!(
            (text(&table, "path_column").as_deref(), table.levels()),
            (Some("picture"), vec!["kind".into()])
        );
    }

    #[test]
    fn a_column_that_lacks_a_label_is_left_out_with_its_row() {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/table-snappy.parquet");
        let notes = detect(&table).unwrap().notes.join("; ");
        let row = format!("`variety` (1 of 6 cells is without a label: {}, row 6)", table.display());
        assert!(notes.contains(&row), "{notes}");

        // The rows of a file that is not used are not counted.
        let hub = |name: &str| fs::read(table.with_file_name("hub").join(name)).unwrap();
        let folder = files(&[
            ("train-00000-of-00001.parquet", &hub("train-00000-of-00002.parquet")),
            ("extra-00000-of-00001.parquet", &hub("train-00001-of-00002.parquet")),
            ("test-00000-of-00001.parquet", &hub("test-00000-of-00001.parquet")),
        ]);
        let layout = found(&folder);
        assert_eq!(
            layout.found,
            "a folder of Parquet files with 24 images and the levels kind, variety (the split extra is not used)"
        );
        assert_eq!(text(&layout, "test").as_deref(), Some("test"));
        assert_eq!(reads(&layout).paths.len(), 24);
    }

    #[test]
    fn parquet_files_may_be_in_a_folder_for_each_split() {
        let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
        let [train, more, test] = ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"]
            .map(|name| fs::read(hub.join(name).with_extension("parquet")).unwrap());
        let folder = files(&[
            ("train/0000.parquet", &train[..]),
            ("train/0001.parquet", &more),
            ("validation/0000.parquet", &test),
            ("test/0000.parquet", UNLABELLED),
        ]);
        let layout = found(&folder);
        assert!(layout.found.contains("with 36 images"), "{}", layout.found);
        assert_eq!(text(&layout, "test").as_deref(), Some("validation"));
        assert_eq!(reads(&layout).splits.train.len(), 24);
    }

    #[test]
    fn folders_with_parquet_files_are_named_if_their_parent_is_given() {
        let train = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/parquet/hub/train-00000-of-00002.parquet");
        let train = fs::read(train).unwrap();
        let folder = files(&[
            ("fine/train-1.parquet", &train[..]),
            ("coarse/data/train-1.parquet", &train),
            ("x/y", b""),
        ]);
        let (message, hint) = refusal(detect(folder.path()));
        let inside = ["coarse", "fine"].map(|name| folder.path().join(name).display().to_string()).join(", ");
        assert!(message.ends_with(&format!("but there are Parquet files in {inside}")), "{message}");
        assert!(hint.contains("one of these folders"), "{hint}");
    }

    /// The class of every image is -1, as where labels are not published.
    const UNLABELLED: &[u8] = include_bytes!("../../tests/fixtures/parquet/unlabelled.parquet");

    #[test]
    fn a_split_without_labels_is_not_used_if_there_is_another() {
        let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
        let train = fs::read(hub.join("train-00000-of-00002.parquet")).unwrap();
        let validation = fs::read(hub.join("test-00000-of-00001.parquet")).unwrap();
        let all =
            [("train-1.parquet", &train[..]), ("val-1.parquet", &validation), ("test-1.parquet", UNLABELLED)];
        let layout = found(&files(&all));
        assert_eq!((text(&layout, "test").as_deref(), layout.levels().len()), (Some("val"), 2));
        assert_eq!(layout.notes, ["no image of the split test has a label in the column `kind`"]);
        let only = [all[0], all[2]];
        let layout = found(&files(&only));
        assert_eq!(layout.levels(), ["variety"]);
        assert!(layout.notes[0].contains("`kind` (12 of 24 cells are without a label, the first in "));
    }

    #[test]
    fn a_column_that_crosses_a_level_is_left_out_and_names_it() {
        let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
        let mut all = vec![("birds.csv", TABLE.as_bytes())];
        all.extend(images.iter().map(|&image| (image, &b""[..])));
        let notes = found(&files(&all)).notes.join("; ");
        assert!(notes.contains("`species_id` (the same classes as `species`, one for one)"), "{notes}");
        assert!(
            notes.contains("`colour` (its classes are neither above nor below those of `family`)"),
            "{notes}"
        );
    }

    #[test]
    fn a_column_that_cannot_be_read_is_left_out_with_a_note() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet");
        let notes = |name: &str| {
            let layout = detect(&fixtures.join(name)).unwrap();
            assert_eq!(layout.levels(), ["kind"]);
            layout.notes.join("; ")
        };
        let delta = notes("table-delta.parquet");
        assert!(delta.contains("`path` (written in a way that akin does not read)"), "{delta}");
        assert_eq!(notes("table-long.parquet"), "left out the column `caption` (long texts)");
    }

    #[test]
    fn a_published_data_set_is_known_by_its_files() {
        let folder = files(&[
            ("images_background/Latin/character01/1.png", b""),
            ("images_background/Latin/character02/1.png", b""),
            ("images_evaluation/Tengwar/character01/1.png", b""),
            ("images_evaluation/Tengwar/character01/2.png", b""),
        ]);
        let layout = found(&folder);
        assert_eq!(text(&layout, "kind").as_deref(), Some("omniglot"));
        assert!(layout.found.contains("Omniglot"), "{}", layout.found);
    }
}
