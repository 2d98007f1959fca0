//! Writes embeddings, float32, with columns such as the paths of their pictures, in a format that the file's ending names.
//!
//! | ending | embeddings | columns |
//! |---|---|---|
//! | `.npy` | the array | in a CSV file beside it |
//! | `.npz`, `.safetensors` | an array or tensor `embeddings` | in a CSV file beside it |
//! | `.parquet` | a column `embedding` of lists | columns |
//! | `.csv`, `.tsv` | columns `e0`, `e1`, … | columns |
//! | `.jsonl` | the field `embedding` | fields |

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use akin_base::files::write_atomic;
use akin_base::problem::problem;
use akin_base::terminal;
use akin_core::embeddings::Embeddings;
use anyhow::Result;
use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::column::Column;
use crate::source::STANDARD_INPUT;
use crate::{npy, parquet_output};

/// A file of embeddings to write.
#[derive(Clone, Debug)]
pub struct EmbeddingOutput {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Npy,
    Npz,
    Safetensors,
    Parquet,
    Separated(u8),
    JsonLines,
    /// JSON lines on standard output.
    Printed,
}

impl EmbeddingOutput {
    /// The format of a path. `-` is standard output.
    ///
    /// # Errors
    ///
    /// An ending that no format has. `option` is the option that names the path.
    pub fn new(option: &str, path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let format = match ending.to_ascii_lowercase().as_str() {
            _ if path == Path::new(STANDARD_INPUT) => Format::Printed,
            // The system names pipes and devices, so they may be called anything.
            _ if path.exists() && !path.is_file() && !path.is_dir() => Format::Npy,
            "npy" => Format::Npy,
            "npz" => Format::Npz,
            "safetensors" => Format::Safetensors,
            "parquet" => Format::Parquet,
            "csv" => Format::Separated(b','),
            "tsv" => Format::Separated(b'\t'),
            "jsonl" => Format::JsonLines,
            _ => {
                return Err(problem(
                    format!("`{option}` is {}, whose ending names no format of embeddings", path.display()),
                    "end it in .npy, .npz, .safetensors, .parquet, .csv, .tsv or .jsonl, or write `-` for JSON lines on standard \
                     output",
                ));
            }
        };
        Ok(Self { path: path.to_owned(), format })
    }

    /// The CSV file beside it for what its format has no place for; none if that is in the file itself.
    pub fn beside(&self) -> Option<PathBuf> {
        matches!(self.format, Format::Npy | Format::Npz | Format::Safetensors)
            .then(|| self.path.with_extension("csv"))
    }

    /// Whether it is standard output.
    pub fn is_printed(&self) -> bool {
        self.format == Format::Printed
    }

    /// Writes the embeddings with columns. A file is written completely or not at all; that of the columns is next.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    ///
    /// # Panics
    ///
    /// Each column needs as many cells as there are embeddings.
    pub fn write(&self, embeddings: &Embeddings, columns: &[Column]) -> Result<()> {
        let is_whole = |column: &Column| column.len() == embeddings.len();
        assert!(columns.iter().all(is_whole), "a cell for each embedding");
        match self.format {
            Format::Npy => npy::write(&self.path, embeddings.values(), embeddings.dimension())?,
            Format::Npz => write_atomic(&self.path, |file| write_npz(file, embeddings))?,
            Format::Safetensors => write_atomic(&self.path, |file| write_safetensors(file, embeddings))?,
            Format::Parquet => {
                write_atomic(&self.path, |file| parquet_output::write(file, columns, Some(embeddings)))?;
            }
            Format::Separated(separator) => {
                write_atomic(&self.path, |file| write_table(file, separator, embeddings, columns))?;
            }
            Format::JsonLines => write_atomic(&self.path, |file| {
                lines(embeddings, columns).try_for_each(|line| writeln!(file, "{line}"))
            })?,
            Format::Printed => lines(embeddings, columns).try_for_each(|line| terminal::print(&line))?,
        }
        let Some(beside) = self.beside() else { return Ok(()) };
        write_atomic(&beside, |out| {
            let mut table = csv::Writer::from_writer(out);
            table.write_record(columns.iter().map(|column| &column.name))?;
            for row in 0..embeddings.len() {
                table.write_record(columns.iter().map(|column| column.text(row)))?;
            }
            table.flush()
        })
    }
}

