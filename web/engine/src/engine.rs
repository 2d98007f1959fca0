//! The engine: a device, a bundle and its encoders.

use std::collections::HashMap;

use akin_bridge::{Result, misuse, thrown, to_js};
use akin_core::attribution::{Cells, Occlusion};
use akin_core::bundle::{Manifest, Parity};
use akin_core::certainty::{BestScores, Calibration, LeaveOneOut};
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::evaluate::EvaluationConfig;
use akin_core::image::{Pixels, decode};
use akin_core::models::{Backbone, Outputs};
use akin_core::neighbours::Known;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use burn::tensor::Device;
use js_sys::Function;
use wasm_bindgen::prelude::*;
use web_sys::OffscreenCanvas;
use web_time::Instant;

use crate::foreign::ForeignEngine;
use crate::graphics::Graphics;
use crate::map::MapCanvas;
use crate::messages::{Embedded, OwnLabels, ParityCheck, Ranked};
use crate::ranked::{KnownGallery, Query};

/// The engine, as the crate's page describes it.
#[wasm_bindgen]
pub struct Engine {
    device: Device,
    graphics: Option<Graphics>,
    bundle: Option<Bundle>,
    own: Option<OwnGallery>,
}

struct Bundle {
    manifest: Manifest,
    labels: Option<Labels>,
    encoders: Vec<Option<LoadedEncoder>>,
}

/// An encoder with its embeddings of the items.
struct LoadedEncoder {
    /// None if the bundle has embeddings alone.
    encoder: Option<Encoder>,
    /// Who runs the backbone, if it is an ONNX file.
    foreign: Option<ForeignEngine>,
    embeddings: Embeddings,
    queries: Option<Embeddings>,
    gallery: Gallery,
}

/// What a gallery of the reader's own pictures answers is measured with at most so many of them, so that the page answers
/// soon even where there are many.
const MEASURED: usize = 2000;

/// A gallery of the reader's own pictures.
#[derive(Default)]
struct OwnGallery {
    /// `None` where the pictures have no labels.
    labels: Option<Labels>,
    /// By encoder of the bundle.
    encoders: HashMap<usize, OwnEmbeddings>,
}

struct OwnEmbeddings {
    embeddings: Embeddings,
    gallery: Gallery,
    best_scores: Option<BestScores>,
    /// `None` without labels.
    calibration: Option<Calibration>,
}

#[wasm_bindgen]
impl Engine {
    /// An engine on `"webgpu"` or `"cpu"`. `on_lost(reason)` runs if WebGPU loses its device.
    ///
    /// # Errors
    ///
    /// WebGPU does not start, or the back end has another name.
    pub async fn create(backend: String, on_lost: Function) -> Result<Engine> {
        let graphics = match backend.as_str() {
            "webgpu" => Some(Graphics::open(on_lost).await?),
            "cpu" => None,
            other => {
                return Err(misuse(&format!("unknown back end {other:?}; there are \"webgpu\" and \"cpu\"")));
            }
        };
        let device = graphics.as_ref().map_or_else(Device::flex, |graphics| graphics.tensors.clone());
        Ok(Engine { device, graphics, bundle: None, own: None })
    }

    /// The graphics adapter, an [`Adapter`](crate::messages::Adapter); null on the CPU.
    pub fn adapter(&self) -> JsValue {
        to_js(&self.graphics.as_ref().map(Graphics::adapter))
    }

    /// A map on a canvas, drawn by the device of the tensors. Its pictures are squares of `tile` pixels.
    ///
    /// # Errors
    ///
    /// The engine runs on the CPU, or the device cannot draw on the canvas.
    pub fn map(&self, canvas: OffscreenCanvas, tile: u32) -> Result<MapCanvas> {
        let graphics = self.graphics.as_ref().ok_or_else(|| misuse("the engine runs on the CPU"))?;
        MapCanvas::new(graphics.setup.clone(), canvas, tile)
    }

    /// Opens a bundle by the bytes of its `bundle.json`.
    ///
    /// # Errors
    ///
    /// The manifest is damaged, needs a newer version, or is something else.
    pub fn open(&mut self, bundle_json: &[u8]) -> Result<()> {
        let manifest = Manifest::parse(bundle_json).map_err(thrown)?;
        let encoders = manifest.encoders.iter().map(|_| None).collect();
        self.bundle = Some(Bundle { manifest, labels: None, encoders });
        self.own = None;
        Ok(())
    }

    /// Loads the labels of all items.
    ///
    /// # Errors
    ///
    /// No bundle is open, or the bytes are not those of the manifest.
    pub fn load_labels(&mut self, bytes: &[u8]) -> Result<()> {
        let bundle = self.bundle_mut()?;
        bundle.labels = Some(bundle.manifest.labels(bytes).map_err(thrown)?);
        Ok(())
    }

