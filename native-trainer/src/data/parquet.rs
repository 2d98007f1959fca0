//! Parquet: a file, or a folder of them, with an image in each row. A column holds the path of the image or the image
//! itself, and others hold its labels and its split.
//!
//! An image that is in the file stands in a column of bytes, or in a group with the members `bytes` and `path`, as
//! Hugging Face's `datasets` writes it. Its bytes are copied once to a temporary file, so that each image can be read at
//! any time and memory does not grow with the data set.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use akin_base::files::Scratch;
use akin_base::machine;
use akin_base::problem::{Advise, a_few, nearest, problem};
use akin_base::quantities::rounded_bytes;
use akin_formats::parquet_file::{Cell, Cells, DictionaryPlace, Kind, ParquetFile};
use anyhow::Result;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::listing::{Entry, ListedImage, Listing, LocalCopy, Source, Split, is_split_name};
use super::storage::{Container, Part};
use super::table::{Rows, row_name};
use crate::config::TableConfig;

/// Parquet files of the user.
pub static ENTRY: Entry = Entry {
    title: "Parquet file",
    layout: "an image in each row, as its path or its bytes, a column per level, split; or a folder of such files",
    content: "the levels, classes and splits that the files name",
    counts: None,
    licence: "yours",
    source: Source::Own,
};

/// Lists the images of a copy.
pub fn list(copy: &LocalCopy<TableConfig>) -> Result<Listing> {
    let files = used_files(copy)?;
    let mut images = Vec::new();
    let mut unpacked = Unpacked::default();
    let mut contents = Vec::new();
    for (container, (path, split)) in files.iter().enumerate() {
        read(copy, path, *split, container, &mut unpacked, &mut images)?;
        contents.push(unpacked.end_file());
    }
    let containers = match unpacked.scratch {
        None => Vec::new(),
        Some(scratch) => {
            let file = Arc::new(Mutex::new(scratch.into_file()));
            let container = |((path, _), contents)| Container::unpacked(path, file.clone(), contents);
            files.into_iter().zip(contents).map(container).collect()
        }
    };
    Ok(Listing { images, identity: copy.settings.identity(), containers })
}

/// The file, or the files of a folder in the order of their names. A folder without any may have them where the hub of
/// Hugging Face puts them: in a folder `data`, or in a folder for each split, such as `train/0000.parquet`.
///
/// # Errors
///
/// A folder that cannot be read, or has none.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = files_in(path)?;
    let inside = path.join("data");
    if files.is_empty() && inside.is_dir() {
        files = files_in(&inside)?;
    }
    if files.is_empty() {
        for folder in split_folders(path)? {
            files.extend(files_in(&folder)?);
        }
    }
    if files.is_empty() {
        return Err(problem(
            format!("{} has no file that ends in .parquet", path.display()),
            "give data.path a Parquet file, or the folder that holds them",
        ));
    }
    Ok(files)
}

/// The paths of the files and folders in a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .advise(|| format!("{} cannot be read", folder.display()), "check its permissions")?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .advise(|| format!("{} cannot be listed", folder.display()), "check the disk")?;
    paths.sort();
    Ok(paths)
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(folder)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")));
    Ok(files)
}

fn split_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = entries(folder)?;
    folders.retain(|path| is_split_name(name_of(path)) && path.is_dir());
    Ok(folders)
}

/// The name of a part of a split: `train-00000-of-00002.parquet`. Some programs write a digest behind the count.
struct PartName<'a> {
    split: &'a str,
    number: &'a str,
    /// The number of parts, and what follows.
    rest: &'a str,
}

impl<'a> PartName<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (start, rest) = name.rsplit_once("-of-")?;
        let (split, number) = start.rsplit_once('-')?;
        let is_part = number.parse::<usize>().is_ok() && rest.starts_with(|c: char| c.is_ascii_digit());
        is_part.then_some(Self { split, number, rest })
    }

    /// The names of all parts, up to the number that could be missing beside this number of files. None if each name has a
    /// digest of its own.
    fn all(&self, files: usize) -> Option<impl Iterator<Item = String>> {
        let Self { split, number, rest } = self;
        let count: usize = rest.split('.').next()?.parse().ok()?;
        // A name can count as far as it likes.
        let parts = 0..count.min(files + 1);
        Some(parts.map(move |part| format!("{split}-{part:0digits$}-of-{rest}", digits = number.len())))
    }
}

