//! Faults of files that a test asks for. Release builds have none.
//!
//! With `AKIN_FAULT="full 7"` the 7th operation on files of this process fails as on a full disk. Every operation of
//! [`crate::files`] asks [`before`] first. The kinds are those of [`Fault`]. The process says on stderr which operation
//! was hit and, with `AKIN_FAULT="full 7 FILE"`, also at the end of a file, so that a test knows when there are no more.
//! Processes that it starts do the same.

use std::io;
use std::path::Path;

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// It is done.
    Whole,
    /// A read or write moves only a part of the bytes, as the system may do. Other operations are done.
    Short,
}

/// Has to be called before each operation on files.
///
/// # Errors
///
/// The fault that the test asked for.
#[cfg(not(debug_assertions))]
pub fn before(_operation: &str, _path: &Path) -> io::Result<Transfer> {
    Ok(Transfer::Whole)
}

/// Has to be called before each operation on files.
///
/// # Errors
///
/// The fault that the test asked for.
#[cfg(debug_assertions)]
pub fn before(operation: &str, path: &Path) -> io::Result<Transfer> {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ASKED_FOR: LazyLock<Option<(Fault, u64, Option<String>)>> =
        LazyLock::new(|| parse(&std::env::var("AKIN_FAULT").ok()?));
    static DONE: AtomicU64 = AtomicU64::new(0);

    let Some((fault, number, file)) = &*ASKED_FOR else { return Ok(Transfer::Whole) };
    if DONE.fetch_add(1, Ordering::SeqCst) + 1 != *number {
        return Ok(Transfer::Whole);
    }
    let message = format!("fault: {fault:?} at operation {number}: {operation} {}", path.display());
    crate::terminal::say(&message);
    if let Some(file) = file {
        std::fs::File::options().append(true).create(true).open(file)?.write_all(message.as_bytes())?;
    }
    match fault {
        Fault::Full => Err(io::Error::from_raw_os_error(28)),
        Fault::Io => Err(io::Error::from_raw_os_error(5)),
        Fault::Denied => Err(io::Error::from_raw_os_error(13)),
        Fault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
        Fault::Short => Ok(Transfer::Short),
        Fault::Terminated => {
            let this = std::process::id().to_string();
            std::process::Command::new("kill").args(["-TERM", &this]).status()?;
            Ok(Transfer::Whole)
        }
        Fault::Killed => std::process::abort(),
    }
}

/// A kind of fault.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// ENOSPC: the disk is full.
    Full,
    /// EIO: the disk is broken.
    Io,
    /// EACCES: no permission.
    Denied,
    /// EINTR: a signal came; the operation has to be begun again.
    Interrupted,
    /// See [`Transfer::Short`].
    Short,
    /// The process receives SIGTERM.
    Terminated,
    /// The process ends before the operation, as by SIGKILL.
    Killed,
}

/// `full 7 FILE` → a full disk at operation 7, counted from 1, and the file that is to say so.
#[cfg(debug_assertions)]
fn parse(text: &str) -> Option<(Fault, u64, Option<String>)> {
    let mut words = text.splitn(3, ' ');
    let (fault, number, file) = (words.next()?, words.next()?, words.next());
    let kinds = [
        Fault::Full,
        Fault::Io,
        Fault::Denied,
        Fault::Interrupted,
        Fault::Short,
        Fault::Terminated,
        Fault::Killed,
    ];
    let fault = kinds.into_iter().find(|kind| format!("{kind:?}").eq_ignore_ascii_case(fault))?;
    Some((fault, number.parse().ok()?, file.map(str::to_owned)))
}
