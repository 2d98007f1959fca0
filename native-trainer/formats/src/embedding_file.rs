//! Embeddings in a file of any format that akin reads, and the columns beside them.
//!
//! | format | embeddings | read |
//! |---|---|---|
//! | `.npy` | a matrix in C or Fortran order | by position |
//! | `.npz` | a matrix of an archive; compressed ones are unpacked into a temporary file | by position |
//! | `.safetensors` | a tensor [N, d] | by position |
//! | Parquet | a column of lists of one length, or of bytes of a fixed length | by position |
//! | Parquet | a column for each number, as pandas writes an array | into memory |
//! | CSV, TSV, text | a column for each number, a column of lists, or nothing but numbers | into memory |
//! | JSON lines | a field with a list, or nothing but lists | into memory |
//!
//! Numbers are float64 (rounded to float32), float32, float16, bfloat16, int8, bool, or packed bits. Bits are −1 and 1, so
//! that every similarity orders codes as the Hamming distance does. Packed bits are bytes without a sign, the highest bit
//! first, as `numpy.packbits`, faiss and sentence-transformers (`ubinary`) have them.
//!
//! int8 numbers stand for number · scale + offset, from the arrays `scale` and `offset` beside them in `.npz` and
//! `.safetensors`, each one number, one for each column, or one for each item ([N, 1]). The int8 of sentence-transformers has
//! scale = step and offset = start + 128 · step. Without them a number stands for itself: one scale for all, as usearch has
//! it, changes no ranking but that of the Poincaré distance.

use std::ops::Range;
use std::path::{Path, PathBuf};

use akin_base::problem::{a_few, did_you_mean, problem};
use akin_core::embeddings::Rows;
use anyhow::{Context, Result};

use crate::npy::{self, Matrix};
use crate::parquet_file::ParquetFile;
use crate::source::Source;
use crate::table::Table;
use crate::{npz, safetensors_file, text_matrix};

pub(crate) const SCALE: &str = "scale";
pub(crate) const OFFSET: &str = "offset";

/// The names that embeddings have if the user gives none.
const USUAL: [&str; 2] = ["embeddings", "embedding"];

/// Which of the numbers of a file are the embeddings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The name of the array, tensor, column or field. Without it `embeddings`, `embedding`, or the only one.
    pub name: Option<String>,
    /// Whether bytes without a sign are eight bits each.
    pub packed: bool,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's file of one array.
    Npy,
    /// NumPy's archive of arrays.
    Npz,
    /// Tensors after a header in JSON.
    Safetensors,
    /// A table by columns.
    Parquet,
    /// A table or a matrix as text.
    Text,
    /// A JSON value on each line.
    JsonLines,
}

impl Format {
    /// The format that the first bytes of a file show; by its name where they do not.
    fn of(first: &[u8], path: &Path) -> Self {
        let ending =
            path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let begins = |magic: &[u8]| first.starts_with(magic);
        match ending.as_str() {
            _ if begins(npy::MAGIC) => Self::Npy,
            _ if begins(b"PK\x03\x04") || begins(b"PK\x05\x06") => Self::Npz,
            _ if begins(b"PAR1") || begins(b"PARE") => Self::Parquet,
            // The length of a header, which begins with a brace.
            _ if first.get(8) == Some(&b'{') && first[3..8] == [0; 5] => Self::Safetensors,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "parquet" => Self::Parquet,
            "safetensors" => Self::Safetensors,
            "jsonl" | "ndjson" => Self::JsonLines,
            "csv" | "tsv" | "txt" => Self::Text,
            _ if matches!(first.trim_ascii_start().first(), Some(b'{' | b'[')) => Self::JsonLines,
            _ => Self::Text,
        }
    }

