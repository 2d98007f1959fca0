//! A Parquet file: a table whose columns are read cell by cell.
//!
//! A file holds groups of rows, a group holds a chunk for each column, and a chunk holds pages of cells. The footer says
//! where the chunks are. Only one page of a column, and its dictionary, are in memory. The format is described at
//! <https://parquet.apache.org/docs/file-format>. Of it, this reader has what tables of images and labels need: bytes,
//! texts and whole numbers, which may be missing, in columns of their own or in a group of columns; and embeddings as lists
//! of one length.
//!
//! It is our own because a file may come from anyone. The crate `parquet` 60.1 panics on some damaged pages. It also makes
//! room for as many values as stand in the packed bytes of a page, where nobody can look first: a file of 1.5 kB ends the
//! process, which has no memory left.

mod delta;
mod footer;
mod lists;
mod page;
mod runs;
mod thrift;
mod wide;

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;

use self::delta::Deltas;
use self::footer::Footer;
pub use self::footer::{Column, Kind};
use akin_base::files::InputFile;
use akin_base::problem::{Advise, did_you_mean, problem};

pub use self::lists::Lists;
use self::page::{Encoding, Fault, Levels, Page, damaged, read_page};
use self::runs::{Runs, bits};

/// See the [module](self).
#[derive(Debug)]
pub struct ParquetFile<F = InputFile> {
    path: PathBuf,
    file: F,
    footer: Footer,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// There is no value.
    Empty,
    /// A text or bytes.
    Bytes(&'a [u8]),
    /// A whole number.
    Number(i64),
}

/// The most bytes of a footer.
const LONGEST_FOOTER: u32 = 64 << 20;

/// Where a value stands in a dictionary: the number of the dictionary in its column, and the place in it. Cells with the
/// same place have the same value.
pub type DictionaryPlace = (u64, u32);

const MAGIC: &[u8; 4] = b"PAR1";
const MAGIC_OF_ENCRYPTED: &[u8; 4] = b"PARE";

impl ParquetFile {
    /// Opens a file and reads its footer.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is no Parquet file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = InputFile::open(path)
            .advise(|| format!("{} cannot be read", path.display()), "check the path")?;
        Self::new(path, file)
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Something wrote to it.
    pub fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }
}

impl<F: Read + Seek> ParquetFile<F> {
    /// Reads the footer of a file that is open. Messages call it `path`.
    ///
    /// # Errors
    ///
    /// As [`ParquetFile::open`].
    pub fn new(path: &Path, mut file: F) -> Result<Self> {
        let footer = read_footer(&mut file).map_err(|fault| explain(&path.display().to_string(), fault))?;
        Ok(Self { path: path.to_owned(), file, footer })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.footer.rows
    }

    /// The columns with values.
    pub fn columns(&self) -> &[Column] {
        &self.footer.columns
    }

