//! Embeddings in NumPy's `.npz` files: a zip archive with a `.npy` file for each array.
//!
//! `numpy.savez` stores the arrays as they are, so that their rows are read by position. Those of
//! `numpy.savez_compressed` are unpacked into a temporary file without a name first.

use std::io::{Cursor, Read};

use akin_base::files::Scratch;
use akin_base::problem::{Advise, problem};
use akin_core::embeddings::Rows;
use anyhow::{Context, Result};
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use crate::embedding_file::{Choice, OFFSET, SCALE, choose};
use crate::matrix::{Array, Layout, Matrix, NumberType, Scale};
use crate::npy::Header;
use crate::source::Source;

/// The most arrays of a file.
const ARRAYS: usize = 1 << 12;

/// An array may unpack to this number of bytes, and beyond it to [`RATIO`] times its packed bytes, so that a small file
/// cannot fill the disk.
const SMALL: u64 = 64 << 20;
const RATIO: u64 = 100;

/// The bytes in which the header of an array ends.
const HEADER: u64 = (1 << 16) + 16;

/// Opens the matrix of embeddings of an archive.
///
/// # Errors
///
/// A file that is damaged, or that has no matrix of embeddings or several.
pub(crate) fn open(source: &Source, choice: &Choice) -> Result<Box<dyn Rows + Send>> {
    let damaged = || "the archive cannot be read".to_owned();
    let mut archive =
        ZipArchive::new(source.again()?).advise(damaged, "copy the file again, or save it again")?;
    if archive.len() > ARRAYS {
        return Err(problem(
            format!("the archive has {} arrays, but at most {ARRAYS} are looked at", archive.len()),
            "save the embeddings in a file of their own",
        ));
    }
    let mut arrays = Vec::new();
    for number in 0..archive.len() {
        let member = archive.by_index(number).advise(damaged, "save it without a password")?;
        let file_name = member.name().advise(damaged, "save it again")?.into_owned();
        let Some(name) = file_name.strip_suffix(".npy") else { continue };
        arrays.push((name.to_owned(), number, header(member)?));
    }
    let matrices: Vec<&str> =
        arrays.iter().filter(|(_, _, header)| header.is_matrix()).map(|(name, ..)| name.as_str()).collect();
    let name = choose("array", &matrices, choice)?;
    let find = |wanted: &str| arrays.iter().find(|(name, ..)| name == wanted);
    let (_, number, header) =
        find(&name).ok_or_else(|| problem(format!("there is no array `{name}`"), "correct the name"))?;
    let layout = header.layout(choice.packed)?;
    let scale = match find(SCALE) {
        Some((_, number, header)) if layout.numbers == NumberType::Int8 => {
            let scale = array(&mut archive, *number, header)?;
            let offset =
                find(OFFSET).map(|(_, number, header)| array(&mut archive, *number, header)).transpose()?;
            Some(Scale::new(&scale, offset.as_ref(), layout.rows, layout.columns)?)
        }
        _ => None,
    };
    let path = source.name();
    let member = archive.by_index(*number).advise(damaged, "save it again")?;
    if member.compression() == CompressionMethod::Stored {
        let start = member.data_start().unwrap_or(u64::MAX).saturating_add(layout.start);
        drop(member);
        let mut file = archive.into_inner();
        let end = layout.bytes().and_then(|bytes| start.checked_add(bytes));
        if end.is_none_or(|end| file.length().is_ok_and(|length| end > length)) {
            return Err(problem("the array ends behind the file", "copy the file again"));
        }
        return Ok(Box::new(Matrix::at(&path, file, Layout { start, ..layout }).scaled(scale)));
    }
    let file = unpack(member)?.into_file();
    Ok(Box::new(Matrix::at(&path, file, layout).scaled(scale)))
}

/// The header of an array.
fn header<R: Read>(member: ZipFile<'_, R>) -> Result<Header> {
    let name = member.name().map(|name| name.into_owned()).unwrap_or_default();
    let (size, mut bytes) = (member.size(), Vec::new());
    member
        .take(HEADER)
        .read_to_end(&mut bytes)
        .advise(|| format!("the array {name} cannot be unpacked"), "copy the file again")?;
    Header::read(&mut Cursor::new(bytes), 0, size).with_context(|| format!("the array {name}"))
}

/// Unpacks an array, and checks that it is as long as the archive states.
fn unpack<R: Read>(member: ZipFile<'_, R>) -> Result<Scratch> {
    let (size, packed) = (member.size(), member.compressed_size());
    if size > SMALL && size / RATIO > packed {
        return Err(problem(
            format!("an array of {packed} bytes would unpack to {size} bytes"),
            "save it with numpy.savez, which does not compress",
        ));
    }
    let cannot = || "an array cannot be unpacked".to_owned();
    let mut scratch = Scratch::new().advise(cannot, "make space in the folder for temporary files")?;
    let (mut from, mut bytes, mut length) = (member.take(size + 1), vec![0; 1 << 16], 0);
    loop {
        let read = from.read(&mut bytes).advise(cannot, "copy the file again")?;
        if read == 0 {
            break;
        }
        length += read as u64;
        scratch.add(&bytes[..read]).advise(cannot, "make space in the folder for temporary files")?;
    }
    if length != size {
        return Err(problem("an array has another length than the archive states", "copy the file again"));
    }
    Ok(scratch)
}

/// A small array.
fn array(archive: &mut ZipArchive<Source>, number: usize, header: &Header) -> Result<Array> {
    let member = archive.by_index(number).advise(|| "the archive cannot be read".into(), "save it again")?;
    header.array(&mut unpack(member)?.into_file())
}
