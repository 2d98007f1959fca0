//! Embeddings in every format that is read from files of other programs, and the columns beside them.

#![no_main]

use std::io::Write;

use akin_core::embeddings::Rows;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use akin_fuzz::patched;
use libfuzzer_sys::fuzz_target;

const FILES: [&[u8]; 6] = [
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-list.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-bool.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/pyarrow-split.parquet"),
    include_bytes!("../../native-trainer/formats/tests/files/int8.npz"),
    include_bytes!("../../native-trainer/formats/tests/files/deflated.npz"),
    include_bytes!("../../native-trainer/formats/tests/files/int8.safetensors"),
];

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    FILES.iter().for_each(|file| read(&patched(file, bytes)));
});

fn read(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("space for it");
    for packed in [false, true] {
        let Ok(embeddings) = EmbeddingFile::open(file.path(), &Choice { name: None, packed }) else { continue };
        assert!(embeddings.len() * embeddings.dimension() <= (1 << 20).max(256 * bytes.len()));
        let mut rows = vec![0.0; embeddings.len() * embeddings.dimension()];
        let _ = embeddings.read(0, &mut rows);
        if let Ok(table) = embeddings.table() {
            let _ = table.read(&[("kind", "name another")], |_, _| Ok(()));
        }
    }
}
