//! The engine: a device, a bundle, its encoders.

use akin_core::bundle::Manifest;
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::{decode, self_test_pattern};
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use burn::tensor::Device;
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_time::Instant;

use crate::failure::{Result, device, misuse, thrown, to_js};
use crate::ranked::{Query, Ranked};

/// The cosine to the known embedding above which a back end is trusted.
const TRUSTED: f32 = 0.999;

/// See the crate's page.
#[wasm_bindgen]
pub struct Engine {
    device: Device,
    bundle: Option<Bundle>,
}

struct Bundle {
    manifest: Manifest,
    labels: Option<Labels>,
    encoders: Vec<Option<Loaded>>,
}

/// An encoder with what it made of the items.
struct Loaded {
    encoder: Encoder,
    embeddings: Embeddings,
    queries: Option<Embeddings>,
    gallery: Gallery,
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
    /// No adapter, or a back end of another name.
    pub async fn create(backend: String) -> Result<Engine> {
        let device = match backend.as_str() {
            "webgpu" => Device::wgpu_options()
                .init_async()
                .await
                .map_err(|error| device(format!("WebGPU did not start: {error}")))?,
            "cpu" => Device::flex(),
            other => return Err(misuse(&format!("there is no back end {other:?}, only webgpu and cpu"))),
        };
        Ok(Engine { device, bundle: None })
    }

    /// Checks `bundle.json` and returns it.
    ///
    /// # Errors
    ///
    /// A manifest that is damaged, of a newer version, or not one.
    pub fn open(&mut self, bundle_json: &[u8]) -> Result<JsValue> {
        let manifest = Manifest::parse(bundle_json).map_err(thrown)?;
        let contents = to_js(manifest.contents());
        let encoders = manifest.encoders.iter().map(|_| None).collect();
        self.bundle = Some(Bundle { manifest, labels: None, encoders });
        Ok(contents)
    }

    /// Takes the labels of all items.
    ///
    /// # Errors
    ///
    /// Bytes that are not the ones that the manifest names.
    pub fn load_labels(&mut self, bytes: &[u8]) -> Result<()> {
        let bundle = self.bundle_mut()?;
        bundle.labels = Some(bundle.manifest.labels(bytes).map_err(thrown)?);
        Ok(())
    }

    /// Takes an encoder with its embeddings of the items, and lets it embed a known pattern, which
    /// also prepares the device for the first image.
    ///
    /// # Errors
    ///
    /// Bytes that are not the ones that the manifest names, weights that do not fit, a device that
    /// fails. A device that computes something else is told by `passed: false`.
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
        let config: EncoderConfig = serde_json::from_value(entry.architecture.clone()).map_err(|error| {
            thrown(akin_core::Error::new(
                akin_core::Kind::Bundle,
                format!("the architecture of {} is not one that this page knows: {error}", entry.name),
                "reload the page, so that it is the newest, or export the bundle with this version of akin",
            ))
        })?;
        let embeddings = manifest.gallery_embeddings(index, &gallery).map_err(thrown)?;
        let queries =
            queries.map(|bytes| manifest.query_embeddings(index, &bytes)).transpose().map_err(thrown)?;
        let ready = Gallery::new(&embeddings, entry.report.config.similarity).map_err(thrown)?;
        let encoder = config.load(weights, &device).map_err(thrown)?;

        let started = Instant::now();
        let pattern = self_test_pattern(encoder.preprocessing().side()).map_err(thrown)?;
        let embedding = encoder.embed_async(&[pattern], &device).await.map_err(thrown)?;
        let cosine = cosine(&embedding, &entry.self_test);
        bundle.encoders[index] = Some(Loaded { encoder, embeddings, queries, gallery: ready });
        Ok(to_js(&SelfTest { cosine, ms: milliseconds(started), passed: cosine >= TRUSTED }))
    }

    /// Checks any other file of the bundle.
    ///
    /// # Errors
    ///
    /// A file that the manifest does not name, or other bytes than it names.
    pub fn verify(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.bundle()?.manifest.verify(path, bytes).map_err(thrown)
    }

    /// The embedding of an image: `{ embedding, decode_ms, embed_ms }`.
    ///
    /// # Errors
    ///
    /// An image that cannot be read, an encoder that is not loaded, a device that fails.
    pub async fn embed(&self, encoder: usize, image: Vec<u8>) -> Result<JsValue> {
        let encoder = &self.loaded(encoder)?.encoder;
        let started = Instant::now();
        let picture = decode(&image).map_err(thrown)?;
        let decode_ms = milliseconds(started);
        let started = Instant::now();
        let embedding = encoder.embed_async(&[picture], &self.device).await.map_err(thrown)?;
        let result = js_sys::Object::new();
        let set = |name: &str, value: &JsValue| js_sys::Reflect::set(&result, &name.into(), value);
        set("embedding", &js_sys::Float32Array::from(&embedding[..]))?;
        set("decode_ms", &decode_ms.into())?;
        set("embed_ms", &milliseconds(started).into())?;
        Ok(result.into())
    }

    /// The embedding of an item of the bundle: gallery first, then stored queries.
    ///
    /// # Errors
    ///
    /// An item that is not there, an encoder that is not loaded.
    pub fn stored(&self, encoder: usize, item: usize) -> Result<Vec<f32>> {
        let loaded = self.loaded(encoder)?;
        let gallery = loaded.embeddings.len();
        let row = match &loaded.queries {
            _ if item < gallery => loaded.embeddings.row(item),
            Some(queries) if item - gallery < queries.len() => queries.row(item - gallery),
            _ => return Err(misuse(&format!("the bundle has no item {item}"))),
        };
        Ok(row.to_vec())
    }

    /// Ranks the gallery by an embedding: the `k` nearest items, and the scores of the whole ranking
    /// where the query's labels are known. They are those of `item`, if the query is one of the
    /// bundle's, or else `labels`, one class a level, coarse → fine.
    ///
    /// # Errors
    ///
    /// An embedding or labels that do not fit the bundle, an encoder that is not loaded.
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
        let all = bundle.labels.as_ref().ok_or_else(|| misuse("the labels are not loaded yet"))?;
        if item.is_some_and(|item| item >= all.len())
            || labels.as_ref().is_some_and(|own| own.len() != all.levels())
        {
            return Err(misuse("the query's item or labels are not ones of this bundle"));
        }
        let query = Query {
            embedding,
            labels: item.map(|item| all.row(item)).or(labels.as_deref()),
            itself: item.filter(|&item| item < loaded.embeddings.len()),
        };
        let mut ranked = Ranked::new(&bundle.manifest, &loaded.gallery, all, &query, k).map_err(thrown)?;
        ranked.search_ms = milliseconds(started);
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

    fn loaded(&self, encoder: usize) -> Result<&Loaded> {
        let loaded = self.bundle()?.encoders.get(encoder).and_then(Option::as_ref);
        loaded.ok_or_else(|| misuse(&format!("the encoder {encoder} is not loaded yet")))
    }
}

/// The cosine of two embeddings; 0 when they cannot be compared, as after a failed computation.
fn cosine(computed: &[f32], known: &[f32]) -> f32 {
    let compare = || -> akin_core::Result<f32> {
        let known = Embeddings::new(known.len(), known.to_vec())?;
        Ok(Gallery::new(&known, Similarity::Cosine)?.scores(computed)?[0])
    };
    compare().unwrap_or(0.0)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
