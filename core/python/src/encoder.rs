//! The encoder of a run, a bundle or a gallery, on the CPU: pictures → embeddings, as the trainer and the page compute them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use akin_core::bundle::{FileEntry, MANIFEST, Manifest};
use akin_core::digest::sha256;
use akin_core::encoder::{self, EncoderConfig};
use akin_core::image::{Pixels, decode};
use akin_core::models::BackboneConfig;
use akin_core::{Error, Kind, Result};
use burn::tensor::Device;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;

use crate::errors::OrRaise;

/// What the manifest of a gallery says of its encoder.
#[derive(Deserialize)]
struct GalleryManifest {
    encoder: Note,
}

#[derive(Deserialize)]
struct Note {
    name: String,
    files: Vec<FileEntry>,
}

/// What a gallery's encoder is made of.
#[derive(Deserialize)]
struct Parts {
    config: EncoderConfig,
}

/// What a run says of its encoder.
#[derive(Deserialize)]
struct RunNote {
    encoder: EncoderConfig,
    encoder_sha256: String,
}

/// A picture.
#[derive(FromPyObject)]
enum Picture<'py> {
    /// The bytes of a file.
    File(Vec<u8>),
    /// [H, W, 3], RGB.
    Array(PyReadonlyArray3<'py, u8>),
}

/// An encoder on the CPU.
#[pyclass(frozen, module = "akin._akin")]
pub(crate) struct Encoder {
    #[pyo3(get)]
    name: String,
    /// d, the dimension of an embedding.
    #[pyo3(get)]
    dimension: usize,
    /// The side of the square of pixels that the network reads.
    #[pyo3(get)]
    side: u32,
    encoder: Mutex<encoder::Encoder>,
}

#[pymethods]
impl Encoder {
    /// The encoder of a run, a bundle or a gallery: of several, the one of this name, or the first.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, name: Option<&str>) -> PyResult<Self> {
        py.detach(|| load(&folder, name)).or_raise(py)
    }

    /// The embeddings of a batch of pictures, [N, d].
    fn embed<'py>(
        &self,
        py: Python<'py>,
        pictures: Vec<Picture<'py>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        // Arrays are copied, so that decoding needs nothing of the interpreter.
        let raw: Vec<Raw> = pictures.iter().map(Raw::new).collect::<Result<_>>().or_raise(py)?;
        let count = raw.len();
        let values = py.detach(|| self.values(raw)).or_raise(py)?;
        PyArray1::from_vec(py, values).reshape([count, self.dimension])
    }
}

/// A picture without the interpreter.
enum Raw {
    File(Vec<u8>),
    Pixels(Pixels),
}

impl Raw {
    fn new(picture: &Picture<'_>) -> Result<Self> {
        match picture {
            Picture::File(bytes) => Ok(Self::File(bytes.clone())),
            Picture::Array(array) => {
                let [height, width, channels] = [0, 1, 2].map(|axis| array.shape()[axis]);
                let sides = u32::try_from(width).ok().zip(u32::try_from(height).ok());
                let (Some((width, height)), 3) = (sides, channels) else {
                    return Err(Error::new(
                        Kind::Image,
                        format!("an array has the shape [{height}, {width}, {channels}]"),
                        "give RGB pictures [H, W, 3] of type uint8",
                    ));
                };
                Ok(Self::Pixels(Pixels::new(width, height, array.as_array().iter().copied().collect())?))
            }
        }
    }
}

impl Encoder {
    fn values(&self, pictures: Vec<Raw>) -> Result<Vec<f32>> {
        if pictures.is_empty() {
            return Ok(Vec::new());
        }
        // A thread that panicked did not change it.
        let encoder = self.encoder.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let preprocessing = encoder.preprocessing();
        let views = pictures.into_par_iter().enumerate().map(|(place, picture)| {
            let view = match picture {
                Raw::File(bytes) => decode(&bytes).and_then(|pixels| preprocessing.view(&pixels)),
                Raw::Pixels(pixels) => preprocessing.view(&pixels),
            };
            view.map_err(|error| {
                Error::new(error.kind(), format!("picture {place}: {}", error.message()), error.hint())
            })
        });
        let views = views.collect::<Result<Vec<Pixels>>>()?;
        let rows = encoder.forward(encoder.batch(&views, &Device::flex()))?;
        let failed = |error: String| Error::new(Kind::Device, error, "try again with fewer pictures");
        let data = rows.try_into_data().map_err(|error| failed(error.to_string()))?;
        data.try_to_vec().map_err(|error| failed(format!("{error:?}")))
    }
}