    /// Loads an encoder with its embeddings of the items. Of one whose backbone is an ONNX file, `run` runs that file: see
    /// [`ForeignEngine`]. Without its weights or its `run`, an encoder ranks the items and embeds no picture.
    ///
    /// # Errors
    ///
    /// The bytes are not those of the manifest, the weights do not fit the architecture, or the device
    /// fails.
    pub fn load_encoder(
        &mut self,
        index: usize,
        weights: Option<Vec<u8>>,
        gallery: Vec<u8>,
        queries: Option<Vec<u8>>,
        run: Option<Function>,
    ) -> Result<()> {
        let device = self.device.clone();
        let bundle = self.bundle_mut()?;
        let manifest = &bundle.manifest;
        let entry = manifest.encoder(index).map_err(thrown)?;
        let embeddings = manifest.gallery_embeddings(index, &gallery).map_err(thrown)?;
        let queries =
            queries.map(|bytes| manifest.query_embeddings(index, &bytes)).transpose().map_err(thrown)?;
        let searchable = Gallery::new(&embeddings, entry.report.config.similarity).map_err(thrown)?;
        let encoder = match (&entry.weights, weights) {
            (Some(path), Some(weights)) => {
                manifest.verify(path, &weights).map_err(thrown)?;
                let config = EncoderConfig::of_bundle(entry).map_err(thrown)?;
                Some(config.load(weights, &device).map_err(thrown)?)
            }
            _ => None,
        };
        let foreign = match (&entry.onnx, run) {
            (Some(onnx), Some(run)) => Some(ForeignEngine::new(onnx, run)),
            _ => None,
        };
        bundle.encoders[index] =
            Some(LoadedEncoder { encoder, foreign, embeddings, queries, gallery: searchable });
        Ok(())
    }

    /// Compares the embeddings of the first parity pictures, one after another, with the trainer's, the bytes of whose
    /// file are given. Returns a [`ParityCheck`].
    ///
    /// # Errors
    ///
    /// The encoder has no parity check, or the bytes are not those of the manifest.
    pub fn check_parity(&self, encoder: usize, embeddings: &[f32], trainers: &[u8]) -> Result<JsValue> {
        let manifest = &self.bundle()?.manifest;
        let trainers = manifest.parity_embeddings(encoder, trainers).map_err(thrown)?;
        let entry = manifest.encoder(encoder).map_err(thrown)?;
        let parity = entry.parity.as_ref().ok_or_else(|| misuse("the encoder has no parity check"))?;
        let pictures = embeddings.len() / entry.dimension;
        if pictures == 0 || !embeddings.len().is_multiple_of(entry.dimension) || pictures > trainers.len() {
            return Err(misuse("these are not the embeddings of the first parity pictures"));
        }
        let cosine =
            Parity::smallest_cosine(embeddings, &trainers.values()[..embeddings.len()], entry.dimension);
        Ok(to_js(&ParityCheck {
            pictures,
            cosine: if cosine.is_nan() { -1.0 } else { cosine },
            bound: parity.bound(),
            passed: cosine >= parity.bound(),
        }))
    }

    /// Checks the bytes of any file of the bundle.
    ///
    /// # Errors
    ///
    /// The manifest does not list the file, or lists other bytes.
    pub fn verify(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.bundle()?.manifest.verify(path, bytes).map_err(thrown)
    }

    /// The embedding of an image, as [`Embedded`].
    ///
    /// # Errors
    ///
    /// The image cannot be read, the encoder is not loaded, or the device fails.
    pub async fn embed(&self, encoder: usize, image: Vec<u8>) -> Result<JsValue> {
        let started = Instant::now();
        let picture = decode(&image).map_err(thrown)?;
        let decode_ms = milliseconds_since(started);
        let started = Instant::now();
        let embedding = self.embedding(encoder, self.outputs(encoder, &picture).await?).await?;
        Ok(to_js(&Embedded { embedding, decode_ms, embed_ms: milliseconds_since(started) }))
    }

