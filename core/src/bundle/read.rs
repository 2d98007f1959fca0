//! Reading: everything is checked before it is handed out.

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use half::f16;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Affinity, Contents, ElementType, EncoderEntry, FORMAT, FileEntry, HALF_PRECISION, Int8Loss, ItemKinship,
    KINSHIP, MANIFEST, MAX_DIMENSION, MAX_PARITY_PICTURES, Map, MapGeometry, MapMeans, MapProxies,
    NO_ANCESTOR, ONNX, OnnxEntry, PARITY, Parity, QueryColumn, VERSION, WITHOUT_WEIGHTS, canonical,
};
use crate::certainty::BestScores;
use crate::digest::sha256;
use crate::embeddings::Embeddings;
use crate::similarity::Similarity;
use crate::taxonomy::{Labels, known_levels};
use crate::{Error, Kind, Result};

/// The names in `requires` that this reader knows.
const FEATURES: &[&str] = &[HALF_PRECISION, KINSHIP, ONNX, PARITY, WITHOUT_WEIGHTS];

const DOWNLOAD_AGAIN: &str = "download the bundle again, or write it again with `akin export`";
const EXPORT_AGAIN: &str = "write the bundle again with `akin export`";
pub(super) const UPDATE: &str =
    "update akin (in the browser, reload the page), or write the bundle again with this version";

/// A checked manifest: the [`Contents`] of a bundle and the checksums of its files.
///
/// All paths in it are safe to join to the bundle's address. Every file that the contents name is listed, and has the
/// length that follows from the contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    contents: Contents,
    files: Vec<FileEntry>,
    digest: String,
}

#[derive(Deserialize)]
struct Checksums {
    files: Vec<FileEntry>,
    digest: String,
}

impl Deref for Manifest {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

impl Manifest {
    /// Reads and checks the bytes of `bundle.json`.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`], naming the file and what to do: no JSON, another format, a newer version, a required feature
    /// that this reader does not know, a wrong digest, a missing or wrong field, an unsafe path, a file listed twice
    /// or not at all, or counts, lengths and dimensions that do not agree.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let value = parse_json(MANIFEST, bytes, DOWNLOAD_AGAIN)?;
        let required =
            check_format(MANIFEST, &value, FORMAT, "choose a directory that `akin export` has written")?;
        let digest = canonical::digest(&value);
        let stated = value.get("digest").unwrap_or(&Value::Null);
        if stated.as_str() != Some(&digest) {
            return Err(bundle_error(
                format!(
                    "{MANIFEST} was changed after it was written: it states the digest {stated}, and has {digest}"
                ),
                DOWNLOAD_AGAIN,
            ));
        }
        let invalid =
            |error: serde_json::Error| bundle_error(format!("{MANIFEST} is not valid: {error}"), UPDATE);
        let Checksums { files, digest } = Checksums::deserialize(&value).map_err(invalid)?;
        let contents = Contents::deserialize(&value).map_err(invalid)?;
        let manifest = Self { contents, files, digest };
        manifest.check()?;
        manifest.check_required(&required)?;
        Ok(manifest)
    }

    /// What the bundle says.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Every file but `bundle.json`.
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// The digest of the manifest. It covers the checksums of all files, and so identifies the whole bundle.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The number of items, gallery and stored queries together.
    pub fn item_count(&self) -> usize {
        self.gallery.count + self.queries.count
    }

    /// The length and checksum of a file.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the manifest does not list the file.
    pub fn file(&self, path: &str) -> Result<&FileEntry> {
        self.files
            .iter()
            .find(|file| file.path == path)
            .ok_or_else(|| bundle_error(format!("{MANIFEST} does not list the file {path:?}"), EXPORT_AGAIN))
    }

