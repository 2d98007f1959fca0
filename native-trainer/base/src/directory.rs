//! Directories of results, such as runs and bundles. They are replaced only as a whole, and never by mistake.
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

mod inventory;
mod kind;
mod lock;
mod mark;

use std::io;
use std::path::{Path, PathBuf};

use akin_core::bundle::FileEntry;
use akin_core::digest::sha256;
use anyhow::Result;
use rayon::prelude::*;

use self::inventory::{Inventory, remove_parts};
use self::lock::remove_lock;
use crate::files::{self, create_folder, remove_folder, rename};
use crate::problem::{Advise, a_few, problem};
use crate::{shell, terminal};

pub use self::kind::Kind;
pub use self::lock::Lock;
pub use self::mark::{Flaw, Mark, check_file, directories_in, foreign, is_complete, read_checked};

/// The name of the mark.
pub const MARK_FILE: &str = ".akin.json";
const LOCK_FILE: &str = ".akin.lock";
/// What the name of a replaced directory ends in until it is removed. No user would choose it.
const OLD: &str = "akin-old";

/// A directory of results that this process writes.
pub struct Draft {
    /// As it was last written.
    mark: Mark,
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
        let target = &behind_link(target)?;
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
        let mut mark = Mark::new(kind, replaces);
        mark.write(&directory)?;
        Ok(Self { mark, target: target.to_owned(), directory, locks })
    }

    /// States the paths of the files that will be written, for a kind whose files have names of any form. Until they are
    /// complete, any other file is foreign.
    ///
    /// # Errors
    ///
    /// A mark that cannot be written.
    pub fn plan(&mut self, paths: Vec<String>) -> Result<()> {
        self.mark.planned = paths;
        self.mark.write(&self.directory)
    }

    /// Continues a directory of results that an earlier process began. It is not complete until [`Draft::complete`].
    ///
    /// # Errors
    ///
    /// A directory without the mark; another process that writes here; a pipe or the like in the place of a file.
    pub fn resume(kind: Kind, directory: &Path) -> Result<Self> {
        let mut draft = Self::open(kind, directory)?;
        refuse_special(&draft.mark, directory)?;
        remove_parts(directory)?;
        if draft.mark.files.take().is_some() {
            draft.mark.directories.clear();
            draft.mark.write(directory)?;
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

    /// The directory of a draft, with its locks.
    fn open(kind: Kind, directory: &Path) -> Result<Self> {
        let Some(mark) = Mark::read(directory)?.filter(|mark| mark.kind == kind) else {
            return Err(unmarked(kind, directory));
        };
        let mut locks = vec![Lock::acquire(directory)?];
        let stands_beside = mark.beside && directory.extension().is_some_and(|extension| extension == "new");
        let target = if stands_beside { directory.with_extension("") } else { directory.to_owned() };
        if stands_beside && target.exists() {
            locks.push(Lock::acquire(&target)?);
        }
        Ok(Self { mark, target, directory: directory.to_owned(), locks })
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
    pub fn complete(mut self) -> Result<()> {
        let inventory = Inventory::take(&self.directory)?;
        // What somebody else put here stays foreign.
        let own = inventory.files.into_par_iter().filter(|path| self.mark.writes(path));
        let entry = |path: String| -> io::Result<FileEntry> {
            let bytes = files::sync_and_read(&self.directory.join(&path))?;
            Ok(FileEntry { path, bytes: bytes.len() as u64, sha256: sha256(&bytes) })
        };
        let files = own.map(entry).collect::<io::Result<Vec<_>>>().advise(
            || format!("the files in {} cannot be synced to the disk", self.directory.display()),
            "check the disk",
        )?;
        self.mark.files = Some(files);
        self.mark.planned.clear();
        if self.mark.kind.has_directories() {
            self.mark.directories = inventory.directories;
        }
        self.mark.beside = self.target != self.directory;
        self.mark.write(&self.directory)?;
        self.take_place()
    }

    /// Puts the complete directory into the place of the old one.
    fn take_place(self) -> Result<()> {
        let Self { mut mark, target, directory, locks } = self;
        let kind = mark.kind;
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
            mark.beside = false;
            let _ = mark.write(&target);
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
        if matches!(is_own(self.mark.kind, &self.directory), Ok(true)) {
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
    let draft = Draft::open(kind, directory)?;
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
    let path = &behind_link(path)?;
    recover(path)?;
    let mark = match take_stock(kind, path)? {
        Stock::Nothing => return Ok(false),
        Stock::Other => return Err(unmarked(kind, path)),
        Stock::Results(mark) => mark,
    };
    if !overwrite {
        let begun = mark.files.is_none();
        let part = if begun { "the beginning of " } else { "" };
        let resume = if begun && kind == Kind::Run { "continue it with `akin resume`, " } else { "" };
        return Err(problem(
            format!("{} already has {part}a {}", path.display(), kind.name()),
            format!("{resume}choose another directory{}, or pass `--overwrite` to replace it", kind.option()),
        ));
    }
    refuse_foreign(&mark, path)?;
    // A version that could not be removed is noticed now, and not after days of training.
    let old = beside(path, OLD);
    if let Some(mark) = Mark::read(&old)? {
        refuse_foreign(&mark, &old)?;
    }
    Ok(true)
}

/// Refuses an output that is a file of akin in a run, a bundle or the like, its mark included. Only the command that makes
/// such a directory writes it.
///
/// # Errors
///
/// As above; a directory or mark that cannot be read.
pub fn refuse_own_file(output: &Path) -> Result<()> {
    // A path that cannot be resolved is no file.
    let Ok(whole) = output.canonicalize() else { return Ok(()) };
    for directory in whole.ancestors().skip(1) {
        let Some(mark) = Mark::read(directory)? else { continue };
        let name = whole.strip_prefix(directory).unwrap_or(&whole).to_string_lossy().replace('\\', "/");
        if name == MARK_FILE || name == LOCK_FILE || mark.writes(&name) {
            return Err(problem(
                format!(
                    "the output {} is a file of the {} {}",
                    output.display(),
                    mark.kind.name(),
                    directory.display()
                ),
                "write to another file",
            ));
        }
    }
    Ok(())
}

/// The directory that a symbolic link names, so that its results are replaced on its own disk; any other path itself.
///
/// # Errors
///
/// A link to nothing.
fn behind_link(path: &Path) -> Result<PathBuf> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    path.canonicalize().advise(
        || format!("{} is a link that leads nowhere", path.display()),
        "create what it names, or remove the link",
    )
}

/// Whether an earlier process left a draft of this kind here, beside the results that it was to replace.
///
/// # Errors
///
/// A directory that is no such draft, or holds something else.
fn is_own_draft(kind: Kind, path: &Path) -> Result<bool> {
    match take_stock(kind, path)? {
        Stock::Nothing => Ok(false),
        Stock::Results(mark) if mark.beside => refuse_foreign(&mark, path).map(|()| true),
        _ => Err(problem(
            format!(
                "the new {} would be written into {}, which is something else",
                kind.name(),
                path.display()
            ),
            "move that directory away, or choose another one",
        )),
    }
}

/// What is at the place of results of a kind.
enum Stock {
    /// An empty directory, or none.
    Nothing,
    /// Results of that kind, or their beginning.
    Results(Mark),
    /// Something else.
    Other,
}

/// Looks first at what a directory holds and then at its mark: every process writes the mark before it writes anything
/// else.
fn take_stock(kind: Kind, path: &Path) -> Result<Stock> {
    let holds_something = match Inventory::is_of_something(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        answer => answer,
    };
    let holds_something = holds_something.advise(
        || format!("{} cannot be used for the {}", path.display(), kind.name()),
        &format!("choose another directory{}", kind.option()),
    )?;
    Ok(match Mark::read(path)? {
        Some(mark) if mark.kind == kind => Stock::Results(mark),
        None if !holds_something => Stock::Nothing,
        _ => Stock::Other,
    })
}

fn refuse_foreign(mark: &Mark, path: &Path) -> Result<()> {
    let foreign = foreign(mark, path)?;
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
        format!("move these files away, or choose another directory{}", mark.kind.option()),
    ))
}

/// Refuses a directory in which something else than a file has the name of one: to write to a pipe waits for its reader.
fn refuse_special(mark: &Mark, directory: &Path) -> Result<()> {
    let inventory = Inventory::take(directory)
        .advise(|| format!("{} cannot be read", directory.display()), "check its permissions")?;
    // A link to a file is replaced like that file.
    let is_special = |name: &&String| directory.join(name).metadata().is_ok_and(|there| !there.is_file());
    let special: Vec<&String> =
        inventory.others.iter().filter(|name| mark.writes(name)).filter(is_special).collect();
    match &special[..] {
        [] => Ok(()),
        [name, ..] => Err(problem(
            format!("{} is not a regular file", directory.join(name).display()),
            format!("remove it: a {} has a file of this name", mark.kind.name()),
        )),
    }
}

/// The error for a directory that holds something else than a command takes; none if its mark is of a kind that is wanted,
/// or if it has no mark. `hint` says where what is wanted comes from, if nothing better is known.
pub fn other_kind(directory: &Path, wanted: &[Kind], hint: &str) -> Option<anyhow::Error> {
    let kind = Mark::read(directory).ok()??.kind;
    if wanted.contains(&kind) {
        return None;
    }
    let is_wanted = |path: &Path| wanted.iter().any(|&wanted| is_complete(wanted, path).unwrap_or(false));
    let inside = directories_in(directory).unwrap_or_default().into_iter().map(|name| directory.join(name));
    let mut known: Vec<PathBuf> = inside.filter(|path| is_wanted(path)).collect();
    known.extend(Some(beside(directory, "bundle")).filter(|path| kind == Kind::Run && is_wanted(path)));
    let known: Vec<String> = known.iter().map(|path| shell::path(path)).collect();
    let place = shell::path(directory);
    let hint = match (kind, &known[..]) {
        (Kind::Tuning, [_, ..]) if directory.join("best.toml").is_file() => {
            format!("train with its best settings, `akin train {place}/best.toml`, or give {}", a_few(&known))
        }
        (Kind::Run, []) => format!("write its bundle with `akin export {place} --out BUNDLE`, and give that"),
        (Kind::Bundle, []) => "give the run that it was exported from".to_owned(),
        (_, []) => hint.to_owned(),
        _ => format!("give {}", a_few(&known)),
    };
    let names: Vec<&str> = wanted.iter().map(|kind| kind.name()).collect();
    let message = format!("{} is a {}, not a {}", directory.display(), kind.name(), names.join(" or "));
    Some(problem(message, hint))
}

/// The error for a directory that is not empty and has no mark of `kind`.
fn unmarked(kind: Kind, path: &Path) -> anyhow::Error {
    problem(
        format!(
            "{} is not empty and is not a {}: it has no {MARK_FILE} that says so",
            path.display(),
            kind.name()
        ),
        format!("choose another directory{}, or empty this one yourself", kind.option()),
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
    let inventory = Inventory::take(path)?;
    Ok(match Mark::read(path)? {
        None => inventory.is_empty(),
        Some(mark) => mark.kind == kind && mark.foreign(path, &inventory)?.is_empty(),
    })
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
        match take_stock(kind, directory)? {
            Stock::Results(_) => {}
            Stock::Nothing => create_folder(directory)?,
            Stock::Other => return Err(unmarked(kind, directory)),
        }
        let lock = Lock::share(directory)?;
        // Several processes may write the mark here. They all write the same.
        if Mark::read(directory)?.is_none_or(|mark| mark.files.is_some()) {
            Mark::new(kind, false).write(directory)?;
        }
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process;

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
