//! The footer: the columns of the table, and where their cells are.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::page::{Codec, Fault, damaged};
use super::thrift::Struct;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Footer {
    /// The names at the top of the table: of columns, and of groups of columns.
    pub fields: Vec<String>,
    /// The columns with values.
    pub columns: Vec<Column>,
    /// The chunk of each column, by group of rows.
    pub groups: Vec<Vec<Chunk>>,
    /// The number of rows of each group.
    pub rows_of_groups: Vec<u64>,
    /// The number of rows.
    pub rows: u64,
    /// The bytes of the file.
    pub length: u64,
    /// What the program that wrote the file noted, by key.
    pub notes: Vec<(String, String)>,
}

/// A column with values.
#[derive(Debug)]
pub struct Column {
    /// The group that it is in, if it is in one.
    pub group: Option<Arc<str>>,
    /// Its name.
    pub name: String,
    /// What its cells hold.
    pub kind: Kind,
    /// The definition level of a cell with a value. 0 if no cell can be empty.
    pub level: u32,
    /// How numbers are read from it, if it can hold embeddings or one number of each.
    pub(crate) numbers: Option<Numbers>,
}

impl Column {
    /// How numbers are read from it, if an item has several in it.
    pub(crate) fn lists(&self) -> Option<Numbers> {
        self.numbers.filter(|numbers| numbers.repetition == 1 || matches!(numbers.element, Element::Bytes(_)))
    }

    /// Whether it has a number for each item.
    pub(crate) fn is_numeric(&self) -> bool {
        self.group.is_none() && self.numbers.is_some() && self.lists().is_none()
    }
}

/// Embeddings in a column: lists of one length, or bytes of a fixed length; or one number of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// How a value is stored.
    pub kind: Kind,
    /// What it holds.
    pub element: Element,
    /// The repetition level of values that do not begin a list; 0 if an item has one value.
    pub repetition: u32,
}

/// What a value of an embedding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float16,
    Float32,
    Float64,
    Whole,
    Truth,
    /// Eight bits in a number without a sign.
    Byte,
    /// Bits in bytes of a fixed length.
    Bytes(usize),
}

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Bytes.
    Bytes,
    /// Whole numbers of this many bytes.
    Number(usize),
    /// Bytes of this fixed length.
    Fixed(usize),
    /// Truth values.
    Truth,
    /// Something that is not read here.
    Other(&'static str),
}

/// The cells of a column in a group of rows.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Where they are in the file.
    pub place: Range<u64>,
    /// How they are compressed.
    pub codec: Codec,
    /// How many they are.
    pub cells: u64,
}

/// The most values in a footer: 40 for each of 50,000 chunks. However they are nested, they take about 0.3 GB of memory.
const VALUES: usize = 2 << 20;

/// Rows per byte of a file beyond which it cannot be a table of images: each image needs a path or bytes of its own.
const ROWS_PER_BYTE: u64 = 4;

impl Footer {
    /// Reads the footer of a file of this length.
    ///
    /// # Errors
    ///
    /// Bytes that are no footer, chunks outside of the file or over one another, and columns that differ in their number of
    /// rows.
    pub(crate) fn parse(bytes: &[u8], file_length: u64) -> Result<Self, Fault> {
        let unreadable = || Fault::Damaged("its footer cannot be read".into());
        let (footer, _) = Struct::read(bytes, VALUES).ok_or_else(unreadable)?;
        let (fields, columns) =
            footer.children(2).and_then(|schema| columns(&schema)).ok_or_else(unreadable)?;
        let mut names = HashSet::new();
        if let Some(name) = fields.iter().find(|name| !names.insert(*name)) {
            let how = format!("has two columns called `{name}`");
            return Err(Fault::Foreign(how, "give each column a name of its own"));
        }
        let (mut groups, mut rows_of_groups) = (Vec::new(), Vec::new());
        let mut rows = 0_u64;
        for group in footer.children(4).ok_or_else(unreadable)? {
            let rows_of_group = group.number(3).and_then(|rows| u64::try_from(rows).ok());
            let (Some(rows_of_group), Some(chunks)) = (rows_of_group, group.children(1)) else {
                return Err(unreadable());
            };
            let chunks: Option<Vec<Chunk>> = chunks.into_iter().map(chunk).collect();
            let chunks = chunks.ok_or_else(unreadable)?;
            if chunks.len() != columns.len() {
                return damaged("its footer lacks columns");
            }
            if chunks.iter().any(|chunk| chunk.place.end > file_length) {
                return damaged("its footer names cells behind its end");
            }
            // A column of lists has more cells than rows.
            let mut read =
                chunks.iter().zip(&columns).filter(|(_, column)| !matches!(column.kind, Kind::Other(_)));
            if read.any(|(chunk, _)| chunk.cells != rows_of_group) {
                return damaged("its columns differ in their number of rows");
            }
            rows = rows.saturating_add(rows_of_group);
            groups.push(chunks);
            rows_of_groups.push(rows_of_group);
        }
        if rows / ROWS_PER_BYTE > file_length {
            return damaged(format!("it states {rows} rows, but has only {file_length} bytes"));
        }
        let mut places: Vec<&Range<u64>> = groups.iter().flatten().map(|chunk| &chunk.place).collect();
        places.retain(|place| !place.is_empty());
        places.sort_unstable_by_key(|place| place.start);
        // Otherwise a small file could unpack the same bytes again and again.
        if !places.is_sorted_by(|one, next| one.end <= next.start) {
            return damaged("its footer names the same bytes as the cells of two columns");
        }
        let note = |note: &Struct| Some((note.text(1)?.to_owned(), note.text(2)?.to_owned()));
        let notes = footer.children(5).unwrap_or_default().into_iter().filter_map(note).collect();
        Ok(Self { fields, columns, groups, rows_of_groups, rows, length: file_length, notes })
    }
}

