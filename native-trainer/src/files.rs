//! Files: read if they are regular, written completely or not at all, and never over an input.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use same_file::is_same_file;

use crate::problem::{Advise, problem};

/// The name of a file that is not complete starts and ends with these.
pub const PART_PREFIX: &str = ".akin-";
pub const PART_SUFFIX: &str = ".part";

/// The bytes of a regular file. A pipe would wait for its writer, and some devices never end.
///
/// # Errors
///
/// `InvalidInput` for anything but a regular file or a link to one; the errors of the system.
pub fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    fs::read(path)
}

/// Writes a file so that at every moment `path` holds either its previous version or the new one.
///
/// The new version is written to a temporary file in the same directory, synced to the disk, and renamed. If
/// `write` fails or the disk is full, the previous version stays and the temporary file is removed. A `path` that
/// is not a regular file, such as a pipe or `/dev/stdout`, is written to directly.
pub fn write_atomic(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    check_folder_of(path)?;
    replace(path, write).advise(
        || format!("{} was not written", path.display()),
        "free some space or check the permissions; the previous version is unchanged",
    )
}

/// Refuses an output that is one of the inputs or another existing file, unless `overwrite` allows that one; and a file
/// whose folder does not exist. Commands call this before long work.
///
/// # Errors
///
/// As above. A pipe or a device is never refused.
pub fn check_output(path: &Path, inputs: &[PathBuf], overwrite: bool) -> Result<()> {
    check_folder_of(path)?;
    if !path.is_file() {
        return Ok(());
    }
    if let Some(input) = inputs.iter().find(|input| is_same_file(path, input).unwrap_or(false)) {
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
    Ok(())
}

/// Refuses a file whose folder does not exist.
fn check_folder_of(path: &Path) -> Result<()> {
    let folder = directory_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    Err(problem(
        format!("{} cannot be written: the folder {} does not exist", path.display(), folder.display()),
        "create the folder, or check the path",
    ))
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir()) {
        let mut buffered = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut buffered)?;
        return buffered.flush();
    }
    let directory = directory_of(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PART_PREFIX).suffix(PART_SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As `File::create` does; the user's umask applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut buffered = BufWriter::new(builder.tempfile_in(directory)?);
    write(&mut buffered)?;
    let temporary = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs a rename to the disk, on systems that can sync directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
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
        let error = write_atomic(&directory.path().join("nowhere/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().ends_with("nowhere does not exist"), "{error}");
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
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&input, &new).unwrap();
            assert!(check(&new, true).unwrap_err().to_string().contains("is the input"), "through a link");
        }
        assert!(check(&input, true).unwrap_err().to_string().contains("is the input"));
    }
}
