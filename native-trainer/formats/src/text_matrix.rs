//! Embeddings as text: CSV, TSV, numbers between spaces, and JSON lines. They are read into memory, and take at most twice
//! the bytes of the file.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

use akin_base::problem::{Advise, problem};
use akin_core::embeddings::Embeddings;
use anyhow::Result;
use serde_json::Value;

use crate::csv_file::{FIRST, decoded, separator};
use crate::embedding_file::{Choice, choose, numbered};
use crate::source::Source;
use crate::table::{LONGEST_LINE, each_line};

/// Rows of one length that grow.
#[derive(Default)]
struct Growing {
    dimension: Option<usize>,
    values: Vec<f32>,
}

impl Growing {
    /// Adds a row. `place` says where it is.
    fn add(&mut self, row: &[f32], place: impl Fn() -> String) -> Result<()> {
        let dimension = *self.dimension.get_or_insert(row.len());
        if row.is_empty() || row.len() != dimension {
            return Err(problem(
                format!("{}: the row has {} numbers, but the first has {dimension}", place(), row.len()),
                "give every item as many numbers, at least one",
            ));
        }
        self.values.extend_from_slice(row);
        Ok(())
    }

    fn finish(self) -> Result<Embeddings> {
        let Some(dimension) = self.dimension else {
            return Err(problem("the file has no rows", "write a row for each item"));
        };
        Ok(Embeddings::new(dimension, self.values)?)
    }
}

/// Where the numbers of a row are.
enum Place {
    Columns(Range<usize>),
    /// A list in one cell.
    List(usize),
}

