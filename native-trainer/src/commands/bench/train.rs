//! `akin bench train`: the time and memory of a training step of backbones, with its parts.

use std::path::Path;
use std::thread;
use std::time::Instant;

use akin_base::problem::problem;
use akin_base::progress::Progress;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::Preprocessing;
use akin_core::losses;
use akin_core::models::BackboneConfig;
use akin_core::random::{stream, uniform};
use akin_core::taxonomy::Labels;
use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Tensor, TensorData};
use clap::Args;
use image::{Rgb, RgbImage};
use rayon::prelude::*;

use super::measure::{Figure, Report, Row, median, peak_memory_with, print_peak_memory};
use crate::config::{AugmentConfig, DeviceName, device};
use crate::pictures::loader::{Pictures, Position, Views};

/// Measure training steps of backbones: the network forwards, the loss of HAPPIER over three levels, both backwards, and
/// the step of AdamW, with live batch normalisation; and beside them the network forwards alone, as in evaluation.
///
/// These steps have their images, random numbers, from the beginning. Then photos of 500 × 375 pixels are loaded as in
/// training: how long a batch of them takes alone (load), and how long a step waits for the next batch while the same
/// processor loads it (waiting).
///
/// The times are medians of several steps; the first is not counted. Memory is that of a process that only takes steps with
/// this backbone, and includes the program. It is measured on the CPU only.
#[derive(Debug, Args)]
pub struct BenchTrainArgs {
    /// Measure these backbones, which `akin list backbones` explains.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_values = ["squeezenet", "resnet18", "resnet50", "vit_s16"]
    )]
    pub backbones: Vec<String>,
    /// The number of images in a batch.
    #[arg(long, value_name = "B", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub batch: u32,
    /// The side of the images, in pixels [default: that of the backbone].
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub side: Option<u32>,
    /// The number of steps.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub steps: u32,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Let the network compute in half precision, as `run.precision = "half"` does.
    #[arg(long)]
    pub half: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Take two steps with backbone number N, and print the peak memory of the process.
    #[arg(long, value_name = "N", hide = true)]
    pub memory_of: Option<usize>,
}

/// Measures each backbone, and prints a table or JSON.
pub fn run(args: BenchTrainArgs) -> Result<()> {
    let configs = args.backbones.iter().map(|name| Ok(BackboneConfig::named(name)?));
    let configs = configs.collect::<Result<Vec<_>>>()?;
    let device = device::open(args.device)?.autodiff();
    for config in &configs {
        encoder(config, &args)?.absent(&device)?;
    }
    if args.half && !device.supports_dtype(DType::F16) {
        return Err(problem(
            "the device does not compute in half precision",
            "leave out `--half`, or choose another `--device`",
        ));
    }
    if let Some(config) = args.memory_of.and_then(|number| configs.get(number)) {
        let mut work = Work::new(config, &args, &device)?;
        work.step()?;
        work.step()?;
        return print_peak_memory();
    }
    let mut rows = Vec::new();
    for (number, config) in configs.iter().enumerate() {
        args.progress.say("Measuring", config.entry().title);
        // Memory first, while this process is small. That of a GPU is not the process's.
        let memory = match args.device {
            DeviceName::Cpu => Figure::bytes(peak_memory_with(["--memory-of", &number.to_string()])?),
            _ => Figure::Missing,
        };
        rows.push(measure(config, &args, &device, memory)?);
    }
    let columns = vec![
        ("B", "batch"),
        ("side", "side"),
        ("load", "load_seconds"),
        ("step", "seconds"),
        ("forward", "forward_seconds"),
        ("loss", "loss_seconds"),
        ("backward", "backward_seconds"),
        ("AdamW", "optimizer_seconds"),
        ("waiting", "waiting_seconds"),
        ("images/s", "images_per_second"),
        ("GMAC/s", "billion_multiply_adds_per_second"),
        ("evaluation", "evaluation_seconds"),
        ("memory", "peak_memory"),
    ];
    Report { subject: "backbone", columns, rows }.print(args.json)
}

/// An encoder without head, its optimiser and a batch.
struct Work {
    encoder: Encoder,
    half: bool,
    optimizer: ModuleOptimizer,
    images: Tensor<4>,
    labels: Labels,
}

/// Labels of three levels, with four images of each class as far as the batch goes.
fn labels(batch: usize) -> Result<Labels> {
    let classes = (0..batch as u32).flat_map(|image| [image / 16, image / 8, image / 4]);
    Ok(Labels::new(3, classes.collect())?)
}

impl Work {
    fn new(config: &BackboneConfig, args: &BenchTrainArgs, device: &Device) -> Result<Self> {
        let side = side(config, args);
        let shape = [args.batch as usize, 3, side as usize, side as usize];
        let numbers = uniform(&mut stream(0, "benchmark", &[]), shape.iter().product(), -2.0, 2.0);
        Ok(Self {
            encoder: encoder(config, args)?.init(0, device)?,
            half: args.half,
            optimizer: AdamWConfig::new().init(),
            images: Tensor::from_data(TensorData::new(numbers, shape), device),
            labels: labels(args.batch as usize)?,
        })
    }

    /// The features of the images.
    fn features(&self, encoder: &Encoder, images: Tensor<4>) -> Result<Tensor<2>> {
        let half = self.half.then(|| encoder.in_half_precision());
        Ok(half.as_ref().unwrap_or(encoder).forward(images)?)
    }

