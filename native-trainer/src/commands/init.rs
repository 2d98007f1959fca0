//! `akin init`: looks at a folder of images and writes a config for it.

use std::collections::HashSet;
use std::path::{Path, PathBuf, absolute};

use akin_base::files::{check_ending, check_output, read_regular_file, write_atomic};
use akin_base::problem::{Advise, a_few, did_you_mean, parts, problem};
use akin_base::quantities::counted;
use akin_base::{directory, machine, shell, terminal};
use akin_core::image::Pixels;
use akin_core::models::BackboneConfig;
use anyhow::Result;
use clap::Args;
use toml::{Table, Value};

use crate::config::device;
use crate::config::explained::explained;
use crate::config::{DataConfig, DeviceName, Missing, SamplerConfig, Selection, Source, SplitConfig};
use crate::data::Dataset;
use crate::data::check::{alike_names, same_classes, unknown};
use crate::data::detect::{Layout, detect, sizes};
use crate::pictures::loader::Pictures;
use crate::training::check_encoder;

/// Write a config for a folder of images.
///
/// Looks at the folder: a folder tree, in which each level of folders is a level of the taxonomy; a CSV or Parquet file
/// that lists images with their labels; or a copy of a published data set. Writes a config with settings for this
/// machine, and with every other setting explained. On a terminal it asks for what is not given.
///
/// Then `akin train CONFIG` trains a model, and `akin serve RUN` shows it in the browser.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The folder of the images, or a CSV or Parquet file that lists them. Asked for on a terminal.
    #[arg(value_name = "PHOTOS")]
    pub photos: Option<PathBuf>,
    /// The config to write [default: the name of the folder, with .toml, in the current directory].
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
    /// Replace FILE.toml if it exists.
    #[arg(long)]
    pub overwrite: bool,
    /// The names of the levels, coarse to fine. For folders, one for each level of folders; for a CSV or Parquet file, columns.
    #[arg(long, value_name = "LEVEL,…", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// What to do with an image whose labels are missing from some level down [default: unknown].
    #[arg(long, value_enum, value_name = "POLICY")]
    pub missing: Option<Missing>,
    /// For a CSV or Parquet file: a class is its whole label path, so that equal names below different labels are different
    /// classes.
    #[arg(long)]
    pub qualify: bool,
    /// The backbone, from `akin list backbones` [default: small_resnet, which needs no pretrained weights].
    #[arg(long, value_name = "NAME")]
    pub backbone: Option<String>,
    /// A file with pretrained weights of the backbone.
    #[arg(long, value_name = "FILE", requires = "backbone")]
    pub weights: Option<PathBuf>,
    /// An ONNX file as the backbone, such as an encoder that was trained elsewhere: a head is trained on its features.
    #[arg(long, value_name = "FILE.onnx", conflicts_with_all = ["backbone", "weights"])]
    pub onnx: Option<PathBuf>,
    /// Ask nothing.
    #[arg(long)]
    pub yes: bool,
}

/// About how many batches to train on: a few minutes for the small network.
const STEPS: usize = 400;
/// The same with a GPU.
const STEPS_WITH_GPU: usize = 4_000;

/// The sides of images to choose from, for a backbone that takes any.
const SIDES: [u32; 4] = [32, 48, 64, 128];
/// The largest of them without a GPU.
const LARGEST_SIDE: u32 = 64;

