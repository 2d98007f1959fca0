//! The lock of a directory of results, so that two processes never write the same ones.

use std::fs::{self, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::LOCK_FILE;
use crate::files::{self, remove_file};
use crate::machine;
use crate::problem::{Advise, problem};

const CHECK_PERMISSIONS: &str = "free some space, or check the permissions of the directory";

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
    pub fn acquire(directory: &Path) -> Result<Self> {
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
    pub fn share(directory: &Path) -> Result<Self> {
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

/// Removes the lock file of a directory whose lock this process still holds: another process might already hold it
/// afterwards. One that is left does no harm.
pub(crate) fn remove_lock(directory: &Path) {
    let _ = remove_file(&directory.join(LOCK_FILE));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn many_that_want_a_lock_have_it_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("download");
        let holders = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = 0;
                    while held < 50 {
                        // A lock file is removed with the lock, while others are about to take it.
                        let Ok(lock) = Lock::beside(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                        lock.release();
                        held += 1;
                    }
                });
            }
        });
    }
}