fn write_npz(file: &mut dyn Write, embeddings: &Embeddings) -> io::Result<()> {
    let mut archive = ZipWriter::new_stream(file);
    // Stored, so that rows are read by position. Embeddings hardly become smaller.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    archive.start_file("embeddings.npy", options)?;
    npy::write_to(&mut archive, embeddings.values(), embeddings.dimension())?;
    archive.finish()?;
    Ok(())
}

fn write_safetensors(file: &mut dyn Write, embeddings: &Embeddings) -> io::Result<()> {
    let values = embeddings.values();
    let header = json!({ "embeddings": {
        "dtype": "F32",
        "shape": [embeddings.len(), embeddings.dimension()],
        "data_offsets": [0, size_of_val(values)],
    } })
    .to_string();
    // The numbers begin at a multiple of 8 bytes.
    let length = header.len().next_multiple_of(8);
    file.write_all(&(length as u64).to_le_bytes())?;
    write!(file, "{header:<length$}")?;
    values.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))
}

fn write_table(
    file: &mut dyn Write,
    separator: u8,
    embeddings: &Embeddings,
    columns: &[Column],
) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(separator).from_writer(file);
    let numbered = (0..embeddings.dimension()).map(|number| format!("e{number}"));
    table.write_record(columns.iter().map(|column| column.name.clone()).chain(numbered))?;
    for row in 0..embeddings.len() {
        let numbers = embeddings.row(row).iter().map(f32::to_string);
        table.write_record(columns.iter().map(|column| column.text(row)).chain(numbers))?;
    }
    table.flush()
}

fn lines(embeddings: &Embeddings, columns: &[Column]) -> impl Iterator<Item = String> {
    (0..embeddings.len()).map(move |row| {
        let fields: String =
            columns.iter().map(|column| format!("{}:{},", json!(column.name), column.json(row))).collect();
        // As text, float32 numbers are shorter than as float64, and the same.
        let numbers: Vec<String> = embeddings.row(row).iter().map(f32::to_string).collect();
        format!("{{{fields}\"embedding\":[{}]}}", numbers.join(","))
    })
}

#[cfg(test)]
mod tests {
    use akin_core::embeddings::Rows;

    use super::*;
    use crate::column::Cells;
    use crate::embedding_file::{Choice, EmbeddingFile};
    use crate::table::Table;

    #[test]
    fn every_format_is_read_back_with_its_columns() {
        let folder = tempfile::tempdir().unwrap();
        let values = vec![0.1, -1e-20, f32::MAX, 1.0, 0.0, f32::MIN_POSITIVE];
        let embeddings = Embeddings::new(3, values.clone()).unwrap();
        let paths = ["a, \"b\".jpg".to_owned(), "c/ü.png".to_owned()];
        let kinds = Cells::Texts(vec![None, Some("Pear".into())]);
        let columns = [
            Column::texts("path", paths.clone()),
            Column { name: "size".into(), cells: Cells::Numbers(vec![7, -3]) },
            Column { name: "kind".into(), cells: kinds },
        ];
        for ending in ["npy", "npz", "safetensors", "parquet", "csv", "tsv", "jsonl"] {
            let path = folder.path().join("e").with_extension(ending);
            let output = EmbeddingOutput::new("--out", &path).unwrap();
            output.write(&embeddings, &columns).unwrap();
            let file = EmbeddingFile::open(&path, &Choice::default()).unwrap();
            let mut read = vec![0.0; 6];
            file.read(0, &mut read).unwrap();
            assert_eq!((file.len(), file.dimension(), read), (2, 3, values.clone()), "{ending}");
            let table = output.beside().map_or_else(|| file.table(), |beside| Table::open(&beside)).unwrap();
            let mut found = Vec::new();
            let add = |_: u64, cells: &[&str]| {
                found.push(cells.join("|"));
                Ok(())
            };
            table.read(&[("path", "…"), ("size", "…"), ("kind", "…")], add).unwrap();
            assert_eq!(found, ["a, \"b\".jpg|7|", "c/ü.png|-3|Pear"], "{ending}");
        }
        let refusal = EmbeddingOutput::new("--out", Path::new("e.feather")).unwrap_err();
        assert!(refusal.to_string().contains("e.feather"));
    }
}