/// Reads embeddings from a table as text: a column for each number, called by a name and 0, 1, 2, … or 1, 2, 3, …; a column
/// of lists such as `[0.5, -1]`; or, without a header, nothing but numbers.
///
/// # Errors
///
/// Text that is no such table; rows of several lengths; a number that is not finite.
pub(crate) fn read_text(source: Source, choice: &Choice) -> Result<Embeddings> {
    let name = source.name();
    let (mut text, mut first) = (decoded(&name, source)?, Vec::new());
    let cannot = || format!("{} cannot be read", name.display());
    text.by_ref().take(FIRST as u64).read_to_end(&mut first).advise(cannot, "check the file")?;
    let line = first.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mark = separator(&first);
    if !line.contains(&mark) && line.trim_ascii().contains(&b' ') {
        let line = String::from_utf8_lossy(line);
        if line.split_whitespace().all(|number| number.parse::<f32>().is_ok()) {
            return read_spaced(first.as_slice().chain(text));
        }
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(mark)
        .has_headers(false)
        .from_reader(first.as_slice().chain(text));
    let mut rows = Growing::default();
    let (mut place, mut row) = (None, Vec::new());
    let mut record = csv::StringRecord::new();
    let mut number = 0_u64;
    while reader.read_record(&mut record).advise(
        || format!("row {} cannot be read", number + 1),
        "save it in UTF-8, with as many cells in each row",
    )? {
        number += 1;
        let place = match &place {
            Some(place) => place,
            None => {
                let (found, is_header) = find_place(&record, choice)?;
                let found = place.insert(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        row.clear();
        let not_a_number = |cell: &str| {
            problem(
                format!("row {number}: `{cell}` is not a number"),
                "correct the cell, or leave out the row",
            )
        };
        let parse = |cell: &str| cell.trim().parse::<f32>().map_err(|_| not_a_number(cell));
        match place {
            Place::Columns(columns) => {
                for column in columns.clone() {
                    row.push(parse(record.get(column).unwrap_or_default())?);
                }
            }
            Place::List(column) => {
                let cell = record.get(*column).unwrap_or_default().trim();
                let inside = cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')).unwrap_or(cell);
                let numbers = inside.split(|letter: char| letter == ',' || letter.is_whitespace());
                for number in numbers.filter(|number| !number.is_empty()) {
                    row.push(parse(number)?);
                }
            }
        }
        rows.add(&row, || format!("row {number}"))?;
    }
    rows.finish()
}

/// Where the numbers are, from the first row, and whether that is a header.
fn find_place(first: &csv::StringRecord, choice: &Choice) -> Result<(Place, bool)> {
    let counts_from = |cells: &mut dyn Iterator<Item = &str>, from: usize| {
        (from..).zip(cells).all(|(number, cell)| cell.trim() == number.to_string())
    };
    let is_numbers = first.iter().all(|cell| cell.trim().parse::<f32>().is_ok());
    let is_header = !is_numbers || [0, 1].iter().any(|&from| counts_from(&mut first.iter(), from));
    if !is_header {
        return Ok((Place::Columns(0..first.len()), false));
    }
    let groups = numbered(first.iter().map(str::trim).enumerate());
    let named = |name: &str| first.iter().position(|cell| cell.trim() == name);
    let of_lists = match &choice.name {
        Some(name) => named(name),
        None => named("embedding").or(named("embeddings")),
    };
    if let Some(column) = of_lists {
        return Ok((Place::List(column), true));
    }
    let stems: Vec<&str> = groups.iter().map(|(stem, _)| stem.as_str()).collect();
    let name = choose("column", &stems, choice)?;
    let columns = groups.into_iter().find(|(stem, _)| *stem == name).map_or(0..0, |(_, columns)| columns);
    Ok((Place::Columns(columns), true))
}

/// Numbers between spaces, as `numpy.savetxt` writes them.
fn read_spaced(source: impl Read) -> Result<Embeddings> {
    let (mut reader, mut line, mut row) = (BufReader::new(source), String::new(), Vec::new());
    let mut rows = Growing::default();
    for number in 1.. {
        line.clear();
        let length = (&mut reader)
            .take(LONGEST_LINE)
            .read_line(&mut line)
            .advise(|| format!("line {number} cannot be read"), "save it in UTF-8")?;
        if length == 0 {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        row.clear();
        for cell in line.split_whitespace() {
            row.push(
                cell.parse().advise(|| format!("line {number}: `{cell}` is not a number"), "correct it")?,
            );
        }
        rows.add(&row, || format!("line {number}"))?;
    }
    rows.finish()
}

/// Reads embeddings from JSON lines: objects with a field that holds a list of numbers, or nothing but such lists.
///
/// # Errors
///
/// A line that is no such value; lists of several lengths; a number that is not finite.
pub(crate) fn read_json_lines(source: Source, choice: &Choice) -> Result<Embeddings> {
    let mut rows = Growing::default();
    let (mut name, mut row) = (None, Vec::new());
    each_line(source, &mut |number, value| {
        let list = match value {
            Value::Array(list) => list,
            Value::Object(mut fields) => {
                let name = match &name {
                    Some(name) => name,
                    None => {
                        let lists: Vec<&str> = fields
                            .iter()
                            .filter(|(_, value)| {
                                value.as_array().is_some_and(|list| list.iter().all(Value::is_number))
                            })
                            .map(|(name, _)| name.as_str())
                            .collect();
                        name.insert(choose("field", &lists, choice)?)
                    }
                };
                match fields.remove(name) {
                    Some(Value::Array(list)) => list,
                    _ => {
                        return Err(problem(
                            format!("line {number}: the field `{name}` is no list of numbers"),
                            "give every item a list of numbers, or leave it out",
                        ));
                    }
                }
            }
            _ => {
                return Err(problem(
                    format!("line {number}: there is neither an object nor a list"),
                    "write one for each item, each on a line of its own",
                ));
            }
        };
        row.clear();
        for value in list {
            let Some(number_of_list) = value.as_f64() else {
                return Err(problem(format!("line {number}: `{value}` is not a number"), "correct it"));
            };
            row.push(number_of_list as f32);
        }
        rows.add(&row, || format!("line {number}"))
    })?;
    rows.finish()
}
