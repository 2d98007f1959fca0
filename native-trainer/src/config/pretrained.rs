//! A config without a training: the sections that say which backbone is evaluated as it was published, and on which images.

use std::path::Path;

use akin_base::problem::problem;
use akin_core::evaluate::EvaluationConfig;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DataConfig, DeviceName, ModelConfig, Protocol, PublishedConfig, Selection, Source, SplitConfig};

/// The model of an ONNX file alone, with `--set` values of `model` laid over it.
///
/// # Errors
///
/// A file that cannot be used; a value of another section, an unknown or a wrong one.
pub fn onnx_model(onnx: &Path, sets: &[String]) -> Result<ModelConfig> {
    #[derive(JsonSchema, Deserialize)]
    struct Part {
        model: ModelConfig,
    }
    let elsewhere = sets.iter().find(|set| !set.starts_with("model"));
    if let Some(set) = elsewhere {
        return Err(problem(
            format!("`--set {set}` is for a config, but with `--onnx` there is only the model"),
            "remove it; `--set` can give model.pooling, model.preprocessing and the settings of model.backbone",
        ));
    }
    Ok(Source::of_onnx(onnx, sets)?.part(|part: &Part| part.model.validate())?.model)
}

/// A backbone with published weights, and how it is evaluated. See the [module](self).
pub struct PretrainedConfig {
    /// The images, and their splits.
    pub selection: Selection,
    /// The device that computes.
    pub device: DeviceName,
    /// The backbone, its weights and the preprocessing of images. A head without published weights is left out.
    pub model: ModelConfig,
    /// What evaluation reports.
    pub eval: EvaluationConfig,
    /// What a paper reports for this backbone without training.
    pub published: Option<PublishedConfig>,
}

#[derive(JsonSchema, Deserialize)]
struct Part {
    data: DataConfig,
    #[serde(default)]
    split: SplitConfig,
    #[serde(default)]
    run: Run,
    model: ModelConfig,
    #[serde(default)]
    eval: EvaluationConfig,
    published: Option<PublishedConfig>,
}

#[derive(Default, JsonSchema, Deserialize)]
struct Run {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    device: DeviceName,
}

impl PretrainedConfig {
    /// Reads these sections of a config file or recipe, with `--set` values laid over it.
    ///
    /// # Errors
    ///
    /// As [`PretrainedConfig::of`]; a file that cannot be read.
    pub fn load(file: &Path, sets: &[String]) -> Result<Self> {
        Self::of(&Source::read(file, sets)?)
    }

    /// Reads these sections of a config, so that those of a training may be missing.
    ///
    /// # Errors
    ///
    /// As [`Config::load`](super::Config::load), for these sections; a config without `model.weights`, or with the
    /// protocol of DyML.
    pub fn of(source: &Source) -> Result<Self> {
        let part = source.part(|part: &Part| {
            part.data.validate()?;
            part.split.validate(&part.data)?;
            part.model.validate()?;
            part.eval.checked(part.data.levels().len())?;
            if let Some(published) = &part.published {
                published.validate(part.data.levels())?;
            }
            if part.model.weights.is_none() && part.model.onnx().is_none() {
                return Err(problem(
                    "the config has no model.weights, so its backbone has learned nothing that could be evaluated",
                    "name a file of published weights, or train first and give the run",
                ));
            }
            if part.split.protocol == Protocol::Dyml {
                return Err(problem(
                    "split.protocol is `dyml`, which `akin eval` follows only for a run",
                    "remove it, or train first and give the run",
                ));
            }
            Ok(())
        })?;
        Ok(Self {
            selection: Selection::new(part.data, part.split, part.run.seed),
            device: part.run.device,
            model: part.model,
            eval: part.eval,
            // The results of a training are not those of the backbone that it begins with.
            published: part.published.filter(|_| !source.trains()),
        })
    }
}
