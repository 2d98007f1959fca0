//! The further files of a folder for the hub of Hugging Face: card, config, preprocessing and licence.

use akin_base::files::read_regular_file;
use akin_base::problem::problem;
use akin_core::encoder::EncoderConfig;
use akin_core::evaluate::Report;
use akin_core::image::{Channels, Filter, Preprocessing};
use anyhow::Result;
use serde_json::{Map, Value, json};

use super::torch::{Package, Recipe};
use super::{Exchange, Files, Format};
use crate::evaluation::model_card::text;
use crate::runs::run::Which;

/// Licences that the hub knows by their name in small letters.
const LICENCES: [&str; 16] = [
    "afl-3.0",
    "agpl-3.0",
    "apache-2.0",
    "bsd-2-clause",
    "bsd-3-clause",
    "cc-by-4.0",
    "cc-by-nc-4.0",
    "cc-by-nc-nd-4.0",
    "cc-by-nc-sa-4.0",
    "cc-by-sa-4.0",
    "cc0-1.0",
    "gpl-3.0",
    "lgpl-3.0",
    "mit",
    "mpl-2.0",
    "unlicense",
];

/// Refuses a folder without a licence.
///
/// # Errors
///
/// As said.
pub fn check(exchange: &Exchange) -> Result<()> {
    if exchange.licence.trim().is_empty() {
        return Err(problem(
            "a folder for the hub needs the licence of the weights",
            "name it, such as `--licence CC-BY-4.0`; weights that were trained from others have their licence, too",
        ));
    }
    Ok(())
}

/// The files beside weights, lines and preprocessing.
///
/// # Errors
///
/// A report of the run that cannot be read.
pub fn files(exchange: &Exchange, config: &EncoderConfig, recipe: &Recipe) -> Result<Files> {
    let licence = match &exchange.notice {
        Some(notice) => format!("{}\n\n{}\n", exchange.licence, notice.trim()),
        None => format!("{0}\n\nhttps://spdx.org/licenses/{0}.html\n", exchange.licence),
    };
    Ok(vec![
        ("README.md".into(), card(exchange, config, recipe)?.into_bytes()),
        ("config.json".into(), json(&settings(config, recipe))?),
        ("LICENSE".into(), licence.into_bytes()),
    ])
}

/// `config.json`: timm's where timm has the network, so that `timm.create_model("hf-hub:…")` finds it.
fn settings(config: &EncoderConfig, recipe: &Recipe) -> Value {
    let package = recipe.package;
    let numbers = config.preprocessing.numbers();
    let dimension = config.head.as_ref().map_or(0, |head| head.dimension);
    let akin = json!(config);
    let (architecture, native) = match package {
        Package::Squeezenet => {
            return json!({ "architecture": "squeezenet1_1", "library": "torchvision", "akin": akin });
        }
        // timm has no place for a head behind the projection.
        Package::Tower(name, _) => return json!({ "architecture": name, "library": "timm", "akin": akin }),
        Package::Resnet(name) | Package::Dinov2(name) | Package::Rotary(name) | Package::Convnext(name) => {
            (name, None)
        }
        Package::Transformer(name, native)
        | Package::Distilled(name, native)
        | Package::AttentionPooled(name, native) => (name, Some(native)),
    };
    let mut arguments: Map<String, Value> =
        recipe.arguments.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    if let Some(native) = native {
        // Otherwise timm interpolates the positions when it loads them.
        arguments.insert("img_size".into(), native.into());
    }
    let classifier = match package {
        Package::Resnet(_) => "fc",
        Package::Convnext(_) => "head.fc",
        _ => "head",
    };
    json!({
        "architecture": architecture,
        "num_classes": dimension,
        "num_features": config.backbone.features(),
        "model_args": arguments,
        "pretrained_cfg": {
            "input_size": [3, numbers.crop, numbers.crop],
            "fixed_input_size": false,
            "interpolation": filter(numbers.filter).0,
            "crop_pct": f64::from(numbers.crop) / f64::from(numbers.resize),
            "crop_mode": if numbers.squeeze { "squash" } else { "center" },
            "mean": numbers.mean.map(|mean| mean * numbers.scale_of_one()),
            "std": numbers.deviation.map(|deviation| deviation * numbers.scale_of_one()),
            "num_classes": dimension,
            "classifier": classifier,
        },
        "akin": akin,
    })
}

/// Mean and deviation of bytes from 0 to 1, from those of scaled bytes.
trait ScaleOfOne {
    fn scale_of_one(&self) -> f32;
}

impl ScaleOfOne for akin_core::image::PreprocessingNumbers {
    fn scale_of_one(&self) -> f32 {
        1.0 / (255.0 * self.scale)
    }
}

