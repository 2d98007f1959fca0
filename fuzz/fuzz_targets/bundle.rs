//! `bundle.json`, `bundles.json` and the binary files that a manifest names.

#![no_main]

use akin_core::bundle::{Index, Manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(index) = Index::parse(bytes) {
        let again =
            Index::parse(&index.to_bytes().expect("an index can be written")).expect("and read again");
        assert_eq!(again.bundles.len(), index.bundles.len());
    }
    // A manifest, and after a byte 0 the contents of a file.
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (json, file) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    // A changed manifest has another digest. It is put in, so that the fuzzer gets behind the first check.
    let Some(manifest) = Manifest::parse(json).ok().or_else(|| sealed(json)) else { return };
    let _ = manifest.labels(file);
    for entry in manifest.files() {
        let _ = manifest.verify(&entry.path, file);
    }
    for encoder in 0..manifest.contents().encoders.len() {
        let _ = manifest.gallery_embeddings(encoder, file);
        let _ = manifest.query_embeddings(encoder, file);
        let _ = manifest.query_scores(encoder, file);
        let _ = manifest.affinity_scores(encoder, 0, file);
        let _ = manifest.map_points(encoder, 0, file);
        let _ = manifest.check_map_proxies(encoder, 0, [file; 3]);
    }
});

/// The manifest with the digest that its reader asks for.
fn sealed(json: &[u8]) -> Option<Manifest> {
    let mut value: serde_json::Value = serde_json::from_slice(json).ok()?;
    let error = Manifest::parse(json).err()?;
    let digest = error.message().rsplit(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 64)?;
    value["digest"] = digest.into();
    Manifest::parse(&serde_json::to_vec(&value).ok()?).ok()
}