    /// What the program that wrote the file noted under a key.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.footer.notes.iter().find(|(known, _)| known == key).map(|(_, text)| text.as_str())
    }

    /// The position of a column that is in no group.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.group.is_none() && column.name == name)
    }

    /// The position of a column of a group.
    pub fn find_in(&self, group: &str, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.group.as_deref() == Some(group) && column.name == name)
    }

    /// The error for a column that the file does not have. `otherwise` tells the user what to do if the file is right.
    pub fn no_column(&self, name: &str, otherwise: &str) -> anyhow::Error {
        if self.footer.fields.iter().any(|field| field == name) {
            return problem(
                format!("the column `{name}` of {} holds lists or groups", self.path.display()),
                "give a column of texts or whole numbers for labels, and of texts or bytes for images",
            );
        }
        let suggestion = did_you_mean(name, self.footer.fields.iter().map(String::as_str));
        problem(
            format!(
                "{} has no column `{name}`; its columns are {}",
                self.path.display(),
                self.footer.fields.join(", ")
            ),
            format!("{suggestion}add the column, or {otherwise}"),
        )
    }

    /// The cells of a column, in the order of the rows.
    ///
    /// # Errors
    ///
    /// A column that holds something other than bytes, texts or whole numbers.
    pub fn cells(&self, column: usize) -> Result<Cells> {
        let Column { name, kind, .. } = &self.columns()[column];
        if let Kind::Other(what) = kind {
            return Err(problem(
                format!("the column `{name}` of {} holds {what}", self.path.display()),
                "give a column of texts or whole numbers for labels, and of texts or bytes for images",
            ));
        }
        Ok(self.begin(column, *kind))
    }

    /// The cells of a column, whose values are stored like this.
    fn begin(&self, column: usize, kind: Kind) -> Cells {
        Cells {
            column,
            kind,
            level: self.columns()[column].level,
            next_group: 0,
            chunk: 0..0,
            left: 0,
            dictionary: None,
            dictionaries: 0,
            page: None,
            is_foreign: false,
        }
    }

    /// Reads the next page of a column, and the dictionary before it. Returns whether there is one.
    fn next_page(&mut self, cells: &mut Cells) -> Result<bool, Fault> {
        loop {
            if cells.chunk.is_empty() {
                if cells.left > 0 {
                    return damaged("it has fewer cells than it states");
                }
                let Some(group) = self.footer.groups.get(cells.next_group) else { return Ok(false) };
                let chunk = &group[cells.column];
                cells.next_group += 1;
                cells.chunk = chunk.place.clone();
                cells.left = chunk.cells;
                cells.dictionary = None;
                continue;
            }
            let codec = self.footer.groups[cells.next_group - 1][cells.column].codec;
            let (page, end) = {
                let levels = Levels { repetition: false, definition: cells.level > 0 };
                read_page(&mut self.file, cells.chunk.clone(), codec, levels)?
            };
            cells.chunk.start = end;
            match page {
                Some(page) if page.is_dictionary => {
                    cells.dictionary = Some(Dictionary::new(page, cells.kind)?);
                    cells.dictionaries += 1;
                }
                Some(page) => {
                    let Some(left) = cells.left.checked_sub(page.cells) else {
                        return damaged("it has more cells than it states");
                    };
                    cells.left = left;
                    cells.page =
                        Some(CellsOfPage::new(page, cells.level, cells.kind, cells.dictionary.is_some())?);
                    return Ok(true);
                }
                None => {}
            }
        }
    }
}

/// The footer, and whether it agrees with the file.
fn read_footer<F: Read + Seek>(file: &mut F) -> Result<Footer, Fault> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut tail = [0; 8];
    if length < 12 {
        return Err(Fault::NoParquet);
    }
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut tail)?;
    let (size, magic) = (u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]), &tail[4..]);
    if magic == MAGIC_OF_ENCRYPTED {
        return Err(Fault::Foreign("is encrypted".into(), "write it without encryption"));
    }
    if magic != MAGIC {
        return Err(Fault::NoParquet);
    }
    let end = length - 8;
    let Some(start) = end.checked_sub(size.into()).filter(|&start| start >= 4) else {
        return damaged("its footer is longer than the file");
    };
    file.seek(SeekFrom::Start(start))?;
    if size > LONGEST_FOOTER {
        let how = format!("has a footer of {} MiB", size >> 20);
        return Err(Fault::Foreign(how, "write it as several files, or in larger groups of rows"));
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact(&mut bytes)?;
    Footer::parse(&bytes, length)
}

/// The cells of a column that are not yet read.
#[derive(Debug)]
pub struct Cells {
    column: usize,
    kind: Kind,
    level: u32,
    /// The group of rows after that of the page.
    next_group: usize,
    /// Where the next pages of the chunk are.
    chunk: Range<u64>,
    /// The cells in them.
    left: u64,
    dictionary: Option<Dictionary>,
    /// The number of dictionaries so far.
    dictionaries: u64,
    page: Option<CellsOfPage>,
    is_foreign: bool,
}

impl Cells {
    /// Whether the last error was that the column is written in a way that is not read here.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// The next cell; none after the last.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is damaged.
    pub fn next<'a, F: Read + Seek>(&'a mut self, file: &mut ParquetFile<F>) -> Result<Option<Cell<'a>>> {
        Ok(self.next_with_place(file)?.map(|(cell, _)| cell))
    }

    /// The next cell, and where its value stands if that is in a dictionary.
    ///
    /// # Errors
    ///
    /// As [`Cells::next`].
    pub fn next_with_place<'a, F: Read + Seek>(
        &'a mut self,
        file: &mut ParquetFile<F>,
    ) -> Result<Option<(Cell<'a>, Option<DictionaryPlace>)>> {
        let fault = |file: &ParquetFile<F>, column: usize, fault| {
            explain(
                &format!("the column `{}` of {}", file.columns()[column].name, file.path.display()),
                fault,
            )
        };
        while self.page.as_ref().is_none_or(|page| page.left == 0) {
            match file.next_page(self) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    self.is_foreign = matches!(error, Fault::Foreign(..));
                    return Err(fault(file, self.column, error));
                }
            }
        }
        // The loop ended because there is a page.
        let Some(page) = &mut self.page else { return Ok(None) };
        match page.next(self.level, self.kind, self.dictionary.as_ref()) {
            Some((cell, place)) => Ok(Some((cell, place.map(|place| (self.dictionaries, place))))),
            None => {
                let error = Fault::Damaged("a page ends before its last cell".into());
                Err(fault(file, self.column, error))
            }
        }
    }
}

