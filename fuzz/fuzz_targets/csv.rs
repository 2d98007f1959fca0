//! CSV files of labels, in any encoding.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use akin_formats::csv_file::CsvFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let bytes = Cursor::new(bytes.to_vec());
    let Ok(mut table) = CsvFile::from_file(Path::new("labels.csv"), bytes) else { return };
    let Ok(path) = table.column("path", "name another") else { return };
    let Ok(levels) = table.columns(&["kind".into(), "variety".into()], "name others") else { return };
    while let Ok(Some((line, record))) = table.next_row() {
        assert!(line > 0 && record.get(path).is_some());
        assert!(levels.iter().all(|&level| record.get(level).is_some()));
    }
});
