//! The engine: a device, a bundle and its encoders.

use akin_bridge::{Result, misuse, thrown, to_js};
use akin_core::bundle::Manifest;
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::{decode, self_test_pattern};
use akin_core::models::{BackboneConfig, HeadConfig};
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;
use web_time::Instant;

use crate::ranked::{Query, Ranked};

/// The lowest cosine to the stored embedding at which the self-test passes.
const LOWEST_COSINE: f32 = 0.999;

/// The engine, as the crate's page describes it.
#[wasm_bindgen]
pub struct Engine {
    device: Device,
    bundle: Option<Bundle>,
}

struct Bundle {
    manifest: Manifest,
    labels: Option<Labels>,
    encoders: Vec<Option<LoadedEncoder>>,
}

/// An encoder with its embeddings of the items.
struct LoadedEncoder {
    encoder: Encoder,
    embeddings: Embeddings,
    queries: Option<Embeddings>,
    gallery: Gallery,
}

/// The field `architecture` of an encoder in a bundle.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Architecture {
    backbone: BackboneConfig,
    #[serde(default)]
    head: Option<HeadConfig>,
}

#[derive(Serialize)]
struct SelfTest {
    cosine: f32,
    ms: f64,
    passed: bool,
}

#[wasm_bindgen]
impl Engine {
    /// An engine on `"webgpu"` or `"cpu"`.
    ///
    /// # Errors
    ///
    /// WebGPU does not start, or the back end has another name.
    pub async fn create(backend: String) -> Result<Engine> {
        let device = match backend.as_str() {
            "webgpu" => Device::wgpu_options()
                .init_async()
                .await
                .map_err(|error| no_webgpu(format!("WebGPU did not start: {error}")))?,
            "cpu" => Device::flex(),
            other => {
                return Err(misuse(&format!("unknown back end {other:?}; there are \"webgpu\" and \"cpu\"")));
            }
        };
        Ok(Engine { device, bundle: None })
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

    /// Loads an encoder with its embeddings of the items, and embeds the self-test pattern, which also
    /// prepares the device for the first image. Returns `{ cosine, ms, passed }`; `passed` is false
    /// when the device computes another embedding than the bundle stores.
    ///
    /// # Errors
    ///
    /// The bytes are not those of the manifest, the weights do not fit the architecture, or the device
    /// fails.
    pub async fn load_encoder(
        &mut self,
        index: usize,
        weights: Vec<u8>,
        gallery: Vec<u8>,
        queries: Option<Vec<u8>>,
    ) -> Result<JsValue> {
        let device = self.device.clone();
        let bundle = self.bundle_mut()?;
        let manifest = &bundle.manifest;
        let entry = manifest.encoder(index).map_err(thrown)?;
        manifest.verify(&entry.weights, &weights).map_err(thrown)?;
        let Architecture { backbone, head } =
            Architecture::deserialize(&entry.architecture).map_err(|error| {
                thrown(akin_core::Error::new(
                    akin_core::Kind::Bundle,
                    format!("this page does not know the architecture of encoder {:?}: {error}", entry.name),
                    "reload the page to get its newest version, or export the bundle again with this version of akin",
                ))
            })?;
        let config = EncoderConfig { backbone, head, preprocessing: entry.preprocessing.clone() };
        let embeddings = manifest.gallery_embeddings(index, &gallery).map_err(thrown)?;
        let queries =
            queries.map(|bytes| manifest.query_embeddings(index, &bytes)).transpose().map_err(thrown)?;
        let searchable = Gallery::new(&embeddings, entry.report.config.similarity).map_err(thrown)?;
        let encoder = config.load(weights, &device).map_err(thrown)?;

        let started = Instant::now();
        let pattern = self_test_pattern(encoder.preprocessing().side()).map_err(thrown)?;
        let embedding = encoder.embed_async(&[pattern], &device).await.map_err(thrown)?;
        let cosine = cosine(&embedding, &entry.self_test);
        bundle.encoders[index] = Some(LoadedEncoder { encoder, embeddings, queries, gallery: searchable });
        Ok(to_js(&SelfTest { cosine, ms: milliseconds_since(started), passed: cosine >= LOWEST_COSINE }))
    }

    /// Checks the bytes of any file of the bundle.
    ///
    /// # Errors
    ///
    /// The manifest does not list the file, or lists other bytes.
    pub fn verify(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.bundle()?.manifest.verify(path, bytes).map_err(thrown)
    }

    /// The embedding of an image: `{ embedding, decode_ms, embed_ms }`.
    ///
    /// # Errors
    ///
    /// The image cannot be read, the encoder is not loaded, or the device fails.
    pub async fn embed(&self, encoder: usize, image: Vec<u8>) -> Result<JsValue> {
        let encoder = &self.loaded(encoder)?.encoder;
        let started = Instant::now();
        let picture = decode(&image).map_err(thrown)?;
        let decode_ms = milliseconds_since(started);
        let started = Instant::now();
        let embedding = encoder.embed_async(&[picture], &self.device).await.map_err(thrown)?;
        let result = js_sys::Object::new();
        let set = |name: &str, value: &JsValue| js_sys::Reflect::set(&result, &name.into(), value);
        set("embedding", &js_sys::Float32Array::from(&embedding[..]))?;
        set("decode_ms", &decode_ms.into())?;
        set("embed_ms", &milliseconds_since(started).into())?;
        Ok(result.into())
    }

    /// The stored embedding of an item. Items count from 0: gallery first, then stored queries.
    ///
    /// # Errors
    ///
    /// The bundle has no such item, or the encoder is not loaded.
    pub fn item_embedding(&self, encoder: usize, item: usize) -> Result<Vec<f32>> {
        let loaded = self.loaded(encoder)?;
        let gallery = loaded.embeddings.len();
        let row = match &loaded.queries {
            _ if item < gallery => loaded.embeddings.row(item),
            Some(queries) if item - gallery < queries.len() => queries.row(item - gallery),
            _ => return Err(misuse(&format!("the bundle has no item {item}"))),
        };
        Ok(row.to_vec())
    }

    /// Ranks the gallery by its similarity to an embedding. Returns the `k` best items and, where the
    /// query's labels are known, the metrics of the whole ranking; otherwise the votes of the `k` items.
    ///
    /// Give `item` when the query is an item of the bundle: its labels are then known, and it does not
    /// rank itself. Give `labels` (one class per level, coarse to fine) when the labels of another
    /// query are known.
    ///
    /// # Errors
    ///
    /// The embedding or the labels do not fit the bundle, or the encoder is not loaded.
    pub fn rank(
        &self,
        encoder: usize,
        embedding: &[f32],
        k: usize,
        item: Option<usize>,
        labels: Option<Vec<u32>>,
    ) -> Result<JsValue> {
        let started = Instant::now();
        let bundle = self.bundle()?;
        let loaded = self.loaded(encoder)?;
        let item_labels = bundle.labels.as_ref().ok_or_else(|| misuse("the labels are not loaded yet"))?;
        if item.is_some_and(|item| item >= item_labels.len())
            || labels.as_ref().is_some_and(|own| own.len() != item_labels.levels())
        {
            return Err(misuse("the query's item or labels do not exist in this bundle"));
        }
        let query = Query {
            embedding,
            labels: item.map(|item| item_labels.row(item)).or(labels.as_deref()),
            itself: item.filter(|&item| item < loaded.embeddings.len()),
        };
        let mut ranked =
            Ranked::new(&bundle.manifest, &loaded.gallery, item_labels, &query, k).map_err(thrown)?;
        ranked.search_ms = milliseconds_since(started);
        Ok(to_js(&ranked))
    }
}

impl Engine {
    fn bundle(&self) -> Result<&Bundle> {
        self.bundle.as_ref().ok_or_else(|| misuse("no bundle is open yet"))
    }

    fn bundle_mut(&mut self) -> Result<&mut Bundle> {
        self.bundle.as_mut().ok_or_else(|| misuse("no bundle is open yet"))
    }

    fn loaded(&self, encoder: usize) -> Result<&LoadedEncoder> {
        let loaded = self.bundle()?.encoders.get(encoder).and_then(Option::as_ref);
        loaded.ok_or_else(|| misuse(&format!("encoder {encoder} is not loaded yet")))
    }
}

/// A failure of WebGPU.
fn no_webgpu(message: String) -> JsValue {
    thrown(akin_core::Error::new(akin_core::Kind::Device, message, "compute on the CPU instead"))
}

/// The cosine of two embeddings; 0 when it is undefined, as after a failed computation.
fn cosine(computed: &[f32], stored: &[f32]) -> f32 {
    let checked_cosine = || -> akin_core::Result<f32> {
        let stored = Embeddings::new(stored.len(), stored.to_vec())?;
        Ok(Gallery::new(&stored, Similarity::Cosine)?.scores(computed)?[0])
    };
    checked_cosine().unwrap_or(0.0)
}

fn milliseconds_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