    /// The seconds of the parts of a step: forwards, the loss, backwards, and the optimiser's.
    fn step(&mut self) -> Result<[f64; 4]> {
        let start = Instant::now();
        let features = self.features(&self.encoder, self.images.clone())?;
        self.images.device().sync()?;
        let forward = start.elapsed();
        let value = losses::happier(&features, &self.labels)?;
        // Reading waits for devices that compute later.
        value.clone().try_into_data()?;
        let loss = start.elapsed() - forward;
        let mut gradients = value.backward();
        let gradients = GradientsParams::from_module(&mut gradients, &self.encoder);
        self.images.device().sync()?;
        let backward = start.elapsed() - forward - loss;
        self.encoder = self.optimizer.step(1e-6, self.encoder.clone(), gradients);
        self.images.device().sync()?;
        let optimizer = start.elapsed() - forward - loss - backward;
        Ok([forward, loss, backward, optimizer].map(|time| time.as_secs_f64()))
    }

    /// The seconds of the network forwards, without gradients.
    fn evaluate(&self) -> Result<f64> {
        let (encoder, images) = (self.encoder.valid(), self.images.clone().without_autodiff());
        let start = Instant::now();
        self.features(&encoder, images)?.try_into_data()?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// The seconds that a batch takes to load alone, and the seconds that each step waits for its batch while the next is
    /// loaded.
    fn load(&mut self, config: &BackboneConfig, args: &BenchTrainArgs) -> Result<[Vec<f64>; 2]> {
        let folder = tempfile::tempdir().context("the photos cannot be written to a temporary folder")?;
        let paths: Vec<_> =
            (0..args.batch).map(|number| folder.path().join(format!("{number}.jpg"))).collect();
        paths.par_iter().enumerate().try_for_each(|(number, path)| draw(number as u32, path))?;
        let pictures = Pictures::new(paths).without_cache();
        let items: Vec<usize> = (0..args.batch as usize).collect();
        let preprocessing = Preprocessing::new(config.entry().normalisation, side(config, args))?;
        let views = Views { augment: AugmentConfig::default(), preprocessing, seed: 0 };
        let position = |step: u32| Position { epoch: 0, step: step as usize };
        let (mut loads, mut waits) = (vec![], vec![]);
        for step in 0..=args.steps {
            let start = Instant::now();
            views.batch(&pictures, &items, position(step));
            loads.push(start.elapsed().as_secs_f64());
        }
        thread::scope(|scope| {
            let positions = (0..=args.steps).map(|step| (position(step), items.clone()));
            let batches = views.clone().make_batches_ahead(&pictures, positions, scope)?;
            for _ in 0..=args.steps {
                let start = Instant::now();
                batches.recv().context("the thread that reads images has ended")?;
                waits.push(start.elapsed().as_secs_f64());
                self.step()?;
            }
            anyhow::Ok(())
        })?;
        pictures.check()?;
        Ok([loads, waits])
    }
}

/// Writes a photo: waves of some colours, which JPEG makes about as large as a real one.
fn draw(number: u32, path: &Path) -> Result<()> {
    let wave = |x: u32, y: u32, colour: u32| {
        let [x, y, phase] = [x, y, number + colour].map(|n| n as f32);
        let waves = (0.05 * x + phase).sin() + (0.31 * x - 0.23 * y).sin() + (0.11 * y + 2.0 * phase).cos();
        (128.0 + 40.0 * waves) as u8
    };
    let photo = RgbImage::from_fn(500, 375, |x, y| Rgb([0, 1, 2].map(|colour| wave(x, y, colour))));
    photo.save(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// An encoder with this backbone, which refuses images that the backbone cannot read.
fn encoder(config: &BackboneConfig, args: &BenchTrainArgs) -> Result<EncoderConfig> {
    let preprocessing = Preprocessing::new(config.entry().normalisation, side(config, args))?;
    Ok(EncoderConfig { backbone: config.clone(), pooling: None, head: None, preprocessing })
}

/// The side of the images.
fn side(config: &BackboneConfig, args: &BenchTrainArgs) -> u32 {
    args.side.unwrap_or(config.entry().side)
}

fn measure(config: &BackboneConfig, args: &BenchTrainArgs, device: &Device, memory: Figure) -> Result<Row> {
    let mut work = Work::new(config, args, device)?;
    let (mut parts, mut evaluations) = (vec![], vec![]);
    for _ in 0..=args.steps {
        parts.push(work.step()?);
        evaluations.push(work.evaluate()?);
    }
    let rest = |seconds: &mut dyn Iterator<Item = f64>| median(&mut seconds.skip(1).collect::<Vec<_>>());
    let part = |i: usize| rest(&mut parts.iter().map(|parts| parts[i]));
    let step = rest(&mut parts.iter().map(|parts| parts.iter().sum()));
    let [load, waiting] = work.load(config, args)?.map(|times| rest(&mut times.into_iter()));
    let images = f64::from(args.batch) / step;
    // Forwards, and backwards to the input and to the weights of each layer.
    let multiply_adds = 3.0 * work.encoder.backbone.multiply_adds(side(config, args)) as f64;
    Ok(Row {
        name: config.entry().title.to_owned(),
        figures: vec![
            Figure::Count(args.batch as usize),
            Figure::Count(side(config, args) as usize),
            Figure::Seconds(load),
            Figure::Seconds(step),
            Figure::Seconds(part(0)),
            Figure::Seconds(part(1)),
            Figure::Seconds(part(2)),
            Figure::Seconds(part(3)),
            Figure::Seconds(waiting),
            Figure::Rate(images),
            Figure::Rate(images * multiply_adds / 1e9),
            Figure::Seconds(rest(&mut evaluations.into_iter())),
            memory,
        ],
    })
}
