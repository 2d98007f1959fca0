//! The ONNX file of an encoder in a bundle: one file with all weights, in 8 bits if it is large.

use akin_base::problem::problem;
use akin_core::bundle::OnnxEntry;
use akin_core::encoder::Encoder;
use akin_core::models::OnnxConfig;
use anyhow::Result;

use super::Export;
use crate::config::onnx::WholeFile;
use crate::runs::run::Run;

/// The largest file that stays as it is, in bytes. A larger one gets weights in 8 bits.
const LARGEST_AS_IT_IS: usize = 60_000_000;
/// The largest file that is exported, in bytes: a browser holds it twice, in at most 4 GB.
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

/// The whole file of an encoder for a bundle; none for an encoder with a backbone of akin's own.
pub(super) fn ship(whole: Option<WholeFile>) -> Result<Option<Shipped>> {
    let Some(mut whole) = whole else { return Ok(None) };
    let is_int8 = whole.bytes.len() > LARGEST_AS_IT_IS;
    if is_int8 {
        whole = whole.in_int8()?;
    }
    let WholeFile { entry, bytes, backbone } = whole;
    if bytes.len() > LARGEST {
        return Err(problem(
            format!(
                "the ONNX file of the encoder has {:.0} MB with weights in 8 bits, and a browser runs at most {:.0} MB",
                bytes.len() as f64 / 1e6,
                LARGEST as f64 / 1e6
            ),
            "use a smaller encoder; `akin eval` and `akin search` run this one",
        ));
    }
    Ok(Some(Shipped { entry, bytes, backbone, is_int8 }))
}

impl Shipped {
    /// The encoder, run by this file.
    pub(super) fn attach(&self, encoder: Encoder) -> Result<Encoder> {
        crate::config::onnx::attach_bundled(encoder, &self.entry, &self.backbone, self.bytes.clone())
    }
}
