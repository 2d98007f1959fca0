//! A matrix of numbers in a part of a file, whose rows are read by position. `.npy`, `.npz` and `.safetensors` hold one.

use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use akin_base::files::InputFile;
use akin_base::problem::problem;
use akin_core::embeddings::Rows;
use akin_core::{Error, Kind};
use anyhow::Result;
use half::{bf16, f16};

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// IEEE 754, 16 bits.
    Float16,
    /// The upper half of a float32.
    BFloat16,
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits, rounded to 32.
    Float64,
    /// A whole number from −128 to 127.
    Int8,
    /// A byte that is 0 or not: −1 or 1.
    Bool,
    /// Eight bits, the highest first, as `numpy.packbits` writes them: each is −1 or 1.
    Bits,
}

impl NumberType {
    /// Bytes of what is stored.
    pub fn width(self) -> usize {
        match self {
            Self::Int8 | Self::Bool | Self::Bits => 1,
            Self::Float16 | Self::BFloat16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// Numbers in what is stored.
    pub fn numbers(self) -> usize {
        if self == Self::Bits { 8 } else { 1 }
    }

    /// Decodes bytes in this order.
    pub(crate) fn decode(self, bytes: &[u8], big_endian: bool, numbers: &mut [f32]) {
        match self {
            Self::Float16 => decode(bytes, numbers, big_endian, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Self::BFloat16 => decode(bytes, numbers, big_endian, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Self::Float32 => decode(bytes, numbers, big_endian, f32::from_le_bytes),
            Self::Float64 => decode(bytes, numbers, big_endian, |bytes| f64::from_le_bytes(bytes) as f32),
            Self::Int8 => decode(bytes, numbers, big_endian, |bytes| i8::from_le_bytes(bytes).into()),
            Self::Bool => decode(bytes, numbers, big_endian, |[byte]| sign(byte != 0)),
            Self::Bits => {
                for (numbers, byte) in numbers.chunks_mut(8).zip(bytes) {
                    (0..).zip(numbers).for_each(|(bit, number)| *number = sign(byte << bit & 0x80 != 0));
                }
            }
        }
    }
}

/// A bit as a number, so that every similarity of two codes orders them as their Hamming distance does.
pub(crate) fn sign(bit: bool) -> f32 {
    if bit { 1.0 } else { -1.0 }
}

/// Decodes numbers of WIDTH bytes.
fn decode<const WIDTH: usize>(
    bytes: &[u8],
    numbers: &mut [f32],
    big_endian: bool,
    number: impl Fn([u8; WIDTH]) -> f32,
) {
    let (bytes, _) = bytes.as_chunks::<WIDTH>();
    for (value, &bytes) in numbers.iter_mut().zip(bytes) {
        let mut bytes = bytes;
        if big_endian {
            bytes.reverse();
        }
        *value = number(bytes);
    }
}

/// Where the numbers of a matrix are in a file, and how they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where they begin.
    pub start: u64,
    /// How each is written.
    pub numbers: NumberType,
    /// Whether the highest byte of a number is the first.
    pub big_endian: bool,
    /// Whether they are column by column (Fortran order), and not row by row (C order).
    pub by_column: bool,
    /// The number of items.
    pub rows: usize,
    /// What is stored of an item: numbers, or bytes with eight bits each.
    pub columns: usize,
}

impl Layout {
    /// The bytes of all numbers; none if they are more than a file can have.
    pub fn bytes(&self) -> Option<u64> {
        let count = self.rows.checked_mul(self.columns)?.checked_mul(self.numbers.width())?;
        u64::try_from(count).ok()
    }
}

/// What int8 numbers stand for: value = number · scale + offset, in float32.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    scale: Vec<f32>,
    offset: Vec<f32>,
    of: Scaled,
}

/// For what there is a scale of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scaled {
    All,
    Columns,
    Rows,
}

impl Scale {
    /// From an array `scale` of one number, of one for each of d columns ([d] or [1, d]), or of one for each of N rows
    /// ([N, 1]), and an array `offset` of the same size.
    ///
    /// # Errors
    ///
    /// Other sizes; a number that is not finite.
    pub(crate) fn new(scale: &Array, offset: Option<&Array>, rows: usize, columns: usize) -> Result<Self> {
        let of = match scale.shape[..] {
            [] | [1] | [1, 1] => Scaled::All,
            [count] | [1, count] if count == columns => Scaled::Columns,
            [count, 1] if count == rows => Scaled::Rows,
            _ => {
                return Err(problem(
                    format!("`scale` has shape {:?}, but the int8 numbers are {rows}×{columns}", scale.shape),
                    format!(
                        "write one number, one for each column ([{columns}]), or one for each item ([{rows}, 1])"
                    ),
                ));
            }
        };
        let offset = match offset {
            None => vec![0.0; scale.values.len()],
            Some(offset) if offset.values.len() == scale.values.len() => offset.values.clone(),
            Some(offset) => {
                return Err(problem(
                    format!("`offset` has shape {:?}, but `scale` has {:?}", offset.shape, scale.shape),
                    "write both in the same shape",
                ));
            }
        };
        if scale.values.iter().chain(&offset).any(|value| !value.is_finite()) {
            return Err(problem("`scale` or `offset` is not finite", "write finite numbers"));
        }
        Ok(Self { scale: scale.values.clone(), offset, of })
    }