fn name_of(file: &Path) -> &str {
    file.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Checks that every part is there that the names of these files count.
///
/// # Errors
///
/// A part that is missing.
fn check_parts(path: &Path, files: &[&Path]) -> Result<()> {
    let names: BTreeSet<&str> = files.iter().map(|file| name_of(file)).collect();
    let parts = names.iter().filter_map(|name| PartName::parse(name)?.all(files.len()).map(Vec::from_iter));
    let missing: BTreeSet<String> = parts.flatten().filter(|part| !names.contains(part.as_str())).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing.into_iter().collect();
    Err(problem(
        format!("{} lacks {}, which the names of the other files count", path.display(), a_few(&missing)),
        "copy the missing files, or rename the others if they are all there is",
    ))
}

/// A file, and the split that its name gives its images; none if each row names a split, or the splits are drawn.
type UsedFile = (PathBuf, Option<Split>);

/// The files that a config uses, in the order of their names. A file whose name tells a split that the config does not
/// name, such as `validation` beside `test`, is not used.
///
/// # Errors
///
/// Files that cannot be read; a name that begins with no split; no file of an evaluation split; a part that is missing.
fn used_files(copy: &LocalCopy<TableConfig>) -> Result<Vec<UsedFile>> {
    let data = copy.settings;
    let mut used: Vec<UsedFile> = Vec::new();
    let mut others = BTreeSet::new();
    for path in files(&data.path)? {
        // A file may lack the column if its name tells the split, but not a column that the config names.
        let tells_by_row = copy.draws_test
            || data.names_split_column()
            || ParquetFile::open(&path)?.find(&data.split_column).is_some();
        if tells_by_row {
            used.push((path, None));
            continue;
        }
        let name = split_of_name(&path);
        match Split::named(&data.splits).into_iter().find(|(_, known)| *known == name) {
            Some((split, _)) => used.push((path, Some(split))),
            None if is_split_name(&name) || PartName::parse(name_of(&path)).is_some() => {
                others.insert(name);
            }
            None => {
                return Err(problem(
                    format!(
                        "{} has no column `{}`, and its name begins with no split: `{name}`",
                        path.display(),
                        data.split_column
                    ),
                    "call the file after its split (`train-1.parquet`), take it out of the folder, or set \
                     data.split_column or split.test_fraction = 0.5",
                ));
            }
        }
    }
    if !others.is_empty() && used.iter().all(|(_, split)| *split == Some(Split::Train)) {
        return Err(no_evaluation_split(data, others));
    }
    check_parts(&data.path, &used.iter().map(|(path, _)| path.as_path()).collect::<Vec<_>>())?;
    Ok(used)
}

/// The error for files of which none is called after an evaluation split, but some after `others`.
fn no_evaluation_split(data: &TableConfig, others: BTreeSet<String>) -> anyhow::Error {
    let others: Vec<String> = others.into_iter().collect();
    let likely = nearest(&data.splits.test, others.iter().map(String::as_str)).unwrap_or(&others[0]);
    problem(
        format!(
            "{} has no file of the split `{}`; its files are called after {}",
            data.path.display(),
            data.splits.test,
            a_few(&others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
        ),
        format!(
            "set data.splits.test = {likely:?} to evaluate on its images, call the files after their splits \
             (`test-1.parquet`), or set split.test_fraction = 0.5"
        ),
    )
}

/// The files that the rows name as their images. Nothing is copied.
///
/// # Errors
///
/// Files that cannot be read.
pub fn named_files(data: &TableConfig) -> Result<Vec<PathBuf>> {
    let mut named = Vec::new();
    for path in files(&data.path)? {
        let mut file = ParquetFile::open(&path)?;
        let mut image_cells = ImageCells::of(&file, &data.path_column)?;
        if image_cells.path.is_none() {
            continue;
        }
        let rows = Rows::new(data, path.parent().unwrap_or(Path::new("")));
        for _ in 0..file.rows() {
            let ImageCell { bytes, name, .. } = image_cells.next(&mut file)?;
            if bytes.is_empty() {
                named.push(rows.path(String::from_utf8_lossy(name).trim()));
            }
        }
    }
    Ok(named)
}

/// The split that a file is called after, as in `train-00000-of-00002.parquet`. If the name of the file is only a number,
/// its folder is called after the split, as in `train/0000.parquet`.
pub fn split_of_name(file: &Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let start = name.split('-').next().unwrap_or_default();
    match file.parent().map(name_of) {
        Some(folder) if is_split_name(folder) && start.bytes().all(|digit| digit.is_ascii_digit()) => {
            folder.to_owned()
        }
        _ => start.to_owned(),
    }
}

/// The columns of a file that are read.
struct Columns {
    image_cells: ImageCells,
    levels: Vec<Labels>,
    splits: Option<Labels>,
    junk: Option<Labels>,
}

impl Columns {
    /// `split` is the split of the whole file, if the file's name says so.
    fn of(file: &ParquetFile, copy: &LocalCopy<TableConfig>, split: Option<Split>) -> Result<Self> {
        let data = copy.settings;
        Ok(Self {
            image_cells: ImageCells::of(file, &data.path_column)?,
            levels: data
                .label_columns()
                .iter()
                .map(|name| Labels::of(file, name, "correct data.levels or data.class_column"))
                .collect::<Result<_>>()?,
            splits: match (copy.draws_test, split) {
                (false, None) => Some(Labels::of(file, &data.split_column, "correct data.split_column")?),
                _ => None,
            },
            junk: match &data.junk_column {
                None => None,
                Some(name) => Some(Labels::of(file, name, "remove data.junk_column")?),
            },
        })
    }
}

/// Checks that the files have the columns that are read, without reading their rows.
///
/// # Errors
///
/// A file that cannot be read, and a missing column.
pub fn check_columns(copy: &LocalCopy<TableConfig>) -> Result<()> {
    for (path, split) in used_files(copy)? {
        Columns::of(&ParquetFile::open(&path)?, copy, split)?;
    }
    Ok(())
}

/// Adds the images of a file, which is the container of this number. `split` is theirs, if the name of the file tells it.
fn read(
    copy: &LocalCopy<TableConfig>,
    path: &Path,
    split: Option<Split>,
    container: usize,
    unpacked: &mut Unpacked,
    images: &mut Vec<ListedImage>,
) -> Result<()> {
    let data = copy.settings;
    let mut file = ParquetFile::open(path)?;
    let Columns { mut image_cells, mut levels, mut splits, mut junk } = Columns::of(&file, copy, split)?;
    let rows = Rows::new(data, path.parent().unwrap_or(Path::new("")));
    for row in 1..=file.rows() {
        let place = || row_name(path, row);
        let labels =
            levels.iter_mut().map(|labels| labels.next(&mut file, place)).collect::<Result<Vec<_>>>()?;
        let split = match &mut splits {
            None => split,
            Some(splits) => rows.split(&splits.next(&mut file, place)?, place)?,
        };
        let junk = match &mut junk {
            None => Vec::new(),
            Some(junk) => Rows::junk(&junk.next(&mut file, place)?),
        };
        let ImageCell { bytes, in_dictionary, name } = image_cells.next(&mut file)?;
        // An empty cell in the column of splits: the image is not used.
        if splits.is_some() && split.is_none() {
            continue;
        }
        if bytes.is_empty() && name.is_empty() {
            return Err(problem(
                format!("{}: `{}` has neither an image nor a path", place(), data.path_column),
                "write one of them, or remove the row",
            ));
        }
        images.push(if bytes.is_empty() {
            let image = rows.file(text(name, &data.path_column, place)?.trim(), labels, split, place)?;
            ListedImage { junk, ..image }
        } else {
            let (start, length) = unpacked.add(bytes, in_dictionary, place)?;
            let labels = rows.labels(labels, place)?;
            let mut path = path.join(row.to_string());
            let name = String::from_utf8_lossy(name);
            path.extend(Path::new(&*name).file_name());
            ListedImage { path, part: Part::Encoded { container, start, length }, labels, junk, split }
        });
    }
    file.check_unchanged()
}

/// Images that are copied out of the files.
#[derive(Default)]
struct Unpacked {
    scratch: Option<Scratch>,
    /// Where each image begins, by its SHA-256. A file may repeat an image in a few bytes.
    starts: HashMap<[u8; 32], u64>,
    /// The images in a dictionary, by their place, so that those that many rows repeat are hashed once.
    known: HashMap<u32, Copied>,
    /// The number of that dictionary.
    dictionary: u64,
    /// The images of this file.
    contents: Sha256,
}

/// An image that is copied.
#[derive(Clone, Copy)]
struct Copied {
    start: u64,
    length: u32,
    digest: [u8; 32],
}

const FREE_SPACE: &str = "free space there, or set TMPDIR to a folder on another disk";

impl Unpacked {
    fn scratch(&mut self) -> Result<&mut Scratch> {
        let folder = || format!("no temporary file can be made in {}", std::env::temp_dir().display());
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Scratch::new().advise(folder, FREE_SPACE)?,
        };
        Ok(self.scratch.insert(scratch))
    }

    /// Adds an image, which may stand at a place of a dictionary. Returns where it begins, and its length.
    fn add(
        &mut self,
        bytes: &[u8],
        in_dictionary: Option<DictionaryPlace>,
        place: impl Fn() -> String,
    ) -> Result<(u64, u32)> {
        let copied = match in_dictionary {
            None => self.copy(bytes, place)?,
            Some((dictionary, at)) => {
                if self.dictionary != dictionary {
                    self.known.clear();
                    self.dictionary = dictionary;
                }
                match self.known.get(&at) {
                    Some(&copied) => copied,
                    None => {
                        let copied = self.copy(bytes, place)?;
                        self.known.insert(at, copied);
                        copied
                    }
                }
            }
        };
        self.contents.update(copied.digest);
        Ok((copied.start, copied.length))
    }

    /// Copies an image, unless it was copied before.
    fn copy(&mut self, bytes: &[u8], place: impl Fn() -> String) -> Result<Copied> {
        let digest = Sha256::digest(bytes).into();
        let length = u32::try_from(bytes.len())
            .advise(|| format!("{}: the image has {} bytes", place(), bytes.len()), "leave it out")?;
        if let Some(&start) = self.starts.get(&digest) {
            return Ok(Copied { start, length, digest });
        }
        let scratch = self.scratch()?;
        check_room(machine::free_disk(scratch.folder()), length, scratch.folder())?;
        let start =
            scratch.add(bytes).advise(|| format!("{}: the image cannot be copied", place()), FREE_SPACE)?;
        self.starts.insert(digest, start);
        Ok(Copied { start, length, digest })
    }

    /// The SHA-256 of the images that a file added, in order. Those of the next file follow.
    fn end_file(&mut self) -> [u8; 32] {
        self.known.clear();
        std::mem::take(&mut self.contents).finalize().into()
    }
}

/// The space that copying leaves free, so that the disk is not filled for other programs.
const LEFT_FREE: u64 = 16 << 20;

/// Refuses an image for which a folder has no room. `free` is not known on every system.
fn check_room(free: Option<u64>, length: u32, folder: &Path) -> Result<()> {
    match free {
        Some(free) if free < LEFT_FREE + u64::from(length) => Err(problem(
            format!(
                "the images are copied to {}, where only {} are left",
                folder.display(),
                rounded_bytes(free)
            ),
            FREE_SPACE,
        )),
        _ => Ok(()),
    }
}

/// The images of the rows: their bytes, their paths, or both.
struct ImageCells {
    bytes: Option<Cells>,
    path: Option<Cells>,
}

impl ImageCells {
    /// The images in a column or a group of columns.
    ///
    /// # Errors
    ///
    /// A file without it, or with something else in it.
    fn of(file: &ParquetFile, name: &str) -> Result<Self> {
        let no_images = || {
            problem(
                format!(
                    "the column `{name}` of {} holds neither images nor their paths",
                    file.path().display()
                ),
                "set data.path_column to a column of texts or of bytes, or to a group with a member `bytes` or `path`",
            )
        };
        if let Some(column) = file.find(name) {
            let cells = file.cells(column)?;
            return match file.columns()[column].kind {
                Kind::Bytes => Ok(Self { bytes: Some(cells), path: None }),
                Kind::Text => Ok(Self { bytes: None, path: Some(cells) }),
                _ => Err(no_images()),
            };
        }
        let member = |name_of_member, wanted| {
            let column = file.find_in(name, name_of_member)?;
            (file.columns()[column].kind == wanted).then_some(column)
        };
        let (bytes, path) = (member("bytes", Kind::Bytes), member("path", Kind::Text));
        if bytes.is_none() && path.is_none() {
            return Err(file.no_column(name, "set data.path_column"));
        }
        let cells = |column: Option<usize>| column.map(|column| file.cells(column)).transpose();
        Ok(Self { bytes: cells(bytes)?, path: cells(path)? })
    }

    /// The next image.
    fn next<'a>(&'a mut self, file: &mut ParquetFile) -> Result<ImageCell<'a>> {
        let (bytes, in_dictionary) = match &mut self.bytes {
            Some(cells) => value(cells, file)?,
            None => Default::default(),
        };
        let name = match &mut self.path {
            Some(cells) => value(cells, file)?.0,
            None => &[],
        };
        Ok(ImageCell { bytes, in_dictionary, name })
    }
}

