//! `akin import`: makes a run of weights that another program trained.

use std::path::{Path, PathBuf};

use akin_base::directory::{self, Draft, Kind};
use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_base::{shell, terminal};
use akin_core::digest::sha256;
use akin_core::models::{BackboneConfig, BackboneEntry, LinearLayer, PublishedWeights};
use anyhow::{Context, Result};
use burn::tensor::Device;
use clap::Args;
use serde_json::json;
use toml::Value;

use crate::commands::arguments::SetArgs;
use crate::commands::train::{finish, train_new};
use crate::config::device::{self, plain_name};
use crate::config::{Config, DeviceName, Source};
use crate::data::DataDigest;
use crate::runs::run::{Run, encoder_config, load_weights, read_weights, warn_of_unused};
use crate::training::checks::unused_settings;

/// Make a run of weights that another program trained.
///
/// Recognises the backbone from the names and shapes of the tensors, which may have a prefix such as `model.`, and takes a
/// linear layer behind it as the head. With a config, the run is also evaluated on its data, and can then be reported and
/// exported like a run of `akin train`. To train it further, train with the config in the run and more steps.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The weights: `.safetensors`, or `.pth` as torch writes it, which is read as data and never executed.
    #[arg(value_name = "WEIGHTS")]
    pub weights: PathBuf,
    /// A config with the data to evaluate on, as `akin init` writes it, or the name of a recipe. Its preprocessing is used;
    /// its backbone and its head are replaced.
    #[arg(value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The run directory.
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// The backbone, as `akin list backbones` calls it, if several fit.
    #[arg(long, value_name = "NAME")]
    pub backbone: Option<String>,
    /// The linear layer that is the head, such as `fc`, or `none`. Without it, the only layer that is not a published
    /// classifier.
    #[arg(long, value_name = "LAYER")]
    pub head: Option<String>,
    /// Replace the run in that directory.
    #[arg(long)]
    pub overwrite: bool,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Makes the run.
pub fn run(args: ImportArgs) -> Result<()> {
    refuse_own_settings(&args.sets.set)?;
    let out = std::path::absolute(&args.out)?;
    directory::check(Kind::Run, &out, args.overwrite)?;
    let bytes = read_weights(&args.weights)?;
    let digest = sha256(&bytes);
    let weights = PublishedWeights::parse(bytes).with_context(|| args.weights.display().to_string())?;
    let device = Device::flex();
    let entry = backbone(&weights, &args, &device)?;
    let config = BackboneConfig::named(entry.name)?;
    let heads = weights.heads(&config.absent(&device)?, config.features());
    let head = head(&heads, args.head.as_deref())?;
    args.progress
        .say("Recognised", &format!("{} in {}", entry.title, counted(weights.count(), "tensor", "tensors")));
    match head {
        Some(head) => {
            let norm = if head.layer_norm.is_some() { " after a layer normalisation" } else { "" };
            let sizes = format!("{} features → {} numbers", config.features(), head.dimension);
            args.progress.say("Head", &format!("`{}`, {sizes}{norm}", head.name));
        }
        None => args.progress.say("Head", "none: the embedding is the features, scaled to unit length"),
    }
    let config = config_of(&args, &out, entry, head, &digest)?;
    unused_settings(&config, None).iter().for_each(terminal::warn);
    match args.config {
        Some(_) => finish(train_new(config, args.overwrite, args.progress)?, args.progress),
        None => write_without_data(config, args.overwrite, args.progress),
    }
}

/// Refuses a `--set` of what the command sets itself.
fn refuse_own_settings(sets: &[String]) -> Result<()> {
    const OWN: [(&str, &str); 6] = [
        ("run.steps", "leave it out: an import trains nothing"),
        ("run.epochs", "leave it out: an import trains nothing"),
        ("run.out", "use `--out`"),
        ("model.weights", "leave it out: the weights are the ones to import"),
        ("model.backbone", "use `--backbone`"),
        ("model.head_weights", "use `--head`"),
    ];
    for set in sets {
        let key = set.split('=').next().unwrap_or_default().trim();
        if let Some((own, hint)) = OWN.iter().find(|(own, _)| key == *own) {
            return Err(problem(
                format!("`akin import` sets {own} itself, and `--set {set}` does too"),
                *hint,
            ));
        }
    }
    Ok(())
}

/// The backbone of the weights: the one of the command line, or the only one that fits, or of several the config's.
fn backbone(
    weights: &PublishedWeights,
    args: &ImportArgs,
    device: &Device,
) -> Result<&'static BackboneEntry> {
    if let Some(name) = &args.backbone {
        let mut network = BackboneConfig::named(name)?.absent(device)?;
        weights.load(&mut network).with_context(|| args.weights.display().to_string())?;
        return Ok(network.entry());
    }
    let found = weights.backbones(device);
    let configured = match &args.config {
        Some(file) => configured_backbone(&Source::read(file, &args.sets.set)?),
        None => None,
    };
    let names: Vec<&str> = found.iter().map(|entry| entry.name).collect();
    match (found.as_slice(), found.iter().find(|entry| Some(entry.name) == configured.as_deref())) {
        (_, Some(entry)) | ([entry], None) => Ok(entry),
        ([], None) => Err(problem(
            format!("{} has the weights of no backbone that akin has", args.weights.display()),
            "`akin list backbones` prints their names, and `--backbone NAME` says what the weights lack for one",
        )),
        (_, None) => Err(problem(
            format!(
                "the weights fit {}, which differ in how they were trained and in the colours that they expect",
                names.join(", ")
            ),
            format!("choose one with `--backbone`, such as `--backbone {}`", names[0]),
        )),
    }
}

