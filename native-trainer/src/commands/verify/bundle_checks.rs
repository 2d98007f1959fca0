//! The checks of a bundle.

use std::path::Path;

use akin_base::files::read_regular_file;
use akin_base::quantities::counted;
use akin_core::bundle::{MANIFEST, Manifest, Map, MapProxies, Parity};
use akin_core::encoder::EncoderConfig;
use akin_core::image::{Pixels, decode};
use akin_core::models::BackboneConfig;
use anyhow::{Context, Result};
use rayon::prelude::*;

use super::check::Checks;
use crate::config::DeviceName;
use crate::config::device;
use crate::config::onnx::attach_bundled;

/// Checks the manifest, the length and SHA-256 of every file, what the files hold, and that each encoder computes
/// the embeddings of its parity check.
pub fn check(directory: &Path, checks: &mut Checks) {
    let read = |path: &str| read_regular_file(&directory.join(path)).context("it cannot be read");
    let manifest = read(MANIFEST).and_then(|bytes| Ok(Manifest::parse(&bytes)?));
    let Some(manifest) = checks.result(MANIFEST, manifest, |manifest| {
        format!(
            "{}, {}",
            counted(manifest.item_count(), "item", "items"),
            counted(manifest.encoders.len(), "encoder", "encoders")
        )
    }) else {
        return;
    };
    let files: Vec<(&str, Result<Vec<u8>>)> = manifest
        .files()
        .par_iter()
        .map(|file| {
            let bytes =
                read(&file.path).and_then(|bytes| Ok(manifest.verify(&file.path, &bytes).map(|()| bytes)?));
            (&*file.path, bytes)
        })
        .collect();
    let bytes = |path: &str| -> Result<&[u8]> {
        let file = files.iter().find(|(name, _)| *name == path).and_then(|(_, bytes)| bytes.as_ref().ok());
        Ok(file.with_context(|| format!("{path} is damaged"))?)
    };
    let contents = |path: &str| check_contents(&manifest, path, &bytes);
    for (path, result) in &files {
        match result {
            Ok(read) => {
                let checked = contents(path);
                checks.result(*path, checked, |()| counted(read.len(), "byte", "bytes"));
            }
            Err(error) => checks.faulty(*path, akin_base::problem::parts(error).0),
        }
    }
    for (place, entry) in manifest.encoders.iter().enumerate() {
        let what = format!("encoder {}", entry.name);
        match &entry.calibration {
            Some(own) => {
                checks.sound(&what, format!("is calibrated on {}", counted(own.items, "item", "items")));
            }
            None => checks.note(
                &what,
                "has no calibration, so its answers have no certainty; `akin export` of this version writes one where each \
                 item has one label path",
            ),
        }
        let (Some(weights), Some(parity)) = (&entry.weights, &entry.parity) else {
            checks.note(&what, "has embeddings of its items alone, and no weights that embed other pictures");
            continue;
        };
        if bytes(weights).is_err() {
            continue;
        }
        if entry.onnx.is_some() && !cfg!(feature = "onnx") {
            checks.note(
                &what,
                "is an ONNX file, which this akin was built without an engine for; its parity was not checked",
            );
            continue;
        }
        checks.result(what, own_cosine(&manifest, place, parity, &bytes), |cosine| {
            format!("embeds the parity pictures as the trainer did: cosine {cosine:.6}")
        });
    }
}

/// Checks what a file holds, where the bytes alone do not tell.
fn check_contents<'a>(
    manifest: &Manifest,
    path: &str,
    bytes: &impl Fn(&str) -> Result<&'a [u8]>,
) -> Result<()> {
    if path == manifest.labels {
        manifest.labels(bytes(path)?)?;
    }
    if manifest.thumbnails.sheets.iter().any(|sheet| sheet == path) {
        decode(bytes(path)?)?;
    }
    for (place, entry) in manifest.encoders.iter().enumerate() {
        if path == entry.gallery_embeddings {
            manifest.gallery_embeddings(place, bytes(path)?)?;
        }
        if Some(path) == entry.query_embeddings.as_deref() {
            manifest.query_embeddings(place, bytes(path)?)?;
        }
        for (map, Map { coordinates, proxies, class_means, .. }) in entry.maps.iter().enumerate() {
            if path == coordinates {
                manifest.map_points(place, map, bytes(path)?)?;
            }
            if class_means.as_ref().is_some_and(|means| means.coordinates == path) {
                manifest.map_class_means(place, map, bytes(path)?)?;
            }
            if let Some(MapProxies { coordinates, nearest, ancestors, .. }) = proxies
                && path == coordinates
            {
                let files = [bytes(coordinates)?, bytes(nearest)?, bytes(ancestors)?];
                manifest.check_map_proxies(place, map, files)?;
            }
        }
        for (affinity, _) in entry.affinities.iter().enumerate().filter(|(_, table)| table.scores == path) {
            manifest.affinity_scores(place, affinity, bytes(path)?)?;
        }
        if entry.query_scores.as_ref().is_some_and(|table| table.scores == path) {
            manifest.query_scores(place, bytes(path)?)?;
        }
    }
    Ok(())
}

/// The smallest cosine of this machine's embeddings of the parity pictures to the trainer's.
fn own_cosine<'a>(
    manifest: &Manifest,
    place: usize,
    parity: &Parity,
    bytes: &impl Fn(&str) -> Result<&'a [u8]>,
) -> Result<f64> {
    let entry = manifest.encoder(place)?;
    let device = device::open(DeviceName::Cpu).or_else(|_| device::open(DeviceName::Auto))?;
    let config = EncoderConfig::of_bundle(entry)?;
    let mut encoder = config.load(bytes(entry.weights.as_deref().unwrap_or_default())?.to_vec(), &device)?;
    if let (Some(onnx), BackboneConfig::Onnx(backbone)) = (&entry.onnx, &config.backbone) {
        encoder = attach_bundled(encoder, onnx, backbone, bytes(&onnx.file)?.to_vec())?;
    }
    let decoded = manifest.parity_pictures.iter().map(|path| Ok(decode(bytes(path)?)?));
    let pictures: Vec<Pixels> = decoded.collect::<Result<_>>()?;
    let trainers = manifest.parity_embeddings(place, bytes(&parity.embeddings)?)?;
    let cosine =
        Parity::smallest_cosine(&encoder.embed(&pictures, &device)?, trainers.values(), entry.dimension);
    anyhow::ensure!(
        cosine >= parity.bound(),
        "it embeds the parity pictures otherwise than the trainer did: the smallest cosine is {cosine:.6}, and at least \
         {:.6} is needed",
        parity.bound()
    );
    Ok(cosine)
}
