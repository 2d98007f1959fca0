//! Work on all threads with the feature `parallel`, and on one without it. No result depends on it.

use std::sync::{Mutex, PoisonError};

/// The results of `work` for 0 … `count` − 1, in this order, whatever order they run in.
pub(crate) fn in_order<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        (0..count).into_par_iter().map(work).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        (0..count).map(work).collect()
    }
}

/// The results of `work` for each of the items, in their order, whatever order they run in.
pub(crate) fn each_in_order<I: Send, T: Send>(items: Vec<I>, work: impl Fn(I) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        items.into_par_iter().map(work).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        items.into_iter().map(work).collect()
    }
}

/// Memory for pieces of work, which one piece after another uses.
#[derive(Debug, Default)]
pub(crate) struct Workspaces<M>(Mutex<Vec<M>>);

impl<M: Default> Workspaces<M> {
    /// Does `work` with memory of its own, in which it finds what earlier work left.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut M) -> T) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = free().pop().unwrap_or_default();
        let result = work(&mut memory);
        free().push(memory);
        result
    }
}

/// The results of two pieces of work, which may run at the same time.
pub(crate) fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "parallel")]
    {
        rayon::join(first, second)
    }
    #[cfg(not(feature = "parallel"))]
    {
        (first(), second())
    }
}

/// The number of threads that work.
pub(crate) fn threads() -> usize {
    #[cfg(feature = "parallel")]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "parallel"))]
    {
        1
    }
}