/// The backbone that a config names.
fn configured_backbone(source: &Source) -> Option<String> {
    source.value("model.backbone.kind").and_then(Value::as_str).map(str::to_owned)
}

/// The layer that is the head.
fn head<'a>(heads: &'a [LinearLayer], asked: Option<&str>) -> Result<Option<&'a LinearLayer>> {
    let names = |heads: &[&LinearLayer]| {
        heads.iter().map(|head| format!("`{}`", head.name)).collect::<Vec<_>>().join(", ")
    };
    match asked {
        Some("none") => return Ok(None),
        Some(name) => {
            return heads.iter().find(|head| head.name == name).map(Some).ok_or_else(|| {
                let hint = match heads {
                    [] => "leave `--head` out: no linear layer takes the features".to_owned(),
                    _ => format!("name one of these: {}", names(&heads.iter().collect::<Vec<_>>())),
                };
                problem(format!("the weights have no linear layer `{name}` that takes the features"), hint)
            });
        }
        None => {}
    }
    let own: Vec<&LinearLayer> = heads.iter().filter(|head| !head.is_classifier).collect();
    match own.as_slice() {
        [] => Ok(None),
        [head] => Ok(Some(head)),
        several => Err(problem(
            format!("several linear layers take the features: {}", names(several)),
            format!("choose one with `--head`, such as `--head {}`, or `--head none`", several[0].name),
        )),
    }
}

/// The config of the run: that of the command line, with the backbone, the head and the weights.
fn config_of(
    args: &ImportArgs,
    out: &Path,
    entry: &BackboneEntry,
    head: Option<&LinearLayer>,
    digest: &str,
) -> Result<Config> {
    let text = |text: &str| Value::String(text.to_owned()).to_string();
    let path = |path: &Path| match path.to_str() {
        Some(path) => Ok(text(path)),
        None => Err(problem(
            format!("the path {} is not UTF-8, so a config cannot hold it", path.display()),
            "rename the file or its folder",
        )),
    };
    let mut sets = args.sets.set.clone();
    sets.extend([
        "run.steps=0".to_owned(),
        format!("run.out={}", path(out)?),
        format!("model.weights={}", path(&std::path::absolute(&args.weights)?)?),
        format!("model.weights_sha256={}", text(digest)),
    ]);
    let backbone = format!("model.backbone={{ kind = \"{}\" }}", entry.name);
    if let Some(head) = head {
        sets.extend([
            format!("model.head.dimension={}", head.dimension),
            format!("model.head.layer_norm={}", head.layer_norm.is_some()),
            format!("model.head_weights={}", text(&head.name)),
        ]);
    } else {
        sets.push("model.freeze_backbone=false".to_owned());
    }
    let mut source = match &args.config {
        Some(file) => {
            let configured = configured_backbone(&Source::read(file, &args.sets.set)?);
            if configured.as_deref() != Some(entry.name) {
                sets.push(backbone);
            }
            Source::read(file, &sets)?
        }
        None => {
            sets.push(backbone);
            // The data are not known, and nothing reads them.
            let text = "[data]\nkind = \"folder\"\npath = \"images\"\nlevels = [\"class\"]\n\n[model]\n\n[loss]\nkind = \"norm_softmax\"\n";
            Source::from_text(&out.join("config.toml"), text.to_owned(), None, &sets)?
        }
    };
    if head.is_none() {
        source.remove("model.head");
    }
    let mut config = source.config(&toml::Table::new())?;
    config.run.device = args.device.unwrap_or(config.run.device);
    Ok(config)
}

/// Writes a run that has an encoder and no evaluation.
fn write_without_data(config: Config, overwrite: bool, progress: Progress) -> Result<()> {
    let device = device::open(config.run.device)?.without_autodiff();
    let mut encoder = encoder_config(&config).init(config.run.seed, &device)?;
    if let (Some(path), Some(loaded)) = (&config.model.weights, load_weights(&mut encoder, &config.model)?) {
        warn_of_unused(path, &loaded.unused);
    }
    let weights = encoder.to_bytes()?;
    let draft = Draft::create(Kind::Run, &config.run.out, overwrite)?;
    let run = Run { directory: draft.directory().to_owned(), config };
    run.write_config()?;
    run.write_weights(&weights)?;
    run.write_json(
        "run.json",
        &json!({
            "akin": env!("CARGO_PKG_VERSION"), "data": DataDigest::default(), "encoder_sha256": sha256(&weights),
            "encoder": encoder_config(&run.config), "device": plain_name(&device), "steps": 0,
        }),
    )?;
    let directory = shell::path(draft.target());
    draft.complete()?;
    progress.say("Imported", &format!("the run is in {directory}; it has no data and no evaluation"));
    progress.say(
        "Next",
        &format!("`akin embed {directory} PHOTOS --out embeddings.npy`, or import with a config to evaluate on its data"),
    );
    Ok(())
}
