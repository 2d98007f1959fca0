//! Embeddings and labels in the files that their usual programs wrote: NumPy, safetensors, pandas, pyarrow, polars, DuckDB.
//! `tests/peers/files.py` wrote them.

use std::fs;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use akin_base::problem::parts;
use akin_core::embeddings::Rows;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use akin_formats::parquet_file::ParquetFile;

const ROWS: usize = 20;
const COLUMNS: usize = 8;

/// The number that the script writes. Every float type holds it exactly.
fn number(row: usize, column: usize) -> f32 {
    ((7 * row + 3 * column) % 33) as f32 / 8.0 - 2.0
}

fn expected(rows: usize) -> Vec<f32> {
    (0..rows * COLUMNS).map(|place| number(place / COLUMNS, place % COLUMNS)).collect()
}

fn signs() -> Vec<f32> {
    expected(ROWS).into_iter().map(|value| if value > 0.0 { 1.0 } else { -1.0 }).collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn open(name: &str, packed: bool) -> EmbeddingFile {
    EmbeddingFile::open(&path(name), &Choice { name: None, packed })
        .unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

fn numbers(rows: &dyn Rows) -> Vec<f32> {
    let mut numbers = vec![0.0; rows.len() * rows.dimension()];
    rows.read(0, &mut numbers).unwrap();
    numbers
}

#[test]
fn every_program_s_embeddings_are_read_bit_by_bit() {
    let files = [
        "float64.npy",
        "float32.npy",
        "float32-big-endian.npy",
        "float16.npy",
        "bfloat16.npy",
        "fortran.npy",
        "fortran-float16.npy",
        "stored.npz",
        "deflated.npz",
        "float64.safetensors",
        "float32.safetensors",
        "float16.safetensors",
        "bfloat16.safetensors",
        "pandas.parquet",
        "pyarrow-list.parquet",
        "pyarrow-fixed.parquet",
        "pyarrow-float64.parquet",
        "pyarrow-float16.parquet",
        "pyarrow-split.parquet",
        "polars.parquet",
        "duckdb-list.parquet",
        "duckdb-array.parquet",
        "pandas-wide.parquet",
        "polars-wide.parquet",
        "savetxt.csv",
        "savetxt.txt",
        "vectors.tsv",
        "semicolons.csv",
        "tabs.tsv",
        "utf16.tsv",
        "index.csv",
        "lists.csv",
        "duckdb.csv",
        "pandas.jsonl",
        "polars.jsonl",
        "duckdb.jsonl",
    ];
    for name in files {
        let file = open(name, false);
        assert_eq!((file.len(), file.dimension()), (ROWS, COLUMNS), "{name}");
        assert_eq!(numbers(&file), expected(ROWS), "{name}");
    }
}

#[test]
fn whole_numbers_are_read_with_their_scale() {
    let eights: Vec<f32> = expected(ROWS).iter().map(|value| 8.0 * value).collect();
    for name in ["int8.npy", "pyarrow-int8.parquet"] {
        assert_eq!(numbers(&open(name, false)), eights, "{name}");
    }
    // A step is 4/255 at most, and the script rounds towards 0.
    for (name, most) in [("int8.npz", 0.017), ("int8.safetensors", 0.017), ("int8-per-item.npz", 0.009)] {
        for (found, value) in numbers(&open(name, false)).into_iter().zip(expected(ROWS)) {
            assert!((found - value).abs() <= most, "{name}: {found} for {value}");
        }
    }
}

#[test]
fn bits_are_signs() {
    for name in ["bool.npy", "bool.safetensors", "pyarrow-bool.parquet"] {
        assert_eq!(numbers(&open(name, false)), signs(), "{name}");
    }
    for name in ["bits.npy", "bits.safetensors", "pyarrow-bits.parquet", "pyarrow-bytes.parquet"] {
        assert_eq!(numbers(&open(name, true)), signs(), "{name}");
        let refusal = EmbeddingFile::open(&path(name), &Choice::default()).unwrap_err();
        assert!(parts(&refusal).1.unwrap().contains("--similarity hamming"), "{name}: {refusal:#}");
    }
}

#[test]
fn labels_stand_beside_the_embeddings() {
    let files = [
        "pandas.parquet",
        "pyarrow-list.parquet",
        "pyarrow-split.parquet",
        "polars.parquet",
        "duckdb-list.parquet",
        "duckdb-array.parquet",
        "pandas-wide.parquet",
        "polars-wide.parquet",
        "utf16.tsv",
        "semicolons.csv",
        "tabs.tsv",
        "index.csv",
        "lists.csv",
        "duckdb.csv",
        "pandas.jsonl",
        "polars.jsonl",
        "duckdb.jsonl",
    ];
    for name in files {
        let mut labels = Vec::new();
        let columns = [("variety", "…"), ("kind", "…")];
        let table = open(name, false).table().unwrap();
        let add = |_: u64, cells: &[&str]| {
            labels.push(cells.join("|"));
            Ok(())
        };
        table.read(&columns, add).unwrap();
        let kind = |row: usize| if row.is_multiple_of(2) { "Apple" } else { "Pear" };
        let expected: Vec<String> = (0..ROWS).map(|row| format!("{0} {1}|{0}", kind(row), row % 6)).collect();
        assert_eq!(labels, expected, "{name}");
        let refusal = table.read(&[("kinds", "…")], |_, _| Ok(())).unwrap_err();
        assert!(format!("{refusal:#}").contains("kinds"), "{name}: {refusal:#}");
    }
}

#[test]
fn any_block_of_rows_is_that_part_of_all_rows() {
    let files = [
        "float64.npy",
        "fortran.npy",
        "stored.npz",
        "int8-per-item.npz",
        "pyarrow-list.parquet",
        "lists.csv",
    ];
    for name in files {
        let file = open(name, false);
        let all = numbers(&file);
        for first in (0..ROWS).rev() {
            for count in [0, 1, 3, ROWS - first] {
                let count = count.min(ROWS - first);
                let mut block = vec![0.0; count * COLUMNS];
                file.read(first, &mut block).unwrap();
                assert_eq!(
                    block,
                    all[first * COLUMNS..][..count * COLUMNS],
                    "{name}: {count} rows from {first}"
                );
            }
        }
    }
}

#[test]
fn a_list_of_another_length_or_none_is_named() {
    for (name, row) in [("uneven.parquet", "row 20"), ("holes.parquet", "row 6")] {
        let refusal = EmbeddingFile::open(&path(name), &Choice::default()).unwrap_err();
        assert!(format!("{refusal:#}").contains(row), "{refusal:#}");
    }
}

#[test]
fn an_array_or_a_column_is_chosen_by_its_name() {
    let choice = |name: &str| Choice { name: Some(name.into()), packed: false };
    for (name, wrong) in [("stored.npz", "id"), ("int8.safetensors", "class"), ("pandas.parquet", "kind")] {
        let refusal = EmbeddingFile::open(&path(name), &choice(wrong)).unwrap_err();
        let (message, hint) = parts(&refusal);
        assert!(message.contains(wrong) && hint.unwrap().contains("embedding"), "{message}");
    }
    let file = EmbeddingFile::open(&path("semicolons.csv"), &choice("e")).unwrap();
    assert_eq!(numbers(&file), expected(ROWS));
}

/// Counts the bytes that are read.
#[derive(Debug)]
struct Counting(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Counting {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.read(bytes)?;
        self.1.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl Seek for Counting {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(position)
    }
}

#[test]
fn a_block_of_a_parquet_file_reads_its_pages_and_rows_in_order_read_each_page_once() {
    let (bytes, read) = (fs::read(path("pyarrow-many.parquet")).unwrap(), Arc::new(AtomicU64::new(0)));
    let length = bytes.len() as u64;
    let file = ParquetFile::new(Path::new("many"), Counting(Cursor::new(bytes), read.clone())).unwrap();
    let lists = file.lists(&Choice::default()).unwrap();
    assert_eq!((lists.len(), lists.dimension()), (4096, COLUMNS));
    let counted = |work: &dyn Fn()| {
        read.store(0, Ordering::Relaxed);
        work();
        read.load(Ordering::Relaxed)
    };
    let one = counted(&|| lists.read(2000, &mut [0.0; COLUMNS]).unwrap());
    assert!(one < length / 8, "{one} of {length} bytes for a row");
    let mut all = vec![0.0; 4096 * COLUMNS];
    let in_order = counted(&|| {
        for first in (0..4096).step_by(64) {
            lists.read(first, &mut [0.0; 64 * COLUMNS]).unwrap();
        }
    });
    // Of a page, 512 bytes are read for its header.
    assert!(in_order < 2 * length, "{in_order} bytes for a file of {length}");
    lists.read(0, &mut all).unwrap();
    assert_eq!(all, expected(4096));
}

/// A stream of numbers that is the same each time (Knuth's constants for 64 bits).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn cut_and_changed_files_give_numbers_or_an_error_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let (mut state, mut read, mut refused) = (28, 0, 0);
    let mut names: Vec<_> = fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for original in names {
        let bytes = fs::read(&original).unwrap();
        let at = folder.path().join(original.file_name().unwrap());
        for round in 0..60 {
            let mut bytes = bytes.clone();
            if round % 3 == 0 {
                bytes.truncate(next(&mut state) % bytes.len());
            }
            for _ in 0..round % 4 {
                // Mostly where the headers and the footer are.
                let length = bytes.len().max(1);
                let place = match next(&mut state) % 3 {
                    0 => next(&mut state) % length.min(200),
                    1 => length - 1 - next(&mut state) % length.min(600),
                    _ => next(&mut state) % length,
                };
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = next(&mut state) as u8;
                }
            }
            fs::write(&at, &bytes).unwrap();
            match EmbeddingFile::open(&at, &Choice { name: None, packed: round % 2 == 0 }) {
                Ok(file) => {
                    assert!(file.len() * file.dimension() <= 1 << 20, "{}", at.display());
                    let mut numbers = vec![0.0; file.len() * file.dimension()];
                    let _ = file.read(0, &mut numbers);
                    if let Ok(table) = file.table() {
                        let _ = table.read(&[("kind", "…")], |_, _| Ok(()));
                    }
                    read += 1;
                }
                Err(error) => {
                    assert!(parts(&error).1.is_some(), "{}: {error:#}", at.display());
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 500 && refused > 500, "{read} read and {refused} refused");
}
