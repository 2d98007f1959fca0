//! What stands beside an ONNX file about the preprocessing of its pictures.
//!
//! Hugging Face writes `preprocessor_config.json`, timm `config.json` and open_clip `open_clip_config.json`. Each names
//! things in its own way, and akin has one way: resize, centre crop, normalise. What a file asks for beyond that is an
//! error, or is said if it changes nothing in the numbers.

use std::path::{Path, PathBuf};

use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_core::image::{Channels, Filter, Normalisation, Preprocessing, PreprocessingNumbers};
use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::graph::Element;

/// The preprocessing of an ONNX file's pictures, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The preprocessing.
    pub preprocessing: Preprocessing,
    /// The file that says it; none if there is no such file, and it is ImageNet's.
    pub file: Option<PathBuf>,
    /// Settings of the file that are not followed, because they say nothing of a single picture's numbers.
    pub unknown: Vec<String>,
}

/// The largest file of settings.
const MAX_BYTES: u64 = 1 << 20;

type Reader = fn(&Map<String, Value>, &mut Vec<String>) -> Result<Option<PreprocessingNumbers>>;

/// The files beside a model, by precedence.
const FILES: [(&str, Reader); 3] =
    [("preprocessor_config.json", hugging_face), ("open_clip_config.json", open_clip), ("config.json", timm)];

/// Finds what stands beside an ONNX file, or in the folder above it, where Hugging Face's exports have it. Without such a
/// file it is ImageNet's: the shorter side to 256, the centre of 224, bilinear; in proportion for another side. A graph that
/// takes bytes gets them as they are.
///
/// # Errors
///
/// A file that cannot be read, or that asks for what akin does not do.
pub fn find(model: &Path, side: Option<u32>, element: Element) -> Result<Found> {
    let folder = model.parent().unwrap_or(Path::new(""));
    for folder in [Some(folder), folder.parent().filter(|_| folder.ends_with("onnx"))].into_iter().flatten() {
        for (name, read) in FILES {
            let file = folder.join(name);
            if !file.is_file() {
                continue;
            }
            let mut unknown = Vec::new();
            if let Some(mut numbers) = read_file(&file, read, &mut unknown)? {
                if element == Element::Byte {
                    (numbers.scale, numbers.mean, numbers.deviation) = (1.0, [0.0; 3], [1.0; 3]);
                }
                let preprocessing = Preprocessing::try_from(numbers)
                    .map_err(|error| anyhow!(error).context(file.display().to_string()))?;
                return Ok(Found { preprocessing, file: Some(file), unknown });
            }
        }
    }
    without_file(side, element)
}

/// The preprocessing of [`find`] where there is no file.
///
/// # Errors
///
/// A side that is out of range.
pub fn without_file(side: Option<u32>, element: Element) -> Result<Found> {
    let crop = side.unwrap_or(crate::USUAL_SIDE);
    let mut numbers = Preprocessing::new(Normalisation::Imagenet, crop)?.numbers().clone();
    numbers.resize = (crop * 256).div_ceil(224);
    if element == Element::Byte {
        (numbers.scale, numbers.mean, numbers.deviation) = (1.0, [0.0; 3], [1.0; 3]);
    }
    Ok(Found { preprocessing: numbers.try_into()?, file: None, unknown: Vec::new() })
}

fn read_file(file: &Path, read: Reader, unknown: &mut Vec<String>) -> Result<Option<PreprocessingNumbers>> {
    const HINT: &str = "correct the file, or set model.preprocessing in the config, which comes first";
    let length = file.metadata().advise(|| format!("{} cannot be read", file.display()), HINT)?.len();
    if length > MAX_BYTES {
        return Err(problem(format!("{} has {length} bytes, too many for settings", file.display()), HINT));
    }
    let bytes = read_regular_file(file).advise(|| format!("{} cannot be read", file.display()), HINT)?;
    let settings: Map<String, Value> =
        serde_json::from_slice(&bytes).advise(|| format!("{} is not a JSON object", file.display()), HINT)?;
    read(&settings, unknown).map_err(|error| problem(format!("{}: {error:#}", file.display()), HINT))
}

