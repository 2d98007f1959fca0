//! Work on all threads with the feature `parallel`, and on one without it. No result depends on it.

/// The least numbers that are worth a thread of their own.
#[cfg(feature = "parallel")]
const RUN: usize = 1 << 10;

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

/// What `make` gives for 0, 1, …, `count` − 1.
pub(crate) fn collect<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        (0..count).into_par_iter().with_min_len(RUN).map(make).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        (0..count).map(make).collect()
    }
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
