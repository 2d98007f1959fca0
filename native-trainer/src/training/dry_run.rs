//! What a training would do, without doing it: its data, batches and steps, the memory and disk that it needs, and the
//! pictures of its first batch.

use akin_base::directory::{self, Kind};
use akin_base::machine;
use akin_base::problem::{a_few, parts, problem};
use akin_base::quantities::{count, counted, rounded, rounded_bytes};
use akin_base::text_table::align_words;
use akin_core::encoder::{Encoder, Precision};
use akin_core::image::Pixels;
use akin_core::losses::Loss;
use akin_figures::contact_sheet::{Cell, contact_sheet};
use anyhow::Result;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use crate::config::device::{has_gpu, is_cpu};
use crate::config::{Config, DeviceName, setting_name};
use crate::data::Dataset;
use crate::pictures::loader::{CACHE_BYTES, Pictures, Position, Views};
use crate::runs::run::Run;
use crate::training::checks::late_settings;
use crate::training::sampler::Sampler;
use crate::training::{check_loss, describe_model, no_readable_image, outline_encoder};

/// The most pictures of a contact sheet.
const SHOWN: usize = 64;

/// What to change so that a step needs less memory.
pub const LOWER_MEMORY: &str = "lower sampler.classes_per_batch, sampler.images_per_class, optimizer.chunk or \
    model.preprocessing.crop, take random batches instead of the whole set, or set run.precision = \"half\" on a GPU";

/// The pictures of which the sizes are looked at.
const MEASURED: usize = 2;

/// The pixels of the images with which the memory of the forward pass is measured: two of 224×224. Fewer would need too
/// few pages of memory to count.
const MEASURED_PIXELS: u32 = 2 * 224 * 224;

/// What a training would do.
pub struct DryRun {
    /// The plan, a line for each part.
    pub text: String,
    /// The first batch as a contact sheet, a PNG file.
    pub sheet: Vec<u8>,
    /// The memory that a step needs on the first device, in bytes.
    pub memory: u64,
    /// Settings that would take effect after the end of the training.
    pub late: Vec<String>,
    /// What the training lacks: files, a directory, memory, disk.
    pub lacking: Vec<Lack>,
}

/// Something that a training lacks.
#[derive(Debug)]
pub struct Lack {
    what: String,
    hint: String,
}

/// The error of a training that lacks something.
pub fn lacking_problem(lacking: &[Lack]) -> anyhow::Error {
    let what: Vec<&str> = lacking.iter().map(|lack| lack.what.as_str()).collect();
    let hints: Vec<&str> = lacking.iter().map(|lack| lack.hint.as_str()).collect();
    problem(format!("the training lacks {}", a_few(&what)), hints.join("; "))
}

/// The directory of a run, if the training will refuse it.
pub fn lacking_directory(config: &Config, overwrite: bool) -> Option<Lack> {
    let (message, hint) = parts(&directory::check(Kind::Run, &config.run.out, overwrite).err()?);
    Some(Lack { what: format!("a directory: {message}"), hint: hint.unwrap_or_default() })
}

/// Refuses a training on the CPU for whose step the memory is not there. A GPU refuses by itself, but a system without
/// memory ends the process.
///
/// # Errors
///
/// Too little memory, and the errors of a training before its first step.
pub fn check_memory(run: &Run, dataset: &Dataset, pictures: &Pictures, device: &Device) -> Result<()> {
    if !is_cpu(device) {
        return Ok(());
    }
    let mut config = run.config.clone();
    // Other weights need the same memory.
    config.model.weights = None;
    let levels = dataset.taxonomy.level_names();
    let sampler =
        Sampler::new(&dataset.splits.train, &dataset.labels, levels, &config.sampler, config.run.seed)?;
    let encoder = outline_encoder(&config, &device.clone().autodiff())?;
    let weights = Weights::new(&config, &encoder, &check_loss(run, dataset, pictures, device)?);
    let memory = memory(&config, &encoder, &weights, sampler.largest_batch(), true, activations);
    lacking_memory(&config, &memory, true).map_or(Ok(()), |lack| Err(lacking_problem(&[lack])))
}

