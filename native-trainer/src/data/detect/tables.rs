//! Tables of labels: CSV and Parquet files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter::repeat_n;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use akin_base::problem::{a_few, problem};
use akin_base::quantities::{count, counted};
use akin_formats::csv_file::CsvFile;
use akin_formats::parquet_file::{Kind, ParquetFile};
use anyhow::Result;
use toml::Table;

use super::Layout;
use super::splits::{TEST_FRACTION, name_splits, not_used, state_evaluation_split, used_splits};
use crate::config::DataKind;
use crate::data::listing::{SPLIT_NAMES, is_named, is_split_name};
use crate::data::missing::{USUAL_WORDS, stands_for_unknown};
use crate::data::parquet::{self, Labels};
use crate::data::table::{named_file, row_name};

/// Names of columns that divide the images in some way. They are no labels.
const DIVISIONS: [&str; 6] = ["set", "subset", "partition", "phase", "fold", "usage"];

/// A CSV file with a column of image paths and columns of labels.
pub(super) fn csv_layout(file: &Path) -> Result<Layout> {
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
pub(super) fn parquet_layout(path: &Path) -> Result<Layout> {
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

/// The words for an unknown label in each column.
struct UnknownWords(Vec<BTreeSet<&'static str>>);

impl UnknownWords {
    /// Those of some columns.
    fn of(&self, columns: &[usize]) -> Vec<String> {
        let words: BTreeSet<&str> = columns.iter().flat_map(|&column| &self.0[column]).copied().collect();
        words.into_iter().map(str::to_owned).collect()
    }
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

    /// Empties the cells of some columns that hold a usual word for an unknown label.
    fn empty_unknown(&mut self, is_label: impl Fn(usize) -> bool) -> UnknownWords {
        let empty: Rc<str> = "".into();
        let mut words = vec![BTreeSet::new(); self.columns.len()];
        for (place, column) in self.columns.iter_mut().enumerate().filter(|(place, _)| is_label(*place)) {
            for cell in column {
                if let Some(word) = USUAL_WORDS.into_iter().find(|word| stands_for_unknown(cell, word)) {
                    words[place].insert(word);
                    *cell = empty.clone();
                }
            }
        }
        UnknownWords(words)
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
    let paths = if table.images.is_some() { None } else { path_column(&table.columns, table.folder) };
    let unknown_words = table.empty_unknown(|place| {
        Some(place) != split_column && paths.as_ref().is_none_or(|(column, _)| *column != place)
    });
    let Cells { kind, path: file, header, columns, images: bytes, unread, .. } = &table;
    let rows = columns.first().map_or(0, Vec::len);
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
    let mut levels = chain(columns, &labels, Above::Always);
    if levels.is_empty() {
        // What is named like a division may be the only label.
        levels = chain(columns, &candidates, Above::Always);
    }
    let by_path = chain(columns, &labels, Above::ExceptFew);
    let qualify = by_path.len() > levels.len();
    if qualify {
        levels = by_path;
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
    if qualify {
        data.insert("qualify".into(), true.into());
        notes.push(several_parents(columns, header, &levels));
    }
    let (words, holes) = (unknown_words.of(&levels), levels.iter().any(|&level| has_holes(&columns[level])));
    if holes {
        data.insert("missing".into(), "unknown".into());
    }
    if !words.is_empty() {
        notes.push(format!("{} for an unknown label: data.unknown_words", stand(&words)));
        data.insert("unknown_words".into(), words.into());
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
    let choose = if left_out.len() > unread.len() { "; `--levels` chooses other columns" } else { "" };
    match left_out.len() {
        0 => {}
        1 => notes.push(format!("left out the column {}{choose}", left_out[0])),
        _ => notes.push(format!("left out the columns {}{choose}", a_few(&left_out))),
    }
    Ok(Layout { data, split, found, names_levels: false, notes })
}

/// Why a column is none of the levels.
fn why_no_level(table: &Cells, place: usize, levels: &[usize]) -> String {
    let (name, cells) = (&table.header[place], &table.columns[place]);
    let classes = class_count(cells);
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
    if classes + empty.len() == cells.len() {
        return "another value for each image".into();
    }
    if names_division(name) {
        return "no label".into();
    }
    let is_above = |coarse: usize, fine: usize| {
        parents(&table.columns, fine, coarse).values().all(|above| above.len() == 1)
    };
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
            && column
                .iter()
                .take(LOOKED_AT)
                .all(|cell| !cell.is_empty() && named_file(folder, cell).is_file())
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

/// When a column is above another.
#[derive(Clone, Copy, PartialEq)]
enum Above {
    /// If each label of the finer column has one label above it.
    Always,
    /// If all but few of them do: names such as `Other`, and at most one of twenty labels.
    ExceptFew,
}

impl Above {
    fn holds(self, columns: &[Column], fine: usize, coarse: usize) -> bool {
        let parents = parents(columns, fine, coarse);
        // A row with the finer label alone could not be read.
        if parents.values().any(BTreeSet::is_empty) {
            return false;
        }
        let several = parents.iter().filter(|(_, above)| above.len() > 1);
        match self {
            Self::Always => several.count() == 0,
            Self::ExceptFew => {
                let names = several.filter(|(label, _)| !CATCH_ALL.contains(&label.to_lowercase().as_str()));
                names.count() * 20 <= parents.len()
            }
        }
    }
}

/// Names of classes that hold what has no class of its own. Each may stand below several classes.
const CATCH_ALL: [&str; 7] = ["other", "others", "misc", "miscellaneous", "mixed", "various", "none"];

/// The longest chain of columns, coarse → fine, in which each label has one label above it. Columns that number the
/// labels of another column, that give each image a label of its own, or that lack most labels are left out.
fn chain(columns: &[Column], candidates: &[usize], above: Above) -> Vec<usize> {
    let classes = |column: usize| class_count(&columns[column]);
    let mut candidates: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|&column| {
            let known = columns[column].iter().filter(|cell| !cell.is_empty()).count();
            (2..known).contains(&classes(column)) && is_mostly_known(&columns[column])
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
            .filter(|&&coarse| classes(coarse) < classes(fine) && above.holds(columns, fine, coarse))
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

/// The labels of one column that stand above each label of another: none if all its cells there are empty.
fn parents(columns: &[Column], fine: usize, coarse: usize) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut parents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (fine, coarse) in columns[fine].iter().zip(&columns[coarse]).filter(|(fine, _)| !fine.is_empty()) {
        let above = parents.entry(fine).or_default();
        above.extend((!coarse.is_empty()).then_some(&**coarse));
    }
    parents
}

/// The number of different labels.
fn class_count(column: &Column) -> usize {
    column.iter().filter(|cell| !cell.is_empty()).collect::<BTreeSet<_>>().len()
}

fn has_holes(column: &Column) -> bool {
    column.iter().any(|cell| cell.is_empty())
}

/// Whether at least half of the cells have a label: of a level, some may be unknown.
fn is_mostly_known(column: &Column) -> bool {
    2 * column.iter().filter(|cell| !cell.is_empty()).count() >= column.len()
}

/// Says which names stand below several classes of the level above.
fn several_parents(columns: &[Column], header: &[String], levels: &[usize]) -> String {
    let found: Vec<String> = levels
        .windows(2)
        .flat_map(|pair| {
            let several = parents(columns, pair[1], pair[0]).into_iter().filter(|(_, above)| above.len() > 1);
            let names: Vec<String> = several.map(|(name, _)| format!("{name:?}")).collect();
            let (coarse, fine) = (&header[pair[0]], &header[pair[1]]);
            (!names.is_empty()).then(|| format!("the {fine} {} under more than one {coarse}", stand(&names)))
        })
        .collect();
    format!("{}, so that a class is its whole path: data.qualify", found.join("; "))
}

/// Names with their verb: `"a" stands`, `"a" and "b" stand`.
fn stand(names: &[String]) -> String {
    format!("{} {}", a_few(names), if names.len() == 1 { "stands" } else { "stand" })
}
