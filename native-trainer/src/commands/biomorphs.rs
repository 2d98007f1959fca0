//! `akin biomorphs`.

use std::io::{Write, stdout};
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::biomorphs::{self, BiomorphConfig};
use crate::cli::BiomorphsArgs;
use crate::files::create_directory;
use crate::table::counted;

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