/// Reads the data set, makes the model and the loss, and draws the first batch. Nothing is trained or written.
///
/// # Errors
///
/// The errors of a training before its first step. A missing file of weights and too little memory or disk are listed
/// instead.
pub fn dry_run(config: Config) -> Result<DryRun> {
    plan(config, activations)
}

/// A dry run for which `activations` gives the bytes that a forward pass keeps for the gradient of an image, if they are
/// known.
fn plan(mut config: Config, activations: impl Fn(&Encoder) -> Option<u64>) -> Result<DryRun> {
    let mut lacking = Vec::new();
    if let Some(weights) = config.model.weights.take_if(|path| !path.is_file()) {
        lacking.push(Lack {
            what: format!("the weights {}", weights.display()),
            hint: "correct model.weights; the comment at the top of a recipe says where to find them".into(),
        });
    }
    // What the plan says does not depend on the device, and the CPU is always there.
    let device = Device::flex();
    let dataset = Dataset::load(&config.selection())?;
    let levels = dataset.taxonomy.level_names();
    let train = &dataset.splits.train;
    let sampler = Sampler::new(train, &dataset.labels, levels, &config.sampler, config.run.seed)?;
    let pictures = Pictures::of(&dataset);
    let encoder = outline_encoder(&config, &device.clone().autodiff())?;
    let run = Run { directory: config.run.out.clone(), config: config.clone() };
    let loss = check_loss(&run, &dataset, &pictures, &device)?;

    let (views, items) = first_batch(&config, &sampler, &encoder, &pictures);
    pictures.check()?;
    if views.is_empty() {
        return Err(no_readable_image());
    }
    let weights = Weights::new(&config, &encoder, &loss);
    let steps_per_epoch = sampler.steps_per_epoch();
    let steps = config.run.total_steps(steps_per_epoch);
    let batch_size = sampler.largest_batch();
    let decoded = decoded(&pictures, &items, dataset.paths.len());
    pictures.check()?;
    let on_cpu = match config.run.device {
        DeviceName::Cpu => true,
        DeviceName::Auto => !has_gpu(),
        _ => false,
    };
    let memory = memory(&config, &encoder, &weights, batch_size, on_cpu, activations);
    let disk = disk(&config, &weights);
    lacking.extend(lacking_memory(&config, &memory, on_cpu));
    lacking.extend(lacking_disk(&config, disk));

    let mut rows = vec![
        ("Data", describe_data(&config, &dataset)),
        ("Model", describe_model(&config, &encoder)),
        ("Loss", describe_loss(&config, weights.proxies)),
        ("Batch", describe_batch(&config, &sampler)),
    ];
    rows.extend(sampler.remarks(&config.sampler).into_iter().map(|remark| ("", remark)));
    rows.push(("Length", describe_length(steps, steps_per_epoch, batch_size)));
    let pictures = format!("; and up to {} for decoded pictures", rounded_bytes(decoded));
    rows.push(("Memory", memory.text + if config.model.freeze_backbone { "" } else { &pictures }));
    rows.push(("Disk", format!("{} in {}", rounded_bytes(disk), config.run.out.display())));
    if let Some(published) = config.published.as_ref().filter(|published| !published.results.is_empty()) {
        rows.push(("Published", counted(published.results.len(), "row", "rows") + " in " + &published.paper));
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(part, text)| vec![part.to_owned(), text]).collect();
    let title = format!("{}: the first batch of {}", config.run.name, counted(batch_size, "image", "images"));
    let shown = if items.len() < batch_size {
        format!(", of which these are {}", items.len())
    } else {
        String::new()
    };
    let cells: Vec<Cell> = views
        .into_iter()
        .zip(&items)
        .map(|(picture, &item)| Cell { picture, captions: captions(&dataset, item) })
        .collect();
    Ok(DryRun {
        text: align_words(&["plan", &config.run.name], &rows, akin_base::terminal::width()),
        sheet: contact_sheet(&(title + &shown), &cells)?,
        memory: memory.first,
        late: late_settings(&config, &dataset, steps_per_epoch),
        lacking,
    })
}

