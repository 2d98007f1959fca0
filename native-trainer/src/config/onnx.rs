//! `model.backbone = { kind = "onnx" }`: what a config leaves to the file is read from the file.
//!
//! The config of a run has all of it: the file's absolute path and SHA-256, the output, the number of features and of prefix
//! tokens, and the preprocessing. So a run can be read without the file, and refuses another file.

use std::sync::Arc;

use akin_core::bundle::OnnxEntry;
use akin_core::encoder::Encoder;
use akin_core::image::Preprocessing;
use akin_core::models::{BackboneConfig, OnnxConfig};
use anyhow::Result;
use toml::{Table, Value};

use super::ModelConfig;

/// Completes the backbone of a config, and gives the preprocessing that stands beside its file; none for a backbone that
/// is complete, or is no ONNX file.
///
/// # Errors
///
/// A file that cannot be used; an akin without the engine.
pub(super) fn complete(model: &mut Table, backbone: &mut BackboneConfig) -> Result<Option<Preprocessing>> {
    let BackboneConfig::Onnx(onnx) = backbone else { return Ok(None) };
    if onnx.features.is_some() && onnx.sha256.is_some() && model.contains_key("preprocessing") {
        return Ok(None);
    }
    let preprocessing = engine::complete(onnx, model)?;
    model.insert("backbone".into(), Value::try_from(&*backbone)?);
    Ok(Some(preprocessing))
}

/// The encoder with the engine for its ONNX file. An encoder with a backbone of akin's own stays as it is.
///
/// # Errors
///
/// A file that cannot be used, or is another than the config's; an akin without the engine.
pub fn attach(encoder: Encoder, model: &ModelConfig) -> Result<Encoder> {
    match &model.backbone {
        BackboneConfig::Onnx(onnx) => {
            let network = engine::network(onnx, Some(model.preprocessing.side()), model.pooling.is_some())?;
            Ok(encoder.attach(Arc::new(engine::Engine(network))))
        }
        _ => Ok(encoder),
    }
}

/// The encoder of a bundle with the engine for its ONNX file, whose bytes these are.
///
/// # Errors
///
/// Bytes that cannot be used; an akin without the engine.
pub fn attach_bundled(
    encoder: Encoder,
    entry: &OnnxEntry,
    onnx: &OnnxConfig,
    bytes: Vec<u8>,
) -> Result<Encoder> {
    let side = encoder.preprocessing().side();
    Ok(encoder.attach(Arc::new(engine::bundled(entry, onnx, bytes, side)?)))
}

#[cfg(feature = "onnx")]
pub use engine::network;

/// The ONNX file of a model in one piece, with what a reader needs to run it.
pub struct WholeFile {
    /// How it is called.
    pub entry: OnnxEntry,
    /// Its bytes, with all weights.
    pub bytes: Vec<u8>,
    /// What core needs of it.
    pub backbone: OnnxConfig,
}

impl WholeFile {
    /// The file of a model, which is to be called `path`; none for a model with a backbone of akin's own.
    ///
    /// # Errors
    ///
    /// A file that cannot be used, or has changed; one with an input of 64 bits.
    pub fn of(model: &ModelConfig, path: &str) -> Result<Option<Self>> {
        engine::whole(model, path)
    }

    /// The file with its weights in 8 bits.
    ///
    /// # Errors
    ///
    /// A file of an operator set that has no such scales.
    pub fn in_int8(self) -> Result<Self> {
        let bytes = engine::in_int8(&self.entry.file, self.bytes)?;
        let backbone = OnnxConfig { sha256: Some(akin_core::digest::sha256(&bytes)), ..self.backbone };
        Ok(Self { bytes, backbone, ..self })
    }
}

