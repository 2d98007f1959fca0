//! What embeds the pictures of a gallery: a run, a bundle, an ONNX file or a config, of which the gallery keeps a copy.

use std::path::Path;

use akin_base::directory::check_file;
use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_core::bundle::{MANIFEST, OnnxEntry};
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::models::{BackboneConfig, OnnxConfig};
use akin_core::similarity::Similarity;
use akin_gallery::EncoderNote;
use anyhow::Result;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::commands::known_gallery::Bundle;
use crate::commands::pretrained::{self, PretrainedArgs, is_config};
use crate::config::onnx::{WholeFile, attach_bundled};
use crate::config::{DeviceName, ModelConfig, device, onnx_model};
use crate::runs::run::{Run, Which, encoder_config};

/// What the encoder is made of.
const PARTS: &str = "encoder.json";
/// Its weights.
const WEIGHTS: &str = "weights.bpk";
/// The ONNX file that is its backbone.
const ONNX: &str = "model.onnx";

/// The contents of [`PARTS`].
#[derive(Serialize, Deserialize)]
struct Parts {
    config: EncoderConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    onnx: Option<OnnxEntry>,
}

/// An encoder with the files that a gallery keeps of it.
pub struct GalleryEncoder {
    /// Its name in messages.
    pub name: String,
    /// The encoder.
    pub encoder: Encoder,
    /// Where it computes.
    pub device: Device,
    /// What its embeddings are ranked by.
    pub similarity: Similarity,
    /// Its files, by their names in the gallery.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// Which encoder of a model computes, and where.
pub struct Choice<'a> {
    /// The encoder of a run.
    pub which: Which,
    /// The encoder of a bundle with several.
    pub name: Option<&'a str>,
    /// The device; that of the run if none is given.
    pub device: Option<DeviceName>,
    /// How a config or an ONNX file is read.
    pub pretrained: &'a PretrainedArgs,
    /// How to show progress.
    pub progress: Progress,
}

impl Choice<'_> {
    /// Refuses the options that this kind of model does not have.
    ///
    /// # Errors
    ///
    /// An option that is given and not among those of the model.
    pub fn refuse_all_but(&self, options: &[&str], model: &Path, kind: &str) -> Result<()> {
        let PretrainedArgs { sets, yes, onnx } = self.pretrained;
        let given = [
            ("--encoder", self.name.is_some(), "a bundle"),
            ("--which", self.which != Which::default(), "a run"),
            ("--set", !sets.set.is_empty(), "a config or an ONNX file"),
            ("--onnx", onnx.is_some(), "a config"),
            ("--yes", *yes, "a config"),
        ];
        match given.iter().find(|(option, is_given, _)| *is_given && !options.contains(option)) {
            Some((option, _, takes)) => Err(problem(
                format!("`{option}` is for {takes}, but {} is {kind}", model.display()),
                "remove it",
            )),
            None => Ok(()),
        }
    }
}

impl GalleryEncoder {
    /// The encoder of a run, a bundle, an ONNX file, or a config, whose backbone has its published weights then.
    ///
    /// # Errors
    ///
    /// A path that is none of these; options of another kind of model; files that cannot be read.
    pub fn open(model: &Path, choice: &Choice) -> Result<Self> {
        let is_onnx = model.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"));
        if model.join(MANIFEST).is_file() {
            choice.refuse_all_but(&["--encoder"], model, "a bundle")?;
            return Self::of_bundle(&Bundle::open(model)?, choice);
        }
        if is_onnx {
            choice.refuse_all_but(&["--set"], model, "an ONNX file")?;
            return Self::of_model(&onnx_model(model, &choice.pretrained.sets.set)?, model, choice);
        }
        if !model.is_dir() && is_config(model) {
            choice.refuse_all_but(&["--set", "--onnx", "--yes"], model, "a config")?;
            let config = choice.pretrained.read(model)?;
            pretrained::provide(&config, choice.pretrained.yes, false, choice.progress)?;
            return Self::of_model(&config.model, model, choice);
        }
        let run = Run::open(model)?;
        choice.refuse_all_but(&["--which"], model, "a run")?;
        Self::of_run(&run, choice)
    }

    fn of_run(run: &Run, choice: &Choice) -> Result<Self> {
        let device = device::open(choice.device.unwrap_or(run.config.run.device))?;
        let encoder = run.encoder(choice.which, &device)?;
        let (config, whole) = (encoder_config(&run.config), WholeFile::of(&run.config.model, ONNX)?);
        let similarity = run.config.eval.similarity;
        Self::new(run.config.run.name.clone(), encoder, device, similarity, config, whole)
    }