    fn apply(&self, first: usize, columns: usize, rows: &mut [f32]) {
        for (row, values) in (first..).zip(rows.chunks_mut(columns)) {
            for (column, value) in values.iter_mut().enumerate() {
                let place = match self.of {
                    Scaled::All => 0,
                    Scaled::Columns => column,
                    Scaled::Rows => row,
                };
                *value = *value * self.scale[place] + self.offset[place];
            }
        }
    }
}

/// A small array beside the embeddings.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// See the [module](self). Memory holds only the rows that are asked for.
#[derive(Debug)]
pub struct Matrix<F = InputFile> {
    pub(crate) path: PathBuf,
    pub(crate) file: Mutex<F>,
    layout: Layout,
    scale: Option<Scale>,
}

impl<F: Read + Seek> Matrix<F> {
    /// The matrix at a place of a file that has all its bytes. `path` names it in errors.
    pub(crate) fn at(path: &Path, file: F, layout: Layout) -> Self {
        Self { path: path.to_owned(), file: Mutex::new(file), layout, scale: None }
    }

    /// With a factor for each row, by which its numbers are multiplied.
    ///
    /// # Errors
    ///
    /// Another number of factors; one that is not finite.
    pub fn with_row_scales(self, scales: Vec<f32>) -> Result<Self> {
        let scale = Array { shape: vec![scales.len(), 1], values: scales };
        let scale = Scale::new(&scale, None, self.layout.rows, self.layout.columns)?;
        Ok(self.scaled(Some(scale)))
    }

    /// How its numbers are written.
    pub fn number_type(&self) -> NumberType {
        self.layout.numbers
    }

    /// With what its numbers stand for.
    pub(crate) fn scaled(self, scale: Option<Scale>) -> Self {
        Self { scale, ..self }
    }

    /// The number of items, N.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    fn numbers_of(&self, first: usize, rows: &mut [f32]) -> io::Result<()> {
        let Layout { start, numbers, big_endian, by_column, rows: all, columns } = self.layout;
        let (width, count) = (numbers.width(), rows.len() / self.dimension_of());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if !by_column {
            let mut bytes = vec![0; count * columns * width];
            file.seek(SeekFrom::Start(start + (first * columns * width) as u64))?;
            file.read_exact(&mut bytes)?;
            numbers.decode(&bytes, big_endian, rows);
            return Ok(());
        }
        let per_cell = numbers.numbers();
        let (mut bytes, mut column_of_rows) = (vec![0; count * width], vec![0.0; count * per_cell]);
        for column in 0..columns {
            file.seek(SeekFrom::Start(start + ((column * all + first) * width) as u64))?;
            file.read_exact(&mut bytes)?;
            numbers.decode(&bytes, big_endian, &mut column_of_rows);
            let rows = rows.chunks_mut(columns * per_cell);
            for (row, cell) in rows.zip(column_of_rows.chunks(per_cell)) {
                row[column * per_cell..][..per_cell].copy_from_slice(cell);
            }
        }
        Ok(())
    }

    fn dimension_of(&self) -> usize {
        self.layout.columns * self.layout.numbers.numbers()
    }
}

impl<F: Read + Seek + Debug + Send> Rows for Matrix<F> {
    fn len(&self) -> usize {
        self.layout.rows
    }

    fn dimension(&self) -> usize {
        self.dimension_of()
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> akin_core::Result<()> {
        let dimension = self.dimension_of();
        assert!(first * dimension + rows.len() <= self.layout.rows * dimension, "rows of the file");
        self.numbers_of(first, rows).map_err(|error| cannot_read(&self.path, &error))?;
        if let Some(scale) = &self.scale {
            scale.apply(first, dimension, rows);
        }
        Ok(())
    }
}

/// The error of a file that could be read when it was opened.
pub(crate) fn cannot_read(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(
        Kind::Embeddings,
        format!("{} cannot be read: {error}", path.display()),
        "check that nothing changes the file while it is evaluated",
    )
}
