//! Reads and writes matrices of embeddings as NumPy's `.npy` files.
//!
//! A file has the magic bytes `\x93NUMPY`, a version, the length of the header, the header (a Python dict such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`), and the numbers.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use akin_base::files::{InputFile, write_atomic};
use akin_base::problem::{Advise, problem};
use anyhow::{Context, Result, bail};

pub use crate::matrix::Matrix;
use crate::matrix::{Array, Layout, NumberType};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
const SAVE_AGAIN: &str = "save it with numpy.save(path, array.astype('float32'))";

/// The bytes of the longest header. NumPy's own headers are shorter than 200 bytes.
const LONGEST_HEADER: u64 = 1 << 16;

/// The most numbers of an array beside the embeddings, such as a scale for each item.
const LONGEST_ARRAY: usize = 1 << 28;

impl Matrix {
    /// Opens a file and reads its header. `packed` says that its bytes are eight bits each.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is damaged, or holds another type or shape.
    pub fn open(path: &Path, packed: bool) -> Result<Self> {
        let file = InputFile::open(path)
            .advise(|| format!("{} cannot be read", path.display()), "check the path")?;
        Self::new(path, file, packed).with_context(|| path.display().to_string())
    }
}

impl<F: Read + Seek> Matrix<F> {
    /// Reads the header of an open file. `path` names it in errors.
    ///
    /// # Errors
    ///
    /// As [`Matrix::open`].
    pub fn new(path: &Path, mut file: F, packed: bool) -> Result<Self> {
        let all = file.seek(SeekFrom::End(0)).advise(|| "the file cannot be read".into(), "try again")?;
        let layout = Header::read(&mut file, 0, all)?.layout(packed)?;
        Ok(Self::at(path, file, layout))
    }
}

/// What a file says of its array.
pub(crate) struct Header {
    start: u64,
    /// The bytes after the header.
    follow: u64,
    text: String,
}

impl Header {
    /// Reads the header of the array in the bytes from `start` to `end` of a file.
    pub(crate) fn read(file: &mut (impl Read + Seek), start: u64, end: u64) -> Result<Self> {
        let cannot = || "the file cannot be read".to_owned();
        file.seek(SeekFrom::Start(start)).advise(cannot, "try again")?;
        let (length, text) = read_header(file, end - start)
            .advise(cannot, "try again")?
            .ok_or_else(|| problem("this is not a .npy file, or its header is truncated", SAVE_AGAIN))?;
        Ok(Self { start: start + length, follow: end - start - length, text })
    }

    /// The type of the numbers, and whether the highest byte is the first.
    fn numbers(&self, packed: bool) -> Result<(NumberType, bool)> {
        let descr = field(&self.text, "descr").unwrap_or_default().trim_matches(['\'', '"']);
        let numbers = match descr.trim_start_matches(['<', '>', '=', '|']) {
            "f2" => NumberType::Float16,
            "f4" => NumberType::Float32,
            "f8" => NumberType::Float64,
            // NumPy has no bfloat16. That of ml_dtypes, which JAX and TensorFlow use, is saved as two bytes.
            "V2" => NumberType::BFloat16,
            "i1" => NumberType::Int8,
            "b1" => NumberType::Bool,
            "u1" if packed => NumberType::Bits,
            "u1" => {
                return Err(problem(
                    "the numbers are bytes without a sign (uint8), which are bits of a code, eight in a byte",
                    "add `--similarity hamming` for packed bits; save other numbers as float32 or int8",
                ));
            }
            _ => {
                return Err(problem(
                    format!(
                        "the numbers have type {descr:?}, but floats, int8, bool or packed bits are needed"
                    ),
                    SAVE_AGAIN,
                ));
            }
        };
        Ok((numbers, descr.starts_with('>')))
    }

    fn shape(&self) -> &str {
        field(&self.text, "shape").unwrap_or_default()
    }

    /// Whether the array is a matrix of numbers that can be embeddings.
    pub(crate) fn is_matrix(&self) -> bool {
        sizes(self.shape()).is_some_and(|sizes| sizes.len() == 2) && self.numbers(true).is_ok()
    }

