//! Reads and writes matrices of embeddings as NumPy's `.npy` files.
//!
//! A file has the magic bytes `\x93NUMPY`, a version, the length of the header, the header (a Python dict such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`), and the numbers.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use half::f16;

use crate::files::write_atomic;
use crate::problem::{Advise, problem};

const MAGIC: &[u8] = b"\x93NUMPY";
const SAVE_AGAIN: &str = "save it with numpy.save(path, numpy.ascontiguousarray(array, dtype='float32'))";

/// A matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The numbers, rows × columns.
    pub values: Vec<f32>,
    /// The number of items, N.
    pub rows: usize,
    /// The dimension, d.
    pub columns: usize,
}

/// Reads a two-dimensional array of float16, float32 or float64 in C order. float64 is rounded to float32.
///
/// # Errors
///
/// A file that cannot be read, is damaged, or holds another type, shape or order.
pub fn read(path: &Path) -> Result<Matrix> {
    let bytes = fs::read(path).advise(|| format!("{} cannot be read", path.display()), "check the path")?;
    parse(&bytes).with_context(|| path.display().to_string())
}

/// Reads the bytes of such a file.
///
/// # Errors
///
/// The errors of [`read`].
pub fn parse(bytes: &[u8]) -> Result<Matrix> {
    let (header, data) = split(bytes)
        .ok_or_else(|| problem("this is not a .npy file, or its header is truncated", SAVE_AGAIN))?;
    let descr = field(header, "descr").unwrap_or_default().trim_matches(['\'', '"']);
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
    if field(header, "fortran_order") != Some("False") {
        return Err(problem(
            "the array is in Fortran order (column by column), but C order is needed",
            SAVE_AGAIN,
        ));
    }
    let shape = field(header, "shape").unwrap_or_default();
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
    if expected != Some(data.len()) {
        return Err(problem(
            format!(
                "the header describes {rows}×{columns} numbers of {width} bytes, but {} bytes follow",
                data.len()
            ),
            "the file is truncated or damaged; save it again",
        ));
    }
    let big_endian = descr.starts_with('>');
    let values = data.chunks_exact(width).map(|number| {
        let mut number = number.to_vec();
        if big_endian {
            number.reverse();
        }
        match number[..] {
            [a, b] => f16::from_le_bytes([a, b]).to_f32(),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
            _ => unreachable!("the width is 2, 4 or 8"),
        }
    });
    Ok(Matrix { values: values.collect(), rows, columns })
}

/// The text of the header, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (version, rest) = rest.split_at_checked(2)?;
    let (length, rest) = if version[0] == 1 {
        let (length, rest) = rest.split_first_chunk::<2>()?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk::<4>()?;
        (usize::try_from(u32::from_le_bytes(*length)).ok()?, rest)
    };
    let (header, data) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(header).ok()?, data))
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
    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [MAGIC, &[1, 0], &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), data].concat()
    }

    fn refusal(bytes: &[u8]) -> String {
        parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn written_matrices_are_read_back() {
        let path = tempfile::tempdir().unwrap().keep().join("e.npy");
        let values = [0.5, -1.0, f32::MIN_POSITIVE, 3e30, 0.0, 7.0];
        write(&path, &values, 3).unwrap();
        assert_eq!(read(&path).unwrap(), Matrix { values: values.to_vec(), rows: 2, columns: 3 });
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len() - 24) % 64, 0);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn every_float_type_and_byte_order_is_read() {
        let half: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
        let single: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let double: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        for (descr, data) in [("<f2", half), (">f4", single), ("<f8", double)] {
            assert_eq!(parse(&file(descr, "False", "(1, 2)", &data)).unwrap().values, [1.5, -2.0]);
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
