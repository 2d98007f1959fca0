//! Files that are either whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::problem::{Advise, problem};

/// Writes a file so that at every moment `path` holds either its previous version or the new one.
///
/// The new version is written aside in the same directory, brought to the disk, and renamed. When
/// `write` fails, or the disk is full, the previous version stays and nothing is left behind. What is
/// there and is no file, as a pipe or `/dev/stdout`, is written to instead of replaced.
pub fn write_atomic(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if !directory_of(path).is_dir() {
        return Err(problem(
            format!("{} was not written: its folder is not there", path.display()),
            "make the folder, or check the path",
        ));
    }
    replace(path, write).advise(
        || format!("{} was not written", path.display()),
        "free some space or check the permissions; what was there before is unharmed",
    )
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let mut buffered = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut buffered)?;
        return buffered.flush();
    }
    let directory = directory_of(path);
    let mut aside = tempfile::Builder::new();
    aside.prefix(".akin-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What `File::create` asks for; the user's umask takes from it.
        aside.permissions(fs::Permissions::from_mode(0o666));
    }
    let aside = aside.tempfile_in(directory)?;
    let mut buffered = BufWriter::new(aside);
    write(&mut buffered)?;
    let aside = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Brings a rename to the disk, where directories can be synced at all.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Makes a directory for results: new, or empty, or emptied when `overwrite` is set.
///
/// # Errors
///
/// As [`check_directory`], or a directory that cannot be emptied or made.
pub fn create_directory(path: &Path, what: &str, mark: &str, overwrite: bool) -> Result<()> {
    if check_directory(path, what, mark, overwrite)? {
        fs::remove_dir_all(path).with_context(|| format!("emptying {}", path.display()))?;
    }
    fs::create_dir_all(path)
        .advise(|| format!("{} cannot be made", path.display()), "check the path and its permissions")
}

/// Whether a directory would have to be emptied for results, which [`create_directory`] then does:
/// to be asked before work that takes long.
///
/// `what` names it in messages, for example "run". Only a directory in which `mark` stands (a file
/// that every such directory has) is ever emptied, so that a slip of the keyboard cannot cost a home
/// directory.
///
/// # Errors
///
/// A directory that is not empty, unless it has the mark and `overwrite` is set; one that cannot be
/// read.
pub fn check_directory(path: &Path, what: &str, mark: &str, overwrite: bool) -> Result<bool> {
    let occupied = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            return Err(error).advise(
                || format!("{} cannot be used for the {what}", path.display()),
                "choose another place",
            );
        }
    };
    if occupied {
        if !overwrite {
            return Err(problem(
                format!("{} is not empty, and a {what} is never overwritten silently", path.display()),
                "choose another place, or pass `--overwrite` to replace it",
            ));
        }
        if !path.join(mark).is_file() {
            return Err(problem(
                format!("{} holds something that is not a {what} (it has no {mark})", path.display()),
                "choose another place, or remove the directory yourself",
            ));
        }
    }
    Ok(occupied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_half_way_leaves_the_previous_version() {
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
        assert!(hint.unwrap().contains("unharmed"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing is left behind");
        let error = write_atomic(&directory.path().join("nowhere/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().ends_with("its folder is not there"), "{error}");
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
    fn a_device_is_written_to_and_not_replaced() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        // Through a link, so that at worst the link is lost.
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
    fn a_directory_with_something_in_it_is_only_replaced_when_asked_for_and_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        create_directory(&run, "run", "config.toml", false).unwrap();
        create_directory(&run, "run", "config.toml", false).unwrap();
        fs::write(run.join("holiday.jpg"), "").unwrap();
        let message =
            |overwrite| create_directory(&run, "run", "config.toml", overwrite).unwrap_err().to_string();
        assert!(message(false).contains("never overwritten"));
        assert!(message(true).contains("not a run"));
        fs::write(run.join("config.toml"), "").unwrap();
        create_directory(&run, "run", "config.toml", true).unwrap();
        assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    }
}