#[cfg(feature = "onnx")]
mod engine {
    use std::collections::HashSet;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, PoisonError};

    use akin_base::problem::{parts, problem};
    use akin_base::terminal;
    use akin_core::bundle::{InputType, Layout as Axes, OnnxEntry};
    use akin_core::digest::sha256;
    use akin_core::image::{Preprocessing, PreprocessingConfig};
    use akin_core::models::{ForeignNetwork, ForeignOutput, OnnxConfig};
    use akin_core::{Error, Kind};
    use akin_onnx::{Choice, Element, Form, Layout, Network, OnnxFile, preprocessing};
    use anyhow::Result;
    use toml::Table;

    use super::WholeFile;
    use crate::config::ModelConfig;

    /// A network that core calls.
    #[derive(Clone)]
    pub struct Engine(pub Arc<Network>);

    impl std::fmt::Debug for Engine {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("Engine").field(&self.0.path()).finish()
        }
    }

    impl ForeignNetwork for Engine {
        fn run(&self, images: &[f32], [batch, _, side, _]: [usize; 4]) -> akin_core::Result<ForeignOutput> {
            let output = self.0.run(images, batch, side).map_err(|error| {
                let (message, hint) = parts(&error);
                Error::new(Kind::Device, message, hint.unwrap_or_default())
            })?;
            Ok(ForeignOutput { shape: output.shape, values: output.values })
        }
    }

    /// A network with what it was opened by.
    type Opened = (PathBuf, Choice, Option<u32>, Arc<Network>);

    /// The networks that this process has opened: a config is read more than once, and one file may be in several runs.
    static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());
    /// The files whose preprocessing was said.
    static SAID: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

    /// The network of a config, whose pictures have this side.
    ///
    /// # Errors
    ///
    /// A file that cannot be used, or has another SHA-256 than the config.
    pub fn network(onnx: &OnnxConfig, side: Option<u32>, pooled: bool) -> Result<Arc<Network>> {
        let path = Path::new(&onnx.path);
        let choice = Choice { output: onnx.output.clone(), prefix_tokens: onnx.prefix_tokens, pooled };
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |entry: &&Opened| (entry.0.as_path(), &entry.1, entry.2) == (path, &choice, side);
        if let Some((.., network)) = opened.iter().find(same) {
            check_sha256(onnx, network.sha256())?;
            return Ok(network.clone());
        }
        let file = OnnxFile::read(path)?;
        check_sha256(onnx, &file.sha256)?;
        let network = Arc::new(Network::open(file, &choice, side)?);
        opened.push((path.to_owned(), choice, side, network.clone()));
        Ok(network)
    }

    /// The file of a model in one piece.
    pub(super) fn whole(model: &ModelConfig, path: &str) -> Result<Option<WholeFile>> {
        let Some(onnx) = model.onnx() else { return Ok(None) };
        let network = network(onnx, Some(model.preprocessing.side()), model.pooling.is_some())?;
        let input = network.input();
        let element_type = match input.element {
            Element::Float => InputType::F32,
            Element::Half => InputType::F16,
            Element::Byte => InputType::U8,
            Element::Double => {
                return Err(problem(
                    format!("{} takes numbers of 64 bits, which a bundle does not say", onnx.path),
                    "export it with an input of 32 bits",
                ));
            }
        };
        let file = OnnxFile::read(network.path())?;
        if file.sha256 != network.sha256() {
            return Err(problem(format!("{} has changed meanwhile", onnx.path), "try again"));
        }
        let bytes = file.whole()?;
        let backbone = OnnxConfig {
            path: path.to_owned(),
            output: None,
            sha256: Some(sha256(&bytes)),
            licence: None,
            ..onnx.clone()
        };
        let entry = OnnxEntry {
            file: path.to_owned(),
            input: input.name.clone(),
            layout: match input.layout {
                Layout::Planes => Axes::ChannelsFirst,
                Layout::Pixels => Axes::ChannelsLast,
            },
            element_type,
            output: network.output().to_owned(),
            int8: None,
        };
        Ok(Some(WholeFile { entry, bytes, backbone }))
    }

    /// The bytes of a file with its weights in 8 bits.
    pub(super) fn in_int8(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
        OnnxFile::of_bytes(Path::new(path), bytes)?.in_int8()
    }

    /// The engine for the ONNX file of a bundle.
    pub(super) fn bundled(entry: &OnnxEntry, onnx: &OnnxConfig, bytes: Vec<u8>, side: u32) -> Result<Engine> {
        let choice =
            Choice { output: Some(entry.output.clone()), prefix_tokens: onnx.prefix_tokens, pooled: false };
        let file = OnnxFile::of_bytes(Path::new(&entry.file), bytes)?;
        Ok(Engine(Arc::new(Network::open(file, &choice, Some(side))?)))
    }

    fn check_sha256(onnx: &OnnxConfig, found: &str) -> Result<()> {
        match &onnx.sha256 {
            Some(expected) if expected != found => Err(problem(
                format!(
                    "{} has the SHA-256 {found}, but the config names {expected}: it is another file",
                    onnx.path
                ),
                "put the file back that the config was made with, or remove model.backbone.sha256 in a config of your own; \
                 heads that were trained on one encoder do not fit another",
            )),
            _ => Ok(()),
        }
    }

    /// Completes a backbone from its file, and gives the preprocessing beside it.
    pub(super) fn complete(onnx: &mut OnnxConfig, model: &Table) -> Result<Preprocessing> {
        let path = PathBuf::from(&onnx.path);
        let input = OnnxFile::read(&path)?.input()?;
        let given = model.get("preprocessing").map(|given| given.clone().try_into::<PreprocessingConfig>());
        let found = match &given {
            // What stands beside the file is not asked for.
            Some(Ok(PreprocessingConfig::Name(_))) => preprocessing::without_file(input.side, input.element)?,
            _ => preprocessing::find(&path, input.side, input.element)?,
        };
        if given.is_none()
            && SAID
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_default()
                .insert(path.clone())
        {
            say(&path, &found);
        }
        let resolved = match given {
            Some(Ok(given)) => given.resolve(&found.preprocessing)?,
            _ => found.preprocessing.clone(),
        };
        let network = network(onnx, Some(resolved.side()), model.contains_key("pooling"))?;
        if network.form() == Form::Vector && model.contains_key("pooling") {
            return Err(problem(
                format!(
                    "model.pooling is set, but the output {} of {} is one vector",
                    network.output(),
                    onnx.path
                ),
                "remove it, or name an output of tokens or maps: model.backbone.output",
            ));
        }
        onnx.output = Some(network.output().to_owned());
        onnx.features = Some(network.features());
        onnx.sha256 = Some(network.sha256().to_owned());
        onnx.prefix_tokens = match network.form() {
            Form::Tokens { prefix } => Some(prefix),
            Form::Vector | Form::Maps => None,
        };
        Ok(found.preprocessing)
    }

    /// Says where the preprocessing of a file's pictures comes from.
    fn say(path: &Path, found: &preprocessing::Found) {
        let numbers = found.preprocessing.numbers();
        match &found.file {
            Some(file) => terminal::say(format_args!("Preprocessing as {} says", file.display())),
            None => terminal::warn(format_args!(
                "nothing beside {} says how its pictures are prepared, so the shorter side becomes {} pixels, the centre of \
                 {crop}×{crop} is cut out, and ImageNet's mean and deviation normalise it; put its `preprocessor_config.json` or \
                 timm's `config.json` there, or set model.preprocessing",
                path.display(),
                numbers.resize,
                crop = numbers.crop
            )),
        }
        if !found.unknown.is_empty() {
            terminal::warn(format_args!(
                "these settings of it are not followed: {}",
                found.unknown.join(", ")
            ));
        }
    }
}

