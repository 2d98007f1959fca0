//! The columns of texts of a CSV, TSV or Parquet file or of JSON lines, read row by row: labels, paths, groups.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use akin_base::problem::{Advise, did_you_mean, listed, problem};
use anyhow::Result;
use serde_json::{Map, Value};

use crate::csv_file::CsvFile;
use crate::embedding_file::Format;
use crate::parquet_file::{Cell, ParquetFile};
use crate::source::Source;

/// The bytes of the longest line of JSON.
pub(crate) const LONGEST_LINE: u64 = 64 << 20;

/// A column, and what to do if the file is right without it.
pub type Wanted<'a> = (&'a str, &'a str);

/// See the [module](self).
#[derive(Debug)]
pub struct Table {
    source: Source,
    format: Format,
}

impl Table {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or has no columns.
    pub fn open(path: &Path) -> Result<Self> {
        Self::new(Source::open(path)?)
    }

    pub(crate) fn new(mut source: Source) -> Result<Self> {
        let format = Format::of_source(&mut source)?;
        match format {
            Format::Text | Format::Parquet | Format::JsonLines => Ok(Self { source, format }),
            Format::Npy | Format::Npz | Format::Safetensors => Err(problem(
                format!("{} has no columns with labels", source.name().display()),
                "give a CSV, TSV or Parquet file, or JSON lines",
            )),
        }
    }

    /// SHA-256 of the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn digest(&self) -> Result<[u8; 32]> {
        self.source.digest(|_| {})
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Its length or its time of modification is another.
    pub fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    /// Calls `each` for every row with its number in the file and the cells of these columns, without spaces around them.
    /// Empty cells and nulls are empty texts. The header of a CSV file is row 1.
    ///
    /// # Errors
    ///
    /// A column that the file does not have, a file that is damaged, and the errors of `each`.
    pub fn read(&self, columns: &[Wanted], mut each: impl FnMut(u64, &[&str]) -> Result<()>) -> Result<()> {
        let source = self.source.again()?;
        let name = source.name();
        match self.format {
            Format::Parquet => read_parquet(&mut ParquetFile::new(&name, source)?, columns, &mut each),
            Format::JsonLines => read_json(source, columns, &mut each),
            _ => {
                let mut csv = CsvFile::from_file(&name, source)?;
                let places = columns
                    .iter()
                    .map(|(column, otherwise)| csv.column(column, otherwise))
                    .collect::<Result<Vec<_>>>()?;
                while let Some((number, record)) = csv.next_row()? {
                    let cells: Vec<&str> = places.iter().map(|&place| record[place].trim()).collect();
                    each(number, &cells)?;
                }
                Ok(())
            }
        }
    }
}

type Each<'a> = &'a mut dyn FnMut(u64, &[&str]) -> Result<()>;

fn read_parquet(file: &mut ParquetFile<Source>, columns: &[Wanted], each: Each) -> Result<()> {
    let mut cells_of = Vec::new();
    for (column, otherwise) in columns {
        let place = file.find(column).ok_or_else(|| file.no_column(column, otherwise))?;
        cells_of.push(file.cells(place)?);
    }
    for row in 1..=file.rows() {
        let mut texts = Vec::with_capacity(columns.len());
        for (cells, (column, _)) in cells_of.iter_mut().zip(columns) {
            texts.push(match cells.next(file)? {
                None | Some(Cell::Empty) => String::new(),
                Some(Cell::Number(number)) => number.to_string(),
                Some(Cell::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).advise(
                    || format!("row {row}: the cell of the column `{column}` is not UTF-8"),
                    "give a column of texts or whole numbers",
                )?,
            });
        }
        each(row, &texts.iter().map(|text| text.trim()).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn read_json(source: Source, columns: &[Wanted], each: Each) -> Result<()> {
    let name = source.name();
    each_line(source, &mut |number, value| {
        let place = format!("{}, line {number}", name.display());
        let Value::Object(fields) = value else {
            return Err(problem(
                format!("{place}: the line is a list, which has no labels"),
                "write an object with a field for each label on each line, or give the labels in a file of their own",
            ));
        };
        let cell = |(column, otherwise): &Wanted| text_of(&fields, column, otherwise, &place);
        let cells = columns.iter().map(cell).collect::<Result<Vec<_>>>()?;
        each(number, &cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>())
    })
}

/// The text of a field. A null is an empty text.
fn text_of(fields: &Map<String, Value>, column: &str, otherwise: &str, place: &str) -> Result<String> {
    Ok(match fields.get(column) {
        Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(problem(
                format!("{place}: the field `{column}` is a list or an object"),
                "give a field with a text or a number",
            ));
        }
        None => {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            let near = did_you_mean(column, names.iter().copied());
            return Err(problem(
                format!("{place}: there is no field `{column}`; its fields are {}", listed(&names, 24)),
                format!("{near}add the field, with null if it is unknown, or {otherwise}"),
            ));
        }
    })
}

/// Calls `each` for the object or list of each line, with its number from 1. Empty lines are left out.
pub(crate) fn each_line(source: Source, each: &mut dyn FnMut(u64, Value) -> Result<()>) -> Result<()> {
    let name = source.name();
    let (mut reader, mut line) = (BufReader::new(source), Vec::new());
    for number in 1.. {
        line.clear();
        let place = || format!("{}, line {number}", name.display());
        let length = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .advise(|| format!("{} cannot be read", name.display()), "check the file")?;
        if length == 0 {
            break;
        }
        if length as u64 == LONGEST_LINE {
            return Err(problem(
                format!("{}: the line is longer than {} MiB", place(), LONGEST_LINE >> 20),
                "write an object or a list for each item, each on a line of its own",
            ));
        }
        let text = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let value: Value = serde_json::from_slice(text).advise(
            || format!("{}: the line is not JSON", place()),
            "write an object or a list for each item, each on a line of its own",
        )?;
        each(number, value)?;
    }
    Ok(())
}
