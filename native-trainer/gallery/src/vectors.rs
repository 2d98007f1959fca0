//! `vectors.npy`: the embedding of each row of a segment, and the embeddings of a gallery together.

use std::path::Path;

use akin_base::problem::problem;
use akin_core::embeddings::Rows;
use akin_formats::matrix::NumberType;
use akin_formats::npy::{self, Matrix};
use anyhow::Result;
use half::f16;
use serde::{Deserialize, Serialize};

/// The file of the embeddings.
pub(crate) const VECTORS: &str = "vectors.npy";
/// The file of the factors of int8 numbers, [N, 1].
pub(crate) const SCALES: &str = "scales.npy";

/// How the numbers of embeddings are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// 32 bits: as they are.
    #[default]
    Float32,
    /// 16 bits.
    Float16,
    /// 8 bits, with a factor for each row: number = int8 · max |row| / 127.
    Int8,
}

impl Numbers {
    fn number_type(self) -> NumberType {
        match self {
            Self::Float32 => NumberType::Float32,
            Self::Float16 => NumberType::Float16,
            Self::Int8 => NumberType::Int8,
        }
    }
}

/// The files that hold embeddings.
pub(crate) struct Stored {
    /// The name and the bytes of each file.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The smallest cosine between an embedding and what is stored of it; none where it is stored as it is.
    pub worst_cosine: Option<f32>,
}

/// Stores embeddings, [N, d].
pub(crate) fn store(values: &[f32], dimension: usize, numbers: Numbers) -> Result<Stored> {
    let rows = values.len() / dimension;
    let mut bytes = Vec::with_capacity(128 + values.len() * numbers.number_type().width());
    let mut files = Vec::new();
    let mut read_back = Vec::new();
    match numbers {
        Numbers::Float32 => {
            npy::write_header(&mut bytes, "<f4", rows, dimension)?;
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        Numbers::Float16 => {
            npy::write_header(&mut bytes, "<f2", rows, dimension)?;
            read_back = values.iter().map(|&value| f16::from_f32(value).to_f32()).collect();
            bytes.extend(values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()));
            if read_back.iter().any(|value| !value.is_finite()) {
                return Err(problem(
                    "an embedding has a number that is too large for 16 bits",
                    "store the gallery with `--numbers float32`",
                ));
            }
        }
        Numbers::Int8 => {
            npy::write_header(&mut bytes, "|i1", rows, dimension)?;
            let mut scales = Vec::with_capacity(128 + 4 * rows);
            npy::write_header(&mut scales, "<f4", rows, 1)?;
            for row in values.chunks(dimension) {
                let scale = scale_of(row);
                let whole = |value: &f32| if scale > 0.0 { (value / scale).round() as i8 } else { 0 };
                scales.extend(scale.to_le_bytes());
                bytes.extend(row.iter().map(|value| whole(value) as u8));
                read_back.extend(row.iter().map(|value| f32::from(whole(value)) * scale));
            }
            files.push((SCALES, scales));
        }
    }
    files.push((VECTORS, bytes));
    let cosines = values.chunks(dimension).zip(read_back.chunks(dimension)).map(|(a, b)| cosine(a, b));
    Ok(Stored { files, worst_cosine: cosines.min_by(f32::total_cmp) })
}

/// The factor of a row of int8 numbers: a little more than max |row| / 127, with so few digits that its product with 127 is
/// exact. Numbers that were read from int8 are therefore stored as the same int8 again.
fn scale_of(row: &[f32]) -> f32 {
    let exact = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs())) / 127.0;
    f32::from_bits((exact.to_bits() + 0xFF) & !0xFF)
}

/// The cosine of two embeddings; 1 if either is zero.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let product =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    if lengths == 0.0 { 1.0 } else { (product(a, b) / lengths) as f32 }
}

/// Opens the embeddings of a segment.
pub(crate) fn open(folder: &Path, numbers: Numbers) -> Result<Matrix> {
    let matrix = Matrix::open(&folder.join(VECTORS), false)?;
    if matrix.number_type() != numbers.number_type() {
        return Err(problem(
            format!("{} holds numbers of another type than its gallery", folder.join(VECTORS).display()),
            "restore the gallery from a copy, or index the pictures again",
        ));
    }
    if numbers != Numbers::Int8 {
        return Ok(matrix);
    }
    let file = Matrix::open(&folder.join(SCALES), false)?;
    let mut scales = vec![0.0; file.rows() * file.dimension()];
    file.read(0, &mut scales)?;
    matrix.with_row_scales(scales)
}

/// The embeddings of a gallery, read by position from the files of its segments.
#[derive(Debug)]
pub struct Vectors {
    pub(crate) dimension: usize,
    pub(crate) parts: Vec<Part>,
}

/// The embeddings of a segment.
#[derive(Debug)]
pub(crate) struct Part {
    /// The row of the gallery that its first row is.
    pub first: usize,
    /// The places of its rows that belong to the gallery; none if all do.
    pub kept: Option<Vec<u32>>,
    pub matrix: Matrix,
}

impl Part {
    pub(crate) fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.matrix.rows(), Vec::len)
    }
}

impl Rows for Vectors {
    fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first + part.len())
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn read(&self, first: usize, rows: &mut [f32]) -> akin_core::Result<()> {
        let d = self.dimension;
        let end = first + rows.len() / d;
        assert!(end <= self.len(), "rows of the gallery");
        let begin = self.parts.partition_point(|part| part.first + part.len() <= first);
        for part in self.parts[begin..].iter().take_while(|part| part.first < end) {
            let (from, to) = (first.max(part.first), end.min(part.first + part.len()));
            let out = &mut rows[(from - first) * d..(to - first) * d];
            let Some(kept) = &part.kept else {
                part.matrix.read(from - part.first, out)?;
                continue;
            };
            // Rows that follow each other are read together.
            let places = &kept[from - part.first..to - part.first];
            let mut done = 0;
            for run in places.chunk_by(|a, b| a + 1 == *b) {
                part.matrix.read(run[0] as usize, &mut out[done * d..(done + run.len()) * d])?;
                done += run.len();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use akin_core::random::{stream, uniform};

    use super::*;

    fn read(values: &[f32], dimension: usize, numbers: Numbers) -> (Vec<f32>, Option<f32>) {
        let folder = tempfile::tempdir().unwrap();
        let stored = store(values, dimension, numbers).unwrap();
        for (name, bytes) in stored.files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let matrix = open(folder.path(), numbers).unwrap();
        let mut read = vec![0.0; values.len()];
        matrix.read(0, &mut read).unwrap();
        (read, stored.worst_cosine)
    }

    #[test]
    fn what_is_read_is_stored_the_same_again() {
        let values = uniform(&mut stream(0, "vectors", &[]), 200 * 24, -3.0, 3.0);
        for (numbers, least) in
            [(Numbers::Float32, None), (Numbers::Float16, Some(0.999_999)), (Numbers::Int8, Some(0.9999))]
        {
            let (once, cosine) = read(&values, 24, numbers);
            assert_eq!(read(&once, 24, numbers).0, once, "{numbers:?}");
            assert_eq!(cosine.is_some(), least.is_some());
            assert!(cosine >= least, "{numbers:?}: {cosine:?}");
        }
        assert_eq!(read(&values, 24, Numbers::Float32).0, values);
        assert_eq!(read(&[0.0; 4], 2, Numbers::Int8), (vec![0.0; 4], Some(1.0)));
        assert!(store(&[1e6, 0.0], 2, Numbers::Float16).is_err());
    }
}
