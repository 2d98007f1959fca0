//! `akin index`: makes a gallery of pictures, and changes it.

pub mod encoder;
pub mod pictures;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use akin_base::interrupt::{CatchCtrlC, stop_requested};
use akin_base::problem::{a_few, numbers_problem, problem};
use akin_base::progress::{Bar, Progress};
use akin_base::quantities::{count, counted};
use akin_base::{shell, terminal};
use akin_core::certainty::LeaveOneOut;
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::encoder::Encoder;
use akin_formats::table::Table;
use akin_gallery::{
    Certainty, Gallery, MANIFEST, Manifest, Numbers, Place, Row, Settings, Writer, check_encoder,
};
use anyhow::Result;
use burn::module::Module;
use burn::tensor::Device;
use clap::{Args, ValueEnum};
use rayon::prelude::*;

use self::encoder::{Choice, GalleryEncoder, of_gallery};
use self::pictures::{Listed, absolute};
use crate::commands::arguments::ComputeArgs;
use crate::commands::pretrained::PretrainedArgs;
use crate::config::device;
use crate::pictures::forward::forward_pictures;

/// Make a gallery of your own pictures, which `akin search` asks, and change it.
///
/// The first form embeds pictures with a model and writes the gallery. A picture that cannot be read is named and left out.
/// After Ctrl-C or a power failure the same command continues. The second form changes a gallery: all of a change is seen at
/// once, and a search that runs meanwhile answers from what it opened. The gallery keeps a copy of its encoder. `FORMAT.md` in
/// the source describes its files, which pandas and NumPy read.
#[derive(Debug, Args)]
#[command(override_usage = "akin index [OPTIONS] <MODEL> <PICTURES>... --out <GALLERY>\n       \
    akin index [OPTIONS] <GALLERY> --add <PICTURES>...\n       \
    akin index [OPTIONS] <GALLERY> --remove <PATH>... | --refresh | --relabel <TABLE> | --compact | --reembed <MODEL> | \
    --collect <GALLERY>...")]
pub struct IndexArgs {
    /// What embeds the pictures: a run, a bundle, an ONNX file, or a config or recipe, whose backbone then has its published
    /// weights. Or the gallery to change.
    #[arg(value_name = "MODEL|GALLERY")]
    pub model: PathBuf,
    /// The pictures: folders, whose folders are labels; tables in CSV or Parquet; image files; or `-` for a list of files on
    /// standard input.
    #[arg(value_name = "PICTURES", requires = "out")]
    pub pictures: Vec<PathBuf>,
    /// The gallery to make.
    #[arg(long, value_name = "GALLERY", requires = "pictures", group = "change")]
    pub out: Option<PathBuf>,
    /// Add pictures. Those that are already there and have not changed are left as they are.
    #[arg(long, value_name = "PICTURES", num_args = 1.., group = "change")]
    pub add: Vec<PathBuf>,
    /// Remove these pictures, or all in these folders. The files stay.
    #[arg(long, value_name = "PATH", num_args = 1.., group = "change")]
    pub remove: Vec<PathBuf>,
    /// Follow the folders that the pictures came from: add new pictures, embed changed ones again, and remove those that are
    /// gone. A file has changed if its size or time has, and its SHA-256.
    #[arg(long, group = "change")]
    pub refresh: bool,
    /// Replace all labels by those of a table with the column `path`. Its other columns are the levels, coarse to fine.
    #[arg(long, value_name = "TABLE", group = "change")]
    pub relabel: Option<PathBuf>,
    /// Join small segments, and drop what was removed.
    #[arg(long, group = "change")]
    pub compact: bool,
    /// Make all embeddings again with another model. Until they are complete, the gallery stays as it was.
    #[arg(long, value_name = "MODEL", group = "change")]
    pub reembed: Option<PathBuf>,
    /// Add the pictures and embeddings of other galleries of the same encoder, such as parts that other machines have made.
    #[arg(long, value_name = "GALLERY", num_args = 1.., group = "change")]
    pub collect: Vec<PathBuf>,
    /// Measure how certain the answers of the gallery are, for galleries of more than 20,000 pictures. It is done for smaller
    /// ones after each change.
    #[arg(long)]
    pub calibrate: bool,
    /// The names of the levels, coarse to fine: those of the folders, or the columns of a table.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// How embeddings are stored: in 32, 16 or 8 bits a number. What fewer bits cost is said.
    #[arg(long, value_enum, default_value_t = NumbersArg::Float32, requires = "out")]
    pub numbers: NumbersArg,
    /// The encoder of a bundle that has several.
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    #[command(flatten)]
    pub compute: ComputeArgs,
    #[command(flatten)]
    pub pretrained: PretrainedArgs,
}