/// `preprocessor_config.json`, as transformers writes it. The network of an ONNX file takes planes in the order red, green,
/// blue.
pub fn preprocessor(preprocessing: &Preprocessing, format: Format) -> Value {
    let numbers = preprocessing.numbers();
    let flips = numbers.channels == Channels::Bgr;
    let in_order = |mut values: [f32; 3]| {
        if flips && format == Format::Onnx {
            values.reverse();
        }
        values
    };
    let size = match numbers.squeeze {
        true => json!({ "height": numbers.resize, "width": numbers.resize }),
        false => json!({ "shortest_edge": numbers.resize }),
    };
    let mut settings = json!({
        "do_resize": true,
        "size": size,
        "resample": filter(numbers.filter).1,
        "do_center_crop": true,
        "crop_size": { "height": numbers.crop, "width": numbers.crop },
        "do_rescale": true,
        "rescale_factor": numbers.scale,
        "do_normalize": true,
        "image_mean": in_order(numbers.mean),
        "image_std": in_order(numbers.deviation),
    });
    if flips && format != Format::Onnx {
        settings["do_flip_channel_order"] = true.into();
    }
    settings
}

/// A filter by its name and by its number in Pillow.
fn filter(filter: Filter) -> (&'static str, u32) {
    match filter {
        Filter::Lanczos => ("lanczos", 1),
        Filter::Bilinear => ("bilinear", 2),
        Filter::Bicubic => ("bicubic", 3),
    }
}

/// A JSON file.
///
/// # Errors
///
/// None that a user can cause.
pub fn json(value: &Value) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The model card, with the header in YAML that the hub reads. JSON texts are YAML texts.
fn card(exchange: &Exchange, config: &EncoderConfig, recipe: &Recipe) -> Result<String> {
    let run = exchange.run;
    let name = exchange.title.as_ref().unwrap_or(&run.config.run.name);
    let id = exchange.licence.trim().to_lowercase();
    let licence = match LICENCES.contains(&id.as_str()) {
        true => format!("license: {id}"),
        false => format!("license: other\nlicense_name: {}\nlicense_link: LICENSE", json!(exchange.licence)),
    };
    let library = if recipe.package == Package::Squeezenet { "torchvision" } else { "timm" };
    let data = &exchange.data;
    let metrics = metrics(exchange)?;
    let entries: Vec<Value> = metrics
        .iter()
        .map(|(key, label, score)| json!({ "type": key, "name": label, "value": score }))
        .collect();
    let index = json!([{
        "name": name,
        "results": [{
            "task": { "type": "image-feature-extraction" },
            "dataset": { "type": "custom", "name": data },
            "metrics": entries,
        }],
    }]);
    let index = if entries.is_empty() { String::new() } else { format!("model-index: {index}\n") };
    let rows: String =
        metrics.iter().map(|(_, label, score)| format!("| {label} | {score:.4} |\n")).collect();
    let table = match rows.is_empty() {
        true => "The run has no report.\n".to_owned(),
        false => format!("| metric | score |\n|---|--:|\n{rows}"),
    };
    let description = match exchange.description.is_empty() {
        true => String::new(),
        false => format!("{}\n\n", text(&exchange.description)),
    };
    let of = if exchange.which == Which::Best {
        ", of the last encoder; these weights are the best ones"
    } else {
        ""
    };
    Ok(format!(
        "---\n{licence}\nlibrary_name: {library}\npipeline_tag: image-feature-extraction\ntags:\n- akin\n- {library}\n\
         - image-retrieval\n- metric-learning\n{index}---\n\n# {}\n\n{description}{}, images of {side}×{side} pixels, \
         embeddings of {} dimensions. {}. Written by akin {}.\n\nLicence: {} (see `LICENSE`).\n\n\
         ## Results\n\nOn the test images of {}{of}:\n\n{table}\n\
         ## Use\n\n```python\n{}```\n\n`encoder.py` has the preprocessing too. The last lines are part of the encoder: \
         without them the numbers are not embeddings.\n",
        text(name),
        config.backbone.entry().title,
        config.dimension(),
        text(&run.config.loss.describe()),
        env!("CARGO_PKG_VERSION"),
        text(&exchange.licence),
        text(data),
        recipe.lines(),
        side = config.preprocessing.side(),
    ))
}

/// The scores over all levels of the run's report, if it has one: name, label, value.
fn metrics(exchange: &Exchange) -> Result<Vec<(String, String, f64)>> {
    let path = exchange.run.file("report.json");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let report: Report = serde_json::from_slice(&read_regular_file(&path)?)?;
    let overall = |metric: &akin_core::metrics::Metric| {
        let score = report.overall.get(*metric)?;
        Some((metric.to_string(), metric.label(), score))
    };
    Ok(report.config.metrics.iter().filter_map(overall).collect())
}
