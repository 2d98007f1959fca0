//! Directories of results: runs, bundles, data sets, comparisons and demos. They are replaced only as a whole, and never
//! by mistake.
//!
//! Each bears a mark, the file `.akin.json`, which says what it is. Once the directory is complete, the mark lists what
//! akin wrote, with lengths and checksums:
//!
//! ```text
//! { "akin": "run", "version": 2, "files": [{ "path": "config.toml", "bytes": 812, "sha256": "…" }, …], "sha256": "…" }
//! ```
//!
//! Only a directory with its mark is ever replaced, and only if nothing else was put into it. What is in no list of a
//! complete directory is foreign; in an unfinished one, so is every file whose name akin does not use there. Of a site,
//! which has the file names of any page, the mark lists the files before they are written.
//!
//! A [`Draft`] is a directory that is being written. It holds a lock, which names its process, so that two processes
//! never write the same results. Where there are older results, the draft stands beside them, in `NAME.new`, and
//! takes their place in [`Draft::complete`]:
//!
//! ```text
//! NAME → NAME.akin-old     NAME.new → NAME     remove NAME.akin-old
//! ```
//!
//! The mark of such a draft says so until it has taken the place. A `NAME.new` whose mark does not is a user's, and is
//! left alone. A process that is killed between these steps leaves `NAME.akin-old` without `NAME`. [`recover`] puts it
//! back, before the next draft and before the next reader.

use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process;

use akin_core::bundle::FileEntry;
use akin_core::digest::sha256;
use anyhow::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::files::{
    self, PART_PREFIX, PART_SUFFIX, create_folder, read_regular_file, remove_file, remove_folder, rename,
    write_atomic,
};
use crate::machine;
use crate::problem::{Advise, a_few, problem};
use crate::terminal;

/// The name of the mark.
pub const MARK_FILE: &str = ".akin.json";
const LOCK_FILE: &str = ".akin.lock";
const VERSION: u32 = 2;
/// What the name of a replaced directory ends in until it is removed. No user would choose it.
const OLD: &str = "akin-old";

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A training.
    Run,
    /// Files for the browser.
    Bundle,
    /// Drawn images with their labels.
    DataSet,
    /// The trainings and tables of `akin compare`.
    Comparison,
    /// The trainings and results of `akin tune`.
    Tuning,
    /// All of `akin demo`.
    Demo,
    /// The page and its bundles, to be published.
    Site,
}

impl Kind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Bundle => "bundle",
            Kind::DataSet => "data set",
            Kind::Comparison => "comparison",
            Kind::Tuning => "tuning",
            Kind::Demo => "demo",
            Kind::Site => "site",
        }
    }

    /// The paths of the files that akin writes into such a directory, as patterns: `*` stands for any part of a name, and
    /// `**` for any part of a path. A pattern has one `**`, or one `*` a name. The files of a site are planned, see
    /// [`Draft::plan`].
    fn contents(self) -> &'static [&'static str] {
        match self {
            Kind::Run => &[
                "config.toml",
                "run.json",
                "log.jsonl",
                "checkpoint.akin",
                "encoder.bpk",
                "best.akin",
                "report.json",
                "provenance.json",
                "events.out.tfevents.*",
            ],
            Kind::Bundle => &[
                "bundle.json",
                "labels.bin",
                "thumbnails-*.jpg",
                "README.md",
                "NOTICE.md",
                "*/*.bpk",
                "*/*.f16",
                "*/*.f32",
                "*/*.u32",
            ],
            Kind::DataSet => &["labels.csv", "images/**.png"],
            // Beside each training: its config, its outcome, what it printed, and its lock.
            Kind::Comparison => &[
                "table.*",
                "features.akin",
                "figures/*.svg",
                "figures/*.png",
                "*/*.toml",
                "*/*.outcome.json",
                "*/*.stderr",
                "*/*.lock",
            ],
            Kind::Tuning => &[
                "best.toml",
                "results.*",
                "trials.csv",
                "features.akin",
                "trials/**.toml",
                "trials/**.outcome.json",
                "trials/**.stderr",
                "trials/**.lock",
                "models/**.toml",
                "models/**.json",
                "models/**.stderr",
                "models/**.lock",
            ],
            Kind::Demo => &["*.toml"],
            Kind::Site => &[],
        }
    }

    /// Whether akin writes a file of this path into such a directory, if these are planned.
    fn writes(self, path: &str, planned: &[String]) -> bool {
        self.contents().iter().any(|pattern| matches(path, pattern))
            || planned.iter().any(|planned| planned == path)
    }

    /// Whether directories with a mark of their own belong into such a directory.
    fn has_directories(self) -> bool {
        matches!(self, Kind::Comparison | Kind::Tuning | Kind::Demo)
    }
}

/// Whether a path has the form of a pattern, see [`Kind::contents`].
fn matches(path: &str, pattern: &str) -> bool {
    let surrounds = |[start, end]: [&str; 2], text: &str| {
        text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
    };
    if let Some((start, end)) = pattern.split_once("**") {
        return surrounds([start, end], path);
    }
    let names = path.split('/').zip(pattern.split('/'));
    path.split('/').count() == pattern.split('/').count()
        && names.into_iter().all(|(name, pattern)| match pattern.split_once('*') {
            None => name == pattern,
            Some((start, end)) => surrounds([start, end], name),
        })
}