/// The first views of the first batch, with their items. Those of a frozen backbone are not augmented.
fn first_batch(
    config: &Config,
    sampler: &Sampler,
    encoder: &Encoder,
    pictures: &Pictures,
) -> (Vec<Pixels>, Vec<usize>) {
    let mut items = sampler.batch(0, 0);
    items.truncate(SHOWN);
    let preprocessing = encoder.preprocessing();
    if config.model.freeze_backbone {
        let view = |&item: &usize| Some((preprocessing.view(&*pictures.get(item)?).ok()?, item));
        return items.iter().filter_map(view).unzip();
    }
    let views = Views {
        augment: config.augment.clone().unwrap_or_default(),
        preprocessing: preprocessing.clone(),
        seed: config.run.seed,
    };
    let batch = views.batch(pictures, &items, Position { epoch: 0, step: 0 });
    (batch.views, batch.items)
}

/// The name of the finest class of an item, and that of the class above it.
fn captions(dataset: &Dataset, item: usize) -> [String; 2] {
    let row = dataset.labels.row(item);
    let above = dataset.taxonomy.path_names(row).into_iter().rev().nth(1).unwrap_or_default();
    [dataset.taxonomy.finest_name(row), above.to_owned()]
}

fn describe_data(config: &Config, dataset: &Dataset) -> String {
    let train = &dataset.splits.train;
    let classes: Vec<String> = dataset
        .taxonomy
        .level_names()
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let mut classes = dataset.classes(train, place + 1);
            classes.sort_unstable();
            classes.dedup();
            format!("{name} {}", count(classes.len()))
        })
        .collect();
    let queries = counted(dataset.splits.query.len(), "query ranks", "queries rank");
    let ranked = match dataset.splits.leave_one_out() {
        true => "each other".to_owned(),
        false if dataset.splits.gallery == *train => "the training images".to_owned(),
        false => counted(dataset.splits.gallery.len(), "image", "images"),
    };
    format!(
        "{}: {} for training (classes: {}); {queries} {ranked}",
        config.data.kind().name(),
        counted(train.len(), "image", "images"),
        classes.join(", "),
    )
}

fn describe_loss(config: &Config, proxies: u64) -> String {
    let learned =
        if proxies > 0 { format!(", which learns {} numbers", rounded(proxies)) } else { String::new() };
    format!(
        "{}{learned}; {} updates the weights",
        config.loss.entry().title,
        setting_name(config.optimizer.rule)
    )
}

fn describe_batch(config: &Config, sampler: &Sampler) -> String {
    let size = counted(sampler.largest_batch(), "image", "images");
    let text = match sampler.classes_and_images() {
        Some(_) if sampler.largest_batch() < sampler.batch_size() => {
            format!("at most {size}: up to {}", config.sampler.describe())
        }
        Some(_) => format!("{size}: {}", config.sampler.describe()),
        None if config.has_whole_set_batches() => format!("{size}: {}", config.sampler.describe()),
        None => config.sampler.describe(),
    };
    let workers = match config.run.workers {
        1 => String::new(),
        workers => format!(", shared by {workers} workers"),
    };
    let precision = match config.precision() {
        Precision::Single => "",
        Precision::Half => ", in half precision",
    };
    let chunks = config.chunk().map(|chunk| format!(", in chunks of {}", count(chunk))).unwrap_or_default();
    text + &workers + &chunks + precision
}

fn describe_length(steps: u64, steps_per_epoch: usize, batch: usize) -> String {
    let epochs = steps as f64 / steps_per_epoch as f64;
    format!(
        "{} of {}: {}, {} views of images",
        counted(epochs.ceil() as usize, "epoch", "epochs"),
        counted(steps_per_epoch, "step", "steps"),
        counted(steps as usize, "step", "steps"),
        rounded(steps.saturating_mul(batch as u64)),
    )
}

/// Numbers of a training, each of four bytes.
struct Weights {
    /// Those of the encoder, with the statistics of normalisation.
    encoder: u64,
    /// Those of the encoder that learn.
    learning: u64,
    /// Those that the loss learns.
    proxies: u64,
}