/// How embeddings are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NumbersArg {
    /// 32 bits: as they are.
    Float32,
    /// 16 bits.
    Float16,
    /// 8 bits, with a factor for each picture.
    Int8,
}

impl From<NumbersArg> for Numbers {
    fn from(numbers: NumbersArg) -> Self {
        match numbers {
            NumbersArg::Float32 => Self::Float32,
            NumbersArg::Float16 => Self::Float16,
            NumbersArg::Int8 => Self::Int8,
        }
    }
}

/// The pictures that are embedded before it is asked whether to stop.
const PART: usize = 256;
/// The numbers of embeddings that are held in memory until they are written.
const STAGED_NUMBERS: usize = 16 << 20;
/// How long embeddings are held in memory until they are written.
const STAGED_FOR: Duration = Duration::from_secs(60);
/// Up to this many pictures, certainty is measured after each change: it compares all with all.
const CALIBRATED: usize = 20_000;

/// Makes or changes a gallery.
pub fn run(args: IndexArgs) -> Result<()> {
    let Some(out) = &args.out else { return change(&args) };
    let listed = Listed::read(&args.pictures, &args.levels)?;
    let choice = args.choice();
    let model = GalleryEncoder::open(&args.model, &choice)?;
    let settings = Settings {
        encoder: model.note(),
        dimension: model.encoder.dimension(),
        similarity: model.similarity,
        numbers: args.numbers.into(),
        levels: listed.levels.clone(),
    };
    let digest = akin_gallery::digest(&model.files);
    let mut writer = if out.join(MANIFEST).exists() {
        let place = shell::path(out);
        let writer = Writer::open(out)?;
        let (manifest, begun) = (writer.manifest(), &writer.manifest().settings);
        if manifest.rows() > 0 {
            return Err(problem(
                format!("{} already has a gallery", out.display()),
                format!(
                    "add the pictures with `akin index {place} --add PICTURES`, or choose another directory"
                ),
            ));
        }
        // Its making was interrupted.
        if (&begun.encoder.digest, &begun.levels, begun.numbers)
            != (&digest, &settings.levels, settings.numbers)
        {
            return Err(problem(
                format!("{} was begun with another model, other levels or other numbers", out.display()),
                "remove it, or choose another directory with `--out DIR`",
            ));
        }
        writer
    } else {
        Writer::create(out, settings, model.files)?
    };
    let work = Work { encoder: model.encoder.valid(), device: model.device, progress: args.compute.progress };
    match work.add(&mut writer, &listed, &[])? {
        Course::Complete => finish(&mut writer, out, &args),
        Course::Stopped => Ok(()),
    }
}

impl IndexArgs {
    fn choice(&self) -> Choice<'_> {
        Choice {
            which: self.compute.which,
            name: self.encoder.as_deref(),
            device: self.compute.device,
            pretrained: &self.pretrained,
            progress: self.compute.progress,
        }
    }
}

/// Changes a gallery.
fn change(args: &IndexArgs) -> Result<()> {
    let folder = &args.model;
    let progress = args.compute.progress;
    let asks = !args.add.is_empty()
        || !args.remove.is_empty()
        || !args.collect.is_empty()
        || args.relabel.is_some()
        || args.reembed.is_some()
        || args.refresh
        || args.compact
        || args.calibrate;
    if !asks {
        return Err(problem(
            "it is not said what to do",
            "make a gallery with `akin index MODEL PICTURES --out GALLERY`, or change one with `--add`, `--remove`, \
             `--refresh`, `--relabel`, `--compact`, `--reembed` or `--collect`",
        ));
    }
    if args.reembed.is_none() {
        args.choice().refuse_all_but(&[], folder, "a gallery, which keeps its encoder")?;
    }
    let listed = Listed::read(&args.add, &args.levels)?;
    let mut writer = Writer::open(folder)?;
    let work = |writer: &Writer| -> Result<Work> {
        let note = &writer.manifest().settings.encoder;
        let device = device::open(args.compute.device.unwrap_or_default())?;
        let encoder = of_gallery(folder, note, &device)?.valid();
        Ok(Work { encoder, device, progress })
    };
    let mut course = Course::Complete;
    if !args.add.is_empty() {
        course = work(&writer)?.add(&mut writer, &listed, &[])?;
    } else if !args.remove.is_empty() {
        remove(&mut writer, &args.remove, progress)?;
    } else if args.refresh {
        let (listed, gone) = refreshed(&writer)?;
        course = work(&writer)?.add(&mut writer, &listed, &gone)?;
    } else if let Some(table) = &args.relabel {
        relabel(&mut writer, table, &args.levels, progress)?;
    } else if args.compact {
        let before = writer.manifest().segment_count();
        writer.compact()?;
        let after = counted(writer.manifest().segment_count(), "segment", "segments");
        progress.say("Joined", &format!("{} into {after}", counted(before, "segment", "segments")));
    } else if let Some(model) = &args.reembed {
        reembed(&mut writer, GalleryEncoder::open(model, &args.choice())?, progress)?;
    } else {
        args.collect.iter().try_for_each(|other| collect(&mut writer, other, progress))?;
    }
    match course {
        Course::Complete => finish(&mut writer, folder, args),
        Course::Stopped => Ok(()),
    }
}

