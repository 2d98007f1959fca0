//! `akin biomorphs`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::biomorphs::{self, BiomorphConfig};
use crate::columns::counted;
use crate::files::create_directory;

/// Draw a data set of creatures that descend from one another.
///
/// Writes pictures and labels.csv. The finest classes of the test split are never in the training split.
#[derive(Debug, Args)]
pub struct BiomorphsArgs {
    /// Where they go.
    #[arg(value_name = "DIR")]
    pub out: PathBuf,
    /// From this follow all creatures and pictures.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Children of each class, level by level, coarse to fine.
    #[arg(long, value_name = "N,…,N", value_delimiter = ',', default_value = "4,4,6")]
    pub branching: Vec<usize>,
    /// Pictures of each finest class.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub images_per_class: usize,
    /// Width and height of a picture, in pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 64)]
    pub side: u32,
    /// The part of the finest classes that is kept for the test, from 0 up to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0)]
    pub held_out: f64,
    /// Replace what is there.
    #[arg(long)]
    pub overwrite: bool,
}

impl From<&BiomorphsArgs> for BiomorphConfig {
    fn from(args: &BiomorphsArgs) -> Self {
        Self {
            seed: args.seed,
            branching: args.branching.clone(),
            images_per_class: args.images_per_class,
            side: args.side,
            held_out: args.held_out,
        }
    }
}

/// Draws the pictures and their table into the directory; the counts go to stdout.
pub fn run(args: BiomorphsArgs) -> Result<()> {
    let config = BiomorphConfig::from(&args);
    config.validate()?;
    create_directory(&args.out, "data set", "labels.csv", args.overwrite)?;
    let start = Instant::now();
    // indicatif hides the bar by itself where stderr is not a terminal.
    let bar = ProgressBar::new(config.images() as u64).with_style(
        ProgressStyle::with_template("     Drawing [{bar:30}] {pos}/{len} {per_sec}")?.progress_chars("=> "),
    );
    let summary = biomorphs::write(&config, &args.out, |_| bar.inc(1))?;
    bar.finish_and_clear();

    let levels: Vec<String> =
        summary.levels.iter().zip(&summary.classes).map(|(name, count)| format!("{name} {count}")).collect();
    let split = |images: usize, classes: usize| {
        format!("{} of {}", counted(images, "image", "images"), counted(classes, "class", "classes"))
    };
    writeln!(stdout(), "levels  {}", levels.join(", "))?;
    writeln!(stdout(), "train   {}", split(summary.images[0], summary.species[0]))?;
    writeln!(stdout(), "test    {}", split(summary.images[1], summary.species[1]))?;
    writeln!(stdout(), "table   {}", args.out.join("labels.csv").display())?;
    eprintln!(
        "Drew {} in {:.1} s",
        counted(config.images(), "image", "images"),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