    /// Where the numbers of a matrix are.
    pub(crate) fn layout(&self, packed: bool) -> Result<Layout> {
        let (numbers, big_endian) = self.numbers(packed)?;
        let shape = self.shape();
        let Some(&[rows, columns]) = sizes(shape).as_deref() else {
            return Err(problem(
                format!("the array has shape {shape}, but shape (items, dimension) is needed"),
                "save a two-dimensional array with one row per item",
            ));
        };
        if columns == 0 {
            return Err(problem(
                format!("the array has shape {shape}, so its {rows} items have no numbers"),
                "save an array with one row of at least one number per item",
            ));
        }
        let by_column = field(&self.text, "fortran_order") == Some("True");
        let layout = Layout { start: self.start, numbers, big_endian, by_column, rows, columns };
        if layout.bytes() != Some(self.follow) {
            return Err(problem(
                format!(
                    "the header describes {rows}×{columns} numbers of {} bytes, but {} bytes follow",
                    numbers.width(),
                    self.follow
                ),
                "the file is truncated or damaged; save it again",
            ));
        }
        Ok(layout)
    }

    /// Reads an array of floats of any shape that stands beside the embeddings.
    pub(crate) fn array(&self, file: &mut (impl Read + Seek)) -> Result<Array> {
        let (numbers, big_endian) = self.numbers(false)?;
        let shape = sizes(self.shape()).unwrap_or_default();
        let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
        let bytes = count.and_then(|count| count.checked_mul(numbers.width()));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(problem("an array is larger than a file can be", SAVE_AGAIN));
        };
        read_array(file, self.start, (bytes, self.follow), (numbers, big_endian), (shape, count))
    }
}

/// Reads an array at a place. `bytes` are those that it needs, and those that are there.
pub(crate) fn read_array(
    file: &mut (impl Read + Seek),
    start: u64,
    (bytes, there): (usize, u64),
    (numbers, big_endian): (NumberType, bool),
    (shape, count): (Vec<usize>, usize),
) -> Result<Array> {
    if bytes as u64 != there || count > LONGEST_ARRAY {
        return Err(problem(
            format!(
                "an array of shape {shape:?} beside the embeddings needs {bytes} bytes, but {there} follow"
            ),
            "the file is truncated or damaged; save it again",
        ));
    }
    let cannot = || "the file cannot be read".to_owned();
    file.seek(SeekFrom::Start(start)).advise(cannot, "try again")?;
    let mut stored = Vec::new();
    file.take(there).read_to_end(&mut stored).advise(cannot, "try again")?;
    let mut values = vec![0.0; count];
    numbers.decode(&stored, big_endian, &mut values);
    Ok(Array { shape, values })
}

/// Where the numbers begin, and the text of the header; `None` if this is no such file. `all` is its length.
fn read_header(file: &mut impl Read, all: u64) -> io::Result<Option<(u64, String)>> {
    let mut read = |length: usize| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Read::by_ref(file).take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let magic = read(MAGIC.len() + 2)?;
    let Some([version, _]) = magic.strip_prefix(MAGIC) else { return Ok(None) };
    let size = if *version == 1 { 2 } else { 4 };
    let length = read(size)?.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    let start = (MAGIC.len() + 2 + size) as u64 + length;
    if start > all || length > LONGEST_HEADER {
        return Ok(None);
    }
    let header = read(length as usize)?;
    Ok(String::from_utf8(header).ok().map(|header| (start, header)))
}

/// The value of a key in the dict of the header, up to the comma that ends it.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    let rest = rest.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim_end())
}

/// `(3, 2)` → [3, 2]; `(3,)` → [3]; `()` → [].
fn sizes(shape: &str) -> Option<Vec<usize>> {
    let inside = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|size| size.trim().parse().ok()).collect()
}

/// Writes a row-major matrix as float32. The file is written completely or not at all.
pub fn write(path: &Path, values: &[f32], columns: usize) -> Result<()> {
    if columns == 0 || !values.len().is_multiple_of(columns) {
        bail!("{} numbers do not fill rows of {columns}", values.len());
    }
    write_atomic(path, |file| write_to(file, values, columns))
}

