//! Parquet files.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use akin_formats::parquet_file::ParquetFile;
use akin_fuzz::patched;
use libfuzzer_sys::fuzz_target;

const TABLES: [&[u8]; 3] = [
    include_bytes!("../../native-trainer/tests/fixtures/parquet/table-gzip.parquet"),
    include_bytes!("../../native-trainer/tests/fixtures/parquet/table-delta.parquet"),
    include_bytes!("../../native-trainer/tests/fixtures/parquet/table-brotli.parquet"),
];

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    TABLES.iter().for_each(|table| read(&patched(table, bytes)));
});

/// Reads every cell of every column.
fn read(bytes: &[u8]) {
    let Ok(mut file) = ParquetFile::new(Path::new("t.parquet"), Cursor::new(bytes)) else { return };
    assert!(file.rows() / 4 <= bytes.len() as u64);
    for column in 0..file.columns().len() {
        let Ok(mut cells) = file.cells(column) else { continue };
        let mut count = 0;
        while let Ok(Some(_)) = cells.next(&mut file) {
            count += 1;
            assert!(count <= file.rows());
        }
    }
}