/// Measures the certainty where that is due, and says what the gallery has.
fn finish(writer: &mut Writer, folder: &Path, args: &IndexArgs) -> Result<()> {
    let gallery = Gallery::open(folder)?;
    let rows = gallery.rows().len();
    let is_due = gallery.manifest().certainty.is_none() && rows <= CALIBRATED;
    if (args.calibrate || is_due) && rows > 1 {
        calibrate(writer, &gallery)?;
    }
    let progress = args.compute.progress;
    if let Some(cosine) = writer.manifest().worst_cosine() {
        progress
            .say("Stored", &format!("in fewer bits: the cosine to each embedding is at least {cosine:.5}"));
    }
    progress.say("Gallery", &format!("{} has {}", folder.display(), counted(rows, "picture", "pictures")));
    progress.say("Next", &format!("`akin search {} PICTURE` finds the nearest", shell::path(folder)));
    Ok(())
}

fn calibrate(writer: &mut Writer, gallery: &Gallery) -> Result<()> {
    let known = gallery.known()?;
    let vectors = gallery.vectors();
    let d = vectors.dimension();
    let labelled: Vec<usize> = match &known.rows {
        None => (0..vectors.len()).collect(),
        Some(rows) => (0..rows.len()).filter(|&row| rows[row].is_some()).collect(),
    };
    if labelled.len() < 2 {
        return Ok(());
    }
    let mut values = vec![0.0; labelled.len() * d];
    for (&row, values) in labelled.iter().zip(values.chunks_mut(d)) {
        vectors.read(row, values)?;
    }
    let embeddings = Embeddings::new(d, values)?;
    let own = LeaveOneOut::new(&embeddings, &known.labels, gallery.manifest().settings.similarity)?;
    writer.calibrate(Certainty { calibration: own.calibration(), best_scores: own.best_scores() })
}

/// What embeds.
struct Work {
    encoder: Encoder,
    device: Device,
    progress: Progress,
}