    /// Starts a gallery of the reader's own pictures, which replaces an earlier one. `rows` are its labels, one per picture
    /// and level, coarse to fine; an empty label is unknown. Without levels the pictures have no
    /// labels. Returns the taxonomy and the labels, as [`OwnLabels`]. Each encoder needs
    /// [`embed_own_gallery`](Self::embed_own_gallery) before it ranks.
    ///
    /// # Errors
    ///
    /// The rows do not fit the levels, or a label of the first level is empty.
    pub fn start_own_gallery(&mut self, levels: Vec<String>, rows: Vec<String>) -> Result<JsValue> {
        self.own = None;
        if levels.is_empty() {
            self.own = Some(OwnGallery::default());
            return Ok(to_js(&OwnLabels::default()));
        }
        let rows: Vec<Vec<String>> = rows.chunks(levels.len()).map(<[String]>::to_vec).collect();
        let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Path).map_err(thrown)?;
        let depth = taxonomy.depth();
        let ids = |level: usize| 0..taxonomy.class_count(level) as u32;
        let result = to_js(&OwnLabels {
            classes: (1..=depth)
                .map(|level| ids(level).map(|class| taxonomy.class_name(level, class).to_owned()).collect())
                .collect(),
            parents: (1..=depth)
                .map(|level| ids(level).filter_map(|class| taxonomy.parent(level, class)).collect())
                .collect(),
            labels: labels.ids().to_vec(),
        });
        self.own = Some(OwnGallery { labels: Some(labels), encoders: HashMap::new() });
        Ok(result)
    }

    /// Gives an encoder its embeddings of the reader's own gallery, one row per picture.
    ///
    /// # Errors
    ///
    /// The embeddings do not fit the encoder or the gallery, or the encoder is not loaded.
    pub fn embed_own_gallery(&mut self, encoder: usize, embeddings: Vec<f32>) -> Result<()> {
        let dimension = self.loaded(encoder)?.embeddings.dimension();
        let similarity = self.bundle()?.manifest.encoder(encoder).map_err(thrown)?.report.config.similarity;
        let own = self.own.as_mut().ok_or_else(|| misuse("there is no gallery of own pictures"))?;
        let embeddings = Embeddings::new(dimension, embeddings).map_err(thrown)?;
        if own.labels.as_ref().is_some_and(|labels| labels.len() != embeddings.len()) {
            return Err(misuse("the gallery has another number of labels than of embeddings"));
        }
        let gallery = Gallery::new(&embeddings, similarity).map_err(thrown)?;
        let (best_scores, calibration) = match &own.labels {
            Some(labels) => {
                let known =
                    LeaveOneOut::of_sample(&embeddings, labels, similarity, MEASURED).map_err(thrown)?;
                (known.best_scores(), known.calibration())
            }
            None => (BestScores::of_gallery(&embeddings, similarity, MEASURED).map_err(thrown)?, None),
        };
        own.encoders.insert(encoder, OwnEmbeddings { embeddings, gallery, best_scores, calibration });
        Ok(())
    }

    /// Ranks the gallery of the bundle, or the reader's own where `own` is true, by its similarity to a query. Returns a
    /// [`Ranked`]: the `k` best items; where the query's labels are known the metrics of the whole ranking, else the votes
    /// of the `k` items and the answers at some promises; and how alike the query and its nearest item are.
    ///
    /// Give `item` when the query is an item: its embedding and labels are then known, and it does not rank itself.
    /// Items count from 0, in a bundle gallery first, then stored queries. Otherwise give `embedding`, and `labels` (one
    /// class per level, coarse to fine) where they are known.
    ///
    /// # Errors
    ///
    /// The embedding, the item or the labels do not fit the gallery, or the encoder is not loaded.
    pub fn rank(
        &self,
        encoder: usize,
        k: usize,
        embedding: Option<Vec<f32>>,
        item: Option<usize>,
        labels: Option<Vec<u32>>,
        own: bool,
    ) -> Result<JsValue> {
        let bundle = self.bundle()?;
        let loaded = self.loaded(encoder)?;
        let own_config = EvaluationConfig::default();
        let (asked, gallery, queries) = if own {
            let own = self.own.as_ref().ok_or_else(|| misuse("there is no gallery of own pictures"))?;
            let embedded = own.encoders.get(&encoder);
            let embedded =
                embedded.ok_or_else(|| misuse("the own pictures are not embedded by this encoder"))?;
            let known = Known {
                labels: own.labels.as_ref(),
                rows: None,
                best_scores: embedded.best_scores.as_ref(),
                calibration: embedded.calibration.as_ref(),
            };
            let asked = KnownGallery { gallery: &embedded.gallery, known, config: &own_config };
            (asked, &embedded.embeddings, None)
        } else {
            let labels = bundle.labels.as_ref().ok_or_else(|| misuse("the labels are not loaded yet"))?;
            let entry = bundle.manifest.encoder(encoder).map_err(thrown)?;
            let known = Known {
                labels: Some(labels),
                rows: None,
                best_scores: entry.best_scores.as_ref(),
                calibration: entry.calibration.as_ref(),
            };
            let config = &bundle.manifest.evaluation_config;
            let asked = KnownGallery { gallery: &loaded.gallery, known, config };
            (asked, &loaded.embeddings, loaded.queries.as_ref())
        };
        let stored = item.map(|item| match queries {
            _ if item < gallery.len() => Ok(gallery.row(item)),
            Some(queries) if item - gallery.len() < queries.len() => Ok(queries.row(item - gallery.len())),
            _ => Err(misuse(&format!("the gallery has no item {item}"))),
        });
        let embedding = match (stored, &embedding) {
            (Some(stored), _) => stored?,
            (None, Some(embedding)) => embedding,
            (None, None) => return Err(misuse("the query has neither an item nor an embedding")),
        };
        let levels = asked.known.labels.map_or(0, Labels::levels);
        if labels.as_ref().is_some_and(|labels| labels.len() != levels) {
            return Err(misuse("the query has another number of labels than the gallery has levels"));
        }
        let own_labels = match (item, asked.known.labels, labels) {
            (Some(item), Some(labels), _) => Some(labels.select(&[item])),
            (_, _, Some(row)) => Some(Labels::new(levels, row).map_err(thrown)?),
            _ => None,
        };
        let query = Query {
            embedding,
            labels: own_labels.as_ref(),
            itself: item.filter(|&item| item < gallery.len()),
        };
        Ok(to_js(&Ranked::new(&asked, &query, k).map_err(thrown)?))
    }
}