/// Finds the layout, asks, and writes the config.
pub fn run(args: &InitArgs) -> Result<()> {
    let asks = !args.yes && terminal::can_ask();
    let photos = match &args.photos {
        Some(photos) => photos.clone(),
        None if asks => PathBuf::from(terminal::ask("Which folder holds the images?", Some("."))?),
        None => {
            return Err(problem(
                match args.yes {
                    true => "the folder of the images is not given, and `--yes` asks nothing",
                    false => "the folder of the images is not given, and there is no terminal to ask on",
                },
                "name it: `akin init PHOTOS`",
            ));
        }
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("{}.toml", name_of(&photos)?)),
    };
    refuse_existing(&out, args.overwrite)?;
    let model = model(args, &out)?;
    let mut layout = detect(&photos)?;
    terminal::say(format_args!("       Found {}", layout.found));
    for note in &layout.notes {
        terminal::say(format_args!("        Note {note}"));
    }
    if !args.levels.is_empty() {
        layout.name_levels(&args.levels)?;
    } else if asks && layout.names_levels {
        let known = layout.levels().join(", ");
        let answer = terminal::ask("What do you call the levels, coarse to fine?", Some(&known))?;
        let levels: Vec<String> = answer.split(',').map(|name| name.trim().to_owned()).collect();
        layout.name_levels(&levels)?;
    }
    if layout.split.contains_key("test_fraction") {
        // So that trainings with other seeds can be compared and shown on one page.
        layout.split.insert("seed".into(), 0.into());
    }
    set_options(&mut layout, args)?;
    let as_config = "write the config by hand; GUIDE.md shows one";
    let fault = || format!("the layout of {} cannot be written as a config", photos.display());
    let data: DataConfig = layout.data.clone().try_into().advise(fault, as_config)?;
    let split: SplitConfig = layout.split.clone().try_into().advise(fault, as_config)?;
    let is_drawn = split.is_drawn();
    let dataset = Dataset::load(&Selection { data, split, seed: 0 }).map_err(with_options)?;
    check_classes(&dataset, is_drawn)?;
    terminal::say(format_args!("     Counted {}", sizes(&dataset)));
    for remark in (1..dataset.taxonomy.depth()).filter_map(|level| same_classes(&dataset, level)) {
        terminal::say(format_args!("        Note {remark}; levels run from coarse to fine"));
    }
    let levels = 1..=dataset.taxonomy.depth();
    for remark in levels.flat_map(|level| [unknown(&dataset, level), alike_names(&dataset, level)]).flatten()
    {
        terminal::say(format_args!("        Note {remark}"));
    }

    let has_gpu = device::has_gpu();
    let values = values(&layout, model, &dataset, &out, has_gpu)?;
    let text = explained(&values, &comments(&layout, &out, &values, has_gpu));
    // What cannot be read back is not written.
    let read = Source::from_text(&out, text.clone(), None, &[])?.config(&Table::new())?;
    if read.model.weights.is_some() {
        check_encoder(&read, &device::open(DeviceName::Cpu)?)?;
    }
    write_atomic(&out, |file| file.write_all(text.as_bytes()))?;
    terminal::print(&out.display().to_string())?;
    let config = shell::path(&out);
    terminal::say(format_args!("        Next `akin train {config}` trains a model"));
    terminal::say(format_args!(
        "             `akin data check {config}` looks for damaged and repeated images first"
    ));
    Ok(())
}

/// Writes what the options say of labels.
fn set_options(layout: &mut Layout, args: &InitArgs) -> Result<()> {
    let kind = layout.data.get("kind").and_then(Value::as_str).unwrap_or_default();
    let is_table = ["csv", "parquet"].contains(&kind);
    if args.qualify && !is_table {
        return Err(problem(
            "`--qualify` is for a CSV or Parquet file",
            "leave it out: in a folder tree a class is its path",
        ));
    }
    if let Some(missing) = args.missing {
        if !is_table && kind != "folder" {
            return Err(problem(
                format!("`--missing` is for images of your own, and this is {}", layout.found),
                "leave it out: its labels are read as they were published",
            ));
        }
        layout.data.insert("missing".into(), Value::try_from(missing)?);
    }
    if args.qualify {
        layout.data.insert("qualify".into(), true.into());
    }
    Ok(())
}

/// Adds to a hint at a setting of a config, which is not written yet, the option that sets it.
fn with_options(error: anyhow::Error) -> anyhow::Error {
    let (message, Some(hint)) = parts(&error) else { return error };
    match () {
        () if hint.contains("data.missing") => {
            problem(message, format!("{hint}: `akin init --missing unknown` does"))
        }
        () if hint.contains("qualify") => problem(message, format!("{hint}: `akin init --qualify` does")),
        () => error,
    }
}

/// Refuses splits that are drawn with too few classes, and warns of given ones: among images of a single class every result
/// is right.
fn check_classes(dataset: &Dataset, is_drawn: bool) -> Result<()> {
    let (finest, splits) = (dataset.taxonomy.depth(), &dataset.splits);
    for (name, items) in [("training", &splits.train), ("evaluation", &splits.query)] {
        let classes: HashSet<u32> = dataset.classes(items, finest).into_iter().collect();
        if classes.len() >= 2 {
            continue;
        }
        let fault = format!("the images for {name} have only {}", counted(classes.len(), "class", "classes"));
        if is_drawn {
            let all = counted(dataset.taxonomy.class_count(finest), "class", "classes");
            return Err(problem(
                format!(
                    "of {all}, half are held out to evaluate on classes that were not trained on: {fault}"
                ),
                "give images of at least 4 classes, 2 to train on and 2 to evaluate on",
            ));
        }
        terminal::warn(format!("{fault}, but a score needs at least 2"));
    }
    Ok(())
}