impl Work {
    /// Adds pictures, embeds again those that have changed, and removes the rows at these places, all at once.
    fn add(&self, writer: &mut Writer, listed: &Listed, gone: &[Place]) -> Result<Course> {
        check_levels(writer.manifest(), listed)?;
        let by_file = |rows: Vec<(Place, Row)>| -> HashMap<PathBuf, (Place, Row)> {
            rows.into_iter().map(|(place, row)| (row.file(), (place, row))).collect()
        };
        let (known, staged) = (by_file(writer.rows()?), by_file(writer.staged()?));
        let pictures = listed.pictures();
        // Size, time and hash are those before the picture is read. If it changes meanwhile, the next refresh sees it.
        let stats: Vec<Option<Row>> = (0..listed.rows.len())
            .into_par_iter()
            .map(|item| {
                let file = listed.rows[item].file();
                let old = known.get(&file).or_else(|| staged.get(&file)).map(|(_, row)| row);
                match listed.stat(item, old) {
                    Ok(row) => Ok(Some(row)),
                    Err(error) if akin_base::files::is_fault_of_file(&error) => {
                        terminal::warn(format_args!("skipped {}: {error}", file.display()));
                        Ok(None)
                    }
                    Err(error) => Err(akin_base::files::system_fault(&file, &error)),
                }
            })
            .collect::<Result<_>>()?;
        let is_same = |old: &Row, new: &Row| old.sha256 == new.sha256;
        let mut removed = gone.to_vec();
        let mut wanted: HashSet<Place> = HashSet::new();
        let mut items = Vec::new();
        let mut unreadable = 0;
        for (item, stat) in stats.iter().enumerate() {
            let Some(stat) = stat else {
                unreadable += 1;
                continue;
            };
            let file = stat.file();
            match (known.get(&file), staged.get(&file)) {
                (Some((_, old)), _) if is_same(old, stat) => {}
                (old, staged) => {
                    removed.extend(old.map(|(place, _)| *place));
                    match staged {
                        Some((place, done)) if is_same(done, stat) && done.labels == stat.labels => {
                            wanted.insert(*place);
                        }
                        _ => items.push(item),
                    }
                }
            }
        }
        // What an interrupted change has embedded and is not asked for any more.
        removed.extend(staged.values().map(|(place, _)| *place).filter(|place| !wanted.contains(place)));
        if !wanted.is_empty() {
            self.progress.say(
                "Continuing",
                &format!("{} embedded before", counted(wanted.len(), "picture was", "pictures were")),
            );
        }
        let bar = self.progress.bar("Embedding", items.len() as u64);
        let ctrl_c = CatchCtrlC::start();
        let mut buffer = Buffer::new();
        let mut added = wanted.len();
        for part in items.chunks(PART) {
            let forward = |images| self.encoder.forward(images);
            let (read, values) =
                forward_pictures(&self.encoder, &pictures, part, &self.device, &bar, forward)?;
            check_finite(&values, self.encoder.dimension(), |row| listed.rows[read[row]].file())?;
            buffer.rows.extend(read.iter().filter_map(|&item| stats[item].clone()));
            buffer.values.extend(values);
            added += read.len();
            unreadable += part.len() - read.len();
            if buffer.is_full() || stop_requested() {
                buffer.stage(writer)?;
            }
            if stop_requested() {
                bar.finish();
                self.progress.say("Stopped", "the gallery is as it was; the same command continues");
                return Ok(Course::Stopped);
            }
        }
        buffer.stage(writer)?;
        drop(ctrl_c);
        bar.finish();
        if unreadable == listed.rows.len() && unreadable > 0 {
            return Err(problem(
                "none of the pictures can be read",
                "give pictures in a format that akin reads: JPEG, PNG, WebP, GIF, BMP or TIFF",
            ));
        }
        let before = writer.manifest().rows();
        writer.commit(&removed)?;
        if unreadable > 0 {
            self.progress.say(
                "Skipped",
                &format!("{} that cannot be read", counted(unreadable, "picture", "pictures")),
            );
        }
        let unchanged = listed.rows.len() - added - unreadable;
        let removed = before + added - writer.manifest().rows();
        self.progress.say(
            "Added",
            &format!(
                "{}; {} left as they are, {} removed or embedded again",
                counted(added, "picture", "pictures"),
                count(unchanged),
                count(removed)
            ),
        );
        Ok(Course::Complete)
    }
}

/// How far a change came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// All of it is in the gallery.
    Complete,
    /// Ctrl-C stopped it. What was embedded is staged.
    Stopped,
}

/// Rows that wait to be written.
struct Buffer {
    rows: Vec<Row>,
    values: Vec<f32>,
    since: Instant,
}

impl Buffer {
    fn new() -> Self {
        Self { rows: Vec::new(), values: Vec::new(), since: Instant::now() }
    }

    fn is_full(&self) -> bool {
        self.values.len() >= STAGED_NUMBERS || self.since.elapsed() >= STAGED_FOR
    }

    fn stage(&mut self, writer: &mut Writer) -> Result<()> {
        writer.stage(&self.rows, &self.values)?;
        *self = Self::new();
        Ok(())
    }
}

/// Refuses more levels than the gallery has.
fn check_levels(manifest: &Manifest, listed: &Listed) -> Result<()> {
    let (own, depth) = (&manifest.settings.levels, listed.rows.iter().map(|row| row.labels.len()).max());
    if depth.unwrap_or_default() <= own.len() {
        return Ok(());
    }
    Err(problem(
        format!(
            "the pictures have labels of {}, but the gallery has {}: {}",
            counted(depth.unwrap_or_default(), "level", "levels"),
            counted(own.len(), "level", "levels"),
            a_few(own)
        ),
        "give the gallery its labels with `--relabel TABLE`, or add pictures with as many levels",
    ))
}