/// The contents of [`MARK_FILE`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Mark {
    /// What the directory holds.
    #[serde(rename = "akin")]
    pub kind: Kind,
    version: u32,
    /// Whether this is a draft that stands beside the results that it is to replace.
    #[serde(default)]
    beside: bool,
    /// The paths of the files that akin is about to write, see [`Draft::plan`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    planned: Vec<String>,
    /// What akin wrote, once the directory is complete. Directories with a mark of their own are apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileEntry>>,
    /// The directories inside that have a mark of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The SHA-256 of this mark without this field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sha256: String,
}

/// The part of a [`Mark`] that every version has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Mark {
    fn new(kind: Kind, beside: bool) -> Self {
        Self {
            kind,
            version: VERSION,
            beside,
            planned: Vec::new(),
            files: None,
            directories: Vec::new(),
            sha256: String::new(),
        }
    }

    /// The mark of a directory; none if it has no mark.
    ///
    /// # Errors
    ///
    /// A mark that cannot be read, is damaged, or is of another version.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(MARK_FILE);
        let bytes = match read_regular_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) => {
                return Err(error)
                    .advise(|| format!("{} cannot be read", path.display()), "check its permissions");
            }
        };
        Self::parse(&path, &bytes).map(Some)
    }

    /// The mark in the bytes of a file.
    ///
    /// # Errors
    ///
    /// A mark that is damaged, or of another version.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            problem(
                format!("{} is damaged", path.display()),
                "akin no longer knows what it wrote there: use another directory, or remove this one yourself",
            )
        };
        let Version { version } = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        if version != VERSION {
            return Err(problem(
                format!("{} is of version {version}, but this akin knows version {VERSION}", path.display()),
                "use the akin that wrote it, or another directory",
            ));
        }
        let mut mark: Self = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let stated = std::mem::take(&mut mark.sha256);
        if stated != sha256(&serde_json::to_vec(&mark)?) {
            return Err(damaged());
        }
        Ok(mark)
    }

    fn write(mut self, directory: &Path) -> Result<()> {
        self.sha256 = String::new();
        self.sha256 = sha256(&serde_json::to_vec(&self)?);
        let json = serde_json::to_vec(&self)?;
        write_atomic(&directory.join(MARK_FILE), |file| file.write_all(&json))
    }

    /// The paths of what somebody else put into the directory.
    ///
    /// # Errors
    ///
    /// A directory inside that cannot be read, or whose mark cannot.
    fn foreign(&self, directory: &Path, inventory: &Inventory) -> Result<Vec<String>> {
        let known: Option<HashSet<&str>> = self.files.as_ref().map(|files| {
            files.iter().map(|file| &*file.path).chain(self.directories.iter().map(String::as_str)).collect()
        });
        let is_own = |path: &str, by_name: bool| match &known {
            Some(known) => known.contains(path),
            None => by_name,
        };
        let files =
            inventory.files.iter().filter(|path| !is_own(path, self.kind.writes(path, &self.planned)));
        let mut foreign: Vec<String> = files.chain(&inventory.others).cloned().collect();
        for path in &inventory.directories {
            if !is_own(path, self.kind.has_directories()) {
                foreign.push(path.clone());
                continue;
            }
            let inner = directory.join(path);
            if let Some(mark) = Mark::read(&inner)? {
                let inside = mark.foreign(&inner, &take_inventory(&inner)?)?;
                foreign.extend(inside.into_iter().map(|inside| format!("{path}/{inside}")));
            }
        }
        Ok(foreign)
    }
}

/// What is wrong with a file that a mark lists, in words.
pub enum Flaw {
    /// It is missing or cannot be read.
    Unreadable(String),
    /// It was read, and is not as akin wrote it.
    Changed(String),
}

impl Flaw {
    /// The words.
    pub fn why(self) -> String {
        match self {
            Self::Unreadable(why) | Self::Changed(why) => why,
        }
    }
}