/// The name of the folder, or of the file.
fn name_of(photos: &Path) -> Result<String> {
    let path = absolute(photos).advise(|| format!("{:?} is no path", photos.display()), "name a folder")?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        problem(format!("{} has no name", photos.display()), "give a name with `--out FILE.toml`")
    })
}

fn refuse_existing(out: &Path, overwrite: bool) -> Result<()> {
    check_ending("--out", out, "toml")?;
    let name = out.to_string_lossy();
    if name.contains(char::is_control) {
        return Err(problem(
            format!("the name of the config, {name:?}, has a control character, such as a line end"),
            "choose another with `--out FILE.toml`",
        ));
    }
    check_output(out, &[], overwrite)?;
    directory::refuse_own_file(out)
}

/// The section `[model]` without its preprocessing.
fn model(args: &InitArgs, out: &Path) -> Result<Table> {
    if let Some(onnx) = &args.onnx {
        if !onnx.is_file() {
            return Err(problem(
                format!("there is no file {}", onnx.display()),
                "check the path of `--onnx`",
            ));
        }
        let path = relative_to(onnx, out)?;
        let cache = out.with_extension("features").file_name().map(PathBuf::from).unwrap_or_default();
        let mut model = Table::new();
        model.insert("backbone".into(), table([("kind", "onnx".into()), ("path", path.into())]));
        model.insert("freeze_backbone".into(), true.into());
        model.insert("feature_cache".into(), text(&cache)?);
        model.insert("head".into(), table([("dimension", 128.into()), ("layer_norm", true.into())]));
        return Ok(model);
    }
    let name = args.backbone.as_deref().unwrap_or("small_resnet");
    let names = || akin_core::models::BACKBONES.iter().map(|entry| entry.name);
    if !names().any(|known| known == name) {
        return Err(problem(
            format!("there is no backbone `{name}`"),
            format!("{}`akin list backbones` lists all of them", did_you_mean(name, names())),
        ));
    }
    let mut model = Table::new();
    if let Some(weights) = &args.weights {
        read_regular_file(weights)
            .advise(|| format!("the weights {} cannot be read", weights.display()), "check the path")?;
        model.insert("weights".into(), text(&absolute(weights)?)?);
    }
    model.insert("backbone".into(), table([("kind", name.into())]));
    model.insert("head".into(), table([("dimension", 128.into())]));
    Ok(model)
}

