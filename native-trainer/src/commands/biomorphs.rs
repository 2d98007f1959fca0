//! `akin biomorphs`: a data set of drawn creatures.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Instant;

use akin_base::directory::{self, Draft, Kind};
use akin_base::files::write_into_draft;
use akin_base::progress::{Bar, Progress};
use akin_base::quantities::{count, counted};
use akin_base::{shell, terminal};
use akin_biomorphs::{BiomorphConfig, Biomorphs, Split};
use anyhow::Result;
use clap::Args;
use image::ImageFormat;
use rayon::prelude::*;

/// Draw a data set of creatures that descend from one another.
///
/// Writes pictures and labels.csv. No finest class is in both the training and the test split.
#[derive(Debug, Args)]
pub struct BiomorphsArgs {
    /// The folder to write.
    #[arg(value_name = "DIR")]
    pub out: PathBuf,
    /// Seed for creatures and pictures.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Children of each class, level by level, coarse to fine.
    #[arg(long, value_name = "N,…,N", value_delimiter = ',', default_value = "4,4,6")]
    pub branching: Vec<usize>,
    /// Pictures of each finest class.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub images_per_class: usize,
    /// Width and height of a picture, in pixels: 16 to 2048.
    #[arg(long, value_name = "PIXELS", default_value_t = 64)]
    pub side: u32,
    /// Share of the finest classes that go to the test split, from 0 up to but not including 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0)]
    pub held_out: f64,
    /// Replace the data set in DIR.
    #[arg(long)]
    pub overwrite: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Writes the data set, and prints its counts.
pub fn run(args: BiomorphsArgs) -> Result<()> {
    let creatures = Biomorphs::new(BiomorphConfig {
        seed: args.seed,
        branching: args.branching,
        images_per_class: args.images_per_class,
        side: args.side,
        held_out: args.held_out,
    })?;
    directory::check(Kind::DataSet, &args.out, args.overwrite)?;
    let start = Instant::now();
    let bar = args.progress.bar("Drawing", creatures.pictures() as u64);
    write(&creatures, &args.out, args.overwrite, &bar)?;
    drop(bar);

    let counts = creatures.levels().iter().zip(creatures.classes());
    let levels: Vec<String> = counts.map(|(level, classes)| format!("{level} {}", count(classes))).collect();
    let split = |split| {
        let classes = creatures.species(split);
        let images = classes * args.images_per_class;
        format!("{} of {}", counted(images, "image", "images"), counted(classes, "class", "classes"))
    };
    terminal::print(&format!("levels  {}", levels.join(", ")))?;
    terminal::print(&format!("train   {}", split(Split::Train)))?;
    terminal::print(&format!("test    {}", split(Split::Test)))?;
    terminal::print(&format!("table   {}", args.out.join("labels.csv").display()))?;
    let images = counted(creatures.pictures(), "image", "images");
    args.progress.say("Drew", &format!("{images} in {:.1} s", start.elapsed().as_secs_f64()));
    // The recipe needs three levels, and classes to test on.
    if creatures.levels().len() == 3 && creatures.species(Split::Test) > 0 {
        let table = shell::path(&args.out.join("labels.csv"));
        let command = format!("`akin train biomorphs-happier --set data.path={table}`");
        args.progress.say("Next", &format!("{command} trains a model on them"));
    }
    Ok(())
}

/// Writes `out/images/<level 1>/…/<level L>/000.png` and `out/labels.csv` with the columns path, one per level, split.
/// The files do not depend on the number of threads. An existing data set is replaced when the new one is complete.
///
/// # Errors
///
/// `out` is not empty, unless it is a data set and `overwrite` is set; a file cannot be written.
pub fn write(creatures: &Biomorphs, out: &Path, overwrite: bool, bar: &Bar) -> Result<()> {
    let draft = Draft::create(Kind::DataSet, out, overwrite)?;
    match write_files(creatures, draft.directory(), bar) {
        Ok(()) => draft.complete(),
        Err(error) => {
            draft.discard();
            Err(error)
        }
    }
}

fn write_files(creatures: &Biomorphs, out: &Path, bar: &Bar) -> Result<()> {
    (0..creatures.pictures()).into_par_iter().try_for_each(|index| {
        let mut png = Cursor::new(Vec::new());
        creatures.picture(index).write_to(&mut png, ImageFormat::Png)?;
        write_into_draft(&out.join(creatures.row(index).path), png.get_ref())?;
        bar.advance(1);
        anyhow::Ok(())
    })?;
    let mut table = csv::Writer::from_writer(vec![]);
    let levels = creatures.levels().iter().map(String::as_str);
    table.write_record(["path"].into_iter().chain(levels).chain(["split"]))?;
    for index in 0..creatures.pictures() {
        let row = creatures.row(index);
        let labels = row.labels.iter().map(String::as_str);
        table.write_record([row.path.as_str()].into_iter().chain(labels).chain([row.split.name()]))?;
    }
    let bytes = table.into_inner()?;
    write_into_draft(&out.join("labels.csv"), &bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write_quietly(creatures: &Biomorphs, out: &Path) -> Result<()> {
        write(creatures, out, true, &Progress::None.bar("Drawing", 0))
    }

    #[test]
    fn files_do_not_depend_on_the_number_of_threads() {
        let config = BiomorphConfig {
            branching: vec![2, 2],
            images_per_class: 2,
            side: 24,
            ..BiomorphConfig::default()
        };
        let creatures = Biomorphs::new(config).unwrap();
        let written = [1, 4].map(|threads| {
            let out = tempfile::tempdir().unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| write_quietly(&creatures, out.path())).unwrap();
            let table = fs::read_to_string(out.path().join("labels.csv")).unwrap();
            let paths = table.lines().skip(1).map(|line| line.split(',').next().unwrap());
            let pictures: Vec<Vec<u8>> = paths.map(|path| fs::read(out.path().join(path)).unwrap()).collect();
            assert_eq!(pictures.len(), creatures.pictures());
            (table, pictures)
        });
        assert!(written[0] == written[1]);
    }

    #[test]
    fn a_folder_of_someone_else_is_not_overwritten() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("labels.csv"), "mine").unwrap();
        let creatures = Biomorphs::new(BiomorphConfig::default()).unwrap();
        let error = write_quietly(&creatures, out.path()).unwrap_err();
        assert!(error.to_string().contains("is not a data set"));
        assert_eq!(fs::read_to_string(out.path().join("labels.csv")).unwrap(), "mine");
    }
}