impl Engine {
    fn bundle(&self) -> Result<&Bundle> {
        self.bundle.as_ref().ok_or_else(|| misuse("no bundle is open yet"))
    }

    fn bundle_mut(&mut self) -> Result<&mut Bundle> {
        self.bundle.as_mut().ok_or_else(|| misuse("no bundle is open yet"))
    }

    /// What an encoder's embeddings are ranked by.
    pub(crate) fn similarity(&self, encoder: usize) -> Result<Similarity> {
        Ok(self.bundle()?.manifest.encoder(encoder).map_err(thrown)?.report.config.similarity)
    }

    /// What the backbone computes of a picture.
    pub(crate) async fn outputs(&self, encoder: usize, picture: &Pixels) -> Result<Outputs> {
        let view = self.network(encoder)?.preprocessing().view(picture).map_err(thrown)?;
        self.outputs_of_views(encoder, &[view]).await
    }

    async fn outputs_of_views(&self, encoder: usize, views: &[Pixels]) -> Result<Outputs> {
        let foreign = &self.loaded(encoder)?.foreign;
        let encoder = self.network(encoder)?;
        match (foreign, &encoder.backbone) {
            (Some(engine), Backbone::Foreign(backbone)) => {
                let output = engine.run(encoder.preprocessing(), views).await?;
                backbone.outputs(output, views.len(), &self.device).map_err(thrown)
            }
            _ => encoder.outputs(encoder.batch(views, &self.device)).map_err(thrown),
        }
    }

    pub(crate) async fn embedding(&self, encoder: usize, outputs: Outputs) -> Result<Vec<f32>> {
        self.network(encoder)?.embed_outputs_async(outputs).await.map_err(thrown)
    }

    /// Whether an embedding is a sum over the cells of a picture.
    pub(crate) fn has_cells(&self, encoder: usize, outputs: &Outputs) -> Result<bool> {
        Ok(self.network(encoder)?.has_cells(outputs))
    }

    pub(crate) async fn cells(&self, encoder: usize, outputs: Outputs) -> Result<Cells> {
        self.network(encoder)?.cells_async(outputs).await.map_err(thrown)
    }

    /// The embeddings of a picture with each patch of a row covered.
    pub(crate) async fn occluded(&self, encoder: usize, picture: &Pixels, row: usize) -> Result<Vec<f32>> {
        let view = self.network(encoder)?.preprocessing().view(picture).map_err(thrown)?;
        let covered = Occlusion::new(view).row(row).map_err(thrown)?;
        self.embedding(encoder, self.outputs_of_views(encoder, &covered).await?).await
    }

    /// The part of a picture that an encoder sees, as shares of its sides.
    pub(crate) fn region(&self, encoder: usize, picture: &Pixels) -> Result<[f64; 4]> {
        Ok(self.network(encoder)?.preprocessing().region(picture))
    }

    /// The network of an encoder, which embeddings alone do not have.
    fn network(&self, encoder: usize) -> Result<&Encoder> {
        let network = self.loaded(encoder)?.encoder.as_ref();
        network
            .ok_or_else(|| misuse("the bundle has no weights of this encoder, so no picture can be embedded"))
    }

    fn loaded(&self, encoder: usize) -> Result<&LoadedEncoder> {
        let loaded = self.bundle()?.encoders.get(encoder).and_then(Option::as_ref);
        loaded.ok_or_else(|| misuse(&format!("encoder {encoder} is not loaded yet")))
    }
}

fn milliseconds_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
