//! The ONNX file of an encoder in a bundle: one file with all weights, in 8 bits if it is large.

use akin_base::problem::problem;
use akin_core::bundle::OnnxEntry;
use akin_core::encoder::Encoder;
use akin_core::models::OnnxConfig;
use anyhow::Result;

use super::Export;
use crate::config::ModelConfig;
use crate::runs::run::Run;

/// The largest file that stays as it is, in bytes. A larger one gets weights in 8 bits.
#[cfg(feature = "onnx")]
const LARGEST_AS_IT_IS: usize = 60_000_000;
/// The largest file that is exported, in bytes: a browser holds it twice, in at most 4 GB.
#[cfg(feature = "onnx")]
const LARGEST: usize = 1_000_000_000;

/// An ONNX file for a bundle.
pub(super) struct Shipped {
    /// How it is called. The loss of 8 bits is not measured yet.
    pub entry: OnnxEntry,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What core needs of it.
    pub backbone: OnnxConfig,
    /// Whether its weights are in 8 bits.
    pub is_int8: bool,
}

/// Refuses an ONNX file whose licence nobody has stated: a bundle is there to be passed on.
pub(super) fn check_licences(export: &Export) -> Result<()> {
    let lacks = |run: &&Run| run.config.model.onnx().is_some_and(|onnx| onnx.licence.is_none());
    match export.runs.iter().find(lacks) {
        Some(run) if export.licence.is_empty() => Err(problem(
            format!(
                "{} embeds with an ONNX file, which the bundle contains, and its licence is not known",
                run.directory.display()
            ),
            "say under which licence its weights are, for example `--licence Apache-2.0`, or set model.backbone.licence",
        )),
        _ => Ok(()),
    }
}

/// The file of a run for a folder of the bundle; none for a run with a backbone of akin's own.
#[cfg(feature = "onnx")]
pub(super) fn ship(model: &ModelConfig, folder: &str) -> Result<Option<Shipped>> {
    use akin_core::bundle::{InputType, Layout as Axes};
    use akin_core::digest::sha256;
    use akin_onnx::{Element, Layout, OnnxFile};

    use crate::config::onnx::network;

    let Some(onnx) = model.onnx() else { return Ok(None) };
    let network = network(onnx, Some(model.preprocessing.side()), model.pooling.is_some())?;
    let input = network.input();
    let element_type = match input.element {
        Element::Float => InputType::F32,
        Element::Half => InputType::F16,
        Element::Byte => InputType::U8,
        Element::Double => {
            return Err(problem(
                format!("{} takes numbers of 64 bits, which the page does not give it", onnx.path),
                "export it with an input of 32 bits",
            ));
        }
    };
    let file = OnnxFile::read(network.path())?;
    if file.sha256 != network.sha256() {
        return Err(problem(format!("{} has changed meanwhile", onnx.path), "export the run again"));
    }
    let mut bytes = file.whole()?;
    let is_int8 = bytes.len() > LARGEST_AS_IT_IS;
    if is_int8 {
        bytes = file.in_int8()?;
    }
    if bytes.len() > LARGEST {
        return Err(problem(
            format!(
                "{} has {:.0} MB with weights in 8 bits, and a browser runs at most {:.0} MB",
                onnx.path,
                bytes.len() as f64 / 1e6,
                LARGEST as f64 / 1e6
            ),
            "use a smaller encoder; `akin eval` and `akin search` run this one",
        ));
    }
    let path = format!("{folder}/model.onnx");
    let backbone = OnnxConfig {
        path: path.clone(),
        output: None,
        sha256: Some(sha256(&bytes)),
        licence: None,
        ..onnx.clone()
    };
    let entry = OnnxEntry {
        file: path,
        input: input.name.clone(),
        layout: match input.layout {
            Layout::Planes => Axes::ChannelsFirst,
            Layout::Pixels => Axes::ChannelsLast,
        },
        element_type,
        output: network.output().to_owned(),
        int8: None,
    };
    Ok(Some(Shipped { entry, bytes, backbone, is_int8 }))
}

/// Without the engine no run with an ONNX file has got here.
#[cfg(not(feature = "onnx"))]
pub(super) fn ship(_: &ModelConfig, _: &str) -> Result<Option<Shipped>> {
    Ok(None)
}

impl Shipped {
    /// The encoder, run by this file.
    pub(super) fn attach(&self, encoder: Encoder) -> Result<Encoder> {
        crate::config::onnx::attach_bundled(encoder, &self.entry, &self.backbone, self.bytes.clone())
    }
}
