//! Directories of results: runs, bundles, data sets and demos. They are replaced only as a whole, and never by mistake.
//!
//! Each bears a mark, the file `.akin.json`, which says what it is: `{ "akin": "run", "version": 1 }`. Only a directory
//! with its mark is ever replaced. A directory that akin completed is replaced only if nothing else was put into it: the
//! mark lists what akin wrote.
//!
//! A [`Draft`] is a directory that is being written. It holds a lock, which names its process, so that two processes
//! never write the same results. Where there are older results, the draft stands beside them, in `NAME.new`, and
//! takes their place in [`Draft::complete`]:
//!
//! ```text
//! NAME → NAME.old     NAME.new → NAME     remove NAME.old
//! ```
//!
//! A process that is killed between these steps leaves `NAME.old` without `NAME`. The next draft of `NAME` puts it back.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::files::{PART_PREFIX, PART_SUFFIX, write_atomic};
use crate::machine;
use crate::problem::{Advise, a_few, problem};

/// The name of the mark.
pub const MARK_FILE: &str = ".akin.json";
const LOCK_FILE: &str = ".akin.lock";
const VERSION: u32 = 1;

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
    /// All of `akin demo`.
    Demo,
    /// The page and its bundles, to be published.
    Site,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Bundle => "bundle",
            Kind::DataSet => "data set",
            Kind::Demo => "demo",
            Kind::Site => "site",
        }
    }
}

/// The contents of [`MARK_FILE`].
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    akin: Kind,
    version: u32,
    /// Whether this is a draft that stands beside the results that it will replace.
    #[serde(default)]
    beside: bool,
    /// The names of what akin wrote, once the directory is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<String>>,
}

impl Mark {
    /// The mark of a directory; none if it has no readable mark of a known version.
    fn read(directory: &Path) -> Option<Self> {
        let mark: Self = serde_json::from_slice(&fs::read(directory.join(MARK_FILE)).ok()?).ok()?;
        (mark.version == VERSION).then_some(mark)
    }

    fn write(&self, directory: &Path) -> Result<()> {
        let json = serde_json::to_vec(self)?;
        write_atomic(&directory.join(MARK_FILE), |file| file.write_all(&json))
    }
}

/// A directory of results that this process writes.
pub struct Draft {
    kind: Kind,
    /// Where the results belong.
    target: PathBuf,
    /// Where they are until they are complete: the target itself, or a directory beside it.
    directory: PathBuf,
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
        restore(kind, target)?;
        let replaces = check(kind, target, overwrite)?;
        let mut locks = Vec::new();
        let directory = if replaces {
            locks.push(Lock::acquire(target)?);
            let directory = beside(target, "new");
            // What an earlier attempt left.
            if check(kind, &directory, true)? {
                drop(Lock::acquire(&directory)?);
                fs::remove_dir_all(&directory)
                    .advise(|| format!("{} cannot be removed", directory.display()), "remove it yourself")?;
            }
            directory
        } else {
            target.to_owned()
        };
        fs::create_dir_all(&directory).advise(
            || format!("{} cannot be created", directory.display()),
            "check the path and its permissions",
        )?;
        locks.push(Lock::acquire(&directory)?);
        Mark { akin: kind, version: VERSION, beside: replaces, entries: None }.write(&directory)?;
        Ok(Self { kind, target: target.to_owned(), directory, locks })
    }

    /// Continues a directory of results that an earlier process began.
    ///
    /// # Errors
    ///
    /// A directory without the mark; another process that writes here.
    pub fn resume(kind: Kind, directory: &Path) -> Result<Self> {
        let Some(mark) = Mark::read(directory).filter(|mark| mark.akin == kind) else {
            return Err(unmarked(kind, directory));
        };
        let mut locks = vec![Lock::acquire(directory)?];
        let target = if mark.beside { directory.with_extension("") } else { directory.to_owned() };
        if mark.beside && target.exists() {
            locks.push(Lock::acquire(&target)?);
        }
        remove_parts(directory)?;
        Ok(Self { kind, target, directory: directory.to_owned(), locks })
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
    /// A directory that cannot be renamed or removed. The message says where the new results are.
    pub fn complete(self) -> Result<()> {
        let Self { kind, target, directory, locks } = self;
        Mark { akin: kind, version: VERSION, beside: false, entries: Some(results(&directory)?) }
            .write(&directory)?;
        if target != directory {
            let old = beside(&target, "old");
            let place = || {
                if target.exists() {
                    remove_own(kind, &old)?;
                    fs::rename(&target, &old)?;
                }
                fs::rename(&directory, &target)
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
            // On some systems a locked file cannot be removed.
            drop(locks);
            remove_own(kind, &old).advise(
                || format!("{} cannot be removed", old.display()),
                "it is the old version; remove it yourself",
            )?;
        } else {
            drop(locks);
        }
        let _ = fs::remove_file(target.join(LOCK_FILE));
        Ok(())
    }

    /// Removes what was written. Older results stay as they were.
    pub fn discard(self) {
        drop(self.locks);
        // The failure that led here is what the user has to see, not one of removing.
        let _ = fs::remove_dir_all(&self.directory);
        if self.directory != self.target {
            let _ = fs::remove_file(self.target.join(LOCK_FILE));
        }
    }
}

/// Whether a directory has results, which [`Draft::create`] would replace. Commands call this before long work.
///
/// # Errors
///
/// A directory that is not empty, unless it bears the mark of `kind`, holds nothing that akin did not write, and
/// `overwrite` is set; a directory that cannot be read.
pub fn check(kind: Kind, path: &Path, overwrite: bool) -> Result<bool> {
    let what = kind.name();
    let found = match results(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(error).advise(
                || format!("{} cannot be used for the {what}", path.display()),
                "choose another directory",
            );
        }
    };
    let mark = Mark::read(path);
    if found.is_empty() && mark.is_none() {
        return Ok(false);
    }
    let Some(mark) = mark.filter(|mark| mark.akin == kind) else { return Err(unmarked(kind, path)) };
    if !overwrite {
        return Err(problem(
            format!("{} already has a {what}", path.display()),
            "choose another directory, or pass `--overwrite` to replace it",
        ));
    }
    let foreign: Vec<String> =
        mark.entries.map_or(vec![], |own| found.into_iter().filter(|name| !own.contains(name)).collect());
    if !foreign.is_empty() {
        return Err(problem(
            format!("{} is a {what}, but akin did not write {} in it", path.display(), a_few(&foreign)),
            "move these files away, or choose another directory",
        ));
    }
    Ok(true)
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
fn restore(kind: Kind, target: &Path) -> Result<()> {
    let old = beside(target, "old");
    if target.exists() || Mark::read(&old).is_none_or(|mark| mark.akin != kind) {
        return Ok(());
    }
    fs::rename(&old, target).advise(
        || format!("{} cannot be renamed to {}", old.display(), target.display()),
        "rename it yourself",
    )
}

/// Removes a directory that bears the mark of `kind`, if there is one.
fn remove_own(kind: Kind, path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    if Mark::read(path).is_none_or(|mark| mark.akin != kind) {
        return Err(io::Error::other(format!("{} is not a {}", path.display(), kind.name())));
    }
    fs::remove_dir_all(path)
}

/// Removes the unfinished files that a killed process left.
fn remove_parts(directory: &Path) -> Result<()> {
    for name in names(directory)? {
        if name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX) {
            fs::remove_file(directory.join(&name))?;
        }
    }
    Ok(())
}