    fn of_model(model: &ModelConfig, path: &Path, choice: &Choice) -> Result<Self> {
        let device = device::open(choice.device.unwrap_or_default())?;
        let encoder = pretrained::encoder(model, &device, choice.progress)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let whole = WholeFile::of(model, ONNX)?;
        Self::new(name, encoder, device, Similarity::Cosine, model.bare_encoder(), whole)
    }

    fn of_bundle(bundle: &Bundle, choice: &Choice) -> Result<Self> {
        let entry = bundle
            .manifest
            .encoder(crate::commands::known_gallery::encoder_number(&bundle.manifest, choice.name)?)?;
        let config = EncoderConfig::of_bundle(entry)?;
        let device = device::open(choice.device.unwrap_or_default())?;
        let mut encoder = config.load(bundle.file(entry.weights.as_deref().unwrap_or_default())?, &device)?;
        let mut whole = None;
        if let (Some(onnx), BackboneConfig::Onnx(backbone)) = (&entry.onnx, &config.backbone) {
            let bytes = bundle.file(&onnx.file)?;
            encoder = attach_bundled(encoder, onnx, backbone, bytes.clone())?;
            whole = Some(WholeFile { entry: onnx.clone(), bytes, backbone: backbone.clone() });
        }
        Self::new(entry.name.clone(), encoder, device, entry.report.config.similarity, config, whole)
    }

    fn new(
        name: String,
        encoder: Encoder,
        device: Device,
        similarity: Similarity,
        mut config: EncoderConfig,
        whole: Option<WholeFile>,
    ) -> Result<Self> {
        let mut files = Vec::new();
        let mut onnx = None;
        if let Some(whole) = whole {
            config.backbone = BackboneConfig::Onnx(whole.backbone);
            onnx = Some(whole.entry);
            files.push((ONNX, whole.bytes));
        }
        files.push((WEIGHTS, encoder.to_bytes()?));
        files.push((PARTS, serde_json::to_vec_pretty(&Parts { config, onnx })?));
        Ok(Self { name, encoder, device, similarity, files })
    }

    /// What the gallery notes of it. The digest and the files are noted when they are written.
    pub fn note(&self) -> EncoderNote {
        EncoderNote { name: self.name.clone(), digest: String::new(), files: Vec::new() }
    }
}

/// The encoder of a gallery, from the files that it keeps.
///
/// # Errors
///
/// A file that is missing or damaged; an akin without the engine for ONNX files.
pub fn of_gallery(folder: &Path, note: &EncoderNote, device: &Device) -> Result<Encoder> {
    let (config, onnx) = parts(folder, note)?;
    let encoder = config.load(file(folder, note, WEIGHTS)?, device)?;
    match (&onnx, &config.backbone) {
        (Some(onnx), BackboneConfig::Onnx(backbone)) => {
            attach_bundled(encoder, onnx, backbone, file(folder, note, ONNX)?)
        }
        _ => Ok(encoder),
    }
}

/// What the encoder of a gallery is made of.
///
/// # Errors
///
/// As [`of_gallery`].
pub fn parts(folder: &Path, note: &EncoderNote) -> Result<(EncoderConfig, Option<OnnxEntry>)> {
    let Parts { config, onnx } = serde_json::from_slice(&file(folder, note, PARTS)?).map_err(|error| {
        problem(
            format!("this akin does not know the encoder of {}: {error}", folder.display()),
            "use the akin that indexed the gallery, or `akin index GALLERY --reembed MODEL`",
        )
    })?;
    Ok((config, onnx))
}

/// The ONNX file that is the backbone of a gallery's encoder, which is to be called `path`.
///
/// # Errors
///
/// As [`of_gallery`]; an encoder without such a file.
pub fn whole_file(folder: &Path, note: &EncoderNote, path: &str) -> Result<WholeFile> {
    match parts(folder, note)? {
        (EncoderConfig { backbone: BackboneConfig::Onnx(backbone), .. }, Some(entry)) => Ok(WholeFile {
            entry: OnnxEntry { file: path.to_owned(), ..entry },
            bytes: file(folder, note, ONNX)?,
            backbone: OnnxConfig { path: path.to_owned(), ..backbone },
        }),
        _ => Err(problem(
            format!("the encoder of {} has no ONNX file", folder.display()),
            "let `akin index GALLERY --reembed MODEL` make it again",
        )),
    }
}

/// A file of the encoder of a gallery, checked; empty if there is none of this name.
fn file(folder: &Path, note: &EncoderNote, name: &str) -> Result<Vec<u8>> {
    let Some(entry) = note.files.iter().find(|file| file.path.ends_with(name)) else { return Ok(Vec::new()) };
    check_file(folder, entry).map_err(|flaw| {
        problem(
            format!("{} is damaged: {}", folder.join(&entry.path).display(), flaw.why()),
            "restore the gallery from a copy, or let `akin index GALLERY --reembed MODEL` make it again",
        )
    })
}
