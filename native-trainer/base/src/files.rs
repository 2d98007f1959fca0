//! Files: read if they are regular, written completely or not at all, and never over an input.
//!
//! Every file that akin writes is written here, and every file that it reads again is read here. So a test can make
//! each operation fail in turn, see [`crate::faults`].

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use tempfile::NamedTempFile;

use crate::faults::{self, Transfer};
use crate::problem::{Advise, problem};

/// How the name of a file starts that is not complete.
pub const PART_PREFIX: &str = ".akin-";
/// How the name of a file ends that is not complete.
pub const PART_SUFFIX: &str = ".part";

const FREE_SPACE: &str = "free some space or check the permissions";
const NOT_REGULAR: &str = "it is not a regular file";

/// The bytes of a regular file. A pipe would wait for its writer, and some devices never end.
///
/// # Errors
///
/// `InvalidInput` for anything but a regular file or a link to one; the errors of the system.
pub fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR));
    }
    let mut file = attempt("open", path, || File::open(path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    Tracked { file: &mut file, path }.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file cannot be read because it is absent or not a regular file. Any other error is one of the system, and the
/// file may be sound.
pub fn is_fault_of_file(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory
    )
}

/// The error of a file that the system cannot read.
pub fn system_fault(path: &Path, error: &io::Error) -> anyhow::Error {
    problem(
        format!("the system cannot read {}: {error}", path.display()),
        match error.kind() {
            io::ErrorKind::PermissionDenied => "let this user read the file and open its folders (`chmod`)",
            _ => {
                "the file is not at fault: check the disk, the memory and the limit of open files (`ulimit -n`)"
            }
        },
    )
}

/// A part of an open file, which was opened from `path` or holds what was read there.
///
/// # Errors
///
/// The errors of the system, and a file that ends before the part does.
pub fn read_part(file: &mut File, path: &Path, start: u64, length: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; length];
    Tracked { file, path }.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// As [`read_regular_file`], for a text.
///
/// # Errors
///
/// As [`read_regular_file`], and `InvalidData` for bytes that are not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_regular_file(path)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// A regular file that is read by position, for as long as an evaluation takes.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    file: File,
    /// The length and the time of the last change, when it was opened.
    state: (u64, Option<SystemTime>),
}

impl InputFile {
    /// Opens a regular file.
    ///
    /// # Errors
    ///
    /// As [`read_regular_file`].
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR));
        }
        let file = attempt("open", path, || File::open(path))?;
        Ok(Self { path: path.to_owned(), state: state(&file)?, file })
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    ///
    /// Its length or the time of its last change is another.
    pub fn check_unchanged(&self) -> Result<()> {
        if state(&self.file).is_ok_and(|state| state == self.state) {
            return Ok(());
        }
        Err(problem(
            format!("{} was changed while it was read", self.path.display()),
            "run the command again when nothing writes to the file",
        ))
    }
}

fn state(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

impl Read for InputFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        Tracked { file: &mut self.file, path: &self.path }.read(bytes)
    }
}

impl Seek for InputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// As [`read_regular_file`], after the file is on the disk for good.
///
/// # Errors
///
/// As [`read_regular_file`], and a file that cannot be synced.
pub fn sync_and_read(path: &Path) -> io::Result<Vec<u8>> {
    attempt("sync", path, || File::open(path)?.sync_all())?;
    read_regular_file(path)
}

/// Writes a file of a directory that is not complete yet: not atomically, and not synced to the disk.
///
/// # Errors
///
/// A folder that cannot be made; a file that cannot be written.
pub fn write_into_draft(path: &Path, bytes: &[u8]) -> Result<()> {
    create_folder(folder_of(path))?;
    let write = || {
        let mut file = create(path)?;
        Tracked { file: &mut file, path }.write_all(bytes)
    };
    write().advise(|| format!("{} was not written", path.display()), FREE_SPACE)
}

