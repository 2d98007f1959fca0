//! The committed files of the training ground are those that its program writes.

use std::fs;
use std::path::Path;

#[allow(dead_code)]
#[path = "../examples/training_ground.rs"]
mod training_ground;

#[test]
fn the_committed_creatures_are_those_that_the_program_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../www/src/training");
    let (creatures, sheet) = training_ground::creatures().unwrap();
    let text = fs::read_to_string(folder.join("creatures.json")).unwrap();
    assert!(
        text == serde_json::to_string(&creatures).unwrap() + "\n",
        "creatures.json is out of date: `cargo run -p akin-biomorphs --example training_ground -- www/src/training`"
    );

    let committed = image::open(folder.join("creatures.jpg")).unwrap().into_rgb8();
    assert_eq!(committed.dimensions(), sheet.dimensions());
    // JPEG keeps no exact values, and decoders differ a little.
    let differences = committed.iter().zip(sheet.iter()).map(|(&a, &b)| f64::from(a.abs_diff(b)));
    let mean = differences.sum::<f64>() / sheet.len() as f64;
    assert!(mean < 6.0, "creatures.jpg is out of date: it differs by {mean:.1} of 255 on average");
}