/// Numbers in RGB, from bytes / 255.
fn numbers(
    resize: u32,
    squeeze: bool,
    crop: u32,
    filter: Filter,
    mean: [f32; 3],
    deviation: [f32; 3],
) -> PreprocessingNumbers {
    let (channels, scale) = (Channels::Rgb, 1.0 / 255.0);
    PreprocessingNumbers { resize, squeeze, crop, filter, channels, scale, mean, deviation }
}

/// A value of the settings; none if it is absent or null.
fn get<T: for<'de> Deserialize<'de>>(settings: &Map<String, Value>, key: &str) -> Result<Option<T>> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::deserialize(value)
            .map(Some)
            .map_err(|error| anyhow!("{key} is {value}, which cannot be read: {error}")),
    }
}

/// A value of the settings that has to be there.
fn need<T: for<'de> Deserialize<'de>>(settings: &Map<String, Value>, key: &str) -> Result<T> {
    get(settings, key)?.ok_or_else(|| anyhow!("{key} is missing"))
}

fn filter(name: &str) -> Result<Filter> {
    match name {
        "bilinear" => Ok(Filter::Bilinear),
        "bicubic" => Ok(Filter::Bicubic),
        "lanczos" => Ok(Filter::Lanczos),
        other => Err(anyhow!("the interpolation is {other}; akin resizes with bilinear, bicubic or lanczos")),
    }
}

/// A size as Hugging Face writes it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Number(u32),
    Square { height: u32, width: u32 },
    Shortest { shortest_edge: u32 },
}

impl Size {
    /// The side, and whether it is that of a square.
    fn side(&self, a_number_is_square: bool) -> Result<(u32, bool)> {
        match *self {
            Self::Number(side) => Ok((side, a_number_is_square)),
            Self::Shortest { shortest_edge } => Ok((shortest_edge, false)),
            Self::Square { height, width } if height == width => Ok((height, true)),
            Self::Square { height, width } => {
                Err(anyhow!("the size is {width}×{height}, and akin gives squares"))
            }
        }
    }
}

/// `preprocessor_config.json` of transformers.
fn hugging_face(
    settings: &Map<String, Value>,
    unknown: &mut Vec<String>,
) -> Result<Option<PreprocessingNumbers>> {
    // What no numbers of a picture depend on, or what is always done.
    const HARMLESS: [&str; 18] = [
        "_valid_processor_keys",
        "auto_map",
        "crop_size",
        "data_format",
        "default_to_square",
        "device",
        "disable_grouping",
        "do_convert_rgb",
        "feature_extractor_type",
        "image_mean",
        "image_processor_type",
        "image_std",
        "input_data_format",
        "processor_class",
        "resample",
        "rescale_factor",
        "return_tensors",
        "size",
    ];
    const STEPS: [&str; 5] = ["crop_pct", "do_center_crop", "do_normalize", "do_rescale", "do_resize"];
    for (key, value) in settings {
        let is_off = matches!(value, Value::Null | Value::Bool(false));
        match key.as_str() {
            "do_pad" | "include_top" | "rescale_offset" | "do_thumbnail" | "do_align_long_axis"
                if !is_off =>
            {
                return Err(anyhow!("{key} is {value}, which akin does not do"));
            }
            key if !is_off && !HARMLESS.contains(&key) && !STEPS.contains(&key) => {
                unknown.push(key.to_owned())
            }
            _ => {}
        }
    }
    let kind: String = match get(settings, "image_processor_type")? {
        Some(kind) => kind,
        None => get(settings, "feature_extractor_type")?.unwrap_or_default(),
    };
    let is_on = |key: &str| get::<bool>(settings, key).map(|value| value.unwrap_or(true));
    if !is_on("do_resize")? {
        return Err(anyhow!("do_resize is false, and akin's encoders take pictures of one size"));
    }
    let filter = filter(match get::<u32>(settings, "resample")?.unwrap_or(2) {
        0 => "nearest",
        1 => "lanczos",
        2 => "bilinear",
        3 => "bicubic",
        4 => "box",
        _ => "hamming",
    })?;
    let size: Size = need(settings, "size")?;
    // A bare number is the shorter side where a crop follows, else both sides.
    let crops = get::<bool>(settings, "do_center_crop")?.unwrap_or(settings.contains_key("crop_size"));
    let (side, square) = size.side(get::<bool>(settings, "default_to_square")?.unwrap_or(!crops))?;
    let (resize, squeeze, crop) = if kind.starts_with("ConvNext") {
        // A picture smaller than 384 is cut from a larger one; a larger one is squeezed.
        let share: f64 = get(settings, "crop_pct")?.unwrap_or(224.0 / 256.0);
        if side < 384 { ((f64::from(side) / share) as u32, false, side) } else { (side, true, side) }
    } else if crops {
        let crop: Size = need(settings, "crop_size")?;
        (side, square, crop.side(true)?.0)
    } else if square {
        (side, true, side)
    } else {
        return Err(anyhow!(
            "the shorter side becomes {side} pixels and nothing is cropped, but akin's encoders take squares"
        ));
    };
    let scale = if is_on("do_rescale")? {
        get::<f64>(settings, "rescale_factor")?.unwrap_or(1.0 / 255.0) as f32
    } else {
        1.0
    };
    let (mean, deviation) = if is_on("do_normalize")? {
        (need(settings, "image_mean")?, need(settings, "image_std")?)
    } else {
        ([0.0; 3], [1.0; 3])
    };
    Ok(Some(PreprocessingNumbers { scale, ..numbers(resize, squeeze, crop, filter, mean, deviation) }))
}

