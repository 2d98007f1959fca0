//! Embeddings in a column of lists of one length, whose rows are read by position.
//!
//! When the column is opened, only the headers of its pages are read: they say which cells each page holds. A page is
//! unpacked when a row in it is asked for, and the last few that were read stay in memory, each with the place to which it
//! was read, so that rows in order are read once. Cells are decoded one by one into the rows that are asked for, so memory
//! does not grow with what a page states.

use std::fmt::Debug;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use akin_base::problem::{parts, problem};
use akin_core::embeddings::Rows;
use akin_core::{Error, Kind as ErrorKind};
use anyhow::Result;
use half::f16;

use super::footer::{Element, Numbers};
use super::page::{Contents, Levels, damaged, read_page, skim_page};
use super::{Cell, CellsOfPage, Column, Dictionary, Fault, ParquetFile, explain};
use crate::embedding_file::{Choice, choose};
use crate::matrix::sign;

/// The pages that stay unpacked. Several threads read rows of different pages.
const PAGES: usize = 4;

/// See the [module](self).
#[derive(Debug)]
pub struct Lists<F> {
    path: PathBuf,
    /// What errors call the column.
    place: String,
    inner: Mutex<Inner<F>>,
    pages: Vec<PageAt>,
    rows: usize,
    /// The values of an item.
    values: usize,
    element: Element,
}

/// Where a page of cells is.
#[derive(Debug)]
struct PageAt {
    /// Its first value, counted from that of the table.
    first: u64,
    /// Its values.
    cells: u64,
    /// Where it begins in the file.
    start: u64,
    group: usize,
}

#[derive(Debug)]
struct Inner<F> {
    file: ParquetFile<F>,
    column: usize,
    numbers: Numbers,
    level: u32,
    /// Where the dictionary of each group is, if it has one.
    dictionaries: Vec<Option<u64>>,
    /// The pages that are unpacked, the last used at the end.
    open: Vec<OpenPage>,
}

#[derive(Debug)]
struct OpenPage {
    page: usize,
    group: usize,
    /// The next value.
    next: u64,
    cells: CellsOfPage,
    dictionary: Option<Arc<Dictionary>>,
}

impl<F: Read + Seek> ParquetFile<F> {
    /// The embeddings in a column.
    ///
    /// # Errors
    ///
    /// No such column or several, lists of several lengths, and a file that is damaged.
    pub fn lists(self, choice: &Choice) -> Result<Lists<F>> {
        let top = |column: &Column| column.group.as_deref().unwrap_or(&column.name).to_owned();
        let is_alone = |name: &str| self.columns().iter().filter(|column| top(column) == name).count() == 1;
        let candidates: Vec<(usize, String)> = (0..)
            .zip(self.columns())
            .filter(|(_, column)| column.lists().is_some())
            .map(|(place, column)| (place, top(column)))
            .filter(|(_, name)| is_alone(name))
            .collect();
        let names: Vec<&str> = candidates.iter().map(|(_, name)| name.as_str()).collect();
        let name = choose("column", &names, choice)?;
        let found = candidates.iter().find(|(_, candidate)| *candidate == name);
        let Some((column, numbers)) =
            found.and_then(|&(place, _)| Some((place, self.columns()[place].lists()?)))
        else {
            return Err(problem(format!("there is no column `{name}`"), "correct the name"));
        };
        if matches!(numbers.element, Element::Byte | Element::Bytes(_)) && !choice.packed {
            return Err(problem(
                format!(
                    "the column `{name}` has bytes without a sign, which are bits of a code, eight in a byte"
                ),
                "add `--similarity hamming` for packed bits; write other numbers as floats",
            ));
        }
        let place = format!("the column `{name}` of {}", self.path.display());
        let path = self.path.clone();
        let level = self.columns()[column].level;
        let mut inner =
            Inner { file: self, column, numbers, level, dictionaries: Vec::new(), open: Vec::new() };
        let (pages, rows, values) = inner.index(&place)?;
        Ok(Lists { path, place, inner: Mutex::new(inner), pages, rows, values, element: numbers.element })
    }
}

