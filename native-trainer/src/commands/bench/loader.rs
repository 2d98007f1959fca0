//! `akin bench loader`: how fast training images are read, decoded and augmented, beside decoding them alone.

use std::hint::black_box;
use std::path::PathBuf;
use std::thread;

use akin_base::progress::Progress;
use akin_base::quantities::count;
use akin_core::random::stream;
use anyhow::Result;
use clap::Args;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::measure::{Figure, Report, Row, median_seconds, peak_memory_with, print_peak_memory};
use crate::commands::arguments::SetArgs;
use crate::config::Config;
use crate::data::Dataset;
use crate::pictures::loader::{Pictures, Position, Views};

/// Measure the loader: the training images of a config, read in random order, decoded, augmented and turned into the
/// numbers of a model, in batches as in training.
///
/// Beside it stands decoding alone, on the same number of threads. They run in turns; times are medians. As in the first
/// epoch, every image is decoded. The memory is measured in a process that only loads images; it includes the program.
#[derive(Debug, Args)]
pub struct BenchLoaderArgs {
    /// A TOML file.
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The number of images of a round. If the training split has fewer, they are read again.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub images: u32,
    /// Keep decoded images in memory, as training does where they fit: the later epochs.
    #[arg(long)]
    pub cached: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Load once, and print only the peak memory of the process, in bytes.
    #[arg(long, hide = true)]
    pub once: bool,
}

/// Measures the loader of a config, and prints a table or JSON.
pub fn run(args: &BenchLoaderArgs) -> Result<()> {
    let config = Config::load(&args.config, &args.sets.set)?;
    let work = Work::new(&config, args)?;
    if args.once {
        work.load()?;
        work.pictures.check()?;
        return print_peak_memory();
    }
    // Memory first, while this process is small.
    args.progress.say("Measuring", &format!("{} images", count(work.items.len())));
    let memory = peak_memory_with(["--once"])?;
    let mut failure = None;
    let [seconds, decoding] =
        median_seconds([&mut || failure = failure.take().or(work.load().err()), &mut || work.decode()]);
    failure.map_or(Ok(()), Err)?;
    work.pictures.check()?;
    work.undecoded.check()?;
    let row = Row {
        name: config.data.path().display().to_string(),
        figures: vec![
            Figure::Count(work.items.len()),
            Figure::Seconds(seconds),
            Figure::Count((work.items.len() as f64 / seconds).round() as usize),
            Figure::Seconds(decoding),
            Figure::Ratio(seconds / decoding),
            Figure::bytes(memory),
        ],
    };
    let columns = vec![
        ("images", "images"),
        ("time", "seconds"),
        ("images/s", "images_per_second"),
        ("decoding", "decoding_seconds"),
        ("÷ decoding", "per_decoding"),
        ("memory", "peak_memory"),
    ];
    Report { subject: "data", columns, rows: vec![row] }.print(args.json)
}

/// The images of a round.
struct Work {
    pictures: Pictures,
    /// The same pictures without a cache, to measure decoding.
    undecoded: Pictures,
    views: Views,
    /// In the order in which they are read.
    items: Vec<usize>,
    batch: usize,
}

impl Work {
    fn new(config: &Config, args: &BenchLoaderArgs) -> Result<Self> {
        let seed = config.run.seed;
        let dataset = Dataset::load(&config.selection())?;
        let mut train = dataset.splits.train.clone();
        train.shuffle(&mut stream(seed, "benchmark", &[]));
        let pictures = Pictures::of(&dataset);
        Ok(Self {
            pictures: if args.cached { pictures } else { pictures.without_cache() },
            undecoded: Pictures::of(&dataset).without_cache(),
            views: Views {
                augment: config.augment.clone().unwrap_or_default(),
                preprocessing: config.model.preprocessing.clone(),
                seed,
            },
            items: train.into_iter().cycle().take(args.images as usize).collect(),
            batch: config.sampler.images(),
        })
    }

    /// Makes the batches, and the numbers of their images on this thread, as training does.
    fn load(&self) -> Result<()> {
        let batches = self.items.chunks(self.batch).enumerate();
        let positions = batches.map(|(step, items)| (Position { epoch: 0, step }, items.to_vec()));
        thread::scope(|scope| {
            for batch in self.views.clone().make_batches_ahead(&self.pictures, positions, scope)? {
                for view in &batch.views {
                    black_box(self.views.preprocessing.normalise(view));
                }
            }
            Ok(())
        })
    }

    fn decode(&self) {
        self.items.par_iter().for_each(|&item| {
            black_box(self.undecoded.get(item));
        });
    }
}