/// What stands in for the engine in an akin without it.
#[cfg(not(feature = "onnx"))]
mod engine {
    use std::convert::Infallible;

    use akin_base::problem::problem;
    use akin_core::bundle::OnnxEntry;
    use akin_core::image::Preprocessing;
    use akin_core::models::{ForeignNetwork, ForeignOutput, OnnxConfig};
    use anyhow::Result;
    use toml::Table;

    use super::WholeFile;
    use crate::config::ModelConfig;

    /// Without the engine no model with an ONNX file has been opened.
    pub(super) fn whole(_: &ModelConfig, _: &str) -> Result<Option<WholeFile>> {
        Ok(None)
    }

    /// As [`whole`].
    pub(super) fn in_int8(_: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
        Ok(bytes)
    }

    /// There is none.
    #[derive(Debug)]
    pub struct Engine(pub Infallible);

    impl ForeignNetwork for Engine {
        fn run(&self, _: &[f32], _: [usize; 4]) -> akin_core::Result<ForeignOutput> {
            match self.0 {}
        }
    }

    pub(super) fn network(onnx: &OnnxConfig, _: Option<u32>, _: bool) -> Result<Infallible> {
        Err(problem(
            format!("this akin was built without an engine for ONNX files, so {} cannot be run", onnx.path),
            "install akin with `native-trainer/install`, or build it with `--features onnx`",
        ))
    }

    pub(super) fn bundled(_: &OnnxEntry, onnx: &OnnxConfig, _: Vec<u8>, _: u32) -> Result<Engine> {
        network(onnx, None, false).map(Engine)
    }

    pub(super) fn complete(onnx: &mut OnnxConfig, _: &Table) -> Result<Preprocessing> {
        match network(onnx, None, false)? {}
    }
}
