//! MATLAB files, and pickles of plain data.

#![no_main]

use akin_core::pickle;
use akin_formats::mat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(variables) = mat::parse(bytes) {
        for (_, value) in &variables {
            if let Some(structs) = value.structs() {
                assert!(structs.get(structs.count(), "class").is_none());
                let _ =
                    (0..structs.count()).filter_map(|number| structs.get(number, "class")?.number()).count();
            }
        }
    }
    if let Ok((pickle, root, _)) = pickle::read(bytes) {
        let items = pickle.get(root, "gnd").and_then(|gnd| pickle.items(gnd)).unwrap_or_default();
        let _ = items.iter().filter_map(|item| pickle.items(pickle.get(*item, "easy")?)).count();
    }
});
