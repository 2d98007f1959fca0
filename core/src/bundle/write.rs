//! Writing: collects files, then adds the manifest with their checksums.

use half::f16;
use serde_json::{Value, json};

use super::read::{bundle_error, check_path};
use super::{
    Affinity, Contents, ElementType, FORMAT, FileEntry, HALF_PRECISION, KINSHIP, MANIFEST, Manifest, Map,
    MapMeans, MapProxies, ONNX, PARITY, VERSION, canonical,
};
use crate::Result;
use crate::digest::sha256;
use crate::taxonomy::Labels;

/// Collects the files of a bundle, then returns them with their manifest.
///
/// ```no_run
/// # use akin_core::bundle::{BundleWriter, Contents};
/// # fn export(contents: Contents, weights: Vec<u8>) -> akin_core::Result<()> {
/// let mut bundle = BundleWriter::new();
/// bundle.add("happier/weights.bpk", weights)?;
/// // … labels, embeddings, thumbnails …
/// for (path, bytes) in bundle.finish(&contents)? {
///     // Write them in this order: `bundle.json` comes last, so that a half-written bundle has no manifest.
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BundleWriter {
    files: Vec<(String, Vec<u8>)>,
}

impl BundleWriter {
    /// A bundle without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`](crate::Kind::Bundle) when the path is not safe, or already in use.
    pub fn add(&mut self, path: impl Into<String>, bytes: Vec<u8>) -> Result<()> {
        let path = path.into();
        check_path(&path)?;
        if self.files.iter().any(|(taken, _)| taken.eq_ignore_ascii_case(&path)) {
            return Err(bundle_error(
                format!("the bundle already has a file {path:?}"),
                "give each file its own path",
            ));
        }
        self.files.push((path, bytes));
        Ok(())
    }

    /// All files, in the order in which they were added, and `bundle.json` last.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`](crate::Kind::Bundle) when a reader would refuse the result: this reads it back.
    pub fn finish(self, contents: &Contents) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files = self.files;
        let entries: Vec<FileEntry> = files
            .iter()
            .map(|(path, bytes)| FileEntry {
                path: path.clone(),
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
            })
            .collect();
        let unwritable =
            |error| bundle_error(format!("{MANIFEST} cannot be written: {error}"), "please report this");
        // `to_value` would widen every f32; by way of text, 0.1 stays 0.1 and does not become 0.10000000149011612.
        let text = serde_json::to_string(contents).map_err(unwritable)?;
        let mut value: Value = serde_json::from_str(&text).map_err(unwritable)?;
        value["format"] = FORMAT.into();
        value["version"] = VERSION.into();
        let half = contents.encoders.iter().any(|entry| entry.element_type == ElementType::F16);
        let onnx = contents.encoders.iter().any(|entry| entry.onnx.is_some());
        let required = [
            half.then_some(HALF_PRECISION),
            contents.kinship.as_ref().map(|_| KINSHIP),
            onnx.then_some(ONNX),
            (!contents.parity_pictures.is_empty()).then_some(PARITY),
        ];
        if required.iter().any(Option::is_some) {
            value["requires"] = required.into_iter().flatten().collect();
        }
        value["files"] = json!(entries);
        value["digest"] = canonical::digest(&value).into();
        let manifest_bytes = serde_json::to_vec_pretty(&value).map_err(unwritable)?;

        let manifest = Manifest::parse(&manifest_bytes)?;
        let bytes_of = |path: &str| {
            let found = files.iter().find(|(name, _)| name == path);
            found.map_or(&[][..], |(_, bytes)| bytes)
        };
        manifest.labels(bytes_of(&contents.labels))?;
        for (encoder, entry) in contents.encoders.iter().enumerate() {
            manifest.gallery_embeddings(encoder, bytes_of(&entry.gallery_embeddings))?;
            if let Some(path) = &entry.query_embeddings {
                manifest.query_embeddings(encoder, bytes_of(path))?;
            }
            for (map, Map { coordinates, proxies, class_means, .. }) in entry.maps.iter().enumerate() {
                manifest.map_points(encoder, map, bytes_of(coordinates))?;
                if let Some(MapProxies { coordinates, nearest, ancestors, .. }) = proxies {
                    let files = [coordinates, nearest, ancestors].map(|path| bytes_of(path));
                    manifest.check_map_proxies(encoder, map, files)?;
                }
                if let Some(MapMeans { coordinates, .. }) = class_means {
                    manifest.map_class_means(encoder, map, bytes_of(coordinates))?;
                }
            }
            for (affinity, Affinity { scores, .. }) in entry.affinities.iter().enumerate() {
                manifest.affinity_scores(encoder, affinity, bytes_of(scores))?;
            }
            if let Some(parity) = &entry.parity {
                manifest.parity_embeddings(encoder, bytes_of(&parity.embeddings))?;
            }
            if let Some(table) = &entry.query_scores {
                manifest.query_scores(encoder, bytes_of(&table.scores))?;
            }
        }
        files.push((MANIFEST.to_owned(), manifest_bytes));
        Ok(files)
    }
}

/// The bytes of a label file: u32, little-endian, \[N, L\].
pub fn label_bytes(labels: &Labels) -> Vec<u8> {
    number_bytes(labels.ids())
}

/// The bytes of a file of items or proxies: u32, little-endian.
pub fn number_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The bytes of a file of embeddings or, in full precision, of scores: `element_type`, little-endian, \[N, d\]. Half precision rounds to the nearest
/// number, ties to even.
pub fn embedding_bytes(numbers: &[f32], element_type: ElementType) -> Vec<u8> {
    match element_type {
        ElementType::F32 => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        ElementType::F16 => numbers.iter().flat_map(|&number| f16::from_f32(number).to_le_bytes()).collect(),
    }
}

/// The bytes of a file of map coordinates: f32, little-endian, \[N, 2\].
pub fn coordinate_bytes(points: &[[f32; 2]]) -> Vec<u8> {
    embedding_bytes(points.as_flattened(), ElementType::F32)
}
