//! Work that takes its time: without the lock of the interpreter, with progress, and with an ear for Ctrl-C.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use akin_core::Result;
use akin_core::evaluate::{Execution, Step};
use pyo3::prelude::*;

use crate::errors::OrRaise;

/// How often the waiting thread shows progress and asks whether Ctrl-C was pressed.
const PAUSE: Duration = Duration::from_millis(50);

/// The result of `work`, which runs on another thread. Meanwhile `progress`, if it is not `None`, is called with the
/// numbers of embeddings that are checked and of queries that are ranked. After an exception in the interpreter, such as
/// `KeyboardInterrupt`, the work is told to stop.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Execution<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let (checked, ranked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (is_stopped, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let advance = |step| match step {
        Step::Checked(embeddings) => drop(checked.fetch_add(embeddings, Ordering::Relaxed)),
        Step::Ranked(queries) => drop(ranked.fetch_add(queries, Ordering::Relaxed)),
        _ => {}
    };
    let execution = Execution {
        progress: &advance,
        is_stopped: &|| is_stopped.load(Ordering::Relaxed),
        ..Execution::default()
    };
    let caller = thread::current();
    let (result, raised) = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Also wakes the caller after a panic.
            let _wake = Wake(&is_done, caller);
            work(&execution)
        });
        let mut raised = None;
        while !is_done.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(PAUSE));
            if raised.is_none() {
                let counts = (checked.load(Ordering::Relaxed), ranked.load(Ordering::Relaxed));
                let shown = progress.map_or(Ok(()), |progress| progress.call1(counts).map(drop));
                raised = py.check_signals().and(shown).err();
                is_stopped.store(raised.is_some(), Ordering::Relaxed);
            }
        }
        (worker.join(), raised)
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    result.unwrap_or_else(|panic| resume_unwind(panic)).or_raise(py)
}

/// Says that the work is done, and wakes the thread that waits for it.
struct Wake<'a>(&'a AtomicBool, thread::Thread);

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}