/// The values to which cells refer.
#[derive(Debug)]
struct Dictionary {
    bytes: Vec<u8>,
    /// Where each value is.
    values: Vec<Range<u32>>,
}

impl Dictionary {
    fn new(page: Page, kind: Kind) -> Result<Self, Fault> {
        let (mut values, mut start) = (Vec::new(), 0);
        for _ in 0..page.cells {
            let Some(value) = plain(&page.bytes, start, kind) else {
                return damaged("a dictionary ends before its last value");
            };
            start = value.end;
            // A page has fewer than 2³¹ bytes, see `read_page`.
            values.push(value.start as u32..value.end as u32);
        }
        Ok(Self { bytes: page.bytes, values })
    }

    fn get(&self, place: u32) -> Option<&[u8]> {
        let value = self.values.get(place as usize)?;
        self.bytes.get(value.start as usize..value.end as usize)
    }
}

/// The cells of a page that are not yet read.
#[derive(Debug)]
struct CellsOfPage {
    bytes: Vec<u8>,
    left: u64,
    repetitions: Runs,
    levels: Runs,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Where the next value begins.
    Plain(usize),
    /// Places in the dictionary.
    Places(Runs),
    /// Numbers.
    Deltas(Deltas),
    /// The lengths of values, and where the next begins.
    Lengths(Deltas, usize),
    /// The bytes that each value takes over from the one before, the lengths of the rest, where the next rest begins, and
    /// the value before.
    Prefixes(Deltas, Deltas, usize, Vec<u8>),
    /// Where the first bytes of the next numbers are, and how many numbers there are.
    Split(Range<usize>, usize),
    /// The bit of the next truth value.
    Bits(usize),
    /// Truth values.
    Runs(Runs),
}

impl CellsOfPage {
    fn new(page: Page, level: u32, kind: Kind, has_dictionary: bool) -> Result<Self, Fault> {
        let width = |largest: u32| (u32::BITS - largest.leading_zeros()) as usize;
        let levels = Runs::new(page.levels, width(level));
        let repetitions = Runs::new(page.repetitions, 1);
        let deltas = |start| match Deltas::new(&page.bytes, start, page.cells) {
            Some(deltas) => Ok(deltas),
            None => damaged("the beginning of the values of a page cannot be read"),
        };
        let values = match (page.encoding, kind) {
            (Encoding::Plain, Kind::Truth) => Values::Bits(8 * page.values),
            (Encoding::Plain, _) => Values::Plain(page.values),
            // The bytes of the runs stand before them.
            (Encoding::Runs, Kind::Truth) => Values::Runs(Runs::new(page.values + 4..page.bytes.len(), 1)),
            (Encoding::Dictionary, _) if !has_dictionary => return damaged("a page lacks its dictionary"),
            (Encoding::Dictionary, _) => {
                // The first byte is the width of a place. Without values there may be none.
                let width = page.bytes.get(page.values).map_or(0, |&width| usize::from(width));
                if width > 32 {
                    return damaged("a page refers to values by numbers that are too long");
                }
                Values::Places(Runs::new(page.values + 1..page.bytes.len(), width))
            }
            (Encoding::Deltas, Kind::Number(_)) => Values::Deltas(deltas(page.values)?),
            (Encoding::Split, Kind::Number(size) | Kind::Fixed(size @ 1..=8)) => {
                let count = (page.bytes.len() - page.values) / size;
                Values::Split(page.values..page.values + count, count)
            }
            (Encoding::DeltaLengths, Kind::Text | Kind::Bytes) => {
                let lengths = deltas(page.values)?;
                let start = lengths.end(&page.bytes);
                Values::Lengths(lengths, start)
            }
            (Encoding::DeltaBytes, Kind::Text | Kind::Bytes) => {
                let prefixes = deltas(page.values)?;
                let lengths = deltas(prefixes.end(&page.bytes))?;
                let start = lengths.end(&page.bytes);
                Values::Prefixes(prefixes, lengths, start, Vec::new())
            }
            _ => return damaged("a page has an encoding that does not fit its values"),
        };
        Ok(Self { bytes: page.bytes, left: page.cells, repetitions, levels, values })
    }