/// The names of what a directory holds besides its mark and its lock.
fn results(directory: &Path) -> io::Result<Vec<String>> {
    Ok(names(directory)?.into_iter().filter(|name| name != MARK_FILE && name != LOCK_FILE).collect())
}

/// The names of what a directory holds, sorted. No name that akin writes has characters that are lost here.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = fs::read_dir(directory)?.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// The path with an extension added to its name: `runs/a` and `old` give `runs/a.old`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

/// The lock of a directory. The system releases it when the process ends, however it ends.
struct Lock {
    _file: File,
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
        let path = directory.join(LOCK_FILE);
        let check_permissions = "check the permissions of the directory";
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .advise(|| format!("{} cannot be opened", path.display()), check_permissions)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder =
                    file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
                let holder = holder.map_or("another process".into(), |Holder { process, host, since }| {
                    format!("process {process} on {host}, since {since},")
                });
                return Err(problem(
                    format!("{holder} is writing to {}", directory.display()),
                    "wait until it has ended, or choose another directory",
                ));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error)
                    .advise(|| format!("{} cannot be locked", path.display()), check_permissions);
            }
        }
        let holder = Holder { process: process::id(), host: machine::host(), since: machine::now() };
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&holder)?)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results that are complete, with one file.
    fn complete(kind: Kind, path: &Path, text: &str, overwrite: bool) {
        let draft = Draft::create(kind, path, overwrite).unwrap();
        fs::write(draft.directory().join("results"), text).unwrap();
        draft.complete().unwrap();
    }

    fn refusal<T>(result: Result<T>) -> String {
        result.err().expect("an error").to_string()
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
        assert_eq!(names(&path).unwrap(), ["config.toml", "thesis"]);

        let bundle = folder.path().join("bundle");
        complete(Kind::Bundle, &bundle, "first", false);
        assert!(refusal(Draft::create(Kind::Run, &bundle, true)).contains("is not a run"));
        assert!(refusal(Draft::create(Kind::Bundle, &bundle, false)).ends_with("already has a bundle"));
        complete(Kind::Bundle, &bundle, "second", true);
        assert_eq!(fs::read(bundle.join("results")).unwrap(), b"second");
        assert_eq!(names(folder.path()).unwrap(), ["bundle", "s"]);
        assert_eq!(names(&bundle).unwrap(), [MARK_FILE, "results"]);
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
    fn the_old_results_stay_until_the_new_ones_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        complete(Kind::Run, &path, "first", false);
        let draft = Draft::create(Kind::Run, &path, true).unwrap();
        fs::write(draft.directory().join("results"), "half").unwrap();
        assert_eq!(fs::read(path.join("results")).unwrap(), b"first");
        draft.discard();
        assert_eq!(names(folder.path()).unwrap(), ["run"]);

        // A process that was killed leaves its draft, which can be continued or begun again.
        let killed = Draft::create(Kind::Run, &path, true).unwrap();
        let aside = killed.directory().to_owned();
        fs::write(aside.join("results"), "second").unwrap();
        fs::write(aside.join(".akin-1.part"), "").unwrap();
        drop(killed);
        let resumed = Draft::resume(Kind::Run, &aside).unwrap();
        assert_eq!(resumed.target(), path);
        resumed.complete().unwrap();
        assert_eq!(fs::read(path.join("results")).unwrap(), b"second");
        assert_eq!(names(&path).unwrap(), [MARK_FILE, "results"]);
        drop(Draft::create(Kind::Run, &path, true).unwrap());
        complete(Kind::Run, &path, "third", true);
        assert_eq!(names(folder.path()).unwrap(), ["run"]);
    }

    #[test]
    fn results_come_back_after_a_kill_between_the_renames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle");
        complete(Kind::Bundle, &path, "first", false);
        fs::rename(&path, folder.path().join("bundle.old")).unwrap();
        assert!(refusal(Draft::create(Kind::Bundle, &path, false)).ends_with("already has a bundle"));
        assert_eq!(fs::read(path.join("results")).unwrap(), b"first");
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
}
