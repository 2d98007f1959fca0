//! Encoders in the formats of other tools: `akin export --to`.
//!
//! | format | files |
//! |---|---|
//! | `safetensors` | the weights, with the names of the package that published the backbone |
//! | `pytorch` | the same, and the lines of Python that load them |
//! | `onnx` | the whole network, from normalised images to embeddings |
//! | `hub` | a folder for the hub of Hugging Face: weights, lines, config, preprocessing, card and licence |

mod hub;
mod onnx;
mod protobuf;
mod torch;

use std::path::Path;

use akin_base::directory::{self, Draft, Kind};
use akin_base::files::write_into_draft;
use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_base::terminal;
use akin_core::encoder::Encoder;
use anyhow::Result;
use clap::ValueEnum;

use self::torch::Recipe;
use crate::config::{DeviceName, device};
use crate::runs::run::{Run, Which, encoder_config};

/// The format of an encoder for other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The weights as safetensors, with torchvision's or timm's names.
    Safetensors,
    /// The weights as safetensors, and a Python file that loads them into torchvision's or timm's network.
    Pytorch,
    /// The whole encoder from normalised images to embeddings, for any number of images at once.
    Onnx,
    /// A folder for the hub of Hugging Face: weights, config, preprocessing, model card and licence.
    Hub,
}

/// What to write, and where.
pub struct Exchange<'a> {
    /// The run.
    pub run: &'a Run,
    /// Which of its encoders.
    pub which: Which,
    /// The format.
    pub format: Format,
    /// The folder to write.
    pub out: &'a Path,
    /// Whether to replace an existing one.
    pub overwrite: bool,
    /// The name of the model [default: the name of the run].
    pub title: Option<String>,
    /// A sentence about the model.
    pub description: String,
    /// The name of the data.
    pub data: String,
    /// The licence of the weights, such as "CC-BY-4.0".
    pub licence: String,
    /// Credit and licence text.
    pub notice: Option<String>,
    /// How to show progress.
    pub progress: Progress,
}

/// Writes the encoder of a run, and prints the folder and how to load it.
///
/// # Errors
///
/// A run without a trained encoder, an encoder that the format cannot hold, or a folder that exists.
pub fn export(exchange: &Exchange) -> Result<()> {
    let Exchange { run, format, out, progress, .. } = exchange;
    if *format == Format::Hub {
        hub::check(exchange)?;
    }
    directory::check(Kind::Encoder, out, exchange.overwrite)?;
    let encoder = run.encoder(exchange.which, &device::open(DeviceName::Cpu)?)?;
    if encoder.is_foreign() {
        return Err(problem(
            format!("the backbone of {} is an ONNX file already", run.directory.display()),
            "copy that file; a bundle holds it together with the head: leave out `--to`",
        ));
    }
    let (files, lines) = files(exchange, &encoder)?;
    let draft = Draft::create(Kind::Encoder, out, exchange.overwrite)?;
    let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let written =
        files.iter().try_for_each(|(name, bytes)| write_into_draft(&draft.directory().join(name), bytes));
    match written {
        Ok(()) => draft.complete()?,
        Err(error) => {
            draft.discard();
            return Err(error);
        }
    }
    progress.say("Exported", &format!("{} ({:.1} MB)", out.display(), size as f64 / 1e6));
    progress.say("Next", &format!("these lines load it:\n\n{lines}"));
    Ok(terminal::print(&out.display().to_string())?)
}

/// The names and contents of files.
type Files = Vec<(String, Vec<u8>)>;

/// The files of a format, and the lines of Python that load them.
fn files(exchange: &Exchange, encoder: &Encoder) -> Result<(Files, String)> {
    let config = encoder_config(&exchange.run.config);
    let named = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    let preprocessing = || hub::json(&hub::preprocessor(encoder.preprocessing(), exchange.format));
    if exchange.format == Format::Onnx {
        let metadata = [("model", exchange.run.config.run.name.clone())];
        let model = onnx::write(encoder, &metadata)?;
        let files = vec![named("model.onnx", model), named("preprocessor_config.json", preprocessing()?)];
        return Ok((files, onnx::LINES.into()));
    }
    let recipe = Recipe::new(&config);
    let mut files = vec![named(torch::WEIGHTS, torch::weights(encoder, &config)?)];
    if exchange.format == Format::Safetensors {
        let lines = recipe.map(|recipe| recipe.lines()).unwrap_or_else(|_| torch::READ.into());
        return Ok((files, lines));
    }
    let recipe = recipe?;
    let lines = recipe.lines();
    files.push(named("encoder.py", recipe.module(encoder.preprocessing()).into_bytes()));
    if exchange.format == Format::Hub {
        files.push(named("preprocessor_config.json", preprocessing()?));
        files.extend(hub::files(exchange, &config, &recipe)?);
    }
    Ok((files, lines))
}