    /// The next cell, and its place in the dictionary if it stands there.
    fn next<'a>(
        &'a mut self,
        level: u32,
        kind: Kind,
        dictionary: Option<&'a Dictionary>,
    ) -> Option<(Cell<'a>, Option<u32>)> {
        self.left -= 1;
        if level > 0 && self.levels.next(&self.bytes)? != level {
            return Some((Cell::Empty, None));
        }
        // The next value, whose length is a number.
        let next = |length: i64, start: &mut usize| {
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            self.bytes.get(std::mem::replace(start, end)..end)
        };
        let (value, place) = match &mut self.values {
            Values::Plain(start) => {
                let value = plain(&self.bytes, *start, kind)?;
                *start = value.end;
                (self.bytes.get(value)?, None)
            }
            Values::Places(places) => {
                let place = places.next(&self.bytes)?;
                (dictionary?.get(place)?, Some(place))
            }
            Values::Lengths(lengths, start) => (next(lengths.next(&self.bytes)?, start)?, None),
            Values::Prefixes(prefixes, lengths, start, value) => {
                let taken_over = usize::try_from(prefixes.next(&self.bytes)?).ok()?;
                let rest = next(lengths.next(&self.bytes)?, start)?;
                (taken_over <= value.len()).then(|| value.truncate(taken_over))?;
                value.extend_from_slice(rest);
                (value.as_slice(), None)
            }
            Values::Deltas(numbers) => {
                let number = numbers.next(&self.bytes)?;
                // The differences of short numbers wrap around where these do.
                let number = if kind == Kind::Number(4) { (number as i32).into() } else { number };
                return Some((Cell::Number(number), None));
            }
            Values::Split(places, count) => {
                let (first, Kind::Number(size) | Kind::Fixed(size @ 1..=8)) = (places.next()?, kind) else {
                    return None;
                };
                let mut number = [0; 8];
                for (place, byte) in number[..size].iter_mut().enumerate() {
                    *byte = *self.bytes.get(first + place * *count)?;
                }
                return Some((Cell::Number(whole_number(&number[..size])?), None));
            }
            Values::Bits(bit) => {
                let value = bits(&self.bytes, *bit, 1)?;
                *bit += 1;
                return Some((Cell::Number(value as i64), None));
            }
            Values::Runs(runs) => return Some((Cell::Number(runs.next(&self.bytes)?.into()), None)),
        };
        let cell = match kind {
            Kind::Number(_) => Cell::Number(whole_number(value)?),
            _ => Cell::Bytes(value),
        };
        Some((cell, place))
    }
}