/// `config.json` of timm; none for a `config.json` of something else.
fn timm(settings: &Map<String, Value>, _: &mut Vec<String>) -> Result<Option<PreprocessingNumbers>> {
    let settings = match settings.get("pretrained_cfg") {
        Some(Value::Object(inner)) => inner,
        _ if settings.contains_key("input_size") => settings,
        _ => return Ok(None),
    };
    let [channels, height, width]: [u32; 3] = need(settings, "input_size")?;
    if channels != 3 || height != width {
        return Err(anyhow!(
            "input_size is {channels}×{height}×{width}, and akin gives square pictures in RGB"
        ));
    }
    let share: f64 = get(settings, "crop_pct")?.unwrap_or(0.875);
    if !(share > 0.0 && share <= 1.0) {
        return Err(anyhow!("crop_pct is {share}; it is a share from 0 to 1"));
    }
    let squeeze = match get::<String>(settings, "crop_mode")?.as_deref().unwrap_or("center") {
        "center" => false,
        "squash" => true,
        other => return Err(anyhow!("crop_mode is {other}; akin crops as center and squash do")),
    };
    let resize = (f64::from(height) / share).floor().min(f64::from(u32::MAX)) as u32;
    let filter = filter(&get::<String>(settings, "interpolation")?.unwrap_or_else(|| "bilinear".into()))?;
    Ok(Some(numbers(resize, squeeze, height, filter, need(settings, "mean")?, need(settings, "std")?)))
}