fn check_finite(values: &[f32], dimension: usize, file: impl Fn(usize) -> PathBuf) -> Result<()> {
    match values.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(place) => Err(numbers_problem(
            format!("the embedding of {} has NaN or infinity", file(place / dimension).display()),
            "the weights of the model are damaged or too large: use another model",
        )),
    }
}

/// Removes pictures and what is in folders.
fn remove(writer: &mut Writer, paths: &[PathBuf], progress: Progress) -> Result<()> {
    let rows = writer.rows()?;
    let mut removed = Vec::new();
    let mut unknown = Vec::new();
    for path in paths {
        let whole = fs::canonicalize(path).unwrap_or(absolute(path)?);
        let here =
            rows.iter().filter(|(_, row)| row.file().starts_with(&whole) || Path::new(&row.path) == path);
        let before = removed.len();
        removed.extend(here.map(|(place, _)| *place));
        if removed.len() == before {
            unknown.push(path.display().to_string());
        }
    }
    if !unknown.is_empty() {
        return Err(problem(
            format!("the gallery has no picture at {}", a_few(&unknown)),
            "nothing was removed; name pictures or folders that it has",
        ));
    }
    let before = writer.manifest().rows();
    writer.commit(&removed)?;
    progress.say("Removed", &counted(before - writer.manifest().rows(), "picture", "pictures"));
    Ok(())
}

/// What the sources of a gallery hold now, and the places of the pictures that are gone.
fn refreshed(writer: &Writer) -> Result<(Listed, Vec<Place>)> {
    let rows = writer.rows()?;
    let sources: BTreeMap<&str, usize> = rows.iter().fold(BTreeMap::new(), |mut sources, (_, row)| {
        *sources.entry(row.source.as_str()).or_default() += 1;
        sources
    });
    let mut listed = Listed { levels: writer.manifest().settings.levels.clone(), ..Listed::default() };
    for (&source, &pictures) in &sources {
        let path = Path::new(source);
        if !path.exists() && !source.is_empty() {
            return Err(problem(
                format!("{source}, where {} came from, is gone", counted(pictures, "picture", "pictures")),
                format!("mount it again, or take its pictures out with `--remove {}`", shell::path(path)),
            ));
        }
    }
    // New pictures are looked for where folders were indexed as a whole: in a source that is a folder with labelled trees
    // or loose pictures, and not in one from which single files were taken.
    let mut gone = Vec::new();
    let mut there = HashSet::new();
    for (place, row) in &rows {
        let file = row.file();
        let is_inside = Path::new(&row.source).is_file();
        if file.exists() || is_inside {
            there.insert(file);
            listed.rows.push(Row {
                labels: row.labels.clone(),
                path: row.path.clone(),
                source: row.source.clone(),
                ..Row::default()
            });
        } else {
            gone.push(*place);
        }
    }
    for source in sources.keys().map(Path::new).filter(|source| source.is_dir()) {
        let found = Listed::read(&[source.to_owned()], &[])?;
        listed.rows.extend(found.rows.into_iter().filter(|row| there.insert(row.file())));
    }
    Ok((listed, gone))
}

/// Replaces the labels by those of a table.
fn relabel(writer: &mut Writer, table: &Path, levels: &[String], progress: Progress) -> Result<()> {
    if levels.is_empty() {
        return Err(problem(
            "the columns of the labels are not given",
            "name them, coarse to fine: `--levels kind,variety`",
        ));
    }
    let file = Table::open(table)?;
    let folder = absolute(table)?.parent().unwrap_or(Path::new("")).to_owned();
    let wanted: Vec<(&str, &str)> = std::iter::once(("path", "add a column with the paths of the pictures"))
        .chain(levels.iter().map(|level| (level.as_str(), "name the columns of the labels with `--levels`")))
        .collect();
    let mut labels: HashMap<PathBuf, Vec<String>> = HashMap::new();
    file.read(&wanted, |number, cells| {
        let (path, cells) = (Path::new(cells[0]), &cells[1..]);
        let known = cells.iter().position(|label| label.is_empty()).unwrap_or(cells.len());
        if cells[known..].iter().any(|label| !label.is_empty()) {
            return Err(problem(
                format!("row {number} of {} has a label below an empty one", table.display()),
                "fill it in, or leave the finer labels empty, too",
            ));
        }
        labels.insert(path.to_owned(), cells[..known].iter().map(|&label| label.to_owned()).collect());
        Ok(())
    })?;
    let find = |row: &Row| {
        let file = row.file();
        let from_table = file.strip_prefix(&folder).ok().and_then(|path| labels.get(path));
        labels.get(&file).or_else(|| labels.get(Path::new(&row.path))).or(from_table)
    };
    let rows = writer.rows()?;
    let found = rows.iter().filter(|(_, row)| find(row).is_some()).count();
    if found == 0 {
        return Err(problem(
            format!("{} names none of the pictures of the gallery", table.display()),
            "write their paths from the root, from their source, or from the folder of the table",
        ));
    }
    writer.relabel(levels.to_vec(), |row| find(row).cloned().unwrap_or_default())?;
    progress.say("Labelled", &format!("{} of {}", count(found), counted(rows.len(), "picture", "pictures")));
    Ok(())
}