impl<F: Read + Seek> Inner<F> {
    /// Finds the pages of the column. Returns them with the number of rows and of values in a row.
    fn index(&mut self, place: &str) -> Result<(Vec<PageAt>, usize, usize)> {
        let pages = self.find_pages().map_err(|fault| explain(place, fault))?;
        let footer = &self.file.footer;
        let cells: u64 = pages.last().map_or(0, |page| page.first + page.cells);
        let rows = footer.rows;
        let values = cells.checked_div(rows).unwrap_or(0);
        if rows == 0 {
            return Err(problem(format!("{place} has no rows"), "write a row for each item"));
        }
        let groups = footer.groups.iter().zip(&footer.rows_of_groups);
        let is_even = groups
            .into_iter()
            .all(|(group, rows)| Some(group[self.column].cells) == rows.checked_mul(values));
        if values == 0 || !is_even {
            let first = self.first_uneven(&pages).map_err(|fault| explain(place, fault))?;
            return Err(uneven(place, first));
        }
        let numbers = match self.numbers.element {
            Element::Byte => 8,
            Element::Bytes(length) => 8 * length as u64,
            _ => 1,
        };
        footer.check_size(place, cells.checked_mul(numbers))?;
        Ok((pages, usize::try_from(rows)?, usize::try_from(values)?))
    }

    fn find_pages(&mut self) -> Result<Vec<PageAt>, Fault> {
        let (mut pages, mut first) = (Vec::new(), 0_u64);
        for (number, group) in self.file.footer.groups.iter().enumerate() {
            let (mut chunk, mut left) = (group[self.column].place.clone(), group[self.column].cells);
            let mut dictionary = None;
            while !chunk.is_empty() {
                let start = chunk.start;
                let (contents, end) = skim_page(&mut self.file.file, &chunk)?;
                chunk.start = end;
                match contents {
                    Contents::Cells(cells) => {
                        let rest = left.checked_sub(cells);
                        let (Some(rest), Some(next)) = (rest, first.checked_add(cells)) else {
                            return damaged("it has more cells than it states");
                        };
                        left = rest;
                        if cells > 0 {
                            pages.push(PageAt { first, cells, start, group: number });
                        }
                        first = next;
                    }
                    Contents::Dictionary => dictionary = Some(start),
                    Contents::Other => {}
                }
            }
            if left > 0 {
                return damaged("it has fewer cells than it states");
            }
            self.dictionaries.push(dictionary);
        }
        Ok(pages)
    }

    /// The first row whose list has another length than the first, or a value that is missing: its number from 1.
    fn first_uneven(&mut self, pages: &[PageAt]) -> Result<u64, Fault> {
        let (mut row, mut length, mut expected) = (0, 0_u64, None);
        for page in 0..pages.len() {
            let mut open = self.unpack(pages, page)?;
            for _ in 0..pages[page].cells {
                let (begins, cell) = open.next(self.level, self.numbers)?;
                if begins {
                    if row > 0 && *expected.get_or_insert(length) != length {
                        return Ok(row);
                    }
                    (row, length) = (row + 1, 0);
                }
                if cell == Cell::Empty {
                    return Ok(row);
                }
                length += 1;
            }
        }
        Ok(row)
    }

    /// Unpacks a page.
    fn unpack(&mut self, pages: &[PageAt], page: usize) -> Result<OpenPage, Fault> {
        let PageAt { start, group, first, .. } = pages[page];
        let chunk = &self.file.footer.groups[group][self.column];
        let (end, codec) = (chunk.place.end, chunk.codec);
        let dictionary = match (self.dictionaries[group], self.open.iter().find(|open| open.group == group)) {
            (None, _) => None,
            (Some(_), Some(open)) => open.dictionary.clone(),
            (Some(start), None) => {
                match read_page(&mut self.file.file, start..end, codec, Levels::default())?.0 {
                    Some(page) if page.is_dictionary => {
                        Some(Arc::new(Dictionary::new(page, self.numbers.kind)?))
                    }
                    _ => return damaged("a dictionary cannot be read"),
                }
            }
        };
        let levels = Levels { repetition: self.numbers.repetition > 0, definition: self.level > 0 };
        let (Some(unpacked), _) = read_page(&mut self.file.file, start..end, codec, levels)? else {
            return damaged("a page cannot be read");
        };
        if unpacked.is_dictionary || unpacked.cells != pages[page].cells {
            return damaged("a page changed while it was read");
        }
        let cells = CellsOfPage::new(unpacked, self.level, self.numbers.kind, dictionary.is_some())?;
        Ok(OpenPage { page, group, next: first, cells, dictionary })
    }