/// Makes a folder and those that it is in.
///
/// # Errors
///
/// A path that cannot be a folder.
pub fn create_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    attempt("create folder", path, || fs::create_dir_all(path)).advise(
        || format!("the folder {} cannot be created", path.display()),
        "check the path and its permissions",
    )
}

/// Renames a file or a folder, for good.
///
/// # Errors
///
/// The errors of the system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    attempt("rename", from, || fs::rename(from, to))?;
    sync_directory(folder_of(to))
}

/// Removes a file, if it exists.
///
/// # Errors
///
/// The errors of the system.
pub fn remove_file(path: &Path) -> io::Result<()> {
    match attempt("remove", path, || fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Removes a folder with everything in it, the entry called `last` at the end.
///
/// # Errors
///
/// The errors of the system.
pub fn remove_folder(path: &Path, last: &str) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == last {
            continue;
        }
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            attempt("remove", &path, || fs::remove_dir_all(&path))?;
        } else {
            remove_file(&path)?;
        }
    }
    remove_file(&path.join(last))?;
    attempt("remove", path, || fs::remove_dir(path))
}

/// Opens a file to be locked, and makes it if there is none.
///
/// # Errors
///
/// `InvalidInput` for a link and for anything but a regular file; the errors of the system.
pub fn open_lock(path: &Path) -> io::Result<File> {
    refuse_other(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    attempt("open", path, || options.open(path))
}

/// Replaces the contents of an open file. Not atomic: for a file that nobody depends on, such as a lock.
///
/// # Errors
///
/// The errors of the system.
pub fn rewrite(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    attempt("cut", path, || file.set_len(0))?;
    file.seek(SeekFrom::Start(0))?;
    Tracked { file, path }.write_all(bytes)
}

/// Makes an empty file, for example for the output of another process.
///
/// # Errors
///
/// `InvalidInput` for a link and for anything but a regular file; the errors of the system.
pub fn create(path: &Path) -> io::Result<File> {
    refuse_other(path)?;
    attempt("create", path, || File::create(path))
}

/// Refuses what akin does not make: a link, since the file that it leads to is somebody else's, and a pipe, which would
/// wait for its other end.
fn refuse_other(path: &Path) -> io::Result<()> {
    let fault = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => "it is a link",
        Ok(metadata) if !metadata.is_file() => NOT_REGULAR,
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, fault))
}

/// A text of whole lines that grows at its end.
pub struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Opens the text at `path`, and makes it if there is none. A last line that a killed process left incomplete is
    /// removed.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open_lock(path)?;
        let mut text = Vec::new();
        Tracked { file: &mut file, path }.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        attempt("cut", path, || file.set_len(whole as u64))?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// The errors of the system. The next [`Lines::open`] then removes a part of the line.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        Tracked { file: &mut self.file, path: &self.path }.write_all(format!("{line}\n").as_bytes())
    }
}

/// A file that grows at its end, and that a later process can continue.
pub struct Growing {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Growing {
    /// Opens the file at `path` to add to it, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open_lock(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        Tracked { file: &mut self.file, path: &self.path }.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Removes all bytes.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn clear(&mut self) -> io::Result<()> {
        attempt("cut", &self.path, || self.file.set_len(0))?;
        self.file.seek(SeekFrom::Start(0))?;
        self.length = 0;
        Ok(())
    }

    /// Waits until every byte is on the disk.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn sync(&self) -> io::Result<()> {
        attempt("sync", &self.path, || self.file.sync_all())
    }
}

/// A file without a name, for what would fill the memory. It grows at its end, and is gone when akin ends.
pub struct Scratch {
    folder: PathBuf,
    file: File,
    length: u64,
}

impl Scratch {
    /// An empty file in the system's folder for temporary files.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let file = attempt("create", &folder, || tempfile::tempfile_in(&folder))?;
        Ok(Self { folder, file, length: 0 })
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds bytes. Returns where they begin.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let start = self.length;
        Tracked { file: &mut self.file, path: &self.folder }.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(start)
    }

    /// The file, to be read.
    pub fn into_file(self) -> File {
        self.file
    }
}

