//! The checks of a gallery.

use std::path::Path;

use akin_base::directory::check_file;
use akin_base::problem::parts;
use akin_base::quantities::counted;
use akin_core::embeddings::Rows;
use akin_gallery::{Gallery, Manifest};
use rayon::prelude::*;

use super::check::Checks;

/// The embeddings that are looked at together.
const BLOCK: usize = 4096;

/// Checks the manifest, the length and SHA-256 of every file, and that the rows and embeddings can be read.
pub fn check(folder: &Path, checks: &mut Checks) {
    let manifest = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(error) => return checks.faulty(akin_gallery::MANIFEST, parts(&error).0),
    };
    checks.sound(akin_gallery::MANIFEST, counted(manifest.segment_count(), "segment", "segments"));
    let files: Vec<_> = manifest.files().collect();
    let faults: Vec<_> =
        files.par_iter().filter_map(|file| Some((&file.path, check_file(folder, file).err()?))).collect();
    let sound = files.len() - faults.len();
    let have = counted(files.len(), "file has", "files have");
    checks.sound("files", format!("{sound} of {have} the length and SHA-256 that akin wrote"));
    if !faults.is_empty() {
        return faults.into_iter().for_each(|(name, flaw)| checks.faulty(name, flaw.why()));
    }
    let gallery = match Gallery::open(folder) {
        Ok(gallery) => gallery,
        Err(error) => return checks.faulty("segments", parts(&error).0),
    };
    let (vectors, d) = (gallery.vectors(), gallery.vectors().dimension());
    for first in (0..vectors.len()).step_by(BLOCK) {
        let mut block = vec![0.0; BLOCK.min(vectors.len() - first) * d];
        if let Err(error) = vectors.read(first, &mut block) {
            return checks.faulty("embeddings", error.to_string());
        }
        if let Some(place) = block.iter().position(|number| !number.is_finite()) {
            return checks.faulty("embeddings", format!("that of row {} is not finite", first + place / d));
        }
    }
    checks.sound("embeddings", format!("{} of {d} numbers", counted(vectors.len(), "row", "rows")));
    match gallery.known() {
        Ok(known) => checks.sound("labels", known.taxonomy.level_names().join(" > ")),
        Err(error) => checks.faulty("labels", parts(&error).0),
    }
    match manifest.worst_cosine() {
        Some(cosine) => checks.note(
            "numbers",
            format!("stored in fewer bits: the cosine to the embedding is at least {cosine:.5}"),
        ),
        None => checks.sound("numbers", "as the encoder gave them"),
    }
}