/// `open_clip_config.json`; none if it says nothing of preprocessing.
fn open_clip(settings: &Map<String, Value>, _: &mut Vec<String>) -> Result<Option<PreprocessingNumbers>> {
    /// OpenAI's, open_clip's defaults.
    const MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
    const DEVIATION: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];
    let Some(Value::Object(own)) = settings.get("preprocess_cfg") else { return Ok(None) };
    let of_model =
        settings.get("model_cfg").and_then(|model| model.pointer("/vision_cfg/image_size")).cloned();
    let size = own.get("size").cloned().or(of_model).unwrap_or_else(|| 224.into());
    let side = match &size {
        Value::Array(sides) if sides.len() == 2 && sides[0] == sides[1] => sides[0].as_u64(),
        other => other.as_u64(),
    };
    let side = side
        .and_then(|side| u32::try_from(side).ok())
        .ok_or_else(|| anyhow!("the size is {size}, and akin gives squares"))?;
    let squeeze = match get::<String>(own, "resize_mode")?.as_deref().unwrap_or("shortest") {
        "shortest" => false,
        "squash" => true,
        other => return Err(anyhow!("resize_mode is {other}; akin resizes as shortest and squash do")),
    };
    let filter = filter(&get::<String>(own, "interpolation")?.unwrap_or_else(|| "bicubic".into()))?;
    let (mean, deviation) = (get(own, "mean")?.unwrap_or(MEAN), get(own, "std")?.unwrap_or(DEVIATION));
    Ok(Some(numbers(side, squeeze, side, filter, mean, deviation)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn found(file: &str, content: &str) -> Result<Found> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(file), content).unwrap();
        find(&folder.path().join("model.onnx"), None, Element::Float)
    }

    fn sizes(file: &str, content: &str) -> (u32, bool, u32, Filter) {
        let found = found(file, content).unwrap();
        let numbers = found.preprocessing.numbers();
        (numbers.resize, numbers.squeeze, numbers.crop, numbers.filter)
    }

    const MEANS: &str = r#""image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]"#;

    #[test]
    fn hugging_face_names_its_steps() {
        let read = |steps: &str| sizes("preprocessor_config.json", &format!("{{{steps}, {MEANS}}}"));
        let dinov2 = r#""image_processor_type": "BitImageProcessor", "do_resize": true, "size": {"shortest_edge": 256},
            "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "do_rescale": true"#;
        assert_eq!(read(dinov2), (256, false, 224, Filter::Bicubic));
        let siglip = r#""size": {"height": 224, "width": 224}, "resample": 2"#;
        assert_eq!(read(siglip), (224, true, 224, Filter::Bilinear));
        let deit = r#""size": 256, "default_to_square": true, "resample": 3, "do_center_crop": true, "crop_size": 224"#;
        assert_eq!(read(deit), (256, true, 224, Filter::Bicubic));
        let convnext = r#""image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3"#;
        assert_eq!(read(convnext), (256, false, 224, Filter::Bicubic));
    }

    #[test]
    fn what_akin_does_not_do_is_refused_or_said() {
        let read = |steps: &str| found("preprocessor_config.json", &format!("{{{steps}, {MEANS}}}"));
        for steps in [
            r#""size": {"height": 224, "width": 336}"#,
            r#""size": {"shortest_edge": 224}, "do_center_crop": false"#,
            r#""size": 224, "resample": 0"#,
            r#""size": 224, "do_resize": false"#,
            r#""size": 224, "do_pad": true"#,
            r#""size": "large""#,
            r#""resample": 2"#,
            r#""size": 224, "do_center_crop": true, "crop_size": 256"#,
        ] {
            let error = read(steps).unwrap_err();
            assert!(format!("{error:#}").contains("preprocessor_config.json"), "{steps}: {error:#}");
        }
        assert_eq!(read(r#""size": 224, "colour_cast": 3"#).unwrap().unknown, ["colour_cast"]);
    }

    #[test]
    fn timm_crops_a_share() {
        let cfg = |more: &str| {
            format!(
                r#"{{"architecture": "vit", "pretrained_cfg": {{"input_size": [3, 224, 224], "crop_pct": 0.9,
                "interpolation": "bicubic", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]{more}}}}}"#
            )
        };
        assert_eq!(sizes("config.json", &cfg("")), (248, false, 224, Filter::Bicubic));
        assert_eq!(
            sizes("config.json", &cfg(r#", "crop_mode": "squash""#)),
            (248, true, 224, Filter::Bicubic)
        );
        assert!(found("config.json", &cfg(r#", "crop_mode": "border""#)).is_err());
        // A `config.json` of transformers says nothing of pictures.
        assert_eq!(found("config.json", r#"{"model_type": "vit"}"#).unwrap().file, None);
    }

    #[test]
    fn open_clip_has_defaults() {
        let content = r#"{"model_cfg": {"vision_cfg": {"image_size": 224}}, "preprocess_cfg": {"mean": [0.5, 0.5, 0.5]}}"#;
        assert_eq!(sizes("open_clip_config.json", content), (224, false, 224, Filter::Bicubic));
    }

    #[test]
    fn without_a_file_it_is_imagenets() {
        let of = |side| {
            let found = find(Path::new("nowhere/model.onnx"), side, Element::Float).unwrap();
            let numbers = found.preprocessing.numbers().clone();
            (found.file, numbers.resize, numbers.crop)
        };
        assert_eq!(of(None), (None, 256, 224));
        assert_eq!(of(Some(384)), (None, 439, 384));
    }
}
