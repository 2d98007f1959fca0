//! CSV files of labels.

#![no_main]

use std::cell::RefCell;
use std::io::{Seek, SeekFrom, Write};

use akin_fuzz::csv_file::CsvFile;
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        file.as_file().set_len(0).expect("it is cut");
        file.seek(SeekFrom::Start(0)).expect("it is a file");
        file.write_all(bytes).expect("it is written");
        let Ok(mut table) = CsvFile::open(file.path()) else { return };
        let Ok(path) = table.column("path", "name another") else { return };
        let Ok(levels) = table.columns(&["kind".into(), "variety".into()], "name others") else { return };
        while let Ok(Some((line, record))) = table.next_line() {
            assert!(line > 0 && record.get(path).is_some());
            assert!(levels.iter().all(|&level| record.get(level).is_some()));
        }
    });
});