/// Does an operation that can be made to fail, again if a signal interrupts it.
fn attempt<T>(operation: &str, path: &Path, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    uninterrupted(|| faults::before(operation, path).and_then(|_| act()))
}

fn uninterrupted<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A file whose reads and writes can be made to fail.
struct Tracked<'a, F> {
    file: F,
    path: &'a Path,
}

impl<F: Read> Read for Tracked<'_, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // Not every reader begins again after a signal; that of CSV files does not.
        uninterrupted(|| match faults::before("read", self.path)? {
            Transfer::Whole => self.file.read(bytes),
            Transfer::Short => {
                let part = bytes.len().div_ceil(2);
                self.file.read(&mut bytes[..part])
            }
        })
    }
}

impl<F: Write> Write for Tracked<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match faults::before("write", self.path)? {
            Transfer::Whole => self.file.write(bytes),
            Transfer::Short => self.file.write(&bytes[..bytes.len().div_ceil(2)]),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file so that at every moment `path` holds either its previous version or the new one.
///
/// The new version is written to a file beside it, `.akin-new-NAME.….part`, synced to the disk, and renamed. If `write`
/// fails or the disk is full, the previous version stays and that file is removed. If the process is killed, it stays
/// until the next one writes to `path`. A `path` that is not a regular file, such as a pipe or `/dev/stdout`, is
/// written to directly.
pub fn write_atomic(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    check_folder_of(path)?;
    let kept = if path.is_file() { "; the previous version is unchanged" } else { "" };
    replace(path, write)
        .advise(|| format!("{} was not written", path.display()), &format!("{FREE_SPACE}{kept}"))
}

/// Refuses an output that is one of the inputs or another existing file, unless `overwrite` allows that one; a folder; and
/// a file whose folder does not exist or may not be written. Commands call this before long work.
///
/// # Errors
///
/// As above. A pipe or a device is never refused.
pub fn check_output(path: &Path, inputs: &[PathBuf], overwrite: bool) -> Result<()> {
    check_folder_of(path)?;
    if path.is_dir() {
        return Err(problem(
            format!("{} cannot be written: it is a folder", path.display()),
            "name a file in it",
        ));
    }
    if !path.is_file() {
        if !path.exists() {
            check_writable(path)?;
        }
        return Ok(());
    }
    if let Some(input) = inputs.iter().find(|input| is_same(path, input).unwrap_or(false)) {
        return Err(problem(
            format!("the output {} is the input {}", path.display(), input.display()),
            "write to another file",
        ));
    }
    if !overwrite {
        return Err(problem(
            format!("{} already exists", path.display()),
            "choose another file, or pass `--overwrite` to replace it",
        ));
    }
    check_writable(path)
}

/// Refuses an output whose name has another ending than its format, so that no file of another format is replaced by
/// mistake. `option` is the option that names it.
///
/// # Errors
///
/// As above. The system names pipes and devices, so they may be called anything.
pub fn check_ending(option: &str, path: &Path, ending: &str) -> Result<()> {
    let is_special = path.exists() && !path.is_file() && !path.is_dir();
    if is_special || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending)) {
        return Ok(());
    }
    Err(problem(
        format!("`{option} {}` does not end in .{ending}", path.display()),
        format!("name a file that ends in .{ending}"),
    ))
}

/// Refuses a file in a folder in which this user may not make one. On a file system that can only be read nobody may.
fn check_writable(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::Access;
        let folder = folder_of(path);
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from).advise(
            || format!("{} cannot be written, nor any other file in its folder", path.display()),
            "choose another folder, or check its permissions",
        )?;
    }
    Ok(())
}

/// Refuses a file whose folder does not exist.
fn check_folder_of(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    Err(problem(
        format!("{} cannot be written: the folder {} does not exist", path.display(), folder.display()),
        "create the folder, or check the path",
    ))
}