    /// Checks that `bytes` are those of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the manifest does not list the file, or when length or SHA-256 differ.
    pub fn verify(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let file = self.file(path)?;
        if bytes.len() as u64 != file.bytes {
            let state = if (bytes.len() as u64) < file.bytes { "cut short" } else { "too long" };
            return Err(bundle_error(
                format!("{path} is {state}: it has {} bytes instead of {}", bytes.len(), file.bytes),
                DOWNLOAD_AGAIN,
            ));
        }
        let found = sha256(bytes);
        if found != file.sha256 {
            return Err(bundle_error(
                format!(
                    "{path} was changed after the bundle was written: its SHA-256 is {found} instead of {}",
                    file.sha256
                ),
                DOWNLOAD_AGAIN,
            ));
        }
        Ok(())
    }

    /// The encoder at a position, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the bundle has fewer encoders.
    pub fn encoder(&self, encoder: usize) -> Result<&EncoderEntry> {
        self.encoders.get(encoder).ok_or_else(|| {
            bundle_error(
                format!("{MANIFEST} has {} encoders and no encoder {encoder}", self.encoders.len()),
                "choose one of them, counted from 0",
            )
        })
    }

    /// The labels of all items, gallery first, from the bytes of their file, which are verified.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when the bytes are not those of the file, a class is unknown, or a class is not a child of
    /// the class before it.
    pub fn labels(&self, bytes: &[u8]) -> Result<Labels> {
        self.verify(&self.labels, bytes)?;
        let ids = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
        let labels = Labels::new(self.taxonomy.depth(), ids)?;
        let labels = match &self.kinship {
            None => labels,
            Some(ItemKinship { kinds, kinship }) => {
                labels.with_kinship(Arc::new(kinship.clone()), kinds.clone())?
            }
        };
        for item in 0..labels.len() {
            self.check_path(item, labels.row(item))?;
            labels.paths(item).into_iter().try_for_each(|path| self.check_path(item, path))?;
        }
        Ok(labels)
    }

    /// Checks that the taxonomy has a label path of an item.
    fn check_path(&self, item: usize, path: &[u32]) -> Result<()> {
        for (position, &class) in path[..known_levels(path)].iter().enumerate() {
            let level = position + 1;
            let is_known = (class as usize) < self.taxonomy.class_count(level);
            if !is_known || self.taxonomy.parent(level, class) != path[..position].last().copied() {
                return Err(bundle_error(
                    format!(
                        "{}: item {item} has the labels {path:?}, and the taxonomy has no such path: there is no {} \
                         {class} there",
                        self.labels,
                        self.taxonomy.level_names()[position],
                    ),
                    EXPORT_AGAIN,
                ));
            }
        }
        Ok(())
    }

    /// An encoder's embeddings of the gallery, \[N, d\], from the bytes of their file, which are verified.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when there is no such encoder, the bytes are not those of the file, or a number is not
    /// finite.
    pub fn gallery_embeddings(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let entry = self.encoder(encoder)?;
        self.rows(&entry.gallery_embeddings, entry.dimension, entry.element_type, bytes)
    }

    /// An encoder's embeddings of the stored queries, \[Q, d\], from the bytes of their file, which are verified.
    ///
    /// # Errors
    ///
    /// As for the gallery; also when the bundle has no stored queries.
    pub fn query_embeddings(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let entry = self.encoder(encoder)?;
        let path = entry.query_embeddings.as_ref().ok_or_else(|| {
            bundle_error(format!("{MANIFEST} has no stored queries"), "use the gallery's items as queries")
        })?;
        self.rows(path, entry.dimension, entry.element_type, bytes)
    }

    /// The points of an encoder's map at a position (counted from 0), one per gallery item, from the bytes of their
    /// file, which are verified.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`] when there is no such encoder or map, the bytes are not those of the file, or a number is not
    /// finite.
    pub fn map_points(&self, encoder: usize, map: usize, bytes: &[u8]) -> Result<Vec<[f32; 2]>> {
        let entry = self.map(encoder, map)?;
        self.points(&entry.coordinates, entry.geometry, bytes)
    }

    /// The points of the class means of an encoder's map, one for each of its classes, from the bytes of their file,
    /// which are verified.
    ///
    /// # Errors
    ///
    /// As for [`Self::map_points`]; also when the map has no class means.
    pub fn map_class_means(&self, encoder: usize, map: usize, bytes: &[u8]) -> Result<Vec<[f32; 2]>> {
        let entry = self.map(encoder, map)?;
        let means = entry.class_means.as_ref().ok_or_else(|| {
            bundle_error(format!("the map {:?} has no class means", entry.name), "choose a map that has them")
        })?;
        self.points(&means.coordinates, entry.geometry, bytes)
    }