/// Embeds all pictures again.
fn reembed(writer: &mut Writer, model: GalleryEncoder, progress: Progress) -> Result<()> {
    let rows: Vec<Row> = writer.rows()?.into_iter().map(|(_, row)| row).collect();
    let listed = Listed { rows, ..Listed::default() };
    let gone: Vec<String> = listed
        .rows
        .iter()
        .map(Row::file)
        .filter(|file| !file.is_file())
        .map(|file| file.display().to_string())
        .collect();
    if !gone.is_empty() {
        return Err(problem(
            format!(
                "{} of the gallery are gone: {}",
                counted(gone.len(), "picture", "pictures"),
                a_few(&gone)
            ),
            "bring them back, or take them out with `--refresh`",
        ));
    }
    let encoder = model.encoder.valid();
    let settings = Settings {
        encoder: model.note(),
        dimension: encoder.dimension(),
        similarity: model.similarity,
        ..writer.manifest().settings.clone()
    };
    let pictures = listed.pictures();
    let bar: Bar = progress.bar("Embedding", listed.rows.len() as u64);
    let items: Vec<usize> = (0..listed.rows.len()).collect();
    let size = (STAGED_NUMBERS / encoder.dimension()).clamp(PART, 1 << 16);
    let parts = items.chunks(size).map(|part| -> Result<(Vec<Row>, Vec<f32>)> {
        let forward = |images| encoder.forward(images);
        let (read, values) = forward_pictures(&encoder, &pictures, part, &model.device, &bar, forward)?;
        check_finite(&values, encoder.dimension(), |row| listed.rows[read[row]].file())?;
        if read.len() < part.len() {
            return Err(problem(
                "a picture of the gallery cannot be read any more",
                "nothing was changed; see which above, and take it out with `--remove`",
            ));
        }
        Ok((read.iter().map(|&item| listed.rows[item].clone()).collect(), values))
    });
    writer.reembed(settings, model.files, parts)?;
    bar.finish();
    Ok(())
}

/// Adds the rows of another gallery.
fn collect(writer: &mut Writer, other: &Path, progress: Progress) -> Result<()> {
    let gallery = Gallery::open(other)?;
    let (own, theirs) = (writer.manifest().settings.clone(), gallery.manifest().settings.clone());
    check_encoder(writer.manifest(), &theirs.encoder.digest)?;
    let depth = gallery.rows().iter().map(|row| row.labels.len()).max().unwrap_or_default();
    if depth > 0 && own.levels != theirs.levels {
        return Err(problem(
            format!(
                "{} has the levels {}, and the gallery {}",
                other.display(),
                a_few(&theirs.levels),
                a_few(&own.levels)
            ),
            "give both the same levels with `--relabel`",
        ));
    }
    let there: HashSet<PathBuf> = writer.rows()?.into_iter().map(|(_, row)| row.file()).collect();
    let new: Vec<usize> =
        (0..gallery.rows().len()).filter(|&row| !there.contains(&gallery.rows()[row].file())).collect();
    // A change that was killed has left rows, which may be the same ones.
    let left: Vec<Place> = writer.staged()?.into_iter().map(|(place, _)| place).collect();
    let size = (STAGED_NUMBERS / own.dimension).max(1);
    for part in new.chunks(size) {
        let mut values = vec![0.0; part.len() * own.dimension];
        for (&row, values) in part.iter().zip(values.chunks_mut(own.dimension)) {
            gallery.vectors().read(row, values)?;
        }
        let rows: Vec<Row> = part.iter().map(|&row| gallery.rows()[row].clone()).collect();
        writer.stage(&rows, &values)?;
    }
    writer.commit(&left)?;
    progress
        .say("Collected", &format!("{} of {}", counted(new.len(), "picture", "pictures"), other.display()));
    Ok(())
}