fn whole_number(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        2 => u16::from_le_bytes(bytes.try_into().ok()?).into(),
        4 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => i64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// Where a value is that begins at a place: a number of a fixed length, or a length and bytes. None behind the end.
fn plain(bytes: &[u8], start: usize, kind: Kind) -> Option<Range<usize>> {
    let rest = bytes.get(start..)?;
    let (start, length) = match kind {
        Kind::Number(length) | Kind::Fixed(length) => (start, length),
        _ => (start + 4, u32::from_le_bytes(*rest.first_chunk()?) as usize),
    };
    let end = start.checked_add(length)?;
    (end <= bytes.len()).then_some(start..end)
}

/// Numbers per byte of a file beyond which it cannot hold embeddings, and how many are always read: a small file can state
/// billions of equal numbers.
const NUMBERS_PER_BYTE: u64 = 256;
const ALWAYS: u64 = 1 << 20;

impl Footer {
    /// Checks that a file of this length can hold so many numbers; `None` is more than can be counted.
    fn check_size(&self, place: &str, numbers: Option<u64>) -> Result<()> {
        let most = self.length.saturating_mul(NUMBERS_PER_BYTE).max(ALWAYS);
        if numbers.is_some_and(|numbers| numbers <= most) {
            return Ok(());
        }
        let numbers = numbers.map_or("too many".into(), |numbers| numbers.to_string());
        Err(problem(
            format!("{place} states {numbers} numbers, but the file has only {} bytes", self.length),
            "write the embeddings again; a file that is so small has the same numbers again and again",
        ))
    }
}

/// A fault as an error of a file, or of a column.
fn explain(place: &str, fault: Fault) -> anyhow::Error {
    match fault {
        Fault::NoParquet => problem(
            format!("{place} is no Parquet file, or only the beginning of one"),
            "check the path, or copy the file again",
        ),
        Fault::Damaged(reason) => {
            problem(format!("{place} is damaged: {reason}"), "copy the file again, or write it again")
        }
        Fault::Foreign(how, hint) => problem(format!("{place} {how}, which akin does not read"), hint),
        Fault::System(error) => {
            problem(format!("{place} cannot be read: {error}"), "check the file and its disk")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use akin_base::problem::parts;

    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            include_bytes!(concat!("../../tests/fixtures/parquet/table-", $name, ".parquet"))
        };
    }

    const READABLE: [(&str, &[u8]); 7] = [
        ("snappy", fixture!("snappy")),
        ("gzip", fixture!("gzip")),
        ("zstd", fixture!("zstd")),
        ("lz4", fixture!("lz4")),
        ("brotli", fixture!("brotli")),
        ("delta", fixture!("delta")),
        ("plain", fixture!("plain")),
    ];

    fn open(bytes: &[u8]) -> Result<ParquetFile<Cursor<&[u8]>>> {
        ParquetFile::new(Path::new("t.parquet"), Cursor::new(bytes))
    }

    /// The cells of a column as texts.
    fn column(bytes: &[u8], name: &str) -> Result<Vec<String>> {
        let mut file = open(bytes)?;
        let place = file.find(name).ok_or_else(|| file.no_column(name, "name another"))?;
        let mut cells = file.cells(place)?;
        let mut texts = Vec::new();
        while let Some(cell) = cells.next(&mut file)? {
            texts.push(match cell {
                Cell::Empty => "-".to_owned(),
                Cell::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Cell::Number(number) => number.to_string(),
            });
        }
        assert_eq!(texts.len() as u64, file.rows());
        Ok(texts)
    }

    fn refusal<T>(result: Result<T>) -> (String, String) {
        let (message, hint) = parts(&result.err().expect("is refused"));
        (message, hint.unwrap())
    }

    #[test]
    fn a_table_reads_the_same_however_it_was_written() {
        for (name, bytes) in READABLE {
            let read = |name| column(bytes, name).unwrap();
            assert_eq!(read("path"), ["a.png", "b.png", "c.png", "d.png", "e.png", "f.png"], "{name}");
            assert_eq!(read("kind"), ["Apple", "Apple", "Apple", "Pear", "Pear", "Pear"], "{name}");
            assert_eq!(read("variety"), ["7", "7", "-8", "9", "9", "-"], "{name}");
            assert_eq!(read("split"), ["train", "train", "test", "test", "-", "test"], "{name}");
            assert!(read("picture").iter().all(|picture| picture.contains("PNG")), "{name}");
            let file = open(bytes).unwrap();
            let kind = |name| file.columns()[file.find(name).unwrap()].kind;
            assert_eq!(
                (kind("path"), kind("picture"), kind("variety")),
                (Kind::Text, Kind::Bytes, Kind::Number(8))
            );
        }
    }

    #[test]
    fn members_of_a_group_and_notes_are_found() {
        let hub = include_bytes!("../../tests/fixtures/parquet/hub/test-00000-of-00001.parquet");
        let mut file = open(hub).unwrap();
        let place = file.find_in("image", "path").unwrap();
        let mut cells = file.cells(place).unwrap();
        assert_eq!(cells.next(&mut file).unwrap(), Some(Cell::Bytes(b"gala-6.png")));
        assert!(file.find_in("image", "width").is_none() && file.find("image").is_none());
        assert!(file.note("huggingface").unwrap().contains("ClassLabel"));
    }

    #[test]
    fn what_is_not_read_is_named() {
        let snappy = READABLE[0].1;
        let (message, hint) = refusal(column(snappy, "weight"));
        assert!(message.ends_with("`weight` of t.parquet holds numbers with a fraction"), "{message}");
        assert!(hint.contains("labels"));
        let (message, hint) = refusal(column(snappy, "kinds"));
        assert!(message.ends_with(
            "no column `kinds`; its columns are path, picture, kind, variety, split, weight, tags"
        ));
        assert!(hint.starts_with("did you mean `kind`?"), "{hint}");
    }

    #[test]
    fn numbers_and_names_are_read_from_their_differences() {
        let bytes = include_bytes!("../../tests/fixtures/parquet/deltas.parquet");
        let wide = |row: i64| row.wrapping_mul(row).wrapping_mul(0x0123_4567_89ab_cdef);
        let read = |name| column(bytes, name).unwrap();
        for row in 0..300 {
            let place = row as usize;
            assert_eq!(read("wide")[place], wide(row).to_string(), "{row}");
            assert_eq!(read("short")[place], (wide(row) as i32).to_string(), "{row}");
            assert_eq!(read("split")[place], (wide(row) as i32).to_string(), "{row}");
            let name = if row % 7 == 0 { "-".to_owned() } else { format!("gala/{:03}/{row}.png", row / 10) };
            assert_eq!([&read("path")[place], &read("length")[place]], [&name; 2]);
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        for bytes in [&b""[..], b"PAR1", b"path,kind\na.png,Apple\n", b"PAR1\0\0\0\0PAR2"] {
            assert!(refusal(open(bytes)).0.contains("is no Parquet file"));
        }
        assert!(refusal(open(b"PAR1\xff\xff\0\0PAR1")).0.contains("longer than the file"));
        assert!(refusal(open(b"PAR1\0\0\0\0PAR1")).0.contains("footer cannot be read"));
        assert!(refusal(open(b"PAR1\0\0\0\0PARE")).0.contains("is encrypted"));
    }

    /// A file that ends in these bytes as its footer.
    fn with_footer(footer: &[u8]) -> Vec<u8> {
        [MAGIC, footer, &(footer.len() as u32).to_le_bytes(), MAGIC].concat()
    }

    #[test]
    fn a_footer_that_would_fill_the_memory_is_refused() {
        let (message, hint) = refusal(open(&with_footer(&vec![0; (64 << 20) + 1])));
        assert!(message.contains("has a footer of 64 MiB") && hint.contains("several files"), "{message}");
        // A list of structs with a flag each.
        let many = [&[0x29, 0xfc, 0x80, 0x80, 0x80, 0x40][..], &[0x11, 0].repeat(4 << 20), &[0]].concat();
        assert!(refusal(open(&with_footer(&many))).0.contains("footer cannot be read"));
    }

    #[test]
    fn chunks_that_overlap_are_refused() {
        let overlapping = include_bytes!("../../tests/fixtures/parquet/overlap.parquet");
        let (message, hint) = refusal(open(overlapping));
        assert!(message.ends_with("names the same bytes as the cells of two columns"), "{message}");
        assert!(hint.contains("write it again"), "{hint}");
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let mut bytes = fixture!("plain").to_vec();
        for place in 0..bytes.len() - 4 {
            if bytes[place..].starts_with(b"path") {
                bytes[place..place + 4].copy_from_slice(b"kind");
            }
        }
        let (message, hint) = refusal(open(&bytes));
        assert!(message.contains("two columns called `kind`") && hint.contains("of its own"), "{message}");
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        std::fs::write(&path, READABLE[0].1).unwrap();
        let file = ParquetFile::open(&path).unwrap();
        file.check_unchanged().unwrap();
        std::fs::write(&path, READABLE[1].1).unwrap();
        assert!(refusal(file.check_unchanged()).0.contains("was changed while it was read"));
    }

    #[test]
    fn a_file_that_is_cut_or_changed_anywhere_does_no_harm() {
        let read_all = |bytes: &[u8]| {
            if let Ok(mut file) = open(bytes) {
                for column in 0..file.columns().len() {
                    let Ok(mut cells) = file.cells(column) else { continue };
                    while let Ok(Some(_)) = cells.next(&mut file) {}
                }
            }
        };
        for (_, bytes) in &READABLE[..6] {
            for end in 0..bytes.len() {
                assert!(open(&bytes[..end]).is_err());
            }
            let mut changed = bytes.to_vec();
            for place in 0..bytes.len() {
                changed[place] ^= [0x01, 0x80, 0xff][place % 3];
                read_all(&changed);
                changed[place] = bytes[place];
            }
        }
    }
}