/// The image of a row.
struct ImageCell<'a> {
    /// Its bytes, or none.
    bytes: &'a [u8],
    /// Where they stand in a dictionary, if they do.
    in_dictionary: Option<DictionaryPlace>,
    /// Its path, or nothing.
    name: &'a [u8],
}

/// The bytes of the next cell, and their place in a dictionary.
fn value<'a>(cells: &'a mut Cells, file: &mut ParquetFile) -> Result<(&'a [u8], Option<DictionaryPlace>)> {
    Ok(match cells.next_with_place(file)? {
        Some((Cell::Bytes(bytes), place)) => (bytes, place),
        _ => Default::default(),
    })
}

/// The labels in a column, or the splits.
pub struct Labels {
    name: String,
    cells: Cells,
    /// The names of the classes whose numbers the column holds, as Hugging Face's `datasets` notes them.
    names: Option<Vec<String>>,
    is_too_long: bool,
}

/// The most bytes of a label. A small file can repeat a long one in every row.
const LONGEST_LABEL: usize = 1 << 10;

impl Labels {
    /// The labels in the column `name`. `otherwise` tells the user what to do if the file is right.
    ///
    /// # Errors
    ///
    /// A file without the column, or with something else than texts and whole numbers in it.
    pub fn of(file: &ParquetFile, name: &str, otherwise: &str) -> Result<Self> {
        let column = file.find(name).ok_or_else(|| file.no_column(name, otherwise))?;
        let noted = file.note("huggingface").and_then(|note| serde_json::from_str::<Value>(note).ok());
        let names = noted.and_then(|note| {
            let names = note["info"]["features"][name]["names"].as_array()?;
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        });
        Ok(Self { name: name.to_owned(), cells: file.cells(column)?, names, is_too_long: false })
    }