    /// Checks the files of a map's proxies: their coordinates, the items nearest to each, and the ancestors of each item.
    ///
    /// # Errors
    ///
    /// As for [`Self::map_points`]; also when the map has no proxies, or a file names an item or a proxy that does not
    /// exist.
    pub fn check_map_proxies(&self, encoder: usize, map: usize, files: [&[u8]; 3]) -> Result<()> {
        let entry = self.map(encoder, map)?;
        let proxies = entry.proxies.as_ref().ok_or_else(|| {
            bundle_error(format!("the map {:?} has no proxies", entry.name), "choose a map that has them")
        })?;
        let [coordinates, nearest, ancestors] = files;
        self.points(&proxies.coordinates, entry.geometry, coordinates)?;
        let numbers = |path: &str, bytes: &[u8], count: usize, what: &str| {
            self.verify(path, bytes)?;
            let mut numbers = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes);
            match numbers
                .find(|&number| number as usize >= count && (what != "proxy" || number != NO_ANCESTOR))
            {
                None => Ok(()),
                Some(number) => Err(bundle_error(
                    format!("{path} names the {what} {number}, but there are {count}"),
                    EXPORT_AGAIN,
                )),
            }
        };
        numbers(&proxies.nearest, nearest, self.gallery.count, "item")?;
        numbers(&proxies.ancestors, ancestors, proxies.count, "proxy")
    }

    fn map(&self, encoder: usize, map: usize) -> Result<&Map> {
        let EncoderEntry { name, maps, .. } = self.encoder(encoder)?;
        maps.get(map).ok_or_else(|| {
            bundle_error(
                format!("encoder {name:?} has {} maps and no map {map}", maps.len()),
                "choose one of them, counted from 0",
            )
        })
    }

    /// The points of a map's file.
    fn points(&self, path: &str, geometry: MapGeometry, bytes: &[u8]) -> Result<Vec<[f32; 2]>> {
        let points = self.rows(path, 2, ElementType::F32, bytes)?;
        let points = points.values().as_chunks().0.to_vec();
        let is_outside = |point: &[f32; 2]| point[0].hypot(point[1]) >= 1.0;
        match points.iter().position(is_outside) {
            Some(place) if geometry == MapGeometry::PoincareDisk => Err(bundle_error(
                format!("{path}: point {place} lies outside the Poincaré disk"),
                EXPORT_AGAIN,
            )),
            _ => Ok(points),
        }
    }

    /// The mean scores of an encoder's affinity at a position (counted from 0), \[C, C\], from the bytes of their
    /// file, which are verified.
    ///
    /// # Errors
    ///
    /// As for a map.
    pub fn affinity_scores(&self, encoder: usize, affinity: usize, bytes: &[u8]) -> Result<Embeddings> {
        let EncoderEntry { name, affinities, .. } = self.encoder(encoder)?;
        let entry = affinities.get(affinity).ok_or_else(|| {
            bundle_error(
                format!("encoder {name:?} has {} affinities and no affinity {affinity}", affinities.len()),
                "choose one of them, counted from 0",
            )
        })?;
        self.rows(&entry.scores, entry.classes.len(), ElementType::F32, bytes)
    }

    /// The trainer's embeddings of the parity pictures, from the bytes of their file, which are verified.
    ///
    /// # Errors
    ///
    /// As for a map; also when the encoder has no parity check.
    pub fn parity_embeddings(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let EncoderEntry { name, dimension, parity, .. } = self.encoder(encoder)?;
        let parity = parity
            .as_ref()
            .ok_or_else(|| bundle_error(format!("encoder {name:?} has no parity check"), EXPORT_AGAIN))?;
        self.rows(&parity.embeddings, *dimension, ElementType::F32, bytes)
    }

    /// The scores of each query, \[Q or N, K\], from the bytes of their file, which are verified.
    ///
    /// # Errors
    ///
    /// As for a map; also when the encoder has no such scores.
    pub fn query_scores(&self, encoder: usize, bytes: &[u8]) -> Result<Embeddings> {
        let EncoderEntry { name, query_scores, .. } = self.encoder(encoder)?;
        let table = query_scores.as_ref().ok_or_else(|| {
            bundle_error(format!("encoder {name:?} has no scores of each query"), EXPORT_AGAIN)
        })?;
        self.rows(&table.scores, table.columns.len(), ElementType::F32, bytes)
    }

    /// The finite numbers of a file, `dimension` per row.
    fn rows(
        &self,
        path: &str,
        dimension: usize,
        element_type: ElementType,
        bytes: &[u8],
    ) -> Result<Embeddings> {
        self.verify(path, bytes)?;
        let numbers = match element_type {
            ElementType::F32 => bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect(),
            ElementType::F16 => {
                bytes.as_chunks().0.iter().map(|&number| f16::from_le_bytes(number).to_f32()).collect()
            }
        };
        Embeddings::new(dimension, numbers)
            .map_err(|error| bundle_error(format!("{path}: {}", error.message()), EXPORT_AGAIN))
    }

    fn check(&self) -> Result<()> {
        self.check_files()?;
        self.check_items()?;
        self.evaluation_config
            .checked(self.taxonomy.depth())
            .map_err(|error| inconsistent(format!("evaluation_config: {}", error.message())))?;
        if self.encoders.is_empty() {
            return Err(inconsistent("there is no encoder"));
        }
        let mut names = HashSet::new();
        for (position, entry) in self.encoders.iter().enumerate() {
            if entry.name.trim().is_empty() || !names.insert(&entry.name) {
                return Err(inconsistent(format!(
                    "the name {:?} of encoder {position} is empty or not unique",
                    entry.name
                )));
            }
            self.check_encoder(entry)?;
        }
        self.check_families()
    }

    /// Checks that an encoder of a family has codes, and another number of bits than the others.
    fn check_families(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for EncoderEntry { name, family, dimension, report, .. } in &self.encoders {
            let Some(family) = family else { continue };
            let is_new = seen.insert((family, dimension));
            if family.trim().is_empty() || report.config.similarity != Similarity::Hamming || !is_new {
                return Err(inconsistent(format!(
                    "encoder {name:?} is of the family {family:?}, but has no codes, or as many bits as another of it"
                )));
            }
        }
        Ok(())
    }

    /// Checks that `requires` names every feature that the contents use, since an older reader relies on it.
    fn check_required(&self, required: &[String]) -> Result<()> {
        type Use = (&'static str, &'static str, fn(&EncoderEntry) -> bool);
        let uses: [Use; 4] = [
            (HALF_PRECISION, "its embeddings are in half precision", |entry| {
                entry.element_type == ElementType::F16
            }),
            (ONNX, "its network is an ONNX file", |entry| entry.onnx.is_some()),
            (PARITY, "it has a parity check", |entry| entry.parity.is_some()),
            (WITHOUT_WEIGHTS, "it has no weights", |entry| entry.weights.is_none()),
        ];
        for (feature, why, is_used) in uses {
            if let Some(entry) = self.encoders.iter().find(|entry| is_used(entry))
                && !required.iter().any(|name| name == feature)
            {
                return Err(inconsistent(format!(
                    "encoder {:?}: {why}, but `requires` does not name {feature:?}",
                    entry.name
                )));
            }
        }
        Ok(())
    }

    fn check_parity(&self, entry: &EncoderEntry) -> Result<()> {
        let EncoderEntry { name, dimension, parity, weights, .. } = entry;
        let pictures = self.parity_pictures.len();
        match parity {
            None if weights.is_none() => Ok(()),
            None => Err(inconsistent(format!(
                "encoder {name:?} has weights, but no parity check: embeddings of the parity pictures"
            ))),
            Some(_) if pictures == 0 => Err(inconsistent(format!(
                "encoder {name:?} has embeddings of parity pictures, but there are none"
            ))),
            Some(Parity { cosine, .. }) if !(-1.0..=1.0).contains(cosine) => Err(inconsistent(format!(
                "the cosine in the parity check of encoder {name:?} is {cosine}; it must be -1 to 1"
            ))),
            Some(Parity { embeddings, .. }) => self.check_length(embeddings, &[pictures, *dimension, 4]),
        }
    }

    /// Checks that the ONNX file of an encoder is the one that its architecture was made for.
    fn check_onnx(&self, EncoderEntry { name, architecture, onnx, .. }: &EncoderEntry) -> Result<()> {
        let backbone = &architecture["backbone"];
        match (onnx, backbone["kind"] == "onnx") {
            (None, false) => Ok(()),
            (Some(OnnxEntry { file, int8, .. }), true) => {
                let listed = self.file(file)?;
                if backbone["sha256"].as_str().is_some_and(|sha256| sha256 != listed.sha256) {
                    return Err(inconsistent(format!(
                        "{file} has the SHA-256 {}, but the architecture of encoder {name:?} names {}",
                        listed.sha256, backbone["sha256"]
                    )));
                }
                let is_share = |number: f64| (0.0..=1.0).contains(&number);
                match int8 {
                    Some(Int8Loss { h_ap, h_ap_int8 }) if !(is_share(*h_ap) && is_share(*h_ap_int8)) => Err(
                        inconsistent(format!("the H-AP in `int8` of encoder {name:?} is not from 0 to 1")),
                    ),
                    _ => Ok(()),
                }
            }
            (Some(_), false) => Err(inconsistent(format!(
                "encoder {name:?} has an ONNX file, but its architecture has another backbone"
            ))),
            (None, true) => Err(inconsistent(format!(
                "the architecture of encoder {name:?} is an ONNX file, but the bundle names none"
            ))),
        }
    }

    fn check_files(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for FileEntry { path, sha256, .. } in &self.files {
            check_path(path)?;
            // Some file systems do not distinguish upper and lower case.
            if !seen.insert(path.to_ascii_lowercase()) {
                return Err(inconsistent(format!("the file {path:?} is listed twice")));
            }
            let is_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if sha256.len() != 64 || !sha256.bytes().all(is_hexadecimal) {
                return Err(inconsistent(format!(
                    "the SHA-256 of {path:?} is {sha256:?}, not 64 lower-case hexadecimal digits"
                )));
            }
        }
        Ok(())
    }

    fn check_items(&self) -> Result<()> {
        if self.gallery.count == 0 {
            return Err(inconsistent("the gallery is empty"));
        }
        let items = self
            .gallery
            .count
            .checked_add(self.queries.count)
            .ok_or_else(|| inconsistent("there are more items than can be counted"))?;
        self.check_length(&self.labels, &[items, self.taxonomy.depth(), 4])?;

        let super::Thumbnails { tile, columns, rows, ref sheets } = self.thumbnails;
        let sides = [tile, columns, rows];
        if sides.iter().any(|side| !(1..=65_535).contains(side)) {
            return Err(inconsistent(format!(
                "a thumbnail sheet has {columns} × {rows} tiles of {tile} pixels; each number must be 1 to 65535"
            )));
        }
        let tiles = u64::from(columns) * u64::from(rows);
        let needed = (items as u64).div_ceil(tiles);
        if sheets.len() as u64 != needed {
            return Err(inconsistent(format!(
                "{items} items need {needed} sheets of {tiles} thumbnails, but {} are named",
                sheets.len()
            )));
        }
        if self.parity_pictures.len() > MAX_PARITY_PICTURES {
            return Err(inconsistent(format!(
                "there are {} parity pictures; at most {MAX_PARITY_PICTURES} are supported",
                self.parity_pictures.len()
            )));
        }
        sheets.iter().chain(&self.parity_pictures).try_for_each(|picture| self.file(picture).map(drop))
    }

    fn check_encoder(&self, entry: &EncoderEntry) -> Result<()> {
        let EncoderEntry { name, dimension, .. } = entry;
        if !(1..=MAX_DIMENSION).contains(dimension) {
            return Err(inconsistent(format!(
                "encoder {name:?} has {dimension} dimensions; 1 to {MAX_DIMENSION} are supported"
            )));
        }
        self.check_parity(entry)?;
        self.check_onnx(entry)?;
        let levels = entry.report.levels.iter().map(|level| &level.name);
        if !levels.eq(self.taxonomy.level_names()) {
            return Err(inconsistent(format!(
                "the levels in the report of encoder {name:?} are not those of the taxonomy"
            )));
        }
        entry
            .report
            .config
            .checked(self.taxonomy.depth())
            .map_err(|error| inconsistent(format!("the report of encoder {name:?}: {}", error.message())))?;
        match (&entry.weights, &entry.preprocessing) {
            (Some(weights), Some(_)) => self.file(weights).map(drop)?,
            (None, None) if entry.architecture.is_null() && entry.parity.is_none() => {}
            _ => {
                return Err(inconsistent(format!(
                    "encoder {name:?} has some of weights, architecture, preprocessing and parity check, and not the others"
                )));
            }
        }
        let element = entry.element_type.bytes();
        self.check_length(&entry.gallery_embeddings, &[self.gallery.count, *dimension, element])?;
        match &entry.query_embeddings {
            Some(path) if self.queries.count > 0 => {
                self.check_length(path, &[self.queries.count, *dimension, element])?;
            }
            None if self.queries.count == 0 => {}
            Some(path) => {
                return Err(inconsistent(format!(
                    "encoder {name:?} has query embeddings in {path}, but there are no stored queries"
                )));
            }
            None => {
                return Err(inconsistent(format!(
                    "encoder {name:?} has no embeddings of the {} stored queries",
                    self.queries.count
                )));
            }
        }
        let mut names = HashSet::new();
        for map in &entry.maps {
            if map.name.trim().is_empty() || !names.insert(&map.name) {
                return Err(inconsistent(format!(
                    "the name {:?} of a map of encoder {name:?} is empty or not unique",
                    map.name
                )));
            }
            self.check_length(&map.coordinates, &[self.gallery.count, 2, 4])?;
            if let Some(MapProxies { count, coordinates, per_proxy, nearest, ancestors }) = &map.proxies {
                if *count == 0 || *per_proxy == 0 {
                    return Err(inconsistent(format!(
                        "the map {:?} of encoder {name:?} has no proxies, or proxies without an item",
                        map.name
                    )));
                }
                self.check_length(coordinates, &[*count, 2, 4])?;
                self.check_length(nearest, &[*count, *per_proxy, 4])?;
                self.check_length(ancestors, &[self.gallery.count, self.taxonomy.depth(), 4])?;
            }
            if let Some(MapMeans { classes, coordinates, .. }) = &map.class_means {
                self.check_classes(&format!("the map {:?}", map.name), name, self.taxonomy.depth(), classes)?;
                self.check_length(coordinates, &[classes.len(), 2, 4])?;
            }
        }
        let mut levels = HashSet::new();
        for affinity in &entry.affinities {
            if !levels.insert(affinity.level) {
                return Err(inconsistent(format!(
                    "encoder {name:?} has two affinities of level {}",
                    affinity.level
                )));
            }
            self.check_affinity(name, affinity)?;
        }
        if let Some(table) = &entry.query_scores {
            let is_known = |column: &QueryColumn| column.level <= self.taxonomy.depth();
            if table.columns.is_empty() || !table.columns.iter().all(is_known) {
                return Err(inconsistent(format!(
                    "the query scores of encoder {name:?} have no column, or one of a level that does not exist"
                )));
            }
            let rows = if self.queries.count > 0 { self.queries.count } else { self.gallery.count };
            self.check_length(&table.scores, &[rows, table.columns.len(), 4])?;
        }
        if let Some(flaw) =
            entry.calibration.as_ref().and_then(|calibration| calibration.flaw(self.taxonomy.depth()))
        {
            return Err(inconsistent(format!("the calibration of encoder {name:?} {flaw}")));
        }
        if !entry.best_scores.as_ref().is_none_or(BestScores::is_valid) {
            return Err(inconsistent(format!(
                "the best scores of encoder {name:?} are not {} finite numbers in ascending order",
                BestScores::COUNT
            )));
        }
        Ok(())
    }

    fn check_affinity(&self, name: &str, Affinity { level, classes, scores }: &Affinity) -> Result<()> {
        self.check_classes("an affinity", name, *level, classes)?;
        self.check_length(scores, &[classes.len(), classes.len(), 4])
    }

    /// Checks that `what` of an encoder names different classes of a level, at least one.
    fn check_classes(&self, what: &str, encoder: &str, level: usize, classes: &[u32]) -> Result<()> {
        let count =
            if (1..=self.taxonomy.depth()).contains(&level) { self.taxonomy.class_count(level) } else { 0 };
        let mut seen = HashSet::new();
        if classes.is_empty() || !classes.iter().all(|&class| (class as usize) < count && seen.insert(class))
        {
            return Err(inconsistent(format!(
                "{what} of encoder {encoder:?} has no class, or not different classes of one level"
            )));
        }
        Ok(())
    }

    /// Checks that a file is listed, with a length that is the product of `factors`.
    fn check_length(&self, path: &str, factors: &[usize]) -> Result<()> {
        let file = self.file(path)?;
        let length = factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor as u64));
        if length != Some(file.bytes) {
            let factors: Vec<String> = factors.iter().map(usize::to_string).collect();
            return Err(inconsistent(format!(
                "{path} is listed with {} bytes instead of {}",
                file.bytes,
                factors.join(" × ")
            )));
        }
        Ok(())
    }
}

