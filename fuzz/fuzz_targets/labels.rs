//! The labels of a bundle, and rows of label names.

#![no_main]

use std::sync::LazyLock;

use akin_core::bundle::Manifest;
use akin_core::taxonomy::{ClassIdentity, Taxonomy};
use libfuzzer_sys::fuzz_target;

static GROCERIES: LazyLock<Manifest> = LazyLock::new(|| {
    Manifest::parse(include_bytes!("../../www/galleries/groceries/bundle.json")).expect("it is a bundle")
});

const LABELS: &[u8] = include_bytes!("../../www/galleries/groceries/labels.bin");

fuzz_target!(|bytes: &[u8]| {
    // Right labels, the first of which are changed, so that the fuzzer gets behind the first check.
    let mut changed = LABELS.to_vec();
    changed.iter_mut().zip(bytes).for_each(|(label, change)| *label ^= change);
    for labels in [bytes, &changed] {
        if let Ok(labels) = GROCERIES.labels(labels) {
            assert_eq!(labels.len(), GROCERIES.item_count());
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let levels: Vec<String> = rows.next().unwrap_or_default().into_iter().map(str::to_owned).collect();
    let rows: Vec<Vec<&str>> = rows.collect();
    for identity in [ClassIdentity::Name, ClassIdentity::Path] {
        if let Ok((taxonomy, labels)) = Taxonomy::from_rows(&levels, &rows, identity) {
            assert_eq!((labels.len(), labels.levels()), (rows.len(), taxonomy.depth()));
            let json = serde_json::to_vec(&taxonomy).expect("a taxonomy is JSON");
            assert_eq!(serde_json::from_slice::<Taxonomy>(&json).expect("and is read again"), taxonomy);
        }
    }
    let _ = serde_json::from_slice::<Taxonomy>(bytes);
});
