//! Embeddings in every format that is read from files of other programs, and the columns beside them.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use akin_core::embeddings::Rows;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use akin_fuzz::patched;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const FILES: [&[u8]; 7] = [
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-list.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-bool.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-split.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/pandas-wide.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/int8.npz"),
    include_bytes!("../../native-trainer/formats/tests/files/deflated.npz"),
    include_bytes!("../../native-trainer/formats/tests/files/int8.safetensors"),
];

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    FILES.iter().for_each(|file| read(&patched(file, bytes)));
});

fn read(bytes: &[u8]) {
    // One path, so that a note about an encoding is printed once.
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));
    let path = FOLDER.path().join("embeddings");
    fs::write(&path, bytes).expect("space for it");
    for packed in [false, true] {
        let Ok(embeddings) = EmbeddingFile::open(&path, &Choice { name: None, packed }) else { continue };
        assert!(embeddings.len() * embeddings.dimension() <= (1 << 20).max(256 * bytes.len()));
        let mut rows = vec![0.0; embeddings.len() * embeddings.dimension()];
        let _ = embeddings.read(0, &mut rows);
        if let Ok(table) = embeddings.table() {
            let _ = table.read(&[("kind", "name another")], |_, _| Ok(()));
        }
    }
}