    /// The label of the next row; empty if there is none.
    ///
    /// # Errors
    ///
    /// A file that is damaged, a number without a name, bytes that are no text, and a text that is too long.
    pub fn next(&mut self, file: &mut ParquetFile, place: impl Fn() -> String) -> Result<String> {
        let label = match (self.cells.next(file)?, &self.names) {
            (None | Some(Cell::Empty), _) => "",
            (Some(Cell::Bytes(bytes)), _) => text(bytes, &self.name, &place)?.trim(),
            (Some(Cell::Number(number)), None) => return Ok(number.to_string()),
            // A class that is not known is -1.
            (Some(Cell::Number(..=-1)), Some(_)) => "",
            (Some(Cell::Number(number)), Some(names)) => {
                let name = usize::try_from(number).ok().and_then(|number| names.get(number));
                name.ok_or_else(|| {
                    problem(
                        format!(
                            "{}: `{}` is the class {number}, but the file names only {}",
                            place(),
                            self.name,
                            names.len()
                        ),
                        "write the file again with the names of all classes",
                    )
                })?
            }
        };
        if label.len() > LONGEST_LABEL {
            self.is_too_long = true;
            return Err(problem(
                format!("{}: `{}` is a text of {} bytes", place(), self.name, label.len()),
                format!("give a column of labels; a label has at most {LONGEST_LABEL} bytes"),
            ));
        }
        Ok(label.to_owned())
    }