fn load(folder: &Path, name: Option<&str>) -> Result<Encoder> {
    let manifest = |file: &str| fs::read(folder.join(file)).ok();
    let (name, config, weights) = if let Some(bytes) = manifest(MANIFEST) {
        bundle_parts(folder, &bytes, name)?
    } else if let Some(bytes) = manifest("gallery.json") {
        gallery_parts(folder, &bytes)?
    } else if let Some(bytes) = manifest("run.json") {
        run_parts(folder, &bytes)?
    } else {
        return Err(Error::new(
            Kind::Bundle,
            format!("{} is neither a run nor a bundle nor a gallery", folder.display()),
            "give a folder that `akin train`, `akin export` or `akin index` has written",
        ));
    };
    if matches!(config.backbone, BackboneConfig::Onnx(_)) {
        return Err(Error::new(
            Kind::Config,
            format!("the network of {name} is an ONNX file"),
            "embed with `akin embed`, or with onnxruntime",
        ));
    }
    let encoder = config.load(weights, &Device::flex())?;
    let side = encoder.preprocessing().side();
    Ok(Encoder { name, dimension: encoder.dimension(), side, encoder: Mutex::new(encoder) })
}

fn bundle_parts(
    folder: &Path,
    manifest: &[u8],
    name: Option<&str>,
) -> Result<(String, EncoderConfig, Vec<u8>)> {
    let manifest = Manifest::parse(manifest)?;
    let names: Vec<&str> = manifest.encoders.iter().map(|entry| entry.name.as_str()).collect();
    let number = match name {
        None => 0,
        Some(name) => names.iter().position(|other| *other == name).ok_or_else(|| {
            let hint = format!("its encoders are {}", names.join(", "));
            Error::new(Kind::Config, format!("{} has no encoder {name}", folder.display()), hint)
        })?,
    };
    let entry = manifest.encoder(number)?;
    let config = EncoderConfig::of_bundle(entry)?;
    let path = entry.weights.as_deref().unwrap_or_default();
    let weights = read(&folder.join(path))?;
    manifest.verify(path, &weights)?;
    Ok((entry.name.clone(), config, weights))
}

fn gallery_parts(folder: &Path, manifest: &[u8]) -> Result<(String, EncoderConfig, Vec<u8>)> {
    let unknown = |error| unknown(folder, &error);
    let Note { name, files } = serde_json::from_slice::<GalleryManifest>(manifest).map_err(unknown)?.encoder;
    let file = |ending: &str| -> Result<Vec<u8>> {
        let entry = files.iter().find(|file| file.path.ends_with(ending)).ok_or_else(|| {
            Error::new(Kind::Bundle, format!("{} names no {ending}", folder.display()), "index it again")
        })?;
        read_whole(&folder.join(&entry.path), &entry.sha256, "index it again")
    };
    let Parts { config } = serde_json::from_slice(&file("encoder.json")?).map_err(unknown)?;
    Ok((name, config, file("weights.bpk")?))
}

/// Reads the encoder that a run has after its last step. It is named after the folder.
fn run_parts(folder: &Path, manifest: &[u8]) -> Result<(String, EncoderConfig, Vec<u8>)> {
    let note: RunNote = serde_json::from_slice(manifest).map_err(|error| unknown(folder, &error))?;
    let weights = read_whole(&folder.join("encoder.bpk"), &note.encoder_sha256, "train again")?;
    let name = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, note.encoder, weights))
}

fn unknown(folder: &Path, error: &serde_json::Error) -> Error {
    Error::new(
        Kind::Bundle,
        format!("{} has an encoder that this akin does not know: {error}", folder.display()),
        "update akin",
    )
}

/// The bytes of a file that has this SHA-256. `remedy` is what helps beside a copy if it has another one.
fn read_whole(path: &Path, expected: &str, remedy: &str) -> Result<Vec<u8>> {
    let bytes = read(path)?;
    if sha256(&bytes) == expected {
        return Ok(bytes);
    }
    let damaged = format!("{} is damaged", path.display());
    Err(Error::new(Kind::Bundle, damaged, format!("restore it from a copy, or {remedy}")))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| {
        Error::new(Kind::Bundle, format!("{} cannot be read: {error}", path.display()), "check the path")
    })
}
