//! A backbone as it was published, without training: `akin eval` and `akin embed` of a config instead of a run.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_core::encoder::Encoder;
use akin_core::models::{BackboneConfig, OnnxConfig};
use anyhow::Result;
use burn::tensor::Device;
use clap::Args;

use super::arguments::SetArgs;
use super::data::fetch::{fetch_data_set, fetch_file};
use crate::config::{ModelConfig, PretrainedConfig, Source, setting_name};
use crate::data::entry;
use crate::data::listing;
use crate::runs::run::{Loaded, load_weights, warn_of_unused};

/// What only a config takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "With a config instead of a run")]
pub struct PretrainedArgs {
    #[command(flatten)]
    pub sets: SetArgs,
    /// Download what is missing and may be downloaded, without asking.
    #[arg(long)]
    pub yes: bool,
    /// An ONNX file that maps images to a vector, to tokens or to maps: its network takes the place of `[model]`. Settings
    /// that its file leaves open are given by `--set`, such as `model.pooling=average` or `model.backbone.output=NAME`.
    #[arg(long, value_name = "FILE")]
    pub onnx: Option<PathBuf>,
}

impl PretrainedArgs {
    /// Reads a config, with the `--set` values laid over it.
    ///
    /// # Errors
    ///
    /// A config that cannot be read.
    pub fn read(&self, config: &Path) -> Result<PretrainedConfig> {
        match &self.onnx {
            Some(onnx) => PretrainedConfig::of(&Source::read_for_onnx(config, onnx, &self.sets.set)?),
            None => PretrainedConfig::load(config, &self.sets.set),
        }
    }

    /// Refuses these options for a run, or for files if there is none.
    ///
    /// # Errors
    ///
    /// An option that is given.
    pub fn refuse(&self, run: Option<&Path>) -> Result<()> {
        let given = if self.yes {
            "--yes"
        } else if self.onnx.is_some() {
            "--onnx"
        } else if !self.sets.set.is_empty() {
            "--set"
        } else {
            return Ok(());
        };
        let found = match run {
            Some(run) => format!("{} is not a config or recipe", run.display()),
            None => "there is none".to_owned(),
        };
        Err(problem(
            format!("`{given}` is for a config, but {found}"),
            "remove it, or give a config; `akin list recipes` lists the built-in ones",
        ))
    }
}

/// Whether the argument of a command is a config, and not the directory of a run.
pub fn is_config(path: &Path) -> bool {
    Source::exists(path)
}

/// What is missing, and what to do about it.
struct Lack {
    what: String,
    hint: String,
}

/// Provides the weights of a config and, with `data`, its data set: what is missing is downloaded if it may be.
///
/// # Errors
///
/// All that is missing and was not downloaded.
pub fn provide(config: &PretrainedConfig, yes: bool, data: bool, progress: Progress) -> Result<()> {
    let mut lacks = Vec::new();
    lacks.extend(provide_weights(&config.model, yes, progress));
    if data {
        lacks.extend(provide_data(config, yes, progress));
    }
    if lacks.is_empty() {
        return Ok(());
    }
    let join = |part: fn(&Lack) -> &str| lacks.iter().map(part).collect::<Vec<_>>().join("; ");
    Err(problem(join(|lack| &lack.what), join(|lack| &lack.hint)))
}

/// The encoder with its weights, whose SHA-256 is said.
///
/// # Errors
///
/// Weights that cannot be read, have another SHA-256 or do not fit.
pub fn encoder(model: &ModelConfig, device: &Device, progress: Progress) -> Result<Encoder> {
    let mut encoder = model.bare_encoder().init(0, device)?;
    let loaded = load_weights(&mut encoder, model)?;
    if let (Some(path), Some(Loaded { sha256, unused })) = (&model.weights, loaded) {
        warn_of_unused(path, &unused);
        let held = match &model.weights_sha256 {
            Some(published) if published.len() == 64 => "the published one".to_owned(),
            Some(published) => format!("which begins with {published}, as published"),
            None => "which the config does not hold to a published one".to_owned(),
        };
        progress.say("Loaded", &format!("{} with the SHA-256 {sha256}, {held}", path.display()));
    }
    if let BackboneConfig::Onnx(OnnxConfig { path, output, features, prefix_tokens, .. }) = &model.backbone {
        let output = output.as_deref().unwrap_or_default();
        let pooled = match (model.pooling, prefix_tokens) {
            (Some(pooling), _) => format!(", pooled by {}", setting_name(pooling)),
            (None, Some(0)) => ", the mean of its tokens".into(),
            (None, Some(count)) => format!(", its class token, the first of {count} before the patches"),
            (None, None) => String::new(),
        };
        let features = features.unwrap_or_default();
        progress.say("Loaded", &format!("{path}: {features} features of the output {output}{pooled}"));
    }
    Ok(encoder)
}

/// Whether nobody can be asked.
fn is_unattended(yes: bool) -> bool {
    !yes && !io::stdin().is_terminal()
}

fn provide_weights(model: &ModelConfig, yes: bool, progress: Progress) -> Option<Lack> {
    let path = model.weights.as_ref().filter(|path| !path.is_file())?;
    let what = format!("the weights {} are not there", path.display());
    let Some(address) = &model.weights_address else {
        return Some(Lack { what, hint: format!("put the file of weights at {}", path.display()) });
    };
    let hint = format!("download {address} to {}, or pass `--yes` and akin does", path.display());
    if is_unattended(yes) {
        return Some(Lack { what, hint });
    }
    fetch_file(address, path, yes, progress)
        .err()
        .map(|error| Lack { what: format!("{what}: {error}"), hint })
}

fn provide_data(config: &PretrainedConfig, yes: bool, progress: Progress) -> Option<Lack> {
    let data = &config.selection.data;
    let folder = data.path();
    if folder.exists() {
        return None;
    }
    let entry = entry(data.kind());
    let what = format!("{} is not at {}", entry.title, folder.display());
    let layout = format!("so that {} has {}", folder.display(), entry.layout);
    match &entry.source {
        listing::Source::Public(_) if is_unattended(yes) => Some(Lack {
            what,
            hint: format!(
                "put a copy of {} there, {layout}, or pass `--yes` and akin downloads it",
                entry.title
            ),
        }),
        listing::Source::Public(files) => {
            Some(match fetch_data_set(entry, files, folder, None, yes, progress) {
                Ok(unpack) => Lack {
                    what: format!("{} is downloaded, but not unpacked", entry.title),
                    hint: format!("unpack it with `{unpack}`, and give the same command again"),
                },
                Err(error) => {
                    Lack { what: format!("{what}: {error}"), hint: format!("put a copy there, {layout}") }
                }
            })
        }
        listing::Source::Page(page) => Some(Lack {
            what,
            hint: format!(
                "download {} at {page} (licence: {}), and unpack it {layout}",
                entry.title, entry.licence
            ),
        }),
        listing::Source::Own => Some(Lack { what, hint: "correct data.path".into() }),
    }
}