    /// Why the column holds no labels, if the last error was of that kind, and not one of the whole file.
    pub fn no_labels(&self) -> Option<&'static str> {
        match () {
            () if self.is_too_long => Some("long texts"),
            () if self.cells.is_foreign() => Some("written in a way that akin does not read"),
            () => None,
        }
    }
}

/// The text of a cell.
fn text<'a>(bytes: &'a [u8], column: &str, place: impl Fn() -> String) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        problem(format!("{}: `{column}` is not a text in UTF-8", place()), "write the column as texts")
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::{Path, Unpacked, check_room, named_files};

    const PLAIN: &[u8] = include_bytes!("../../tests/fixtures/parquet/table-plain.parquet");
    const LONG: &[u8] = include_bytes!("../../tests/fixtures/parquet/table-long.parquet");
    const TABLE: &[u8] = include_bytes!("../../tests/fixtures/parquet/table-snappy.parquet");
    const HUB: [(&str, &[u8]); 3] = [
        (
            "train-00000-of-00002.parquet",
            include_bytes!("../../tests/fixtures/parquet/hub/train-00000-of-00002.parquet"),
        ),
        (
            "train-00001-of-00002.parquet",
            include_bytes!("../../tests/fixtures/parquet/hub/train-00001-of-00002.parquet"),
        ),
        (
            "test-00000-of-00001.parquet",
            include_bytes!("../../tests/fixtures/parquet/hub/test-00000-of-00001.parquet"),
        ),
    ];
    const DATA: &str = "kind = 'parquet'\nlevels = ['kind', 'variety']\nmissing = 'parent'";
    const HUB_DATA: &str = "kind = 'parquet'\nlevels = ['kind', 'variety']\npath_column = 'image'";

    #[test]
    fn a_missing_part_is_named() {
        let copy = files(&HUB[1..]);
        assert!(
            refusal(try_to_read(&copy, HUB_DATA)).0.contains(" lacks train-00000-of-00002.parquet, which")
        );
        let far = [("train-7-of-99999999999.parquet", HUB[0].1)];
        assert!(
            refusal(try_to_read(&files(&far), HUB_DATA))
                .0
                .contains(" lacks train-0-of-99999999999.parquet, train-1-of-")
        );
    }

    /// A folder with a file of the hub for each of these names.
    fn hub(names: &[&str]) -> tempfile::TempDir {
        files(&names.iter().zip(HUB).map(|(&name, (_, bytes))| (name, bytes)).collect::<Vec<_>>())
    }

    #[test]
    fn files_of_a_split_that_the_config_does_not_name_are_not_used() {
        for folder in ["", "data/"] {
            let names = ["train-00000-of-00001", "validation-00000-of-00001", "test-00000-of-00001"]
                .map(|name| format!("{folder}{name}.parquet"));
            let copy = hub(&names.each_ref().map(String::as_str));
            let dataset = read(&copy, HUB_DATA);
            assert_eq!(splits(&dataset), [("train", 12), ("test", 12)]);
            assert!(dataset.paths.iter().all(|path| !path.to_string_lossy().contains("validation")));
            let validated = read(&copy, &format!("{HUB_DATA}\nsplits.test = 'validation'"));
            assert_eq!(splits(&validated), [("train", 12), ("test", 12)]);
            assert_ne!(validated.paths, dataset.paths);
            let drawn = read(&copy, &format!("{HUB_DATA}\n[split]\ntest_fraction = 0.5"));
            assert_eq!(drawn.paths.len(), 36, "all images are divided");
        }
        // The hub has splits of any name, and parts of files that are not used may be missing.
        let more =
            hub(&["train.parquet", "test-00000-of-00001-4a1b.parquet", "extra-00000-of-00007.parquet"]);
        assert_eq!(splits(&read(&more, HUB_DATA)), [("train", 12), ("test", 12)]);
    }

    #[test]
    fn a_folder_without_the_evaluation_split_says_which_splits_it_has() {
        let copy = hub(&["train-1.parquet", "test-1.parquet", "validation-1.parquet"]);
        let (_, hint) = refusal(try_to_read(&copy, &format!("{HUB_DATA}\nsplits.test = 'val'")));
        assert!(hint.contains("data.splits.test = \"validation\""), "{hint}");
        for names in [&["train-1.parquet", "val-1.parquet"][..], &["val-00000-of-00001.parquet"]] {
            let (message, hint) = refusal(try_to_read(&hub(names), HUB_DATA));
            assert!(message.ends_with("has no file of the split `test`; its files are called after `val`"));
            assert!(hint.contains("data.splits.test = \"val\""), "{hint}");
        }
    }

    #[test]
    fn rows_with_paths_are_those_of_a_csv_file() {
        let copy = files(&[("x.parquet", TABLE)]);
        let dataset = read(&copy, DATA);
        assert_eq!(splits(&dataset), [("train", 2), ("test", 3)]);
        assert_eq!(labels(&dataset, 0), ["Apple", "7"]);
        assert_eq!(labels(&dataset, 4), ["Pear", "Pear"]);
        assert_eq!(dataset.paths[4], copy.path().join("f.png"));
    }

    #[test]
    fn images_inside_a_file_are_read_from_there() {
        let copy = files(&[("x.parquet", TABLE)]);
        let dataset = read(&copy, &format!("{DATA}\npath_column = 'picture'"));
        let widths: Vec<u32> = (0..5).map(|item| picture(&dataset, item).width()).collect();
        assert_eq!(widths, [1, 2, 3, 4, 6], "the image without a split is not used");
        assert_eq!(dataset.file(4), copy.path().join("x.parquet"));
        assert_eq!(dataset.paths[4], copy.path().join("x.parquet/6"));
    }

    #[test]
    fn a_folder_of_parts_is_read_as_the_hub_has_it() {
        let copy = files(&HUB);
        let dataset = read(&copy, HUB_DATA);
        assert_eq!(splits(&dataset), [("train", 24), ("test", 12)]);
        assert_eq!(labels(&dataset, 0), ["Apple", "Gala"], "a number is replaced by the name of its class");
        assert_eq!(dataset.paths[0], copy.path().join("test-00000-of-00001.parquet/1/gala-6.png"));
        // Each picture has a colour of its own.
        let colours: std::collections::BTreeSet<Vec<u8>> =
            (0..36).map(|item| picture(&dataset, item).data()[..3].to_vec()).collect();
        assert_eq!(colours.len(), 36);

        // The name of a file may be no split.
        let (message, hint) = refusal(try_to_read(&files(&[("all.parquet", HUB[0].1)]), HUB_DATA));
        assert!(
            message.contains("has no column `split`, and its name begins with no split: `all`"),
            "{message}"
        );
        assert!(hint.contains("test_fraction"), "{hint}");
        let drawn =
            read(&files(&[("all.parquet", HUB[0].1)]), &format!("{HUB_DATA}\n[split]\ntest_fraction = 0.5"));
        assert_eq!(splits(&drawn), [("train", 6), ("test", 6)]);
    }

    #[test]
    fn a_column_may_name_junk() {
        let config = "kind = 'parquet'\nlevels = ['kind']\npath_column = 'picture'\njunk_column = 'kind'\n\
                      splits = { train = 'none', test = 'other', query = 'train', gallery = 'test' }";
        let dataset = read(&files(&[("x.parquet", TABLE)]), config);
        assert_eq!(dataset.junk, [[0], [0], [0], [1], [1]]);
    }

    #[test]
    fn an_image_that_is_repeated_is_copied_once() {
        let copy = files(&[("train-a.parquet", HUB[0].1), ("test-b.parquet", HUB[0].1)]);
        let dataset = read(&copy, HUB_DATA);
        assert_eq!(splits(&dataset), [("train", 12), ("test", 12)]);
        assert_eq!(picture(&dataset, 3).data(), picture(&dataset, 15).data());
    }

    #[test]
    fn the_digest_notices_other_images_and_not_another_folder() {
        let digest = |text: &[u8], config: &str| read(&files(&[("x.parquet", text)]), config).digest();
        let pictures = format!("{DATA}\npath_column = 'picture'");
        assert_eq!(digest(TABLE, &pictures), digest(TABLE, &pictures));
        // The pixels of the images differ, and neither their names nor their lengths.
        let mut others = PLAIN.to_vec();
        for place in 0..others.len() - 8 {
            if others[place..].starts_with(b"IDAT") {
                others[place + 8] ^= 1;
            }
        }
        let (before, after) = (digest(PLAIN, &pictures), digest(&others, &pictures));
        assert_eq!(after.changes(&before), ["images differ"]);
        assert_eq!(digest(PLAIN, DATA), digest(&others, DATA), "images outside of the file");
    }

    #[test]
    fn an_image_that_many_rows_repeat_is_hashed_once() {
        let mut unpacked = Unpacked::default();
        let mut add = |bytes: &[u8], at| unpacked.add(bytes, at, String::new).unwrap();
        let first = add(b"abc", Some((1, 0)));
        // Other bytes at the same place would be noticed if they were looked at.
        assert_eq!(add(b"xyz", Some((1, 0))), first);
        assert_ne!(add(b"xyz", Some((1, 1))), first);
        assert_ne!(add(b"uvw", Some((2, 0))), first, "another dictionary");
        assert_eq!(add(b"abc", None), first);
        let once = unpacked.end_file();
        assert_ne!(unpacked.end_file(), once);
    }

    #[test]
    fn a_full_disk_is_noticed_before_it_is_full() {
        let folder = Path::new("/tmp");
        assert!(
            check_room(None, u32::MAX, folder).is_ok() && check_room(Some(1 << 30), 1 << 20, folder).is_ok()
        );
        let (message, hint) = refusal(check_room(Some(17 << 20), 2 << 20, folder));
        assert!(message.contains("copied to /tmp, where only") && hint.contains("TMPDIR"), "{message}");
    }

    #[test]
    fn a_text_that_is_too_long_is_no_label() {
        let config =
            "kind = 'parquet'\nlevels = ['caption']\npath_column = 'picture'\n[split]\ntest_fraction = 0.5";
        let (message, hint) = refusal(try_to_read(&files(&[("x.parquet", LONG)]), config));
        assert!(message.ends_with("row 1: `caption` is a text of 2000 bytes"), "{message}");
        assert!(hint.contains("at most 1024 bytes"), "{hint}");
    }

    #[test]
    fn only_files_that_rows_name_are_compared_with_an_output() {
        let copy = files(&[("x.parquet", TABLE)]);
        let named = |copy, toml: &str| {
            let selection = config(copy, toml).unwrap();
            named_files(selection.data.table().unwrap()).unwrap()
        };
        assert_eq!(named(&copy, DATA).len(), 6);
        assert_eq!(named(&copy, DATA)[0], copy.path().join("a.png"));
        assert!(named(&copy, &format!("{DATA}\npath_column = 'picture'")).is_empty());
        assert!(named(&files(&HUB), HUB_DATA).is_empty());
    }

    #[test]
    fn what_cannot_be_an_image_or_a_label_is_refused() {
        let refused = |config: &str| refusal(try_to_read(&files(&[("x.parquet", TABLE)]), config));
        let (message, hint) = refused("kind = 'parquet'\nlevels = ['kind', 'variety']\nmissing = 'refuse'");
        assert!(message.ends_with("x.parquet, row 6: the label `variety` is missing"), "{message}");
        assert!(hint.contains("data.missing"));
        let (message, _) = refused(&DATA.replace("'kind',", "'kinds',"));
        assert!(message.contains("has no column `kinds`"), "{message}");
        let (message, hint) = refused(&format!("{DATA}\nsplit_column = 'sets'"));
        assert!(message.contains("has no column `sets`") && hint.contains("data.split_column"), "{message}");
        let (message, _) = refused(&DATA.replace("'kind',", "'weight',"));
        assert!(
            message.contains("`weight` of") && message.ends_with("holds numbers with a fraction"),
            "{message}"
        );
        let (message, _) = refused(&DATA.replace("'kind',", "'picture',"));
        assert!(message.ends_with("row 1: `picture` is not a text in UTF-8"), "{message}");
        let (message, _) = refused(&format!("{DATA}\npath_column = 'variety'"));
        assert!(
            message.contains("`variety` of") && message.ends_with("neither images nor their paths"),
            "{message}"
        );
        let (message, _) = refused(&format!("{DATA}\npath_column = 'split'\n[split]\ntest_fraction = 0.5"));
        assert!(message.ends_with("row 5: `split` has neither an image nor a path"), "{message}");
        let (message, _) = refused(&format!("{DATA}\npath_column = 'tags'"));
        assert!(message.contains("`tags` of") && message.ends_with("holds lists or groups"), "{message}");
        let (message, _) = refused(&format!("{DATA}\npath_column = 'image'"));
        assert!(message.contains("has no column `image`"), "{message}");
    }

    #[test]
    fn what_is_no_parquet_file_is_refused() {
        let (message, hint) = refusal(try_to_read(&files(&[("x.parquet", &TABLE[..TABLE.len() - 9])]), DATA));
        assert!(message.contains("x.parquet is no Parquet file") && hint.contains("copy"), "{message}");
        let (message, _) = refusal(try_to_read(&files(&[("x.csv", b"a")]), DATA));
        assert!(message.ends_with("has no file that ends in .parquet"), "{message}");
    }
}
