//! The threads that rayon computes on: as many as the system starts.
//!
//! Where the system starts fewer threads than rayon wants, rayon panics: under a limit of processes, as in small
//! containers, or of memory. [`prepare`] finds that out first.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use anyhow::Result;
use rayon::ThreadPoolBuilder;

use crate::problem::{Advise, problem};
use crate::quantities::counted;
use crate::terminal;

/// What to do where the system starts too few threads.
pub const RAISE_LIMIT: &str =
    "raise the limit of processes (`ulimit -u`) or of memory (`ulimit -v`), or end other programs";

/// The threads that a command starts besides those of rayon, for example for signals and for the next batch.
const OTHERS: usize = 3;

/// Lets rayon compute on fewer threads if the system starts fewer than it would take. To be called before rayon is used.
///
/// # Errors
///
/// A system that starts no thread at all.
pub fn prepare() -> Result<()> {
    let wanted = wanted();
    let started = count_startable(wanted + OTHERS);
    if started == wanted + OTHERS {
        return Ok(());
    }
    let count = started.saturating_sub(OTHERS).max(1);
    if started == 0 {
        return Err(problem("the system starts no more threads", RAISE_LIMIT));
    }
    terminal::warn(format_args!(
        "the system starts only {}, so {count} of {wanted} compute; {RAISE_LIMIT}",
        counted(started, "more thread", "more threads")
    ));
    // A thread that has ended counts until the system has put it away.
    thread::sleep(Duration::from_millis(50));
    ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .advise(|| "the threads that compute cannot be started".into(), RAISE_LIMIT)
}

/// The number of threads that rayon takes if it is not told otherwise.
fn wanted() -> usize {
    let set = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    set.filter(|&number| number > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

/// The number of threads, up to a limit, that the system starts at once.
fn count_startable(limit: usize) -> usize {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || drop(gate.lock());
        let start = |_: &usize| Builder::new().spawn_scoped(scope, wait).is_ok();
        let count = (0..limit).take_while(start).count();
        drop(closed);
        count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_a_limit_starts_every_thread() {
        assert_eq!(count_startable(9), 9);
        assert_eq!(count_startable(0), 0);
    }
}