impl Weights {
    fn new(config: &Config, encoder: &Encoder, loss: &Loss) -> Self {
        let backbone = if config.model.freeze_backbone { 0 } else { learning(&encoder.backbone) };
        Self {
            encoder: encoder.num_params() as u64,
            learning: backbone + encoder.head.as_ref().map_or(0, |head| head.num_params() as u64),
            proxies: loss.num_params() as u64,
        }
    }
}

/// The numbers of a module that have gradients.
fn learning(module: &impl Module) -> u64 {
    struct Count(u64);

    impl ModuleVisitor for Count {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                self.0 += param.lazy_shape().num_elements() as u64;
            }
        }
    }

    let mut count = Count(0);
    module.visit(&mut count);
    count.0
}

/// The memory of a training step.
struct Memory {
    /// That of all workers, in bytes; without the activations if they could not be measured.
    total: u64,
    /// That of the first worker, which needs the most.
    first: u64,
    text: String,
}

/// The memory of a step: weights, their gradients, the optimiser's numbers, the activations of the images that pass the
/// network at once, and the least that a loss of pairs needs: the score of each pair and its gradient. The activations are
/// measured: a forward pass of a few images, on the CPU.
fn memory(
    config: &Config,
    encoder: &Encoder,
    weights: &Weights,
    batch_size: usize,
    on_cpu: bool,
    activations: impl Fn(&Encoder) -> Option<u64>,
) -> Memory {
    let part = batch_size.div_ceil(config.run.workers);
    let at_once = config.chunk().unwrap_or(part).min(part);
    let learning = weights.learning + weights.proxies;
    let average = if config.optimizer.ema_decay.is_some() { weights.encoder } else { 0 };
    let fixed =
        4 * (weights.encoder + weights.proxies + average + learning * (1 + config.optimizer.rule.states()));
    let pairs = if config.loss.compares_items() { 2 * 4 * (batch_size as u64).pow(2) } else { 0 };
    let mut fixed_text = format!("{} for weights, gradients and optimiser", rounded_bytes(fixed));
    // The pairs of a usual batch are not worth a word.
    if pairs > fixed / 10 {
        let images = counted(batch_size, "image", "images");
        fixed_text += &format!(", at least {} for the pairs of {images}", rounded_bytes(pairs));
    }
    let activations = match config.precision() {
        _ if config.model.freeze_backbone => None,
        Precision::Single => activations(encoder),
        Precision::Half if on_cpu => activations(&encoder.in_half_precision()),
        // The forward pass is measured on the CPU, which needs other memory in half precision than a GPU does.
        Precision::Half => activations(encoder),
    };
    let precision = match config.precision() {
        Precision::Half if on_cpu => "; half precision saves no memory on the CPU",
        Precision::Half => ", measured in single precision",
        Precision::Single => "",
    };
    let first = fixed + pairs + activations.unwrap_or(0) * at_once as u64;
    // A worker after the first has a copy of the weights, and gradients.
    let other = 4 * (weights.encoder + weights.learning) + activations.unwrap_or(0) * at_once as u64;
    let workers = config.run.workers as u64;
    let total = first + (workers - 1) * other;
    let text = match activations {
        _ if config.model.freeze_backbone => format!("{fixed_text}; the backbone is not trained"),
        None => format!("{fixed_text}, and the activations of {}", counted(at_once, "image", "images")),
        Some(each) => {
            let step = match workers {
                1 => format!("about {} for a step", rounded_bytes(first)),
                _ if on_cpu => {
                    format!("about {} for a step of {workers} workers", rounded_bytes(total))
                }
                _ => format!(
                    "about {} for a step on the first of {workers} devices and {} on each other",
                    rounded_bytes(first),
                    rounded_bytes(other)
                ),
            };
            format!(
                "{step}: {fixed_text}, {} for the activations of each of {}{precision}",
                rounded_bytes(each),
                counted(at_once, "image", "images"),
            )
        }
    };
    Memory { total, first, text }
}

/// The bytes of all pictures of a data set when they are decoded, by those of these items, and at most those that are
/// kept.
fn decoded(pictures: &Pictures, items: &[usize], count: usize) -> u64 {
    let bytes = |picture: &Pixels| 3 * u64::from(picture.width()) * u64::from(picture.height());
    let sizes: Vec<u64> = items
        .iter()
        .filter_map(|&item| pictures.get(item))
        .take(MEASURED)
        .map(|picture| bytes(&picture))
        .collect();
    let mean = sizes.iter().sum::<u64>() / sizes.len().max(1) as u64;
    mean.saturating_mul(count as u64).min(CACHE_BYTES)
}

