//! `akin biomorphs`: writes a data set of drawn creatures.

use std::{path::PathBuf, time::Instant};

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::biomorphs::{self, BiomorphConfig};

/// Draw a data set of creatures that descend from one another.
#[derive(Args, Clone, Debug)]
pub(crate) struct BiomorphsArgs {
    /// Directory to write labels.csv and images/ into.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Seed: the same seed draws the same creatures.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Children of each class, level by level, coarse to fine.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "4,4,6")]
    pub(crate) branching: Vec<usize>,
    /// Pictures of each finest class.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) images: usize,
    /// Width and height of a picture, in pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 64)]
    pub(crate) side: u32,
    /// Part of the finest classes of each parent that only the test split shows.
    #[arg(long, value_name = "PART", default_value_t = 0.33)]
    pub(crate) held_out: f64,
}

impl From<&BiomorphsArgs> for BiomorphConfig {
    fn from(args: &BiomorphsArgs) -> Self {
        Self {
            seed: args.seed,
            branching: args.branching.clone(),
            images_per_class: args.images,
            side: args.side,
            held_out: args.held_out,
        }
    }
}

/// Runs the command: the pictures and their table into `--out`, the counts on stdout.
///
/// # Errors
/// As [`biomorphs::write`].
pub(crate) fn run(args: BiomorphsArgs) -> Result<()> {
    let config = BiomorphConfig::from(&args);
    config.validate()?;
    let start = Instant::now();
    // Hidden by itself where stderr is no terminal.
    let bar = ProgressBar::new(config.images() as u64).with_style(
        ProgressStyle::with_template("     Drawing [{bar:30}] {pos}/{len} {per_sec}")?.progress_chars("=> "),
    );
    let summary = biomorphs::write(&config, &args.out, |_| bar.inc(1))?;
    bar.finish_and_clear();

    let levels = summary.levels.iter().zip(&summary.classes).map(|(name, count)| format!("{name} {count}"));
    let [train, test] = summary.images;
    let [train_classes, test_classes] = summary.species;
    println!("levels   {}", levels.collect::<Vec<_>>().join(", "));
    println!("train    {train} images of {train_classes} classes");
    println!("test     {test} images of {test_classes} classes");
    println!("table    {}", args.out.join("labels.csv").display());
    eprintln!("     Drew {} images in {:.1} s", train + test, start.elapsed().as_secs_f64());
    Ok(())
}