/// Reads a file that a mark lists.
///
/// # Errors
///
/// A file that is missing, has another length or another SHA-256, or cannot be read.
pub fn check_file(directory: &Path, file: &FileEntry) -> std::result::Result<Vec<u8>, Flaw> {
    let bytes = read_regular_file(&directory.join(&file.path))
        .map_err(|error| Flaw::Unreadable(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 != file.bytes {
        return Err(Flaw::Changed(format!("it has {} bytes instead of {}", bytes.len(), file.bytes)));
    }
    match sha256(&bytes) == file.sha256 {
        true => Ok(bytes),
        false => Err(Flaw::Changed("its SHA-256 is not the one in the mark of the directory".into())),
    }
}

/// Reads a file of a complete directory, and checks that it is as akin wrote it.
///
/// # Errors
///
/// A directory without a mark, or one that is not complete; a file that the mark does not list, or that has changed.
pub fn read_checked(directory: &Path, name: &str) -> Result<Vec<u8>> {
    let path = directory.join(name);
    let again = "restore the directory from a copy, or make it again";
    let files = Mark::read(directory)?.and_then(|mark| mark.files);
    let Some(file) = files.iter().flatten().find(|file| file.path == name) else {
        return Err(problem(format!("{} is not complete: it has no {name}", directory.display()), again));
    };
    check_file(directory, file)
        .map_err(|flaw| problem(format!("{} is damaged: {}", path.display(), flaw.why()), again))
}

/// Whether a directory is complete and still has every file that akin wrote. Their contents are not checked.
///
/// # Errors
///
/// The errors of [`Mark::read`].
pub fn is_complete(kind: Kind, directory: &Path) -> Result<bool> {
    let mark = Mark::read(directory)?.filter(|mark| mark.kind == kind);
    let files = mark.and_then(|mark| mark.files);
    Ok(files.is_some_and(|files| files.iter().all(|file| directory.join(&file.path).is_file())))
}

/// A directory of results that this process writes.
pub struct Draft {
    kind: Kind,
    /// Where the results belong.
    target: PathBuf,
    /// Where they are until they are complete: the target itself, or a directory beside it.
    directory: PathBuf,
    /// The files of [`Draft::plan`].
    planned: Vec<String>,
    /// The locks of both.
    locks: Vec<Lock>,
}

impl Draft {
    /// Begins a directory of results. Existing ones stay until [`Draft::complete`].
    ///
    /// # Errors
    ///
    /// The errors of [`check`]; another process that writes here; a directory that cannot be created.
    pub fn create(kind: Kind, target: &Path, overwrite: bool) -> Result<Self> {
        let replaces = check(kind, target, overwrite)?;
        let mut locks = Vec::new();
        let directory = if replaces {
            locks.push(Lock::acquire(target)?);
            let directory = beside(target, "new");
            // What an earlier attempt left.
            if is_own_draft(kind, &directory)? {
                drop(Lock::acquire(&directory)?);
                remove_folder(&directory, MARK_FILE)
                    .advise(|| format!("{} cannot be removed", directory.display()), "remove it yourself")?;
                terminal::warn(format_args!(
                    "{} is gone: an earlier `--overwrite` had left an unfinished {} there",
                    directory.display(),
                    kind.name()
                ));
            }
            directory
        } else {
            target.to_owned()
        };
        create_folder(&directory)?;
        locks.push(Lock::acquire(&directory)?);
        Mark::new(kind, replaces).write(&directory)?;
        Ok(Self { kind, target: target.to_owned(), directory, planned: Vec::new(), locks })
    }

    /// States the paths of the files that will be written, for a kind whose files have names of any form. Until they are
    /// complete, any other file is foreign.
    ///
    /// # Errors
    ///
    /// A mark that cannot be written.
    pub fn plan(&mut self, paths: Vec<String>) -> Result<()> {
        self.planned = paths;
        let mark = Mark::new(self.kind, self.target != self.directory);
        Mark { planned: self.planned.clone(), ..mark }.write(&self.directory)
    }

    /// Continues a directory of results that an earlier process began. It is not complete until [`Draft::complete`].
    ///
    /// # Errors
    ///
    /// A directory without the mark; another process that writes here.
    pub fn resume(kind: Kind, directory: &Path) -> Result<Self> {
        let (draft, mark) = Self::open(kind, directory)?;
        remove_parts(directory)?;
        if mark.files.is_some() {
            Mark { files: None, directories: Vec::new(), ..mark }.write(directory)?;
        }
        Ok(draft)
    }

    /// Continues a directory of results, or begins it if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Draft::resume`] and [`Draft::create`].
    pub fn resume_or_create(kind: Kind, directory: &Path) -> Result<Self> {
        match Mark::read(directory)? {
            Some(_) => Self::resume(kind, directory),
            None => Self::create(kind, directory, false),
        }
    }

    /// The directory of a draft, with its locks, and its mark.
    fn open(kind: Kind, directory: &Path) -> Result<(Self, Mark)> {
        let Some(mark) = Mark::read(directory)?.filter(|mark| mark.kind == kind) else {
            return Err(unmarked(kind, directory));
        };
        let mut locks = vec![Lock::acquire(directory)?];
        let stands_beside = mark.beside && directory.extension().is_some_and(|extension| extension == "new");
        let target = if stands_beside { directory.with_extension("") } else { directory.to_owned() };
        if stands_beside && target.exists() {
            locks.push(Lock::acquire(&target)?);
        }
        let planned = mark.planned.clone();
        Ok((Self { kind, target, directory: directory.to_owned(), planned, locks }, mark))
    }

    /// Where to write.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the results will be when they are complete.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Marks the directory as complete and puts it into the place of the old one, if there is one.
    ///
    /// # Errors
    ///
    /// A file that cannot be synced to the disk or read; a directory that cannot be renamed or removed. The message says
    /// where the new results are.
    pub fn complete(self) -> Result<()> {
        let inventory = take_inventory(&self.directory)?;
        // What somebody else put here stays foreign.
        let own = inventory.files.into_par_iter().filter(|path| self.kind.writes(path, &self.planned));
        let entry = |path: String| -> io::Result<FileEntry> {
            let bytes = files::sync_and_read(&self.directory.join(&path))?;
            Ok(FileEntry { path, bytes: bytes.len() as u64, sha256: sha256(&bytes) })
        };
        let files = own.map(entry).collect::<io::Result<Vec<_>>>().advise(
            || format!("the files in {} cannot be synced to the disk", self.directory.display()),
            "check the disk",
        )?;
        let mark = Mark::new(self.kind, self.target != self.directory);
        let directories = if self.kind.has_directories() { inventory.directories } else { Vec::new() };
        Mark { files: Some(files), directories, ..mark }.write(&self.directory)?;
        self.take_place()
    }

    /// Puts the complete directory into the place of the old one.
    fn take_place(self) -> Result<()> {
        let Self { kind, target, directory, locks, .. } = self;
        if target != directory {
            let old = beside(&target, OLD);
            let place = || {
                remove_own(kind, &old)?;
                if target.exists() {
                    rename(&target, &old)?;
                }
                rename(&directory, &target).inspect_err(|_| {
                    // What is reported is why the new results could not take the place.
                    let _ = rename(&old, &target);
                })
            };
            place().advise(
                || {
                    format!(
                        "the new {} is complete, but {} cannot be replaced",
                        kind.name(),
                        target.display()
                    )
                },
                &format!("the new one is {}; move it yourself", directory.display()),
            )?;
            // It stands beside nothing any more. If this is not written, only a directory that is later called `NAME.new`
            // could be taken for a draft.
            if let Ok(Some(mark)) = Mark::read(&target) {
                let _ = Mark { beside: false, ..mark }.write(&target);
            }
            remove_lock(&target);
            drop(locks);
            remove_own(kind, &old).advise(
                || {
                    format!(
                        "the new {} is in {}, but {} cannot be removed",
                        kind.name(),
                        target.display(),
                        old.display()
                    )
                },
                "it is the old version; remove it yourself",
            )?;
        } else {
            remove_lock(&target);
            drop(locks);
        }
        Ok(())
    }

    /// Removes what was written, unless somebody else put something there. Older results stay as they were.
    pub fn discard(self) {
        // The failure that led here is what the user has to see, not one of removing.
        if matches!(is_own(self.kind, &self.directory), Ok(true)) {
            let _ = remove_folder(&self.directory, MARK_FILE);
        }
        if self.directory != self.target {
            remove_lock(&self.target);
        }
    }
}

/// Puts a complete draft into the place of the old results, if a process was killed before it did. Returns where the
/// results are; none if `directory` is no such draft.
///
/// # Errors
///
/// The errors of [`Draft::resume`] and [`Draft::complete`].
pub fn finish_replacement(kind: Kind, directory: &Path) -> Result<Option<PathBuf>> {
    let (draft, _) = Draft::open(kind, directory)?;
    if draft.target == draft.directory || !is_complete(kind, directory)? {
        return Ok(None);
    }
    let place = draft.target.clone();
    draft.take_place()?;
    Ok(Some(place))
}

/// Whether a directory has results, which [`Draft::create`] would replace. Commands call this before long work.
///
/// # Errors
///
/// A directory that is not empty, unless it bears the mark of `kind`, holds nothing that akin did not write, and
/// `overwrite` is set; a directory that cannot be read.
pub fn check(kind: Kind, path: &Path, overwrite: bool) -> Result<bool> {
    recover(path)?;
    let (inventory, mark) = take_stock(kind, path)?;
    if inventory.is_empty() && mark.is_none() {
        return Ok(false);
    }
    let Some(mark) = mark.filter(|mark| mark.kind == kind) else { return Err(unmarked(kind, path)) };
    if !overwrite {
        let begun = mark.files.is_none();
        let part = if begun { "the beginning of " } else { "" };
        let resume = if begun && kind == Kind::Run { "continue it with `akin resume`, " } else { "" };
        return Err(problem(
            format!("{} already has {part}a {}", path.display(), kind.name()),
            format!("{resume}choose another directory, or pass `--overwrite` to replace it"),
        ));
    }
    refuse_foreign(&mark, path, &inventory)?;
    // A version that could not be removed is noticed now, and not after days of training.
    let old = beside(path, OLD);
    if let Some(mark) = Mark::read(&old)? {
        refuse_foreign(&mark, &old, &take_inventory(&old)?)?;
    }
    Ok(true)
}

/// Whether an earlier process left a draft of this kind here, beside the results that it was to replace.
///
/// # Errors
///
/// A directory that is no such draft, or holds something else.
fn is_own_draft(kind: Kind, path: &Path) -> Result<bool> {
    let (inventory, mark) = take_stock(kind, path)?;
    if inventory.is_empty() && mark.is_none() {
        return Ok(false);
    }
    let Some(mark) = mark.filter(|mark| mark.kind == kind && mark.beside) else {
        return Err(problem(
            format!(
                "the new {} would be written into {}, which is something else",
                kind.name(),
                path.display()
            ),
            "move that directory away, or choose another one",
        ));
    };
    refuse_foreign(&mark, path, &inventory)?;
    Ok(true)
}

/// What a directory holds, nothing if there is none, and then its mark: every process writes the mark before it writes
/// anything else.
fn take_stock(kind: Kind, path: &Path) -> Result<(Inventory, Option<Mark>)> {
    let inventory = match take_inventory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Inventory::default()),
        inventory => inventory,
    };
    let inventory = inventory.advise(
        || format!("{} cannot be used for the {}", path.display(), kind.name()),
        "choose another directory",
    )?;
    Ok((inventory, Mark::read(path)?))
}

