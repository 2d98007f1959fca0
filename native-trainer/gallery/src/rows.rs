//! `rows.parquet`: what is known of each picture of a segment.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_formats::column::{Cells, Column};
use akin_formats::parquet_file::{Cell, ParquetFile};
use akin_formats::parquet_output;
use anyhow::Result;

/// The columns before those of the levels.
const COLUMNS: [&str; 5] = ["path", "source", "size", "modified", "sha256"];

/// What is known of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The path of the file, relative to the source.
    pub path: String,
    /// The folder that the path begins in, or the file that the picture is in.
    pub source: String,
    /// The bytes of the file.
    pub size: u64,
    /// When the file was last changed, in nanoseconds since 1970.
    pub modified: i64,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The names of its classes, coarse to fine, as far as they are known.
    pub labels: Vec<String>,
}

impl Row {
    /// The path of the file.
    pub fn file(&self) -> PathBuf {
        Path::new(&self.source).join(&self.path)
    }
}

/// Refuses names of levels that cannot be columns beside the others.
pub(crate) fn check_levels(levels: &[String]) -> Result<()> {
    match levels.iter().find(|level| COLUMNS.contains(&level.as_str())) {
        Some(level) => Err(problem(
            format!("a level is called {level:?}, as a column that each gallery has"),
            "give it another name with `--levels`",
        )),
        None => Ok(()),
    }
}

/// The rows as the columns of a table.
pub(crate) fn columns(rows: &[Row], levels: &[String]) -> Vec<Column> {
    let text =
        |cell: fn(&Row) -> &str| Cells::Texts(rows.iter().map(|row| Some(cell(row).to_owned())).collect());
    let number = |cell: fn(&Row) -> i64| Cells::Numbers(rows.iter().map(cell).collect());
    let cells = [
        text(|row| &row.path),
        text(|row| &row.source),
        number(|row| row.size as i64),
        number(|row| row.modified),
        text(|row| &row.sha256),
    ];
    let known = COLUMNS.into_iter().zip(cells).map(|(name, cells)| Column { name: name.into(), cells });
    let labels = levels.iter().enumerate().map(|(level, name)| {
        let labels = rows.iter().map(|row| row.labels.get(level).cloned());
        Column { name: name.clone(), cells: Cells::Texts(labels.collect()) }
    });
    known.chain(labels).collect()
}

/// The bytes of the file.
pub(crate) fn to_bytes(rows: &[Row], levels: &[String]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    parquet_output::write(&mut bytes, &columns(rows, levels), None)?;
    Ok(bytes)
}

/// The rows in the bytes of a file. `path` names it in errors.
///
/// # Errors
///
/// Bytes that are no such table.
pub(crate) fn from_bytes(path: &Path, bytes: &[u8], levels: &[String]) -> Result<Vec<Row>> {
    let mut file = ParquetFile::new(path, Cursor::new(bytes))?;
    let mut rows = vec![Row::default(); file.rows() as usize];
    let names = COLUMNS.into_iter().chain(levels.iter().map(String::as_str));
    for (number, name) in names.enumerate() {
        let Some(column) = file.find(name) else {
            return Err(file.no_column(name, "index the pictures again"));
        };
        let mut cells = file.cells(column)?;
        for row in &mut rows {
            match (number, cells.next(&mut file)?) {
                (0, Some(Cell::Bytes(text))) => row.path = utf8(text),
                (1, Some(Cell::Bytes(text))) => row.source = utf8(text),
                (2, Some(Cell::Number(size))) => row.size = size as u64,
                (3, Some(Cell::Number(modified))) => row.modified = modified,
                (4, Some(Cell::Bytes(text))) => row.sha256 = utf8(text),
                (5.., Some(Cell::Bytes(text))) if row.labels.len() == number - COLUMNS.len() => {
                    row.labels.push(utf8(text));
                }
                (5.., Some(Cell::Empty)) => {}
                _ => {
                    return Err(problem(
                        format!("{} has another column `{name}` than a gallery has", path.display()),
                        "restore the gallery from a copy, or index the pictures again",
                    ));
                }
            }
        }
    }
    Ok(rows)
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let levels = ["kind".to_owned(), "variety".to_owned()];
        let row = |path: &str, labels: &[&str]| Row {
            path: path.into(),
            source: "/photos".into(),
            size: 1 << 40,
            modified: -5,
            sha256: "ab".into(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
        };
        let rows = [row("a.jpg", &["Apple", "Gala"]), row("ü/b.jpg", &["Apple"]), row("c", &[])];
        let bytes = to_bytes(&rows, &levels).unwrap();
        assert_eq!(from_bytes(Path::new("rows.parquet"), &bytes, &levels).unwrap(), rows);
        assert_eq!(rows[0].file(), Path::new("/photos/a.jpg"));
        assert!(from_bytes(Path::new("rows.parquet"), &bytes[..bytes.len() - 9], &levels).is_err());
        assert!(check_levels(&["size".into()]).is_err());
    }
}
