//! Files that are written completely or not at all, and directories for results.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::problem::{Advise, problem};

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

/// Refuses a file whose folder does not exist. Commands call this before long work.
pub fn check_folder_of(path: &Path) -> Result<()> {
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
    builder.prefix(".akin-").suffix(".part");
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

/// Creates a directory for results. An existing directory must be empty, or is emptied if `overwrite` is set.
///
/// # Errors
///
/// The errors of [`check_directory`]; a directory that cannot be emptied or created.
pub fn create_directory(path: &Path, what: &str, marker: &str, overwrite: bool) -> Result<()> {
    if check_directory(path, what, marker, overwrite)? {
        fs::remove_dir_all(path).with_context(|| format!("emptying {}", path.display()))?;
    }
    fs::create_dir_all(path)
        .advise(|| format!("{} cannot be created", path.display()), "check the path and its permissions")
}

/// Whether [`create_directory`] would have to empty the directory. Commands call this before long work.
///
/// `what` names the directory in messages, for example "run". Only a directory that contains the file `marker`,
/// which every directory of that sort has, is ever emptied: a mistyped path cannot delete a home directory.
///
/// # Errors
///
/// A directory that is not empty, unless it has the marker and `overwrite` is set; a directory that cannot be read.
pub fn check_directory(path: &Path, what: &str, marker: &str, overwrite: bool) -> Result<bool> {
    let occupied = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            return Err(error).advise(
                || format!("{} cannot be used for the {what}", path.display()),
                "choose another directory",
            );
        }
    };
    if occupied {
        if !path.join(marker).is_file() {
            return Err(problem(
                format!("{} is not empty and is not a {what}: it has no {marker}", path.display()),
                "choose another directory, or empty this one yourself",
            ));
        }
        if !overwrite {
            return Err(problem(
                format!("{} already has a {what}", path.display()),
                "choose another directory, or pass `--overwrite` to replace it",
            ));
        }
    }
    Ok(occupied)
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

    #[test]
    fn a_full_directory_is_replaced_only_on_request_and_with_its_marker() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        create_directory(&run, "run", "config.toml", false).unwrap();
        create_directory(&run, "run", "config.toml", false).unwrap();
        fs::write(run.join("holiday.jpg"), "").unwrap();
        let message =
            |overwrite| create_directory(&run, "run", "config.toml", overwrite).unwrap_err().to_string();
        // `--overwrite` is offered only where it would help.
        assert!(message(false).ends_with("is not a run: it has no config.toml"));
        assert!(message(true).ends_with("is not a run: it has no config.toml"));
        fs::write(run.join("config.toml"), "").unwrap();
        assert!(message(false).ends_with("already has a run"));
        create_directory(&run, "run", "config.toml", true).unwrap();
        assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    }
}