pub(crate) fn write_to(file: &mut dyn Write, values: &[f32], columns: usize) -> io::Result<()> {
    write_header(file, "<f4", values.len() / columns, columns)?;
    values.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))
}

/// Writes what stands before the numbers of a row-major matrix. `descr` is NumPy's name of their type: `<f4`, `<f2`, `|i1`.
///
/// # Errors
///
/// The errors of `file`.
pub fn write_header(file: &mut dyn Write, descr: &str, rows: usize, columns: usize) -> io::Result<()> {
    let shape = (rows, columns);
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape:?}, }}");
    // The numbers start at a multiple of 64 bytes. 10 bytes before `dict` and a line end after it are counted too.
    let length = (dict.len() + 11).next_multiple_of(64) - 10;
    file.write_all(MAGIC)?;
    file.write_all(&[1, 0])?;
    file.write_all(&(length as u16).to_le_bytes())?;
    writeln!(file, "{dict:<width$}", width = length - 1)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::fs;
    use std::io::Cursor;

    use akin_core::embeddings::Rows;
    use half::f16;

    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [MAGIC, &[1, 0], &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), data].concat()
    }

    fn parse(bytes: &[u8]) -> Result<Matrix<Cursor<&[u8]>>> {
        Matrix::new(Path::new("e.npy"), Cursor::new(bytes), false)
    }

    fn numbers<F: Read + Seek + Debug + Send>(matrix: &Matrix<F>) -> Vec<f32> {
        let mut numbers = vec![0.0; matrix.len() * matrix.dimension()];
        matrix.read(0, &mut numbers).unwrap();
        numbers
    }

    fn refusal(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn written_matrices_are_read_back() {
        let path = tempfile::tempdir().unwrap().keep().join("e.npy");
        let values = [0.5, -1.0, f32::MIN_POSITIVE, 3e30, 0.0, 7.0];
        write(&path, &values, 3).unwrap();
        let matrix = Matrix::open(&path, false).unwrap();
        assert_eq!((matrix.len(), matrix.dimension()), (2, 3));
        assert_eq!(numbers(&matrix), values);
        let mut second = [0.0; 3];
        matrix.read(1, &mut second).unwrap();
        assert_eq!(second, values[3..]);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len() - 24) % 64, 0);
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matrix.read(1, &mut second).unwrap_err().message().contains("e.npy cannot be read"));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn every_float_type_and_byte_order_is_read() {
        let half: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
        let single: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let double: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        for (descr, data) in [("<f2", half), (">f4", single), ("<f8", double)] {
            assert_eq!(numbers(&parse(&file(descr, "False", "(1, 2)", &data)).unwrap()), [1.5, -2.0]);
        }
    }

    #[test]
    fn wrong_types_orders_and_shapes_are_refused() {
        assert!(refusal(&file("<i8", "False", "(1, 1)", &[0; 8])).contains("\"<i8\""));
        assert!(refusal(&file("|O", "False", "(1, 1)", &[0; 8])).contains("\"|O\""));
        assert!(refusal(&file("|u1", "False", "(1, 2)", &[0; 2])).contains("uint8"));
        assert!(refusal(&file("<f4", "False", "(2,)", &[0; 8])).contains("shape (2,)"));
        assert!(refusal(&file("<f4", "False", "(1, 1, 2)", &[0; 8])).contains("shape (1, 1, 2)"));
    }

    #[test]
    fn rows_without_numbers_are_refused_however_many() {
        assert!(refusal(&file("<f4", "False", "(1000000000000, 0)", &[])).contains("have no numbers"));
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(refusal(b"").contains("not a .npy file"));
        assert!(refusal(b"PK\x03\x04 a zip").contains("not a .npy file"));
        assert!(refusal(b"\x93NUMPY\x01\x00\xff\xff{").contains("truncated"));
        assert!(refusal(&file("<f4", "False", "(3, 2)", &[0; 20])).contains("describes 3×2 numbers"));
        let absurd = "(18446744073709551615, 18446744073709551615)";
        assert!(refusal(&file("<f4", "False", absurd, &[])).contains("describes"));
    }
}