fn refuse_foreign(mark: &Mark, path: &Path, inventory: &Inventory) -> Result<()> {
    let foreign = mark.foreign(path, inventory)?;
    if foreign.is_empty() {
        return Ok(());
    }
    Err(problem(
        format!(
            "{} is a {}, but akin did not write {} in it",
            path.display(),
            mark.kind.name(),
            a_few(&foreign)
        ),
        "move these files away, or choose another directory",
    ))
}

/// The paths of what is in a complete directory although akin did not write it.
///
/// # Errors
///
/// A directory that cannot be read.
pub fn foreign(mark: &Mark, directory: &Path) -> Result<Vec<String>> {
    let inventory = take_inventory(directory)
        .advise(|| format!("{} cannot be read", directory.display()), "check its permissions")?;
    mark.foreign(directory, &inventory)
}

/// The error for a directory that is not empty and has no mark of `kind`.
fn unmarked(kind: Kind, path: &Path) -> anyhow::Error {
    problem(
        format!(
            "{} is not empty and is not a {}: it has no {MARK_FILE} that says so",
            path.display(),
            kind.name()
        ),
        "choose another directory, or empty this one yourself",
    )
}

/// Puts the old results back where a process was killed while it replaced them.
///
/// # Errors
///
/// A process that is replacing them now; a directory that cannot be renamed.
pub fn recover(target: &Path) -> Result<()> {
    let old = beside(target, OLD);
    if target.exists() || !old.is_dir() || Mark::read(&old)?.is_none() {
        return Ok(());
    }
    let lock = Lock::acquire(&old)?;
    rename(&old, target).advise(
        || format!("{} cannot be renamed to {}", old.display(), target.display()),
        "rename it yourself",
    )?;
    remove_lock(target);
    drop(lock);
    Ok(())
}