fn replace(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir()) {
        let mut file = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut file)?;
        return file.flush();
    }
    let folder = folder_of(path);
    // Long names leave no room for more.
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().chars().take(50).collect();
    let prefix = format!("{PART_PREFIX}new-{name}.");
    remove_abandoned(folder, &prefix);
    let mut temporary = attempt("create", path, || create_part(folder, &prefix))?;
    let mut buffered = BufWriter::new(Tracked { file: temporary.as_file_mut(), path });
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    attempt("sync", path, || temporary.as_file().sync_all())?;
    // `persist` takes the file, so that a second attempt would have none: only the fault is tried again.
    attempt("rename", path, || Ok(()))?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_directory(folder)
}

/// Makes an empty file, which is removed if it is not renamed. It is locked, so that nobody takes it for abandoned.
fn create_part(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    // As `File::create` does; the user's umask applies. The errors of the system stay as they are.
    let create = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
    loop {
        let part = tempfile::Builder::new().prefix(prefix).suffix(PART_SUFFIX).make_in(folder, create)?;
        match part.as_file().try_lock() {
            // Another process took it for abandoned before it was locked.
            Ok(()) if is_at(part.as_file(), part.path()).is_ok_and(|is_there| !is_there) => {}
            Err(TryLockError::WouldBlock) => {}
            // On a file system without locks nobody takes a file for abandoned.
            _ => return Ok(part),
        }
    }
}

/// Removes the parts of a file that killed processes left, which nobody has locked. One that cannot be removed does no
/// harm.
fn remove_abandoned(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(prefix) || !name.ends_with(PART_SUFFIX) {
            continue;
        }
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // Over a network only a file that is open for writing can be locked.
        let part = OpenOptions::new().write(true).open(entry.path());
        if part.as_ref().is_ok_and(|part| part.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether two paths lead to the same file. Opens neither on Unix, where one of them may be a pipe without a writer.
///
/// # Errors
///
/// The errors of the system.
pub fn is_same(path: &Path, other: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
        Ok(place(path)? == place(other)?)
    }
    #[cfg(not(unix))]
    same_file::is_same_file(path, other)
}

/// The absolute path without links. The file itself need not exist.
///
/// # Errors
///
/// A current directory that is gone.
pub fn whole_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for existing in path.ancestors() {
        let Ok(whole) = existing.canonicalize() else { continue };
        return Ok(whole.join(path.strip_prefix(existing).unwrap_or(Path::new(""))));
    }
    Ok(path)
}