fn chunk(chunk: &Struct) -> Option<Chunk> {
    // Cells in another file have a field 1.
    let cells = chunk.child(3).filter(|_| chunk.text(1).is_none())?;
    let number = |field| cells.number(field).and_then(|number| u64::try_from(number).ok());
    let first_page = number(9)?;
    // Some programs write 0 if there is no dictionary.
    let start = number(11).filter(|&start| start > 0).map_or(first_page, |start| start.min(first_page));
    Some(Chunk {
        place: start..start.checked_add(number(7)?)?,
        codec: Codec(cells.number(4)?),
        cells: number(5)?,
    })
}

/// A group of columns whose members are not all read.
struct Open {
    members: i64,
    level: u32,
    is_repeated: bool,
    repetitions: u32,
}

/// The names at the top of a schema, and its columns with values. A schema lists the table, which is a group, and then
/// its fields, each group before its members.
fn columns(schema: &[&Struct]) -> Option<(Vec<String>, Vec<Column>)> {
    let (table, rest) = schema.split_first()?;
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    let mut open = vec![Open {
        members: table.number(5).filter(|&members| members >= 0)?,
        level: 0,
        is_repeated: false,
        repetitions: 0,
    }];
    let mut group: Option<Arc<str>> = None;
    for field in rest {
        while open.last()?.members == 0 {
            open.pop();
        }
        let depth = open.len();
        let above = open.last_mut()?;
        above.members -= 1;
        // 0: required, 1: optional, 2: repeated.
        let repetition = field.number(3)?;
        let level = above.level + u32::from(repetition > 0);
        let is_repeated = above.is_repeated || repetition == 2;
        let repetitions = above.repetitions + u32::from(repetition == 2);
        let name = field.text(4)?;
        if depth == 1 {
            fields.push(name.to_owned());
        }
        match field.number(5).filter(|&members| members > 0) {
            Some(members) => {
                if depth == 1 {
                    group = Some(name.into());
                }
                open.push(Open { members, level, is_repeated, repetitions });
            }
            None => {
                let kind = match depth {
                    _ if is_repeated => Kind::Other("lists"),
                    1 | 2 => kind(field),
                    _ => Kind::Other("groups inside groups"),
                };
                let group = group.clone().filter(|_| depth > 1);
                let numbers = numbers(field, repetitions);
                columns.push(Column { group, name: name.to_owned(), kind, level, numbers });
            }
        }
    }
    Some((fields, columns))
}

/// How embeddings are read from a column whose values are inside this many lists.
fn numbers(column: &Struct, repetition: u32) -> Option<Numbers> {
    if repetition > 1 {
        return None;
    }
    // A converted type of 11 is a byte without a sign; of the logical type, 10 is a whole number with its bits, and 15 a
    // float16.
    let logical = column.child(10);
    let is_byte = column.number(6) == Some(11)
        || logical
            .and_then(|logical| logical.child(10))
            .is_some_and(|whole| whole.number(1) == Some(8) && whole.number(2) == Some(0));
    let length =
        column.number(2).and_then(|length| usize::try_from(length).ok()).filter(|&length| length > 0);
    let (kind, element) = match (column.number(1)?, length) {
        (0, _) => (Kind::Truth, Element::Truth),
        (1, _) if is_byte => (Kind::Number(4), Element::Byte),
        (1, _) => (Kind::Number(4), Element::Whole),
        (2, _) => (Kind::Number(8), Element::Whole),
        (4, _) => (Kind::Number(4), Element::Float32),
        (5, _) => (Kind::Number(8), Element::Float64),
        (7, Some(2)) if logical.is_some_and(|logical| logical.child(15).is_some()) => {
            (Kind::Fixed(2), Element::Float16)
        }
        (7, Some(length)) if repetition == 0 => (Kind::Fixed(length), Element::Bytes(length)),
        _ => return None,
    };
    Some(Numbers { kind, element, repetition })
}

fn kind(column: &Struct) -> Kind {
    // A converted type of 0 is UTF-8, and 4 a name of an enumeration; of the logical type these are the fields 1 and 4.
    let is_text = matches!(column.number(6), Some(0 | 4))
        || column.child(10).is_some_and(|logical| [1, 4].iter().any(|&text| logical.child(text).is_some()));
    match column.number(1) {
        Some(1) => Kind::Number(4),
        Some(2) => Kind::Number(8),
        Some(6) if is_text => Kind::Text,
        Some(6) => Kind::Bytes,
        Some(0) => Kind::Other("truth values"),
        Some(3) => Kind::Other("times"),
        Some(4 | 5) => Kind::Other("numbers with a fraction"),
        Some(7) => Kind::Other("bytes of a fixed length"),
        _ => Kind::Other("values of an unknown type"),
    }
}
