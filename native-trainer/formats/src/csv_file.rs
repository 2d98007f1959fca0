//! A CSV file with a header, read row by row. Its cells are separated by commas, semicolons or tabs, which its header shows;
//! a mark of the byte order before it does not count.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::text_file::TextFile;
use akin_base::files::InputFile;
use akin_base::problem::{Advise, did_you_mean, listed, problem};
use akin_base::quantities::counted;
use akin_base::terminal;
use anyhow::Result;
use sha2::{Digest, Sha256};

/// More columns than this are not listed in a message.
const FEW_COLUMNS: usize = 24;

/// The bytes in which the header ends whose separators are counted.
pub(crate) const FIRST: usize = 1 << 16;

/// What separates the cells: of comma, semicolon and tab the one that is most often in the first line, outside of double
/// quotes.
pub(crate) fn separator(first: &[u8]) -> u8 {
    const MARKS: [u8; 3] = *b",;\t";
    let (mut counts, mut quoted) = ([0; 3], false);
    for &byte in first.iter().take_while(|&&byte| byte != b'\n') {
        quoted ^= byte == b'"';
        if let (false, Some(mark)) = (quoted, MARKS.iter().position(|&mark| mark == byte)) {
            counts[mark] += 1;
        }
    }
    // The first of equal counts.
    (0..MARKS.len()).rev().max_by_key(|&mark| counts[mark]).map_or(b',', |mark| MARKS[mark])
}

/// A file, and the SHA-256 of what was read of it.
struct Digesting {
    file: Box<dyn Read>,
    digest: Sha256,
}

impl Read for Digesting {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(bytes)?;
        self.digest.update(&bytes[..length]);
        Ok(length)
    }
}

/// See the [module](self).
pub struct CsvFile {
    file: PathBuf,
    header: csv::StringRecord,
    reader: csv::Reader<Digesting>,
    record: csv::StringRecord,
}

impl CsvFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn open(file: &Path) -> Result<Self> {
        if file.is_dir() {
            return Err(problem(
                format!("{} is a folder, not a CSV file", file.display()),
                "give the path of a CSV file; for images in folders, set data.kind = \"folder\"",
            ));
        }
        let bytes = InputFile::open(file)
            .advise(|| format!("{} cannot be read", file.display()), "check the path")?;
        Self::from_file(file, bytes)
    }

    /// Reads the header of a file that is open, in any encoding that [`TextFile`] reads. Messages call it `file`.
    ///
    /// # Errors
    ///
    /// An empty file; a header that cannot be read.
    pub fn from_file(file: &Path, bytes: impl Read + Seek + 'static) -> Result<Self> {
        let (mut bytes, mut first) = (decoded(file, bytes)?, Vec::new());
        let cannot = || format!("{} cannot be read", file.display());
        bytes.by_ref().take(FIRST as u64).read_to_end(&mut first).advise(cannot, "check the file")?;
        let separator = separator(&first);
        let bytes = Box::new(Cursor::new(first).chain(bytes));
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::Headers)
            .delimiter(separator)
            .from_reader(Digesting { file: bytes, digest: Sha256::new() });
        let header = reader.headers().advise(
            || format!("{} cannot be read", file.display()),
            "save it as CSV in UTF-8, with a header line",
        )?;
        if header.is_empty() {
            return Err(problem(
                format!("{} is empty", file.display()),
                "write a line with the names of the columns, and then a line for each item",
            ));
        }
        let header = header.clone();
        Ok(Self { file: file.to_owned(), header, reader, record: csv::StringRecord::new() })
    }

    /// The names of the columns.
    pub fn header(&self) -> Vec<String> {
        self.header.iter().map(str::to_owned).collect()
    }

    /// The position of a column.
    ///
    /// # Errors
    ///
    /// A column that the file does not have, or has twice. `otherwise` tells the user what to do if the file is right.
    pub fn column(&self, name: &str, otherwise: &str) -> Result<usize> {
        if self.header.iter().filter(|&column| column == name).count() > 1 {
            return Err(problem(
                format!("{} has the column `{name}` more than once", self.file.display()),
                "remove or rename all but one, so that it is clear which cells count",
            ));
        }
        self.header.iter().position(|column| column == name).ok_or_else(|| {
            let suggestion = did_you_mean(name, &self.header);
            let columns: Vec<&str> = self.header.iter().collect();
            problem(
                format!(
                    "{} has no column `{name}`; its columns are {}",
                    self.file.display(),
                    listed(&columns, FEW_COLUMNS)
                ),
                format!("{suggestion}add the column, or {otherwise}"),
            )
        })
    }

    /// The positions of several columns.
    ///
    /// # Errors
    ///
    /// The errors of [`CsvFile::column`].
    pub fn columns(&self, names: &[String], otherwise: &str) -> Result<Vec<usize>> {
        names.iter().map(|name| self.column(name, otherwise)).collect()
    }

    /// The cells of the next row, with its number; none at the end of the file. As in a spreadsheet, the header is row 1.
    ///
    /// # Errors
    ///
    /// A row whose number of cells differs from the header's, or that is not UTF-8.
    pub fn next_row(&mut self) -> Result<Option<(u64, &csv::StringRecord)>> {
        let more = self.reader.read_record(&mut self.record).map_err(|error| {
            let row =
                error.position().map_or(String::new(), |position| format!(", row {}", row_of(position)));
            let place = format!("{}{row}", self.file.display());
            match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => problem(
                    format!(
                        "{place}: the row has {}, but the header has {expected_len}",
                        counted(*len as usize, "cell", "cells")
                    ),
                    "give every row as many cells as the header, and put cells with commas in double quotes",
                ),
                csv::ErrorKind::Utf8 { .. } => {
                    problem(format!("{place}: the row is not UTF-8"), "save the file as CSV in UTF-8")
                }
                _ => problem(format!("{place}: the row cannot be read: {error}"), "check the file"),
            }
        })?;
        let row = self.record.position().map_or(0, row_of);
        Ok(more.then_some((row, &self.record)))
    }

    /// SHA-256 of the rows that were read: after the last, of the whole file.
    pub fn digest(self) -> [u8; 32] {
        self.reader.into_inner().digest.finalize().into()
    }
}

/// The text of a file in UTF-8. Says it if the file is not.
pub(crate) fn decoded(file: &Path, bytes: impl Read + Seek + 'static) -> Result<TextFile> {
    let text =
        TextFile::new(bytes).advise(|| format!("{} cannot be read", file.display()), "check the file")?;
    if let Some(encoding) = text.encoding {
        say_encoding(file, encoding);
    }
    Ok(text)
}

/// Says once how a file that is not UTF-8 is read.
fn say_encoding(file: &Path, encoding: &str) {
    static SAID: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    // A thread that panicked has said nothing else.
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned()) {
        terminal::say(format_args!("        Note {} is not UTF-8; it is read as {encoding}", file.display()));
    }
}

/// The number of a row. The header is row 1.
fn row_of(position: &csv::Position) -> u64 {
    position.record() + 1
}