/// The JSON value of the file `name`.
pub(super) fn parse_json(name: &str, bytes: &[u8], hint: &str) -> Result<Value> {
    serde_json::from_slice(bytes)
        .map_err(|error| bundle_error(format!("{name} is damaged or cut short ({error})"), hint))
}

/// Checks format, version and required features of the file `name`, and returns the features; `hint` says what to do if
/// they are invalid.
pub(super) fn check_format(name: &str, value: &Value, format: &str, hint: &str) -> Result<Vec<String>> {
    let field = |key: &str| value.get(key).unwrap_or(&Value::Null);
    if field("format") != format {
        let message = format!("{name} has the format {}, not {format:?}", field("format"));
        return Err(bundle_error(message, hint));
    }
    let newer =
        |reason: String| bundle_error(format!("this bundle needs a newer akin: {name} {reason}"), UPDATE);
    match field("version").as_u64() {
        Some(VERSION) => {}
        Some(version) if version > VERSION => {
            return Err(newer(format!("has version {version}, and this akin reads version {VERSION}")));
        }
        _ => {
            let message = format!("{name} has the version {}, which does not exist", field("version"));
            return Err(bundle_error(message, hint));
        }
    }
    let required: Vec<String> = match field("requires") {
        Value::Null => Vec::new(),
        list => Vec::deserialize(list)
            .map_err(|error| bundle_error(format!("{name} has an invalid list `requires`: {error}"), hint))?,
    };
    match required.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        Some(feature) => Err(newer(format!("requires {feature:?}, which this akin does not know"))),
        None => Ok(required),
    }
}

/// Whether a path stays inside the bundle, and means the same in an address and on every system.
pub(super) fn is_safe_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_safe = |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain);
    path.split('/').all(is_safe)
}

/// Checks that a file may have this path.
pub(super) fn check_path(path: &str) -> Result<()> {
    if is_safe_path(path) && !path.eq_ignore_ascii_case(MANIFEST) {
        return Ok(());
    }
    Err(bundle_error(
        format!("{MANIFEST} has the path {path:?}, which is not safe"),
        "use relative paths of ASCII letters, digits, '-', '_' and '.', joined by '/'",
    ))
}

fn inconsistent(reason: impl Display) -> Error {
    bundle_error(format!("{MANIFEST} is inconsistent: {reason}"), EXPORT_AGAIN)
}

pub(super) fn bundle_error(message: String, hint: &str) -> Error {
    Error::new(Kind::Bundle, message, hint)
}