/// The bytes that a forward pass keeps for the gradient of an image. Known only where the system tells the memory of a
/// process.
pub(super) fn activations(encoder: &Encoder) -> Option<u64> {
    let device = Device::flex();
    let side = encoder.preprocessing().side();
    let picture = Pixels::new(side, side, vec![0; 3 * (side * side) as usize]).ok()?;
    let count = (MEASURED_PIXELS / (side * side)).max(1) as usize;
    let images = encoder.batch(&vec![picture; count], &device.autodiff());
    // The first pass also takes memory that it soon gives back. The second reuses that, so that it grows only by what it
    // keeps.
    let first = encoder.forward(images.clone()).ok()?;
    let growth = || {
        let before = machine::resident_memory()?;
        let second = encoder.forward(images.clone()).ok()?;
        let after = machine::resident_memory()?;
        drop(second);
        Some(after.saturating_sub(before) / count as u64).filter(|&bytes| bytes > 0)
    };
    // Other threads may give memory back meanwhile, which hides the growth.
    let found = (0..3).find_map(|_| growth());
    drop(first);
    found
}

/// The bytes that a run takes: the weights, the checkpoint with the optimiser's numbers, and the best encoder.
fn disk(config: &Config, weights: &Weights) -> u64 {
    let average = if config.optimizer.ema_decay.is_some() { weights.encoder } else { 0 };
    let states = config.optimizer.rule.states() * (weights.learning + weights.proxies);
    let checkpoint = weights.encoder + weights.proxies + average + states;
    let best = if config.run.evaluate_every_epochs > 0 { weights.encoder } else { 0 };
    4 * (weights.encoder + checkpoint + best)
}

/// The memory that is not there. That of a GPU is known where the driver of NVIDIA tells it.
fn lacking_memory(config: &Config, memory: &Memory, on_cpu: bool) -> Option<Lack> {
    let (needed, free, place) = if on_cpu {
        (memory.total, machine::free_memory(), "")
    } else {
        let free = machine::free_gpu_memory().into_iter().take(config.run.workers).min();
        (memory.first, free, " on a GPU")
    };
    let free = free.filter(|&free| needed > free)?;
    Some(Lack {
        what: format!(
            "memory{place}: about {} are needed and {} are free",
            rounded_bytes(needed),
            rounded_bytes(free)
        ),
        hint: LOWER_MEMORY.into(),
    })
}