/// Removes the lock file of a directory whose lock this process still holds: another process might already hold it
/// afterwards. One that is left does no harm.
fn remove_lock(directory: &Path) {
    let _ = remove_file(&directory.join(LOCK_FILE));
}

/// Removes an old version, if there is one. A process that was killed here has left the mark, or an empty directory.
fn remove_own(kind: Kind, path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    match is_own(kind, path) {
        Ok(true) => remove_folder(path, MARK_FILE),
        Ok(false) => Err(io::Error::other(format!("akin did not write everything in {}", path.display()))),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Whether a directory bears the mark of `kind` and holds nothing else, or is empty.
fn is_own(kind: Kind, path: &Path) -> Result<bool> {
    let inventory = take_inventory(path)?;
    Ok(match Mark::read(path)? {
        None => inventory.is_empty(),
        Some(mark) => mark.kind == kind && mark.foreign(path, &inventory)?.is_empty(),
    })
}

/// Removes the unfinished files that a killed process left.
fn remove_parts(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_part(&entry.file_name().to_string_lossy()) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether this is the name of a file that is not complete.
fn is_part(name: &str) -> bool {
    name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX)
}

/// What a directory holds besides its mark, its lock and unfinished files: paths relative to it, sorted, with `/`. No
/// name that akin writes has characters that are lost here.
#[derive(Default)]
struct Inventory {
    files: Vec<String>,
    /// Directories with a mark of their own. What is in them is not listed.
    directories: Vec<String>,
    /// Links, pipes and the like, which akin does not make.
    others: Vec<String>,
}

impl Inventory {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.is_empty() && self.others.is_empty()
    }
}

fn take_inventory(directory: &Path) -> io::Result<Inventory> {
    let mut inventory = Inventory::default();
    let mut folders = vec![(directory.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_part(&name) || name == LOCK_FILE || prefix.is_empty() && name == MARK_FILE {
                continue;
            }
            let (path, kind) = (format!("{prefix}{name}"), entry.file_type()?);
            if kind.is_file() {
                inventory.files.push(path);
            } else if !kind.is_dir() {
                inventory.others.push(path);
            } else if entry.path().join(MARK_FILE).is_file() {
                inventory.directories.push(path);
            } else {
                folders.push((entry.path(), format!("{path}/")));
            }
        }
    }
    inventory.files.sort();
    inventory.directories.sort();
    inventory.others.sort();
    Ok(inventory)
}

/// The path with an extension added to its name: `runs/a` and `old` give `runs/a.old`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

/// A share in a directory of results that several processes write at once, each a part of its own. As long as one of
/// them has a share, none has the directory as a [`Draft`], so that none can complete it.
pub struct Share {
    _lock: Lock,
}

impl Share {
    /// Takes a share in a directory, which is begun if there is none.
    ///
    /// # Errors
    ///
    /// A directory that is not empty and has no mark of `kind`; a process that has it as a draft; a directory that cannot
    /// be created.
    pub fn take(kind: Kind, directory: &Path) -> Result<Self> {
        let (inventory, mark) = take_stock(kind, directory)?;
        match mark {
            Some(mark) if mark.kind == kind => {}
            None if inventory.is_empty() => create_folder(directory)?,
            _ => return Err(unmarked(kind, directory)),
        }
        let lock = Lock::share(directory)?;
        // Several processes may write the mark here. They all write the same.
        if Mark::read(directory)?.is_none_or(|mark| mark.files.is_some()) {
            Mark::new(kind, false).write(directory)?;
        }
        Ok(Self { _lock: lock })
    }
}

/// The lock of a directory. The system releases it when the process ends, however it ends.
pub struct Lock {
    file: fs::File,
    path: PathBuf,
}

/// The process that holds a lock, for messages.
#[derive(Serialize, Deserialize)]
struct Holder {
    process: u32,
    host: String,
    since: String,
}

impl Lock {
    /// # Errors
    ///
    /// Another process holds the lock; the lock file cannot be written.
    fn acquire(directory: &Path) -> Result<Self> {
        Self::hold(directory, &directory.join(LOCK_FILE))
    }

    /// As [`Lock::acquire`], but the lock file is beside the directory, which need not exist: the file of `runs/a` is
    /// `runs/a.lock`.
    ///
    /// # Errors
    ///
    /// The errors of [`Lock::acquire`].
    pub fn beside(directory: &Path) -> Result<Self> {
        Self::hold(directory, &directory.with_extension("lock"))
    }

    /// Whether another process holds the lock of [`Lock::beside`].
    pub fn is_held_beside(directory: &Path) -> bool {
        let file = fs::File::open(directory.with_extension("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// A lock that several processes can hold, as long as none holds it alone.
    fn share(directory: &Path) -> Result<Self> {
        let lock = Self::take(directory, &directory.join(LOCK_FILE), fs::File::try_lock_shared)?;
        // A process that held it alone may have left its name.
        lock.write(b"")
    }

    /// Takes the lock for this process alone.
    fn hold(directory: &Path, path: &Path) -> Result<Self> {
        let lock = Self::take(directory, path, fs::File::try_lock)?;
        let holder = Holder { process: process::id(), host: machine::host(), since: machine::now() };
        lock.write(&serde_json::to_vec(&holder)?)
    }

    fn take(
        directory: &Path,
        path: &Path,
        try_lock: fn(&fs::File) -> std::result::Result<(), TryLockError>,
    ) -> Result<Self> {
        let cannot_open =
            || format!("{} cannot be locked: {} cannot be opened", directory.display(), path.display());
        loop {
            let file = files::open_lock(path).advise(cannot_open, CHECK_PERMISSIONS)?;
            let mut lock = Self { file, path: path.to_owned() };
            let answer = try_lock(&lock.file);
            lock.check(answer, directory)?;
            // The process that held it may have removed the file after this one opened it.
            if files::is_at(&lock.file, path).advise(cannot_open, CHECK_PERMISSIONS)? {
                return Ok(lock);
            }
        }
    }

    fn write(mut self, bytes: &[u8]) -> Result<Self> {
        let Self { file, path } = &mut self;
        files::rewrite(file, path, bytes)
            .advise(|| format!("{} cannot be written", path.display()), CHECK_PERMISSIONS)?;
        Ok(self)
    }

    /// The error for a lock that could not be had.
    fn check(&mut self, answer: std::result::Result<(), TryLockError>, directory: &Path) -> Result<()> {
        match answer {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder =
                    self.file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
                let holder = holder.map_or("another process".into(), |Holder { process, host, since }| {
                    format!("process {process} on {host}, since {since},")
                });
                Err(problem(
                    format!("{holder} is writing to {}", directory.display()),
                    "wait until it has ended, or choose another directory",
                ))
            }
            Err(TryLockError::Error(error)) => {
                Err(error).advise(|| format!("{} cannot be locked", self.path.display()), CHECK_PERMISSIONS)
            }
        }
    }

    /// Releases the lock and removes its file.
    pub fn release(self) {
        // While it is held: another process might already hold it afterwards. A file that is left does no harm.
        let _ = remove_file(&self.path);
    }
}

const CHECK_PERMISSIONS: &str = "free some space, or check the permissions of the directory";

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Results that are complete, with one file.
    fn complete(kind: Kind, path: &Path, text: &str, overwrite: bool) {
        let draft = Draft::create(kind, path, overwrite).unwrap();
        fs::write(draft.directory().join(file_of(kind)), text).unwrap();
        draft.complete().unwrap();
    }

    /// A file that such a directory has.
    fn file_of(kind: Kind) -> &'static str {
        if kind == Kind::Bundle { "labels.bin" } else { "report.json" }
    }

    fn refusal<T>(result: Result<T>) -> String {
        result.err().expect("an error").to_string()
    }

    /// The names of what a directory holds, sorted.
    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_directory_with_the_mark_of_its_kind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::create_dir(&path).unwrap();
        for name in ["config.toml", "thesis"] {
            fs::write(path.join(name), "x").unwrap();
        }
        assert!(refusal(Draft::create(Kind::Run, &path, true)).contains("is not a run"));
        assert_eq!(names(&path), ["config.toml", "thesis"]);

        let bundle = folder.path().join("bundle");
        complete(Kind::Bundle, &bundle, "first", false);
        assert!(refusal(Draft::create(Kind::Run, &bundle, true)).contains("is not a run"));
        assert!(refusal(Draft::create(Kind::Bundle, &bundle, false)).ends_with("already has a bundle"));
        complete(Kind::Bundle, &bundle, "second", true);
        assert_eq!(fs::read(bundle.join("labels.bin")).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["bundle", "s"]);
        assert_eq!(names(&bundle), [MARK_FILE, "labels.bin"]);
    }

    #[test]
    fn a_directory_that_holds_something_else_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        complete(Kind::Run, &path, "first", false);
        fs::write(path.join("thesis"), "x").unwrap();
        assert!(refusal(Draft::create(Kind::Run, &path, true)).ends_with("akin did not write thesis in it"));
        fs::remove_file(path.join("thesis")).unwrap();
        complete(Kind::Run, &path, "second", true);
    }

    #[test]
    fn an_unfinished_directory_that_holds_something_else_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        drop(Draft::create(Kind::Run, &path, false).unwrap());
        let chapters = [path.join("thesis"), path.join("thesis.json"), path.join("chapters/log.jsonl")];
        for chapter in &chapters {
            fs::create_dir_all(chapter.parent().unwrap()).unwrap();
            fs::write(chapter, "x").unwrap();
            let name = chapter.strip_prefix(&path).unwrap().display().to_string();
            let message = refusal(Draft::create(Kind::Run, &path, true));
            assert!(message.ends_with(&format!("akin did not write {name} in it")), "{message}");

            // Nor does it become a part of the results.
            fs::write(path.join("log.jsonl"), "").unwrap();
            Draft::resume(Kind::Run, &path).unwrap().complete().unwrap();
            assert!(refusal(Draft::create(Kind::Run, &path, true)).contains(&name));
            drop(Draft::resume(Kind::Run, &path).unwrap());
            fs::remove_file(chapter).unwrap();
        }
        let inner = path.join("more");
        complete(Kind::Run, &inner, "first", false);
        assert!(refusal(Draft::create(Kind::Run, &path, true)).contains("more"));
        assert!(inner.join("report.json").exists());
        fs::remove_dir_all(inner).unwrap();
        complete(Kind::Run, &path, "second", true);
        assert_eq!(names(&path), [MARK_FILE, "report.json"]);
    }

    #[test]
    fn a_site_takes_over_only_the_files_that_were_planned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site");
        let begun = || {
            let mut site = Draft::create(Kind::Site, &path, true).unwrap();
            site.plan(vec!["index.html".into(), "fonts/a.woff2".into()]).unwrap();
            fs::write(site.directory().join("index.html"), "").unwrap();
            site
        };
        drop(begun());
        fs::write(path.join("notes.html"), "mine").unwrap();
        assert!(
            refusal(Draft::create(Kind::Site, &path, true)).ends_with("akin did not write notes.html in it")
        );
        fs::remove_file(path.join("notes.html")).unwrap();

        // The next attempt stands beside it.
        let site = begun();
        fs::write(site.directory().join("notes.html"), "mine").unwrap();
        let kept = site.directory().join("notes.html");
        site.discard();
        assert_eq!(fs::read(&kept).unwrap(), b"mine");
        fs::remove_file(kept).unwrap();
        begun().complete().unwrap();
        assert_eq!(names(&path), [MARK_FILE, "index.html"]);
    }

    #[test]
    fn a_comparison_does_not_take_over_what_somebody_else_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("comparison");
        let comparison = Draft::resume_or_create(Kind::Comparison, &path).unwrap();
        fs::create_dir(path.join("happier")).unwrap();
        for own in ["table.md", "happier/seed-0.toml", "happier/seed-0.stderr"] {
            fs::write(path.join(own), "").unwrap();
        }
        for other in ["notes.txt", "happier/notes.txt"] {
            fs::write(path.join(other), "").unwrap();
        }
        comparison.complete().unwrap();
        let mark = Mark::read(&path).unwrap().unwrap();
        assert_eq!(foreign(&mark, &path).unwrap(), ["happier/notes.txt", "notes.txt"]);
    }

    #[test]
    fn what_is_in_a_directory_inside_is_checked_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo");
        let demo = Draft::create(Kind::Demo, &path, false).unwrap();
        complete(Kind::Run, &path.join("run"), "first", false);
        demo.complete().unwrap();
        assert!(check(Kind::Demo, &path, true).unwrap());
        fs::write(path.join("run/thesis"), "x").unwrap();
        assert!(refusal(check(Kind::Demo, &path, true)).ends_with("akin did not write run/thesis in it"));
    }

    #[test]
    fn results_with_the_name_of_a_draft_or_an_old_version_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [path, new, old] = ["run", "run.new", "run.old"].map(|name| folder.path().join(name));
        complete(Kind::Run, &path, "first", false);
        complete(Kind::Run, &old, "old", false);
        complete(Kind::Run, &path, "second", true);
        assert_eq!(fs::read(old.join("report.json")).unwrap(), b"old");

        // Also one that once took the place of another.
        fs::rename(&path, &new).unwrap();
        complete(Kind::Run, &path, "third", false);
        let message = refusal(Draft::create(Kind::Run, &path, true));
        assert!(message.ends_with("run.new, which is something else"), "{message}");
        assert_eq!(fs::read(new.join("report.json")).unwrap(), b"second");
        assert_eq!(fs::read(path.join("report.json")).unwrap(), b"third");

        fs::remove_dir_all(&path).unwrap();
        recover(&path).unwrap();
        assert!(!path.exists() && old.exists());
    }

    #[test]
    fn an_old_version_that_got_something_else_in_the_meantime_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        complete(Kind::Run, &path, "first", false);
        let draft = Draft::create(Kind::Run, &path, true).unwrap();
        fs::write(draft.directory().join("report.json"), "second").unwrap();
        fs::write(path.join("thesis"), "x").unwrap();
        assert!(refusal(draft.complete()).contains("run.akin-old cannot be removed"));
        assert_eq!(fs::read(path.join("report.json")).unwrap(), b"second");
        assert_eq!(fs::read(folder.path().join("run.akin-old/thesis")).unwrap(), b"x");
        assert!(refusal(Draft::create(Kind::Run, &path, true)).contains("akin did not write thesis in it"));
    }

    #[test]
    fn the_old_results_stay_until_the_new_ones_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        complete(Kind::Run, &path, "first", false);
        let draft = Draft::create(Kind::Run, &path, true).unwrap();
        fs::write(draft.directory().join("report.json"), "half").unwrap();
        assert_eq!(fs::read(path.join("report.json")).unwrap(), b"first");
        draft.discard();
        assert_eq!(names(folder.path()), ["run"]);

        // A process that was killed leaves its draft, which can be continued or begun again.
        let killed = Draft::create(Kind::Run, &path, true).unwrap();
        let aside = killed.directory().to_owned();
        fs::write(aside.join("report.json"), "second").unwrap();
        fs::write(aside.join(".akin-1.part"), "").unwrap();
        drop(killed);
        let resumed = Draft::resume(Kind::Run, &aside).unwrap();
        assert_eq!(resumed.target(), path);
        resumed.complete().unwrap();
        assert_eq!(fs::read(path.join("report.json")).unwrap(), b"second");
        assert_eq!(names(&path), [MARK_FILE, "report.json"]);
        drop(Draft::create(Kind::Run, &path, true).unwrap());
        complete(Kind::Run, &path, "third", true);
        assert_eq!(names(folder.path()), ["run"]);
    }

    #[test]
    fn results_come_back_after_a_kill_between_the_renames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle");
        complete(Kind::Bundle, &path, "first", false);
        fs::rename(&path, folder.path().join("bundle.akin-old")).unwrap();
        assert!(refusal(Draft::create(Kind::Bundle, &path, false)).ends_with("already has a bundle"));
        assert_eq!(fs::read(path.join("labels.bin")).unwrap(), b"first");
    }

    #[test]
    fn a_draft_that_is_discarded_keeps_what_somebody_else_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle");
        let draft = Draft::create(Kind::Bundle, &path, false).unwrap();
        fs::write(path.join("labels.bin"), "x").unwrap();
        fs::write(path.join("thesis"), "x").unwrap();
        draft.discard();
        assert!(path.join("thesis").exists());
        fs::remove_file(path.join("thesis")).unwrap();
        Draft::resume(Kind::Bundle, &path).unwrap().discard();
        assert!(!path.exists());
    }

    #[test]
    fn many_that_want_a_lock_have_it_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("download");
        let holders = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = 0;
                    while held < 50 {
                        // A lock file is removed with the lock, while others are about to take it.
                        let Ok(lock) = Lock::beside(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                        lock.release();
                        held += 1;
                    }
                });
            }
        });
    }

    #[test]
    fn two_processes_do_not_write_the_same_results() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let first = Draft::create(Kind::Run, &path, false).unwrap();
        let message = refusal(Draft::create(Kind::Run, &path, true));
        assert!(message.contains(&format!("process {}", process::id())), "{message}");
        assert!(refusal(Draft::resume(Kind::Run, &path)).contains("is writing to"));
        first.complete().unwrap();
        let second = Draft::create(Kind::Run, &path, true).unwrap();
        assert!(refusal(Draft::create(Kind::Run, &path, true)).contains("is writing to"));
        second.complete().unwrap();
    }

    #[test]
    fn processes_share_a_directory_that_no_other_has_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("comparison");
        let alone = Draft::resume_or_create(Kind::Comparison, &path).unwrap();
        assert!(
            refusal(Share::take(Kind::Comparison, &path)).contains(&format!("process {}", process::id()))
        );
        fs::write(path.join("table"), "").unwrap();
        alone.complete().unwrap();
        let shares = [(); 2].map(|()| Share::take(Kind::Comparison, &path).unwrap());
        assert_eq!(Mark::read(&path).unwrap().unwrap().files, None, "it is no longer complete");
        assert!(refusal(Draft::resume(Kind::Comparison, &path)).starts_with("another process is writing to"));
        drop(shares);
        Draft::resume(Kind::Comparison, &path).unwrap();

        let foreign = folder.path().join("thesis");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("chapter"), "").unwrap();
        for directory in [&foreign, &foreign.join("chapter")] {
            refusal(Share::take(Kind::Comparison, directory));
        }
        assert_eq!(names(&foreign), ["chapter"]);
    }
}