    /// Fills numbers from a value of the table on. A row has `values`. Returns the row, from 1, whose list has another length.
    fn fill(
        &mut self,
        pages: &[PageAt],
        mut at: u64,
        values: u64,
        per_value: usize,
        numbers: &mut [f32],
    ) -> Result<Option<u64>, Fault> {
        let mut rest = numbers.chunks_mut(per_value);
        while rest.len() > 0 {
            let page = pages.partition_point(|page| page.first <= at) - 1;
            let reusable =
                self.open.iter().enumerate().filter(|(_, open)| open.page == page && open.next <= at);
            let mut open = match reusable.max_by_key(|(_, open)| open.next).map(|(place, _)| place) {
                Some(place) => self.open.remove(place),
                None => {
                    // The dictionary of this group is taken over from a page that is about to go.
                    let open = self.unpack(pages, page)?;
                    if self.open.len() == PAGES {
                        self.open.remove(0);
                    }
                    open
                }
            };
            let end = pages[page].first + pages[page].cells;
            while open.next < end && rest.len() > 0 {
                let (value, is_wanted) = (open.next, open.next >= at);
                let (begins, cell) = open.next(self.level, self.numbers)?;
                if begins != value.is_multiple_of(values) || cell == Cell::Empty {
                    return Ok(Some(value / values + 1));
                }
                if is_wanted && let Some(numbers) = rest.next() {
                    decode(cell, self.numbers.element, numbers);
                    at += 1;
                }
            }
            self.open.push(open);
        }
        Ok(None)
    }
}

impl OpenPage {
    /// The next value, and whether it begins a list.
    fn next(&mut self, level: u32, numbers: Numbers) -> Result<(bool, Cell<'_>), Fault> {
        let begins = match numbers.repetition {
            0 => Some(true),
            _ => self.cells.next_repetition().map(|repetition| repetition == 0),
        };
        self.next += 1;
        match (begins, self.cells.next(level, numbers.kind, self.dictionary.as_deref())) {
            (Some(begins), Some((cell, _))) => Ok((begins, cell)),
            _ => damaged("a page ends before its last cell"),
        }
    }
}

impl CellsOfPage {
    fn next_repetition(&mut self) -> Option<u32> {
        self.repetitions.next(&self.bytes)
    }
}

/// The numbers of a value.
pub(super) fn decode(cell: Cell, element: Element, numbers: &mut [f32]) {
    let mut bits_of = |bytes: &[u8]| {
        for (numbers, byte) in numbers.chunks_mut(8).zip(bytes) {
            (0..).zip(numbers).for_each(|(bit, number)| *number = sign(byte << bit & 0x80 != 0));
        }
    };
    let number = match (cell, element) {
        (Cell::Bytes(bytes), Element::Bytes(_)) => return bits_of(bytes),
        (Cell::Number(number), Element::Byte) => return bits_of(&[number as u8]),
        (Cell::Bytes(bytes), _) => {
            bytes.first_chunk().map_or(f32::NAN, |&half| f16::from_le_bytes(half).to_f32())
        }
        (Cell::Number(number), Element::Float16) => f16::from_bits(number as u16).to_f32(),
        (Cell::Number(number), Element::Float32) => f32::from_bits(number as u32),
        (Cell::Number(number), Element::Float64) => f64::from_bits(number as u64) as f32,
        (Cell::Number(number), Element::Truth) => sign(number != 0),
        (Cell::Number(number), _) => number as f32,
        (Cell::Empty, _) => f32::NAN,
    };
    numbers[0] = number;
}

fn uneven(place: &str, row: u64) -> anyhow::Error {
    problem(
        format!(
            "{place}: row {row} has no list, or one of another length than the first, or a value is missing in it"
        ),
        "give every item as many numbers, or leave it out",
    )
}

impl<F: Read + Seek> Lists<F> {
    fn per_value(&self) -> usize {
        match self.element {
            Element::Byte => 8,
            Element::Bytes(length) => 8 * length,
            _ => 1,
        }
    }
}

impl<F: Read + Seek + Debug + Send> Rows for Lists<F> {
    fn len(&self) -> usize {
        self.rows
    }

    fn dimension(&self) -> usize {
        self.values * self.per_value()
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> akin_core::Result<()> {
        assert!(first * self.dimension() + rows.len() <= self.rows * self.dimension(), "rows of the file");
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (first * self.values) as u64;
        let error = match inner.fill(&self.pages, at, self.values as u64, self.per_value(), rows) {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => uneven(&self.place, row),
            Err(fault) => explain(&self.place, fault),
        };
        let (message, hint) = parts(&error);
        let hint = hint.unwrap_or_else(|| format!("check {}", self.path.display()));
        Err(Error::new(ErrorKind::Embeddings, message, hint))
    }
}