/// Whether a path leads to this open file. Opens no other on Unix, where so few may be allowed that there is none left.
///
/// # Errors
///
/// The errors of the system, except that there is no such path.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let there = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let open = file.metadata()?;
        Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
    }
    #[cfg(not(unix))]
    Ok(same_file::Handle::from_file(file.try_clone()?)? == same_file::Handle::from_path(path)?)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs a rename to the disk, on systems that can sync directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    attempt("sync", directory, || if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_previous_version() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoint");
        write_atomic(&path, |file| file.write_all(b"first")).unwrap();
        let error = write_atomic(&path, |file| {
            file.write_all(&[0; 100_000])?;
            Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))
        })
        .unwrap_err();
        let (message, hint) = crate::problem::parts(&error);
        assert!(message.contains("was not written: no space left"), "{message}");
        assert!(hint.unwrap().contains("unchanged"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "the temporary file is removed");
        let full = |_: &mut (dyn Write + Send)| {
            Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))
        };
        let error = write_atomic(&directory.path().join("new"), full).unwrap_err();
        assert!(!crate::problem::parts(&error).1.unwrap().contains("previous"), "there was none");
        let error = write_atomic(&directory.path().join("nowhere/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().ends_with("nowhere does not exist"), "{error}");
    }

    #[test]
    fn a_line_that_was_cut_off_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        fs::write(&path, "{\"step\":10}\n{\"ste").unwrap();
        Lines::open(&path).unwrap().add("{}").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"step\":10}\n{}\n");
    }

    #[test]
    fn the_new_version_replaces_the_old() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for text in ["old", "new"] {
            write_atomic(&path, |file| file.write_all(text.as_bytes())).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let [path, part] =
            ["report.html", ".akin-new-report.html.x.part"].map(|name| directory.path().join(name));
        fs::write(&part, "half").unwrap();
        write_atomic(&path, |file| file.write_all(b"whole")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), part.exists()), (b"whole".to_vec(), false));

        // What another process is writing stays.
        let other = File::create(&part).unwrap();
        other.lock().unwrap();
        write_atomic(&path, |file| file.write_all(b"whole")).unwrap();
        assert!(part.exists());
    }

    #[test]
    fn the_file_is_whole_however_many_write_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mark");
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_atomic(path, |file| (0..100).try_for_each(|_| file.write_all(&[writer; 100])))
                            .unwrap();
                        let bytes = fs::read(path).unwrap();
                        assert!(bytes.len() == 10_000 && bytes.iter().all(|&byte| byte == bytes[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed_where_akin_writes_files_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let [precious, link] = ["precious", "link"].map(|name| directory.path().join(name));
        fs::write(&precious, "x").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(create(&link).is_err());
        assert!(open_lock(&link).is_err());
        assert!(Lines::open(&link).is_err());
        assert!(Growing::open(&link).is_err());
        let part = directory.path().join(".akin-new-report.x.part");
        fs::rename(&link, &part).unwrap();
        write_atomic(&directory.path().join("report"), |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"x");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_replaced() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        // Through a link, so that a bug destroys only the link.
        let null = directory.path().join("null");
        symlink("/dev/null", &null).unwrap();
        write_atomic(&null, |file| file.write_all(b"gone")).unwrap();
        assert!(fs::symlink_metadata(&null).unwrap().is_symlink());
        let full = directory.path().join("full");
        symlink("/dev/full", &full).unwrap();
        if full.exists() {
            assert!(write_atomic(&full, |file| file.write_all(b"gone")).is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let [endless, pipe, file] =
            ["zero.jpg", "pipe.jpg", "file.jpg"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        fs::write(&file, "bytes").unwrap();
        for path in [&endless, &pipe, &directory.path().to_owned()] {
            assert_eq!(read_regular_file(path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(read_regular_file(&file).unwrap(), b"bytes");
    }

    #[test]
    fn an_output_is_never_an_input_and_replaces_a_file_only_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let [input, other, new] =
            ["labels.csv", "scores.csv", "new.csv"].map(|name| directory.path().join(name));
        fs::write(&input, "labels").unwrap();
        fs::write(&other, "scores").unwrap();
        let check = |output: &Path, overwrite| check_output(output, std::slice::from_ref(&input), overwrite);
        check(&new, false).unwrap();
        assert!(check(&other, false).unwrap_err().to_string().ends_with("scores.csv already exists"));
        check(&other, true).unwrap();
        let folder = check(directory.path(), true).unwrap_err().to_string();
        assert!(folder.ends_with("cannot be written: it is a folder"), "{folder}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&input, &new).unwrap();
            assert!(check(&new, true).unwrap_err().to_string().contains("is the input"), "through a link");
        }
        assert!(check(&input, true).unwrap_err().to_string().contains("is the input"));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_among_the_inputs_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let [pipe, output] = ["labels.csv", "scores.csv"].map(|name| directory.path().join(name));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::write(&output, "scores").unwrap();
        // A pipe without a writer would never open.
        check_output(&output, std::slice::from_ref(&pipe), true).unwrap();
        for result in [open_lock(&pipe).map(drop), create(&pipe).map(drop), Lines::open(&pipe).map(drop)] {
            assert_eq!(result.unwrap_err().to_string(), NOT_REGULAR);
        }
    }
}