    /// The format of a source.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn of_source(source: &mut Source) -> Result<Self> {
        let first = source.first(64)?;
        Ok(Self::of(&first, &source.name()))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct EmbeddingFile {
    source: Source,
    format: Format,
    bytes: u64,
    rows: Box<dyn Rows + Send>,
}

impl EmbeddingFile {
    /// Opens a file, or standard input if the path is `-`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is damaged, or holds no embeddings.
    pub fn open(path: &Path, choice: &Choice) -> Result<Self> {
        let mut source = Source::open(path)?;
        let (format, bytes) = (Format::of_source(&mut source)?, source.length()?);
        let open = || -> Result<Box<dyn Rows + Send>> {
            Ok(match format {
                Format::Npy => {
                    no_choice(choice)?;
                    Box::new(Matrix::new(&source.name(), source.again()?, choice.packed)?)
                }
                Format::Npz => npz::open(&source, choice)?,
                Format::Safetensors => safetensors_file::open(&source, choice)?,
                Format::Parquet => ParquetFile::new(&source.name(), source.again()?)?.embeddings(choice)?,
                Format::Text => Box::new(text_matrix::read_text(source.again()?, choice)?),
                Format::JsonLines => Box::new(text_matrix::read_json_lines(source.again()?, choice)?),
            })
        };
        let rows = open().with_context(|| source.name().display().to_string())?;
        Ok(Self { source, format, bytes, rows })
    }

    /// Its path, or `standard input`.
    pub fn name(&self) -> PathBuf {
        self.source.name()
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The columns beside the embeddings.
    ///
    /// # Errors
    ///
    /// A format without columns.
    pub fn table(&self) -> Result<Table> {
        match self.format {
            Format::Npy | Format::Npz | Format::Safetensors => Err(problem(
                format!("{} holds embeddings, but no columns with labels", self.name().display()),
                "give the labels in a file of their own with `--query-labels` or `--gallery-labels`",
            )),
            Format::Parquet | Format::Text | Format::JsonLines => Table::new(self.source.again()?),
        }
    }

    /// SHA-256 of the whole file. `read` is called with numbers of bytes that are read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn digest(&self, read: impl Fn(u64)) -> Result<[u8; 32]> {
        self.source.digest(read)
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Its length or its time of modification is another.
    pub fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }
}

impl Rows for EmbeddingFile {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dimension(&self) -> usize {
        self.rows.dimension()
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> akin_core::Result<()> {
        self.rows.read(first, rows)
    }
}

fn no_choice(choice: &Choice) -> Result<()> {
    match &choice.name {
        None => Ok(()),
        Some(name) => Err(problem(
            format!("a .npy file has one array, but `--embedding-column {name}` names one of several"),
            "remove the option",
        )),
    }
}

/// Columns beside each other whose names are a text and then 0, 1, 2, … or 1, 2, 3, …, with that text.
pub(crate) fn numbered<'a>(columns: impl Iterator<Item = (usize, &'a str)>) -> Vec<(String, Range<usize>)> {
    let mut groups: Vec<(String, Range<usize>)> = Vec::new();
    for (column, name) in columns {
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let Ok(number) = name[stem.len()..].parse::<usize>() else { continue };
        match groups.last_mut() {
            Some((last, columns)) if last == stem && columns.end == column => columns.end += 1,
            _ if number <= 1 => groups.push((stem.to_owned(), column..column + 1)),
            _ => {}
        }
    }
    groups
}

/// The name of the embeddings among those of the matrices, columns or fields of a file: `what` they are.
pub(crate) fn choose(what: &str, candidates: &[&str], choice: &Choice) -> Result<String> {
    if let Some(name) = &choice.name {
        if candidates.contains(&name.as_str()) {
            return Ok(name.clone());
        }
        let near = did_you_mean(name, candidates.iter().copied());
        let there = match candidates {
            [] => format!("no {what} of the file can be one"),
            _ => format!("it has {}", a_few(candidates)),
        };
        return Err(problem(
            format!("the file has no {what} `{name}` of embeddings"),
            format!("{near}{there}; correct `--embedding-column`"),
        ));
    }
    if let Some(name) = USUAL.iter().find(|name| candidates.contains(name)) {
        return Ok((*name).to_owned());
    }
    match candidates {
        [one] => Ok((*one).to_owned()),
        [] => Err(problem(
            format!("the file has no {what} of embeddings"),
            "write one list of numbers, or one row of a matrix, for each item",
        )),
        several => Err(problem(
            format!("the file has several that can be embeddings: {}", a_few(several)),
            "name one with `--embedding-column`",
        )),
    }
}
