//! Work on all threads with the feature `parallel`, and on one without it. No result depends on it.

/// Calls `work` with each chunk of some length, and its number. The last chunk may be shorter.
pub(crate) fn each_chunk<T: Send>(
    numbers: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if numbers.len() > length {
        use rayon::prelude::*;
        numbers.par_chunks_mut(length).enumerate().for_each(|(i, chunk)| work(i, chunk));
        return;
    }
    numbers.chunks_mut(length).enumerate().for_each(|(i, chunk)| work(i, chunk));
}

/// The number of threads that work.
pub(crate) fn count() -> usize {
    #[cfg(feature = "parallel")]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "parallel"))]
    {
        1
    }
}
