//! Reads and writes matrices of embeddings as NumPy's `.npy` files.
//!
//! A file has the magic bytes `\x93NUMPY`, a version, the length of the header, the header (a Python dict such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`), and the numbers.

use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use akin_base::files::{InputFile, write_atomic};
use akin_base::problem::{Advise, problem};
use akin_core::embeddings::Rows;
use akin_core::{Error, Kind};
use anyhow::{Context, Result, bail};
use half::f16;
use sha2::{Digest, Sha256};

const MAGIC: &[u8] = b"\x93NUMPY";
const SAVE_AGAIN: &str = "save it with numpy.save(path, numpy.ascontiguousarray(array, dtype='float32'))";

/// A matrix of float16, float32 or float64 in C order, whose rows are read by position. float64 is rounded to float32.
/// Memory holds only the rows that are asked for.
#[derive(Debug)]
pub struct Matrix<F = InputFile> {
    path: PathBuf,
    file: Mutex<F>,
    /// Where the numbers begin.
    start: u64,
    /// Of a number, in bytes.
    width: usize,
    big_endian: bool,
    rows: usize,
    columns: usize,
}

impl Matrix {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is damaged, or holds another type, shape or order.
    pub fn open(path: &Path) -> Result<Self> {
        let file = InputFile::open(path)
            .advise(|| format!("{} cannot be read", path.display()), "check the path")?;
        Self::new(path, file).with_context(|| path.display().to_string())
    }

    /// SHA-256 of the whole file. `read` is called with numbers of bytes that are read.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn digest(&self, read: impl Fn(u64)) -> Result<[u8; 32]> {
        let mut digest = Sha256::new();
        let mut bytes = vec![0; 1 << 20];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let cannot = || format!("{} cannot be read", self.path.display());
        file.seek(SeekFrom::Start(0)).advise(cannot, "try again")?;
        loop {
            let length = file.read(&mut bytes).advise(cannot, "try again")?;
            if length == 0 {
                return Ok(digest.finalize().into());
            }
            digest.update(&bytes[..length]);
            read(length as u64);
        }
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Its length or its time of modification is another.
    pub fn check_unchanged(&self) -> Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).check_unchanged()
    }
}

impl<F: Read + Seek> Matrix<F> {
    /// Reads the header of an open file. `path` names it in errors.
    ///
    /// # Errors
    ///
    /// As [`Matrix::open`].
    pub fn new(path: &Path, mut file: F) -> Result<Self> {
        let cannot = "the file cannot be read";
        let all = file.seek(SeekFrom::End(0)).advise(|| cannot.into(), "try again")?;
        file.seek(SeekFrom::Start(0)).advise(|| cannot.into(), "try again")?;
        let (start, header) = read_header(&mut file, all)
            .advise(|| cannot.into(), "try again")?
            .ok_or_else(|| problem("this is not a .npy file, or its header is truncated", SAVE_AGAIN))?;
        let descr = field(&header, "descr").unwrap_or_default().trim_matches(['\'', '"']);
        let width = match descr.trim_start_matches(['<', '>', '=']) {
            "f2" => 2,
            "f4" => 4,
            "f8" => 8,
            _ => {
                return Err(problem(
                    format!("the numbers have type {descr:?}, but float16, float32 or float64 is needed"),
                    SAVE_AGAIN,
                ));
            }
        };
        if field(&header, "fortran_order") != Some("False") {
            return Err(problem(
                "the array is in Fortran order (column by column), but C order is needed",
                SAVE_AGAIN,
            ));
        }
        let shape = field(&header, "shape").unwrap_or_default();
        let Some([rows, columns]) = two_sizes(shape) else {
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
        let expected = rows.checked_mul(columns).and_then(|count| count.checked_mul(width));
        if expected.map(|expected| expected as u64) != Some(all - start) {
            return Err(problem(
                format!(
                    "the header describes {rows}×{columns} numbers of {width} bytes, but {} bytes follow",
                    all - start
                ),
                "the file is truncated or damaged; save it again",
            ));
        }
        let big_endian = descr.starts_with('>');
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), start, width, big_endian, rows, columns })
    }

    /// The number of items, N.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.start + (self.rows * self.columns * self.width) as u64
    }
}

impl<F: Read + Seek + Debug + Send> Rows for Matrix<F> {
    fn len(&self) -> usize {
        self.rows
    }

    fn dimension(&self) -> usize {
        self.columns
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> akin_core::Result<()> {
        assert!(first * self.columns + rows.len() <= self.rows * self.columns, "rows of the file");
        let mut bytes = vec![0; rows.len() * self.width];
        let start = self.start + (first * self.columns * self.width) as u64;
        let mut read = || -> io::Result<()> {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut bytes)
        };
        read().map_err(|error| {
            Error::new(
                Kind::Embeddings,
                format!("{} cannot be read: {error}", self.path.display()),
                "check that nothing changes the file while it is evaluated",
            )
        })?;
        match self.width {
            2 => decode(&bytes, rows, self.big_endian, |bytes| f16::from_le_bytes(bytes).to_f32()),
            4 => decode(&bytes, rows, self.big_endian, f32::from_le_bytes),
            _ => decode(&bytes, rows, self.big_endian, |bytes| f64::from_le_bytes(bytes) as f32),
        }
        Ok(())
    }
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
    if start > all {
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

/// `(3, 2)` → [3, 2].
fn two_sizes(shape: &str) -> Option<[usize; 2]> {
    let (rows, columns) = shape.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some([rows.trim().parse().ok()?, columns.trim().parse().ok()?])
}

/// Writes a row-major matrix as float32. The file is written completely or not at all.
pub fn write(path: &Path, values: &[f32], columns: usize) -> Result<()> {
    if columns == 0 || !values.len().is_multiple_of(columns) {
        bail!("{} numbers do not fill rows of {columns}", values.len());
    }
    write_atomic(path, |file| write_to(file, values, columns))
}

fn write_to(file: &mut dyn Write, values: &[f32], columns: usize) -> io::Result<()> {
    let shape = (values.len() / columns, columns);
    let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape:?}, }}");
    // The numbers start at a multiple of 64 bytes. 10 bytes before `dict` and a line end after it are counted too.
    let length = (dict.len() + 11).next_multiple_of(64) - 10;
    file.write_all(MAGIC)?;
    file.write_all(&[1, 0])?;
    file.write_all(&(length as u16).to_le_bytes())?;
    writeln!(file, "{dict:<width$}", width = length - 1)?;
    values.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;

    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [MAGIC, &[1, 0], &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), data].concat()
    }

    fn parse(bytes: &[u8]) -> Result<Matrix<Cursor<&[u8]>>> {
        Matrix::new(Path::new("e.npy"), Cursor::new(bytes))
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
        let matrix = Matrix::open(&path).unwrap();
        assert_eq!((matrix.len(), matrix.dimension()), (2, 3));
        assert_eq!(numbers(&matrix), values);
        let mut second = [0.0; 3];
        matrix.read(1, &mut second).unwrap();
        assert_eq!(second, values[3..]);
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len() - 24) % 64, 0);
        assert_eq!(matrix.digest(|_| {}).unwrap(), *Sha256::digest(&bytes));
        matrix.check_unchanged().unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matrix.check_unchanged().unwrap_err().to_string().contains("changed"));
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
        assert!(refusal(&file("<f4", "True", "(1, 2)", &[0; 8])).contains("Fortran order"));
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
