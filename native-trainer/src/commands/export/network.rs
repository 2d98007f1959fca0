//! The ONNX file of an encoder in a bundle.

use akin_base::problem::problem;
use akin_base::terminal;
use akin_core::bundle::{BundleWriter, OnnxEntry};
use akin_core::encoder::EncoderConfig;
use akin_core::models::BackboneConfig;
use anyhow::Result;

use crate::config::onnx;

/// A file of more bytes than this takes long to download, and much of a browser's memory.
const LARGE: usize = 60_000_000;
/// The largest file that is exported, in bytes: a browser holds it twice, in at most 4 GB.
const LARGEST: usize = 1_000_000_000;

/// Adds the ONNX file of an encoder, whose config then names it by its path in the bundle. None for a backbone of akin's
/// own.
pub fn add_network(
    bundle: &mut BundleWriter,
    folder: &str,
    name: &str,
    config: &mut EncoderConfig,
) -> Result<Option<OnnxEntry>> {
    let (side, pooled) = (config.preprocessing.side(), config.pooling.is_some());
    let BackboneConfig::Onnx(backbone) = &mut config.backbone else { return Ok(None) };
    let (bytes, entry) = onnx::for_page(backbone, side, pooled, format!("{folder}/model.onnx"))?;
    let megabytes = bytes.len() as f64 / 1e6;
    if bytes.len() > LARGEST {
        return Err(problem(
            format!(
                "the ONNX file of the encoder {name} has {megabytes:.0} MB, and a browser runs at most 1000 MB"
            ),
            "export a smaller encoder; `akin eval` and `akin search` run this one",
        ));
    }
    if bytes.len() > LARGE {
        terminal::warn(format_args!(
            "the ONNX file of the encoder {name} has {megabytes:.0} MB; the page asks its readers before it downloads that"
        ));
    }
    backbone.path.clone_from(&entry.file);
    bundle.add(&entry.file, bytes)?;
    Ok(Some(entry))
}
