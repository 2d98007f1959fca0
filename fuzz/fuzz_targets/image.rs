//! Decodes image files, applies their orientation, and preprocesses the pixels.

#![no_main]

use std::sync::LazyLock;

use akin_core::image::{Normalisation, Preprocessing, decode};
use libfuzzer_sys::fuzz_target;

static PREPROCESSING: LazyLock<Preprocessing> =
    LazyLock::new(|| Preprocessing::new(Normalisation::Imagenet, 32).expect("the side is in range"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(pixels) = decode(bytes) else { return };
    assert_eq!(pixels.data().len() as u64, 3 * u64::from(pixels.width()) * u64::from(pixels.height()));
    if let Ok(view) = PREPROCESSING.view(&pixels) {
        assert!(PREPROCESSING.normalise(&view).iter().all(|number| number.is_finite()));
    }
});