/// The values that differ from the defaults.
fn values(layout: &Layout, mut model: Table, dataset: &Dataset, out: &Path, has_gpu: bool) -> Result<Table> {
    let is_frozen = model.contains_key("freeze_backbone");
    let is_pretrained = is_frozen || model.contains_key("weights");
    let backbone: BackboneConfig = model["backbone"].clone().try_into()?;
    let batch = SamplerConfig::default().images();
    let steps_per_epoch = (dataset.splits.train.len() / batch).max(1);
    let steps = if has_gpu { STEPS_WITH_GPU } else { STEPS };
    let epochs = match is_frozen {
        // A step on stored features takes milliseconds.
        true => STEPS_WITH_GPU.div_ceil(steps_per_epoch).clamp(3, 400),
        false => steps.div_ceil(steps_per_epoch).clamp(3, 100),
    };

    let mut run = Table::new();
    run.insert("epochs".into(), (epochs as i64).into());
    let mut data = layout.data.clone();
    for key in ["path", "images"] {
        if let Some(Value::String(path)) = data.get_mut(key) {
            *path = relative_to(Path::new(path.as_str()), out)?;
        }
    }
    // The other backbones read images of the size that they were trained with.
    if backbone.entry().name == "small_resnet" {
        let largest = if has_gpu { SIDES[SIDES.len() - 1] } else { LARGEST_SIDE };
        let side = i64::from(side(dataset, largest)?);
        model.insert("preprocessing".into(), table([("name", "inception".into()), ("crop", side.into())]));
    }
    let mut optimizer = Table::new();
    if !is_pretrained {
        // Random weights learn faster than pretrained ones may.
        optimizer.insert("lr_backbone".into(), 2e-3.into());
        optimizer.insert("lr_head".into(), 2e-3.into());
    }
    let mut values = Table::new();
    values.insert("run".into(), run.into());
    values.insert("data".into(), data.into());
    if !layout.split.is_empty() {
        values.insert("split".into(), layout.split.clone().into());
    }
    values.insert("model".into(), model.into());
    // The features of a frozen backbone are computed once.
    if !is_frozen {
        values.insert("augment".into(), table([("flip", true.into())]));
    }
    let surrogate = table([("smooth_rank", false.into())]);
    values.insert(
        "loss".into(),
        table([("kind", "happier".into()), ("lambda", 0.1.into()), ("surrogate", surrogate)]),
    );
    values.insert("optimizer".into(), optimizer.into());
    Ok(values)
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A side for images of which some are looked at: no more than their shorter side, in the middle.
fn side(dataset: &Dataset, largest: u32) -> Result<u32> {
    const LOOKED_AT: usize = 32;
    let items = dataset.paths.len();
    let pictures = Pictures::of(dataset);
    let mut sides: Vec<u32> = (0..items)
        .step_by(items.div_ceil(LOOKED_AT).max(1))
        .filter_map(|item| pictures.get(item))
        .map(|picture: std::sync::Arc<Pixels>| picture.width().min(picture.height()))
        .collect();
    pictures.check()?;
    sides.sort_unstable();
    let Some(&middle) = sides.get(sides.len() / 2) else {
        let names: Vec<_> = dataset.paths.iter().take(LOOKED_AT).map(|path| path.display()).collect();
        return Err(problem(
            format!("none of these images can be read: {}", a_few(&names)),
            "give JPEG, PNG, WebP, GIF, BMP or TIFF files; `akin data check` says what is wrong with each",
        ));
    };
    let fitting = SIDES.into_iter().rev().find(|&side| side <= middle.min(largest));
    Ok(fitting.unwrap_or(SIDES[0]))
}

/// A path as a config in `out` names it: relative to its folder if it is inside, else absolute.
fn relative_to(path: &Path, out: &Path) -> Result<String> {
    let (path, out) = (absolute(path)?, absolute(out)?);
    let folder = out.parent().unwrap_or(Path::new("/"));
    let short = match path.strip_prefix(folder) {
        Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Ok(inside) => inside,
        Err(_) => &path,
    };
    match text(short)? {
        Value::String(path) => Ok(path.trim_end_matches('/').to_owned()),
        other => Ok(other.to_string()),
    }
}

/// A path as a value.
fn text(path: &Path) -> Result<Value> {
    let text = path.to_str().ok_or_else(|| {
        problem(
            format!("the path {} is not UTF-8", path.display()),
            "rename it: a config is UTF-8 text and cannot hold the path",
        )
    })?;
    // `${` begins the name of an environment variable.
    if text.contains("${") {
        return Err(problem(
            format!("the path {text} contains `${{`"),
            "rename it: in a config that names a variable",
        ));
    }
    Ok(text.into())
}

/// What stands at the top of the config.
fn comments(layout: &Layout, out: &Path, values: &Table, has_gpu: bool) -> Vec<String> {
    let config = shell::path(out);
    let hold_out = "Half of the classes are held out: retrieval is tested on classes that were not trained on, and \
                    their images are the gallery of the page. split.test_fraction changes the share.";
    let mut comments = vec![
        // A name of a folder may have a line end, which would end the comment.
        format!(
            "Written by akin init for {}, on {}.",
            terminal::one_line(&layout.found),
            machine::describe()
        ),
        format!("Train: akin train {config}"),
        "A line that begins with # and a key shows a setting at its default; remove the # to change it."
            .into(),
    ];
    if layout.split.contains_key("test_fraction") {
        comments.push(hold_out.into());
    }
    if !has_gpu {
        // The other backbones read images of the size that they were trained with.
        let has_small_images = values["model"].get("preprocessing").is_some();
        let comment = match has_small_images {
            true => {
                "The images are small and the training is short, for a machine without a GPU. Raise \
                 model.preprocessing.crop and run.epochs for better results."
            }
            false => {
                "The training is short, for a machine without a GPU. Raise run.epochs for better results."
            }
        };
        comments.push(comment.into());
    }
    comments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_folder_of_the_config() {
        for (path, out, expected) in [
            ("/a/photos", "/a/photos.toml", "photos"),
            ("/a/photos/", "/a/photos/c.toml", "."),
            ("/b/photos", "/a/c.toml", "/b/photos"),
        ] {
            assert_eq!(relative_to(Path::new(path), Path::new(out)).unwrap(), expected);
        }
        assert!(relative_to(Path::new("/a/${HOME}"), Path::new("/a/c.toml")).is_err());
    }
}