/// The room on the disk that is not there.
fn lacking_disk(config: &Config, disk: u64) -> Option<Lack> {
    let folder = config.run.out.ancestors().find(|folder| folder.is_dir())?;
    let free = machine::free_disk(folder).filter(|&free| disk > free)?;
    Some(Lack {
        what: format!(
            "room on the disk: {} are needed and {} are free",
            rounded_bytes(disk),
            rounded_bytes(free)
        ),
        hint: "choose another `--out`".into(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use akin_formats::mat::fixtures::{cell, file, numbers, structs, text};
    use rayon::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::config::recipes::{RECIPES, Recipe, row_settings};
    use crate::config::{SamplerConfig, Source};
    use crate::data::fixtures::files;

    /// A picture, as PNG.
    fn picture() -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let pixels = image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([6 * x as u8, 8 * y as u8, 90]));
        pixels.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    /// The annotations of Cars-196 for these images with their classes.
    fn cars(images: &[(&str, u8)]) -> Vec<u8> {
        let image = |&(path, class): &(&str, u8)| [text("", path), numbers("", &[class])];
        let values: Vec<Vec<u8>> = images.iter().flat_map(image).collect();
        let names: Vec<Vec<u8>> = (1..=196).map(|class| text("", &format!("Model {class}"))).collect();
        file(&[structs("annotations", &["relative_im_path", "class"], &values), cell("class_names", &names)])
    }

    /// The data sets of all recipes in their published layouts, each with two classes to train on and one to evaluate.
    fn data_sets() -> TempDir {
        let png = picture();
        let mut tree: Vec<(String, Vec<u8>)> = Vec::new();
        let mut add = |name: &str, bytes: &[u8]| tree.push((name.to_owned(), bytes.to_vec()));
        let header = "image_id class_id super_class_id path\n";
        let sop = "Stanford_Online_Products";
        add(
            &format!("{sop}/Ebay_train.txt"),
            format!("{header}1 1 1 chair_final/a.JPG\n2 2 2 sofa_final/b.JPG\n").as_bytes(),
        );
        add(
            &format!("{sop}/Ebay_test.txt"),
            format!("{header}3 3 1 chair_final/c.JPG\n4 3 1 chair_final/d.JPG\n").as_bytes(),
        );
        for image in ["chair_final/a", "sofa_final/b", "chair_final/c", "chair_final/d"] {
            add(&format!("{sop}/{image}.JPG"), &png);
        }

        let ranks = |id: u32, genus: &str| {
            format!(
                r#"{{"id": {id}, "name": "{genus} {id}", "supercategory": "Amphibia", "kingdom": "Animalia",
                "phylum": "Chordata", "class": "Amphibia", "order": "Anura", "family": "Bufonidae", "genus": "{genus}"}}"#
            )
        };
        let classes = [ranks(1, "Bufo"), ranks(2, "Rana"), ranks(3, "Hyla")].join(",");
        add("Inaturalist/train2018.json", format!(r#"{{"categories": [{classes}]}}"#).as_bytes());
        let inat = |class: u32, image: &str| format!("train_val2018/Amphibia/{class}/{image}.jpg");
        for (split, images) in
            [("train", [inat(1, "a"), inat(2, "b")]), ("test", [inat(3, "c"), inat(3, "d")])]
        {
            add(
                &format!("Inaturalist/Inat_dataset_splits/Inaturalist_{split}_set1.txt"),
                images.join("\n").as_bytes(),
            );
            for image in images {
                add(&format!("Inaturalist/{image}"), &png);
            }
        }

        let labels = b"fname, fine_id0.jpg, middle_id, coarse_id\na.jpg, 1, 2, 3\nb.jpg, 4, 2, 3\n";
        for kind in ["vehicle", "animal", "product"] {
            for folder in ["train", "mini-bmk_all_in_one"] {
                add(&format!("dyml_{kind}/{folder}/label.csv"), labels);
                for image in ["a", "b"] {
                    add(&format!("dyml_{kind}/{folder}/imgs/{image}.jpg"), &png);
                }
            }
            for benchmark in ["coarse", "middle", "fine"] {
                for part in ["query", "gallery"] {
                    let labels = b"fname, labels0.jpg\nq.jpg, 1\n";
                    add(&format!("dyml_{kind}/bmk_{benchmark}/{part}.csv"), labels);
                    add(&format!("dyml_{kind}/bmk_{benchmark}/{part}/q.jpg"), &png);
                }
            }
        }

        let landmarks = "H-GLDv2";
        add(&format!("{landmarks}/train_clean.csv"), b"landmark_id,images\n1,aaa1 aaa2\n2,bbb1 bbb2\n");
        add(&format!("{landmarks}/index_image_to_landmark.csv"), b"id,landmark_id\nccc1,7\n");
        add(&format!("{landmarks}/retrieval_solution_v2.1.csv"), b"id,images,Usage\nddd1,ccc1,Public\n");
        for (split, rows) in [("train", "1,castle,made\n2,lake,natural\n"), ("index", "7,lake,natural\n")] {
            let file = format!("{landmarks}/{split}_label_to_subcategory_with_clusters.csv");
            add(&file, format!("landmark_id,cluster,overall_cluster\n{rows}").as_bytes());
        }
        for image in ["images/train/a/a/a/aaa1", "images/train/a/a/a/aaa2", "images/train/b/b/b/bbb1"]
            .into_iter()
            .chain(["images/train/b/b/b/bbb2", "index/c/c/c/ccc1", "test/d/d/d/ddd1"])
        {
            add(&format!("{landmarks}/{image}.jpg"), &png);
        }

        let names = ["1abcdef", "2abcdef", "3abcdef", "4abcdef", "5abcdef", "6abcdef"];
        let cells = names.map(|name| text("", name));
        let list = file(&[cell("cids", &cells), numbers("cluster", &[1, 1, 2, 2, 3, 3])]);
        add("sfm120k/retrieval-SfM-120k-imagenames-clusterids.mat", &list);
        for name in names {
            add(&format!("sfm120k/ims/ef/cd/ab/{name}"), &png);
        }

        let cub = "CUB_200_2011";
        add(
            &format!("{cub}/images.txt"),
            b"1 001.Auk/a.jpg\n2 002.Tern/b.jpg\n3 101.Owl/c.jpg\n4 101.Owl/d.jpg\n",
        );
        add(&format!("{cub}/image_class_labels.txt"), b"1 1\n2 2\n3 101\n4 101\n");
        add(&format!("{cub}/classes.txt"), b"1 001.Auk\n2 002.Tern\n101 101.Owl\n");
        for image in ["001.Auk/a", "002.Tern/b", "101.Owl/c", "101.Owl/d"] {
            add(&format!("{cub}/images/{image}.jpg"), &png);
        }

        let images =
            [("car_ims/1.jpg", 1), ("car_ims/2.jpg", 2), ("car_ims/3.jpg", 99), ("car_ims/4.jpg", 99)];
        add("cars196/cars_annos.mat", &cars(&images));
        for (image, _) in images {
            add(&format!("cars196/{image}"), &png);
        }

        let shirts = "img/MEN/Shirts";
        let line = |class: u32, image: &str, split: &str| {
            format!("{shirts}/id_{class}/{image}.jpg id_{class} {split}\n")
        };
        let lines =
            [line(1, "a", "train"), line(2, "b", "train"), line(3, "c", "query"), line(3, "d", "gallery")];
        let list = format!("4\nimage_name item_id evaluation_status\n{}", lines.concat());
        add("Inshop_Clothes/list_eval_partition.txt", list.as_bytes());
        for image in ["id_1/a", "id_2/b", "id_3/c", "id_3/d"] {
            add(&format!("Inshop_Clothes/{shirts}/{image}.jpg"), &png);
        }

        let record = |class: u8| [vec![class, class], vec![100 + class; 3072]].concat();
        let cifar = "cifar-100-binary";
        add(&format!("{cifar}/train.bin"), &[record(0), record(1), record(0), record(1)].concat());
        add(&format!("{cifar}/test.bin"), &record(1));
        add(&format!("{cifar}/coarse_label_names.txt"), b"fish\ntrees\n");
        add(&format!("{cifar}/fine_label_names.txt"), b"ray\noak\n");

        add("nabirds/images.txt", b"a 8/a.jpg\nb 9/b.jpg\nc 8/c.jpg\nd 9/d.jpg\ne 8/e.jpg\nf 9/f.jpg\n");
        add("nabirds/image_class_labels.txt", b"a 8\nb 9\nc 8\nd 9\ne 8\nf 9\n");
        add("nabirds/train_test_split.txt", b"a 1\nb 1\nc 1\nd 1\ne 0\nf 0\n");
        add("nabirds/classes.txt", b"0 Birds\n1 Perching Birds\n2 Loons\n8 Bunting\n9 Common Loon\n");
        add("nabirds/hierarchy.txt", b"1 0\n2 0\n8 1\n9 2\n");
        for image in ["8/a", "9/b", "8/c", "9/d", "8/e", "9/f"] {
            add(&format!("nabirds/images/{image}.jpg"), &png);
        }
        files(&tree.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect::<Vec<_>>())
    }

    /// A row of a recipe over these data sets, with batches and clusters that their two classes can fill.
    fn config(recipe: &Recipe, row: &str, data: &TempDir) -> Config {
        let folder = data.path().display().to_string();
        let text = recipe.text.replace("${AKIN_DATA}", &folder);
        let small = if text.contains("kind = \"random\"") {
            "sampler.batch_size=4"
        } else {
            "sampler.classes_per_batch=2"
        };
        let mut sets = vec![small.to_owned(), "run.out=run".into()];
        if text.contains("decomposability_gap") {
            sets.push("eval.decomposability_gap.batch=2".into());
        }
        if text.contains("test_fraction") {
            sets.push("split.test_fraction=0.34".into());
        }
        let settings = toml::Value::Table(row_settings(&recipe.table(), row));
        if settings["loss"].get("coarse").is_some_and(|coarse| coarse.get("count").is_some()) {
            sets.push("loss.coarse.count=2".into());
        }
        let source = Source::from_text(Path::new("recipe.toml"), text, Some(row), &sets).unwrap();
        source.config(&toml::Table::new()).unwrap()
    }

    #[test]
    fn the_plan_of_a_recipe_names_its_data_batches_and_steps() {
        let data = data_sets();
        let plan = |name: &str, row: &str| {
            let recipe = RECIPES.iter().find(|known| known.name == name).unwrap();
            dry_run(config(recipe, row, &data)).unwrap()
        };
        let first = plan("happier/sop", "happier");
        for part in [
            "sop: 2 images",
            "category 2, product 2",
            "2 queries rank each other",
            "ResNet-50",
            "HAPPIER",
            "8 images: 2 classes × 4 images of two coarsest classes",
            "75 epochs of 5 steps: 375 steps",
            "for the activations of each of 8 images",
            "3 rows in ramzi2022",
        ] {
            assert!(first.text.contains(part), "{part} is not in\n{}", first.text);
        }
        assert_eq!(first.lacking.len(), 1);
        assert!(first.lacking[0].what.ends_with("weights/resnet50-0676ba61.pth"), "{:?}", first.lacking);
        let sheet = image::load_from_memory(&first.sheet).unwrap();
        assert!(sheet.width() > 1000, "eight pictures stand in a row");

        let hash = plan("hpdh/cifar-100", "hpdh-48");
        for part in
            ["1 query ranks the training images", "4 random images", "150 epochs of 1 step: 150 steps"]
        {
            assert!(hash.text.contains(part), "{part} is not in\n{}", hash.text);
        }
    }

    #[test]
    fn a_training_of_any_length_has_a_plan() {
        let text = describe_length(i64::MAX as u64, 5, 64);
        assert!(text.ends_with(", 18,446,744,074 billion views of images"), "{text}");
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "the figures of the suite")]
    fn every_row_of_every_recipe_has_a_plan() {
        let data = data_sets();
        let rows: Vec<(&Recipe, String)> = RECIPES
            .iter()
            .flat_map(|recipe| recipe.rows().into_iter().map(move |row| (recipe, row)))
            .collect();
        let start = Instant::now();
        rows.par_iter().for_each(|(recipe, row)| {
            // Measuring activations takes seconds; the test above does it.
            let mut config = config(recipe, row, &data);
            // Two images of a class are as good as more, and resizing them takes less time.
            if let SamplerConfig::Classes { images_per_class, .. }
            | SamplerConfig::ClassPairs { images_per_class, .. } = &mut config.sampler
            {
                *images_per_class = 2;
            }
            let has_results =
                config.published.as_ref().is_some_and(|published| !published.results.is_empty());
            let plan = plan(config, |_| None);
            let plan = plan.unwrap_or_else(|error| panic!("{}/{row}: {error:#}", recipe.name));
            assert!(plan.text.contains(" in "), "{}", plan.text);
            assert_eq!(plan.text.contains("Published"), has_results, "{}", plan.text);
            // Only the weights are not there. DyML-Vehicle and -Animal begin with random ones.
            let random = ["happier/dyml-animal", "happier/dyml-vehicle"].contains(&recipe.name);
            assert_eq!(plan.lacking.len(), usize::from(!random), "{}/{row}: {:?}", recipe.name, plan.lacking);
        });
        let numbers = include_str!("../../recipes/tables/README.md");
        let figure = format!("{0} of {0} rows", rows.len());
        assert!(numbers.contains(&figure), "recipes/tables/README.md does not say {figure}");
        println!("figure: rows of recipes that are planned: {}", rows.len());
        println!("figure: seconds to plan every row of every recipe: {:.0}", start.elapsed().as_secs_f64());
    }
}
